"""The job's output files, followed as they appear and grow.

console.log                                                 the agent's own output, or a whole command's
output/<name>/attempt_<restart>/<local_rank>/stdout.log     torchrun's files, one a rank and stream
output/<name>/attempt_<restart>/<local_rank>/stderr.log
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Literal

from morimon.hub.outcome import Attempts
from morimon.logs import LogEvent, StreamParser
from morimon.runs.folder import RunFolder

_ATTEMPT = re.compile(r"attempt_(\d+)")
_PIECE_BYTES = 1 << 18
_TURN_S = 0.02
"""Reading of one turn: a job that floods its log must not keep the hub from its other work."""

RankOf = Callable[[int, int], int | None]
"""(restart, local_rank) to the rank, None as long as it is unknown."""


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
                return events
        return events + self._parser.feed(b"", t_ns)  # what waited for another line in vain

    def close(self, t_ns: int) -> list[LogEvent]:
        """Events of the rest of the file, which grows no more."""
        events = self.read(t_ns, float("inf"))
        while more := self.read(t_ns, float("inf")):
            events += more
        os.close(self._fd)
        return events + self._parser.close(t_ns)


class Tails:
    """All output files of a run.

    `recorded` says how much of a file (relative to the run folder) an earlier hub recorded. `attempts` gathers the
    errors that are printed.
    """

    def __init__(
        self,
        folder: RunFolder,
        rank_of: RankOf,
        attempts: Attempts,
        recorded: Mapping[str, int] | None = None,
    ) -> None:
        self._folder = folder
        self._rank_of = rank_of
        self._attempts = attempts
        self._recorded = recorded or {}
        self._tails: dict[str, Tail] = {}

    def look(self, *, ended: bool = False) -> None:
        """Take up files that are new. One whose rank is unknown waits for it, until the job has `ended`."""
        if "console.log" not in self._tails:
            self._open("console.log", "console", None, 0)
        for restart, local_rank, stem in self._rank_folders():
            if f"{stem}/stderr.log" in self._tails:
                continue
            rank = self._rank_of(restart, local_rank)
            if rank is not None or ended:
                self._open(f"{stem}/stdout.log", "stdout", rank, restart)
                self._open(f"{stem}/stderr.log", "stderr", rank, restart)

    def read(self, t_ns: int) -> list[LogEvent]:
        """Events of what all files have grown by."""
        deadline_s = time.monotonic() + _TURN_S
        return [event for tail in self._tails.values() for event in tail.read(t_ns, deadline_s)]

    def close(self, t_ns: int) -> list[LogEvent]:
        """Events of what is left, when the job is over."""
        self.look(ended=True)
        return [event for tail in self._tails.values() for event in tail.close(t_ns)]

    def _rank_folders(self) -> Iterator[tuple[int, int, str]]:
        """(restart, local_rank, path relative to the run folder) of every rank's folder."""
        for name in _folders(self._folder.output_path):
            for attempt in _folders(name.path):
                if match := _ATTEMPT.fullmatch(attempt.name):
                    for rank in _folders(attempt.path):
                        if rank.name.isdigit():
                            stem = os.path.relpath(rank.path, self._folder.path)
                            yield int(match[1]), int(rank.name), stem

    def _open(
        self, file: str, stream: Literal["stdout", "stderr", "console"], rank: int | None, restart: int
    ) -> None:
        if file in self._tails:
            return
        parser = StreamParser(
            file,
            stream=stream,
            rank=rank,
            restart=restart,
            recorded=self._recorded.get(file, 0),
            causes=self._attempts.console if stream == "console" else self._attempts.of(restart),
        )
        with suppress(FileNotFoundError):
            self._tails[file] = Tail(str(self._folder.path / file), parser)


def _folders(path: str | os.PathLike[str]) -> list[os.DirEntry[str]]:
    try:
        return sorted((entry for entry in os.scandir(path) if entry.is_dir()), key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
