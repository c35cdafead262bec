"""What the Bandwidth screen shows, as values: the figures of the chosen ranks and their mean, over one axis."""

from __future__ import annotations

from dataclasses import dataclass, replace

from morimon.draw.axis import Axis, settled
from morimon.model.events import Phase
from morimon.store.snapshot import RunSnapshot
from morimon.views.bandwidth_figures import NAMES, Figure, Job, figures_of, mean_of
from morimon.views.line_rates import LineRates, Link
from morimon.views.rank_filter import EVERY_RANK, RankFilter

PHASES: tuple[Phase, ...] = ("dispatch", "combine")
MEAN = -1
"""Stands for the mean where a rank's number would be."""


@dataclass(frozen=True, slots=True)
class BandwidthState:
    """What the person at the screen chose, and the axis that must not jump."""

    phase: Phase = "dispatch"
    link: Link | None = None
    """None: RDMA where the job runs on several nodes, else XGMI/NVL."""
    rank: int = MEAN
    name: str = ""
    """The figure under the cursor; empty: the first one."""
    filter: RankFilter = EVERY_RANK
    axis: Axis | None = None
    axis_of: Link | None = None

    def link_on(self, snapshot: RunSnapshot) -> Link:
        """The link that is shown."""
        return self.link or ("rdma" if snapshot.crosses_nodes else "xgmi")


@dataclass(frozen=True, slots=True)
class Block:
    """The figures of one rank (or of MEAN) in the phases that are shown."""

    rank: int
    phases: tuple[tuple[Figure, ...], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """All blocks to show, and the names of the figures that at least one rank knows."""

    link: Link
    phases: tuple[Phase, ...]
    blocks: tuple[Block, ...]
    names: tuple[str, ...]
    line_gbps: float | None

    @property
    def known(self) -> list[Figure]:
        """All figures with a value."""
        return [
            figure
            for block in self.blocks
            for figures in block.phases
            for figure in figures
            if figure.gbps is not None
        ]

    def figure(self, index: int, phase: int) -> Figure:
        """The figure in a row of the body."""
        block, name = divmod(index, len(self.names))
        return self.blocks[block].phases[phase][NAMES[self.link].index(self.names[name])]

    def row_of(self, rank: int, name: str) -> int:
        """The row of a rank's figure; of its first one, or the first of all, where that is not shown."""
        at = next((i for i, block in enumerate(self.blocks) if block.rank == rank), 0)
        return at * len(self.names) + (self.names.index(name) if name in self.names else 0)

    def at(self, index: int) -> tuple[int, str]:
        """Rank and figure of a row; the mean's rank is negative."""
        block, name = divmod(index, len(self.names))
        return self.blocks[block].rank, self.names[name]


def chart(
    snapshot: RunSnapshot, state: BandwidthState, rates: LineRates, *, both_phases: bool = False
) -> Chart:
    """The figures of the chosen ranks; nothing at all for RDMA on one node."""
    link = state.link_on(snapshot)
    phases = PHASES if both_phases else (state.phase,)
    job = Job.of(snapshot.config)
    ranks = [rank for rank in snapshot.ranks if state.filter.keeps(rank)]
    if link == "rdma" and not snapshot.crosses_nodes:
        ranks = []
    told = [
        Block(rank.rank, tuple(figures_of(rank, phase, link, job, rates) for phase in phases))
        for rank in ranks
    ]
    if not told:
        return Chart(link, phases, (), NAMES[link], rates.of(link))
    columns = zip(*(block.phases for block in told), strict=True)
    mean = Block(MEAN, tuple(mean_of(ranks, column, link, job, rates) for column in columns))
    known = {figure.name for figures in mean.phases for figure in figures if figure.gbps is not None}
    names = tuple(name for name in NAMES[link] if name in known) or NAMES[link]
    return Chart(link, phases, (mean, *told), names, rates.of(link))


def settled_state(
    snapshot: RunSnapshot, state: BandwidthState, rates: LineRates, now_s: float
) -> BandwidthState:
    """The same choices with an axis that holds both phases' figures and the line rate; it stands still for a second."""
    shown = chart(snapshot, state, rates, both_phases=True)
    most = max((figure.gbps or 0.0 for figure in shown.known), default=0.0)
    top = max(most, shown.line_gbps or 0.0) or 1.0
    before = state.axis if state.axis_of == shown.link else None
    return replace(state, axis=settled(before, 0.0, top, now_s), axis_of=shown.link)
