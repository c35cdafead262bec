"""What a dialect is, and the one matcher: rules of (pattern, meaning, dates), tried on a line in linear time.

A pattern may match anywhere and several times in a line, since writers that share an output glue their records. It must
begin with something literal, and all that it repeats must be bounded or exclude what it begins with, so that no line is
scanned more than a few times. `needs` are literals without one of which it cannot match: other lines aren't tried.

A named group `rank` says whose line it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from morimon.model.config import JobConfig
from morimon.model.events import Configured, Failure, Level, PhaseDone, Progress, Tokens

Meant: TypeAlias = Configured | Tokens | PhaseDone | Progress | Failure
State = TypeVar("State")

LONGEST_MATCHED = 1 << 16
"""Characters of a line that are looked at; a list of all ranks of a thousand fits into a tenth of it."""

WHOLE = r"\d{1,15}"
NUMBER = r"\d{1,15}(?:\.\d{1,15})?"
LIST = r"\[[\d., ]{0,60000}\]"

_LEVELS: tuple[Level, ...] = ("info", "warning", "error")


class Source:
    """Where lines come from: one rank's part of one output file, with what its dialects remember between lines."""

    def __init__(self, rank: int | None, *, restart: int, first_rank: int) -> None:
        self.rank = rank
        self.restart = restart
        self.first_rank = first_rank
        self.t_ns = 0
        self._states: dict[type, object] = {}

    def remember(self, kind: type[State]) -> State:
        """The one `kind()` of this source."""
        state = self._states.get(kind)
        if not isinstance(state, kind):
            state = self._states[kind] = kind()
        return state

    def configured(self, **fields: object) -> Configured:
        """A Configured event of this source, now; fields are JobConfig's."""
        return Configured(t_ns=self.t_ns, restart=self.restart, config=JobConfig(**fields))  # type: ignore[arg-type]  # fields by name

    def progress(self, done: int, total: int | None, label: str) -> Progress:
        """A Progress event of this source, now."""
        return Progress(
            t_ns=self.t_ns, restart=self.restart, rank=self.rank or 0, done=done, total=total, label=label
        )

    def tokens(self, rank: int, recv_tokens: int, rdma_tokens_algo: int | None) -> Tokens:
        """A Tokens event of a rank, now."""
        return Tokens(
            t_ns=self.t_ns,
            restart=self.restart,
            rank=rank,
            recv_tokens=recv_tokens,
            rdma_tokens_algo=rdma_tokens_algo,
            source="log",
        )


Meaning: TypeAlias = Callable[[Source, re.Match[str]], Iterable[Meant]]


def nothing(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    """The meaning of a line that only has a rank or a level."""
    del source, match
    return ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One form of one kind of record; `since` and `until` are the days between which jobs print it ("" for open)."""

    needs: tuple[str, ...]
    pattern: re.Pattern[str]
    meaning: Meaning = nothing
    level: Level = "info"
    since: str = ""
    until: str = ""


@dataclass(slots=True)
class Reading:
    """What a text says: whose it is, how bad, and what it means."""

    rank: int | None = None
    level: Level = "info"
    meant: list[Meant] = field(default_factory=list)

    def worsen(self, level: Level) -> None:
        """Take the worse of two levels."""
        if level != self.level:
            self.level = max(self.level, level, key=_LEVELS.index)


def rule(
    needs: str | tuple[str, ...],
    pattern: str,
    meaning: Meaning = nothing,
    *,
    level: Level = "info",
    since: str = "",
    until: str = "",
) -> Rule:
    """A Rule from a pattern's text."""
    return Rule(
        (needs,) if isinstance(needs, str) else needs, re.compile(pattern), meaning, level, since, until
    )


def read(rules: Sequence[Rule], text: str, source: Source, reading: Reading) -> None:
    """Add to `reading` what the rules find in `text`, from left to right, the longer match first, none overlapping."""
    text = text[:LONGEST_MATCHED]
    found = [
        (match.start(), -match.end(), order, match)
        for order, one in enumerate(rules)
        for match in one.pattern.finditer(text)
    ]
    found.sort(key=lambda hit: hit[:3])
    end = -1
    for start, minus_end, order, match in found:
        if start < end:
            continue
        end = -minus_end
        one = rules[order]
        reading.worsen(one.level)
        if reading.rank is None and (rank := match.groupdict().get("rank")) is not None:
            reading.rank = int(rank)
        for meant in one.meaning(source, match):
            reading.meant.append(meant)
            if isinstance(meant, Failure):
                reading.worsen("error")


def numbers(text: str) -> list[float]:
    """The numbers of a printed list, brackets included; an empty list where one of them is none."""
    try:
        return [float(item) for item in text.strip("[] ").split(",") if item.strip()]
    except ValueError:
        return []
