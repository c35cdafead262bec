"""What is open when: union intervals of slots, the Gantt of an iteration, overlap of the lanes, time in barriers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from morimon.trace.families import BARRIERS
from morimon.trace.group import distinct, firsts, stable_order, unions
from morimon.trace.model import Bar, Intervals, Lane, Timeline, Warps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from morimon.trace.model import Iteration, Slot, Trace

    Ints = NDArray[np.int64]


LANES: tuple[Lane, ...] = ("inter", "intra", "serial", "other")


def intervals_of(
    row: Ints, slot: NDArray[np.int32], start_ns: Ints, end_ns: Ints, slots: Sequence[Slot]
) -> Intervals:
    """Unions of spans by (row, slot). All arrays one entry a span, in order of start."""
    key, start, end = unions(row * len(slots) + slot, start_ns, end_ns)
    return Intervals(*np.divmod(key, max(len(slots), 1)), start, end)


def hull(intervals: Intervals, rows: int) -> tuple[Ints, Ints]:
    """First start and last end of every row; every row must have an interval."""
    first = np.searchsorted(intervals.row, np.arange(rows))
    return np.minimum.reduceat(intervals.start_ns, first), np.maximum.reduceat(intervals.end_ns, first)


def covered(intervals: Intervals, rows: int, slots: Sequence[int]) -> Ints:
    """Time in which any of `slots` is open, a row."""
    at = np.flatnonzero(np.isin(intervals.slot, slots))
    at = at[np.lexsort((intervals.start_ns[at], intervals.row[at]))]
    row, start, end = unions(intervals.row[at], intervals.start_ns[at], intervals.end_ns[at])
    return np.bincount(row, end - start, rows).astype(np.int64)


def iteration_rows(trace: Trace) -> Ints:
    """Index into trace.iterations for every span, -1 for those of none."""
    base = np.zeros(len(trace.processes), np.int64)
    for i, iteration in enumerate(trace.iterations):
        if iteration.number == 0:
            base[iteration.process] = i
    number = trace.spans.iteration
    return np.where(number < 0, -1, base[trace.threads.process[trace.spans.thread]] + number)


def in_lane(slots: Sequence[Slot], lane: Lane) -> list[int]:
    """Codes of the slots of a lane."""
    return [i for i, s in enumerate(slots) if s.lane == lane]


def overlap(intervals: Intervals, slots: Sequence[Slot], rows: int) -> list[float | None]:
    """Time with an inter and an intra span open ÷ time with either, a row; None without inter spans."""
    inter, intra = in_lane(slots, "inter"), in_lane(slots, "intra")
    a, b, either = (covered(intervals, rows, chosen) for chosen in (inter, intra, inter + intra))
    has = np.zeros(rows, bool)
    has[intervals.row[np.isin(intervals.slot, inter)]] = True
    return [
        (float(x + y - z) / float(z) if z else 0.0) if known else None
        for known, x, y, z in zip(has.tolist(), a.tolist(), b.tolist(), either.tolist(), strict=True)
    ]


def in_barriers(intervals: Intervals, slots: Sequence[Slot], rows: int) -> list[int | None]:
    """Time in barriers, a row: the last fragment of dispatch_sync and all of the others; None without barrier slots."""
    waits = [i for i, s in enumerate(slots) if s.canonical in BARRIERS]
    gate = [i for i in waits if slots[i].sync]
    at = np.isin(intervals.slot, waits)
    last = np.ones(at.size, bool)
    last[:-1] = firsts(intervals.row * len(slots) + intervals.slot)[1:]
    at &= last | ~np.isin(intervals.slot, gate)
    row, spent = intervals.row[at], (intervals.end_ns - intervals.start_ns)[at]
    has = np.bincount(row, minlength=rows) > 0
    total = np.bincount(row, spent, rows).astype(np.int64)
    return [value if known else None for known, value in zip(has.tolist(), total.tolist(), strict=True)]


def timeline(trace: Trace, process: int, number: int) -> Timeline:
    """The Gantt of one iteration. Raises KeyError if there is none of that number."""
    iteration = find_iteration(trace, process, number)
    spans, every = trace.spans, trace.intervals
    inside = np.flatnonzero((spans.iteration == number) & (trace.threads.process[spans.thread] == process))
    slot, thread, idle = spans.slot[inside], spans.thread[inside], spans.idle[inside]
    index = trace.iterations.index(iteration)
    a, b = np.searchsorted(every.row, [index, index + 1]).tolist()
    intervals = Intervals(every.row[a:b], every.slot[a:b], every.start_ns[a:b], every.end_ns[a:b])
    bars = []
    for code in distinct(slot).tolist():
        mine = intervals.slot == code
        parts = np.stack([intervals.start_ns[mine], intervals.end_ns[mine]], axis=1)
        shown = parts[-1:] if trace.slots[code].sync else parts
        logged = distinct(thread[slot == code]).size
        passing = logged - distinct(thread[(slot == code) & ~idle]).size
        edges = int(shown[0, 0]), int(shown[-1, 1]), int(parts[0, 0])
        bars.append(Bar(code, 0, *edges, parts, logged, passing))
    bars.sort(key=lambda bar: (bar.start_ns, -bar.end_ns))
    placed: list[Bar] = []
    depth: dict[Lane, int] = {}
    for lane in LANES:
        inside_lane = [bar for bar in bars if trace.slots[bar.slot].lane == lane]
        starts, ends = ([getattr(bar, key) for bar in inside_lane] for key in ("start_ns", "end_ns"))
        places = rows(np.array(starts, np.int64), np.array(ends, np.int64)).tolist()
        placed += [replace(bar, row=place) for bar, place in zip(inside_lane, places, strict=True)]
        if places:
            depth[lane] = max(places) + 1
    placed.sort(key=lambda bar: (bar.start_ns, -bar.end_ns))
    return Timeline(iteration, tuple(placed), _concurrent(intervals, trace.slots), depth)


def warps(trace: Trace, process: int, number: int, slots: Sequence[int]) -> Warps:
    """The threads that log any of `slots` in an iteration, and their spans of these slots."""
    spans = trace.spans
    wanted = np.zeros(len(trace.slots), bool)
    wanted[list(slots)] = True
    inside = (spans.iteration == number) & wanted[spans.slot]
    inside &= trace.threads.process[spans.thread] == process
    at = np.flatnonzero(inside)
    threads, row = np.unique(spans.thread[at], return_inverse=True)
    last = np.full(threads.size, np.iinfo(np.int64).min)
    np.maximum.at(last, row, spans.end_ns[at])
    latest = np.argsort(-last, kind="stable")
    place = np.empty_like(latest)
    place[latest] = np.arange(latest.size)
    order, _ = stable_order(place[row])
    bounds = np.append(0, np.bincount(place[row], minlength=threads.size).cumsum())
    return Warps(threads[latest], bounds, at[order])


def find_iteration(trace: Trace, process: int, number: int) -> Iteration:
    """The iteration of that number in that process; KeyError if there is none."""
    for iteration in trace.iterations:
        if (iteration.process, iteration.number) == (process, number):
            return iteration
    raise KeyError((process, number))


def _concurrent(intervals: Intervals, slots: Sequence[Slot]) -> Ints:
    regions = []
    for phase in ("dispatch", "combine", ""):
        found = []
        for lane in ("inter", "intra"):
            codes = [i for i in in_lane(slots, lane) if slots[i].phase == phase]
            at = np.isin(intervals.slot, codes)
            order = np.argsort(intervals.start_ns[at], kind="stable")
            zero = np.zeros(order.size, np.int64)
            found.append(unions(zero, intervals.start_ns[at][order], intervals.end_ns[at][order])[1:])
        common = intersection(*found)
        if common.size:
            regions.append((int(common[0, 0]), int(common[-1, 1])))
    return np.array(regions, np.int64).reshape(-1, 2)


def intersection(a: tuple[Ints, Ints], b: tuple[Ints, Ints]) -> Ints:
    """Where both unions (starts, ends; sorted, disjoint) are open: (n, 2), none of them empty."""
    edges = np.sort(np.concatenate([*a, *b]))
    edges = edges[firsts(edges)]
    if edges.size < 2:
        return np.zeros((0, 2), np.int64)
    left = edges[:-1]
    both = np.ones(left.size, bool)
    for start, end in (a, b):
        place = np.searchsorted(start, left, side="right") - 1
        both &= (place >= 0) & (left < end[np.maximum(place, 0)]) if start.size else False
    return np.stack([left[both], edges[1:][both]], axis=1)


def rows(start_ns: Ints, end_ns: Ints) -> NDArray[np.int32]:
    """The lowest row for every span in which it overlaps nothing that was placed before: an earlier start goes first,
    then a span without length (it stands at an edge), then the longer one. Spans that touch share a row.
    """
    result = np.zeros(start_ns.size, np.int32)
    order = np.lexsort((start_ns - end_ns, end_ns > start_ns, start_ns))
    begin, end = start_ns[order], end_ns[order]
    if not order.size or (begin[1:] >= np.maximum.accumulate(end)[:-1]).all():
        return result
    taken: list[int] = []
    for i, s, e in zip(order.tolist(), begin.tolist(), end.tolist(), strict=True):
        row = next((r for r, until in enumerate(taken) if until <= s), len(taken))
        if row == len(taken):
            taken.append(e)
        else:
            taken[row] = e
        result[i] = row
    return result
