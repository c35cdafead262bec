"""The Log screen: follows the newest line or stays, shows all ranks or one, searches."""

from __future__ import annotations

import time
from dataclasses import replace

from morimon.draw.page import Frame, Page
from morimon.draw.sheet import Sheet
from morimon.feeds.log_text import LogText
from morimon.tui.bindings import bindings_of
from morimon.tui.screens.base import DataScreen
from morimon.views.log import LEGEND, LogState, build, matcher, panned_to, room_for_text
from morimon.views.log_rows import LEVELS, LogChoice, LogRows

SEARCH_S = 0.3
"""Longest search for one key press; the next press goes on from there."""
SHEET_ROWS = 10_000


class LogScreen(DataScreen):
    """What the ranks print."""

    NAME = "log"
    LEGEND = LEGEND
    FILTER_LABEL = "search"
    FILTER_HINT = "text to find"
    BINDINGS = bindings_of("view", "log")

    def __init__(self) -> None:
        super().__init__()
        self.state = LogState()
        self._rows = LogRows(self.state.choice)
        self._text: LogText | None = None

    @property
    def text(self) -> LogText:
        """The run folder's output."""
        if self._text is None:
            self._text = LogText(self.owner.folder)
        return self._text

    def page(self, frame: Frame) -> Page:
        """The view's page."""
        if self._rows.choice != self.state.choice:
            self._rows = LogRows(self.state.choice)
        self._rows.extend(self.owner.snapshot.logs)
        if self.state.follow:
            self.state = replace(self.state, cursor=max(len(self._rows) - 1, 0))
        return build(self.owner.snapshot, frame, self.state, self._rows, self.text)

    def sheet(self) -> Sheet:
        """The newest of the chosen lines."""
        rows = []
        for row in range(max(len(self._rows) - SHEET_ROWS, 0), len(self._rows)):
            ref, _ = self._rows.locate(row)
            rows.append([ref.rank, ref.stream, ref.level, self._line(row)])
        return Sheet(["rank", "stream", "level", "text"], rows)

    def choose_rank(self, rank: int | None) -> None:
        """Show one rank's lines, or all."""
        self._choose(replace(self.state, choice=replace(self.state.choice, rank=rank), follow=True))

    def move_cursor(self, row: int) -> None:
        """Stay at a line; at the last one, follow."""
        last = len(self._rows) - 1
        self._choose(replace(self.state, cursor=max(min(row, last), 0), follow=row >= last))

    def filter_text(self) -> str:
        """The text that is searched."""
        return self.state.search

    def set_filter(self, text: str) -> str | None:
        """Search for this text; the view stays where it is until n or N."""
        self.state = replace(self.state, search=text)
        return None

    def action_follow(self) -> None:
        """Follow or stay."""
        self._choose(replace(self.state, follow=not self.state.follow))

    def action_level(self) -> None:
        """The next level."""
        level = LEVELS[(LEVELS.index(self.state.choice.level) + 1) % len(LEVELS)]
        self._choose(replace(self.state, choice=replace(self.state.choice, level=level), follow=True))

    def action_rank(self, by: int) -> None:
        """The next rank; after the last one, all."""
        ranks: list[int | None] = [None, *(rank.rank for rank in self.owner.snapshot.ranks)]
        at = ranks.index(self.state.choice.rank) if self.state.choice.rank in ranks else 0
        self.choose_rank(ranks[(at + by) % len(ranks)])

    def action_all_ranks(self) -> None:
        """All ranks and levels."""
        self._choose(replace(self.state, choice=LogChoice(), follow=True))

    def action_pan(self, cells: int) -> None:
        """Long lines: move sideways."""
        self._choose(replace(self.state, pan=max(self.state.pan + cells, 0)))

    def action_line_start(self) -> None:
        """Long lines: back to where they begin."""
        self._choose(replace(self.state, pan=0))

    def action_line_end(self) -> None:
        """Long lines: to the end of the one under the cursor."""
        if len(self._rows):
            text = self._line(self.state.cursor)
            self._choose(replace(self.state, pan=self._panned(text, (len(text), len(text)))))

    def action_back(self) -> None:
        """Let a selection or the search go; then back to where lines begin."""
        if self.selections or self.state.search or not self.state.pan:
            super().action_back()
        else:
            self.action_line_start()

    async def action_match(self, by: int) -> None:
        """To the next line that holds the searched text."""
        if not self.state.search:
            await self.action_filter()
            return
        find, until = matcher(self.state.search), time.monotonic() + SEARCH_S
        row = self.state.cursor + by
        while 0 <= row < len(self._rows):
            if spans := find(text := self._line(row)):
                pan = self._panned(text, spans[0])
                self._choose(replace(self.state, cursor=row, follow=False, pan=pan))
                return
            if time.monotonic() > until:
                self.owner.say(f"nothing up to line {row + 1} yet; again to go on")
                self._choose(replace(self.state, cursor=row, follow=False))
                return
            row += by
        self.owner.say(f"no further line holds '{self.state.search}'")

    def _panned(self, text: str, span: tuple[int, int]) -> int:
        room = room_for_text(self.owner.snapshot, self.view.size.width)
        return panned_to(text, span, self.state.pan, room)

    def _line(self, row: int) -> str:
        ref, at = self._rows.locate(row)
        lines = self.text.lines(ref)
        return lines[at] if at < len(lines) else ""

    def _choose(self, state: LogState) -> None:
        self.state = state
        self.repaint()
