"""The Ranks screen: the table of ranks with a cursor, sorting, a filter and the graph of one rank."""

from __future__ import annotations

import time
from dataclasses import replace

from morimon.draw.page import Frame, Page
from morimon.draw.sheet import Sheet
from morimon.tui.bindings import bindings_of
from morimon.tui.screens.base import DataScreen
from morimon.views.rank_fields import FIELDS
from morimon.views.rank_filter import FilterError, parse_filter
from morimon.views.ranks import RanksState, build, chosen_ranks, selection, settled_state, sheet


class RanksScreen(DataScreen):
    """Who does what, and who is late."""

    NAME = "ranks"
    FILTER_HINT = "0-7,12   late   combine   dispatch>1000   recv<26000"
    BINDINGS = bindings_of("move", "replay", "ranks")

    def __init__(self) -> None:
        super().__init__()
        self.state = RanksState()

    def page(self, frame: Frame) -> Page:
        """The view's page, with axes that stand still."""
        self.state = settled_state(self.owner.snapshot, self.state, time.monotonic())
        return build(self.owner.snapshot, frame, self.state)

    def sheet(self) -> Sheet:
        """The visible ranks with all their figures."""
        return sheet(self.owner.snapshot, self.state)

    def move_cursor(self, row: int) -> None:
        """Select the rank of this row; the person's choice ends following."""
        ranks = chosen_ranks(self.owner.snapshot, self.state)
        self._choose(selected=ranks[row].rank, follow=False)

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

    def action_sort(self, key: str) -> None:
        """Sort by a column; again, and the order turns round."""
        self._choose(sort=key, descending=self.state.sort == key and not self.state.descending)

    def action_sort_next(self, by: int) -> None:
        """Sort by the next column of the table."""
        keys = list(FIELDS)
        self._choose(sort=keys[(keys.index(self.state.sort) + by) % len(keys)], descending=False)

    def action_reverse(self) -> None:
        """Turn the order round."""
        self._choose(descending=not self.state.descending)

    def action_follow(self) -> None:
        """Follow the worst rank, or stay with the one it led to."""
        chosen = selection(self.owner.snapshot, self.state)
        self._choose(follow=not self.state.follow, selected=chosen)

    def action_figure(self) -> None:
        """Latency or bandwidth in the graph."""
        figure = "bandwidth" if self.state.figure == "latency" else "latency"
        self._choose(figure=figure, axes=(None, None))

    def action_open_log(self) -> None:
        """The log of the rank under the cursor."""
        self.owner.open_log(selection(self.owner.snapshot, self.state))

    def _choose(self, **choices: object) -> None:
        self.state = replace(self.state, **choices)  # type: ignore[arg-type] # names and types are RanksState's own
        self.repaint()
