"""The System screen: what the ranks' processes take of the machine."""

from __future__ import annotations

from morimon.draw.page import Frame, Page
from morimon.draw.sheet import Sheet
from morimon.store.snapshot import RankSnapshot
from morimon.tui.bindings import bindings_of
from morimon.tui.screens.rank_table import RankTableScreen
from morimon.views.system import LEGEND, SORTS, SystemState, build, chosen_ranks, sheet


class SystemScreen(RankTableScreen):
    """CPU, memory, threads; counters and notes."""

    NAME = "system"
    LEGEND = LEGEND
    SORTS = SORTS
    BINDINGS = bindings_of("view", "system")

    def __init__(self) -> None:
        super().__init__()
        self.state = SystemState()

    def page(self, frame: Frame) -> Page:
        """The view's page."""
        return build(self.owner.snapshot, frame, self.state)

    def sheet(self) -> Sheet:
        """The visible processes."""
        return sheet(self.owner.snapshot, self.state)

    def ranks(self) -> list[RankSnapshot]:
        """Filtered and sorted."""
        return chosen_ranks(self.owner.snapshot, self.state)
