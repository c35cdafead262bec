"""The Traffic screen: the matrix of senders and receivers under a cursor, and the load of experts."""

from __future__ import annotations

from dataclasses import replace

from morimon.draw.page import Frame, Page
from morimon.draw.sheet import Sheet
from morimon.tui.bindings import bindings_of
from morimon.tui.screens.base import DataScreen
from morimon.views.traffic import LEGEND, TrafficRows, TrafficState, build, cursor_of, settled_state, sheet


class TrafficScreen(DataScreen):
    """Who sends how much to whom."""

    NAME = "traffic"
    LEGEND = LEGEND
    BINDINGS = bindings_of("view", "traffic")

    def __init__(self) -> None:
        super().__init__()
        self.state = TrafficState()

    def page(self, frame: Frame) -> Page:
        """The view's page."""
        self.state = settled_state(self.owner.snapshot, self.state)
        return build(self.owner.snapshot, frame, self.state)

    def sheet(self) -> Sheet:
        """The whole matrix."""
        return sheet(self.owner.snapshot, self.state)

    def move_cursor(self, row: int) -> None:
        """Choose the sender of a row; a border between nodes is passed over."""
        body, at = self.view.page.body, self.view.page.cursor or 0
        if not isinstance(body, TrafficRows):
            return
        row = min(row, len(body.entries) - 1)
        entry = body.entries[row]
        if entry is None:
            entry = body.entries[row + 1 if row > at else row - 1]
        if entry is not None:
            self._choose(entry * body.grid.per, cursor_of(self.state)[1])

    def action_column(self, by: int) -> None:
        """The next receiver, or the next few where a cell stands for several."""
        if isinstance(body := self.view.page.body, TrafficRows):
            sender, _ = cursor_of(self.state)
            column = min(max(body.cursor[1] + by, 0), len(body.grid.values) - 1)
            self._choose(sender, column * body.grid.per)

    def action_node(self, by: int) -> None:
        """The same receiver on the next node."""
        if self.state.matrix is None:
            return
        gpus = self.state.matrix.gpu_per_node or self.state.matrix.world_size
        sender, receiver = cursor_of(self.state)
        if 0 <= (moved := receiver + by * gpus) < self.state.matrix.world_size:
            self._choose(sender, moved)

    def action_exact(self) -> None:
        """Single ranks with their counts, or all of the matrix at once."""
        self.state = replace(self.state, exact=not self.state.exact)
        self.repaint()

    async def action_open_log(self) -> None:
        """The log of the sender under the cursor."""
        await self.owner.open_log(cursor_of(self.state)[0])

    def _choose(self, sender: int, receiver: int) -> None:
        self.state = replace(self.state, sender=sender, receiver=receiver)
        self.repaint()
