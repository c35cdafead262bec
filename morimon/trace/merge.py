"""Ranks on one time axis, and one Perfetto file of all of them.

The exporter throws the absolute clock away: ts 0 is each rank's own first event. What can tell the offsets again, the
best first: clocks that the files name (Kineto's baseTimeNanoseconds, our own metadata), else the ends of barriers.
ep_combine_sync_barrier ends together on one node; the last combine_inter_node warp ends together with that of the
same-local-rank peer on another node; combine_async_recv_transfer and (within a node) combine_barrier end together on
all ranks. They agree to within the latency of a message. Without any of these the ranks stay unaligned.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from morimon.trace.families import LL
from morimon.trace.fit import Fit, fit
from morimon.trace.lanes import iteration_rows
from morimon.trace.model import Alignment
from morimon.trace.names import readable
from morimon.trace.write import TraceWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from morimon.trace.model import Trace

NODE = {"ep_combine_sync_barrier", "combine_barrier"}
PEERS = {"combine_inter_node", LL["combine_inter_node"]}
ALL = {"combine_async_recv_transfer"}
CHUNK = 1 << 16


def align(traces: Sequence[Trace], gpu_per_node: int = 8) -> Alignment:
    """Offsets that put the traces (files; the processes of one share its axis) on one axis."""
    names = [(t, p) for t, trace in enumerate(traces) for p in range(len(trace.processes))]

    def result(by_file: Sequence[int], clock: str, residual_ns: int | None, text: str) -> Alignment:
        residual = None if residual_ns is None else residual_ns / 1000
        return Alignment(tuple(by_file[t] for t, _ in names), tuple(names), clock, residual, text)

    if len(traces) == 1:
        return result([0], "the file's own axis", 0, "one file: its own time axis")
    told = _told(traces)
    if told:
        offsets, clock = told
        disagreement = _disagreement(traces, offsets, gpu_per_node)
        off = "" if disagreement is None else f"; barrier ends disagree by up to {disagreement / 1000:.2f} µs"
        return result(offsets, clock, disagreement, f"aligned by {clock}{off}")
    edges = _edges(traces, gpu_per_node)
    placed = _spread(len(traces), edges)
    lost = [t for t in range(len(traces)) if t not in placed]
    starts = [-int(trace.spans.start_ns[0]) if len(trace.spans) else 0 for trace in traces]
    if lost and len(lost) >= len(traces) - 1:
        text = "ranks are not aligned: the files name no common clock and share no barrier that tells; each starts at 0"
        return result(starts, "", None, text)
    clock = "the ends of " + " and ".join(sorted({edge.slot for edge in edges}))
    left = [edge.fit.spread_ns for edge in edges if edge.fit.spread_ns is not None]
    residual_ns = max(left) if left and not lost else None
    text = f"aligned by {clock}"
    if residual_ns is None:
        text += "; one common iteration only, so the residual cannot be told" if not left else ""
    else:
        text += f"; residual {residual_ns / 1000:.2f} µs"
    text = "; ".join([text, *_doubts(traces, edges)])
    if lost:
        text += f"; not aligned: {', '.join(_name(traces[t]) for t in lost)}"
    return result([placed.get(t, starts[t]) for t in range(len(traces))], clock, residual_ns, text)


def write_merged(traces: Sequence[Trace], path: str | Path, gpu_per_node: int = 8) -> Alignment:
    """Write one trace with a process a rank, pid = rank where it is known and single. Raises TraceError."""
    alignment = align(traces, gpu_per_node)
    pids = _pids(traces, alignment)
    zero = min(
        (
            int(traces[t].spans.start_ns[0]) + off
            for (t, _), off in _first_of_files(alignment)
            if len(traces[t].spans)
        ),
        default=0,
    )
    said = {
        "merged": [_name(trace) for trace in traces],
        "aligned_by": alignment.clock or None,
        "residual_us": alignment.residual_us,
        "alignment": alignment.text,
    }
    with TraceWriter(path, extra=said) as writer:
        for (t, p), pid in zip(alignment.processes, pids, strict=True):
            trace, info = traces[t], traces[t].processes[p]
            writer.process(pid, f"{info.title} · {info.family} · {_name(trace)}")
            for thread in np.flatnonzero(trace.threads.process == p).tolist():
                writer.thread(pid, _tid(trace, thread), trace.threads.name[thread])
        for (t, p), pid, offset in zip(alignment.processes, pids, alignment.offsets_ns, strict=True):
            writer.spans(_rows(traces[t], p, offset - zero), pid=pid)
    return alignment


def _name(trace: Trace) -> str:
    return readable(PurePath(trace.path).name)


def _first_of_files(alignment: Alignment) -> Iterator[tuple[tuple[int, int], int]]:
    return (
        (name, off)
        for name, off in zip(alignment.processes, alignment.offsets_ns, strict=True)
        if name[1] == 0
    )


def _rows(trace: Trace, process: int, shift_ns: int) -> Iterator[tuple[str, int, int, int]]:
    spans = trace.spans
    names = [slot.name for slot in trace.slots]
    tids = [_tid(trace, thread) for thread in range(len(trace.threads))]
    for begin in range(0, len(spans), CHUNK):
        part = slice(begin, begin + CHUNK)
        mine = trace.threads.process[spans.thread[part]] == process
        columns = (
            spans.slot[part],
            spans.start_ns[part] + shift_ns,
            spans.end_ns[part] + shift_ns,
            spans.thread[part],
        )
        for slot, start, end, thread in zip(*(column[mine].tolist() for column in columns), strict=True):
            yield names[slot], start, end, tids[thread]


def _tid(trace: Trace, thread: int) -> int:
    tid = int(trace.threads.tid[thread])
    return tid if tid >= 0 else (1 << 30) + thread


def _pids(traces: Sequence[Trace], alignment: Alignment) -> list[int]:
    ranks = [traces[t].processes[p].rank for t, p in alignment.processes]
    spare = max((rank for rank in ranks if rank is not None), default=-1) + 1
    pids: list[int] = []
    for rank in ranks:
        if rank is None or rank in pids:
            rank, spare = spare, spare + 1
        pids.append(rank)
    return pids


def _told(traces: Sequence[Trace]) -> tuple[list[int], str] | None:
    """Offsets by the clocks that the files name, if all of them can be compared."""
    clocks = [trace.clock for trace in traces]
    known = [clock for clock in clocks if clock is not None]
    if len(known) < len(traces):
        return None
    if all(clock.source == "kineto" for clock in known):
        zeros, what = [clock.zero_ns for clock in known], "Kineto's base time"
    elif all(clock.source == "morimon" and clock.domain == known[0].domain for clock in known):
        zeros, what = [clock.zero_ns for clock in known], "the clock in the files' own metadata"
    elif all(clock.unix_ns is not None for clock in known):
        zeros, what = [clock.unix_ns or 0 for clock in known], "the Unix time in the files' metadata"
    else:
        return None
    absolute = [zero + trace.origin_ns for zero, trace in zip(zeros, traces, strict=True)]
    return [a - min(absolute) for a in absolute], what


class _Edge(NamedTuple):
    """How `b`'s times are put on `a`'s axis, by the ends of `slot`."""

    a: int
    b: int
    slot: str
    fit: Fit


def _edges(traces: Sequence[Trace], gpu_per_node: int, offsets: Sequence[int] | None = None) -> list[_Edge]:
    """As many comparable pairs as it takes: within nodes every rank with the first, then node with node.

    offsets: what clocks say; else the barriers alone tell which iterations are the same.
    """
    ends = [_ends(trace) for trace in traces]
    node = [None if trace.rank is None else trace.rank // gpu_per_node for trace in traces]
    edges: list[_Edge] = []
    linked = list(range(len(traces)))

    def link(a: int, b: int, slots: set[str]) -> None:
        if linked[a] == linked[b]:
            return
        for slot in sorted(slots & ends[a].keys() & ends[b].keys()):
            expected = None if offsets is None else offsets[b] - offsets[a]
            found = _fit(traces[a], traces[b], ends[a][slot], ends[b][slot], expected)
            if found:
                edges.append(_Edge(a, b, slot, found))
                old, new = linked[b], linked[a]
                linked[:] = [new if x == old else x for x in linked]
                return

    pairs = [(a, b) for a in range(len(traces)) for b in range(a + 1, len(traces))]
    for a, b in pairs:
        link(a, b, ALL)
    for a, b in pairs:
        if node[a] == node[b]:
            link(a, b, NODE)
    for a, b in pairs:
        ranks = traces[a].rank, traces[b].rank
        if (
            None not in ranks
            and node[a] != node[b]
            and len({(rank or 0) % gpu_per_node for rank in ranks}) == 1
        ):
            link(a, b, PEERS)
    return edges


def _spread(count: int, edges: Sequence[_Edge]) -> dict[int, int]:
    """Offsets of all that hang together with the first."""
    placed = {0: 0}
    for _ in range(count):
        for edge in edges:
            if edge.a in placed and edge.b not in placed:
                placed[edge.b] = placed[edge.a] + edge.fit.shift_ns
            elif edge.b in placed and edge.a not in placed:
                placed[edge.a] = placed[edge.b] - edge.fit.shift_ns
    return placed


def _disagreement(traces: Sequence[Trace], offsets: Sequence[int], gpu_per_node: int) -> int | None:
    """How far barrier ends lie apart under given offsets; None where no barrier is shared."""
    apart = [
        abs(edge.fit.shift_ns + offsets[edge.a] - offsets[edge.b]) + edge.fit.largest_ns
        for edge in _edges(traces, gpu_per_node, offsets)
    ]
    return max(apart, default=None)


def _ends(trace: Trace) -> dict[str, dict[int, int]]:
    """Anchor slot -> number of whole iteration -> its last end there. Only files of one process."""
    if len(trace.processes) != 1:
        return {}
    rows = iteration_rows(trace)
    whole = np.array([it.whole and not it.stale for it in trace.iterations] or [False])
    result = {}
    for code, slot in enumerate(trace.slots):
        if slot.canonical in NODE | PEERS | ALL:
            mine = np.flatnonzero((trace.spans.slot == code) & (rows >= 0))
            last = np.full(len(trace.iterations), -1)
            np.maximum.at(last, rows[mine], trace.spans.end_ns[mine])
            found = {i: int(end) for i, end in enumerate(last.tolist()) if end >= 0 and whole[i]}
            if found:
                result[slot.canonical] = found
    return result


def _fit(
    a: Trace, b: Trace, ends_a: dict[int, int], ends_b: dict[int, int], expected: int | None
) -> Fit | None:
    wrapped = any(f.kind == "wrapped_ring" for trace in (a, b) for f in trace.findings)
    counts = len(a.iterations), len(b.iterations)
    return fit(ends_a, ends_b, counts, from_the_end=wrapped, expected_ns=expected)


def _doubts(traces: Sequence[Trace], edges: Sequence[_Edge]) -> Iterator[str]:
    """What pairing of iterations was taken, where it is not that of their numbers."""
    for edge in edges:
        counts = [len(traces[t].iterations) for t in (edge.a, edge.b)]
        if counts[0] == counts[1] and not edge.fit.shift:
            continue
        first = max(0, -edge.fit.shift), max(0, edge.fit.shift)
        text = (
            f"{_name(traces[edge.b])} has {counts[1]} iterations, {_name(traces[edge.a])} {counts[0]}: "
            f"its iteration {first[1] + 1} was taken for the other's {first[0] + 1}, as barrier ends fit best"
        )
        if edge.fit.rivals:
            text += f", but {len(edge.fit.rivals)} other pairing{'s' * (len(edge.fit.rivals) > 1)} fit about as well"
        yield text
