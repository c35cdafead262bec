"""Which lines of a piece of output are worth a look: nearly all that a job prints means nothing, and is a lot.

A line without any of the literals that rules need, without the prefix of a rank and without control codes can't match.
Searching for each literal in many lines at once costs a few nanoseconds a line, where looking at a line costs
microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from morimon.logs.dialect import Rule

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

        None for the rules of a line with control codes: its visible text decides (`rules_for`).
        """
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
