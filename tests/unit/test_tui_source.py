"""Where snapshots come from: a growing record, and one that is played again."""

from __future__ import annotations

from pathlib import Path

import pytest

from morimon.tui.source import LiveSource, ReplaySource, parse_position
from tests.support.records import Plan, make_record


class Clock:
    """Time that passes only where the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def recorded(tmp_path: Path, plan: Plan) -> Path:
    return make_record(plan).write(tmp_path) / "events.jsonl"


def replayed(tmp_path: Path) -> ReplaySource:
    source = ReplaySource(recorded(tmp_path, Plan(rounds=20, pause_us=100_000)), Clock())
    source.poll(0.0)
    assert is_loaded(source)
    return source


def is_loaded(source: ReplaySource) -> bool:
    return source.loading is None


def test_a_live_source_follows_a_growing_record_and_half_lines_wait(tmp_path: Path) -> None:
    lines = make_record(Plan(rounds=6, ends=False)).lines()
    cut = lines.index(b"\n", len(lines) // 2) - 5
    record = tmp_path / "events.jsonl"
    record.write_bytes(lines[:cut])
    source = LiveSource(record, Clock())
    source.poll(0.0)
    half = source.snapshot
    assert half is source.snapshot
    with record.open("ab") as file:
        file.write(lines[cut:])
    source.poll(1.0)
    assert source.snapshot.version > half.version
    assert source.snapshot.drops == ()
    assert source.snapshot.progress_done == 6
    source.close()


def test_a_record_that_nobody_writes_any_more_ends_as_lost(tmp_path: Path) -> None:
    source = LiveSource(recorded(tmp_path, Plan(rounds=6, ends=False)), Clock())
    source.lose("The hub is gone.")
    assert source.snapshot.state == "lost"
    assert source.snapshot.progress_done == 6
    assert source.snapshot.notes[-1].text == "The hub is gone."


def test_a_replay_moves_with_time_and_speed_and_stops_at_the_end(tmp_path: Path) -> None:
    source = replayed(tmp_path)
    begin = source.position_s
    before = source.snapshot
    assert before.progress_done is None
    source.poll(1.5)
    assert source.position_s == pytest.approx(begin + 1.5)
    done = source.snapshot.progress_done
    assert done is not None
    source.speed = 4.0
    source.poll(1.75)
    assert source.position_s == pytest.approx(begin + 2.5)
    assert (source.snapshot.progress_done or 0) > done
    source.paused = True
    source.poll(99.0)
    assert source.position_s == pytest.approx(begin + 2.5)
    source.paused = False
    source.poll(999.0)
    assert source.position_s == source.length_s
    assert source.paused
    assert source.snapshot.state == "finished"


def test_seeking_back_shows_the_past_again(tmp_path: Path) -> None:
    source = replayed(tmp_path)
    source.seek(source.length_s)
    at_end = source.snapshot
    source.seek(0.0)
    assert source.snapshot.state == "starting"
    source.seek(source.length_s)
    assert source.snapshot.ranks == at_end.ranks
    assert source.snapshot.dispatch == at_end.dispatch


def test_steps_go_from_round_to_round(tmp_path: Path) -> None:
    source = replayed(tmp_path)
    source.seek(source.time_of_round(5) or 0.0)
    source.step(1)
    assert source.paused
    assert max(rank.round or 0 for rank in source.snapshot.ranks) == 6
    source.step(-1)
    assert max(rank.round or 0 for rank in source.snapshot.ranks) == 5
    source.step(-1)
    assert max(rank.round or 0 for rank in source.snapshot.ranks) == 4
    source.seek(source.length_s)
    source.step(1)
    assert source.position_s == source.length_s


def test_places_in_a_recording(tmp_path: Path) -> None:
    source = replayed(tmp_path)
    assert parse_position("1:30", source) == 90.0
    assert parse_position("12.5", source) == 12.5
    assert parse_position("50%", source) == pytest.approx(source.length_s / 2)
    assert parse_position("#3", source) == source.time_of_round(3)
    assert parse_position("#999", source) is None
    assert parse_position("soon", source) is None


def test_a_record_that_takes_long_to_read_is_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("morimon.feeds.record.PIECE_BYTES", 20_000)

    class SlowClock(Clock):
        def __call__(self) -> float:
            self.now += 1.0
            return self.now

    source = ReplaySource(recorded(tmp_path, Plan(rounds=20)), SlowClock())
    shares, lengths = [], []
    for _ in range(1000):
        source.poll(0.0)
        if source.loading is None:
            break
        shares.append(source.loading)
        lengths.append(source.length_s)
    assert is_loaded(source)
    assert len(shares) > 3
    assert 0 < shares[0] < 1
    assert shares == sorted(shares)
    assert len(set(lengths)) > 3, "times are found while reading, not at its end"


def test_an_empty_record_can_be_replayed(tmp_path: Path) -> None:
    record = tmp_path / "events.jsonl"
    record.touch()
    source = ReplaySource(record, Clock())
    source.poll(0.0)
    source.step(1)
    source.poll(1.0)
    assert source.length_s == 0.0
    assert source.snapshot.ranks == ()
