"""The ranks of one restart of a job: rows, arrivals, summaries and progress, all from the events of that restart."""

from __future__ import annotations

from morimon.model.config import JobConfig
from morimon.model.events import PHASES, Phase, PhaseDone, PhaseEntered, Progress
from morimon.store.arrivals import Arrivals
from morimon.store.rank import RankRow, gbps
from morimon.store.snapshot import RankSnapshot
from morimon.store.tally import PhaseTally


class ProgressTrack:
    """How far the job is, and how long the rest takes at the pace since it began to count."""

    def __init__(self) -> None:
        self._first: Progress | None = None
        self.newest: Progress | None = None

    def add(self, event: Progress) -> bool:
        """Take the word of the lowest rank that speaks; False for another's. A new label or a step back starts over."""
        if self.newest is not None and event.rank > self.newest.rank:
            return False
        newest = self.newest
        if (
            newest is None
            or (event.label, event.rank) != (newest.label, newest.rank)
            or event.done < newest.done
        ):
            self._first = event
        self.newest = event
        return True

    @property
    def eta_s(self) -> float | None:
        """Seconds from the newest word to the end; None before there is a pace, or where the total is unknown."""
        first, newest = self._first, self.newest
        if first is None or newest is None or newest.total is None or newest.done <= first.done:
            return None
        pace_s = (newest.t_ns - first.t_ns) / 1e9 / (newest.done - first.done)
        return max(newest.total - newest.done, 0) * pace_s


class Generation:
    """Everything keyed by (restart, rank) for one restart."""

    def __init__(self, restart: int) -> None:
        self.restart = restart
        self.rows: dict[int, RankRow] = {}
        self.arrivals = Arrivals()
        self.tallies: dict[Phase, PhaseTally] = {phase: PhaseTally(phase) for phase in PHASES}
        self.progress = ProgressTrack()
        self._told_by: dict[Phase, str] = {}
        self._expected_here = 0
        self._heard = 0
        self._built: dict[int, RankSnapshot] = {}
        self._late: tuple[int, frozenset[int]] = (0, frozenset())

    def row(self, rank: int) -> RankRow:
        """The rank's row, made at its first mention."""
        row = self.rows.get(rank)
        if row is None:
            row = self.rows[rank] = RankRow(rank, self.restart)
        return row

    def heard(self, row: RankRow, local_world_size: int | None = None) -> None:
        """A rank's probe has spoken; where it knows, it told how many ranks run on this host."""
        if not row.heard:
            row.heard = True
            self._heard += 1
        self._expected_here = max(self._expected_here, local_world_size or 0)

    def entered(self, event: PhaseEntered, config: JobConfig) -> bool:
        """A rank arrived; True where all figures of arrival changed with it.

        All ranks of this host take part; of those elsewhere nothing is heard here. Where the job does not tell how
        many there are, its world size counts, and at the least the ranks that have spoken.
        """
        row = self.row(event.rank)
        self.heard(row)
        row.entered(event)
        if event.round < 0:
            return False
        expected = max(self._expected_here or config.world_size or 0, self._heard)
        return self.arrivals.entered(event.phase, event.round, event.rank, event.t_ns, expected)

    def done(self, event: PhaseDone) -> bool:
        """A rank's figures; False where nothing changed.

        Of a log's repetition of what a probe tells, which is exact where the log rounds, only the claim is kept.
        """
        told_by = self._told_by.get(event.phase)
        if event.source == "log":
            claimed = self.row(event.rank).claim(event)
            if told_by == "probe":
                return claimed
        if event.source == "probe" and told_by == "log":
            self._start_over()
        self._told_by[event.phase] = event.source
        xgmi = gbps(event.bytes, event.latency_us) if event.xgmi_gbps is None else event.xgmi_gbps
        rdma = (
            gbps(event.rdma_bytes, event.latency_us) if event.rdma_algo_gbps is None else event.rdma_algo_gbps
        )
        row = self.row(event.rank)
        if event.source == "probe":
            self.heard(row)
        row.done(event, xgmi, rdma)
        self.tallies[event.phase].add(event.rank, event.round, event.latency_us, xgmi, rdma)
        return True

    def _start_over(self) -> None:
        self._told_by.clear()
        self.tallies = {phase: PhaseTally(phase) for phase in PHASES}
        for row in self.rows.values():
            row.forget_rounds()

    def totals(self) -> tuple[int | None, int | None]:
        """(recv tokens, RDMA tokens algo) over all ranks; None where one of them has not told."""
        recv = [row.recv_tokens for row in self.rows.values()]
        rdma = [row.rdma_tokens_algo for row in self.rows.values()]
        return _sum_if_known(recv), _sum_if_known(rdma)

    def snapshots(self, config: JobConfig) -> tuple[RankSnapshot, ...]:
        """All rows by rank; only those whose version moved are built anew."""
        if self._late[0] != self.arrivals.judged:
            self._late = (self.arrivals.judged, self.arrivals.late_ranks())
        late = self._late[1]
        out = []
        for rank in sorted(self.rows):
            row = self.rows[rank]
            built = self._built.get(rank)
            if built is None or built.version != row.version:
                built = self._built[rank] = row.snapshot(
                    gpu_per_node=config.gpu_per_node,
                    arrivals_us={phase: self.arrivals.arrival_us(phase, rank) for phase in PHASES},
                    last_to_arrive=self.arrivals.last_to_arrive[rank],
                    is_late=rank in late,
                )
            out.append(built)
        return tuple(out)


def _sum_if_known(values: list[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if known and len(known) == len(values) else None
