"""One screen on paper: the lines that the dashboard would show, printed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path

from morimon.draw.glyphs import Glyphs
from morimon.draw.line import plain
from morimon.draw.page import Frame, Page
from morimon.feeds.log_text import LogText
from morimon.model.events import RecordEvent
from morimon.store.snapshot import RunSnapshot
from morimon.store.store import Store
from morimon.views.line_rates import UNKNOWN_RATES, LineRates
from morimon.views.status import Viewing, state_lines

SCREENS = ("ranks", "bandwidth", "traffic", "system", "log")
"""The views that stand on paper; each is imported when it is asked for."""


def screen_lines(
    events: Iterable[RecordEvent],
    folder: Path,
    screen: str,
    width: int,
    glyphs: Glyphs,
    rates: LineRates = UNKNOWN_RATES,
) -> list[str]:
    """The run after these events as one of SCREENS: state, head, every row of the body, foot.

    `folder` is the run's own, where the text of its log lies.
    """
    store = Store()
    for event in events:
        store.apply(event)
    snapshot, frame = store.snapshot(), Frame(width, None, glyphs)
    lines = [
        *state_lines(snapshot, Viewing("attach"), frame),
        *_build(screen, folder, rates)(snapshot, frame).lines(),
    ]
    return [plain(line) for line in lines]


def _build(screen: str, folder: Path, rates: LineRates) -> Callable[[RunSnapshot, Frame], Page]:
    view = import_module(f"morimon.views.{screen}")
    if screen == "log":
        return partial(view.on_paper, read=LogText(folder))
    return partial(view.build, rates=rates) if screen == "bandwidth" else partial(view.build)
