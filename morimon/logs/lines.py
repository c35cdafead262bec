"""Bytes to lines with their offsets, and a line to the text that it leaves on a terminal."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_LINE_BYTES = 1 << 20
"""A line longer than this is handed on in pieces, so that a file without line ends costs no memory."""

_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erase
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC and the other strings: titles, links
    r"|\x1b[ -/]*[0-~]?"  # two- and three-character escapes, and a lone ESC
    r"|[\x00-\x08\x0a-\x1f\x7f-\x9f]"  # all other control codes but the tab
)


class RawLine(NamedTuple):
    """One line of a file: its bytes, line end included, and where they begin."""

    offset: int
    data: bytes


class LineSplitter:
    """Cuts a growing file into lines, whatever pieces it is read in."""

    def __init__(self, offset: int = 0) -> None:
        self._offset = offset
        self._pending = bytearray()

    def tail(self, most: int) -> bytes:
        """The last bytes, at most so many, that no line end has followed yet."""
        return bytes(self._pending[-most:])

    def feed(self, data: bytes) -> list[RawLine]:
        """The lines that `data` completes."""
        searched = len(self._pending)
        self._pending += data
        lines = []
        start = 0
        while (end := self._pending.find(b"\n", max(start, searched)) + 1) > 0:
            lines += self._cut(start, end)
            start = end
        while len(self._pending) - start > MAX_LINE_BYTES:
            lines += self._cut(start, start + MAX_LINE_BYTES)
            start += MAX_LINE_BYTES
        del self._pending[:start]
        self._offset += start
        return lines

    def close(self) -> list[RawLine]:
        """The last line, if it has no end."""
        lines = self._cut(0, len(self._pending))
        self._offset += len(self._pending)
        self._pending.clear()
        return lines

    def _cut(self, start: int, end: int) -> list[RawLine]:
        return [
            RawLine(self._offset + at, bytes(self._pending[at : min(at + MAX_LINE_BYTES, end)]))
            for at in range(start, end, MAX_LINE_BYTES)
        ]


def visible(data: bytes) -> str:
    """The text that a line leaves on a terminal: its last frame (after a carriage return), without control codes.

    Bytes that are no UTF-8 become U+FFFD.
    """
    text = data.decode("utf-8", "replace").rstrip("\r\n")
    if "\r" in text:
        text = next((frame for frame in reversed(text.split("\r")) if frame), "")
    return _CONTROL.sub("", text) if not text.isprintable() else text
