"""One screen on paper: the lines that the dashboard would show, printed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from morimon.draw.glyphs import Glyphs
from morimon.draw.line import plain
from morimon.draw.page import Frame, Page
from morimon.model.events import RecordEvent
from morimon.store.snapshot import RunSnapshot
from morimon.store.store import Store
from morimon.views import ranks, system
from morimon.views.status import Viewing, state_lines

SCREENS: Mapping[str, Callable[[RunSnapshot, Frame], Page]] = {"ranks": ranks.build, "system": system.build}


def screen_lines(events: Iterable[RecordEvent], screen: str, width: int, glyphs: Glyphs) -> list[str]:
    """The run after these events as one of SCREENS: state, head, every row of the body, foot."""
    store = Store()
    for event in events:
        store.apply(event)
    snapshot, frame = store.snapshot(), Frame(width, None, glyphs)
    page = SCREENS[screen](snapshot, frame)
    lines = [*state_lines(snapshot, Viewing("attach"), frame), *page.head]
    lines += [page.body.line(i) for i in range(len(page.body))]
    return [plain(line) for line in [*lines, *page.foot]]
