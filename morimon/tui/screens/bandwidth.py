"""The Bandwidth screen: claimed, algo, physical and wire of every rank against its line."""

from __future__ import annotations

import time
from dataclasses import replace

from morimon.draw.page import Frame, Page
from morimon.draw.sheet import Sheet
from morimon.tui.bindings import bindings_of
from morimon.tui.screens.base import DataScreen
from morimon.views.bandwidth import LEGEND, BandwidthRows, build, sheet
from morimon.views.bandwidth_chart import PHASES, BandwidthState, settled_state
from morimon.views.rank_filter import FilterError, parse_filter


class BandwidthScreen(DataScreen):
    """What the links carry, and what they cannot."""

    NAME = "bandwidth"
    LEGEND = LEGEND
    FILTER_HINT = "0-7,12   late   combine   dispatch>1000   recv<26000"
    BINDINGS = bindings_of("view", "bandwidth")

    def __init__(self) -> None:
        super().__init__()
        self.state = BandwidthState()

    def page(self, frame: Frame) -> Page:
        """The view's page, with an axis that stands still."""
        snapshot, rates = self.owner.snapshot, self.owner.options.line_rates
        self.state = settled_state(snapshot, self.state, rates, time.monotonic())
        return build(snapshot, frame, self.state)

    def version(self) -> object:
        """An axis that was held still follows the figures when it may, also where these have come to rest."""
        return (super().version(), self.state.is_due(time.monotonic()))

    def sheet(self) -> Sheet:
        """Both links and phases of the visible ranks."""
        return sheet(self.owner.snapshot, self.state, self.owner.options.line_rates)

    def move_cursor(self, row: int) -> None:
        """Choose the figure of a row."""
        if isinstance(body := self.view.page.body, BandwidthRows):
            rank, name = body.chart.at(row)
            self._choose(replace(self.state, rank=rank, name=name))

    def filter_text(self) -> str:
        """The filter as it was typed."""
        return self.state.filter.text

    def set_filter(self, text: str) -> str | None:
        """Keep only ranks that the filter keeps."""
        try:
            self.state = replace(self.state, filter=parse_filter(text))
        except FilterError as error:
            return str(error)
        return None

    def action_phase(self) -> None:
        """Dispatch or combine."""
        self._choose(replace(self.state, phase=PHASES[1 - PHASES.index(self.state.phase)]))

    def action_link(self) -> None:
        """RDMA or XGMI/NVL."""
        link = self.state.link_on(self.owner.snapshot)
        self._choose(replace(self.state, link="xgmi" if link == "rdma" else "rdma", name=""))

    def action_rank(self, by: int) -> None:
        """The same figure of a neighbouring rank; before the first one the mean."""
        body = self.view.page.body
        ranks = [block.rank for block in body.chart.blocks] if isinstance(body, BandwidthRows) else []
        if ranks:
            at = ranks.index(self.state.rank) if self.state.rank in ranks else 0
            self._choose(replace(self.state, rank=ranks[min(max(at + by, 0), len(ranks) - 1)]))

    async def action_open_log(self) -> None:
        """The log of the rank under the cursor; of all where that is the mean."""
        await self.owner.open_log(self.state.rank if self.state.rank >= 0 else None)

    def _choose(self, state: BandwidthState) -> None:
        self.state = state
        self.repaint()
