"""Best, worst and average over all rounds of a run, streaming: memory does not grow with the rounds.

The meaning is that of mori's summary: best is the best single rank in the best single round, worst likewise, average
the mean over rounds of the rank mean. Rounds below 0 are warm-ups and never counted (the round 0 of mori's benchmark,
which its summary leaves out, is told as one of them).
"""

from __future__ import annotations

from morimon.model.events import Phase
from morimon.store.snapshot import Extreme, PhaseSummary, Spread

OPEN_ROUNDS = 1024
"""Rounds whose rank mean may still change; the oldest beyond these are settled."""


class FigureTally:
    """One figure's extremes and average. Of equal values the first one seen keeps its place.

    `open_rounds` is how many rounds may wait for more ranks; 0 suits the tally of a single rank.
    """

    def __init__(self, *, smallest_is_best: bool, open_rounds: int) -> None:
        self._smallest_is_best = smallest_is_best
        self._open_rounds = open_rounds
        self._smallest: Extreme | None = None
        self._largest: Extreme | None = None
        self._settled_sum = 0.0
        self._settled = 0
        self._open: dict[int, tuple[float, int]] = {}

    @property
    def rounds(self) -> int:
        """Rounds in which at least one rank told this figure."""
        return self._settled + len(self._open)

    def add(self, value: float, rank: int, number: int) -> None:
        """Count one rank's value of one round."""
        if self._smallest is None or value < self._smallest.value:
            self._smallest = Extreme(value, rank, number)
        if self._largest is None or value > self._largest.value:
            self._largest = Extreme(value, rank, number)
        total, count = self._open.get(number, (0.0, 0))
        self._open[number] = (total + value, count + 1)
        if len(self._open) > self._open_rounds:
            total, count = self._open.pop(next(iter(self._open)))
            self._settled_sum += total / count
            self._settled += 1

    def spread(self) -> Spread | None:
        """The summary so far; None before the first value."""
        if self._smallest is None or self._largest is None:
            return None
        best, worst = self._smallest, self._largest
        if not self._smallest_is_best:
            best, worst = worst, best
        means = self._settled_sum + sum(total / count for total, count in self._open.values())
        return Spread(best, worst, means / self.rounds)


class PhaseTally:
    """Latency and bandwidths of one phase over rounds, of all ranks or (`open_rounds` 0) of one."""

    def __init__(self, phase: Phase, *, open_rounds: int = OPEN_ROUNDS) -> None:
        self._phase = phase
        self._latency_us = FigureTally(smallest_is_best=True, open_rounds=open_rounds)
        self._xgmi_gbps = FigureTally(smallest_is_best=False, open_rounds=open_rounds)
        self._rdma_algo_gbps = FigureTally(smallest_is_best=False, open_rounds=open_rounds)

    def add(
        self, rank: int, number: int, latency_us: float, xgmi_gbps: float | None, rdma_algo_gbps: float | None
    ) -> None:
        """Count one rank's round, unless it is a warm-up; a bandwidth that nobody told is None."""
        if number < 0:
            return
        self._latency_us.add(latency_us, rank, number)
        if xgmi_gbps is not None:
            self._xgmi_gbps.add(xgmi_gbps, rank, number)
        if rdma_algo_gbps is not None:
            self._rdma_algo_gbps.add(rdma_algo_gbps, rank, number)

    def summary(self) -> PhaseSummary | None:
        """The phase so far, None before its first round."""
        latency = self._latency_us.spread()
        if latency is None:
            return None
        return PhaseSummary(
            phase=self._phase,
            rounds=self._latency_us.rounds,
            latency_us=latency,
            xgmi_gbps=self._xgmi_gbps.spread(),
            rdma_algo_gbps=self._rdma_algo_gbps.spread(),
        )
