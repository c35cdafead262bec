"""The key registry as Textual bindings, and as the line of keys at the bottom of a screen."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding, BindingType

from morimon.draw.line import Line, Role, Run, merged
from morimon.draw.page import Frame, Spot
from morimon.draw.text import cells
from morimon.tui.keys import Key, keys_of, shown
from morimon.tui.screens import SCREENS, ScreenInfo


def bindings_of(*scopes: str) -> list[BindingType]:
    """Bindings of the registry's scopes, with their ids, so that a keymap can move them."""
    return [
        Binding(key.keys, key.action, key.label or key.help, show=False, id=key.id) for key in keys_of(scopes)
    ]


def key_line(
    current: str, keys: Sequence[Key], frame: Frame, screens: Sequence[ScreenInfo] = SCREENS
) -> tuple[Line, tuple[Spot, ...]]:
    """The screens and the most important keys, as many as have room, and where to click on them.

    Spots count from the bottom: line -1.
    """
    by_id = {key.id: key for key in keys}
    tabs = [_tab(screen, by_id[f"screen.{screen.name}"], current, frame) for screen in screens]
    room = frame.width - sum(_width(runs) for runs, _ in tabs) - 1
    runs: list[Run] = []
    spots = []
    at = 0
    for part, action in (*tabs, ([Run(frame.glyphs.bar, "border")], ""), *_hints(keys, room, frame)):
        width = _width(part)
        if action:
            spots.append(Spot(-1, at, at + width, action))
        runs += part
        at += width
    return merged(runs), tuple(spots)


def _tab(screen: ScreenInfo, key: Key, current: str, frame: Frame) -> tuple[list[Run], str]:
    role: Role = "selected" if screen.name == current else "text"
    name = Run(shown(key, frame.glyphs), "key")
    if frame.is_narrow:
        return [name, Run(f" {screen.short or screen.title}", role), Run(" ")], key.action
    return [Run(" "), name, Run(f" {screen.title} ", role)], key.action


def _hints(keys: Sequence[Key], room: int, frame: Frame) -> list[tuple[list[Run], str]]:
    """What keys do, the most important ones as far as there is room, in reading order."""
    hints: list[tuple[list[Run], str]] = []
    if not frame.is_narrow and any(key.id == "up" for key in keys):
        hints.append(([Run(" "), Run(frame.glyphs.up_down, "key"), Run(" select ", "dim")], ""))
        room -= _width(hints[0][0])
    kept: dict[str, tuple[list[Run], str]] = {}
    for key in sorted((key for key in keys if key.rank), key=lambda key: key.rank):
        runs = [Run(" "), Run(shown(key, frame.glyphs), "key"), Run(f" {key.label} ", "dim")]
        if (width := _width(runs)) <= room:
            room -= width
            kept[key.id] = (runs, key.action)
    return hints + [kept[key.id] for key in sorted(keys, key=_reading_order) if key.id in kept]


def _reading_order(key: Key) -> tuple[bool, int]:
    """Keys of the screen first, then those that mean the same everywhere, `? help` and `q quit` last."""
    return ("." not in key.id, -key.rank)


def _width(runs: Sequence[Run]) -> int:
    return sum(cells(run.text) for run in runs)
