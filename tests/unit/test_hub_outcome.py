"""The run's end, judged from deaths and printed errors in the order in which they come to be known."""

from __future__ import annotations

from pathlib import Path

import pytest

from morimon.hub.error_files import ErrorFiles
from morimon.hub.outcome import Attempts, judge
from morimon.model.events import Failure, RankExited, RunEnded
from morimon.runs.folder import Exit


def died(
    rank: int, *, exitcode: int | None = None, signal: int | None = None, restart: int = 0
) -> RankExited:
    return RankExited(t_ns=rank, rank=rank, restart=restart, pid=1, exitcode=exitcode, signal=signal)


def printed(rank: int | None, cause: str) -> Failure:
    return Failure(rank=rank, cause=cause, file="f", offset=7)


def told(*known: RankExited | Failure, console: tuple[Failure, ...] = ()) -> Attempts:
    attempts = Attempts()
    for one in known:
        if isinstance(one, RankExited):
            attempts.take(one)
        else:
            attempts.of(0).add(one)
    for failure in console:
        attempts.console.add(failure)
    return attempts


def end(attempts: Attempts, seen: Exit | None, *, was_stopped: bool = False) -> RunEnded:
    return judge(seen, attempts, t_ns=99, was_stopped=was_stopped)


def test_error_files_are_read_once_when_they_are_whole(tmp_path: Path) -> None:
    attempts = Attempts()
    files = ErrorFiles(tmp_path, lambda restart, local_rank: local_rank + 8, attempts)
    texts = {
        "0": '{"message": {"message": "ValueError: boom\\nmore", "extraInfo": {"timestamp": "1"}}}',
        "1": '{"message": "Signal 11 (SIGSEGV)"}',
        "2": '{"message": {"mess',
        "3": '["no", "error", "file"]',
    }
    files.look()
    for local_rank, text in texts.items():
        path = tmp_path / "job_x" / "attempt_1" / local_rank / "error.json"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    files.look()
    known = [attempts.of(1).of(rank) for rank in range(8, 12)]
    assert [one and one.cause for one in known] == ["ValueError: boom", "Signal 11 (SIGSEGV)", None, None]
    (tmp_path / "job_x" / "attempt_1" / "2" / "error.json").write_text('{"message": "whole now"}')
    files.look()
    assert attempts.of(1).of(10) == Failure(rank=10, cause="whole now")
    assert attempts.of(0).root() is None


FAILED = Exit(returncode=1)


@pytest.mark.parametrize("also", [died(0, signal=15), died(0, exitcode=0), died(0)])
def test_nothing_is_known_of_ranks_that_are_well(also: RankExited) -> None:
    assert told(also).first_cause() is None


def test_a_killed_rank_goes_before_the_errors_that_follow() -> None:
    attempts = told(
        died(6, signal=9),
        printed(0, "DistBackendError: connection reset by peer"),
        died(0, exitcode=1),
        died(3, signal=15),
    )
    ended = end(attempts, FAILED)
    assert (ended.outcome, ended.exitcode) == ("failed", 1)
    assert ended.failure
    assert (ended.failure.rank, ended.failure.signal, ended.failure.exitcode) == (6, "SIGKILL", None)


def test_a_rank_has_its_own_words_and_exit_code() -> None:
    failure = told(printed(2, "RuntimeError: boom"), died(2, exitcode=3)).first_cause()
    assert failure == Failure(rank=2, cause="RuntimeError: boom", exitcode=3, file="f", offset=7)


def test_a_follow_up_error_does_not_hide_the_cause_though_its_rank_died_first() -> None:
    attempts = told(
        printed(0, "ConnectionError: Connection closed by peer"),
        died(0, exitcode=1),
        printed(6, "RuntimeError: shmem heap too small"),
        died(6, exitcode=1),
    )
    failure = attempts.first_cause()
    assert failure
    assert (failure.rank, failure.cause) == (6, "RuntimeError: shmem heap too small")


def test_an_error_on_a_shared_console_is_the_only_failed_ranks() -> None:
    attempts = told(died(0, exitcode=2), console=(printed(None, "ValueError: no"),))
    failure = attempts.first_cause()
    assert failure == Failure(rank=0, cause="ValueError: no", exitcode=2, file="f", offset=7)


def test_only_the_newest_attempt_counts() -> None:
    attempts = told(printed(1, "ValueError: first"), died(1, exitcode=1))
    assert attempts.first_cause()
    attempts.of(1)
    assert attempts.first_cause() is None
    attempts.take(died(0, exitcode=4, restart=1))
    failure = attempts.first_cause()
    assert failure
    assert (failure.rank, failure.exitcode) == (0, 4)
    assert end(attempts, Exit(returncode=0)).failure is None


class TestOutcome:
    def test_finished(self) -> None:
        ended = end(told(), Exit(returncode=0, left_count=2))
        assert (ended.outcome, ended.exitcode, ended.failure, ended.left_behind) == ("finished", 0, None, 2)

    def test_stopped(self) -> None:
        attempts = told(died(0, signal=15), printed(1, "KeyboardInterrupt"))
        assert end(attempts, Exit(returncode=1), was_stopped=True).outcome == "stopped"
        assert end(attempts, Exit(returncode=1, stops=1)).outcome == "stopped"
        assert end(attempts, None, was_stopped=True).outcome == "stopped"

    def test_failed_before_it_was_stopped(self) -> None:
        ended = end(told(died(0, exitcode=1)), Exit(returncode=1, stops=1), was_stopped=True)
        assert ended.outcome == "failed"
        assert ended.failure

    def test_without_a_keeper_the_ranks_tell(self) -> None:
        ended = end(told(), None)
        assert (ended.outcome, ended.exitcode) == ("lost", None)
        assert ended.failure
        assert "keeper" in ended.failure.cause
        assert end(told(died(0, exitcode=0), died(1, exitcode=0)), None).outcome == "finished"
        assert end(told(died(0, exitcode=0), died(1)), None).outcome == "lost"
        assert end(told(died(0, exitcode=0), died(1, signal=9)), None).outcome == "failed"

    def test_not_started(self) -> None:
        ended = end(told(), Exit(returncode=127, error="Exec format error: x"))
        assert ended.failure == Failure(rank=None, cause="Exec format error: x.", exitcode=127)

    def test_the_agent_killed(self) -> None:
        ended = end(told(died(0, signal=15)), Exit(returncode=-9, signal="SIGKILL"))
        assert ended.failure
        assert (ended.failure.rank, ended.failure.signal) == (None, "SIGKILL")

    def test_the_agent_failed_by_itself(self) -> None:
        spoken = end(told(console=(printed(None, "RendezvousTimeoutError"),)), FAILED)
        assert spoken.failure
        assert spoken.failure.cause == "RendezvousTimeoutError"
        silent = end(told(), FAILED)
        assert silent.failure
        assert silent.failure.exitcode == 1
