"""Questions with a few answers, each under a key, in a box over the screen; and the help screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import ModalScreen

from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Run
from morimon.draw.page import Lines, Page, Spot
from morimon.draw.text import cells
from morimon.tui.bindings import bindings_of
from morimon.tui.keys import Key, shown
from morimon.tui.messages import RoomChanged, SpotClicked, Wheel
from morimon.tui.themes import Palette
from morimon.tui.widgets.lines import LinesView


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer: the key that gives it, what it says, and the value that comes back."""

    key: str
    text: str
    value: str


class ChoiceDialog(ModalScreen[str]):
    """Asks one question; comes back with the value of the choice, or "" for none."""

    CSS = """
    ChoiceDialog { align: center middle; }
    ChoiceDialog Container { width: auto; height: auto; border: round $primary; background: $surface; padding: 1 2; }
    """

    def __init__(self, question: str, choices: Sequence[Choice], palette: Palette) -> None:
        super().__init__()
        self._choices = (*choices, Choice("escape", "stay here", ""))
        self._question = question
        self._palette = palette

    def compose(self) -> ComposeResult:
        """The question and its answers."""
        rows: list[Line] = [(Run(self._question, "title"),), ()]
        spots = []
        for choice in self._choices:
            key = "esc" if choice.key == "escape" else choice.key
            spots.append(Spot(len(rows), 0, 80, f"choose({choice.value!r})"))
            rows.append((Run(f"{key:>5} ", "key"), Run(f" {choice.text}")))
        view = LinesView(self._palette)
        view.styles.width = max(sum(run.width for run in row) for row in rows) + 1
        view.styles.height = len(rows)
        self._page = Page(tuple(rows), spots=tuple(spots))
        with Container():
            yield view

    @on(RoomChanged)
    def _room_changed(self) -> None:
        self.query_one(LinesView).show(self._page)

    @on(SpotClicked)
    async def _clicked(self, message: SpotClicked) -> None:
        await self.run_action(message.action)

    def action_choose(self, value: str) -> None:
        """Give this answer."""
        self.dismiss(value)

    def on_key(self, event: events.Key) -> None:
        """A key gives its answer; every other key does nothing."""
        for choice in self._choices:
            if event.key == choice.key or event.character == choice.key:
                event.stop()
                self.dismiss(choice.value)
                return


class HelpScreen(ModalScreen[None], inherit_bindings=False):
    """All keys that mean something on the screen below, made from the registry."""

    BINDINGS = bindings_of("view")
    CSS = "HelpScreen { background: $background; }"

    def __init__(
        self, title: str, groups: Sequence[tuple[str, Sequence[Key]]], glyphs: Glyphs, palette: Palette
    ) -> None:
        super().__init__()
        self._title, self._groups, self._glyphs, self._palette = title, groups, glyphs, palette

    def compose(self) -> ComposeResult:
        """One widget."""
        yield LinesView(self._palette)

    def page(self) -> Page:
        """Titles and keys, one a line."""
        rows: list[Line] = []
        for title, keys in self._groups:
            rows += [(), (Run(f" {title}", "title"),)]
            for key in keys:
                names = "  ".join(
                    shown(Key(key.id, name, "", "", ""), self._glyphs) for name in key.keys.split(",")
                )
                rows.append(
                    (
                        Run(f"   {names}{' ' * max(18 - cells(names), 1)}", "key"),
                        Run(key.help),
                        Run(f"  {key.id}", "dim"),
                    )
                )
        head: tuple[Line, ...] = ((Run(f" {self._title}", "heading"),),)
        foot: tuple[Line, ...] = (
            (
                Run(" esc", "key"),
                Run(" close   ", "dim"),
                Run(self._glyphs.up_down, "key"),
                Run(" scroll", "dim"),
            ),
        )
        return Page(head, Lines(rows), foot)

    @on(RoomChanged)
    def _room_changed(self) -> None:
        self.query_one(LinesView).show(self.page())

    @on(Wheel)
    def _wheel(self, message: Wheel) -> None:
        self.action_move(message.rows)

    def action_move(self, rows: int) -> None:
        """Scroll."""
        self.query_one(LinesView).scroll_rows(rows)

    def action_move_page(self, pages: int) -> None:
        """Scroll by a page."""
        view = self.query_one(LinesView)
        view.scroll_rows(pages * max(view.body_height - 1, 1))

    def action_move_to(self, row: int) -> None:
        """Scroll to the first or last line."""
        view = self.query_one(LinesView)
        view.scroll_rows(-view.top if row == 0 else len(view.page.body))

    def on_key(self, event: events.Key) -> None:
        """Escape, q or ? closes."""
        if event.key in ("escape", "q", "question_mark", "f1", "ctrl+c"):
            event.stop()
            self.dismiss(None)
