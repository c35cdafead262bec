"""The traces of a folder, run by run, the newest first: what the file picker of the Trace screen lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run, merged
from morimon.draw.page import Frame, fitted
from morimon.draw.table import Column, Table, fit, widest
from morimon.draw.text import sanitised
from morimon.draw.units import size


@dataclass(frozen=True, slots=True)
class FileRow:
    """A trace file: `state` in a word, `text` what is wrong with it, `revision` which of its contents."""

    name: str
    rank: str
    state: str
    size_bytes: int
    modified_s: float
    revision: int = 0
    text: str = ""
    is_ready: bool = True


@dataclass(frozen=True, slots=True)
class GroupRow:
    """The files of one run; `text` says which ranks are here."""

    title: str
    text: str
    files: tuple[FileRow, ...]

    @property
    def modified_s(self) -> float:
        """When its newest file was written."""
        return max((file.modified_s for file in self.files), default=0.0)


Entry = tuple[GroupRow, FileRow | None]


def entries(groups: Sequence[GroupRow]) -> list[Entry]:
    """Rows of the list: a run, then its files."""
    return [(group, file) for group in groups for file in (None, *group.files)]


def age(seconds: float) -> str:
    """How long ago, coarsely, so that it rarely changes."""
    seconds = max(seconds, 0.0)
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


@dataclass(frozen=True, slots=True)
class FileRows:
    """The list, a line a run and a line a file."""

    rows: Sequence[Entry]
    table: Table
    shown: str
    now_s: float
    width: int

    def __len__(self) -> int:
        """Runs and files."""
        return len(self.rows)

    def line(self, index: int) -> Line:
        """A run, or a file."""
        group, file = self.rows[index]
        if file is None:
            return fitted(_group(group, self.table.glyphs, self.now_s), self.width)
        return fitted(_file(file, self), self.width)


def _group(group: GroupRow, glyphs: Glyphs, now_s: float) -> Line:
    role: Role = "warning" if " of " in group.text else "dim"
    return (
        Run(f" {sanitised(group.title)}", "title"),
        Run(f"  {group.text}", role),
        Run(f"  {glyphs.dot} {age(now_s - group.modified_s)}", "dim"),
    )


_STATES: dict[str, Role] = {"growing": "dim", "half-written": "warning", "failed": "failed"}


def _file(file: FileRow, rows: FileRows) -> Line:
    glyphs = rows.table.glyphs
    marks = {"growing": glyphs.waiting, "failed": glyphs.failed, "half-written": glyphs.warning}
    mark = glyphs.play if file.name == rows.shown else marks.get(file.state, " ")
    state = {"growing": "being written", "whole": ""}.get(file.state, file.state)
    words = f"{state}: {sanitised(file.text)}" if file.text else state
    role = _STATES.get(file.state, "text")
    return rows.table.row(
        {
            "mark": Run(mark, "key" if file.name == rows.shown else role),
            "rank": file.rank or glyphs.missing,
            "name": Run(sanitised(file.name), role if file.state == "failed" else "text"),
            "size": size(file.size_bytes, glyphs),
            "age": Run(age(rows.now_s - file.modified_s), "dim"),
            "state": Run(words, role),
        }
    )


def file_rows(
    groups: Sequence[GroupRow], shown: str, now_s: float, frame: Frame
) -> tuple[tuple[Line, ...], FileRows]:
    """Headings and rows. `shown`: the name of the file that the screen shows."""
    rows = entries(groups)
    ranks = min(widest((file.rank for group in groups for file in group.files), 4), 12)
    names = widest((file.name for group in groups for file in group.files), 12)
    columns = (
        Column("mark", "", 1, right=False),
        Column("rank", "rank", ranks),
        Column("name", "file", min(names, max(frame.width - 26 - ranks, 12)), right=False),
        Column("size", "size", 8, priority=2),
        Column("age", "written", 10, priority=1),
        Column("state", "", 12, right=False, priority=3, most=200),
    )
    table = fit(columns, frame.width, frame.glyphs, gap=2)
    heading, _ = table.heading()
    return (merged(heading),), FileRows(rows, table, shown, now_s, frame.width)
