"""Token counts that a job printed or sent, from its log file or its record, and what the job says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from morimon.ep.check import Observed
from morimon.feeds.record import RecordReader
from morimon.logs import StreamParser
from morimon.model.config import JobConfig
from morimon.model.events import Configured, RecordEvent, Tokens
from morimon.runs.folder import default_runs_dir
from morimon.runs.listing import find_run

_PIECE_BYTES = 1 << 20


class Printed(NamedTuple):
    """Counts in the order in which they were told, and the configuration as far as it was told."""

    counts: tuple[Observed, ...]
    job: JobConfig


def read_printed(name: str) -> Printed:
    """What the log file, the run folder or the run of this id tells.

    Raises OSError, or RunsError where there is neither such a file nor such a run.
    """
    counts: list[Observed] = []
    job = JobConfig()
    path = Path(name)
    for event in (
        _logged(path) if path.is_file() else _recorded(find_run(default_runs_dir(), name).events_path)
    ):
        match event:
            case Tokens():
                counts.append(Observed(event.rank, event.recv_tokens, event.rdma_tokens_algo))
            case Configured():
                job = job.completed_by(event.config)
    return Printed(tuple(counts), job)


def _recorded(record: Path) -> Iterator[RecordEvent]:
    with closing(RecordReader(record)) as reader:
        while events := reader.read():
            yield from events


def _logged(log: Path) -> Iterator[RecordEvent]:
    parser = StreamParser(log.name, stream="console")
    with log.open("rb") as stream:
        while piece := stream.read(_PIECE_BYTES):
            yield from parser.feed(piece, 0)
    yield from parser.close(0)
