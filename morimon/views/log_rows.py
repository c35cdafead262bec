"""Which output lines a log shows: references chosen by rank and level, as one long list of rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from morimon.model.events import Level, LogLines

LEVELS: tuple[Level, ...] = ("info", "warning", "error")


@dataclass(frozen=True, slots=True)
class LogChoice:
    """One rank's lines or all (None), from a level on."""

    rank: int | None = None
    level: Level = "info"

    def takes(self, ref: LogLines) -> bool:
        """Whether these lines are wanted."""
        if self.rank is not None and ref.rank != self.rank:
            return False
        return LEVELS.index(ref.level) >= LEVELS.index(self.level)


class LogRows:
    """Rows of the chosen lines; grows with the run, never re-reads what it has."""

    def __init__(self, choice: LogChoice) -> None:
        self.choice = choice
        self._refs: list[LogLines] = []
        self._ends: list[int] = []
        self._newest: LogLines | None = None

    def __len__(self) -> int:
        """How many lines were chosen."""
        return self._ends[-1] if self._ends else 0

    def extend(self, logs: Sequence[LogLines]) -> None:
        """Take in the references that follow the newest one seen; a run that was wound back starts anew."""
        begin = len(logs)
        while begin > 0 and logs[begin - 1] is not self._newest:
            begin -= 1
        if begin == 0:
            self._refs, self._ends = [], []
        end = len(self)
        for ref in logs[begin:]:
            if self.choice.takes(ref):
                end += ref.lines
                self._refs.append(ref)
                self._ends.append(end)
        self._newest = logs[-1] if logs else None

    def locate(self, row: int) -> tuple[LogLines, int]:
        """The reference that row belongs to, and which of its lines it is."""
        at = bisect_right(self._ends, row)
        ref = self._refs[at]
        return ref, row - (self._ends[at] - ref.lines)
