"""The record's writer on disks that fill up, tear lines and recover."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from morimon.hub.recorder import RETRY_NS, Recorder
from morimon.hub.thinning import Thinning
from morimon.model.codec import decode
from morimon.model.events import (
    Counter,
    Dropped,
    LogLines,
    Note,
    PhaseEntered,
    ProcessSample,
    RankExited,
    RecordEvent,
)

SECOND_NS = 1_000_000_000


class Disk:
    """Writes through to the file as long as there is room; None is a disk without end."""

    def __init__(self) -> None:
        self.room: int | None = None

    def write(self, fd: int, data: bytes) -> int:
        if self.room is None:
            return os.write(fd, data)
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = os.write(fd, data[: self.room])
        self.room -= written
        return written


def sample(number: int) -> Counter:
    return Counter(t_ns=number, rank=0, name="n", value=number)


def death(rank: int) -> RankExited:
    return RankExited(t_ns=1, rank=rank, restart=0, pid=1)


def read(path: Path) -> list[RecordEvent]:
    data = path.read_bytes()
    assert data == b"" or data.endswith(b"\n")
    return [decode(line) for line in data.splitlines()]


def test_events_are_on_the_disk_after_a_flush_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    recorder = Recorder(path)
    for number in range(5):
        recorder.append(sample(number))
    assert path.read_bytes() == b""
    recorder.flush(0)
    assert read(path) == [sample(number) for number in range(5)]
    assert recorder.close(0)
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_successor_appends_and_ends_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"ev":"note","t_ns":1,"text":"a"}\n{"ev":"no')
    recorder = Recorder(path)
    recorder.append(sample(1))
    recorder.flush(0)
    assert path.read_bytes().splitlines()[1] == b'{"ev":"no'
    assert decode(path.read_bytes().splitlines()[2]) == sample(1)


def test_a_full_disk_is_said_in_the_room_of_the_ballast(tmp_path: Path) -> None:
    disk = Disk()
    path = tmp_path / "events.jsonl"
    recorder = Recorder(path, write=disk.write)
    disk.room = 0

    def write_once_the_ballast_is_gone(fd: int, data: bytes) -> int:
        if not (tmp_path / "ballast").exists():
            disk.room = None
        return disk.write(fd, data)

    recorder = Recorder(path, write=write_once_the_ballast_is_gone)
    recorder.append(death(3))
    recorder.flush(7)
    note, lived = read(path)
    assert isinstance(note, Note)
    assert note.level == "error"
    assert "No space left on device" in note.text
    assert lived == death(3)


def test_what_no_run_can_be_told_without_waits_and_samples_are_counted(tmp_path: Path) -> None:
    disk = Disk()
    path = tmp_path / "events.jsonl"
    recorder = Recorder(path, write=disk.write)
    disk.room = 0
    recorder.append(sample(1))
    recorder.append(death(0))
    recorder.flush(0)
    assert recorder.is_stuck
    recorder.append(sample(2))
    recorder.append(sample(3))
    recorder.append(death(1))
    disk.room = None
    recorder.flush(RETRY_NS - 1)
    assert read(path) == [], "it was tried again too soon"
    recorder.flush(RETRY_NS)
    recorder.flush(2 * RETRY_NS)
    events = read(path)
    assert [event for event in events if isinstance(event, RankExited)] == [death(0), death(1)]
    assert [event.count for event in events if isinstance(event, Dropped)] == [3]
    assert [type(event) for event in events if isinstance(event, Note)] == [Note, Note]
    assert not [event for event in events if isinstance(event, Counter)]


@given(
    rooms=st.lists(st.integers(0, 200), min_size=1, max_size=12), kinds=st.lists(st.booleans(), max_size=12)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_room_there_is_every_event_is_written_once_or_counted(
    tmp_path: Path, rooms: list[int], kinds: list[bool]
) -> None:
    path = tmp_path / "events.jsonl"
    path.unlink(missing_ok=True)
    disk = Disk()
    recorder = Recorder(path, write=disk.write)
    given_samples, given_deaths, now_ns = 0, 0, 0
    for at, room in enumerate(rooms):
        for is_sample in kinds:
            recorder.append(sample(at) if is_sample else death(at))
            given_samples += is_sample
            given_deaths += not is_sample
        disk.room = room
        now_ns += RETRY_NS
        recorder.flush(now_ns)
    disk.room = None
    assert recorder.close(now_ns + RETRY_NS)
    events = read(path)
    deaths = [event for event in events if isinstance(event, RankExited)]
    written = sum(isinstance(event, Counter) for event in events)
    lost = sum(event.count for event in events if isinstance(event, Dropped))
    assert len(deaths) == given_deaths
    assert [one.rank for one in deaths] == sorted(one.rank for one in deaths)
    assert written + lost == given_samples


def test_a_large_record_is_thinned_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    recorder = Recorder(path, max_bytes=1000)
    for number in range(40):
        recorder.append(sample(number))
    recorder.flush(0)
    for number in range(40):
        recorder.append(sample(SECOND_NS + number))
    recorder.append(death(2))
    recorder.flush(SECOND_NS)
    later = read(path)[40:]
    assert isinstance(later[0], Note)
    assert later[1:] == [sample(SECOND_NS), death(2)]
    recorder.flush(11 * SECOND_NS)
    assert read(path)[-1] == Dropped(t_ns=11 * SECOND_NS, count=39, reason="thinned, the record is large")


class TestThinning:
    def test_rounds_are_kept_whole_for_every_rank(self) -> None:
        thinning = Thinning()
        kept: dict[int, set[int]] = {}
        for number in range(100):
            for rank in range(4):
                t_ns = number * SECOND_NS // 10 + rank * 70_000_000  # the last rank is two rounds behind
                event = PhaseEntered(t_ns=t_ns, rank=rank, round=number, phase="dispatch")
                if thinning.keeps(event):
                    kept.setdefault(number, set()).add(rank)
        assert set(map(frozenset, kept.values())) == {frozenset(range(4))}
        assert 9 <= len(kept) <= 11

    @pytest.mark.parametrize("rate_hz", [1, 10])
    def test_a_sample_per_rank_and_second(self, rate_hz: int) -> None:
        thinning = Thinning()
        kept = [
            rank
            for tick in range(5 * rate_hz)
            for rank in range(3)
            if thinning.keeps(
                ProcessSample(
                    t_ns=tick * SECOND_NS // rate_hz,
                    rank=rank,
                    restart=0,
                    pid=1,
                    cpu_percent=0.0,
                    rss_bytes=0,
                    threads=1,
                )
            )
        ]
        assert sorted(kept) == [0] * 5 + [1] * 5 + [2] * 5

    def test_errors_are_kept(self) -> None:
        thinning = Thinning()
        lines = LogLines(t_ns=0, file="f", offset=0, length=1, lines=1, stream="stderr", level="error")
        assert all(thinning.keeps(lines) for _ in range(5))
        assert thinning.dropped(100 * SECOND_NS) == []
