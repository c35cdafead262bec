"""Everything that widgets tell their screen."""

from __future__ import annotations

from textual.message import Message


class RoomChanged(Message):
    """The lines have more or less room than before: the page must be built anew."""

    def can_replace(self, message: Message) -> bool:
        """A newer one makes a waiting one superfluous."""
        return isinstance(message, RoomChanged)


class RowClicked(Message):
    """A row of the body was clicked."""

    def __init__(self, row: int) -> None:
        super().__init__()
        self.row = row


class SpotClicked(Message):
    """A spot of the head or foot was clicked: `action` as the view named it."""

    def __init__(self, action: str) -> None:
        super().__init__()
        self.action = action


class Wheel(Message):
    """The wheel was turned by `rows` (down is positive)."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows = rows


class Entered(Message):
    """A line of text was entered in the prompt `purpose`; None where it was given up."""

    def __init__(self, purpose: str, text: str | None) -> None:
        super().__init__()
        self.purpose = purpose
        self.text = text


class Typed(Message):
    """The text in the prompt `purpose` changed."""

    def __init__(self, purpose: str, text: str) -> None:
        super().__init__()
        self.purpose = purpose
        self.text = text

    def can_replace(self, message: Message) -> bool:
        """Only the newest text matters."""
        return isinstance(message, Typed) and message.purpose == self.purpose
