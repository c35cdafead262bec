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


def screen_bindings() -> list[BindingType]:
    """One binding a screen: its number."""
    return [
        Binding(
            screen.key,
            f"app.open_screen('{screen.name}')",
            screen.title,
            show=False,
            id=f"screen.{screen.name}",
        )
        for screen in SCREENS
    ]


def key_line(
    current: str, keys: Sequence[Key], frame: Frame, screens: Sequence[ScreenInfo] = SCREENS
) -> tuple[Line, tuple[Spot, ...]]:
    """The screens and the most important keys, as many as have room, and where to click on them.

    Spots count from the bottom: line -1.
    """
    glyphs = frame.glyphs
    parts: list[tuple[list[Run], str]] = []
    for screen in screens:
        role: Role = "selected" if screen.name == current else "text"
        title = [Run(" "), Run(screen.key, "key"), Run(f" {screen.title} ", role)]
        parts.append((title, f"app.open_screen('{screen.name}')"))
    shown_keys = sorted((key for key in keys if key.rank), key=lambda key: key.rank)
    move = next((key for key in keys if key.id == "up"), None)
    tail: list[tuple[list[Run], str]] = []
    room = frame.width - sum(_width(runs) for runs, _ in parts) - 3
    if move is not None and not frame.is_narrow:
        tail.append(([Run(" "), Run(glyphs.up_down, "key"), Run(" select ", "dim")], ""))
        room -= _width(tail[0][0])
    kept = []
    for key in shown_keys:
        runs = [Run(" "), Run(shown(key, glyphs), "key"), Run(f" {key.label} ", "dim")]
        if (width := _width(runs)) <= room:
            room -= width
            kept.append((runs, key))
    order = {key.id: place for place, key in enumerate(sorted(keys, key=_reading_order))}
    kept.sort(key=lambda pair: order[pair[1].id])
    tail += [(runs, key.action) for runs, key in kept]
    runs_out: list[Run] = []
    spots = []
    at = 0
    for runs, action in (*parts, ([Run(glyphs.bar, "border")], ""), *tail):
        width = _width(runs)
        if action:
            spots.append(Spot(-1, at, at + width, action))
        runs_out += runs
        at += width
    return merged(runs_out), tuple(spots)


def _reading_order(key: Key) -> tuple[bool, int]:
    """Keys of the screen first, then those that mean the same everywhere, `? help` and `q quit` last."""
    return ("." not in key.id, -key.rank)


def _width(runs: Sequence[Run]) -> int:
    return sum(cells(run.text) for run in runs)
