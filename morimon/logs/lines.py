"""Bytes to whole lines with their offsets, and a line to the text that it leaves on a terminal."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_LINE_BYTES = 1 << 20
"""A line longer than this is handed on in pieces, so that a file without line ends costs no memory."""
_STEP_BYTES = 1 << 16

_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erase
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC and the other strings: titles, links
    r"|\x1b[ -/]*[0-~]?"  # two- and three-character escapes, and a lone ESC
    r"|[\x00-\x08\x0a-\x1f\x7f-\x9f]"  # all other control codes but the tab
)


class Piece(NamedTuple):
    """Whole lines of a file together, or a part of a long one: the bytes, line ends included, and where they begin."""

    offset: int
    data: bytes

    def end_of_line(self, begin: int) -> int:
        """Where, within the data, the line ends that begins at `begin`."""
        return self.data.find(b"\n", begin) + 1 or len(self.data)

    def lines(self, begin: int, end: int) -> int:
        """How many lines lie in [begin, end) of the data."""
        return self.data.count(b"\n", begin, end) + (self.data[end - 1 : end] not in (b"\n", b""))


class LineSplitter:
    """Cuts a growing file behind line ends, whatever pieces it is read in."""

    def __init__(self) -> None:
        self._offset = 0
        self._pending = bytearray()

    def tail(self, most: int) -> bytes:
        """The last bytes, at most so many, that no line end has followed yet."""
        return bytes(self._pending[-most:])

    def feed(self, data: bytes) -> list[Piece]:
        """The lines that `data` completes."""
        pieces = []
        for at in range(0, len(data), _STEP_BYTES):
            step = data[at : at + _STEP_BYTES]
            end = step.rfind(b"\n") + 1
            self._pending += step[:end]
            if end:
                pieces += self.close()
            self._pending += step[end:]
            if len(self._pending) > MAX_LINE_BYTES - _STEP_BYTES:
                pieces += self.close()
        return pieces

    def close(self) -> list[Piece]:
        """What is left, if it has no end."""
        pieces = [Piece(self._offset, bytes(self._pending))] if self._pending else []
        self._offset += len(self._pending)
        self._pending.clear()
        return pieces


def visible(data: bytes) -> str:
    """The text that a line leaves on a terminal: its last frame (after a carriage return), without control codes.

    Bytes that are no UTF-8 become U+FFFD.
    """
    text = data.decode("utf-8", "replace").rstrip("\r\n")
    if "\r" in text:
        text = next((frame for frame in reversed(text.split("\r")) if frame), "")
    return _CONTROL.sub("", text) if not text.isprintable() else text
