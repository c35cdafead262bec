"""Themes: the built-in ones are whole, own ones are read while the app runs, bad ones are said and never fatal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from textual.color import Color

from morimon.tui.options import Options
from morimon.tui.themes import ROLES, ThemeError, builtin_folder, changed, load_themes, read_theme
from morimon.tui.widgets.lines import LinesView
from tests.support.records import Plan, make_record
from tests.support.viewer import FedSource, viewer

BASE = '[base]\nprimary = "#336699"\nbackground = "#101010"\nforeground = "#eeeeee"\n'
BUILTIN = ("dark", "light", "okabe-ito", "high-contrast", "16-colour")


def run() -> FedSource:
    return FedSource(make_record(Plan(rounds=3, ends=False)).events)


def contrast(one: Color, other: Color) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(color: Color) -> float:
    parts = [c / 255 for c in (color.r, color.g, color.b)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_built_in_themes_are_there_and_style_every_role() -> None:
    themes = load_themes()
    assert themes.errors == []
    assert set(BUILTIN) <= set(themes.palettes)
    for name in BUILTIN:
        text = (builtin_folder() / f"{name}.toml").read_text()
        assert all(f"\n{role} = " in text for role in ROLES), name
        assert set(themes.palettes[name].styles) == set(ROLES)


@pytest.mark.parametrize("name", [name for name in BUILTIN if name != "16-colour"])
def test_words_can_be_read_on_their_ground(name: str) -> None:
    palette = load_themes().palettes[name]
    ground = Color.parse(palette.textual.background or "")
    for role, style in palette.styles.items():
        if role in ("border", "cursor") or style.color is None:
            continue
        front = Color.from_rich_color(style.color)
        behind = Color.from_rich_color(style.bgcolor) if style.bgcolor is not None else ground
        assert contrast(front, behind) >= (3.0 if role == "dim" or role.startswith("heat") else 4.0), role


def test_a_theme_file_that_leaves_roles_out_takes_them_from_the_default(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(BASE + '[roles]\nlate = "bold red"\n')
    themes = load_themes(tmp_path)
    mine, dark = themes.palettes["mine"], themes.palettes["dark"]
    assert str(mine.styles["late"]) == "bold red"
    assert mine.styles["dispatch"] == dark.styles["dispatch"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not toml", "Expected '='"),
        (BASE + '[roles]\nlatte = "red"\n', "[roles] latte: no such role; did you mean late?"),
        (BASE + '[roles]\nlate = "reddish"\n', "[roles] late: "),
        (BASE.replace("#336699", "blurple"), "[base] primary: 'blurple' is no colour"),
        ("dark = true\n", "missing required field `base`"),
    ],
)
def test_a_bad_theme_says_where_and_why(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ThemeError) as caught:
        read_theme(path, {})
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


def test_changes_in_the_folder_are_seen(tmp_path: Path) -> None:
    themes = load_themes(tmp_path)
    assert not changed(themes, tmp_path)
    (tmp_path / "mine.toml").write_text(BASE)
    assert changed(themes, tmp_path)
    themes = load_themes(tmp_path)
    os.utime(tmp_path / "mine.toml", ns=(1, 1))
    assert changed(themes, tmp_path)


async def test_own_themes_are_read_anew_while_they_are_edited(tmp_path: Path) -> None:
    theme = tmp_path / "mine.toml"
    theme.write_text(BASE + '[roles]\nlate = "#ff0000"\n')
    options = Options(theme="mine", refresh_hz=0.01, themes_dir=tmp_path)
    async with viewer(run(), options=options) as (app, pilot):
        assert app.palette.name == "mine"
        theme.write_text(BASE.replace("#101010", "#ff0000") + '[roles]\nlate = "#00ff00"\n')
        os.utime(theme, ns=(1, 1))
        app._look_at_themes()
        await pilot.pause()
        await pilot.pause()
        assert str(app.palette.styles["late"]) == "#00ff00"
        views = list(app.screen.query(LinesView))
        assert views
        assert all((ground := view.styles.background).r > 250 and ground.g < 5 for view in views)
        theme.write_text(BASE + '[roles]\nlate = "oops"\n')
        os.utime(theme, ns=(2, 2))
        app._look_at_themes()
        await pilot.pause()
        assert str(app.palette.styles["late"]) == "#00ff00", "the last good one stays"
        assert any("late" in notice.message for notice in app._notifications)


async def test_an_unknown_theme_is_said_and_the_default_taken() -> None:
    async with viewer(run(), options=Options(theme="nosuch", refresh_hz=0.01)) as (app, _):
        assert app.palette.name == "dark"
        assert any("no theme nosuch" in notice.message for notice in app._notifications)


async def test_the_theme_key_goes_through_all_themes() -> None:
    async with viewer(run()) as (app, pilot):
        seen = [app.palette.name]
        for _ in range(len(BUILTIN)):
            await pilot.press("T")
            await pilot.pause()
            seen.append(app.palette.name)
        assert set(seen) == set(BUILTIN)
        assert seen[0] == seen[-1]
