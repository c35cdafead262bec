"""A record that has grown large goes on with one sample per rank and second; all else is kept.

Rounds are kept or dropped whole, for every rank alike: who is late is judged within one round.
"""

from __future__ import annotations

from morimon.model.events import (
    Counter,
    Dropped,
    LogLines,
    PhaseDone,
    PhaseEntered,
    ProcessSample,
    Progress,
    RecordEvent,
    Traffic,
)

PERIOD_NS = 1_000_000_000
REPORT_NS = 10_000_000_000
_ROUNDS_REMEMBERED = 4096


class Thinning:
    """Chooses what stays, and counts what goes."""

    def __init__(self) -> None:
        self._last_ns: dict[tuple[object, ...], int] = {}
        self._rounds: dict[tuple[int, int], bool] = {}
        """(restart, round) -> whether it is kept, decided when its first event comes; old ones are forgotten."""
        self._chosen_ns = -PERIOD_NS
        self._dropped = 0
        self._reported_ns = 0

    def keeps(self, event: RecordEvent) -> bool:
        """Whether the event goes into the record."""
        match event:
            case PhaseEntered() | PhaseDone():
                kept = self._keeps_round(event.restart, event.round, event.t_ns)
            case ProcessSample() | Traffic():
                kept = self._is_due((type(event), event.restart, event.rank), event.t_ns)
            case Counter():
                kept = self._is_due((Counter, event.restart, event.rank, event.name), event.t_ns)
            case Progress():
                done = event.total is not None and event.done >= event.total
                kept = done or self._is_due((Progress, event.restart, event.rank, event.label), event.t_ns)
            case LogLines(level="info"):
                kept = self._is_due((LogLines, event.file), event.t_ns)
            case _:
                kept = True
        self._dropped += not kept
        return kept

    def dropped(self, t_ns: int) -> list[Dropped]:
        """The count of what went, told every ten seconds; `t_ns` is now."""
        if not self._dropped or t_ns - self._reported_ns < REPORT_NS:
            return []
        count, self._dropped, self._reported_ns = self._dropped, 0, t_ns
        return [Dropped(t_ns=t_ns, count=count, reason="thinned, the record is large")]

    def _keeps_round(self, restart: int, number: int, t_ns: int) -> bool:
        key = (restart, number)
        if key not in self._rounds:
            self._rounds[key] = t_ns - self._chosen_ns >= PERIOD_NS
            if self._rounds[key]:
                self._chosen_ns = t_ns
            if len(self._rounds) > _ROUNDS_REMEMBERED:
                del self._rounds[next(iter(self._rounds))]
        return self._rounds[key]

    def _is_due(self, key: tuple[object, ...], t_ns: int) -> bool:
        if t_ns - self._last_ns.get(key, t_ns - PERIOD_NS) < PERIOD_NS:
            return False
        self._last_ns[key] = t_ns
        return True
