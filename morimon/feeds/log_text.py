"""The text behind the record's `LogLines`: read from the run folder's files when it comes into sight."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

from morimon.draw.text import sanitised
from morimon.logs.lines import visible
from morimon.model.events import LogLines

PIECES_KEPT = 1024
PIECE_BYTES = 4 << 20
"""More than this of one reference is not read at once; its last lines are then missing and said to be."""


class LogText:
    """Lines of output files, as a terminal would leave them, safe for a grid."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: OrderedDict[tuple[str, int, int], tuple[str, ...]] = OrderedDict()

    def lines(self, ref: LogLines) -> tuple[str, ...]:
        """The lines of one reference: `ref.lines` of them, or one that says why they cannot be read."""
        key = (ref.file, ref.offset, ref.length)
        lines = self._kept.get(key)
        if lines is None:
            lines = self._kept[key] = self.at(ref.file, ref.offset, ref.length)
            if len(self._kept) > PIECES_KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return lines

    def at(self, file: str, offset: int, length: int) -> tuple[str, ...]:
        """The lines in [offset, offset + length) of a file of the run folder."""
        path = self._folder / file
        try:
            with path.open("rb") as stream:
                stream.seek(offset)
                data = stream.read(min(length, PIECE_BYTES))
        except OSError as error:
            return (f"({path} cannot be read: {error.strerror})",)
        raw = data.split(b"\n")
        if raw[-1] == b"":
            del raw[-1]
        lines = tuple(sanitised(visible(line)) for line in raw)
        return lines if length <= PIECE_BYTES else (*lines, f"({length - PIECE_BYTES} more bytes in {path})")
