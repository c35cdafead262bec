"""The Log screen: every rank's output with a gutter that says whose it is, or one rank's; the first failure on top.

The text itself comes from `read`, so that only lines in sight are ever read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run, merged, width_of
from morimon.draw.page import Frame, Lines, Page, fitted
from morimon.draw.text import cells, clipped, padded, sanitised, tail_from
from morimon.draw.units import number
from morimon.model.events import Failure, LogLines
from morimon.store.snapshot import RunSnapshot
from morimon.views.log_rows import LogChoice, LogRows

LEGEND = (
    ("3 |", "the rank whose line it is; job: what torchrun or the whole command printed"),
    ("! and ✗", "warnings and errors, by the words of the line"),
    (
        "following",
        "the newest line stays in sight; going up stays where you are, going to the end follows again",
    ),
)
_LEVEL_ROLES: dict[str, Role] = {"info": "text", "warning": "warning", "error": "failed"}
_LEVEL_WORDS = {"info": "all levels", "warning": "warnings and errors", "error": "errors"}
FAILURE_LINES = 6
_BESIDE = 5
"""Cells of a row that are neither the rank nor the text."""


class Reader(Protocol):
    """Gives the text of references."""

    def lines(self, ref: LogLines) -> Sequence[str]:
        """The lines of one reference."""
        ...

    def at(self, file: str, offset: int, length: int) -> Sequence[str]:
        """The lines in a stretch of a file."""
        ...


@dataclass(frozen=True, slots=True)
class LogState:
    """What the person chose to see, and where in it they are."""

    choice: LogChoice = field(default_factory=LogChoice)
    follow: bool = True
    cursor: int = 0
    pan: int = 0
    """Terminal cells of text that are out of sight on the left."""
    search: str = ""


def matcher(search: str) -> Callable[[str], list[tuple[int, int]]]:
    """Finds a text in a line: where it begins and ends; small letters find capitals too."""
    folded = search == search.lower()

    def find(text: str) -> list[tuple[int, int]]:
        hay = text.lower() if folded and len(text.lower()) == len(text) else text
        spans = []
        at = hay.find(search) if search else -1
        while at >= 0:
            spans.append((at, at + len(search)))
            at = hay.find(search, at + len(search))
        return spans

    return find


def build(snapshot: RunSnapshot, frame: Frame, state: LogState, rows: LogRows, read: Reader) -> Page:
    """The page of the chosen rows."""
    head = [*_failure(snapshot, frame, read), _choice_line(snapshot, frame, state, rows)]
    if not len(rows):
        return Page(tuple(head), Lines([(Run(f" {_none(state.choice)}", "dim"),)]))
    body = LogBody(rows, read, frame, state, _gutter_width(snapshot))
    last = len(rows) - 1
    return Page(tuple(head), body, cursor=last if state.follow else min(state.cursor, last))


def room_for_text(snapshot: RunSnapshot, width: int) -> int:
    """Terminal cells of a line's text that are in sight on a screen of this width."""
    return width - _gutter_width(snapshot) - _BESIDE


def panned_to(text: str, span: tuple[int, int], pan: int, room: int) -> int:
    """The pan with which this part of a line is in sight: `pan` itself, or none at all, where that does."""
    start, end = (cells(text[:at]) for at in span)
    for enough in (pan, 0):
        if enough + (enough > 0) <= start and end < enough + room:
            return enough
    return max(start - room // 3, 0)


def on_paper(snapshot: RunSnapshot, frame: Frame, read: Reader) -> Page:
    """All lines that are remembered, each in full length: paper is as wide as they are."""
    state = LogState()
    rows = LogRows(state.choice)
    rows.extend(snapshot.logs)
    what = Run(f" {_what(snapshot, frame.glyphs, state, rows)}", "heading")
    body = LogBody(rows, read, replace(frame, width=sys.maxsize), state, _gutter_width(snapshot))
    return Page((*_failure(snapshot, frame, read), frame.fit((what,))), body)


def _gutter_width(snapshot: RunSnapshot) -> int:
    return max(len(str(max((rank.rank for rank in snapshot.ranks), default=0))), 3)


def _choice_line(snapshot: RunSnapshot, frame: Frame, state: LogState, rows: LogRows) -> Line:
    """What is shown of the log, and where in it one is, in words."""
    dot = f" {frame.glyphs.dot} "
    runs = [Run(f" {_what(snapshot, frame.glyphs, state, rows)}", "heading"), Run(dot, "dim")]
    runs.append(
        Run("following", "ok") if state.follow else Run(f"staying at line {state.cursor + 1}", "warning")
    )
    if state.pan:
        runs.append(Run(f"{dot}from column {state.pan + 1}", "dim"))
    if state.search:
        runs += [
            Run(dot, "dim"),
            Run(f" {sanitised(state.search)} ", "match"),
            Run("  n N next, previous", "dim"),
        ]
    return frame.fit(merged(runs))


def _none(choice: LogChoice) -> str:
    """What is said where no line was chosen."""
    whose = "" if choice.rank is None else f" of rank {choice.rank}"
    lines = {"info": "line", "warning": "warning or error", "error": "error"}[choice.level]
    return f"no {lines}{whose} so far"


def _what(snapshot: RunSnapshot, glyphs: Glyphs, state: LogState, rows: LogRows) -> str:
    """Whose lines, of which level, how many, and how many there were before them."""
    who = "all ranks" if state.choice.rank is None else f"rank {state.choice.rank}"
    parts = [who, _LEVEL_WORDS[state.choice.level], f"{number(len(rows), 0, glyphs)} lines"]
    if snapshot.logs_forgotten:
        parts.append(f"{number(snapshot.logs_forgotten, 0, glyphs)} older ones only in the files")
    return f" {glyphs.dot} ".join(parts)


def _failure(snapshot: RunSnapshot, frame: Frame, read: Reader) -> list[Line]:
    """The box of the first failure, where it has words of its own."""
    failure = snapshot.failure
    return _failure_box(failure, frame, read) if failure is not None and failure.file is not None else []


def _failure_box(failure: Failure, frame: Frame, read: Reader) -> list[Line]:
    """The failing rank's own words, between two rules."""
    glyphs = frame.glyphs
    assert failure.file is not None, "the caller has looked"
    lines = read.at(failure.file, failure.offset or 0, 16_384)[:FAILURE_LINES]
    who = "the job" if failure.rank is None else f"rank {failure.rank}"
    title = clipped(f" in the words of {who}: {failure.file} ", frame.width - 4, glyphs.ellipsis)
    top = glyphs.rule * 2 + title
    box: list[Line] = [(Run(top + glyphs.rule * (frame.width - cells(top)), "failed"),)]
    room = frame.width - 3
    box += [
        (Run(f" {glyphs.cursor} ", "failed"), Run(clipped(line, room, glyphs.ellipsis))) for line in lines
    ]
    return [*box, (Run(glyphs.rule * frame.width, "failed"),)]


@dataclass(frozen=True, slots=True)
class LogBody:
    """The rows, made when they come into sight."""

    rows: LogRows
    read: Reader
    frame: Frame
    state: LogState
    gutter: int

    def __len__(self) -> int:
        """How many lines there are."""
        return len(self.rows)

    def line(self, index: int) -> Line:
        """One line of output behind its gutter: whose it is, and a mark for trouble."""
        ref, at = self.rows.locate(index)
        lines = self.read.lines(ref)
        text = lines[at] if at < len(lines) else ""
        glyphs = self.frame.glyphs
        role = _LEVEL_ROLES[ref.level]
        mark = {"info": " ", "warning": glyphs.warning, "error": glyphs.failed}[ref.level]
        whose = padded("job" if ref.rank is None else str(ref.rank), self.gutter, right=True)
        room = self.frame.width - self.gutter - _BESIDE
        return merged(
            [
                Run(f" {whose} ", "dim" if ref.rank is None else "heading"),
                Run(glyphs.bar, "border"),
                Run(f"{mark} ", role),
                *_text(text, role, self.state, room, glyphs),
            ]
        )


def _text(text: str, role: Role, state: LogState, room: int, glyphs: Glyphs) -> list[Run]:
    """The part of a line in sight, what the search found marked; dots at an end that goes on."""
    spans = matcher(state.search)(text)
    runs: list[Run] = []
    at = 0
    for start, end in spans:
        runs += [Run(text[at:start], role), Run(text[start:end], "match")]
        at = end
    runs.append(Run(text[at:], role))
    if not state.pan and cells(text) <= room:
        return runs
    more = Run(glyphs.ellipsis, "dim")
    kept = _from_column(runs, state.pan)
    if state.pan and text:
        kept = (more, *_from_column(runs, state.pan + more.width))
    if width_of(kept) > room:
        kept = (*fitted(kept, room - more.width), more)
    return list(kept)


def _from_column(runs: Sequence[Run], column: int) -> Line:
    """The runs from terminal cell `column` on."""
    out: list[Run] = []
    for run in runs:
        if column >= run.width:
            column -= run.width
        else:
            out.append(Run(tail_from(run.text, column), run.role))
            column = 0
    return tuple(out)
