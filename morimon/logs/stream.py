"""One output file, followed: bytes in, record events out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec

from morimon.logs import deepep, mori, torchrun
from morimon.logs.causes import Causes
from morimon.logs.dialect import LONGEST_MATCHED, Meant, Reading, Rule, Source, read, rule
from morimon.logs.lines import LineSplitter, RawLine, visible
from morimon.logs.rounds import Rounds
from morimon.model.config import JobConfig
from morimon.model.events import Configured, Failure, LogLines, PhaseDone, Progress, Stream, Tokens

LogEvent: TypeAlias = LogLines | Configured | Tokens | PhaseDone | Progress

# torchrun's `[default3]:` and torch's `[rank3]: ` in front of a line or, where half lines were joined, within it;
# mpirun's `[1,3]<stdout>:`. A role's number is the local rank, all others are global.
_PREFIX = re.compile(
    r"\[(?:(?P<role>default|trainer|worker|rank)(?P<number>\d{1,6})|\d{1,6},(?P<mpi>\d{1,6}))\]"
    r"(?:<std(?:out|err)>)?: ?"
)
_MOST_SOURCES = 4096
_FRAME_BYTES = 4096


def _bar(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    label = match.string[: match.start()].strip(" :")[:80]
    yield source.progress(int(match["done"]), int(match["total"]), label)


BARS: tuple[Rule, ...] = (
    rule("%|", r"\d{1,3}%\|[^|\n]{0,400}\| {0,4}(?P<done>\d{1,12})/(?P<total>\d{1,12})", _bar),
)
RULES: tuple[Rule, ...] = (*mori.RULES, *deepep.RULES, *torchrun.RULES, *BARS)


class StreamParser:
    """Reads one output file of a run as it grows.

    `file` is its path relative to the run folder, `rank` whose output it is (None where several ranks share it: then
    each line belongs to the rank that its text names). `first_rank` is the global rank of this node's local rank 0.
    `recorded` bytes from the file's beginning give no events: an earlier hub recorded them. Errors go to `causes`.
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
    ) -> None:
        self._file = file
        self._stream: Stream = stream
        self._rank = rank
        self._restart = restart
        self._first_rank = first_rank
        self._recorded = recorded
        self._causes = causes or Causes()
        self._splitter = LineSplitter()
        self._sources: dict[int | None, Source] = {}
        self._config = JobConfig()
        self._progress: Progress | None = None

    def feed(self, data: bytes, t_ns: int) -> list[LogEvent]:
        """Events of the next bytes of the file, in order.

        Without bytes it tells what still waits for a second half, once that is half a second late.
        """
        events = self._events(self._splitter.feed(data), t_ns)
        for source in self._sources.values():
            source.t_ns = t_ns
            events += self._new(source.remember(Rounds).flush_overdue(source), None)
        return events + self._frame(t_ns)

    def close(self, t_ns: int) -> list[LogEvent]:
        """Events of what is left when the file grows no more."""
        events = self._events(self._splitter.close(), t_ns)
        for source in self._sources.values():
            source.t_ns = t_ns
            events += self._new(source.remember(Rounds).flush(source), None)
        return events

    def _events(self, lines: Iterable[RawLine], t_ns: int) -> list[LogEvent]:
        events: list[LogEvent] = []
        last: LogLines | None = None
        for line in lines:
            reading = self._read(visible(line.data), t_ns)
            meant = self._new(reading.meant, line)
            if line.offset < self._recorded:
                continue
            if last is not None and (last.rank, last.level) == (reading.rank, reading.level):
                last = msgspec.structs.replace(
                    last, length=last.length + len(line.data), lines=last.lines + 1
                )
            else:
                if last is not None:
                    events.append(last)
                last = self._log_lines(line, reading, t_ns)
            if meant:
                events += [last, *meant]
                last = None
        if last is not None:
            events.append(last)
        return events

    def _read(self, text: str, t_ns: int) -> Reading:
        """What one line says, part by part where its prefixes say that several ranks wrote it."""
        reading = Reading()
        for source, part in self._parts(text):
            source.t_ns = t_ns
            one = Reading()
            was_open = source.remember(torchrun.Traceback).is_open
            read(RULES, part, source, one)
            if was_open and part.startswith(" "):
                one.worsen("error")
            reading.meant += one.meant
            reading.worsen(one.level)
            if reading.rank is None:
                reading.rank = source.rank if one.rank is None else one.rank
        return reading

    def _parts(self, text: str) -> Iterator[tuple[Source, str]]:
        """The text behind each prefix, and before the first; a prefix that another one follows at once gives none."""
        rank, end = self._rank, 0
        for prefix in _PREFIX.finditer(text[:LONGEST_MATCHED]):
            if prefix.start() > end:
                yield self._source(rank), text[end : prefix.start()]
            end = prefix.end()
            if prefix["mpi"]:
                rank = int(prefix["mpi"])
            else:
                rank = int(prefix["number"]) + (0 if prefix["role"] == "rank" else self._first_rank)
        yield self._source(rank), text[end:]

    def _source(self, rank: int | None) -> Source:
        if rank not in self._sources and len(self._sources) >= _MOST_SOURCES:
            rank = self._rank
        if rank not in self._sources:
            self._sources[rank] = Source(rank, restart=self._restart, first_rank=self._first_rank)
        return self._sources[rank]

    def _new(self, meant: Iterable[Meant], line: RawLine | None) -> list[LogEvent]:
        """The events among what was meant that tell something new; failures go to the causes."""
        events: list[LogEvent] = []
        for one in meant:
            if isinstance(one, Failure):
                offset = line.offset if line is not None else None
                self._causes.add(msgspec.structs.replace(one, file=self._file, offset=offset))
            elif isinstance(one, Configured):
                config = self._config.completed_by(one.config)
                if config != self._config:
                    self._config = config
                    events.append(one)
            else:
                events.append(one)
        return events if line is None or line.offset >= self._recorded else []

    def _frame(self, t_ns: int) -> list[LogEvent]:
        """The progress of a bar that has not ended its line yet, if it moved."""
        tail = self._splitter.tail(_FRAME_BYTES)
        if b"\r" not in tail:
            return []
        reading = Reading()
        source = self._source(self._rank)
        source.t_ns = t_ns
        read(BARS, visible(tail), source, reading)
        moved: list[LogEvent] = [
            one
            for one in reading.meant
            if isinstance(one, Progress)
            and (
                self._progress is None or one.done != self._progress.done or one.label != self._progress.label
            )
        ]
        if moved and isinstance(moved[-1], Progress):
            self._progress = moved[-1]
        return moved

    def _log_lines(self, line: RawLine, reading: Reading, t_ns: int) -> LogLines:
        return LogLines(
            t_ns=t_ns,
            file=self._file,
            offset=line.offset,
            length=len(line.data),
            lines=1,
            stream=self._stream,
            rank=reading.rank,
            restart=self._restart,
            level=reading.level,
        )
