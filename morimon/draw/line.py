"""Styled text as values: a line is a tuple of runs, a run is text with a role; colours are the theme's business."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias, cast

from morimon.draw.text import cells

Role: TypeAlias = Literal[
    "text",  # plain figures and words
    "dim",  # what may be overlooked
    "title",
    "heading",  # column headings
    "border",
    "key",  # a key to press
    "dispatch",
    "combine",
    "inter",
    "intra",
    "serial",
    "concurrent",
    "ok",
    "warning",
    "late",
    "failed",
    "impossible",
    "selected",
    "cursor",
    "match",  # what a search found
    "slot-copy",
    "slot-send",
    "slot-recv",
    "slot-sync",
    "slot-barrier",
    "slot-inter",
    "slot-intra",
    "slot-intra-2",
    "slot-intra-3",
    "slot-intra-4",
    "slot-all",
    "slot-other",
    "heat-0",
    "heat-1",
    "heat-2",
    "heat-3",
    "heat-4",
    "heat-5",
    "heat-6",
    "heat-7",
]


_SEAM = "|"


def split(left: Role, right: Role = "text") -> Role:
    """The role of a block glyph that fills the left part of a cell: with the colour that `left` has for its background,
    while the rest of the cell has `right`'s; "text" stands for the bare ground.
    """
    return cast("Role", f"{left}{_SEAM}{right}")


def halves(role: str) -> tuple[str, str] | None:
    """What `split` joined; None for a role of its own."""
    left, seam, right = role.partition(_SEAM)
    return (left, right) if seam else None


class Run(NamedTuple):
    """Text of one role. The text holds no control codes and no line ends."""

    text: str
    role: Role = "text"

    @property
    def width(self) -> int:
        """Terminal cells that the text takes."""
        return cells(self.text)


Line: TypeAlias = tuple[Run, ...]


def width_of(line: Line) -> int:
    """Terminal cells that the line takes."""
    return sum(run.width for run in line)


def plain(line: Line) -> str:
    """The line's text without roles and without trailing blanks."""
    return "".join(run.text for run in line).rstrip()


def last_difference(before: Line, after: Line) -> int:
    """Where the right-most cell ends in which two lines look different; 0 where they look the same."""
    if (shorter := width_of(before)) > (width := width_of(after)):
        return shorter
    if shorter < width:
        return width
    end = width
    for old, new in zip(reversed(before), reversed(after), strict=False):
        if old == new:
            end -= new.width
            continue
        if old.role == new.role and new.text.isascii() and old.text.isascii():
            pairs = enumerate(zip(reversed(old.text), reversed(new.text), strict=False))
            end -= next((same for same, (one, other) in pairs if one != other), 0)
        return end
    return end


def merged(runs: Iterable[Run]) -> Line:
    """The same line with neighbours of one role joined and empty runs left out."""
    out: list[Run] = []
    for run in runs:
        if not run.text:
            continue
        if out and out[-1].role == run.role:
            out[-1] = Run(out[-1].text + run.text, run.role)
        else:
            out.append(run)
    return tuple(out)
