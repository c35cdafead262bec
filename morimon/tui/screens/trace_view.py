"""The page of lines with a time axis in it: over its head the wheel zooms, and dragging moves the time."""

from __future__ import annotations

from textual import events
from textual.message import Message

from morimon.tui.widgets.lines import LinesView


class TimeWheel(Message):
    """The wheel was turned over the lanes, at this cell; `turns` up is positive."""

    def __init__(self, x: int, turns: int) -> None:
        super().__init__()
        self.x = x
        self.turns = turns


class TimeDragged(Message):
    """The time under the pointer was dragged by so many cells."""

    def __init__(self, cells: int) -> None:
        super().__init__()
        self.cells = cells


class TraceView(LinesView):
    """Shows a page; tells wheel and drag over the lanes apart from those over the rows."""

    whole = False
    """Whether the rows of the body are lanes, too."""

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]  # as the widget below takes them
        self._held: int | None = None
        self._dragged = False
        self._pointer_y = 0

    @property
    def allow_select(self) -> bool:
        """Text is selected in rows; over the lanes the mouse moves the time."""
        return super().allow_select and not self._on_lanes(self._pointer_y)

    def _on_lanes(self, y: int) -> bool:
        return y < len(self.page.head) or (self.whole and y < self.size.height - len(self.page.foot))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:  # type: ignore[override]  # textual passes what is asked for
        """Zoom out over the lanes."""
        self._turned(event, -1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:  # type: ignore[override]  # textual passes what is asked for
        """Zoom in over the lanes."""
        self._turned(event, 1)

    def _turned(self, event: events.MouseEvent, turns: int) -> None:
        if event.y < len(self.page.head):
            event.prevent_default()
            self.post_message(TimeWheel(event.x, turns))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the time."""
        self._dragged = False
        if self._on_lanes(event.y):
            self._held = event.x
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Move the time that is held."""
        self._pointer_y = event.y
        if self._held is not None and event.x != self._held:
            self._dragged = True
            self.post_message(TimeDragged(event.x - self._held))
            self._held = event.x

    def on_mouse_up(self) -> None:
        """Let go."""
        if self._held is not None:
            self._held = None
            self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        """A drag is no click."""
        if self._dragged:
            event.prevent_default()
