"""Screens as text files: compared, or written anew where MORIMON_WRITE_GOLDENS is set."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from morimon.draw.line import Line, plain

FOLDER = Path(__file__).parent.parent / "goldens"


def compare(name: str, lines: Iterable[Line]) -> None:
    """Hold the lines against tests/goldens/<name>.txt."""
    text = "".join(plain(line) + "\n" for line in lines)
    path = FOLDER / f"{name}.txt"
    if os.environ.get("MORIMON_WRITE_GOLDENS"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), (
        f"{name} looks different; MORIMON_WRITE_GOLDENS=1 accepts it"
    )


def snapshot_lines(size: tuple[int, int], lines: Iterable[Line]) -> list[Line]:
    """The lines, after checking that they fit a terminal of this size."""
    from morimon.draw.line import width_of

    out = list(lines)
    assert max(width_of(line) for line in out) <= size[0]
    assert len(out) <= size[1]
    return out
