"""The job's output files, followed as they appear and grow."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from morimon.hub.outcome import Attempts
from morimon.hub.output_files import OutputFiles
from morimon.logs import LogEvent, StreamParser

_PIECE_BYTES = 1 << 16
_SKIM_BYTES = 1 << 20
_TURN_S = 0.02
"""Reading of one turn: a job that floods its log must not keep the hub from its other work."""
LAST_BYTES = 1 << 18
"""Of each file, what is read in any case when the job is over: its last words."""


class Tail:
    """One output file."""

    def __init__(self, path: str, parser: StreamParser) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._offset = 0
        self._parser = parser

    def read(self, t_ns: int, deadline_s: float) -> list[LogEvent]:
        """Events of what the file has grown by, as far as time allows."""
        events: list[LogEvent] = []
        while data := os.pread(self._fd, _PIECE_BYTES, self._offset):
            self._offset += len(data)
            events += self._parser.feed(data, t_ns)
            if len(data) < _PIECE_BYTES or time.monotonic() > deadline_s:
                break
        return events

    def skim(self, t_ns: int) -> tuple[list[LogEvent], int]:
        """The lines of all but the last words, without their meaning; with how many bytes that were."""
        begin, events = self._offset, []
        end = os.fstat(self._fd).st_size - LAST_BYTES
        while self._offset < end:
            data = os.pread(self._fd, min(_SKIM_BYTES, end - self._offset), self._offset)
            self._offset += len(data)
            events += self._parser.skim(data, t_ns)
        return events, self._offset - begin

    def close(self, t_ns: int) -> list[LogEvent]:
        """Events of the rest of the file, which grows no more."""
        events: list[LogEvent] = []
        while data := os.pread(self._fd, _PIECE_BYTES, self._offset):
            self._offset += len(data)
            events += self._parser.feed(data, t_ns)
        os.close(self._fd)
        return events + self._parser.close(t_ns)


class Tails:
    """All output files of a job, named relative to `folder` in the events.

    `recorded` says how much of a file an earlier hub recorded. `attempts` gathers the errors that are printed.
    """

    def __init__(
        self, folder: Path, files: OutputFiles, attempts: Attempts, recorded: Mapping[str, int] | None = None
    ) -> None:
        self._folder = folder
        self._files = files
        self._attempts = attempts
        self._recorded = recorded or {}
        self._tails: dict[str, Tail] = {}
        self.is_behind = False
        """Whether the last turn ended before all was read."""

    def __len__(self) -> int:
        return len(self._tails)

    def look(self, *, ended: bool = False) -> None:
        """Take up files that are new."""
        for found in self._files(ended):
            if found.path in self._tails:
                continue
            console = found.stream == "console"
            name = os.path.relpath(found.path, self._folder)
            parser = StreamParser(
                name,
                stream=found.stream,
                rank=found.rank,
                restart=found.restart,
                recorded=self._recorded.get(name, 0),
                causes=self._attempts.console if console else self._attempts.of(found.restart),
            )
            try:
                self._tails[found.path] = Tail(found.path, parser)
            except FileNotFoundError:  # a rank's folder is made before its files
                continue

    def read(self, t_ns: int) -> list[LogEvent]:
        """Events of what all files have grown by."""
        deadline_s = time.monotonic() + _TURN_S
        events = [event for tail in self._tails.values() for event in tail.read(t_ns, deadline_s)]
        self.is_behind = time.monotonic() > deadline_s
        return events

    def skim(self, t_ns: int) -> tuple[list[LogEvent], int]:
        """The lines that are left, but for each file's last words, where there is no time to read them; and their bytes."""
        events: list[LogEvent] = []
        skimmed_bytes = 0
        for tail in self._tails.values():
            lines, count = tail.skim(t_ns)
            events += lines
            skimmed_bytes += count
        return events, skimmed_bytes

    def close(self, t_ns: int) -> list[LogEvent]:
        """Events of what is left, when the job is over."""
        return [event for tail in self._tails.values() for event in tail.close(t_ns)]
