"""The two ways to print a followed run: text for people, objects for programs.

Standard output is data: progress and tables, or one object a line. What is only told (notes, counts of what was set
aside) goes to standard error, except in JSON, where it has objects of its own. Lines are flushed as they come; a closed
pipe raises BrokenPipeError.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from morimon.draw.text import sanitised
from morimon.model.events import Dropped, Note
from morimon.report.excerpt import failure_excerpt
from morimon.report.objects import (
    dropped_object,
    encoded,
    note_object,
    progress_object,
    result_object,
    run_object,
)
from morimon.report.tables import final_lines
from morimon.report.text import glyphs_for, header_line, progress_line
from morimon.store.snapshot import RunSnapshot


class TextReporter:
    """Lines for people; `folder` is where the ranks' output lies."""

    def __init__(self, out: TextIO, err: TextIO, folder: Path) -> None:
        self._out = out
        self._err = err
        self._folder = folder
        self._glyphs = glyphs_for(out.encoding)

    def header(self, snapshot: RunSnapshot) -> None:
        """Which job this is."""
        self._print([header_line(snapshot, self._glyphs)])

    def progress(self, snapshot: RunSnapshot) -> None:
        """One line."""
        self._print([progress_line(snapshot, self._glyphs)])

    def note(self, event: Note) -> None:
        """Told on standard error."""
        say(self._err, event.text)

    def dropped(self, event: Dropped) -> None:
        """Told on standard error, as it happens; the sums stand at the end of the tables."""
        whose = "" if event.rank is None else f" (rank {event.rank})"
        say(self._err, f"{event.count} set aside: {event.reason}{whose}")

    def result(self, snapshot: RunSnapshot) -> None:
        """The tables."""
        excerpt = failure_excerpt(snapshot, self._folder)
        self._print(["", *final_lines(snapshot, excerpt, self._glyphs)])

    def _print(self, lines: Iterable[str]) -> None:
        print_lines(self._out, lines)


class JsonReporter:
    """One object a line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def header(self, snapshot: RunSnapshot) -> None:
        """An object of type `run`."""
        print_lines(self._out, [encoded(run_object(snapshot))])

    def progress(self, snapshot: RunSnapshot) -> None:
        """An object of type `progress`."""
        print_lines(self._out, [encoded(progress_object(snapshot))])

    def note(self, event: Note) -> None:
        """An object of type `note`."""
        print_lines(self._out, [encoded(note_object(event))])

    def dropped(self, event: Dropped) -> None:
        """An object of type `dropped`."""
        print_lines(self._out, [encoded(dropped_object(event))])

    def result(self, snapshot: RunSnapshot) -> None:
        """The object of type `result`."""
        print_lines(self._out, [encoded(result_object(snapshot))])


def print_lines(out: TextIO, lines: Iterable[str]) -> None:
    """Write lines and flush them; characters that the stream's encoding lacks become question marks."""
    text = "".join(line + "\n" for line in lines)
    encoding = out.encoding or "utf-8"
    out.write(text.encode(encoding, "replace").decode(encoding))
    out.flush()


def say(err: TextIO, sentence: str) -> None:
    """Tell the person at the terminal something that is no data."""
    print_lines(err, [f"morimon: {sanitised(sentence)}"])
