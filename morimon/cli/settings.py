"""Settings: a TOML file, environment variables over it, options of the command line over both.

Each field's docstring is its manual: `morimon config show` prints it.
"""

from __future__ import annotations

import ast
import inspect
import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import platformdirs

from morimon.tui.keys import KeymapError, check_keymap

CONFIG_VARIABLE = "MORIMON_CONFIG"
PREFIX = "MORIMON_"


class Settings(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What a person may set once and for all."""

    theme: str = "auto"
    """Theme of the screens: auto, dark, light, okabe-ito, high-contrast, 16-colour, or the name of a file in the themes folder."""
    color: Literal["auto", "16", "256", "true", "never"] = "auto"
    """Colours of the terminal; auto asks the terminal, never leaves bold, underlined and reversed text only."""
    glyphs: Literal["auto", "unicode", "ascii"] = "auto"
    """Characters to draw with; auto goes by the locale and TERM."""
    mouse: bool = True
    """Whether the mouse selects, sorts and scrolls; false leaves it to the terminal."""
    refresh_hz: Annotated[float, msgspec.Meta(ge=0.5, le=20)] = 4.0
    """How often a second the screens look at the run; nothing is painted where nothing changed."""
    export_dir: str = ""
    """Where exports and screenshots go; empty: the folder in which morimon was started."""
    rdma_line_gbps: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Line rate of a rank's network port in GB/s (10⁹ bytes/s), for the Bandwidth screen; 0: unknown."""
    xgmi_line_gbps: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """The same for XGMI or NVLink."""
    keys: dict[str, str] = msgspec.field(default_factory=dict)
    """Keys of one's own, by the ids that the help screen (?) shows: "ranks.sort" = "o,O"."""


class SettingsError(ValueError):
    """Settings that cannot be used, with a sentence that says where and why."""


@dataclass(frozen=True)
class Loaded:
    """Settings in force, where each of them comes from, and the file they are kept in."""

    settings: Settings
    path: Path
    origins: Mapping[str, str] = field(default_factory=dict)
    """Field -> "default", the file, or the environment variable."""

    @property
    def themes_dir(self) -> Path:
        """The person's own themes, beside the file."""
        return self.path.parent / "themes"


def config_path(environ: Mapping[str, str]) -> Path:
    """$MORIMON_CONFIG, or config.toml in this user's configuration folder."""
    named = environ.get(CONFIG_VARIABLE)
    return Path(named).absolute() if named else platformdirs.user_config_path("morimon") / "config.toml"


def load(environ: Mapping[str, str] = os.environ) -> Loaded:
    """The settings in force; SettingsError names the file or variable that is wrong."""
    path = config_path(environ)
    values = _read(path)
    origins = {name: str(path) if name in values else "default" for name in Settings.__struct_fields__}
    for name in Settings.__struct_fields__:
        variable = PREFIX + name.upper()
        if name != "keys" and environ.get(variable):
            values[name] = _from_text(name, environ[variable], variable)
            origins[name] = f"${variable}"
    try:
        settings = msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        raise SettingsError(_explained(error, path, origins)) from error
    try:
        check_keymap(settings.keys)
    except KeymapError as error:
        raise SettingsError(f"{path}: {error}") from error
    return Loaded(settings, path, origins)


def manual() -> dict[str, str]:
    """Field -> what it does, from the docstrings above."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(Settings)))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    texts = {}
    for node, after in pairwise(body):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(after, ast.Expr)
        ):
            texts[node.target.id] = ast.literal_eval(after.value)
    return texts


def _read(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        values = msgspec.toml.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is no TOML: {error}.") from error
    for name in values:
        if name not in Settings.__struct_fields__:
            near = get_close_matches(name, Settings.__struct_fields__, 1)
            hint = (
                f"did you mean {near[0]}?" if near else f"there are {', '.join(Settings.__struct_fields__)}."
            )
            raise SettingsError(f"{path}: there is no setting {name!r}; {hint}")
    return dict(values)


def _from_text(name: str, text: str, variable: str) -> Any:
    if name == "mouse":
        known = {
            "1": True,
            "true": True,
            "yes": True,
            "on": True,
            "0": False,
            "false": False,
            "no": False,
            "off": False,
        }
        if text.lower() not in known:
            raise SettingsError(f"${variable} is {text!r}; it can be true or false.")
        return known[text.lower()]
    if name in ("refresh_hz", "rdma_line_gbps", "xgmi_line_gbps"):
        try:
            return float(text)
        except ValueError:
            raise SettingsError(f"${variable} is {text!r}; it must be a number.") from None
    return text


def _explained(error: msgspec.ValidationError, path: Path, origins: Mapping[str, str]) -> str:
    text, _, place = str(error).partition(" - at `$.")
    name = place.rstrip("`").partition(".")[0].partition("[")[0]
    origin = origins.get(name, str(path))
    return f"{origin if origin != 'default' else path}: {name}: {text[0].lower()}{text[1:]}."
