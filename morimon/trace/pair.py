"""Events to spans: every begin gets its end, a stack a thread.

An end closes the newest open begin of its name, an end without a name the newest open one of its thread. Events of a
thread are taken in order of time, ties in file order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from morimon.trace.events import BEGIN, COMPLETE, END
from morimon.trace.group import distinct, firsts, stable_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from morimon.trace.events import Columns

    Index = NDArray[np.int64]


class Paired:
    """Spans in order of start (ties: file order of their begins), and what found no partner.

    start_ns, end_ns, name, thread: columns. open: indices of begins without end; orphans: of ends without begin;
    unsorted: number of threads whose events were not in order of time.
    """

    def __init__(
        self, events: Columns, first: Index, last: Index, open_: Index, orphans: Index, unsorted: int
    ) -> None:
        order = (
            np.argsort(events.ts_ns[first], kind="stable")
            if (np.diff(events.ts_ns[first]) < 0).any()
            else slice(None)
        )
        first, last = first[order], last[order]
        self.start_ns = events.ts_ns[first]
        self.end_ns = events.ts_ns[last]
        if events.duration_ns is not None:
            self.end_ns = self.end_ns + events.duration_ns[last]
        self.name, self.thread = events.name[first], events.thread[first]
        self.open, self.orphans, self.unsorted = open_, orphans, unsorted


def pair(events: Columns, nameless: int | None = None) -> Paired:
    """Match begins and ends. nameless: the code of the name "", if the file has it."""
    whole = np.flatnonzero(events.kind == COMPLETE)
    ends = np.flatnonzero(events.kind != COMPLETE) if whole.size else np.arange(len(events))
    ends, unsorted = _in_time(events, ends)
    by_hand = np.zeros(0, np.int64)
    if nameless is not None:
        odd = distinct(events.thread[(events.name == nameless) & (events.kind == END)])
        if odd.size:
            mask = np.isin(events.thread[ends], odd)
            by_hand, ends = ends[mask], ends[~mask]
    first, last, open_, orphans = _by_name(events, ends)
    if by_hand.size:
        a, b, c, d = _by_stack(events, by_hand, nameless)
        first, last, open_ = np.concatenate([first, a]), np.concatenate([last, b]), np.concatenate([open_, c])
        orphans = np.concatenate([orphans, d])
    first, last = np.concatenate([first, whole]), np.concatenate([last, whole])
    order = np.argsort(first, kind="stable")
    return Paired(events, first[order], last[order], np.sort(open_), orphans, unsorted)


def _in_time(events: Columns, at: Index) -> tuple[Index, int]:
    """`at` sorted so that every thread is in order of time, and the number of threads that were not."""
    ts_ns = events.ts_ns[at]
    if not (np.diff(ts_ns) < 0).any():
        return at, 0
    thread = events.thread[at]
    by_thread = np.argsort(thread, kind="stable")
    back = (np.diff(ts_ns[by_thread]) < 0) & (np.diff(thread[by_thread]) == 0)
    unsorted = distinct(thread[by_thread][1:][back]).size
    return (at[np.argsort(ts_ns, kind="stable")] if unsorted else at), unsorted


def _by_name(events: Columns, at: Index) -> tuple[Index, Index, Index, Index]:
    names = int(events.name.max(initial=0)) + 1
    order, key = stable_order(events.thread[at].astype(np.int64) * names + events.name[at])
    at = at[order]
    begin = events.kind[at] == BEGIN
    if at.size % 2 == 0 and begin[::2].all() and not begin[1::2].any() and (key[::2] == key[1::2]).all():
        return at[::2], at[1::2], at[:0], at[:0]  # nothing nested in its own name, nothing lost
    change = firsts(key)
    group, start = np.cumsum(change) - 1, np.flatnonzero(change)
    step = np.where(begin, 1, -1)
    depth = step.cumsum()
    depth -= (depth[start] - step[start])[group]  # balance within the group
    gap = at.size + 2
    low = (
        np.minimum.accumulate(np.minimum(depth, 0) - group * gap) + group * gap
    )  # an end below zero has no begin
    before = np.concatenate([[0], low[:-1]])
    before[change] = 0
    orphan = ~begin & (low < before)
    level = depth - low + ~begin  # same for a begin and its end
    rest = np.flatnonzero(~orphan)
    if level[rest].max(initial=1) > 1:
        rest = rest[np.lexsort((rest, level[rest], key[rest]))]
    is_begin, its_key, its_level = begin[rest], key[rest], level[rest]
    hit = is_begin[:-1] & ~is_begin[1:] & (its_key[:-1] == its_key[1:]) & (its_level[:-1] == its_level[1:])
    matched = np.flatnonzero(hit)
    alone = is_begin.copy()
    alone[matched] = False
    return at[rest[matched]], at[rest[matched + 1]], at[rest[alone]], at[orphan]


def _by_stack(events: Columns, at: Index, nameless: int | None) -> tuple[Index, Index, Index, Index]:
    stacks: dict[int, list[tuple[int, int]]] = {}
    first, last, orphans = [], [], []
    rows = zip(
        at.tolist(),
        events.thread[at].tolist(),
        events.name[at].tolist(),
        events.kind[at].tolist(),
        strict=True,
    )
    for i, thread, name, kind in rows:
        stack = stacks.setdefault(thread, [])
        if kind == BEGIN:
            stack.append((i, name))
            continue
        place = next((k for k in range(len(stack) - 1, -1, -1) if name in (nameless, stack[k][1])), None)
        if place is None:
            orphans.append(i)
        else:
            first.append(stack.pop(place)[0])
            last.append(i)
    open_ = [i for stack in stacks.values() for i, _ in stack]
    return (
        np.array(first, np.int64),
        np.array(last, np.int64),
        np.array(open_, np.int64),
        np.array(orphans, np.int64),
    )
