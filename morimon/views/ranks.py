"""The Ranks screen: every rank's phase, tokens, arrival, latency and bandwidth; the late one marked.

`build` is pure: a snapshot, room, and what the person chose (`RanksState`) in; a page out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from morimon.draw.axis import Axis, settled
from morimon.draw.line import Line, Run
from morimon.draw.page import Frame, Page, Spot
from morimon.draw.sheet import Scalar, Sheet
from morimon.draw.table import Table, fit
from morimon.store.snapshot import RankSnapshot, RunSnapshot
from morimon.views.rank_fields import FIELDS, ordered
from morimon.views.rank_filter import EVERY_RANK, RankFilter
from morimon.views.rank_graph import LEAST_HEIGHT, Curves, Figure, curves, rank_graph, settle
from morimon.views.rank_rows import (
    PHASE_ROLES,
    SPARK_MOST,
    RankRows,
    duration_extremes,
    rank_columns,
    total_row,
)
from morimon.views.rank_summary import summary, verdict

LEGEND = (
    (
        "phase, round",
        "what the rank does now; rounds below 0 warm up, state words stand for ranks that do not run",
    ),
    ("recv", "tokens that the rank receives in a dispatch"),
    (
        "rdma",
        "tokens that come over RDMA by mori's algorithm bandwidth; left out where all ranks are on one node",
    ),
    ("arrived +µs", "how long after the first rank it entered dispatch; who is late is read from this"),
    ("cmb +µs", "the same for combine"),
    ("last", "phase entries in which it was the last one"),
    (
        "longest, shortest",
        "of the newest dispatch times, where the job does not tell arrivals: in a collective neither says who is late",
    ),
    ("dispatch, combine", "its own time, µs: the late rank shows the shortest, since the others wait for it"),
    ("GB/s", "bytes received by that time, in 10^9 bytes/s: XGMI or NVL; rdma: the RDMA algorithm bandwidth"),
    ("rounds", "the newest times as columns, all ranks on one scale"),
    (
        "best, worst",
        "the best rank in its best round, the worst likewise; average: mean over rounds of the rank mean",
    ),
)
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
        values = [values[-SPARK_MOST:] for values in series if values]
        limits.append((min(map(min, values)), max(map(max, values))) if values else None)
    return limits


def build(snapshot: RunSnapshot, frame: Frame, state: RanksState | None = None) -> Page:
    """The page of a settled state; without one, all ranks in their order, with axes that fit this snapshot."""
    if state is None:
        state = settled_state(snapshot, RanksState(), 0.0)
    ranks = chosen_ranks(snapshot, state)
    chosen = selection(snapshot, state)
    table = fit(rank_columns(snapshot, frame), frame.width, frame.glyphs, gap=1 if frame.is_narrow else 2)
    head, spots = _head(snapshot, frame, state, table, len(ranks))
    total = total_row(snapshot, table)
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
    rows = RankRows(ranks, table, state.sparks, snapshot, extremes=duration_extremes(snapshot))
    if room is None or room >= len(graph):
        return Page(head, replace(rows, total=total), graph, cursor, spots)
    return Page(head, rows, (total, *graph), cursor, spots)


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
    groups = table.group_line(PHASE_ROLES)
    notes = [f"{shown} of {len(snapshot.ranks)} ranks: {state.filter.text}"] if state.filter.text else []
    notes += ["following the worst"] if state.follow else []
    if notes:
        groups = frame.fit((Run(f" {f' {frame.glyphs.dot} '.join(notes)} ", "match"),))
    rule = Run(frame.glyphs.rule * frame.width, "border")
    if frame.height is None or frame.height >= 22:
        lines.append((rule,))
    lines.append(groups)
    heading, spots = table.heading(state.sort, descending=state.descending, line=len(lines))
    return (*lines, heading), spots


def sheet(snapshot: RunSnapshot, state: RanksState) -> Sheet:
    """The visible ranks with all their figures, for export."""
    ranks = chosen_ranks(snapshot, state)
    rows: list[list[Scalar]] = [[field.read(rank) for field in FIELDS.values()] for rank in ranks]
    return Sheet([field.name for field in FIELDS.values()], rows)
