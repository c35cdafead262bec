"""Questions with a few answers, each under a key, in a box over the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import ModalScreen

from morimon.draw.line import Line, Run, width_of
from morimon.draw.page import Lines, Page
from morimon.tui.messages import RoomChanged, RowClicked
from morimon.tui.themes import Palette
from morimon.tui.widgets.lines import LinesView


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer: the key that gives it, what it says, and the value that comes back."""

    key: str
    text: str
    value: str


class ChoiceDialog(ModalScreen[str]):
    """Asks one question; comes back with the value of the choice, or "" for none.

    An answer has a key of its own; up and down with Enter, or a click, give it as well.
    """

    CSS = """
    ChoiceDialog { align: center middle; }
    ChoiceDialog LinesView { background: $surface; }
    ChoiceDialog Container { width: auto; height: auto; border: round $primary; background: $surface; padding: 1 2; }
    """

    def __init__(self, question: str, choices: Sequence[Choice], palette: Palette) -> None:
        super().__init__()
        self._choices = (*choices, Choice("escape", "stay here", ""))
        self._at = 0
        self._head: tuple[Line, ...] = ((Run(question, "title"),), ())
        self._palette = palette

    def compose(self) -> ComposeResult:
        """The question and its answers."""
        rows = [self._row(choice) for choice in self._choices]
        view = LinesView(self._palette)
        view.styles.width = max(width_of(row) for row in (*self._head, *rows)) + 1
        view.styles.height = len(self._head) + len(rows)
        with Container():
            yield view

    @staticmethod
    def _row(choice: Choice) -> Line:
        key = "esc" if choice.key == "escape" else choice.key
        return (Run(f"{key:>5} ", "key"), Run(f" {choice.text}"))

    @on(RoomChanged)
    def _show(self) -> None:
        rows = Lines([self._row(choice) for choice in self._choices])
        self.query_one(LinesView).show(Page(self._head, rows, cursor=self._at))

    @on(RowClicked)
    def _clicked(self, message: RowClicked) -> None:
        self._answer(self._choices[message.row])

    def _answer(self, choice: Choice) -> None:
        """Give this answer; keys that were typed behind it have come too late."""
        if self.is_current:
            self.dismiss(choice.value)

    def on_key(self, event: events.Key) -> None:
        """A key gives its answer or moves between the answers; every other key does nothing."""
        by = {"up": -1, "k": -1, "down": 1, "j": 1}.get(event.key, 0)
        own = [choice for choice in self._choices if choice.key in (event.key, event.character)]
        if own or event.key == "enter":
            event.stop()
            self._answer(own[0] if own else self._choices[self._at])
        elif by:
            event.stop()
            self._at = (self._at + by) % len(self._choices)
            self._show()
