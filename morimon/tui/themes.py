"""Themes: TOML files that give every role a style, and the few colours of Textual's own widgets.

    dark = true
    ansi = false          # true: only the terminal's own 16 colours
    [base]                # background, foreground, surface, panel, primary, secondary, accent, warning, error, success
    [roles]               # role = "bold #rrggbb on #rrggbb", in rich's words for styles

A role that a file leaves out is taken from the built-in theme of the same brightness. A file that cannot be read is
reported in a sentence and left out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import get_args

import msgspec
from rich.errors import StyleSyntaxError
from rich.style import Style
from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

from morimon.draw.line import Role

DEFAULT, DEFAULT_LIGHT, DEFAULT_ANSI = "dark", "light", "16-colour"
ROLES: tuple[str, ...] = get_args(Role)


class _Base(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Colours of prompts, dialogs and the palette."""

    primary: str
    background: str
    foreground: str
    secondary: str | None = None
    accent: str | None = None
    surface: str | None = None
    panel: str | None = None
    warning: str | None = None
    error: str | None = None
    success: str | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A theme file as it is written."""

    base: _Base
    dark: bool = True
    ansi: bool = False
    roles: dict[str, str] = msgspec.field(default_factory=dict)


class ThemeError(ValueError):
    """A theme file that cannot be used, with a sentence that says where and why."""


@dataclass(frozen=True)
class Palette:
    """A theme, ready for use."""

    name: str
    textual: Theme
    styles: Mapping[str, Style]
    path: Path | None = None

    @cached_property
    def on_cursor(self) -> dict[str, Style]:
        """Styles of the roles on the row under the cursor; a reversed row is all of one colour, or it would be patchwork."""
        base = self.styles["cursor"]
        return {role: base if base.reverse else base + style for role, style in self.styles.items()}


@dataclass
class ThemeSet:
    """All themes that can be used, by name, and what is wrong with the others."""

    palettes: dict[str, Palette] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    stamps: dict[Path, int] = field(default_factory=dict)
    """Modification times of the files as they were read."""

    def add(self, path: Path) -> None:
        """Read a theme file; a bad one is reported in `errors`."""
        try:
            palette = read_theme(path, self.palettes)
        except ThemeError as error:
            self.errors.append(str(error))
        else:
            self.palettes[palette.name] = palette


def builtin_folder() -> Path:
    """The folder of the themes that morimon brings: inside the installed package, or the repository's `themes`."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "themes"
    return installed if installed.is_dir() else package.parent / "themes"


def load_themes(own_folder: Path | None = None) -> ThemeSet:
    """The built-in themes and the person's own, which may replace built-in ones of the same name."""
    themes = ThemeSet()
    for folder in (builtin_folder(), own_folder):
        for path, stamp in _stamps(folder).items():
            themes.stamps[path] = stamp
            themes.add(path)
    return themes


def changed(themes: ThemeSet, own_folder: Path | None) -> bool:
    """Whether a theme file came, went or was written since `themes` was read."""
    return _stamps(builtin_folder()) | _stamps(own_folder) != themes.stamps


def _stamps(folder: Path | None) -> dict[Path, int]:
    """Theme files and when they were written, the defaults first: the others lean on them."""
    if folder is None or not folder.is_dir():
        return {}
    with os.scandir(folder) as entries:
        found = {Path(entry.path): _written(entry) for entry in entries if entry.name.endswith(".toml")}
    paths = sorted(found, key=lambda path: (path.stem not in (DEFAULT, DEFAULT_LIGHT), path.stem))
    return {path: found[path] for path in paths}


def _written(entry: os.DirEntry[str]) -> int:
    """When the file was written, ns; 0 where it went between listing and looking."""
    try:
        return entry.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _is_color(text: str) -> bool:
    try:
        Color.parse(text)
    except ColorParseError:
        return False
    return True


def read_theme(path: Path, known: Mapping[str, Palette]) -> Palette:
    """The theme of one file; ThemeError names the file and what is wrong in it."""
    try:
        file = msgspec.toml.decode(path.read_bytes(), type=_File)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise ThemeError(f"theme {path}: {error}") from error
    default = known.get(DEFAULT if file.dark else DEFAULT_LIGHT)
    styles = dict(default.styles) if default is not None else dict.fromkeys(ROLES, Style.null())
    for role, text in file.roles.items():
        if role not in ROLES:
            near = get_close_matches(role, ROLES, 1)
            hint = f"did you mean {near[0]}?" if near else f"{DEFAULT}.toml has all of them"
            raise ThemeError(f"theme {path}: [roles] {role}: no such role; {hint}")
        try:
            styles[role] = Style.parse(text)
        except StyleSyntaxError as error:
            raise ThemeError(f"theme {path}: [roles] {role}: {error}") from error
    base = {name: value for name in file.base.__struct_fields__ if (value := getattr(file.base, name))}
    if bad := next((name for name, value in base.items() if not _is_color(value)), None):
        raise ThemeError(f"theme {path}: [base] {bad}: {base[bad]!r} is no colour, e.g. #1c2230 or ansi_blue")
    own = BUILTIN_THEMES["ansi-dark" if file.dark else "ansi-light"].variables if file.ansi else {}
    textual = Theme(name=f"morimon-{path.stem}", dark=file.dark, ansi=file.ansi, variables=dict(own), **base)
    return Palette(path.stem, textual, styles, path)
