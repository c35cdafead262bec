"""The record's writer: events in, lines of `events.jsonl` out; whatever the disk does, the job never notices.

While the disk takes nothing, samples are dropped and counted, and the rare events that a run cannot be told without
wait; when there is room again they are written, with a `Dropped` for the gap. A ballast file, given up at the first
failure, makes room for a `Note` that says so at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from morimon.hub.thinning import Thinning
from morimon.model.codec import encode
from morimon.model.events import (
    Counter,
    Dropped,
    Note,
    PhaseDone,
    PhaseEntered,
    ProcessSample,
    Progress,
    RecordEvent,
    Traffic,
)

MAX_BYTES = 1 << 30
"""A record that has grown to this is thinned from there on."""
MAX_WAITING = 10_000
BALLAST_BYTES = 65536
RETRY_NS = 1_000_000_000

_SAMPLES = (PhaseEntered, PhaseDone, ProcessSample, Counter, Progress, Traffic)
"""Events of which there is always another one."""
_GAP = "events for which the run folder's disk had no room"

Write: TypeAlias = Callable[[int, bytes], int]


class Recorder:
    """Appends to one record. `flush` is to be called about ten times a second; nothing here waits."""

    def __init__(self, path: Path, *, write: Write = os.write, max_bytes: int = MAX_BYTES) -> None:
        self._write = write
        self._max_bytes = max_bytes
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size_bytes = os.fstat(self._fd).st_size
        self._thinning: Thinning | None = None
        self._waiting: list[RecordEvent] = []
        # A hub that was killed within a line left a piece: it is ended, so that it harms no other line.
        torn = self._size_bytes and os.pread(self._fd, 1, self._size_bytes - 1) != b"\n"
        self._rest = b"\n" if torn else b""
        """What is missing of a line of which a part is written."""
        self._lost = 0
        self._failed_ns: int | None = None
        self._ballast = path.with_name("ballast")
        self._has_ballast = False
        self._tried_ballast_ns = 0
        self._take_ballast()

    @property
    def is_stuck(self) -> bool:
        """Whether the last attempt to write failed."""
        return self._failed_ns is not None

    def append(self, event: RecordEvent) -> None:
        """Take an event into the record."""
        if self._thinning is not None and not self._thinning.keeps(event):
            return
        self._waiting.append(event)
        if self.is_stuck and (isinstance(event, _SAMPLES) or len(self._waiting) > MAX_WAITING):
            self._waiting.pop()
            self._lost += 1

    def flush(self, t_ns: int) -> None:
        """Write what was appended; `t_ns` is now."""
        if self._failed_ns is not None and t_ns - self._failed_ns < RETRY_NS:
            return
        if self._thinning is not None:
            self._waiting += self._thinning.dropped(t_ns)
        self._attempt(t_ns)
        if not self.is_stuck and not self._has_ballast and t_ns - self._tried_ballast_ns >= RETRY_NS:
            self._tried_ballast_ns = t_ns
            if self._take_ballast():
                self.append(Note(t_ns=t_ns, text="Recording goes on: there is room on the disk again."))
        if self._thinning is None and self._size_bytes >= self._max_bytes:
            self._thinning = Thinning()
            self.append(Note(t_ns=t_ns, level="warning", text=_thinned(self._max_bytes)))

    def close(self, t_ns: int) -> bool:
        """Write what can be written; whether that was all."""
        self._failed_ns = None
        self._attempt(t_ns)
        os.close(self._fd)
        self._ballast.unlink(missing_ok=True)
        return not self.is_stuck

    def _attempt(self, t_ns: int) -> None:
        gap = [Dropped(t_ns=t_ns, count=self._lost, reason=_GAP)] if self._lost else []
        events: list[RecordEvent] = [*gap, *self._waiting]
        lines = [encode(event) for event in events]
        written, reason = self._put(self._rest + b"".join(lines))
        if not reason:
            self._waiting, self._rest, self._lost, self._failed_ns = [], b"", 0, None
            return
        self._failed_ns = t_ns
        self._keep_what_is_missing(written, events, lines)
        if self._has_ballast:
            self._has_ballast = False
            self._ballast.unlink(missing_ok=True)
            text = f"Recording stands still: {reason}. The job goes on."
            self._waiting.insert(0, Note(t_ns=t_ns, level="error", text=text))
            self._attempt(t_ns)

    def _put(self, data: bytes) -> tuple[int, str]:
        """How many bytes were written, and why not all of them ("" if they were)."""
        written = 0
        try:
            while written < len(data):
                written += self._write(self._fd, data[written:])
        except OSError as error:
            return written, error.strerror or str(error)
        finally:
            self._size_bytes += written
        return written, ""

    def _keep_what_is_missing(self, written: int, events: list[RecordEvent], lines: list[bytes]) -> None:
        """After `written` bytes of the rest and `lines`: the remainder of the torn line, and the events that wait."""
        room = written - len(self._rest)
        self._rest = self._rest[written:]
        self._waiting = []
        for event, line in zip(events, lines, strict=True):
            if room > 0:
                self._rest = line[room:]
                room -= len(line)
                gone = 0 if isinstance(event, Dropped) and event.reason == _GAP else None
                self._lost = self._lost if gone is None else gone
            elif isinstance(event, _SAMPLES):
                self._lost += 1
            elif not (isinstance(event, Dropped) and event.reason == _GAP):
                self._waiting.append(event)

    def _take_ballast(self) -> bool:
        try:
            self._ballast.write_bytes(bytes(BALLAST_BYTES))
        except OSError:
            with suppress(OSError):
                self._ballast.unlink()
        else:
            self._has_ballast = True
        return self._has_ballast


def _thinned(max_bytes: int) -> str:
    return f"The record has grown to {max_bytes / 2**30:.3g} GiB: from here on it holds one sample per rank and second."
