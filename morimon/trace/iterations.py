"""Which iteration a span belongs to: told by the order of kernels in every warp, never by gaps.

A warp meets the slots of its family in a fixed order, so that its order falls only from one pass to the next. Where
every warp made as many passes, and none was cut, the n-th passes of all warps are the n-th iteration, however launches
overlap; the passes of a few warps that lost some go with those of the others that they fit. Where most warps lost
passes (a wrapped ring, a cut file), a fall still says: a boundary lies between the end of the
span before and the start of the one after. Launches that such a file holds are taken not to overlap, so that one
boundary serves all warps, and the fewest times that meet every such interval are the boundaries. Either way a launch
whose grid runs in waves stays one iteration.

Slots of no known family have no known order. There the slots that come once an iteration are found by counting, on the
threads of the device where the file tells them from those of the host; what the host does at that time, and what covers
several iterations, belongs to none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from morimon.trace.group import distinct, firsts, stable_order, unions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from morimon.trace.model import Slot

    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]

STEP = "ProfilerStep#"
NONE = -1


class Lines:
    """The spans of one process, columns in order of start; pid, name: of every thread of the file."""

    def __init__(
        self,
        start: Ints,
        end: Ints,
        slot: NDArray[np.int32],
        thread: NDArray[np.int32],
        slots: Sequence[Slot],
        pid: NDArray[np.int32],
        name: Sequence[str],
    ) -> None:
        self.start, self.end, self.slot, self.thread = start, end, slot, thread
        self.slots, self.pid, self.name = slots, pid, name


def number(spans: Lines) -> Ints:
    """Number of the iteration of every span, from 0; NONE for spans that belong to none."""
    steps = {
        int(s.name.removeprefix(STEP)): code
        for code, s in enumerate(spans.slots)
        if s.name.startswith(STEP) and s.name.removeprefix(STEP).isdecimal()
    }
    marks = np.isin(spans.slot, list(steps.values())) if steps else np.zeros(0, bool)
    if marks.any():
        return _by_steps(spans, [steps[step] for step in sorted(steps)], marks)
    order = np.array([s.order for s in spans.slots], np.int64)[spans.slot]
    return _by_order(spans, order) if (order >= 0).any() else _by_repetition(spans)


def _by_order(spans: Lines, order: Ints) -> Ints:
    known = np.flatnonzero(order >= 0)
    by_warp, warp = stable_order(spans.thread[known])
    by_warp = known[by_warp]
    new = firsts(warp)
    inside = ~new[1:]
    its_order = order[by_warp]
    fall = np.append(False, inside & (np.diff(its_order) < 0))
    if (
        not fall.any()
    ):  # a kernel alone, again and again: the same slot in the same warp is the next iteration
        same = inside & (np.diff(spans.slot[by_warp]) == 0)
        fall = np.append(False, same & _single_slot(warp, spans.slot[by_warp])[1:])
    first = np.flatnonzero(new)
    passes = np.cumsum(fall)
    passes -= np.repeat(passes[first], np.diff(np.append(first, warp.size)))
    if _all_made_the_same(first, its_order, passes):
        numbers: Ints | None = passes
    else:
        numbers = _carried(first, its_order, passes, spans.slot[by_warp], spans.start[by_warp])
    if numbers is None:
        at = np.flatnonzero(fall)
        result = np.searchsorted(
            _boundaries(spans.end[by_warp[at - 1]], spans.start[by_warp[at]]), spans.start, side="right"
        )
    else:
        result = np.full(spans.start.size, NONE)
        result[by_warp] = numbers
        constant = np.repeat(_constant(first, its_order, passes), np.diff(np.append(first, warp.size)))
        result[by_warp[constant]] = NONE
        if constant.any() or known.size < order.size:
            result = _filled(spans, result)
    if known.size < order.size:
        result[_covering(spans, result, order < 0)] = NONE
    return result


def _single_slot(warp: Ints, slot: NDArray[np.int32]) -> Mask:
    """For every span whether its warp (in order) logs one slot alone."""
    new = firsts(warp)
    first = np.flatnonzero(new)
    same = slot == slot[first][np.cumsum(new) - 1]
    result: Mask = np.logical_and.reduceat(same, first)[np.cumsum(new) - 1]
    return result


def _constant(first: Ints, order: Ints, passes: Ints) -> Mask:
    """Warps in which nothing tells one pass from the next: one kernel alone, which may come per token."""
    last = np.append(first[1:], order.size) - 1
    same: Mask = np.minimum.reduceat(order, first) == np.maximum.reduceat(order, first)
    result: Mask = same & (passes[last] == 0)
    return result


def _all_made_the_same(first: Ints, order: Ints, passes: Ints) -> bool:
    """Whether every warp made as many passes as the others, beginning the first and ending the last as its other ones.

    first: where each warp's spans begin. A warp that lost passes at one end may have gained as many at the other.
    """
    last = np.append(first[1:], order.size) - 1
    least, most = np.minimum.reduceat(order, first), np.maximum.reduceat(order, first)
    counts = passes[last]
    told = ~_constant(first, order, passes)
    if not told.any():
        return True
    uncut = (order[first] == least) & (order[last] == most)
    return bool((counts[told] == counts[told][0]).all() and (uncut[told].all() or counts[told][0] == 0))


def _carried(first: Ints, order: Ints, passes: Ints, slot: NDArray[np.int32], start: Ints) -> Ints | None:
    """The number of every span's pass where most warps lost none: of the others' passes each goes with the iteration in
    which the slot that it begins with comes at about that time. None where a pass fits none, or two fit one.
    """
    size = np.diff(np.append(first, order.size))
    last = first + size - 1
    told = ~_constant(first, order, passes)
    uncut = (order[first] == np.minimum.reduceat(order, first)) & (
        order[last] == np.maximum.reduceat(order, first)
    )
    iterations = int(np.bincount(passes[last][told & uncut] + 1).argmax()) if (told & uncut).any() else 0
    measure = told & uncut & (passes[last] + 1 == iterations)
    if iterations < 2 or 2 * int(measure.sum()) <= int(told.sum()):
        return None
    warp = np.repeat(np.arange(first.size), size)
    usual = _usual_starts(np.flatnonzero(measure[warp]), warp, passes, slot, start)
    strays = np.flatnonzero((~measure & told)[warp])
    same_pass = (np.diff(passes[strays]) == 0) & (np.diff(warp[strays]) == 0)
    begins = strays[np.append(True, ~same_pass)]
    fits = np.full(begins.size, NONE)
    for code in distinct(slot[begins]).tolist():
        at = np.flatnonzero(slot[begins] == code)
        if np.isnan(usual[code]).any():
            return None
        middle = (usual[code][1:] + usual[code][:-1]) / 2
        half = float(np.diff(usual[code]).min()) / 2
        fits[at] = np.searchsorted(middle, start[begins[at]])
        if (np.abs(usual[code][fits[at]] - start[begins[at]]) > half).any():
            return None
    if ((np.diff(fits) <= 0) & (np.diff(warp[begins]) == 0)).any():
        return None
    result: Ints = passes.copy()
    lengths = np.diff(np.append(np.searchsorted(strays, begins), strays.size))
    result[strays] = np.repeat(fits, lengths)
    return result


def _usual_starts(
    mine: Ints, warp: Ints, passes: Ints, slot: NDArray[np.int32], start: Ints
) -> NDArray[np.float64]:
    """When a slot is reached in an iteration (slots, iterations), by the spans `mine`; NaN where it is not."""
    slots, iterations = int(slot.max()) + 1, int(passes[mine].max()) + 1
    by_key, key = stable_order((warp[mine] * iterations + passes[mine]) * slots + slot[mine])
    opening = mine[by_key[firsts(key)]]
    place = slot[opening] * iterations + passes[opening]
    count = np.bincount(place, minlength=slots * iterations)
    total = np.bincount(place, start[opening], slots * iterations)
    mean: NDArray[np.float64] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return mean.reshape(slots, iterations)


def _filled(spans: Lines, result: Ints) -> Ints:
    """Give spans without number that of the span before in their thread, and threads without any one by time."""
    order, thread = stable_order(spans.thread)
    first = np.flatnonzero(firsts(thread))
    size = np.diff(np.append(first, thread.size))
    mine = result[order]
    place = np.where(mine >= 0, np.arange(mine.size), -1)
    before = np.maximum.accumulate(place)
    before = np.where(before >= np.repeat(first, size), before, -1)
    has = np.repeat(np.maximum.reduceat(mine, first), size) >= 0
    filled = np.where(before >= 0, mine[before], np.where(has, 0, NONE))
    numbers = np.empty_like(result)
    numbers[order] = filled
    lost = np.flatnonzero(numbers < 0)
    if lost.size:
        begins = _begins(spans, numbers)
        numbers[lost] = np.maximum(np.searchsorted(begins, spans.start[lost], side="right") - 1, 0)
    return numbers


def _begins(spans: Lines, numbers: Ints) -> Ints:
    """First start of every iteration."""
    begins = np.full(int(numbers.max(initial=0)) + 1, np.iinfo(np.int64).max)
    has = numbers >= 0
    np.minimum.at(begins, numbers[has], spans.start[has])
    return np.minimum.accumulate(begins[::-1])[::-1]


def _covering(spans: Lines, numbers: Ints, suspects: Mask) -> Mask:
    """Which of the suspects cover an iteration other than the one in which they begin, or theirs and what is next."""
    begins = _begins(spans, np.where(suspects & (numbers >= 0), NONE, numbers))
    if not (~suspects & (numbers >= 0)).any():
        begins = _begins(spans, numbers)
    until = np.searchsorted(begins, spans.end, side="left") - 1
    crossing = suspects & (numbers >= 0) & (until > numbers)
    if not crossing.any():
        return crossing
    rest = ~crossing & (numbers >= 0)
    ends = np.full(begins.size, np.iinfo(np.int64).max)
    present = distinct(numbers[rest]) if rest.any() else np.zeros(0, np.int64)
    latest = np.full(begins.size, np.iinfo(np.int64).min)
    np.maximum.at(latest, numbers[rest], spans.end[rest])
    ends[present] = latest[present]
    earliest = np.full(begins.size, np.iinfo(np.int64).min)
    soonest = np.full(begins.size, np.iinfo(np.int64).max)
    np.minimum.at(soonest, numbers[rest], spans.start[rest])
    earliest[present] = soonest[present]
    at = np.maximum(numbers, 0)
    both = (spans.start <= earliest[at]) & (spans.end >= ends[until])
    return crossing & ((until - numbers > 1) | both)


def _boundaries(left: Ints, right: Ints) -> Ints:
    """The fewest times of which each interval [left, right] holds one; each as early as all its intervals allow, and
    then half way back to the last end before it, so that clocks a tick apart do no harm.
    """
    left = np.minimum(left, right)
    order = np.argsort(right, kind="stable")
    left, right = left[order], right[order]
    found = []
    at = 0
    while at < right.size:
        edge = right[at]
        stop, width = at + 1, 64
        while stop < right.size:
            outside = np.flatnonzero(left[stop : stop + width] > edge)
            if outside.size:
                stop += int(outside[0])
                break
            stop = min(stop + width, right.size)
            width *= 2
        found.append((int(left[at:stop].max()) + int(edge) + 1) // 2)
        at = stop
    return np.array(found, np.int64)


def _on_device(spans: Lines) -> Mask:
    """Spans of the device's threads: those that are called streams; else those of the pid whose threads that repeat
    themselves are busy longest; all where there is one pid.
    """
    everything = np.ones(spans.start.size, bool)
    pid = spans.pid[spans.thread]
    if (pid == pid[0]).all():
        return everything
    streams = np.array([name.startswith("stream ") for name in spans.name])[spans.thread]
    if streams.any():
        return streams
    again = _times(spans, everything) > 1
    if not again.any():
        return everything
    thread, start, end = unions(spans.thread[again].astype(np.int64), spans.start[again], spans.end[again])
    busy = np.bincount(spans.pid[thread], end - start)
    busiest: Mask = pid == int(busy.argmax())
    return busiest


def _by_steps(spans: Lines, codes: Sequence[int], marks: Mask) -> Ints:
    """Iterations are the profiler's own steps: those marked on the device for what runs there, if any are."""
    step_of = np.full(len(spans.slots), NONE)
    step_of[codes] = np.arange(len(codes))
    device = _on_device(spans)
    result = np.full(spans.start.size, NONE)
    for mine in (device, ~device):
        at = np.flatnonzero(marks & mine)
        if not at.size:
            if mine is not device:  # what the host does is told by its own marks alone
                continue
            at = np.flatnonzero(marks)
        place = np.searchsorted(spans.start[at], spans.start[mine], side="right") - 1
        result[mine] = step_of[spans.slot[at]][np.maximum(place, 0)]
    result[_covering(spans, result, ~marks)] = NONE
    return result


def _times(spans: Lines, chosen: Mask) -> Ints:
    """For every chosen span how often its slot comes in its thread; 0 for the others."""
    pairs = spans.thread.astype(np.int64) * len(spans.slots) + spans.slot
    _, place, calls = np.unique(pairs[chosen], return_inverse=True, return_counts=True)
    result = np.zeros(pairs.size, np.int64)
    result[chosen] = calls[place]
    return result


def _by_repetition(spans: Lines) -> Ints:
    """Iterations from counts: most (thread, slot) pairs occur once an iteration, which tells how many there are."""
    device = _on_device(spans)
    one = np.zeros(spans.start.size, np.int64)
    times = _times(spans, device)
    again = np.flatnonzero(times > 1)
    if not again.size:
        return one
    votes = np.bincount(times[again])  # of spans
    votes //= np.maximum(np.arange(votes.size), 1)  # of pairs
    iterations = int(votes.argmax())
    if 2 * int(votes[iterations]) < votes.sum():
        return one
    by_thread, thread = stable_order(spans.thread[again])
    by_thread = again[by_thread]
    first = np.flatnonzero(firsts(thread)).tolist()
    edges_of = list(zip(first, [*first[1:], thread.size], strict=True))
    begins: list[Ints] = []
    agree = True
    for a, b in edges_of:
        slot = spans.slot[by_thread[a:b]]
        found = _openings(slot, times[by_thread[a:b]] == iterations)
        agree &= found.size in (0, iterations - 1)
        begins.append(a + found)
    at = np.concatenate(begins)
    if not at.size:
        return one
    if not agree:
        edges = _boundaries(spans.end[by_thread[at - 1]], spans.start[by_thread[at]])
        result = np.searchsorted(edges, spans.start, side="right")
    else:
        opens = np.zeros(thread.size, np.int64)
        opens[at] = 1
        passes = np.cumsum(opens)
        result = np.full(spans.start.size, NONE)
        for (a, b), found in zip(edges_of, begins, strict=True):
            if found.size:
                result[by_thread[a:b]] = passes[a:b] - passes[a]
        result = _filled(spans, result)
    result[_covering(spans, result, np.ones(result.size, bool))] = NONE
    result[~device] = NONE
    return result


def _openings(slot: NDArray[np.int32], once: Mask) -> Ints:
    """Where a thread's passes after the first begin. once: which of its spans are of slots that come once in each.

    A pass begins with the slot with which the thread begins, which may be a loop of varying length.
    """
    if not once.any():
        return np.zeros(0, np.int64)
    opener = np.flatnonzero(slot == slot[0])
    if once[0]:
        return opener[1:]
    anchors = np.flatnonzero(once)
    anchors = anchors[slot[anchors] == slot[anchors[0]]]
    after = np.searchsorted(opener, anchors[:-1] + 1)
    result: Ints = opener[after[after < opener.size]]
    return result
