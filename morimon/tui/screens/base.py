"""The base of every screen: one page of lines, the job's state on top, the keys at the bottom.

A screen says what its page is (`page`) and what its actions do; it reads snapshots from the app and never touches a
widget but through `repaint`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.screen import Screen

from morimon.draw.line import Line, Run
from morimon.draw.page import Frame, Page
from morimon.draw.sheet import Sheet
from morimon.tui.bindings import key_line
from morimon.tui.keys import Key
from morimon.tui.messages import Entered, RoomChanged, RowClicked, SpotClicked, Typed, Wheel
from morimon.tui.owner import Owner
from morimon.tui.widgets.lines import LinesView
from morimon.views.status import replay_line, state_lines

LEAST_WIDTH, LEAST_HEIGHT = 60, 15


class DataScreen(Screen[None], inherit_bindings=False):
    """A screen of one page. Subclasses give NAME and `page`, and BINDINGS by `bindings_of("view", NAME)`."""

    NAME: ClassVar[str] = ""
    FILTER_HINT: ClassVar[str] = ""
    """What may be typed after `/`; empty: this screen has no filter."""
    FILTER_LABEL: ClassVar[str] = "filter"
    """What `/` does, in a word."""
    LEGEND: ClassVar[Sequence[tuple[str, str]]] = ()
    """(word on the screen, what it means), for the help screen."""

    DEFAULT_CSS = "DataScreen { layout: vertical; overflow: hidden; background: $background; }"

    def __init__(self) -> None:
        super().__init__()
        self._seen: object = None

    @property
    def owner(self) -> Owner:
        """The app, as far as screens know it."""
        return cast("Owner", self.app)

    @property
    def view(self) -> LinesView:
        """The widget that shows the page."""
        return self.query_one(LinesView)

    def compose(self) -> ComposeResult:
        """One widget."""
        yield LinesView(self.owner.palette)

    # What a screen must or may say.

    def page(self, frame: Frame) -> Page:
        """The screen's own part of the page, without state and keys."""
        raise NotImplementedError

    def version(self) -> object:
        """What the page depends on besides the person's choices: while it is equal, nothing is built or painted."""
        return (self.owner.snapshot.version, self.owner.viewing)

    def sheet(self) -> Sheet | None:
        """The visible table as data, where there is one."""
        return None

    def status(self, frame: Frame) -> tuple[Line, ...]:
        """The lines on top: the state of the run."""
        return state_lines(self.owner.snapshot, self.owner.viewing, frame)

    def move_cursor(self, row: int) -> None:
        """Put the cursor on this row of the body; screens without a cursor scroll."""
        self.view.scroll_rows(row - self.view.top)

    def filter_text(self) -> str:
        """The filter in force, as it was typed."""
        return ""

    def set_filter(self, text: str) -> str | None:
        """Filter by this text; returns a sentence where it cannot be read."""
        return None

    def keys(self, *scopes: str) -> list[Key]:
        """The keys of these scopes that do something here, in this screen's words."""
        return [
            replace(key, label=self.FILTER_LABEL) if key.id == "filter" else key
            for key in self.owner.keys_of(*scopes)
            if key.id != "filter" or self.FILTER_HINT
        ]

    # Painting.

    def tick(self) -> None:
        """Called by the app's timer while this screen is in sight: repaints where something changed.

        Text that the mouse has selected stands still until it is copied or let go.
        """
        if not self.selections and self.version() != self._seen:
            self.repaint()

    def repaint(self) -> int:
        """Build the page and show it; returns how many rows changed."""
        self._seen = self.version()
        return self.view.show(self._whole_page())

    def _whole_page(self) -> Page:
        size, glyphs = self.view.size, self.owner.glyphs
        frame = Frame(size.width, size.height, glyphs)
        if size.width < LEAST_WIDTH or size.height < LEAST_HEIGHT:
            return _too_small(frame)
        keys = self.keys(*self.owner.scopes_of(self.NAME))
        bottom, bottom_spots = key_line(self.NAME, keys, frame, self.owner.screens)
        foot: tuple[Line, ...] = (bottom,)
        if self.owner.viewing.mode == "replay":
            foot = (replay_line(self.owner.viewing, frame), bottom)
        top = self.status(frame)
        own = self.page(replace(frame, height=size.height - len(top) - len(foot)))
        spots = [
            spot._replace(line=spot.line + len(top))
            if spot.line >= 0
            else spot._replace(line=spot.line - len(foot))
            for spot in own.spots
        ]
        return Page((*top, *own.head), own.body, (*own.foot, *foot), own.cursor, (*spots, *bottom_spots))

    def on_screen_resume(self) -> None:
        """Catch up with what happened while another screen was in sight."""
        self.tick()

    def on_text_selected(self) -> None:
        """Say what one can do with it."""
        self.owner.say("selected: y copies it, escape lets it go; until then the screen stands still")

    @on(RoomChanged)
    def _room_changed(self) -> None:
        self.repaint()

    # Moving about.

    def action_move(self, rows: int) -> None:
        """Move the cursor, or the body where there is no cursor."""
        page = self.view.page
        at = page.cursor if page.cursor is not None else self.view.top
        self._move_to(at + rows)

    def action_move_page(self, pages: int) -> None:
        """Move by what is in sight."""
        self.action_move(pages * max(self.view.body_height - 1, 1))

    def action_move_to(self, row: int) -> None:
        """Move to a row; -1 is the last."""
        self._move_to(row if row >= 0 else len(self.view.page.body) - 1)

    def _move_to(self, row: int) -> None:
        last = len(self.view.page.body) - 1
        if last >= 0:
            self.move_cursor(min(max(row, 0), last))

    @on(RowClicked)
    def _row_clicked(self, message: RowClicked) -> None:
        self._move_to(message.row)

    @on(Wheel)
    def _wheel(self, message: Wheel) -> None:
        self.action_move(message.rows)

    @on(SpotClicked)
    async def _spot_clicked(self, message: SpotClicked) -> None:
        await self.run_action(message.action)

    # Typing.

    async def ask(self, purpose: str, value: str, hint: str) -> None:
        """Open the prompt; it has the keys when this returns, so that what is typed at once is not lost."""
        from morimon.tui.widgets.prompt import Prompt

        await self.query(Prompt).remove()
        prompt = Prompt(purpose, value, hint)
        await self.mount(prompt)
        self.set_focus(prompt)

    async def action_filter(self) -> None:
        """Ask for a filter."""
        if self.FILTER_HINT:
            await self.ask("filter", self.filter_text(), self.FILTER_HINT)

    def action_back(self) -> None:
        """Let a selection go, or clear the filter."""
        if self.selections:
            self.clear_selection()
            self.tick()
        elif self.filter_text():
            self.set_filter("")
            self.repaint()

    @on(Typed)
    def _typed(self, message: Typed) -> None:
        if message.purpose == "filter" and self.set_filter(message.text) is None:
            self.repaint()

    @on(Entered)
    def _entered(self, message: Entered) -> None:
        problem = None
        if message.purpose == "filter":
            problem = self.set_filter(message.text or "")
        elif message.text is not None:
            problem = self.owner.entered(message.purpose, message.text)
        if problem is not None:
            self.owner.say(problem, "warning")
            return
        self.query("Prompt").remove()
        self.repaint()


def _too_small(frame: Frame) -> Page:
    text = f"morimon needs {LEAST_WIDTH}{frame.glyphs.times}{LEAST_HEIGHT} cells; here are {frame.width}{frame.glyphs.times}{frame.height}"
    lines = [text[at : at + max(frame.width, 1)] for at in range(0, len(text), max(frame.width, 1))]
    return Page(tuple((Run(line),) for line in lines))
