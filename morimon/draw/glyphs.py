"""Glyph sets: every character that morimon draws with, once for UTF-8 terminals and once for plain ASCII.

Both sets have the same widths, so that a layout never depends on the set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """Characters by their purpose. Every mark is one cell wide, `micro` + "s" two."""

    name: str
    levels: str
    """Column heights from lowest to full, for sparks."""
    eighths: str
    """Growing parts of a cell from the left, full last, for bars; one character means no parts."""
    shades: str
    """Heat from nothing to full: what colour says, said without it."""
    rule: str
    bar: str
    """Vertical line between groups of columns."""
    corner: str
    tick: str
    progress: str
    """Done, half done, to do."""
    ascending: str
    descending: str
    running: str
    waiting: str
    done: str
    failed: str
    warning: str
    late: str
    paused: str
    play: str
    dot: str
    times: str
    micro: str
    missing: str
    ellipsis: str
    thousands: str
    up_down: str
    left_right: str
    cursor: str
    series: str
    """Points of the first, second, third curve of a graph where braille is not to be had; empty: braille is."""
    lane: str
    """Something open, something interrupted, and the two ends of what is open (on UTF-8 terminals its colour shows
    them)."""
    ruler: str
    """Line, tick, measured stretch, its two ends."""
    region: str
    """Left end, line and right end of a stretch that has a name."""


UNICODE = Glyphs(
    name="unicode",
    levels="▁▂▃▄▅▆▇█",
    eighths="▏▎▍▌▋▊▉█",
    shades=" ·░░▒▒▓█",
    rule="─",
    bar="│",
    corner="└",
    tick="┤",
    progress="━╸─",
    ascending="▲",
    descending="▼",
    running="●",
    waiting="○",
    done="✓",
    failed="✗",
    warning="!",
    late="◀",
    paused="‖",
    play="▶",
    dot="·",
    times="×",
    micro="µ",
    missing="–",
    ellipsis="…",
    thousands="\u202f",
    up_down="↑↓",
    left_right="←→",
    cursor="▌",
    series="",
    lane="█─██",
    ruler="─┴━┷┷",
    region="└─┘",
)

ASCII = Glyphs(
    name="ascii",
    levels="_.,-=+*#",
    eighths="#",
    shades=" .:-=+*#",
    rule="-",
    bar="|",
    corner="+",
    tick="|",
    progress="=>-",
    ascending="^",
    descending="v",
    running="*",
    waiting="o",
    done="+",
    failed="x",
    warning="!",
    late="<",
    paused='"',
    play=">",
    dot=".",
    times="x",
    micro="u",
    missing="-",
    ellipsis="~",
    thousands=" ",
    up_down="^v",
    left_right="<>",
    cursor="|",
    series="*+.",
    lane="=-[]",
    ruler="-+=##",
    region="+-+",
)

_PLAIN_TERMS = ("linux", "dumb", "vt100", "vt102", "vt220", "ansi", "cons25", "sun", "")
"""Values of TERM whose fonts lack blocks or braille."""


def glyphs_for(environ: Mapping[str, str]) -> Glyphs:
    """The set that a terminal can show: UTF-8 locale and a TERM with a full font, else ASCII.

    The locale is read as the C library does: the first of LC_ALL, LC_CTYPE, LANG that is set and not empty decides.
    """
    locale = next((environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), "")
    utf8 = locale.lower().replace("-", "").endswith("utf8") or "utf8" in locale.lower().replace("-", "")
    return UNICODE if utf8 and environ.get("TERM", "") not in _PLAIN_TERMS else ASCII
