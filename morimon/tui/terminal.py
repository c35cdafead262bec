"""The terminal's side of things: what Textual must know before it is imported, and what it does not handle itself."""

from __future__ import annotations

import codecs
import os
from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from morimon.tui.options import ColorDepth

if TYPE_CHECKING:
    from textual.driver import Driver

_COLOR_SYSTEMS = {"16": "standard", "256": "256", "true": "truecolor"}
FRAMES_PER_S = 30
"""Most paints a second: the record is looked at far less often, this bounds what keys and resizing cost."""


def prepare(environ: MutableMapping[str, str], color: ColorDepth) -> None:
    """Set what Textual reads from the environment at its import; what the person has set stays."""
    environ.setdefault("TEXTUAL_FPS", str(FRAMES_PER_S))
    environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")
    if color == "never":
        environ["NO_COLOR"] = "1"
    elif color != "auto":
        environ["TEXTUAL_COLOR_SYSTEM"] = _COLOR_SYSTEMS[color]
        environ.pop("NO_COLOR", None)
    elif environ.get("NO_COLOR") == "":
        del environ["NO_COLOR"]  # an empty NO_COLOR asks for nothing; Textual would take it as a request


def tolerate_foreign_bytes() -> None:
    """Let Textual's input thread survive bytes that are no UTF-8.

    A terminal that forgot the SGR mouse mode (after tmux or SSH came back) reports columns past 95 as single bytes above
    0x7F; Textual 8.2 ends with UnicodeDecodeError on them.
    """
    from textual.drivers import linux_driver

    def decoder(encoding: str) -> object:
        make = codecs.getincrementaldecoder(encoding)
        return lambda: make(errors="replace")

    linux_driver.getincrementaldecoder = decoder  # type: ignore[attr-defined,assignment] # the one name its input thread looks up


def renew_mouse(driver: Driver) -> None:
    """Ask the terminal for mouse reports again, in the form that has no limit of columns."""
    enable = getattr(driver, "_enable_mouse_support", None)
    if enable is not None:
        enable()


def is_gone(descriptor: int = 0) -> bool:
    """Whether the terminal has gone away below us."""
    return not os.isatty(descriptor)
