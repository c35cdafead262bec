"""What the screens with a table of ranks share: a cursor, sorting by column, a filter, the way to a rank's log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from morimon.store.snapshot import RankSnapshot
from morimon.tui.screens.base import DataScreen
from morimon.views.rank_filter import FilterError, parse_filter


class RankTableScreen(DataScreen):
    """A screen whose `state` is a frozen dataclass with `selected`, `sort`, `descending` and `filter`."""

    FILTER_HINT = "0-7,12   late   combine   dispatch>1000   recv<26000   cpu>150"
    SORTS: ClassVar[Sequence[str]] = ()
    """Keys of `rank_fields.FIELDS`, in the order in which `s` goes through them."""

    state: Any

    def ranks(self) -> list[RankSnapshot]:
        """The ranks of the table, in its order."""
        raise NotImplementedError

    def selection(self) -> int | None:
        """The rank under the cursor."""
        cursor, ranks = self.view.page.cursor, self.ranks()
        return ranks[cursor].rank if cursor is not None and cursor < len(ranks) else None

    def choose(self, **choices: object) -> None:
        """Change what the person chose, and show it."""
        self.state = replace(self.state, **choices)
        self.repaint()

    def move_cursor(self, row: int) -> None:
        """Select the rank of this row; a row below the last rank is the total."""
        if ranks := self.ranks():
            self.choose(selected=ranks[min(row, len(ranks) - 1)].rank)

    def filter_text(self) -> str:
        """The filter as it was typed."""
        return str(self.state.filter.text)

    def set_filter(self, text: str) -> str | None:
        """Keep only ranks that the filter keeps."""
        try:
            self.state = replace(self.state, filter=parse_filter(text))
        except FilterError as error:
            return str(error)
        return None

    def action_sort(self, key: str) -> None:
        """Sort by a column; again, and the order turns round."""
        self.choose(sort=key, descending=self.state.sort == key and not self.state.descending)

    def action_sort_next(self, by: int) -> None:
        """Sort by the next column."""
        at = self.SORTS.index(self.state.sort)
        self.choose(sort=self.SORTS[(at + by) % len(self.SORTS)], descending=False)

    def action_reverse(self) -> None:
        """Turn the order round."""
        self.choose(descending=not self.state.descending)

    async def action_open_log(self) -> None:
        """The log of the rank under the cursor."""
        await self.owner.open_log(self.selection())
