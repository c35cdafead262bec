"""Tables of fixed columns: widths sized for the largest value, columns that go when there is no room for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import TypeAlias

from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run, merged, width_of
from morimon.draw.page import Spot, fitted
from morimon.draw.text import padded

Cell: TypeAlias = Run | Line | str


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `priority` 0 always stays, the highest number goes first when there is no room.

    `width` is the least it needs; a column with `most` above it takes what room is left. Neighbours of one `group`
    belong together: a vertical line stands where it changes, and its name above them.
    """

    key: str
    title: str
    width: int
    right: bool = True
    priority: int = 0
    role: Role = "text"
    group: str = ""
    most: int = 0
    sortable: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Columns that fit, `gap` cells apart, and the glyphs to draw them with."""

    columns: tuple[Column, ...]
    gap: int
    glyphs: Glyphs

    def has(self, key: str) -> bool:
        """Whether this column found room."""
        return any(column.key == key for column in self.columns)

    def row(self, cells: Mapping[str, Cell], role: Role | None = None) -> Line:
        """One row; a cell that is missing in `cells` stays blank. `role` replaces the columns' own roles."""
        runs: list[Run] = []
        for column, lead in zip(self.columns, self._leads(), strict=True):
            runs.append(lead)
            cell = cells.get(column.key, "")
            if isinstance(cell, str):
                cell = Run(cell, role or column.role)
            if isinstance(cell, Run):
                text = padded(cell.text, column.width, right=column.right, ellipsis=self.glyphs.ellipsis)
                runs.append(Run(text, cell.role))
            else:
                cell = fitted(cell, column.width)
                blanks = Run(" " * (column.width - width_of(cell)))
                runs += [blanks, *cell] if column.right else [*cell, blanks]
        return merged(runs)

    def heading(
        self, sort: str = "", *, descending: bool = False, line: int = 0
    ) -> tuple[Line, tuple[Spot, ...]]:
        """The line of titles and where to click on it (`sort('key')`); `line` is where it will stand in the head.

        The arrow of the sorted column takes the cell before its title, so that no column moves.
        """
        arrow = self.glyphs.descending if descending else self.glyphs.ascending
        runs: list[Run] = []
        spots = []
        at = 0
        for column, lead in zip(self.columns, self._leads(), strict=True):
            if column.key == sort:
                title = padded(arrow + column.title, column.width + 1, right=column.right)
                runs += [Run(lead.text[:-1], lead.role), Run(title, "title")]
            else:
                runs += [lead, Run(padded(column.title, column.width, right=column.right), "heading")]
            if column.sortable:
                spots.append(
                    Spot(
                        line, at + len(lead.text), at + len(lead.text) + column.width, f"sort({column.key!r})"
                    )
                )
            at += len(lead.text) + column.width
        return merged(runs), tuple(spots)

    def group_line(self, roles: Mapping[str, Role] | None = None) -> Line:
        """The names of the groups over their columns."""
        runs: list[Run] = []
        pairs = zip(self.columns, self._leads(), strict=True)
        for group, members in groupby(pairs, key=lambda pair: pair[0].group):
            (first, lead), *rest = members
            width = first.width + sum(len(gap.text) + column.width for column, gap in rest)
            runs += [
                lead,
                Run(padded(group, width, ellipsis=self.glyphs.ellipsis), (roles or {}).get(group, "heading")),
            ]
        return merged(runs)

    def _leads(self) -> list[Run]:
        """What stands before each column: a blank, a gap, or the line between two groups."""
        bar = Run(f" {self.glyphs.bar} ", "border")
        blank = Run(" " * self.gap)
        between = (
            bar if column.group != before.group else blank for before, column in pairwise(self.columns)
        )
        return [Run(" "), *between]


def fit(columns: Sequence[Column], width: int, glyphs: Glyphs, gap: int = 2) -> Table:
    """A table of the columns that fit in `width` cells, the stretchable ones grown into what is left."""
    kept = [replace(column, width=max(column.width, len(column.title))) for column in columns]
    while len(kept) > 1 and _needed(kept, gap) > width:
        least = max(column.priority for column in kept)
        if least == 0:
            break
        del kept[max(i for i, column in enumerate(kept) if column.priority == least)]
    spare = width - _needed(kept, gap)
    growing = [i for i, column in enumerate(kept) if column.most > column.width]
    while spare > 0 and growing:
        share = max(spare // len(growing), 1)
        for i in list(growing):
            more = min(share, kept[i].most - kept[i].width, spare)
            kept[i] = replace(kept[i], width=kept[i].width + more)
            spare -= more
            if kept[i].width >= kept[i].most:
                growing.remove(i)
    return Table(tuple(kept), gap, glyphs)


def _needed(columns: Sequence[Column], gap: int) -> int:
    gaps = sum(3 if column.group != before.group else gap for before, column in pairwise(columns))
    return 1 + gaps + sum(column.width for column in columns)


def widest(texts: Iterable[str], least: int) -> int:
    """Cells that a column of these figures needs, at least `least`; figures are one cell a character."""
    return max([least, *map(len, texts)])
