"""The filter language of the rank tables: `3`, `0-7,12`, `late`, `combine`, `dispatch>1000`; blanks mean "and"."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from morimon.store.snapshot import RankSnapshot
from morimon.views.rank_fields import FIELDS, doing

Test: TypeAlias = Callable[[RankSnapshot], bool]

_COMPARE = re.compile(r"([a-z_]+)(<=|>=|!=|=|<|>)(-?\d+(?:\.\d+)?)")
_RANKS = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")
_OPERATORS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_WORDS = ("late", "failed", "waiting", "running", "exited", "dispatch", "combine")


class FilterError(ValueError):
    """A filter that cannot be read, with a sentence that says what would be right."""


@dataclass(frozen=True, slots=True)
class RankFilter:
    """A filter as it was typed, and its tests; the empty one keeps every rank."""

    text: str = ""
    tests: tuple[Test, ...] = ()

    def keeps(self, rank: RankSnapshot) -> bool:
        """Whether all tests hold for this rank."""
        return all(test(rank) for test in self.tests)


EVERY_RANK = RankFilter()


def parse_filter(text: str) -> RankFilter:
    """The filter that was typed; FilterError says which word is wrong."""
    return RankFilter(text.strip(), tuple(_test(word) for word in text.lower().split()))


def _test(word: str) -> Test:
    if _RANKS.fullmatch(word):
        wanted = frozenset(number for part in word.split(",") for number in _numbers(part))
        return lambda rank: rank.rank in wanted
    if match := _COMPARE.fullmatch(word):
        return _comparison(*match.groups())
    if word == "late":
        return lambda rank: rank.is_late
    if word in _WORDS:
        return lambda rank: word in (rank.state, doing(rank))
    raise FilterError(
        f"'{word}' is no filter: ranks (0-7,12), a word ({', '.join(_WORDS)}), or a figure (dispatch>1000)"
    )


def _numbers(part: str) -> range:
    first, _, last = part.partition("-")
    return range(int(first), min(int(last or first), int(first) + 1_000_000) + 1)


def _comparison(name: str, sign: str, figure: str) -> Test:
    if name not in FIELDS or name == "phase":
        names = ", ".join(key for key in FIELDS if key != "phase")
        raise FilterError(f"'{name}' is no figure of a rank: {names}")
    read, compare, limit = FIELDS[name].read, _OPERATORS[sign], float(figure)

    def test(rank: RankSnapshot) -> bool:
        value = read(rank)
        return isinstance(value, (int, float)) and bool(compare(value, limit))

    return test
