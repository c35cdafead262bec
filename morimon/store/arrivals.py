"""Who is late, read from arrival: the moments at which the ranks enter a phase of a round.

Durations say the opposite in a collective (the late rank waits for nobody and shows the shortest time), so this module
never sees one. A (phase, round) is judged once all expected ranks have entered it; all times are of one clock.
"""

from __future__ import annotations

from collections import Counter, deque
from statistics import median, median_low
from typing import NamedTuple

from morimon.model.events import PHASES, Phase
from morimon.store.snapshot import Straggler

OPEN_ROUNDS = 64
"""Rounds of a phase that wait for their last ranks; older ones go unjudged."""
STRAGGLER_WINDOW = 256
"""Judged rounds of a phase in which the straggler is looked for."""
LATE_WINDOW = 16
LATE_MINIMUM = 4
"""A verdict needs this many judged rounds, and is read from the newest LATE_WINDOW of them."""
LATE_RATIO = 2.0


class Judged(NamedTuple):
    """The end of one round's race: who came last, how far it and the one before it were behind the median rank."""

    last: int
    behind_us: float
    runner_up_behind_us: float


class _Race:
    """Arrivals at one phase."""

    def __init__(self) -> None:
        self.open: dict[tuple[int, int], dict[int, int]] = {}
        self.newest_us: dict[int, float] = {}
        self.judged: deque[Judged] = deque(maxlen=STRAGGLER_WINDOW)
        self._pass_of: dict[int, tuple[int, int]] = {}

    def entered(self, number: int, rank: int, t_ns: int, expected: int) -> Judged | None:
        """Note an entry; the verdict where it completes its round.

        A rank whose round numbers start over (the job's next sweep) is in its next pass; only entries of the same pass
        meet.
        """
        passes, newest = self._pass_of.get(rank, (0, number - 1))
        if number <= newest:
            passes += 1
        self._pass_of[rank] = (passes, number)
        entries = self.open.setdefault((passes, number), {})
        entries[rank] = t_ns
        if len(entries) < expected:
            if len(self.open) > OPEN_ROUNDS:
                del self.open[next(iter(self.open))]
            return None
        del self.open[passes, number]
        order = sorted(entries, key=lambda r: (entries[r], r))
        earliest, middle = entries[order[0]], median_low(entries.values())
        self.newest_us = {r: (entries[r] - earliest) / 1000 for r in order}
        verdict = Judged(
            order[-1], (entries[order[-1]] - middle) / 1000, max(entries[order[-2]] - middle, 0) / 1000
        )
        self.judged.append(verdict)
        return verdict

    def late_rank(self) -> int | None:
        """The rank that the newest judged rounds show to be late.

        It came last in a share of them that is nearer to always than to chance (more than (1 + 1/ranks)/2), and the
        median of its lags behind the median rank is at least LATE_RATIO times that of the runners-up.
        """
        recent = list(self.judged)[-LATE_WINDOW:]
        if len(recent) < LATE_MINIMUM:
            return None
        rank, times = _most_often_last(recent)
        lost = [j for j in recent if j.last == rank]
        clear = median(j.behind_us for j in lost) >= LATE_RATIO * median(j.runner_up_behind_us for j in lost)
        return rank if clear and 2 * times > len(recent) * (1 + 1 / len(self.newest_us)) else None


class Arrivals:
    """Arrivals of all ranks at all phases of one restart of a job."""

    def __init__(self) -> None:
        self._races = {phase: _Race() for phase in PHASES}
        self.judged = 0
        """Phase entries that all ranks made."""
        self.last_to_arrive: Counter[int] = Counter()
        """By rank: judged entries in which it came last."""

    def entered(self, phase: Phase, number: int, rank: int, t_ns: int, expected: int) -> bool:
        """Note that a rank entered; True where that completes the round and the figures below have changed.

        `expected` is the number of ranks that take part; fewer than two are never judged.
        """
        if expected < 2:
            return False
        verdict = self._races[phase].entered(number, rank, t_ns, expected)
        if verdict is None:
            return False
        self.judged += 1
        self.last_to_arrive[verdict.last] += 1
        return True

    def arrival_us(self, phase: Phase, rank: int) -> float | None:
        """The rank's entry minus the earliest one's, in the newest judged round."""
        return self._races[phase].newest_us.get(rank)

    def straggler(self) -> Straggler | None:
        """The late rank, else the one that came last in the largest share of a phase's newest judged rounds.

        Of equals it is the one with the larger lag.
        """
        found: list[tuple[bool, float, float, Straggler]] = []
        for phase, race in self._races.items():
            if not race.judged:
                continue
            late = race.late_rank()
            rank = _most_often_last(race.judged)[0] if late is None else late
            lags_us = [j.behind_us for j in race.judged if j.last == rank]
            times, lag_us, is_late = len(lags_us), median(lags_us), late is not None
            one = Straggler(rank, lag_us, times, len(race.judged), phase, is_late)
            found.append((is_late, times / len(race.judged), lag_us, one))
        return max(found, key=lambda f: f[:3])[3] if found else None

    def late_ranks(self) -> frozenset[int]:
        """Ranks that a phase's newest judged rounds show to be late, at most one a phase."""
        return frozenset(rank for race in self._races.values() if (rank := race.late_rank()) is not None)


def _most_often_last(judged: deque[Judged] | list[Judged]) -> tuple[int, int]:
    """(rank, times) of the rank that came last most often; of equals the one with the larger total lag."""
    times: Counter[int] = Counter(j.last for j in judged)
    lag: Counter[int] = Counter()
    for j in judged:
        lag[j.last] += round(j.behind_us * 1000)
    rank = max(times, key=lambda r: (times[r], lag[r], -r))
    return rank, times[rank]
