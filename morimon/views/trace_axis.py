"""The axis over the lanes: figures, ticks, and how long the chosen thing takes, measured off on the same line."""

from __future__ import annotations

from morimon.draw.line import Line, Role, Run, merged
from morimon.draw.page import Frame
from morimon.views.trace_scale import PARTS, Scale, ticks, unit_for


def axis(
    zero_ns: int, scale: Scale, gutter: int, measured: tuple[int, int] | None, frame: Frame
) -> list[Line]:
    """Two lines of `gutter` + scale.width cells; `measured`: start and end of what is chosen."""
    width = scale.width
    unit = unit_for(max(scale.window.end_ns - zero_ns, 1))
    name = unit.name.replace("µ", frame.glyphs.micro)
    figures = [" "] * width
    line, tick, heavy, *ends = tuple(frame.glyphs.ruler)
    ruler = [line] * width
    roles: list[Role] = ["border"] * width
    for cell, text in ticks(scale, zero_ns, unit):
        ruler[cell] = tick
        if cell + len(text) <= width:
            figures[cell : cell + len(text)] = text
    stretch = scale.stretch(*measured) if measured is not None else None
    if stretch is not None:
        begin, end = stretch[0] // PARTS, max(-(-stretch[1] // PARTS), stretch[0] // PARTS + 1)
        ruler[begin:end] = [heavy] * (end - begin)
        ruler[begin], ruler[end - 1] = ends[0], ends[1]
        roles[begin:end] = ["key"] * (end - begin)
    marks = [Run(char, role) for char, role in zip(ruler, roles, strict=True)]
    return [
        merged([Run(f"{name:>{gutter - 1}} ", "dim"), Run("".join(figures), "dim")]),
        merged([Run(" " * gutter), *marks]),
    ]
