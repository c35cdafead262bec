"""When a rank did what, for `--cmd profile`: spans of this process, and the trace file of them.

Slots are the job's own: dispatch_layout, dispatch_counts, dispatch_pack, dispatch_rows and dispatch_unpack of a
dispatch, experts, then combine_rows and combine_sum of a combine. Waiting for a late rank shows in the first slot of a
phase that is collective: dispatch_counts, combine_rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from morimon.bench.options import Options
from morimon.trace.model import Clock
from morimon.trace.write import TraceWriter

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Spans:
    """Takes note of spans on CLOCK_MONOTONIC; of none unless `is_kept`."""

    def __init__(self, *, is_kept: bool) -> None:
        self._is_kept = is_kept
        self.rows: list[tuple[str, int, int]] = []
        """(slot, start_ns, end_ns)"""

    @contextmanager
    def slot(self, name: str) -> Iterator[None]:
        """Note what happens inside as one span."""
        if not self._is_kept:
            yield
            return
        start = time.monotonic_ns()
        yield
        self.rows.append((name, start, time.monotonic_ns()))


def export(spans: Spans, options: Options, rank: int, config: dict[str, object]) -> Path:
    """Write a rank's trace into the job's trace folder, under a name as mori's exporter gives; TraceError on failure."""
    zero_ns = spans.rows[0][1]
    unix_ns = time.time_ns() - time.monotonic_ns() + zero_ns
    stamp = time.strftime("%m%d_%H%M%S")
    path = Path(options.trace_dir) / f"trace_{options.ep.kernel_type}_rank{rank}_{stamp}.json"
    clock = Clock("morimon", zero_ns, domain=_BOOT_ID.read_text().strip(), unix_ns=unix_ns)
    with TraceWriter(path, rank=rank, config=config, clock=clock) as trace:
        trace.process(rank, f"rank {rank}")
        trace.spans(((name, start - zero_ns, end - zero_ns, 0) for name, start, end in spans.rows), pid=rank)
    return path
