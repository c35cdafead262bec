"""What a view hands to whoever shows it: lines that stay, rows that scroll, and where one may click.

Rows are made when they are asked for, so that a screen of forty lines costs forty lines, however many ranks or log
lines there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from morimon.draw.glyphs import UNICODE, Glyphs
from morimon.draw.line import Line, Run, width_of
from morimon.draw.text import cells, head


@dataclass(frozen=True, slots=True)
class Frame:
    """The room a view has: cells across, lines down (None: as many as it likes), and the glyphs to draw with."""

    width: int
    height: int | None = None
    glyphs: Glyphs = UNICODE

    @property
    def is_narrow(self) -> bool:
        """Below 110 columns: only what matters most."""
        return self.width < 110

    @property
    def is_wide(self) -> bool:
        """From 180 columns on: everything."""
        return self.width >= 180

    def fit(self, line: Line) -> Line:
        """The line in at most the frame's width; where something is missing the last cell says so."""
        if width_of(line) <= self.width:
            return line
        return (*fitted(line, self.width - 1), Run(self.glyphs.ellipsis, line[-1].role))


class Body(Protocol):
    """Rows that scroll, made one by one."""

    def __len__(self) -> int:
        """How many rows there are."""
        ...

    def line(self, index: int) -> Line:
        """The row at `index`."""
        ...


@dataclass(frozen=True, slots=True)
class Lines:
    """Rows that are all there already."""

    rows: Sequence[Line] = ()

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def line(self, index: int) -> Line:
        """The row at `index`."""
        return self.rows[index]


class Spot(NamedTuple):
    """Cells of a head line that do something when clicked: `action` in the words of the screen that shows the page."""

    line: int
    start: int
    end: int
    action: str


@dataclass(frozen=True, slots=True)
class Page:
    """A view at one moment: `head` stays on top, `foot` at the bottom, `body` scrolls between them.

    `cursor` is the row of the body that must be in sight, if there is one.
    """

    head: tuple[Line, ...] = ()
    body: Body = field(default_factory=Lines)
    foot: tuple[Line, ...] = ()
    cursor: int | None = None
    spots: tuple[Spot, ...] = ()

    def lines(self) -> list[Line]:
        """All of it on paper, from top to bottom."""
        return [*self.head, *body_lines(self.body), *self.foot]


def body_lines(body: Body) -> Iterator[Line]:
    """All rows of a body, one after the other."""
    return (body.line(index) for index in range(len(body)))


def fitted(line: Line, width: int) -> Line:
    """The line cut at `width` cells; shorter lines stay as they are."""
    if width_of(line) <= width:
        return line
    out: list[Run] = []
    for text, role in line:
        piece = head(text, width)
        width -= cells(piece)
        out.append(Run(piece, role))
        if width <= 0 or piece != text:
            break
    return tuple(out)
