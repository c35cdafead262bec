"""The two tables of the Trace screen, and its time axis: rows of slots by role, rows of warps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run, merged, split
from morimon.draw.page import Frame, Spot
from morimon.draw.table import Cell, Column, Table, fit
from morimon.draw.text import sanitised
from morimon.draw.units import number
from morimon.views.trace_figures import Figures
from morimon.views.trace_look import Look, Sorting, TraceState

_COUNTS = ("working", "idle", "calls")
_DECIMALS = {"share": 1, "ratio": 2}
SORTS_SLOTS = (
    "start",
    "name",
    "wall",
    "working",
    "idle",
    "mean",
    "min",
    "p50",
    "p90",
    "p99",
    "max",
    "std",
    "share",
)


def slot_columns(figures: Figures, frame: Frame) -> Table:
    """The columns of slots that have room."""
    names = max(figures.name_cells, 12)
    time = _time_width(figures, ("start", "wall", "mean", "max"))
    columns = (
        Column("mark", "", 2, right=False),
        Column("name", "slot", min(names, 22), right=False, most=names, sortable=True),
        Column("role", "role", 4, right=False, priority=4),
        Column("start", "start", time, priority=3, sortable=True),
        Column("wall", "wall", time, priority=1, sortable=True),
        Column("working", "working", 7, priority=3, sortable=True),
        Column("idle", "idle", 5, priority=2, sortable=True),
        Column("mean", "mean", time, sortable=True),
        Column("min", "min", time, priority=5, sortable=True),
        Column("p50", "p50", time, priority=7, sortable=True),
        Column("p90", "p90", time, priority=6, sortable=True),
        Column("p99", "p99", time, priority=4, sortable=True),
        Column("max", "max", time, sortable=True),
        Column("std", "std", 7, priority=8, sortable=True),
        Column("share", "share %", 7, priority=1, sortable=True),
    )
    return fit(columns, frame.width, frame.glyphs, gap=1 if frame.is_narrow else 2)


def thread_columns(figures: Figures, frame: Frame) -> Table:
    """The columns of warps that have room."""
    names = max(figures.name_cells, 6)
    own = [key for key in figures.columns if key not in _THREAD_KEYS]
    time = _time_width(figures, ("total",))
    columns = (
        Column("mark", "", 1, right=False),
        Column("name", "warp", min(names, 20), right=False, sortable=True),
        Column("role", "role", 4, right=False, priority=2),
        Column("calls", "calls", 5, priority=5, sortable=True),
        Column("total", "total", time, sortable=True),
        Column("ratio", f"{frame.glyphs.times} median", 8, sortable=True),
        Column("max", "max", time, priority=4, sortable=True),
        Column("p99", "p99", time, priority=9, sortable=True),
        *(
            Column(key, key[:12], max(time, len(key[:12])), priority=6 + at, sortable=True)
            for at, key in enumerate(own)
        ),
        Column("share", "share %", 7, priority=7, sortable=True),
    )
    return fit(columns, frame.width, frame.glyphs, gap=1 if frame.is_narrow else 2)


_THREAD_KEYS = ("calls", "total", "ratio", "mean", "p50", "p99", "max", "share", "outlier")


def sorts_of(figures: Figures, *, of_threads: bool) -> list[str]:
    """Keys to sort by, in the order in which a key press goes through them."""
    if not of_threads:
        return list(SORTS_SLOTS)
    return ["name", *(key for key in figures.columns if key != "outlier")]


def _time_width(figures: Figures, keys: Sequence[str]) -> int:
    return max(len(number(figures.largest(keys), 2)), 7)


@dataclass(frozen=True)
class FigureRows:
    """The rows of one of the tables."""

    figures: Figures
    rows: NDArray[np.int64]
    table: Table
    marks: Mapping[int, Run]
    """Code -> what stands before the row."""

    def __len__(self) -> int:
        """How many rows the filter kept."""
        return int(self.rows.size)

    def line(self, index: int) -> Line:
        """One row."""
        row, figures, glyphs = int(self.rows[index]), self.figures, self.table.glyphs
        cells: dict[str, Cell] = {"name": sanitised(figures.name[row]), "role": Run(figures.role[row], "dim")}
        for column in self.table.columns:
            if column.key in figures.columns:
                decimals = 0 if column.key in _COUNTS else _DECIMALS.get(column.key, 2)
                cells[column.key] = number(figures.value(row, column.key), decimals, glyphs)
        code = int(figures.code[row])
        cells["mark"] = self.marks.get(code, Run(" "))
        outlier = figures.columns.get("outlier")
        if outlier is not None and outlier[row]:
            cells["mark"] = Run(glyphs.warning, "late")
            cells["ratio"] = Run(number(figures.value(row, "ratio"), 2, glyphs), "late")
        return self.table.row(cells)


def slot_marks(look: Look, glyphs: Glyphs) -> dict[int, Run]:
    """A swatch of each slot's colour."""
    return {code: Run(glyphs.lane[0] * 2, split(role)) for code, role in enumerate(look.palette)}


def heading(
    table: Table, sorting: Sorting, line: int, title: str, note: str, frame: Frame
) -> tuple[tuple[Line, Line], tuple[Spot, ...]]:
    """A rule with the table's name, and the titles of its columns; `line`: where the rule stands in the head."""
    lead = f"{frame.glyphs.rule} "
    rest = max(frame.width - len(lead) - len(title) - len(note) - 3, 0)
    role: Role = "match" if note else "border"
    rule = merged(
        [
            Run(lead, "border"),
            Run(title, "heading"),
            Run(" "),
            Run(f" {note} " if note else "", role),
            Run(frame.glyphs.rule * rest, "border"),
        ]
    )
    titles, spots = table.heading(sorting.key, descending=sorting.descending, line=line + 1)
    return (rule, titles), spots


def table_rows(
    look: Look, threads: Figures | None, state: TraceState
) -> tuple[Figures, NDArray[np.int64]] | None:
    """The figures in sight and their rows in order; None while they are still being added up."""
    figures = threads if state.below == "threads" else look.of_all if state.every else look.slots
    if figures is None:
        return None
    sorting = state.sorting
    key = sorting.key if sorting.key in figures.columns or sorting.key in ("name", "role") else "total"
    return figures, figures.chosen(key, state.filter, descending=sorting.descending)
