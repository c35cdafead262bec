"""Which lines of a piece of output are worth a look: nearly all that a job prints means nothing, and is a lot.

A line without any of the literals that rules need, without the prefix of a rank and without control codes can't match.
Searching for each literal in many lines at once costs a few nanoseconds a line, where looking at a line costs
microseconds.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from morimon.logs.dialect import Rule

_LINE_END = re.compile(rb"\n")
_COLOURS = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
_CODES = re.compile(rb"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f]|\r(?!\n)|\xc2[\x80-\x9f]")


class Sieve:
    """Sifts lines for `rules`; lines with one of the literals `also` are worth a look as well."""

    def __init__(self, rules: Sequence[Rule], also: Iterable[str] = ()) -> None:
        self._rules = rules
        self._needed: dict[str, set[int]] = {literal: set() for literal in also}
        for order, one in enumerate(rules):
            for literal in one.needs:
                self._needed.setdefault(literal, set()).add(order)
        self._literals = [(literal.encode(), orders) for literal, orders in self._needed.items()]

    def sift(self, data: bytes) -> dict[int, list[Rule] | None]:
        """Where, in whole lines of a file, the lines begin that are worth a look, in order, and the rules that may match.

        None for the rules of a line with control codes other than colours: its visible text decides (`rules_for`).
        """
        if b"\x1b[" not in data:
            return self._sift(data)
        plain = _COLOURS.sub(b"", data)  # which holds no line end
        begins, plain_begins = _line_begins(data), _line_begins(plain)
        return {begins[bisect_left(plain_begins, begin)]: rules for begin, rules in self._sift(plain).items()}

    def _sift(self, data: bytes) -> dict[int, list[Rule] | None]:
        orders_of: dict[int, set[int]] = {}
        for literal, orders in self._literals:
            found = data.find(literal)
            while found >= 0:
                orders_of.setdefault(data.rfind(b"\n", 0, found) + 1, set()).update(orders)
                found = data.find(literal, data.find(b"\n", found) + 1 or len(data))
        coded = {data.rfind(b"\n", 0, code.start()) + 1 for code in _CODES.finditer(data)}
        return {
            begin: None if begin in coded else self._in_order(orders_of[begin])
            for begin in sorted(orders_of.keys() | coded)
        }

    def rules_for(self, text: str) -> list[Rule]:
        """The rules that may match a text, in their order."""
        found: set[int] = set()
        for literal, orders in self._needed.items():
            if literal in text:
                found |= orders
        return self._in_order(found)

    def _in_order(self, orders: set[int]) -> list[Rule]:
        return [self._rules[order] for order in sorted(orders)]


def _line_begins(data: bytes) -> list[int]:
    return [0, *(end.end() for end in _LINE_END.finditer(data))]
