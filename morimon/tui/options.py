"""What the person wants of the screen: values that the command line and the settings file hand down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from morimon.views.line_rates import UNKNOWN_RATES, LineRates

if TYPE_CHECKING:
    from morimon.trace.model import Trace

ColorDepth: TypeAlias = Literal["auto", "16", "256", "true", "never"]
Mode: TypeAlias = Literal["live", "attach", "replay", "watch"]


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
    on_stop: Callable[[bool], object] | None = None
    """Stops the job (True: by force); None where this viewer may not."""
    look_after: Callable[[], str | None] | None = None
    """Called about once a second, in a thread, while a run goes on: sees to it that somebody writes its record, and says
    in a sentence why nobody ever will again."""
    line_rates: LineRates = UNKNOWN_RATES
    """What the links of a rank can carry."""
    polling: bool = False
    """Look at folders of traces by the clock."""
    settle_s: float = 5.0
    """A trace that is not whole and has not grown for so long is shown as half-written."""
    draw_trace: Callable[[Trace], str] | None = None
    """Draws a picture of a trace and says in a sentence where it is, or why there is none; None: this viewer cannot."""
    start_screen: str = "ranks"
