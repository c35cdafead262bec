"""One output file, followed: bytes in, record events out."""

from __future__ import annotations

from typing import TypeAlias

from morimon.logs.causes import Causes
from morimon.model.events import Configured, LogLines, PhaseDone, Progress, Stream, Tokens

LogEvent: TypeAlias = LogLines | Configured | Tokens | PhaseDone | Progress


class StreamParser:
    """Reads one output file of a run as it grows.

    `file` is its path relative to the run folder, `rank` whose output it is (None where several ranks share it: then
    each line belongs to the rank that its text names). `first_rank` is the global rank of this node's local rank 0.
    `recorded` bytes from the file's beginning give no events: an earlier hub recorded them.
    """

    def __init__(
        self,
        file: str,
        *,
        stream: Stream,
        rank: int | None = None,
        restart: int = 0,
        first_rank: int = 0,
        recorded: int = 0,
        causes: Causes | None = None,
    ) -> None: ...

    def feed(self, data: bytes, t_ns: int) -> list[LogEvent]:
        """Events of the next bytes of the file, in order."""
        raise NotImplementedError

    def close(self, t_ns: int) -> list[LogEvent]:
        """Events of what is left when the file grows no more."""
        raise NotImplementedError
