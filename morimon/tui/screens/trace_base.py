"""What the parts of the Trace screen share: the session, the choices, and the time axis in sight."""

from __future__ import annotations

from dataclasses import replace

from morimon.draw.page import Frame
from morimon.tui.screens.base import DataScreen
from morimon.tui.trace_session import TraceSession
from morimon.views.trace import gutter_of, scale_of
from morimon.views.trace_look import Look, TraceState
from morimon.views.trace_scale import Scale


class TraceBase(DataScreen):
    """`session` is None until the folder to follow is known."""

    state: TraceState
    session: TraceSession | None

    @property
    def look(self) -> Look | None:
        """What is seen of the trace."""
        return self.session.look if self.session is not None else None

    def touch(self) -> None:
        """The person did something: from now on the screen stays with what it shows."""
        if self.session is not None:
            self.session.touched = True

    def choose(self, **choices: object) -> None:
        """Change what the person chose, and show it."""
        self.touch()
        self.state = replace(self.state, **choices)  # type: ignore[arg-type]  # fields by name
        self.repaint()

    def axis(self, look: Look) -> Scale:
        """The axis in sight."""
        return scale_of(
            look, self.state, Frame(self.view.size.width, self.view.size.height, self.owner.glyphs)
        )

    def before_axis(self, look: Look) -> int:
        """Cells before the axis."""
        return gutter_of(look, self.state)
