"""One screen on paper: the lines that the dashboard would show, printed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module

from morimon.draw.glyphs import Glyphs
from morimon.draw.line import plain
from morimon.draw.page import Frame, Page
from morimon.model.events import RecordEvent
from morimon.store.snapshot import RunSnapshot
from morimon.store.store import Store
from morimon.views.line_rates import UNKNOWN_RATES, LineRates
from morimon.views.status import Viewing, state_lines

SCREENS = ("ranks", "bandwidth", "traffic", "system")
"""The views that stand on paper; each is imported when it is asked for."""


def screen_lines(
    events: Iterable[RecordEvent],
    screen: str,
    width: int,
    glyphs: Glyphs,
    rates: LineRates = UNKNOWN_RATES,
) -> list[str]:
    """The run after these events as one of SCREENS: state, head, every row of the body, foot."""
    store = Store()
    for event in events:
        store.apply(event)
    snapshot, frame = store.snapshot(), Frame(width, None, glyphs)
    lines = [
        *state_lines(snapshot, Viewing("attach"), frame),
        *_build(screen, rates)(snapshot, frame).lines(),
    ]
    return [plain(line) for line in lines]


def _build(screen: str, rates: LineRates) -> Callable[[RunSnapshot, Frame], Page]:
    build: Callable[..., Page] = import_module(f"morimon.views.{screen}").build
    return partial(build, rates=rates) if screen == "bandwidth" else build
