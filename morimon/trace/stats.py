"""Statistics of a trace per slot and role and per thread, and which warps stand out."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from morimon.trace.families import BARRIERS
from morimon.trace.group import GroupFigures, above_the_others, distinct, firsts, means
from morimon.trace.model import ROLES, Figures, SlotRow, ThreadTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from morimon.trace.model import Trace

    Ints = NDArray[np.int64]

US = 1000.0
FEWEST = 3
"""Threads that are enough to be compared with one another."""
TICKS_NS = 50.0
"""Five ticks of the exporters' 100 MHz clock."""
LOSS = 0.01
"""Share of an iteration below which nobody cares whether a warp is slow."""


def chosen(trace: Trace, process: int | None = None, number: int | None = None) -> NDArray[np.int64] | slice:
    """Rows of the spans of one process or all, of one iteration or all that are not stale."""
    stale = number is None and any(it.stale for it in trace.iterations)
    if process is None and number is None and not stale:
        return slice(None)
    keep = np.ones(len(trace.spans), bool)
    its_process = trace.threads.process[trace.spans.thread]
    if stale:
        most = (
            max(it.number for it in trace.iterations) + 2
        )  # the last place is that of spans of no iteration
        left_out = np.zeros((len(trace.processes), most), bool)
        for it in trace.iterations:
            left_out[it.process, it.number] = it.stale
        keep &= ~left_out[its_process, trace.spans.iteration]
    if process is not None:
        keep &= its_process == process
    if number is not None:
        keep &= trace.spans.iteration == number
    return np.flatnonzero(keep)


def _figures(found: GroupFigures, everything_ns: float) -> dict[int, Figures]:
    columns = [
        found.group,
        found.calls,
        found.total / US,
        found.mean / US,
        found.min / US,
        *(found.percentile(q) / US for q in (50, 90, 99)),
        found.max / US,
        found.std / US,
        found.total / (everything_ns or 1),
    ]
    return {row[0]: Figures(*row[1:]) for row in zip(*(column.tolist() for column in columns), strict=True)}


def slot_table(trace: Trace, process: int | None = None, number: int | None = None) -> tuple[SlotRow, ...]:
    """One row a slot and role, in order of slots; a slot's idle passes are counted apart."""
    at = chosen(trace, process, number)
    spans = trace.spans
    duration = spans.end_ns[at] - spans.start_ns[at]
    group = spans.slot[at] * len(ROLES) + spans.role[at]
    idle = spans.idle[at]
    total = float(duration.sum())
    everything = _figures(GroupFigures(group, duration), total)
    working = _figures(GroupFigures(group[~idle], duration[~idle]), total) if idle.any() else everything
    passes = np.bincount(group[idle], minlength=int(group.max(initial=0)) + 1)
    return tuple(
        SlotRow(code // len(ROLES), code % len(ROLES), working.get(code), int(passes[code]), figures)
        for code, figures in everything.items()
    )


def thread_table(trace: Trace, process: int | None = None, number: int | None = None) -> ThreadTable:
    """One row a thread that has spans, in order of threads."""
    at = chosen(trace, process, number)
    spans, threads = trace.spans, trace.threads
    duration, thread, slot = spans.end_ns[at] - spans.start_ns[at], spans.thread[at], spans.slot[at]
    found = GroupFigures(thread, duration)
    row = np.searchsorted(found.group, thread)
    slots = len(trace.slots)
    parts = (
        np.bincount(row * slots + slot, duration, found.group.size * slots).reshape(found.group.size, slots)
        / US
    )
    kind = threads.process[found.group].astype(np.int64) * len(ROLES) + threads.role[found.group]
    ratio = np.zeros(found.group.size)
    logged = (
        np.bincount(row * slots + slot, minlength=found.group.size * slots).reshape(-1, max(slots, 1)) > 0
    )
    for peers in (*(np.flatnonzero(kind == one) for one in distinct(kind)), *_same_slots(kind, logged)):
        median = float(np.median(found.total[peers]))
        ratio[peers] = found.total[peers] / median if median else 0.0
    slow = np.zeros(len(threads), bool)
    slow[[t for t, _, _ in slow_warps(trace, process, number)]] = True
    return ThreadTable(
        thread=found.group.astype(np.int32),
        calls=found.calls,
        total_us=found.total / US,
        mean_us=found.mean / US,
        min_us=found.min / US,
        p50_us=found.percentile(50) / US,
        p90_us=found.percentile(90) / US,
        p99_us=found.percentile(99) / US,
        max_us=found.max / US,
        std_us=found.std / US,
        share=found.total / (float(duration.sum()) or 1.0),
        ratio=ratio,
        outlier=slow[found.group],
        by_slot_us=parts,
    )


def _same_slots(kind: Ints, logged: NDArray[np.bool_]) -> list[Ints]:
    """Threads (places) of one kind that come to the same slots, where there are three or more of them."""
    groups: dict[tuple[int, bytes], list[int]] = {}
    for place, (one, pattern) in enumerate(zip(kind.tolist(), np.packbits(logged, axis=1), strict=True)):
        groups.setdefault((one, pattern.tobytes()), []).append(place)
    return [np.array(places) for places in groups.values() if len(places) >= FEWEST]


def slow_warps(
    trace: Trace, process: int | None = None, number: int | None = None
) -> list[tuple[int, int, float]]:
    """(thread, slot, times the median) of warps whose mean in a slot lies above that of its slot and role by 5 MAD and
    by 5 %, the slowest first. Barriers are left out (there the others wait), idle passes too; so is what is no more
    than the clock's grain (5 ticks of 10 ns), or costs the warp less than 1 % of the usual iteration.
    """
    spans, slots = trace.spans, trace.slots
    waits = np.array([s.canonical in BARRIERS for s in slots] or [False])
    at = chosen(trace, process, number)
    keep = ~(waits[spans.slot[at]] | spans.idle[at])
    slot, thread, role = spans.slot[at][keep], spans.thread[at][keep], spans.role[at][keep]
    duration = (spans.end_ns[at] - spans.start_ns[at])[keep]
    threads = len(trace.threads)
    pair, mean, calls = means((slot.astype(np.int64) * len(ROLES) + role) * threads + thread, duration)
    kind, thread = np.divmod(pair, max(threads, 1))
    peers = (
        kind * len(trace.processes) + trace.threads.process[thread]
    )  # in order: processes have their threads in a row
    least_ns = LOSS * _usual_ns(trace, process, number)
    result = []
    edges = np.append(np.flatnonzero(firsts(peers)), peers.size).tolist()
    for a, b in pairwise(edges):
        median = float(np.median(mean[a:b]))
        if median:
            code = int(kind[a]) // len(ROLES)
            excess = mean[a:b] - median
            counts = (excess >= TICKS_NS) & (excess * calls[a:b] >= least_ns)
            high = np.flatnonzero(above_the_others(mean[a:b]) & counts).tolist()
            result += [(int(thread[a + i]), code, float(mean[a + i]) / median) for i in high]
    return sorted(result, key=lambda entry: -entry[2])


def _usual_ns(trace: Trace, process: int | None, number: int | None) -> float:
    """Median iteration × their number in a process: what a warp's time is measured against."""
    durations = [
        it.duration_ns
        for it in trace.iterations
        if process in (None, it.process) and number in (None, it.number) and not (it.stale and number is None)
    ]
    processes = len(trace.processes) if process is None else 1
    return float(np.median(durations)) * len(durations) / processes if durations else 0.0
