"""The rows of the Ranks table: its columns by room, a rank's cells, the total; and what is wrong with a rank, in a word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from morimon.draw.axis import Axis
from morimon.draw.charts import spark
from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run
from morimon.draw.page import Frame
from morimon.draw.table import Cell, Column, Table, widest
from morimon.draw.units import gbps, lateness, micros, tokens
from morimon.model.events import Phase
from morimon.store.snapshot import PhaseFigures, RankSnapshot, RunSnapshot
from morimon.views.rank_fields import doing

PHASE_ROLES: Mapping[str, Role] = {"dispatch": "dispatch", "combine": "combine"}
SPARK_MOST = 24


def rank_columns(snapshot: RunSnapshot, frame: Frame) -> list[Column]:
    """All columns, wide enough for the largest figures of the snapshot and their sums; those of RDMA go first where nothing crosses nodes."""
    glyphs, ranks = frame.glyphs, snapshot.ranks
    micro = f"{glyphs.micro}s"
    phases = [figures for rank in ranks for figures in (rank.dispatch, rank.combine)]
    rdma_total = snapshot.across(snapshot.rdma_tokens_algo_total)
    totals = [tokens(snapshot.recv_tokens_total, glyphs), tokens(rdma_total, glyphs)]
    longest_us = max((figures.latency_us or 0.0 for figures in phases), default=0.0)
    latest_us = max((figures.arrival_us or 0.0 for figures in phases), default=0.0)
    token_width = widest(totals, 7)
    time_width = widest([micros(longest_us, glyphs)], 8)
    late_width = widest([lateness(latest_us, glyphs)], 8)
    number = widest([str(max((rank.rank for rank in ranks), default=0))], 4)
    node, rdma = (7, 6) if snapshot.crosses_nodes else (10, 9)
    return [
        Column("mark", "", 1, right=False),
        Column("rank", "rank", number, sortable=True),
        Column("node", "node", 4, priority=node, sortable=True),
        Column("pid", "pid", 7, priority=12, role="dim", sortable=True),
        Column("phase", "phase", 8, right=False, sortable=True),
        Column("round", "round", 5, sortable=True),
        Column("recv", "recv", token_width, group="tokens", sortable=True),
        Column("rdma", "rdma", token_width, group="tokens", priority=rdma, sortable=True),
        Column("arrived", f"+{micro}", late_width, group="arrived", sortable=True),
        Column("arrived_combine", f"cmb +{micro}", late_width, group="arrived", priority=11, sortable=True),
        Column("last", "last", 4, group="arrived", priority=8, sortable=True),
        *_phase_columns("dispatch", micro, time_width, (0, 2, 5, 14)),
        *_phase_columns("combine", micro, time_width, (4, 3, 8, 14)),
        Column("note", "", 8, right=False, priority=1, group="combine"),
    ]


def _phase_columns(
    phase: Phase, micro: str, width: int, priorities: tuple[int, int, int, int]
) -> list[Column]:
    """Latency, bandwidth, RDMA bandwidth and the rounds before of one phase."""
    latency, bandwidth, rounds, rdma = priorities
    return [
        Column(phase, micro, width, priority=latency, role=phase, group=phase, sortable=True),
        Column(f"{phase}_gbps", "GB/s", 6, priority=bandwidth, role=phase, group=phase, sortable=True),
        Column(f"{phase}_rdma", "rdma", 6, priority=rdma, role=phase, group=phase, sortable=True),
        Column(
            f"{phase}_rounds",
            "rounds",
            8,
            right=False,
            priority=rounds,
            role=phase,
            group=phase,
            most=SPARK_MOST,
        ),
    ]


@dataclass(frozen=True, slots=True)
class RankRows:
    """The rows of the table, made when they come into sight; `total` is the last of them where all have room."""

    ranks: Sequence[RankSnapshot]
    table: Table
    scales: tuple[Axis | None, Axis | None]
    """Of the sparks of dispatch and of combine."""
    snapshot: RunSnapshot
    total: Line | None = None
    extremes: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many ranks the filter kept, and the total."""
        return len(self.ranks) + (self.total is not None)

    def line(self, index: int) -> Line:
        """The row of one rank."""
        if index == len(self.ranks) and self.total is not None:
            return self.total
        return self.table.row(self._cells(self.ranks[index]))

    def _cells(self, rank: RankSnapshot) -> dict[str, Cell]:
        """What each column shows of a rank."""
        glyphs = self.table.glyphs
        mark, note, trouble = self._trouble(rank)
        late: Role = trouble if rank.is_late else "text"
        cells: dict[str, Cell] = {
            "mark": Run(mark, trouble),
            "rank": Run(str(rank.rank), "text" if trouble == "dim" else trouble),
            "node": _whole(rank.node, glyphs),
            "pid": _whole(rank.pid, glyphs),
            "phase": _phase(rank, trouble),
            "round": _whole(rank.round, glyphs),
            "recv": tokens(rank.recv_tokens, glyphs),
            "rdma": tokens(self.snapshot.across(rank.rdma_tokens_algo), glyphs),
            "arrived": Run(lateness(rank.dispatch.arrival_us, glyphs), late),
            "arrived_combine": Run(lateness(rank.combine.arrival_us, glyphs), late),
            "last": Run(str(rank.last_to_arrive or ""), trouble if rank.is_late else "dim"),
            "note": Run(note, trouble),
        }
        for name, figures, scale in zip(PHASE_ROLES, (rank.dispatch, rank.combine), self.scales, strict=True):
            cells[name] = micros(figures.latency_us, glyphs)
            cells[f"{name}_gbps"] = gbps(figures.xgmi_gbps, glyphs)
            cells[f"{name}_rdma"] = gbps(self.snapshot.across(figures.rdma_algo_gbps), glyphs)
            cells[f"{name}_rounds"] = self._spark(figures, scale, f"{name}_rounds")
        return cells

    def _spark(self, figures: PhaseFigures, scale: Axis | None, key: str) -> str:
        width = next((column.width for column in self.table.columns if column.key == key), 0)
        if scale is None or not width:
            return ""
        return spark(figures.latencies_us, width, scale.low, scale.high, self.table.glyphs)

    def _trouble(self, rank: RankSnapshot) -> tuple[str, str, Role]:
        """Mark in front, word behind, and role of a rank's row."""
        glyphs, failure = self.table.glyphs, self.snapshot.failure
        if failure is not None and failure.rank == rank.rank:
            return glyphs.failed, f"{glyphs.late} first", "failed"
        if rank.state == "failed":
            how = (
                f"sig {rank.signal}"
                if rank.signal
                else f"exit {rank.exitcode}"
                if rank.exitcode
                else "failed"
            )
            return glyphs.failed, how, "warning"
        if rank.is_late:
            return glyphs.warning, f"{glyphs.late} late", "late"
        if word := self.extremes.get(rank.rank):
            return "", word, "dim"
        return "", "", "text"


def duration_extremes(snapshot: RunSnapshot) -> dict[int, str]:
    """Rank -> `longest` or `shortest` dispatch, where nothing is known of arrivals: a word, and no verdict."""
    known = [
        (rank.dispatch.latency_us, rank.rank)
        for rank in snapshot.ranks
        if rank.dispatch.latency_us is not None
    ]
    if snapshot.arrivals_judged or len(known) < 2 or min(known)[0] == max(known)[0]:
        return {}
    return {min(known)[1]: "shortest", max(known)[1]: "longest"}


def total_row(snapshot: RunSnapshot, table: Table) -> Line:
    """The row under the ranks: sums of tokens over all of them, filtered or not."""
    cells: dict[str, Cell] = {
        "rank": "all",
        "recv": tokens(snapshot.recv_tokens_total, table.glyphs),
        "rdma": tokens(snapshot.across(snapshot.rdma_tokens_algo_total), table.glyphs),
    }
    return table.row(cells, role="title")


def _phase(rank: RankSnapshot, trouble: Role) -> Run:
    word = doing(rank)
    return Run(word, trouble if word == "failed" else PHASE_ROLES.get(word, "dim"))


def _whole(value: int | None, glyphs: Glyphs) -> str:
    return glyphs.missing if value is None else str(value)
