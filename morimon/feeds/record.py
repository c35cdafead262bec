"""Reading a record while it grows: a file offset is all that a viewer holds of a run.

Half lines wait for their rest. A line that is no event is set aside and counted; an event that this version does not
know (a newer morimon wrote it) too. Both come out as `Dropped` events, so that every reader shows them.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from morimon.model.codec import decode
from morimon.model.events import Dropped, RecordEvent

PIECE_BYTES = 1 << 20
LONGEST_LINE_BYTES = 16 << 20


class RecordReader:
    """Events of one `events.jsonl`, a piece of at most PIECE_BYTES a call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        """Bytes read so far; the half line at their end waits in memory."""
        self.bad_lines = 0
        self.unknown_events = 0
        self._file = path.open("rb")
        self._half = bytearray()
        self._skipping = False
        self._newest_ns = 0
        self._first_bad: int | None = None

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def read(self) -> list[RecordEvent]:
        """The events that follow; empty once there is nothing new. OSError, with its path, where it cannot be read."""
        try:
            while piece := self._file.read(PIECE_BYTES):
                if events := self._take(piece):
                    return events
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        return []

    def _take(self, piece: bytes) -> list[RecordEvent]:
        begin = self.offset - len(self._half)
        self.offset += len(piece)
        *lines, rest = (bytes(self._half) + piece).split(b"\n") if self._half else piece.split(b"\n")
        self._half = bytearray(rest)
        events: list[RecordEvent] = []
        bad = unknown = 0
        for line in lines:
            if self._skipping:
                self._skipping = False
            elif line:
                try:
                    events.append(decode(line))
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    if "$.ev" in str(error):
                        unknown += 1
                    else:
                        bad += 1
                        self._first_bad = begin if self._first_bad is None else self._first_bad
            begin += len(line) + 1
        if len(self._half) > LONGEST_LINE_BYTES:
            self._half.clear()
            bad += not self._skipping
            self._skipping = True
            self._first_bad = begin if self._first_bad is None else self._first_bad
        return events + self._set_aside(events, bad, unknown)

    def _set_aside(self, events: list[RecordEvent], bad: int, unknown: int) -> list[RecordEvent]:
        self.bad_lines += bad
        self.unknown_events += unknown
        if events:
            self._newest_ns = events[-1].t_ns
        out: list[RecordEvent] = []
        if bad:
            reason = f"record lines that cannot be read, the first at byte {self._first_bad}"
            out.append(Dropped(t_ns=self._newest_ns, count=bad, reason=reason))
        if unknown:
            reason = "record events that this version does not know"
            out.append(Dropped(t_ns=self._newest_ns, count=unknown, reason=reason))
        return out
