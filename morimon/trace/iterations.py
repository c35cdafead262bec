"""Where iterations begin: told by the order of kernels in every warp, never by gaps.

A warp meets the slots of its family in a fixed order, so that its order falls only from one iteration to the next. Each
fall says: a boundary lies between the end of the span before and the start of the one after. Kernels of a stream do not
overlap, so one boundary serves all warps, and the fewest times that meet every such interval are the boundaries. Hence
a launch whose grid runs in waves stays one iteration, and a warp that lost events misleads nobody.
Slots of no known family have no known order; there the slot that comes once an iteration is found by counting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from morimon.trace.group import firsts, stable_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from morimon.trace.model import Slot

    Ints = NDArray[np.int64]

STEP = "ProfilerStep#"
SAMPLE = 256


def number(
    start: Ints, end: Ints, slot: NDArray[np.int32], thread: NDArray[np.int32], slots: Sequence[Slot]
) -> Ints:
    """Number of the iteration of every span of one process, from 0. Spans come in order of start."""
    steps = [i for i, s in enumerate(slots) if s.name.startswith(STEP) and s.name[len(STEP) :].isdigit()]
    if steps and (marks := np.isin(slot, steps)).any():
        return np.maximum(np.searchsorted(start[marks], start, side="right") - 1, 0)
    order = np.array([s.order for s in slots], np.int64)[slot]
    if (order >= 0).any():
        known = np.flatnonzero(order >= 0)
        by_warp, warp = stable_order(thread[known])
        by_warp = known[by_warp]
        inside = ~firsts(warp)[1:]
        step = np.diff(order[by_warp])
        at = np.flatnonzero(inside & (step < 0)) + 1
        if (
            not at.size
        ):  # a single kernel, again and again: the same slot in the same warp is the next iteration
            same = inside & (np.diff(slot[by_warp]) == 0)
            at = np.flatnonzero(same & _single_slot(warp, slot[by_warp])[1:]) + 1
        boundaries = _boundaries(end[by_warp[at - 1]], start[by_warp[at]])
    else:
        boundaries = _by_repetition(start, end, slot, thread)
    first = np.searchsorted(start, boundaries).tolist()
    sizes = np.diff([0, *first, start.size])
    return np.repeat(np.arange(sizes.size), sizes)


def _single_slot(warp: Ints, slot: NDArray[np.int32]) -> NDArray[np.bool_]:
    """For every span whether its warp (in order) logs one slot alone."""
    new = firsts(warp)
    first = np.flatnonzero(new)
    same = slot == slot[first][np.cumsum(new) - 1]
    result: NDArray[np.bool_] = np.logical_and.reduceat(same, first)[np.cumsum(new) - 1]
    return result


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


def _by_repetition(start: Ints, end: Ints, slot: NDArray[np.int32], thread: NDArray[np.int32]) -> Ints:
    """Boundaries from counts: most (thread, slot) pairs occur once an iteration, which tells how many there are."""
    slots = int(slot.max(initial=0)) + 1
    pair, calls = np.unique(thread.astype(np.int64) * slots + slot, return_counts=True)
    repeated = calls[calls > 1]
    if not repeated.size:
        return np.zeros(0, np.int64)
    times, votes = np.unique(repeated, return_counts=True)
    iterations = int(times[votes.argmax()])
    if 2 * votes.max() < repeated.size:
        return np.zeros(0, np.int64)
    once = pair[calls == iterations]
    threads, variety = np.unique(once // slots, return_counts=True)
    left, right = [], []
    for one in threads[np.argsort(-variety, kind="stable")[:SAMPLE]].tolist():
        at = np.flatnonzero(thread == one)
        opener = at[slot[at] == slot[at[0]]]
        anchors = (
            at if opener.size == iterations else at[np.isin(slot[at], once[once // slots == one] % slots)]
        )
        anchors = anchors[slot[anchors] == slot[anchors[0]]]
        after = np.searchsorted(opener, anchors[1:] if opener.size == iterations else anchors[:-1] + 1)
        for begin in opener[after[after < opener.size]].tolist():
            before = at[np.searchsorted(at, begin) - 1]
            left.append(int(end[before]))
            right.append(int(start[begin]))
    return _boundaries(np.array(left, np.int64), np.array(right, np.int64))
