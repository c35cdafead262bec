"""Questions with a few answers, each under a key, in a box over the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import ModalScreen

from morimon.draw.line import Line, Run
from morimon.draw.page import Page, Spot
from morimon.tui.messages import RoomChanged, SpotClicked
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
    ChoiceDialog LinesView { background: $surface; }
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
