"""A line graph over a fixed pair of axes: braille dots, or points of ASCII.

Curves are told apart without colour, too: the first is a line of dots, the others leave every second dot out; in ASCII
each has a character of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from morimon.draw.axis import Axis
from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run, merged
from morimon.draw.units import number

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Braille bits by column and row, top row first."""
_BRAILLE = 0x2800
LEGEND = ("⠒⠒", "⠂⠂")
"""A bit of the first curve, and of the others, in braille."""


@dataclass(frozen=True, slots=True)
class Series:
    """A curve: points (x, y) with growing x; the first series of a graph is drawn over the later ones."""

    points: Sequence[tuple[float, float]]
    role: Role


def label_width(axis: Axis, glyphs: Glyphs) -> int:
    """Cells that the figures beside a vertical axis take."""
    return max(len(number(value, axis.decimals, glyphs)) for value in (axis.low, axis.high))


def graph(
    series: Sequence[Series],
    width: int,
    height: int,
    x_range: tuple[float, float],
    y_axis: Axis,
    glyphs: Glyphs,
    labels: int = 0,
) -> tuple[Line, ...]:
    """`height` lines of `width` cells: figures on the left (at least `labels` cells), curves, and x figures below."""
    labels = max(labels, label_width(y_axis, glyphs))
    plot_width, plot_height = width - labels - 3, height - 2
    if plot_width < 2 or plot_height < 1:
        return tuple(() for _ in range(height))
    canvas = _Canvas(plot_width, plot_height, bool(glyphs.series))
    for order, one in reversed(list(enumerate(series))):
        char = glyphs.series[order % len(glyphs.series)] if glyphs.series else ""
        canvas.draw(one, x_range, y_axis, char, is_dotted=order > 0)
    texts = _tick_texts(y_axis, plot_height, glyphs)
    lines = []
    for y in range(plot_height):
        text = texts.get(y)
        lead = Run(f" {text:>{labels}} " if text is not None else " " * (labels + 2), "dim")
        tick = Run(glyphs.tick if text is not None else glyphs.bar, "border")
        lines.append(merged([lead, tick, *canvas.runs(y)]))
    floor = Run(" " * (labels + 2) + glyphs.corner + glyphs.rule * plot_width, "border")
    first, last = (number(x, 0, glyphs) for x in x_range)
    below = f"{' ' * (labels + 3)}{first}{last:>{max(plot_width - len(first), 0)}}"
    return (*lines, (floor,), (Run(below, "dim"),))


def _tick_texts(axis: Axis, height: int, glyphs: Glyphs) -> dict[int, str]:
    """Row from the top -> figure: as many steps of the axis as stand two rows apart, its ends at least."""
    count = round((axis.high - axis.low) / axis.step)
    stride = next((s for s in range(1, count) if count % s == 0 and (height - 1) * s >= count * 2), count)
    values = [axis.low + i * axis.step for i in range(0, count + 1, max(stride, 1))]
    return {
        height - 1 - axis.position(value, height): number(value, axis.decimals, glyphs) for value in values
    }


class _Canvas:
    """Dots of several curves on one grid of cells; a cell has the colour of the curve drawn last."""

    def __init__(self, width: int, height: int, is_plain: bool) -> None:
        self.width, self.height, self.is_plain = width, height, is_plain
        self.across, self.down = (1, 1) if is_plain else (2, 4)
        self.bits = [[0] * width for _ in range(height)]
        self.chars = [[" "] * width for _ in range(height)]
        self.roles: list[list[Role]] = [["dim"] * width for _ in range(height)]

    def draw(
        self, series: Series, x_range: tuple[float, float], axis: Axis, char: str, *, is_dotted: bool
    ) -> None:
        """Add a curve, its points joined."""
        x_low, x_high = x_range
        columns, rows = self.width * self.across, self.height * self.down
        before: tuple[int, int] | None = None
        for x, y in series.points:
            if not x_low <= x <= x_high:
                before = None
                continue
            at = round((x - x_low) / max(x_high - x_low, 1e-12) * (columns - 1))
            here = (at, rows - 1 - axis.position(y, rows))
            for column, row in _joined(before, here):
                if self.is_plain or not is_dotted or (column + row) % 2 == 0:
                    self._dot(column, row, series.role, char)
            before = here

    def _dot(self, column: int, row: int, role: Role, char: str) -> None:
        x, in_x = divmod(column, self.across)
        y, in_y = divmod(row, self.down)
        self.roles[y][x] = role
        if self.is_plain:
            self.chars[y][x] = char
        else:
            self.bits[y][x] |= _DOTS[in_x][in_y]

    def runs(self, y: int) -> list[Run]:
        """One row of cells."""
        if self.is_plain:
            return [Run(char, role) for char, role in zip(self.chars[y], self.roles[y], strict=True)]
        return [
            Run(chr(_BRAILLE + bits) if bits else " ", role if bits else "dim")
            for bits, role in zip(self.bits[y], self.roles[y], strict=True)
        ]


def _joined(before: tuple[int, int] | None, here: tuple[int, int]) -> list[tuple[int, int]]:
    """The dots from one point (left out) to the next."""
    if before is None:
        return [here]
    (x0, y0), (x1, y1) = before, here
    steps = max(abs(x1 - x0), abs(y1 - y0), 1)
    return [
        (x0 + round((x1 - x0) * i / steps), y0 + round((y1 - y0) * i / steps)) for i in range(1, steps + 1)
    ]
