"""The Ranks screen: every rank's phase, tokens, arrival, latency and bandwidth; the late one marked.

`build` is pure: a snapshot, room, and what the person chose (`RanksState`) in; a page out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from morimon.draw.axis import Axis, settled
from morimon.draw.charts import spark
from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run
from morimon.draw.page import Frame, Page, Spot, fitted
from morimon.draw.sheet import Scalar, Sheet
from morimon.draw.table import Cell, Column, Table, fit, widest
from morimon.draw.units import gbps, lateness, micros, tokens
from morimon.model.events import Phase
from morimon.store.snapshot import PhaseFigures, RankSnapshot, RunSnapshot
from morimon.views.rank_fields import FIELDS, doing, ordered
from morimon.views.rank_filter import EVERY_RANK, RankFilter
from morimon.views.rank_graph import LEAST_HEIGHT, Curves, Figure, curves, rank_graph, settle
from morimon.views.rank_summary import summary, verdict

LEGEND = (
    (
        "phase, round",
        "what the rank does now; rounds below 0 warm up, state words stand for ranks that do not run",
    ),
    ("recv", "tokens that the rank receives in a dispatch"),
    (
        "rdma",
        "tokens that come over RDMA by mori's algorithm bandwidth; nothing where all ranks are on one node",
    ),
    ("arrived +µs", "how long after the first rank it entered dispatch; who is late is read from this"),
    ("cmb +µs", "the same for combine"),
    ("last", "phase entries in which it was the last one"),
    ("dispatch, combine", "its own time, µs: the late rank shows the shortest, since the others wait for it"),
    ("GB/s", "bytes received by that time, in 10^9 bytes/s: XGMI or NVL; rdma: the RDMA algorithm bandwidth"),
    ("rounds", "the newest times as columns, all ranks on one scale"),
    (
        "best, worst",
        "the best rank in its best round, the worst likewise; average: mean over rounds of the rank mean",
    ),
)
_PHASE_ROLES: dict[str, Role] = {"dispatch": "dispatch", "combine": "combine"}
_GRAPH_MOST = 24
GRAPH_S = 1.0
"""The graph is drawn anew at most this often: it is the largest part of the screen and the slowest to say something."""


@dataclass(frozen=True, slots=True)
class RanksState:
    """What the person at the screen chose, and the axes that must not jump."""

    selected: int | None = None
    sort: str = "rank"
    descending: bool = False
    follow: bool = False
    """The selection goes to the rank that is worst now."""
    filter: RankFilter = EVERY_RANK
    figure: Figure = "latency"
    axes: tuple[Axis | None, Axis | None] = (None, None)
    sparks: tuple[Axis | None, Axis | None] = (None, None)
    curves: tuple[Curves, Curves] | None = None
    """What the graph shows; `settled_state` derives it together with its axes, once a second."""
    curves_of: tuple[int | None, Figure] = (None, "latency")
    """The rank and figure they are of."""
    drawn_s: float = -inf
    drawn_version: int = -1
    """When they were derived, and from which snapshot."""

    def is_due(self, snapshot: RunSnapshot, now_s: float) -> bool:
        """Whether the graph is older than the snapshot and may be drawn anew."""
        return self.drawn_version != snapshot.version and now_s - self.drawn_s >= GRAPH_S

    def staying(self) -> RanksState:
        """The same without following."""
        return replace(self, follow=False)


def worst_rank(snapshot: RunSnapshot) -> int | None:
    """The rank to look at first: the one that failed, else the one that is late; None where all is well."""
    if snapshot.failure is not None and snapshot.failure.rank is not None:
        return snapshot.failure.rank
    late = snapshot.straggler
    return late.rank if late is not None and late.is_late else None


def chosen_ranks(snapshot: RunSnapshot, state: RanksState) -> list[RankSnapshot]:
    """The ranks of the table, filtered and sorted."""
    kept = [rank for rank in snapshot.ranks if state.filter.keeps(rank)]
    return ordered(kept, state.sort, descending=state.descending)


def selection(snapshot: RunSnapshot, state: RanksState) -> int | None:
    """The selected rank: the worst while following, the person's choice, else the worst, else the first."""
    known = {rank.rank for rank in snapshot.ranks}
    worst = worst_rank(snapshot)
    for rank in (worst if state.follow else state.selected, state.selected, worst):
        if rank in known:
            return rank
    return min(known, default=None)


def settled_state(snapshot: RunSnapshot, state: RanksState, now_s: float) -> RanksState:
    """The same choices with axes that hold the snapshot's figures; an axis changes at most once a second."""
    rank = selection(snapshot, state)
    if state.curves is None or state.curves_of != (rank, state.figure) or state.is_due(snapshot, now_s):
        both = curves(snapshot.ranks, -1 if rank is None else rank, state.figure)
        state = replace(
            state,
            axes=settle(state.axes if state.curves_of == (rank, state.figure) else (None, None), both, now_s),
            curves=both,
            curves_of=(rank, state.figure),
            drawn_s=now_s,
            drawn_version=snapshot.version,
        )
    sparks = tuple(
        settled(axis, *limits, now_s) if limits else axis
        for axis, limits in zip(state.sparks, _spark_limits(snapshot.ranks), strict=True)
    )
    return replace(state, sparks=(sparks[0], sparks[1]))


def _spark_limits(ranks: Sequence[RankSnapshot]) -> list[tuple[float, float] | None]:
    limits: list[tuple[float, float] | None] = []
    for series in ([r.dispatch.latencies_us for r in ranks], [r.combine.latencies_us for r in ranks]):
        values = [values[-24:] for values in series if values]
        limits.append((min(map(min, values)), max(map(max, values))) if values else None)
    return limits


def build(snapshot: RunSnapshot, frame: Frame, state: RanksState | None = None) -> Page:
    """The page of a settled state; without one, all ranks in their order, with axes that fit this snapshot."""
    if state is None:
        state = settled_state(snapshot, RanksState(), 0.0)
    ranks = chosen_ranks(snapshot, state)
    chosen = selection(snapshot, state)
    table = fit(_columns(snapshot, frame), frame.width, frame.glyphs, gap=1 if frame.is_narrow else 2)
    head, spots = _head(snapshot, frame, state, table, len(ranks))
    total = _total(snapshot, table)
    cursor = next((i for i, rank in enumerate(ranks) if rank.rank == chosen), None)
    room = None if frame.height is None else frame.height - len(head) - 1 - len(ranks)
    graph: tuple[Line, ...] = ()
    if (
        chosen is not None
        and state.curves
        and any(c.limits for c in state.curves)
        and (height := _graph_height(frame, room)) >= LEAST_HEIGHT
    ):
        graph = rank_graph(snapshot, state.curves, state.axes, chosen, state.figure, frame, height)
    if room is None or room >= len(graph):
        return Page(head, RankRows(ranks, table, state, snapshot, total), graph, cursor, spots)
    return Page(head, RankRows(ranks, table, state, snapshot), (total, *graph), cursor, spots)


def _graph_height(frame: Frame, room: int | None) -> int:
    """Lines for the graph: what the rows leave, and at least a third of a tall screen however many rows there are."""
    if room is None or frame.height is None:
        return 0
    return min(max(room, frame.height // 3 if frame.height >= 30 else 0), _GRAPH_MOST)


def _head(
    snapshot: RunSnapshot, frame: Frame, state: RanksState, table: Table, shown: int
) -> tuple[tuple[Line, ...], tuple[Spot, ...]]:
    lines = [*summary(snapshot, frame), verdict(snapshot, frame)]
    lines = [line for line in lines if line]
    groups = table.group_line(_PHASE_ROLES)
    notes = [f"{shown} of {len(snapshot.ranks)} ranks: {state.filter.text}"] if state.filter.text else []
    notes += ["following the worst"] if state.follow else []
    if notes:
        groups = fitted((Run(f" {f' {frame.glyphs.dot} '.join(notes)} ", "match"),), frame.width)
    rule = Run(frame.glyphs.rule * frame.width, "border")
    if frame.height is None or frame.height >= 22:
        lines.append((rule,))
    lines.append(groups)
    heading, spots = table.heading(state.sort, descending=state.descending, line=len(lines))
    return (*lines, heading), spots


def _columns(snapshot: RunSnapshot, frame: Frame) -> list[Column]:
    glyphs, ranks = frame.glyphs, snapshot.ranks
    micro = f"{glyphs.micro}s"
    most_tokens = max((rank.recv_tokens or 0 for rank in ranks), default=0)
    longest_us = max(
        (max(r.dispatch.latency_us or 0.0, r.combine.latency_us or 0.0) for r in ranks), default=0.0
    )
    latest_us = max(
        (max(r.dispatch.arrival_us or 0.0, r.combine.arrival_us or 0.0) for r in ranks), default=0.0
    )
    token_width = widest([tokens(most_tokens, glyphs)], 7)
    time_width = widest([micros(longest_us, glyphs)], 8)
    late_width = widest([lateness(latest_us, glyphs)], 8)
    number = widest([str(max((rank.rank for rank in ranks), default=0))], 4)
    several_nodes = snapshot.crosses_nodes
    return [
        Column("mark", "", 1, right=False),
        Column("rank", "rank", number, sortable=True),
        Column("node", "node", 4, priority=7 if several_nodes else 10, sortable=True),
        Column("pid", "pid", 7, priority=12, role="dim", sortable=True),
        Column("phase", "phase", 8, right=False, sortable=True),
        Column("round", "round", 5, sortable=True),
        Column("recv", "recv", token_width, group="tokens", sortable=True),
        Column(
            "rdma", "rdma", token_width, group="tokens", priority=6 if several_nodes else 9, sortable=True
        ),
        Column("arrived", f"+{micro}", late_width, group="arrived", sortable=True),
        Column("arrived_combine", f"cmb +{micro}", late_width, group="arrived", priority=11, sortable=True),
        Column("last", "last", 4, group="arrived", priority=8, sortable=True),
        *_phase_columns("dispatch", micro, time_width, (0, 2, 5, 14)),
        *_phase_columns("combine", micro, time_width, (4, 3, 8, 14)),
        Column("note", "", 7, right=False, priority=1, group="combine"),
    ]


def _phase_columns(
    phase: Phase, micro: str, width: int, priorities: tuple[int, int, int, int]
) -> list[Column]:
    """Latency, bandwidth, RDMA bandwidth and the rounds before of one phase."""
    latency, bandwidth, rounds, rdma = priorities
    return [
        Column(phase, micro, width, priority=latency, role=phase, group=phase, sortable=True),
        Column(f"{phase}_gbps", "GB/s", 7, priority=bandwidth, role=phase, group=phase, sortable=True),
        Column(f"{phase}_rdma", "rdma", 7, priority=rdma, role=phase, group=phase, sortable=True),
        Column(
            f"{phase}_rounds", "rounds", 8, right=False, priority=rounds, role=phase, group=phase, most=24
        ),
    ]


@dataclass(frozen=True, slots=True)
class RankRows:
    """The rows of the table, made when they come into sight; `total` is the last of them where all have room."""

    ranks: Sequence[RankSnapshot]
    table: Table
    state: RanksState
    snapshot: RunSnapshot
    total: Line | None = None

    def __len__(self) -> int:
        """How many ranks the filter kept, and the total."""
        return len(self.ranks) + (self.total is not None)

    def line(self, index: int) -> Line:
        """The row of one rank."""
        if index == len(self.ranks) and self.total is not None:
            return self.total
        return self.table.row(rank_cells(self.ranks[index], self.table, self.state, self.snapshot))


def rank_cells(rank: RankSnapshot, table: Table, state: RanksState, snapshot: RunSnapshot) -> dict[str, Cell]:
    """What each column shows of a rank."""
    glyphs = table.glyphs
    failure = snapshot.failure
    mark, note, trouble = _trouble(rank, glyphs, is_first=failure is not None and failure.rank == rank.rank)
    cells: dict[str, Cell] = {
        "mark": Run(mark, trouble),
        "rank": Run(str(rank.rank), trouble),
        "node": _whole(rank.node, glyphs),
        "pid": _whole(rank.pid, glyphs),
        "phase": _phase(rank, trouble),
        "round": _whole(rank.round, glyphs),
        "recv": tokens(rank.recv_tokens, glyphs),
        "rdma": tokens(rank.rdma_tokens_algo if snapshot.crosses_nodes else None, glyphs),
        "arrived": Run(lateness(rank.dispatch.arrival_us, glyphs), trouble if rank.is_late else "text"),
        "arrived_combine": Run(
            lateness(rank.combine.arrival_us, glyphs), trouble if rank.is_late else "text"
        ),
        "last": Run(
            str(rank.last_to_arrive) if rank.last_to_arrive else "", trouble if rank.is_late else "dim"
        ),
        "note": Run(note, trouble),
    }
    for name, figures, axis in (
        ("dispatch", rank.dispatch, state.sparks[0]),
        ("combine", rank.combine, state.sparks[1]),
    ):
        cells[name] = micros(figures.latency_us, glyphs)
        cells[f"{name}_gbps"] = gbps(figures.xgmi_gbps, glyphs)
        cells[f"{name}_rdma"] = gbps(figures.rdma_algo_gbps if snapshot.crosses_nodes else None, glyphs)
        cells[f"{name}_rounds"] = _spark(figures, axis, f"{name}_rounds", table)
    return cells


def _spark(figures: PhaseFigures, axis: Axis | None, key: str, table: Table) -> str:
    width = next((column.width for column in table.columns if column.key == key), 0)
    if axis is None or not width:
        return ""
    return spark(figures.latencies_us, width, axis.low, axis.high, table.glyphs)


def _trouble(rank: RankSnapshot, glyphs: Glyphs, *, is_first: bool) -> tuple[str, str, Role]:
    """Mark in front, word behind, and role of a rank's row."""
    if is_first:
        return glyphs.failed, f"{glyphs.late} first", "failed"
    if rank.state == "failed":
        how = f"sig {rank.signal}" if rank.signal else f"exit {rank.exitcode}" if rank.exitcode else "failed"
        return glyphs.failed, how, "warning"
    if rank.is_late:
        return glyphs.warning, f"{glyphs.late} late", "late"
    return "", "", "text"


def _phase(rank: RankSnapshot, trouble: Role) -> Run:
    word = doing(rank)
    return Run(word, trouble if word == "failed" else _PHASE_ROLES.get(word, "dim"))


def _whole(value: int | None, glyphs: Glyphs) -> str:
    return glyphs.missing if value is None else str(value)


def _total(snapshot: RunSnapshot, table: Table) -> Line:
    """The row under the ranks: sums of tokens over all of them, filtered or not."""
    glyphs = table.glyphs
    cells: dict[str, Cell] = {
        "rank": "all",
        "recv": tokens(snapshot.recv_tokens_total, glyphs),
        "rdma": tokens(snapshot.rdma_tokens_algo_total if snapshot.crosses_nodes else None, glyphs),
    }
    return table.row(cells, role="title")


def sheet(snapshot: RunSnapshot, state: RanksState) -> Sheet:
    """The visible ranks with all their figures, for export."""
    ranks = chosen_ranks(snapshot, state)
    rows: list[list[Scalar]] = [[field.read(rank) for field in FIELDS.values()] for rank in ranks]
    return Sheet([field.name for field in FIELDS.values()], rows)
