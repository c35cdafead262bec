"""What a successor takes from a record."""

from __future__ import annotations

from pathlib import Path

from morimon.hub.resume import read_recorded
from morimon.model.codec import encode
from morimon.model.events import (
    Failure,
    JobChanged,
    JobFailed,
    LogLines,
    Note,
    RankExited,
    RankProcess,
    RecordEvent,
    RunEnded,
)
from tests.support.records import Plan, make_record


def write(path: Path, *events: RecordEvent) -> Path:
    path.write_bytes(b"".join(map(encode, events)))
    return path


def lines(file: str, offset: int, length: int) -> LogLines:
    return LogLines(t_ns=1, file=file, offset=offset, length=length, lines=1, stream="stdout")


def test_nothing_is_recorded_where_nothing_is(tmp_path: Path) -> None:
    recorded = read_recorded(tmp_path / "events.jsonl")
    assert (recorded.header, recorded.log_bytes, recorded.ended) == (None, {}, None)


def test_files_processes_deaths_and_the_job_s_state(tmp_path: Path) -> None:
    process = RankProcess(t_ns=1, rank=1, restart=0, local_rank=1, node=0, pid=7, started_s=1.0)
    exited = RankExited(t_ns=2, rank=1, restart=0, pid=7, signal=9)
    failed = JobFailed(t_ns=3, failure=Failure(rank=1, cause="x"))
    recorded = read_recorded(
        write(
            tmp_path / "events.jsonl",
            JobChanged(t_ns=0, state="running"),
            lines("a", 0, 10),
            lines("b", 0, 3),
            lines("a", 10, 5),
            Note(t_ns=1, text='{"ev":"end"'),
            process,
            exited,
            failed,
            JobChanged(t_ns=4, state="stopping"),
            JobChanged(t_ns=5, state="stopping"),
        )
    )
    assert recorded.log_bytes == {"a": 15, "b": 3}
    assert (recorded.processes, recorded.exits, recorded.failed) == ([process], [exited], failed)
    assert recorded.state
    assert (recorded.state.t_ns, recorded.stopped_ns, recorded.ended) == (5, 4, None)


def test_lines_that_are_torn_or_strange_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "events.jsonl", lines("a", 0, 10))
    with path.open("ab") as file:
        file.write(
            b'{"ev":"log","t_ns":1,"file":"a","off\n\xff\xfe\n{"ev":"log","t_ns":"x"}\n'
            + encode(lines("a", 10, 1))
        )
        file.write(b'{"ev":"end","t_ns":9,"outc')
    recorded = read_recorded(path)
    assert recorded.log_bytes == {"a": 11}
    assert recorded.ended is None


def test_a_whole_run(tmp_path: Path) -> None:
    events = make_record(Plan(ranks=4, rounds=5)).events
    recorded = read_recorded(write(tmp_path / "events.jsonl", *events))
    assert recorded.header == events[0]
    assert recorded.ended == events[-1]
    assert isinstance(recorded.ended, RunEnded)
    assert {one.rank for one in recorded.processes} == {0, 1, 2, 3}
