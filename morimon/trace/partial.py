"""What an iteration lacks: a phase, a slot or warps that the others have, passes, or the other half of a span."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from morimon.trace import families
from morimon.trace.group import distinct, stable_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from morimon.trace.model import Family, Slot

    Ints = NDArray[np.int64]

SAID = 3
FEWEST = 3
"""Iterations from which the others tell how often a warp comes to a slot."""


class Halves(NamedTuple):
    """Begins without end, or ends without begin: the slot's name, the thread and the time of each."""

    slot: Sequence[str]
    thread: NDArray[np.int32]
    at_ns: Ints


class Rows:
    """Spans and their iterations: row, slot, thread, start_ns are columns of the spans, in order of start (row -1: of
    none); process, first_ns, last_ns are those of the iterations; family: of every process.
    """

    def __init__(
        self,
        row: Ints,
        slot: NDArray[np.int32],
        thread: NDArray[np.int32],
        start_ns: Ints,
        *,
        process: Ints,
        first_ns: Ints,
        last_ns: Ints,
        slots: Sequence[Slot],
        family: Sequence[Family],
        process_of: NDArray[np.int32],
    ) -> None:
        self.row, self.slot, self.thread, self.start_ns = row, slot, thread, start_ns
        self.process, self.first_ns, self.last_ns = process, first_ns, last_ns
        self.slots, self.family, self.process_of = slots, family, process_of
        self._inside = slice(None) if int(row.min()) >= 0 else np.flatnonzero(row >= 0)
        self._pair = row[self._inside] * len(slots) + slot[self._inside]

    def missing(self, open_: Halves, orphans: Halves) -> list[str]:
        """A phrase for every iteration, "" for those that are whole."""
        result = [""] * self.process.size
        told = self._lacking(), self._fewer(), self._unpaired(open_, True), self._unpaired(orphans, False)
        for part in told:
            for at, text in part:
                result[at] = f"{result[at]}, {text}" if result[at] else text
        return result

    def _lacking(self) -> Iterator[tuple[int, str]]:
        """Phases, slots that the others have, warps in a slot."""
        rows, slots, threads = self.process.size, len(self.slots), self.process_of.size
        pairs = distinct(self._pair * threads + self.thread[self._inside]) // threads
        warps = np.bincount(pairs, minlength=rows * slots).reshape(rows, slots)
        counted = self._counted()
        for p, family in enumerate(self.family):
            mine = np.flatnonzero(self.process == p)
            full = warps[mine].max(axis=0, initial=0)
            common = full * (2 * (warps[mine] > 0).sum(axis=0) > mine.size)
            if family != "unknown":
                common = np.where(counted, full, common)
            lacking = (warps[mine] == 0) & (common > 0) | (warps[mine] < full) & counted
            phases = families.required_phases(family)
            for i, r in enumerate(mine.tolist()):
                has = {s.phase for s, n in zip(self.slots, warps[r].tolist(), strict=True) if n}
                parts = [f"no {phase}" for phase in phases if phase not in has]
                for code in np.flatnonzero(lacking[i]).tolist():
                    n = int(warps[r, code])
                    if n:
                        parts.append(f"{n} of {full[code]} warps in {self.slots[code].name}")
                    elif self.slots[code].phase in has or not self.slots[code].phase:
                        parts.append(f"no {self.slots[code].name}")
                if parts:
                    yield r, _listed(parts)

    def _counted(self) -> NDArray[np.bool_]:
        """Slots to which every warp comes in every iteration; to those of tokens a warp may not."""
        orders = [s.order for s in self.slots]
        return np.array([order >= 0 and orders.count(order) < 3 for order in orders])

    def _fewer(self) -> Iterator[tuple[int, str]]:
        """A process' first or last iteration in which most warps of a slot come there more seldom than ever else."""
        rows, slots, threads = self.process.size, len(self.slots), self.process_of.size
        calls = np.bincount(self._pair, minlength=rows * slots).reshape(rows, slots)
        for p, family in enumerate(self.family):
            mine = np.flatnonzero(self.process == p)
            if family == "unknown" or mine.size < FEWEST:
                continue
            for edge in mine[[0, -1]].tolist():
                others = mine[mine != edge]
                fewer = (calls[edge] > 0) & (calls[edge] < calls[others].min(axis=0))
                names = []
                for code in np.flatnonzero(fewer).tolist():
                    at = np.flatnonzero((self.slot == code) & (self.row >= 0))
                    key = (self.row[at] - mine[0]) * threads + self.thread[at]
                    own = (key >= 0) & (key < mine.size * threads)
                    by_warp = np.bincount(key[own], minlength=mine.size * threads).reshape(mine.size, threads)
                    least = by_warp[others - mine[0]].min(axis=0)
                    short = int((by_warp[edge - mine[0]] < least).sum())
                    if 2 * short > int((least > 0).sum()):
                        names.append(self.slots[code].name)
                if names:
                    yield edge, f"fewer passes than in the others through {_listed(names)}"

    def _unpaired(self, halves: Halves, are_begins: bool) -> Iterator[tuple[int, str]]:
        """Iterations that hold begins without end, or ends without begin, and how many of them.

        A begin goes with the span before it in its thread, an end with the one after, unless the order of kernels says
        that another pass lies between; then with the iteration of that time, if there is one. What unknown slots are
        for, and so what lacks, nobody knows: their iterations stay whole.
        """
        if not halves.thread.size:
            return
        by_thread, sorted_thread = stable_order(self.thread)
        order = np.array([s.order for s in self.slots])[self.slot]
        rows: Counter[int] = Counter()
        halves_of = zip(halves.slot, halves.thread.tolist(), halves.at_ns.tolist(), strict=True)
        for slot, thread, at_ns in halves_of:
            p = int(self.process_of[thread])
            if self.family[p] == "unknown":
                continue
            a, b = np.searchsorted(sorted_thread, [thread, thread + 1]).tolist()
            mine = by_thread[a:b]
            place = int(np.searchsorted(self.start_ns[mine], at_ns, side="right"))
            near = mine[max(place - 1, 0) : place] if are_begins else mine[place : place + 1]
            its_order = families.slot(slot).order
            if near.size:
                step = its_order - int(order[near[0]])
                if min(its_order, int(order[near[0]])) < 0 or (step if are_begins else -step) >= 0:
                    rows[int(self.row[near[0]])] += 1
                    continue
            then = (self.process == p) & (self.first_ns <= at_ns) & (at_ns <= self.last_ns)
            if then.any():
                rows[int(np.flatnonzero(then)[-1])] += 1
        rows.pop(-1, None)
        what = "begun and never ended" if are_begins else "ended and never begun"
        for at, n in sorted(rows.items()):
            yield at, f"{n} span{'s' * (n != 1)} {what}"


def _listed(parts: Sequence[str]) -> str:
    more = len(parts) - SAID
    return ", ".join(parts[:SAID]) + (f" and {more} more" if more > 0 else "")
