"""What the Bandwidth screen shows, as values: the figures of the chosen ranks and their mean, over one axis."""

from __future__ import annotations

from dataclasses import dataclass, replace

from morimon.draw.axis import RESCALE_S, Axis, settled
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
    """What the person at the screen chose; settled, also the figures of both phases and the axis that must not jump."""

    phase: Phase = "dispatch"
    link: Link | None = None
    """None: RDMA where the job runs on several nodes, else XGMI/NVL."""
    rank: int = MEAN
    name: str = ""
    """The figure under the cursor; empty: the first one."""
    filter: RankFilter = EVERY_RANK
    both: Chart | None = None
    axis: Axis | None = None
    axis_of: Link | None = None

    def is_due(self, now_s: float) -> bool:
        """Whether the axis may change again."""
        return self.axis is not None and now_s - self.axis.set_s >= RESCALE_S

    def chart(self, *, both_phases: bool) -> Chart:
        """The figures of a settled state: of both phases, or of the chosen one."""
        if self.both is None:
            raise ValueError("only settled_state makes figures")
        return self.both if both_phases else self.both.only(self.phase)

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

    def only(self, phase: Phase) -> Chart:
        """The same of one phase."""
        at = self.phases.index(phase)
        blocks = tuple(Block(block.rank, (block.phases[at],)) for block in self.blocks)
        return Chart(self.link, (phase,), blocks, _names(blocks, self.link), self.line_gbps)

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


def chart(snapshot: RunSnapshot, state: BandwidthState, rates: LineRates) -> Chart:
    """The figures of the chosen ranks in both phases; nothing at all for RDMA on one node."""
    link = state.link_on(snapshot)
    job = Job.of(snapshot.config)
    ranks = [rank for rank in snapshot.ranks if state.filter.keeps(rank)]
    if link == "rdma" and not snapshot.crosses_nodes:
        ranks = []
    told = [
        Block(rank.rank, tuple(figures_of(rank, phase, link, job, rates) for phase in PHASES))
        for rank in ranks
    ]
    if not told:
        return Chart(link, PHASES, (), NAMES[link], rates.of(link))
    columns = zip(*(block.phases for block in told), strict=True)
    mean = Block(MEAN, tuple(mean_of(ranks, column, link, job, rates) for column in columns))
    blocks = (mean, *told)
    return Chart(link, PHASES, blocks, _names(blocks, link), rates.of(link))


def _names(blocks: tuple[Block, ...], link: Link) -> tuple[str, ...]:
    """The figures that their mean, the first block, knows; all where it knows none.

    Claims that are 0 for every rank tell nothing: the job cut them off.
    """
    mean = [figure for figures in blocks[0].phases for figure in figures] if blocks else []
    known = {one.name for one in mean if one.gbps is not None and (one.gbps > 0 or one.name != "claimed")}
    return tuple(name for name in NAMES[link] if name in known) or NAMES[link]


def settled_state(
    snapshot: RunSnapshot, state: BandwidthState, rates: LineRates, now_s: float
) -> BandwidthState:
    """The same choices with both phases' figures, and an axis that holds them and the line rate.

    The axis stands still for a second.
    """
    shown = chart(snapshot, state, rates)
    most = max((figure.gbps or 0.0 for figure in shown.known), default=0.0)
    top = max(most, shown.line_gbps or 0.0) or 1.0
    before = state.axis if state.axis_of == shown.link else None
    return replace(state, both=shown, axis=settled(before, 0.0, top, now_s), axis_of=shown.link)
