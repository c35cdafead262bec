"""Which iterations of two ranks are the same: the pairing under which the ends of a common barrier agree best.

Files of one job begin with the same launch, unless a file lost its first ones; where a ring wrapped they end with the
same. Where numbers of iterations differ all pairings that overlap well are tried.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TICK_NS = 10
RIVAL, CLEARLY = 2, 4
"""A pairing that disagrees less than twice as much as the best may be the right one; four times as much, it is not."""
AGREE_NS = 1000
"""Barrier ends that agree to a message's latency need no other pairing."""
BEYOND = 2
ENOUGH = 3


class Fit:
    """A pairing: b's iteration i + shift is a's i. shift_ns: to be added to b's times; largest_ns: how much a pair
    disagrees with it at most; rivals: shifts that fit about as well.
    """

    def __init__(self, shift: int, differences_ns: Sequence[int]) -> None:
        self.shift, self.pairs = shift, len(differences_ns)
        self.shift_ns = round(median(differences_ns))
        self.largest_ns = max(abs(d - self.shift_ns) for d in differences_ns)
        self.rivals: list[int] = []

    @property
    def spread_ns(self) -> int | None:
        """The largest disagreement; None where one pair alone cannot tell."""
        return self.largest_ns if self.pairs > 1 else None


def fit(
    a: Mapping[int, int],
    b: Mapping[int, int],
    counts: tuple[int, int],
    *,
    from_the_end: bool,
    expected_ns: int | None = None,
) -> Fit | None:
    """The best pairing; None where none can be told.

    a, b: number of an iteration -> end of the barrier in it (whole iterations only). counts: iterations of each file.
    from_the_end: a ring wrapped. expected_ns: what clocks say is to be added to b's times; then they alone decide.
    """
    more = counts[1] - counts[0]
    usual = more if from_the_end else 0
    shifts = range(min(0, more) - BEYOND, max(0, more) + BEYOND + 1)
    common = {shift: [end - b[i + shift] for i, end in a.items() if i + shift in b] for shift in shifts}
    fits = {shift: Fit(shift, differences) for shift, differences in common.items() if differences}
    if not fits:
        return None
    if expected_ns is not None:
        return min(fits.values(), key=lambda one: abs(one.shift_ns - expected_ns))
    most = max(one.pairs for one in fits.values())
    told = [one for one in fits.values() if one.pairs > 1 and 2 * one.pairs >= most]
    default = fits.get(usual) if from_the_end or not more else None
    if default is None:
        if not told:
            return None if len(fits) > 1 else next(iter(fits.values()))
        best = min(told, key=lambda one: (one.largest_ns, abs(one.shift)))
        best.rivals = [
            one.shift
            for one in told
            if one is not best and one.largest_ns <= RIVAL * best.largest_ns + 2 * TICK_NS
        ]
        return best
    if default.pairs < ENOUGH or default.largest_ns <= AGREE_NS:
        return default
    clearer = [one for one in told if one.pairs >= ENOUGH and CLEARLY * one.largest_ns < default.largest_ns]
    return min(clearer, key=lambda one: one.largest_ns, default=default)
