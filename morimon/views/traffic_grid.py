"""The matrix on a grid of cells: how wide they are, what stands in them, and where nodes are parted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from morimon.draw.charts import HEAT_STEPS, heat, heat_step
from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run, merged, width_of
from morimon.draw.units import number
from morimon.views.traffic_matrix import Floats, Matrix, blocks, cell_sizes

_LABEL = 7
_SUM = 10
_WIDEST = 9
_LEAST_SPAN = 0.1
_HEADING: Role = "heading"


@dataclass(frozen=True, eq=False)
class Grid:
    """Cells of `per` × `per` ranks, `cell` characters wide, columns `first`…`first + columns` of them in sight."""

    matrix: Matrix
    values: Floats
    """Tokens of a rank pair (their mean, where a cell stands for several)."""
    per: int
    cell: int
    first: int
    columns: int
    has_numbers: bool
    """Cells hold counts; otherwise steps of the scale, 0…7."""
    glyphs: Glyphs

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The ends of the cells' scale; 0 where no value is known."""
        return scale_ends(self.values) if self.is_known else (0.0, 0.0)

    @property
    def is_known(self) -> bool:
        """Whether any sender has told."""
        return not bool(np.isnan(self.values).all())

    @property
    def shown(self) -> range:
        """Columns in sight."""
        return range(self.first, self.first + self.columns)

    def begins_node(self, index: int) -> bool:
        """Whether a border stands before this row or column."""
        gpus = self.matrix.gpu_per_node
        return bool(gpus) and index > 0 and index * self.per % (gpus or 1) == 0 and self.per < (gpus or 1)

    def row(self, index: int, cursor: tuple[int, int]) -> Line:
        """One sender, or several: its cells and what it sends in all."""
        label = Run(f"{index * self.per:>{_LABEL - 1}} ", "selected" if cursor[0] == index else "heading")
        runs = [label]
        for column in self.shown:
            runs += self._lead(column)
            value = float(self.values[index, column])
            run = heat(value, *self.ends, self._text(value, heat_step(value, *self.ends)))
            if np.isnan(value):
                run = Run(run.text, "dim")
            runs.append(Run(self._pointed(run.text), "selected") if cursor == (index, column) else run)
        sent = self.matrix.sent[index * self.per : (index + 1) * self.per].sum()
        return merged([*runs, Run(f"{_count(float(sent), self.glyphs):>{_SUM}}", "text")])

    def border(self) -> Line:
        """The line between two nodes."""
        return (Run(" " * _LABEL + self.glyphs.rule * (self.width - _LABEL - _SUM), "border"),)

    def heading(self, cursor: tuple[int, int]) -> Line:
        """Numbers of the receivers over their columns; where there is no room for all, of the nodes' first ones."""
        width = len(str(self.matrix.world_size - 1)) + 1
        chars: list[str] = [" "] * (self.width - _LABEL - _SUM + width)
        roles: list[Role] = [_HEADING] * len(chars)
        has_room = self.cell >= width
        some = [column for column in self.shown if column == self.first or self.begins_node(column)]
        if not has_room and len(some) == 1:
            some = list(self.shown)
        for column in [*(c for c in self.shown if c == cursor[1]), *(self.shown if has_room else some)]:
            text = str(column * self.per)
            end = self._end(column)
            start = end - len(text) if has_room else end - self.cell
            if all(char == " " for char in chars[max(start - 1, 0) : start + len(text) + 1]):
                chars[start : start + len(text)] = text
                roles[start : start + len(text)] = ["selected" if column == cursor[1] else _HEADING] * len(
                    text
                )
        labels = [Run(char, role) for char, role in zip(chars, roles, strict=True)]
        return merged(
            [Run(f"{'rank':>{_LABEL - 1}} ", _HEADING), *labels, Run(f"{'sent':>{_SUM - width}}", _HEADING)]
        )

    def sums(self) -> Line:
        """What every receiver gets, on a scale of its own, and all of it."""
        received = self.matrix.received
        edges = np.arange(0, len(received), self.per)
        values = np.add.reduceat(received, edges)
        low, high = scale_ends(values)
        runs = [Run(f"{'recv':>{_LABEL - 1}} ", _HEADING)]
        for column in self.shown:
            value = float(values[column])
            runs += self._lead(column)
            runs.append(heat(value, low, high, self._text(value, heat_step(value, low, high))))
        return merged([*runs, Run(f"{_count(float(received.sum()), self.glyphs):>{_SUM}}", "title")])

    def experts(self, width: int) -> Line:
        """The experts of every receiver under its column: a character for each, or for the hottest of a few.

        What the characters mean follows, where a line of this width has room for it.
        """
        loads = self.matrix.experts_of_ranks
        if loads is None:
            return ()
        low, high = scale_ends(loads)
        runs = [Run(f"{'experts'[: _LABEL - 1]:>{_LABEL - 1}} ", _HEADING)]
        for column in self.shown:
            runs += self._lead(column)
            own = loads[column * self.per : (column + 1) * self.per].ravel()
            parts = np.array_split(
                own, min(self.cell - (self.cell > 2), len(own))
            )  # a gap between wide cells
            runs.append(Run(" " * (self.cell - len(parts))))
            for part in parts:
                value = float(part.max())
                runs.append(heat(value, low, high, self._digit(value, heat_step(value, low, high))))
        line = merged(runs)
        scale = merged([Run("  rows "), *self._scale(low, high)])
        return merged([*line, *scale]) if width_of(line) + width_of(scale) <= width else line

    def legend(self) -> Line:
        """The scale: its steps between the smallest and the largest value."""
        return self._scale(*self.ends)

    def _scale(self, low: float, high: float) -> Line:
        steps = [heat(step, 0, HEAT_STEPS, f"{step}") for step in range(HEAT_STEPS)]
        return (
            Run(f"{_count(low, self.glyphs)} ", "text"),
            *steps,
            Run(f" {_count(high, self.glyphs)}", "text"),
        )

    @property
    def width(self) -> int:
        """Cells of a whole line."""
        return _LABEL + self._end(self.first + self.columns - 1) + _SUM

    def _end(self, column: int) -> int:
        """Where a column ends, from the end of the labels on."""
        shown = range(self.first, column + 1)
        return len(shown) * self.cell + sum(self.begins_node(c) for c in shown if c > self.first)

    def _lead(self, column: int) -> list[Run]:
        if column > self.first and self.begins_node(column):
            return [Run(self.glyphs.bar, "border")]
        return []

    def _text(self, value: float, step: int) -> str:
        if np.isnan(value):
            return f"{self.glyphs.missing:>{self.cell}}"
        text = self._digit(value, step)
        if self.has_numbers:
            text = _count(value, self.glyphs) if self._has_thousands else f"{value:.0f}"
        return f"{text:>{self.cell}}"

    @cached_property
    def _has_thousands(self) -> bool:
        """Whether the largest figure has room for its marks, so that all of them have."""
        return len(_count(float(self.matrix.received.max()), self.glyphs)) < self.cell

    def _pointed(self, text: str) -> str:
        """The text with a pointer in the gap before it, so that the cursor shows without colour."""
        value = text.lstrip(" ")
        gap = len(text) - len(value)
        return " " * (gap - 1) + self.glyphs.play + value if gap else text

    def _digit(self, value: float, step: int) -> str:
        return self.glyphs.dot if value == 0 else str(step)


def grid_of(matrix: Matrix, width: int, column: int, glyphs: Glyphs, *, exact: bool) -> Grid:
    """The best grid that `width` characters have room for.

    All columns are in sight: with counts where these fit, else with steps of the scale, else with several ranks in a
    cell. `exact` insists on single ranks and counts: then as many columns as fit, with `column` among them.
    """
    world, gpus = matrix.world_size, matrix.gpu_per_node
    room = width - _LABEL - _SUM
    digits = len(f"{max(np.nanmax(matrix.received, initial=0), 1):.0f}") + 1
    borders = (world - 1) // gpus if gpus else 0
    if exact or world * digits + borders <= room:
        columns = min(world, max((room - borders) // digits, 1))
        cell = min((room - borders) // columns, max(_WIDEST, digits))
        first = min(max(column - columns // 2, 0), world - columns)
        return Grid(matrix, matrix.tokens, 1, cell, first, columns, True, glyphs)
    for per in cell_sizes(world, gpus):
        columns = -(-world // per)
        parted = borders if gpus and per < gpus else 0
        if columns + parted <= room:
            break
    cell = min((room - parted) // columns, 3)
    return Grid(matrix, blocks(matrix.tokens, per), per, max(cell, 1), 0, columns, False, glyphs)


def scale_ends(values: Floats) -> tuple[float, float]:
    """Where the scale of these values begins and ends: at the smallest and the largest of them.

    Values that are all alike stand in its middle: it spans a tenth of the largest one at least.
    """
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    wider = max(_LEAST_SPAN * high - (high - low), 0.0) / 2
    return low - wider, high + wider


def _count(value: float, glyphs: Glyphs) -> str:
    return number(None if np.isnan(value) else value, 0, glyphs)
