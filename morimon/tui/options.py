"""What the person wants of the screen: values that the command line and the settings file hand down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

ColorDepth: TypeAlias = Literal["auto", "16", "256", "true", "never"]
Mode: TypeAlias = Literal["live", "attach", "replay"]


@dataclass(frozen=True, slots=True)
class Options:
    """How the screen looks and reacts."""

    theme: str = "auto"
    """Name of a theme; `auto` takes dark, or 16-colour where the terminal has no more."""
    color: ColorDepth = "auto"
    ascii: bool | None = None
    """None: as the locale and TERM allow."""
    mouse: bool = True
    refresh_hz: float = 4.0
    """How often the record is looked at; nothing is painted where nothing changed."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Key id -> keys, comma-separated, in place of the built-in ones."""
    themes_dir: Path | None = None
    """The person's own themes."""
    export_dir: Path | None = None
    """Where exports, screenshots and too large copies go; None: the current folder."""
    on_stop: Callable[[bool], None] | None = None
    """Stops the job (True: by force); None where this viewer may not."""
    start_screen: str = "ranks"
