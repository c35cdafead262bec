"""Cells that two colours share, in every theme: the left part's colour is ink, the rest is ground."""

from __future__ import annotations

import pytest
from rich.style import Style

from morimon.draw.line import Role, split
from morimon.tui.themes import Palette, load_themes
from morimon.tui.widgets.lines import _Styles

PALETTES = list(load_themes().palettes.values())
SLOTS: tuple[Role, ...] = (
    "slot-send",
    "slot-recv",
    "slot-inter",
    "slot-intra",
    "slot-intra-2",
    "slot-barrier",
)


def styles_of(palette: Palette, *, on_cursor: bool) -> _Styles:
    ground = Style(bgcolor=palette.textual.background if not palette.textual.ansi else "default")
    plain = palette.on_cursor if on_cursor else palette.styles
    return _Styles(ground, plain, palette.styles)


@pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.name)
@pytest.mark.parametrize("on_cursor", [False, True])
def test_a_split_cell_has_the_colours_of_its_two_bars(palette: Palette, on_cursor: bool) -> None:
    styles = styles_of(palette, on_cursor=on_cursor)
    for one, other in zip(SLOTS, SLOTS[1:] + SLOTS[:1], strict=True):
        both = styles[split(one, other)]
        assert (both.color, both.bgcolor) == (palette.styles[one].bgcolor, palette.styles[other].bgcolor)
        assert not both.reverse, "a cursor that reverses leaves bars as they are"
        end = styles[split(one)]
        assert end.color == palette.styles[one].bgcolor
        assert end.bgcolor == styles["text"].bgcolor
        start = styles[split("text", one)]
        assert start.reverse, "the ground may be a colour that only the terminal knows"
        assert start.color == palette.styles[one].bgcolor


@pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.name)
def test_slots_that_stand_side_by_side_have_different_colours(palette: Palette) -> None:
    beside = [
        ("slot-send", "slot-recv", "slot-intra", "slot-sync", "slot-copy"),
        ("slot-inter", "slot-intra-2", "slot-barrier", "slot-all", "slot-intra-4"),
        ("slot-intra", "slot-intra-2", "slot-intra-3", "slot-intra-4", "slot-barrier"),
    ]
    for roles in beside:
        assert len({palette.styles[role].bgcolor for role in roles}) == len(roles)
