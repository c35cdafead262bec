"""What a screen may know of a run at one moment: plain frozen values, made by the store, read by the views."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeVar

from morimon.model.config import JobConfig
from morimon.model.events import Failure, JobState, Level, LogLines, Note, Outcome, Phase

Figure = TypeVar("Figure")
RankState: TypeAlias = Literal["waiting", "running", "exited", "failed"]


@dataclass(frozen=True, slots=True)
class Extreme:
    """A value with the rank and the round it was seen in."""

    value: float
    rank: int
    round: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Best, worst and average as mori's summary means them: best single rank in the best single round, worst likewise,
    average = mean over rounds of the rank mean. For a latency best is the smallest.
    """

    best: Extreme
    worst: Extreme
    average: float


@dataclass(frozen=True, slots=True)
class PhaseSummary:
    """One phase over all ranks and rounds so far; a figure that nobody told is None."""

    phase: Phase
    rounds: int
    latency_us: Spread | None = None
    xgmi_gbps: Spread | None = None
    rdma_algo_gbps: Spread | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """Bandwidths that the job printed for one rank, newest round; one that it left out is None."""

    round: int
    latency_us: float
    xgmi_gbps: float | None = None
    rdma_algo_gbps: float | None = None


@dataclass(frozen=True, slots=True)
class PhaseFigures:
    """One rank's newest figures of a phase, with the rounds before them (oldest first, newest last)."""

    round: int | None = None
    latency_us: float | None = None
    xgmi_gbps: float | None = None
    rdma_algo_gbps: float | None = None
    arrival_us: float | None = None
    """Entry into the phase minus the earliest rank's, in the newest round that every rank has entered."""
    rounds: tuple[int, ...] = ()
    latencies_us: tuple[float, ...] = ()
    xgmi_series_gbps: tuple[float, ...] = ()
    """As long as `rounds`, NaN where a round's is unknown; empty where none is known."""
    overall: PhaseSummary | None = None
    """This rank alone over all its rounds, also those that have left the series above."""
    claimed: Claim | None = None
    is_printed: bool = False
    """The newest round is known from what the job printed alone: its bandwidths are claims, not computed from bytes."""


@dataclass(frozen=True, slots=True)
class RankSnapshot:
    """Everything known of one rank."""

    rank: int
    version: int
    """Grows with every change of this rank: equal versions mean equal rows."""
    node: int | None = None
    local_rank: int | None = None
    pid: int | None = None
    restart: int = 0
    state: RankState = "waiting"
    phase: Phase | None = None
    round: int | None = None
    recv_tokens: int | None = None
    rdma_tokens_algo: int | None = None
    dispatch: PhaseFigures = PhaseFigures()
    combine: PhaseFigures = PhaseFigures()
    last_to_arrive: int = 0
    """Phase entries (of `RunSnapshot.arrivals_judged`) in which this rank came last."""
    is_late: bool = False
    cpu_percent: float | None = None
    cpu_series_percent: tuple[float, ...] = ()
    rss_bytes: int | None = None
    threads: int | None = None
    exitcode: int | None = None
    signal: int | None = None
    counters: tuple[tuple[str, float, str], ...] = ()
    """(name, value, unit), in the order in which the job first named them."""
    to_ranks: tuple[int, ...] = ()
    to_experts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Straggler:
    """The rank that most often arrives last, and by how much."""

    rank: int
    behind_us: float
    """Median over its last arrivals of its entry minus the median rank's entry."""
    rounds: int
    """Of the newest `judged` rounds of `phase`, those in which it came last."""
    judged: int
    phase: Phase
    is_late: bool
    """Whether that is no chance: the rank's own `is_late`."""


@dataclass(frozen=True, slots=True)
class DropCount:
    """Input that was set aside, by reason and rank."""

    reason: str
    rank: int | None
    count: int

    def order(self) -> tuple[str, int]:
        """Key to sort by: reason, then rank, without a rank first."""
        return self.reason, -1 if self.rank is None else self.rank


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """A run at one moment. `version` grows with every change: equal versions mean nothing to paint."""

    version: int
    run_id: str = ""
    host: str = ""
    command: tuple[str, ...] = ()
    cwd: str = ""
    started_unix_ns: int | None = None
    elapsed_s: float = 0.0
    config: JobConfig = field(default_factory=JobConfig)
    crosses_nodes: bool = True
    """False where the configuration says one node: nothing crosses, and what is shown to people leaves RDMA figures out."""
    state: JobState | Outcome = "starting"
    exitcode: int | None = None
    failure: Failure | None = None
    progress_done: int | None = None
    progress_total: int | None = None
    eta_s: float | None = None
    ranks: tuple[RankSnapshot, ...] = ()
    dispatch: PhaseSummary | None = None
    combine: PhaseSummary | None = None
    straggler: Straggler | None = None
    arrivals_judged: int = 0
    recv_tokens_total: int | None = None
    rdma_tokens_algo_total: int | None = None
    logs: tuple[LogLines, ...] = ()
    """Newest references to output, oldest first; older ones left the ring."""
    logs_forgotten: int = 0
    """Lines whose references left the ring; their text is still in the run folder."""
    notes: tuple[Note, ...] = ()
    drops: tuple[DropCount, ...] = ()
    worst_level: Level = "info"

    def across(self, figure: Figure | None) -> Figure | None:
        """An RDMA figure as people see it: none where nothing crosses nodes."""
        return figure if self.crosses_nodes else None
