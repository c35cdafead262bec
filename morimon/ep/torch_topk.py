"""Which of several equal values torch's CPU topk takes.

torch selects with std::nth_element, or with std::partial_sort where k is at most a 64th of the row
(ATen/native/TopKImpl.h). Neither is stable: which of two equal values survives follows from the exchanges that the
algorithm makes. These are the exchanges of GNU libstdc++, which torch's Linux builds use.
They matter for the few rows alone in which a tie stands at the border; hence plain Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

_Row: TypeAlias = list[tuple[float, int]]  # (value, place), larger values first


def topk(values: Sequence[float], k: int) -> list[int]:
    """Places of the `k` largest values, 1 ≤ k ≤ len(values), in no particular order."""
    row = [(value, place) for place, value in enumerate(values)]
    if k * 64 <= len(row):
        _heap_select(row, 0, k, len(row))
    else:
        _nth_element(row, k - 1)
    return [place for _, place in row[:k]]


def _nth_element(row: _Row, nth: int) -> None:
    first, last = 0, len(row)
    depth = 2 * (len(row).bit_length() - 1)
    while last - first > 3:
        if depth == 0:
            _heap_select(row, first, nth + 1, last)
            row[first], row[nth] = row[nth], row[first]
            return
        depth -= 1
        cut = _partition(row, first, last)
        if cut <= nth:
            first = cut
        else:
            last = cut
    for place in range(first + 1, last):
        value = row[place]
        while place > first and value[0] > row[place - 1][0]:
            row[place] = row[place - 1]
            place -= 1
        row[place] = value


def _partition(row: _Row, first: int, last: int) -> int:
    """Partition [first, last) around the median of three and return the border."""
    a, b, c = first + 1, first + (last - first) // 2, last - 1
    low, middle, high = row[a][0], row[b][0], row[c][0]
    if low > middle:
        median = b if middle > high else c if low > high else a
    else:
        median = a if low > high else c if middle > high else b
    row[first], row[median] = row[median], row[first]
    pivot = row[first][0]
    left, right = first + 1, last
    while True:
        while row[left][0] > pivot:
            left += 1
        right -= 1
        while pivot > row[right][0]:
            right -= 1
        if left >= right:
            return left
        row[left], row[right] = row[right], row[left]
        left += 1


def _heap_select(row: _Row, first: int, middle: int, last: int) -> None:
    """Bring the largest of [first, last) to [first, middle), a heap whose top is the least of them."""
    size = middle - first
    for parent in range((size - 2) // 2, -1, -1):
        _sift(row, first, parent, size, row[first + parent])
    for place in range(middle, last):
        if row[place][0] > row[first][0]:
            value = row[place]
            row[place] = row[first]
            _sift(row, first, 0, size, value)


def _sift(row: _Row, first: int, hole: int, size: int, value: tuple[float, int]) -> None:
    """Let the hole sink to a leaf, then let the value rise from there."""
    top = hole
    child = hole
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if row[first + child][0] > row[first + child - 1][0]:
            child -= 1
        row[first + hole] = row[first + child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * child + 1
        row[first + hole] = row[first + child]
        hole = child
    parent = (hole - 1) // 2
    while hole > top and row[first + parent][0] > value[0]:
        row[first + hole] = row[first + parent]
        hole = parent
        parent = (hole - 1) // 2
    row[first + hole] = value
