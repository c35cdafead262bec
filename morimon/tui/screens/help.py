"""The help screen: what the columns of the screen below mean, and its keys, made from the registry."""

from __future__ import annotations

from textwrap import wrap

from textual import events, on
from textual.app import ComposeResult
from textual.screen import ModalScreen

from morimon.draw.line import Line, Run
from morimon.draw.page import Frame, Lines, Page
from morimon.draw.text import cells, padded
from morimon.tui.bindings import bindings_of
from morimon.tui.keys import Key, shown
from morimon.tui.messages import RoomChanged, Wheel
from morimon.tui.owner import Owner
from morimon.tui.screens import SCREENS
from morimon.tui.screens.base import DataScreen
from morimon.tui.widgets.lines import LinesView

_SCOPE_TITLES = {
    "app": "Everywhere",
    "screens": "Screens",
    "view": "Moving and choosing",
    "replay": "Replay",
} | {screen.name: screen.title for screen in SCREENS}
_TERM_COLUMNS = 18


class HelpScreen(ModalScreen[None], inherit_bindings=False):
    """Explains one screen; closes with Escape, q or ?."""

    BINDINGS = bindings_of("view")
    CSS = "HelpScreen { background: $background; }"

    def __init__(self, explained: DataScreen, owner: Owner) -> None:
        super().__init__()
        self._explained = explained
        self._owner = owner

    def compose(self) -> ComposeResult:
        """One widget."""
        yield LinesView(self._owner.palette)

    @property
    def view(self) -> LinesView:
        """The widget."""
        return self.query_one(LinesView)

    def page(self, frame: Frame) -> Page:
        """Legend and keys, a line each."""
        owner, glyphs = self._owner, frame.glyphs
        rows: list[Line] = []
        if self._explained.LEGEND:
            rows += [(), (Run(f" {_SCOPE_TITLES[self._explained.NAME]}: what is shown", "title"),)]
            for term, meaning in self._explained.LEGEND:
                rows += _wrapped(term, meaning, frame)
        for scope in owner.scopes_of(self._explained.NAME):
            rows += [(), (Run(f" {_SCOPE_TITLES[scope]}: keys", "title"),)]
            for key in self._explained.keys(scope):
                names = (shown(Key(key.id, name, "", "", ""), glyphs) for name in key.keys.split(","))
                rows.append(_key_row("  ".join(names), key, frame))
        title = f" morimon {glyphs.dot} help; the word behind a key is its name in the settings' [keys]"
        foot = (
            Run(" esc", "key"),
            Run(" close   ", "dim"),
            Run(glyphs.up_down, "key"),
            Run(" scroll", "dim"),
        )
        return Page((frame.fit((Run(title, "heading"),)),), Lines(rows), (foot,))

    @on(RoomChanged)
    def _room_changed(self) -> None:
        size = self.view.size
        self.view.show(self.page(Frame(size.width, size.height, self._owner.glyphs)))

    @on(Wheel)
    def _wheel(self, message: Wheel) -> None:
        self.action_move(message.rows)

    def action_move(self, rows: int) -> None:
        """Scroll."""
        self.view.scroll_rows(rows)

    def action_move_page(self, pages: int) -> None:
        """Scroll by a page."""
        self.view.scroll_rows(pages * max(self.view.body_height - 1, 1))

    def action_move_to(self, row: int) -> None:
        """Scroll to the first or last line."""
        self.view.scroll_rows(-self.view.top if row == 0 else len(self.view.page.body))

    def on_key(self, event: events.Key) -> None:
        """Escape, q or ? closes."""
        if event.key in ("escape", "q", "question_mark", "f1", "ctrl+c"):
            event.stop()
            if self.is_current:  # a key typed behind the one that closed it has come too late
                self.dismiss(None)


def _key_row(names: str, key: Key, frame: Frame) -> Line:
    """Keys, what they do, and the id in the settings at the right end."""
    blanks = " " * max(_TERM_COLUMNS - cells(names), 1)
    gap = " " * max(frame.width - 4 - _TERM_COLUMNS - cells(key.help) - cells(key.id), 2)
    return frame.fit((Run(f"   {names}{blanks}", "key"), Run(key.help), Run(gap + key.id, "dim")))


def _wrapped(term: str, meaning: str, frame: Frame) -> list[Line]:
    """A word and its meaning, in as many lines as that takes."""
    pieces = wrap(meaning, max(frame.width - _TERM_COLUMNS - 5, 20))
    terms = [term, *[""] * (len(pieces) - 1)]
    return [
        frame.fit((Run(f"   {padded(left, _TERM_COLUMNS)} ", "heading"), Run(piece)))
        for left, piece in zip(terms, pieces, strict=True)
    ]
