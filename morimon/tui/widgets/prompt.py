"""A line to type in, at the bottom of a screen: filters, searches, places to go to."""

from __future__ import annotations

from textual import events
from textual.widgets import Input

from morimon.tui.messages import Entered, Typed


class Prompt(Input):
    """Tells its screen what is typed (`Typed`) and what was entered or given up (`Entered`)."""

    DEFAULT_CSS = """
    Prompt { dock: bottom; height: 1; border: none; padding: 0 1; background: $panel; color: $foreground; }
    Prompt:focus { border: none; }
    """

    def __init__(self, purpose: str, value: str, hint: str) -> None:
        super().__init__(value, placeholder=hint, compact=True)
        self.purpose = purpose

    def on_input_changed(self, event: Input.Changed) -> None:
        """Pass on what is typed."""
        event.stop()
        self.post_message(Typed(self.purpose, event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Pass on what was entered."""
        event.stop()
        self.post_message(Entered(self.purpose, event.value))

    def on_key(self, event: events.Key) -> None:
        """Escape gives up."""
        if event.key == "escape":
            event.stop()
            event.prevent_default()
            self.post_message(Entered(self.purpose, None))
