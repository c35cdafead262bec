"""The Ranks screen: the table of ranks and the graph of the chosen one."""

from __future__ import annotations

import time

from morimon.draw.page import Frame, Page
from morimon.draw.sheet import Sheet
from morimon.store.snapshot import RankSnapshot
from morimon.tui.bindings import bindings_of
from morimon.tui.screens.rank_table import RankTableScreen
from morimon.views.rank_fields import FIELDS
from morimon.views.ranks import LEGEND, RanksState, build, chosen_ranks, settled_state, sheet


class RanksScreen(RankTableScreen):
    """Who does what, and who is late."""

    NAME = "ranks"
    LEGEND = LEGEND
    SORTS = tuple(FIELDS)
    BINDINGS = bindings_of("view", "ranks")

    def __init__(self) -> None:
        super().__init__()
        self.state = RanksState()

    def page(self, frame: Frame) -> Page:
        """The view's page, with axes that stand still."""
        self.state = settled_state(self.owner.snapshot, self.state, time.monotonic())
        return build(self.owner.snapshot, frame, self.state)

    def version(self) -> object:
        """The graph follows the figures at its own, slower pace."""
        return (super().version(), self.state.is_due(self.owner.snapshot, time.monotonic()))

    def sheet(self) -> Sheet:
        """The visible ranks with all their figures."""
        return sheet(self.owner.snapshot, self.state)

    def ranks(self) -> list[RankSnapshot]:
        """Filtered and sorted."""
        return chosen_ranks(self.owner.snapshot, self.state)

    def move_cursor(self, row: int) -> None:
        """Select a rank; that ends following."""
        self.state = self.state.staying()
        super().move_cursor(row)

    def action_follow(self) -> None:
        """Follow the worst rank, or stay with the one it led to."""
        self.choose(follow=not self.state.follow, selected=self.selection())

    def action_figure(self) -> None:
        """Latency or bandwidth in the graph."""
        figure = "bandwidth" if self.state.figure == "latency" else "latency"
        self.choose(figure=figure, axes=(None, None))
