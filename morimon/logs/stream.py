"""One output file, followed: bytes in, record events out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import msgspec

from morimon.logs import deepep, mori, torchrun
from morimon.logs.causes import Causes
from morimon.logs.dialect import LONGEST_MATCHED, Meant, Reading, Rule, Source, read, rule
from morimon.logs.lines import LineSplitter, Piece, visible
from morimon.logs.rounds import Rounds
from morimon.logs.sieve import Sieve
from morimon.model.config import JobConfig
from morimon.model.events import Configured, Failure, Level, LogLines, PhaseDone, Progress, Stream, Tokens

LogEvent: TypeAlias = LogLines | Configured | Tokens | PhaseDone | Progress

# torchrun's `[default3]:` and torch's `[rank3]: ` in front of a line or, where half lines were joined, within it;
# mpirun's `[1,3]<stdout>:`. A role's number is the local rank, all others are global.
_PREFIX = re.compile(
    r"\[(?:(?P<role>default|trainer|worker|rank)(?P<number>\d{1,6})|\d{1,6},(?P<mpi>\d{1,6}))\]"
    r"(?:<std(?:out|err)>)?: ?"
)
_MOST_SOURCES = 4096
_FRAME_BYTES = 4096
_PLAIN: Level = "info"


def _bar(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    label = match.string[: match.start()].strip(" :")[:80]
    yield source.progress(int(match["done"]), int(match["total"]), label)


BARS: tuple[Rule, ...] = (
    rule("%|", r"\d{1,3}%\|[^|\n]{0,400}\| {0,4}(?P<done>\d{1,12})/(?P<total>\d{1,12})", _bar),
)
RULES: tuple[Rule, ...] = (*mori.RULES, *deepep.RULES, *torchrun.RULES, *BARS)
_SIEVE = Sieve(RULES, also=("]:", "]<std"))


class _Span(NamedTuple):
    """Part of a piece: lines that mean nothing, or one line that may mean something by `rules`."""

    begin: int
    end: int
    is_plain: bool = True
    rules: Sequence[Rule] | None = None
    """None as long as it is not known which."""


@dataclass(slots=True)
class _Neighbours:
    """Consecutive lines of one rank and level."""

    offset: int
    length: int
    lines: int
    rank: int | None
    level: Level


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
        self._tokens: dict[int, tuple[int, int | None]] = {}
        """The counts that a rank told last: benchmarks repeat them every round."""
        self._in_traceback: set[int | None] = set()
        """Ranks that are printing one."""

    def feed(self, data: bytes, t_ns: int) -> list[LogEvent]:
        """Events of the next bytes of the file, in order.

        Without bytes it tells what still waits for a second half, once that is half a second late.
        """
        events = self._events(self._splitter.feed(data), t_ns)
        for source in self._sources.values():
            source.t_ns = t_ns
            events += self._new(source.remember(Rounds).flush_overdue(source), None)
        return events + self._frame(t_ns)

    def skim(self, data: bytes, t_ns: int) -> list[LogEvent]:
        """The lines of the next bytes, for whose meaning there is no time."""
        return self._events(self._splitter.feed(data), t_ns, read=False)

    def close(self, t_ns: int) -> list[LogEvent]:
        """Events of what is left when the file grows no more."""
        events = self._events(self._splitter.close(), t_ns)
        for source in self._sources.values():
            source.t_ns = t_ns
            events += self._new(source.remember(Rounds).flush(source), None)
        return events

    def _events(self, pieces: Iterable[Piece], t_ns: int, *, read: bool = True) -> list[LogEvent]:
        events: list[LogEvent] = []
        last: _Neighbours | None = None
        for piece in pieces:
            for span in self._spans(piece) if read else [_Span(0, len(piece.data))]:
                begin, end = span.begin, span.end
                meant: list[LogEvent] = []
                rank, level = self._rank, _PLAIN
                if span.is_plain:
                    begin = self._unrecorded(piece, begin, end)
                else:
                    reading = self._read(piece.data[begin:end], span.rules, t_ns)
                    meant = self._new(reading.meant, piece.offset + begin)
                    rank, level = reading.rank, reading.level
                offset, length, lines = piece.offset + begin, end - begin, piece.lines(begin, end)
                if not lines or offset < self._recorded:
                    continue
                if last is not None and (last.rank, last.level) == (rank, level):
                    last.length += length
                    last.lines += lines
                else:
                    if last is not None:
                        events.append(self._log_lines(last, t_ns))
                    last = _Neighbours(offset, length, lines, rank, level)
                if meant:
                    events += [self._log_lines(last, t_ns), *meant]
                    last = None
        if last is not None:
            events.append(self._log_lines(last, t_ns))
        return events

    def _spans(self, piece: Piece) -> Iterator[_Span]:
        """The whole piece, span by span; each is to be read before the next one is asked for."""
        worth_a_look = _SIEVE.sift(piece.data)
        at = 0
        for begin in [*worth_a_look, len(piece.data)]:
            while at < begin and self._in_traceback:
                end = piece.end_of_line(at)
                yield _Span(at, end, is_plain=False, rules=())
                at = end
            if at < begin:
                yield _Span(at, begin)
            if begin < len(piece.data):
                at = piece.end_of_line(begin)
                yield _Span(begin, at, is_plain=False, rules=worth_a_look[begin])

    def _unrecorded(self, piece: Piece, begin: int, end: int) -> int:
        """Where, in a span of whole lines, the first one begins that no earlier hub recorded."""
        recorded = self._recorded - piece.offset
        if begin >= recorded:
            return begin
        return end if end <= recorded else min(piece.end_of_line(recorded - 1), end)

    def _read(self, line: bytes, rules: Sequence[Rule] | None, t_ns: int) -> Reading:
        """What one line says, part by part where its prefixes say that several ranks wrote it."""
        text = visible(line)
        if rules is None:
            rules = _SIEVE.rules_for(text)
        reading = Reading()
        if not rules and not self._in_traceback:
            ranks = (source.rank for source, _ in self._parts(text))
            reading.rank = next((rank for rank in ranks if rank is not None), None)
            return reading
        for source, part in self._parts(text):
            source.t_ns = t_ns
            one = Reading()
            traceback = source.remember(torchrun.Traceback)
            was_open = traceback.is_open
            if was_open or rules:
                read([*rules, torchrun.IN_TRACEBACK] if was_open else rules, part, source, one)
                if was_open and part.startswith(" "):
                    one.worsen("error")
                if traceback.is_open:
                    self._in_traceback.add(source.rank)
                else:
                    self._in_traceback.discard(source.rank)
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

    def _new(self, meant: Iterable[Meant], offset: int | None) -> list[LogEvent]:
        """The events among what was meant that tell something new; failures go to the causes.

        `offset` is where the line begins that said so, None for what no line completed.
        """
        events: list[LogEvent] = []
        for one in meant:
            if isinstance(one, Failure):
                self._causes.add(msgspec.structs.replace(one, file=self._file, offset=offset))
            elif isinstance(one, Configured):
                config = self._config.completed_by(one.config)
                if config != self._config:
                    self._config = config
                    events.append(one)
            elif isinstance(one, Tokens):
                counts = (one.recv_tokens, one.rdma_tokens_algo)
                if self._tokens.get(one.rank) != counts:
                    self._tokens[one.rank] = counts
                    events.append(one)
            else:
                events.append(one)
        return events if offset is None or offset >= self._recorded else []

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

    def _log_lines(self, lines: _Neighbours, t_ns: int) -> LogLines:
        return LogLines(
            t_ns=t_ns,
            file=self._file,
            offset=lines.offset,
            length=lines.length,
            lines=lines.lines,
            stream=self._stream,
            rank=lines.rank,
            restart=self._restart,
            level=lines.level,
        )
