"""A slot opened into its warps: one row a warp, the one that ends last on top, so that a load imbalance is a staircase.

Rows are made when they come into sight, from arrays that were sorted once; a row with more spans than cells is drawn as
density, from sums that were taken once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run, merged
from morimon.draw.text import clipped, padded, sanitised
from morimon.trace.model import Trace
from morimon.views.trace_paint import Ints, PaintRow
from morimon.views.trace_scale import Scale

NAMED = 7
"""Cells that a span must have to be named."""
FIGURE = 9
"""Cells of the figure behind a row, where there is room for it."""


class Warps:
    """The spans of one iteration of one process, warp by warp (warps are rows of `Trace.threads`)."""

    def __init__(self, trace: Trace, process: int, number: int) -> None:
        spans = trace.spans
        self.trace = trace
        inside = np.flatnonzero(
            (spans.iteration == number) & (trace.threads.process[spans.thread] == process)
        )
        thread = spans.thread[inside]
        order = np.lexsort((-spans.end_ns[inside], spans.start_ns[inside], thread))
        self._at = inside[order]
        thread = thread[order]
        self.thread, self._first = np.unique(thread, return_index=True)
        self._first = np.append(self._first, thread.size)
        self.start_ns, self.end_ns = spans.start_ns[self._at], spans.end_ns[self._at]
        self.slot = spans.slot[self._at]
        self.idle = spans.idle[self._at]
        self._row = np.repeat(np.arange(self.thread.size), np.diff(self._first))
        self._reach = _running_maximum(self.end_ns, self._row)
        self._by_slot: dict[int, Ints] = {}
        self._drawn: tuple[object, dict[int, Line]] = (None, {})

    def __len__(self) -> int:
        return int(self.thread.size)

    @cached_property
    def _sums(self) -> tuple[Ints, Ints, Ints, Ints]:
        """By warp and slot: key of each span in order, starts, ends, and durations summed up before each."""
        key = self._row * len(self.trace.slots) + self.slot
        order = np.lexsort((self.start_ns, key))
        start, end = self.start_ns[order], self.end_ns[order]
        return key[order], start, end, np.concatenate([[0], np.cumsum(end - start)])

    def of_slot(self, code: int) -> Ints:
        """Rows of the warps that log a slot, the one that ends it last first."""
        if code in self._by_slot:
            return self._by_slot[code]
        mine = np.flatnonzero(self.slot == code)
        end = np.full(len(self), -1, np.int64)
        np.maximum.at(end, self._row[mine], self.end_ns[mine])
        rows = np.flatnonzero(end >= 0)
        self._by_slot[code] = rows[np.lexsort((rows, -end[rows]))]
        return self._by_slot[code]

    def busiest(self) -> Ints:
        """All rows, the one with the most time in spans first."""
        total = np.bincount(self._row, self.end_ns - self.start_ns, len(self))
        return np.argsort(-total, kind="stable")

    def drawn(self, as_what: object) -> dict[int, Line]:
        """Rows that have been drawn already, by row; none as soon as they are to be drawn otherwise."""
        if self._drawn[0] != as_what:
            self._drawn = (as_what, {})
        return self._drawn[1]

    def spans_of(self, row: int, code: int | None = None) -> tuple[Ints, Ints, NDArray[np.int32]]:
        """start_ns, end_ns, slot of a warp's spans in order of start; of one slot only, if one is named."""
        mine = slice(int(self._first[row]), int(self._first[row + 1]))
        start, end, slot = self.start_ns[mine], self.end_ns[mine], self.slot[mine]
        if code is None:
            return start, end, slot
        keep = slot == code
        return start[keep], end[keep], slot[keep]

    def is_idle(self, row: int, code: int) -> bool:
        """Whether the warp only passed through the slot."""
        mine = slice(int(self._first[row]), int(self._first[row + 1]))
        keep = self.slot[mine] == code
        return bool(self.idle[mine][keep].all())

    def paint(self, row: int, scale: Scale) -> PaintRow:
        """The warp's spans in sight; density where there are more of them than cells."""
        first, last = int(self._first[row]), int(self._first[row + 1])
        window = scale.window
        begin = first + int(np.searchsorted(self._reach[first:last], window.start_ns))
        end = first + int(np.searchsorted(self.start_ns[first:last], window.end_ns, side="right"))
        painted = PaintRow(scale)
        if end - begin > scale.width:
            painted.density(*self._coverage(row, scale))
            return painted
        seen = np.flatnonzero(self.end_ns[begin:end] >= window.start_ns) + begin
        painted.spans(self.start_ns[seen], self.end_ns[seen], self.slot[seen])
        return painted

    def _coverage(self, row: int, scale: Scale) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """A cell: the share of its time that is covered, and the slot that covers most of it."""
        key, start, end, before = self._sums
        slots = len(self.trace.slots)
        low, high = np.searchsorted(key, [row * slots, (row + 1) * slots]).tolist()
        edges = scale.window.start_ns + np.arange(scale.width + 1) * (scale.window.length_ns / scale.width)
        total, most = np.zeros(scale.width), np.zeros(scale.width)
        code = np.zeros(scale.width, np.int32)
        at = low
        while at < high:
            until = at + int(np.searchsorted(key[at:high], key[at], side="right"))
            opened = np.searchsorted(start[at:until], edges, side="right")
            last = at + np.maximum(opened - 1, 0)
            open_for = np.clip(edges - start[last], 0, end[last] - start[last])
            covered = np.diff(np.where(opened > 0, before[last] - before[at] + open_for, 0.0))
            total += covered
            better = covered > most
            most[better], code[better] = covered[better], int(key[at]) % slots
            at = until
        return np.clip(total / (scale.window.length_ns / scale.width), 0, 1), code


def _running_maximum(values: Ints, group: Ints) -> Ints:
    """The largest value so far within each group; groups stand together, in order."""
    if not values.size:
        return values
    low = int(values.min())
    span = int(values.max()) - low + 1
    lifted: Ints = np.maximum.accumulate(values - low + group * span) - group * span + low
    return lifted


@dataclass(frozen=True)
class WarpRows:
    """Rows of warps: the name in a gutter, the spans, and how long the warp was in the chosen slot."""

    warps: Warps
    rows: Ints
    code: int | None
    scale: Scale
    palette: Sequence[Role]
    gutter: int
    glyphs: Glyphs
    has_figure: bool
    has_names: bool = False
    """Whether spans with room for it are named; a span that is drawn over by inner ones is not."""

    def __len__(self) -> int:
        """How many warps there are."""
        return int(self.rows.size)

    def line(self, index: int) -> Line:
        """One warp."""
        row = int(self.rows[index])
        drawn = self.warps.drawn(
            (self.code, self.scale, self.palette, self.gutter, self.glyphs, self.has_figure)
        )
        if row not in drawn:
            drawn[row] = self.band(index, 1)[0]
        return drawn[row]

    def band(self, index: int, thick: int) -> list[Line]:
        """One warp in several lines, named in the middle one."""
        row = int(self.rows[index])
        glyphs = self.glyphs
        name = sanitised(self.warps.trace.threads.name[int(self.warps.thread[row])])
        role: Role = "dim" if self.code is not None and self.warps.is_idle(row, self.code) else "text"
        painted = self.warps.paint(row, self.scale)
        plain = painted.copy()
        if self.has_names:
            self._name(row, painted)
        lines = []
        for at in range(thick):
            text = padded(name if at == 0 else "", self.gutter - 2, ellipsis=glyphs.ellipsis)
            cells = (painted if at == (thick - 1) // 2 else plain).line(self.palette, glyphs)
            lines.append(merged([Run(f" {text} ", role), *cells]))
        if self.has_figure and self.code is not None:
            start, end, _ = self.warps.spans_of(row, self.code)
            figure = Run(f"{(int(end[-1]) - int(start[0])) / 1000:>{FIGURE}.2f}")
            lines[0] = merged([*lines[0], figure])
        return lines

    def _name(self, row: int, painted: PaintRow) -> None:
        start, end, slot = self.warps.spans_of(row)
        shortest = NAMED * self.scale.window.length_ns // self.scale.width
        for at in np.flatnonzero(end - start >= shortest).tolist():
            found = self.scale.stretch(int(start[at]), int(end[at]))
            if found is None:
                continue
            code = int(slot[at])
            begin, stop = painted.solid(code, *found)
            text = sanitised(self.warps.trace.slots[code].name)
            if stop - begin >= NAMED and text.isascii():
                text = clipped(text, stop - begin - 2, self.glyphs.ellipsis)
                painted.label(begin + 1, text, self.palette[code])
