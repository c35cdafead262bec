"""Small pictures in a row of cells: sparks, bars, progress, heat."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run, merged

HEAT_STEPS = 8


def spark(values: Sequence[float], width: int, low: float, high: float, glyphs: Glyphs) -> str:
    """The newest `width` values as column heights between `low` and `high`, newest at the right end.

    A value that is no number is a blank; all values alike stand at half height.
    """
    shown = values[-width:] if width > 0 else ()
    top = len(glyphs.levels) - 1
    span = high - low
    text = "".join(
        glyphs.levels[top // 2 if span <= 0 else min(max(round((value - low) / span * top), 0), top)]
        if math.isfinite(value)
        else " "
        for value in shown
    )
    return text.rjust(width)


def bar(value: float | None, full: float, width: int, glyphs: Glyphs) -> str:
    """A horizontal bar of `width` cells that is full at `full`; more than full stays full, None is empty."""
    if value is None or full <= 0 or not math.isfinite(value):
        return " " * width
    parts = len(glyphs.eighths)
    filled = min(max(round(value / full * width * parts), 0), width * parts)
    whole, part = divmod(filled, parts)
    text = glyphs.eighths[-1] * whole + (glyphs.eighths[part - 1] if part else "")
    return text.ljust(width)


def progress(done: float, width: int, glyphs: Glyphs, role: Role = "ok") -> Line:
    """A progress bar for a share `done` between 0 and 1."""
    full, half, todo = tuple(glyphs.progress)
    halves = min(max(int(done * width * 2), 0), width * 2)
    whole, part = divmod(halves, 2)
    rest = width - whole - part
    return merged([Run(full * whole + half * part, role), Run(todo * rest, "border")])


def heat_step(value: float, low: float, high: float) -> int:
    """The step 0…7 of a value between `low` and `high`."""
    if high <= low or not math.isfinite(value):
        return 0
    return min(max(int((value - low) / (high - low) * HEAT_STEPS), 0), HEAT_STEPS - 1)


def heat(value: float, low: float, high: float, text: str) -> Run:
    """A cell of a heat map: the text in the role of its step."""
    return Run(text, cast("Role", f"heat-{heat_step(value, low, high)}"))
