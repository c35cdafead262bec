"""The terminal app in tests: fed by hand, its paints and bytes counted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual._compositor import CompositorUpdate
from textual.pilot import Pilot
from textual.strip import Strip

from morimon.draw.glyphs import UNICODE, Glyphs
from morimon.model.events import RecordEvent
from morimon.store.snapshot import RunSnapshot
from morimon.store.store import Store
from morimon.tui.options import Mode, Options
from morimon.tui.screens.base import DataScreen
from morimon.tui.shell import MorimonApp
from morimon.tui.source import ReplaySource, Source
from morimon.tui.widgets.lines import LinesView


class FedSource:
    """A run whose events the test hands over."""

    loading: float | None = None
    is_behind = False

    def __init__(self, events: Iterable[RecordEvent] = ()) -> None:
        self._store = Store()
        self.feed(events)

    def feed(self, events: Iterable[RecordEvent]) -> None:
        """More of the run."""
        for event in events:
            self._store.apply(event)

    @property
    def snapshot(self) -> RunSnapshot:
        """The run so far."""
        return self._store.snapshot()

    def poll(self, now_s: float) -> None:
        """Nothing: the test feeds."""

    def close(self) -> None:
        """Nothing to close."""


class CountingApp(MorimonApp):
    """Counts what would be written to the terminal."""

    paints = 0
    painted_bytes = 0

    def _display(self, screen: Any, renderable: Any) -> None:
        if isinstance(renderable, CompositorUpdate):
            self.paints += 1
            self.painted_bytes += len(renderable.render_segments(self.console).encode())
        super()._display(screen, renderable)


@asynccontextmanager
async def viewer(
    source: Source,
    size: tuple[int, int] = (120, 40),
    *,
    mode: Mode = "live",
    folder: Path = Path(),
    options: Options | None = None,
    glyphs: Glyphs = UNICODE,
) -> AsyncIterator[tuple[CountingApp, Pilot[int]]]:
    """The app at this size, its timer slower than the test: `app.tick()` looks at the source."""
    mode = "replay" if isinstance(source, ReplaySource) else mode
    app = CountingApp(source, folder, mode, options or Options(theme="dark", refresh_hz=0.01), glyphs)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app, pilot


def data_screen(app: MorimonApp) -> DataScreen:
    """The screen in sight, which must be one of ours."""
    assert isinstance(app.screen, DataScreen), app.screen
    return app.screen


def screen_text(app: MorimonApp) -> str:
    """All that is in sight."""
    return app.screen.query_one(LinesView).text()


def full_paint(app: MorimonApp) -> str:
    """What the terminal is sent for the whole screen."""
    update: Any = app.screen._compositor.render_update(full=True)
    return str(update.render_segments(app.console))


class RenderCount:
    """Counts calls of `render_line` while it is open."""

    def __init__(self, monkeypatch: Any) -> None:
        self.lines = 0
        original = LinesView.render_line

        def counted(view: LinesView, y: int) -> Strip:
            self.lines += 1
            return original(view, y)

        monkeypatch.setattr(LinesView, "render_line", counted)
