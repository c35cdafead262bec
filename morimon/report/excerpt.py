"""The failed rank's own last lines, read from its output file in the run folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from morimon.store.snapshot import RunSnapshot

LINES = 20
FRAMES = 12
"""Of these, lines of a traceback above the error itself."""
_TRACEBACK = "Traceback (most recent call last):"
_PREFIX = re.compile(r"(?:\[[^\]]{1,40}\]:? ?)+")
_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Consecutive lines of one output file; `file` is relative to the run folder."""

    file: str
    lines: tuple[str, ...]
    more: bool = False
    """Whether the file goes on after them."""


def failure_excerpt(snapshot: RunSnapshot, folder: Path) -> Excerpt | None:
    """What the rank that failed first had to say: its error with the traceback above, else its newest lines.

    None where the record points at no lines, or the file is gone. A record may come from anywhere: nothing outside the
    folder is read.
    """
    failure = snapshot.failure
    if failure is None:
        return None
    if failure.file is not None and failure.offset is not None:
        return _read(folder, failure.file, failure.offset, None)
    refs = [ref for ref in snapshot.logs if ref.rank == failure.rank]
    newest = next((ref for ref in reversed(refs) if ref.level == "error"), refs[-1] if refs else None)
    if newest is None:
        return None
    begin, lines = newest.offset, newest.lines
    for ref in reversed(refs):
        if ref.file == newest.file and ref.offset + ref.length == begin and lines < LINES:
            begin, lines = ref.offset, lines + ref.lines
    return _read(folder, newest.file, begin, newest.offset + newest.length)


def _read(folder: Path, name: str, begin: int, end: int | None) -> Excerpt | None:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        return None
    try:
        with path.open("rb") as file:
            if end is not None:
                begin = max(begin, end - _READ_BYTES)
            before_bytes = min(begin, _READ_BYTES) if end is None else 0
            file.seek(begin - before_bytes)
            before = file.read(before_bytes)
            data = file.read(_READ_BYTES if end is None else end - begin)
    except OSError:
        return None
    lines = data.decode(errors="replace").splitlines()
    if end is None:
        frames = _traceback(before.decode(errors="replace").splitlines())[-FRAMES:]
        last = LINES - len(frames)
        return Excerpt(name, (*frames, *lines[:last]), more=len(lines) > last) if lines else None
    return Excerpt(name, tuple(lines[-LINES:])) if lines else None


def _traceback(before: list[str]) -> list[str]:
    """The lines of the traceback that ends with these; none where they do not end with one."""
    for back, line in enumerate(reversed(before), start=1):
        text = _PREFIX.sub("", line, count=1)
        if text.startswith(_TRACEBACK):
            return before[-back:]
        if not text.startswith(" "):
            break
    return []
