"""Grouped columns: stable order by a key, figures of every group, union of intervals within groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

DIGIT = 0xFFFF


def stable_order(key: NDArray[Any]) -> tuple[Ints, NDArray[Any]]:
    """Order that sorts `key` (integers, not negative), ties as they stand, and the sorted key.

    numpy sorts 16-bit integers by radix, several times as fast as wider ones; so a wide key is sorted digit by digit.
    """
    top = int(key.max(initial=0))
    if top >= 1 << 48:
        order = np.argsort(key, kind="stable")
        return order, key[order]
    order = np.argsort((key & DIGIT).astype(np.uint16), kind="stable")
    shift = 16
    while top >> shift:
        digit = (key[order] >> shift & DIGIT).astype(np.uint16)
        order = order[np.argsort(digit, kind="stable")]
        shift += 16
    return order, key[order]


def distinct(key: NDArray[Any]) -> Ints:
    """The values that occur in `key` (integers, not negative), in order. (np.unique loads numpy.ma, which costs more.)"""
    if int(key.max(initial=0)) < 4 * key.size + 1024:
        return np.flatnonzero(np.bincount(key))
    key = np.sort(key)
    return key[firsts(key)]


def firsts(key: NDArray[Any]) -> NDArray[np.bool_]:
    """True where a new value begins in a sorted key."""
    new = np.ones(key.size, bool)
    np.not_equal(key[1:], key[:-1], out=new[1:])
    return new


def unions(key: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """Union of the intervals of every key -> (key, start, end), in order of key and start; touching ones are merged.

    The intervals of a key must come in order of start.
    """
    if not key.size:
        return key, start, end
    order, key = stable_order(key)
    start, end = start[order], end[order]
    new = firsts(key)
    group = np.cumsum(new) - 1
    base = int(start.min())
    offset = (
        group * (int(end.max()) - base + 1) - base
    )  # lifts every key's intervals above those of the key before
    reached = np.maximum.accumulate(end + offset) - offset
    gap = new
    gap[1:] |= start[1:] > reached[:-1]
    begin = np.flatnonzero(gap)
    return key[begin], start[begin], reached[np.append(begin[1:], key.size) - 1]


class GroupFigures:
    """Figures of the values of every group that has any: `group` and, of equal length, the columns.

    Percentiles by linear interpolation (numpy's default), std of the population; in the values' unit.
    """

    def __init__(self, group: NDArray[Any], values: Ints) -> None:
        """group, values: one entry a span; values are not negative."""
        span = int(values.max(initial=0)) + 1
        if int(group.max(initial=0)).bit_length() + span.bit_length() < 63:
            key = group.astype(np.int64) * span + values
            key.sort()
            group, values = np.divmod(key, span) if key.size else (key, key)
        else:
            order = np.lexsort((values, group))
            group, values = group[order], values[order]
        first = np.flatnonzero(firsts(group))
        self.group = group[first]
        self.calls = np.diff(np.append(first, group.size))
        self._first, self._values = first, values
        empty = np.zeros(0)
        self.total = np.add.reduceat(values, first).astype(np.float64) if first.size else empty
        self.mean = self.total / self.calls
        self.min, self.max = values[first], values[first + self.calls - 1]
        square = (values - np.repeat(self.mean, self.calls)) ** 2
        self.std = np.sqrt(np.add.reduceat(square, first) / self.calls) if first.size else empty

    def percentile(self, q: float) -> NDArray[np.float64]:
        """The q-th percentile (0 to 100) of every group."""
        place = q / 100 * (self.calls - 1)
        low = place.astype(np.int64)
        high = np.minimum(low + 1, self.calls - 1)
        a, b = self._values[self._first + low], self._values[self._first + high]
        result: NDArray[np.float64] = a + (place - low) * (b - a)
        return result


def means(group: Ints, values: Ints) -> tuple[Ints, NDArray[np.float64], Ints]:
    """Groups that have any values, in order, their means, and how many values they have."""
    if int(group.max(initial=0)) >= 4 * group.size + 1024:
        figures = GroupFigures(group, values)
        return figures.group, figures.mean, figures.calls
    calls = np.bincount(group)
    present = np.flatnonzero(calls)
    return present, np.bincount(group, values)[present] / calls[present], calls[present]


def above_the_others(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values lie above the median by 5 median absolute deviations and by 5 %."""
    if values.size < 3:
        return np.zeros(values.size, bool)
    median = np.median(values)
    deviation = np.median(np.abs(values - median))
    result: NDArray[np.bool_] = (values > median + 5 * deviation) & (values > 1.05 * median)
    return result
