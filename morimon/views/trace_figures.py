"""Tables of a trace as columns of figures: sorted, filtered and exported alike, whether of slots or of warps.

The filter's words: a text that a row's words must hold, `mean>50`, `share<=5`, and of warps `0-63,128`; blanks mean
"and". Missing figures are NaN; no comparison holds for them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from morimon.draw.sheet import Scalar, Sheet
from morimon.draw.text import cells, sanitised
from morimon.trace.model import ROLES, SlotRow, ThreadTable, Timeline, Trace

Column: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
_COMPARE = re.compile(r"([a-z0-9_]+)(<=|>=|!=|=|<|>)(-?\d+(?:\.\d+)?)")
_NUMBERS = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


class FigureFilterError(ValueError):
    """A filter that cannot be read, with a sentence that says what would be right."""


@dataclass(frozen=True, slots=True)
class FigureFilter:
    """A filter as it was typed, read into words."""

    text: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Figures:
    """Rows of figures: `name` and `role` a row, `code` its slot or thread, `columns` float64 by key.

    `number` is what ranges in the filter mean (the warp's number), `words` what its texts are looked for in.
    """

    name: tuple[str, ...]
    role: tuple[str, ...]
    code: NDArray[np.int64]
    columns: Mapping[str, Column]
    words: tuple[str, ...]
    number: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.name)

    @cached_property
    def name_cells(self) -> int:
        """Cells that the longest name takes."""
        return max((cells(sanitised(name)) for name in self.name), default=0)

    def largest(self, keys: Iterable[str]) -> float:
        """The largest figure of these columns."""
        return max((float(np.nanmax(self.columns[key], initial=0)) for key in keys), default=0.0)

    def value(self, row: int, key: str) -> float | None:
        """A figure; None where there is none."""
        value = float(self.columns[key][row])
        return None if value != value else value

    def chosen(self, key: str, chosen: FigureFilter, *, descending: bool) -> NDArray[np.int64]:
        """Rows that the filter keeps, sorted by a column (or "name", "role"); missing figures come last."""
        keep = np.flatnonzero(self.mask(chosen))
        if key in ("name", "role"):
            texts = self.name if key == "name" else self.role
            ordered = sorted(keep.tolist(), key=lambda row: texts[row], reverse=descending)
            return np.array(ordered, np.int64)
        values = self.columns[key][keep]
        missing = np.isnan(values)
        order = np.lexsort((keep, np.where(missing, 0, -values if descending else values), missing))
        return keep[order]

    def mask(self, chosen: FigureFilter) -> Mask:
        """Which rows a filter keeps."""
        keep = np.ones(len(self), bool)
        for word in chosen.words:
            keep &= self._test(word)
        return keep

    def _test(self, word: str) -> Mask:
        if match := _COMPARE.fullmatch(word):
            key, sign, figure = match.groups()
            values = self.columns[key]
            result: Mask = np.asarray(_OPERATORS[sign](values, float(figure)), bool) & ~np.isnan(values)
            return result
        if self.number is not None and _NUMBERS.fullmatch(word):
            keep = np.zeros(len(self), bool)
            for part in word.split(","):
                low, _, high = part.partition("-")
                keep |= (self.number >= int(low)) & (self.number <= int(high or low))
            return keep
        return np.array([word in words for words in self.words], bool)

    def parse(self, text: str) -> FigureFilter:
        """The filter that was typed; FigureFilterError where it names a figure that these rows do not have."""
        words = tuple(text.lower().split())
        for word in words:
            match = _COMPARE.fullmatch(word)
            if match and match[1] not in self.columns:
                raise FigureFilterError(f"'{match[1]}' is no figure of this table: {', '.join(self.columns)}")
        return FigureFilter(text.strip(), words)

    def sheet(self, first: str, rows: Sequence[int] | NDArray[np.int64]) -> Sheet:
        """These rows with all their figures, for export. Times are microseconds."""
        keys = list(self.columns)
        data: list[list[Scalar]] = [
            [self.name[row], self.role[row], *(self.value(row, key) for key in keys)]
            for row in map(int, rows)
        ]
        return Sheet([first, "role", *keys], data)


_STATISTICS = ("mean", "min", "p50", "p90", "p99", "max", "std")


def slot_figures(trace: Trace, rows: Sequence[SlotRow], timeline: Timeline) -> Figures:
    """One row a slot and role. start and wall are the bar's in this iteration, the statistics those of `rows`."""
    bars = {bar.slot: bar for bar in timeline.bars}
    zero = timeline.iteration.start_ns
    columns: dict[str, list[float | None]] = {
        key: [] for key in ("start", "wall", "working", "idle", *_STATISTICS, "total", "share")
    }
    for row in rows:
        bar, figures = bars.get(row.slot), row.working
        columns["start"].append((bar.start_ns - zero) / 1000 if bar else None)
        columns["wall"].append((bar.end_ns - bar.start_ns) / 1000 if bar else None)
        columns["working"].append(figures.calls if figures else 0)
        columns["idle"].append(row.idle)
        for key in _STATISTICS:
            columns[key].append(getattr(figures, f"{key}_us") if figures else None)
        columns["total"].append(figures.total_us if figures else None)
        columns["share"].append(100 * row.all.share)
    slots = [trace.slots[row.slot] for row in rows]
    roles = [ROLES[row.role] for row in rows]
    return Figures(
        name=tuple(slot.name for slot in slots),
        role=tuple(roles),
        code=np.array([row.slot for row in rows], np.int64),
        columns={key: np.array(values, np.float64) for key, values in columns.items()},
        words=tuple(
            f"{slot.name} {slot.short} {slot.lane} {slot.phase} {role}".lower()
            for slot, role in zip(slots, roles, strict=True)
        ),
    )


SLOT_COLUMNS = 8
"""Slots that have a column of their own in the table of warps."""


def thread_figures(trace: Trace, table: ThreadTable) -> Figures:
    """One row a thread: its sums, its ratio to the median of its role, and the time in each of the largest slots."""
    by_slot = table.by_slot_us.sum(axis=0)
    largest = sorted(
        np.argsort(-by_slot, kind="stable")[:SLOT_COLUMNS].tolist(), key=lambda code: _order(trace, code)
    )
    columns: dict[str, Column] = {
        "calls": table.calls.astype(np.float64),
        "total": table.total_us,
        "ratio": table.ratio,
        "mean": table.mean_us,
        "p50": table.p50_us,
        "p99": table.p99_us,
        "max": table.max_us,
        "share": 100 * table.share,
        "outlier": table.outlier.astype(np.float64),
    }
    for code in largest:
        if by_slot[code] > 0:
            spent = table.by_slot_us[:, code]
            columns[trace.slots[code].short.lower()] = np.where(spent > 0, spent, np.nan)
    names = tuple(trace.threads.name[thread] for thread in table.thread.tolist())
    roles = tuple(ROLES[role] for role in trace.threads.role[table.thread].tolist())
    marks = ("", "outlier")
    return Figures(
        name=names,
        role=roles,
        code=table.thread.astype(np.int64),
        columns=columns,
        words=tuple(
            f"{name} {role} {marks[out]}".lower()
            for name, role, out in zip(names, roles, table.outlier.tolist(), strict=True)
        ),
        number=np.asarray(trace.threads.tid[table.thread], np.int64),
    )


def _order(trace: Trace, code: int) -> tuple[bool, int, int]:
    order = trace.slots[code].order
    return order < 0, order, code
