"""Who a warp is: of an RDMA block or of an XGMI block, at work in a slot or only passing through.

v1 main kernels put the RDMA blocks first, and of an RDMA block's warps only n-1 (at n nodes) have something to send;
the others pass through in a fraction of the time and would drag every mean down. The trace says neither n nor the
warps of a block: both are read off the pattern of durations over warp numbers, and where there is no such pattern
nobody is called idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from morimon.trace.families import SPARSE
from morimon.trace.group import GroupFigures
from morimon.trace.model import ROLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from morimon.trace.model import Slot

    Ints = NDArray[np.int64]

RDMA, XGMI = ROLES.index("rdma"), ROLES.index("xgmi")
BLOCKS = (2, 4, 8, 16, 32)
CLEAR = 4.0
ONE_BLOCK, BEYOND_DOUBT, PASSING_NS = 16, 10.0, 1000.0
"""Where all warps may be one block, which repeats nothing: those that take a tenth of the others' time and < 1 µs pass."""
AGREE = 0.9


class Roles:
    """role int8 a thread, span_role int8 a span, idle bool a span."""

    def __init__(self, threads: int, spans: int) -> None:
        self.role = np.zeros(threads, np.int8)
        self.span_role = np.zeros(spans, np.int8)
        self.idle = np.zeros(spans, bool)


def assign(
    duration: Ints, slot: NDArray[np.int32], thread: NDArray[np.int32], tid: Ints, slots: Sequence[Slot]
) -> Roles:
    """Roles in one process. duration, slot, thread: a span's; tid: a thread's number in the file (-1: none)."""
    roles = Roles(tid.size, slot.size)
    by_lane = {
        lane: [i for i, s in enumerate(slots) if s.lane == lane and s.order >= 0]
        for lane in ("inter", "intra")
    }
    if any("_node" in slots[i].canonical for i in by_lane["inter"]):  # v1 and v1_ll have both kinds of block
        main = [np.isin(slot, by_lane[lane]) for lane in ("inter", "intra")]
        dispatch = np.array([s.phase == "dispatch" for s in slots])[slot]
        for phase in (
            ~dispatch,
            dispatch,
        ):  # dispatch last: a warp's role in dispatch_sync is that of its dispatch
            for code, spans in zip((RDMA, XGMI), main, strict=True):
                roles.role[thread[spans & phase]] = code
        for code, spans in zip((RDMA, XGMI), main, strict=True):
            roles.span_role[spans] = code
        gate = np.isin(slot, [i for i, s in enumerate(slots) if s.sync])
        roles.span_role[gate] = roles.role[thread[gate]]
    for i, s in enumerate(slots):
        if s.canonical in SPARSE:
            _mark_idle(roles, np.flatnonzero(slot == i), duration, thread, tid)
    return roles


def _mark_idle(roles: Roles, spans: Ints, duration: Ints, thread: NDArray[np.int32], tid: Ints) -> None:
    if not spans.size:
        return
    figures = GroupFigures(thread[spans], duration[spans])
    warps, mean = figures.group, figures.mean + 10.0  # one tick of the exporter's clock: zero has no ratio
    if warps.size < 2 or (tid[warps] < 0).any():
        return
    ranked = np.sort(mean)
    step = ranked[1:] / ranked[:-1]
    cut = int(step.argmax())
    if step[cut] < CLEAR:
        return
    works = mean > ranked[cut]
    number = tid[warps]
    if works.sum() == 1 and number[works][0] == number.min():
        idle = ~works
    else:
        working = _block(number, works)
        if working is not None:
            idle = ~working[number % working.size]
        elif (
            number.max() - number.min() < ONE_BLOCK
            and step[cut] >= BEYOND_DOUBT
            and mean[~works].max() <= PASSING_NS
        ):
            idle = ~works
        else:
            return
    lazy = np.zeros(tid.size, bool)
    lazy[warps[idle]] = True
    roles.idle[spans] = lazy[thread[spans]]


def _block(number: Ints, works: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Which places of a block work, for the smallest block size by which the place tells who does."""
    best, found = AGREE, None
    for size in BLOCKS:
        if int(number.max()) < 2 * size - 1:  # one block shows no repetition
            break
        place = number % size
        share = np.bincount(place, works, size) / np.maximum(np.bincount(place, minlength=size), 1)
        working = share >= 0.5
        agree = float((working[place] == works).mean())
        if agree > best + 0.01 and working.any() and not working.all():
            best, found = agree, working
    return found
