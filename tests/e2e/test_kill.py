"""Real processes, really killed: whoever dies, the job's end is told as it was and nothing is left behind."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from morimon.hub.control import ensure_hub, request_stop
from morimon.hub.launch import LaunchSpec
from morimon.model.codec import encode
from morimon.model.events import (
    Dropped,
    Hello,
    HubStarted,
    JobChanged,
    JobFailed,
    LogLines,
    Note,
    ProcessSample,
    RankExited,
    RankProcess,
)
from morimon.runs.listing import list_runs, prune, read_header, run_info
from morimon.runs.lock import is_held
from morimon.store.store import Store
from tests.support.jobs import Bench, Job, bench, until

pytestmark = pytest.mark.e2e

PRINTS_A_LOT = """
import os, time
print("up", flush=True)
while not os.path.exists("go"):
    time.sleep(0.02)
for _ in range(10_000):
    print("x" * 99)
print("done")
"""


def assert_all_output_recorded_once(job: Job) -> None:
    """The references to every output file follow upon each other without gap or overlap, to the file's end."""
    ends: dict[str, int] = {}
    for lines in job.all_of(LogLines):
        assert lines.offset == ends.get(lines.file, 0), f"{lines.file} at {lines.offset}"
        ends[lines.file] = lines.offset + lines.length
    files = [*job.folder.path.glob("output/*/*/*/std*.log"), job.folder.console_path]
    sizes = {str(path.relative_to(job.folder.path)): path.stat().st_size for path in files}
    assert ends == {file: size for file, size in sizes.items() if size}


def test_a_job_that_nobody_disturbs(jobs: Bench) -> None:
    job = jobs.start(nproc=3)
    job.wait_up(3)
    job.wait_for(RankProcess, 3)
    job.wait_for(ProcessSample, 3)
    job.go()
    end = job.end()
    assert (end.outcome, end.exitcode, end.failure, end.left_behind) == ("finished", 0, None, 0)
    assert sorted((one.rank, one.exitcode) for one in job.all_of(RankExited)) == [(0, 0), (1, 0), (2, 0)]
    assert [change.state for change in job.all_of(JobChanged)] == ["starting", "running"]
    assert {one.rank for one in job.all_of(LogLines) if one.stream == "stdout"} == {0, 1, 2}
    assert_all_output_recorded_once(job)
    job.assert_nothing_left()
    assert [(info.id, info.state) for info in list_runs(jobs.runs_dir)] == [(job.folder.run_id, "finished")]


class TestHubKilled:
    def test_the_ranks_finish_and_the_record_goes_on(self, jobs: Bench) -> None:
        job = jobs.start(nproc=4)
        job.wait_up(4)
        job.wait_for(RankProcess, 4)
        job.wait_for(LogLines, 4)
        job.wait_for(ProcessSample, 4)
        job.kill(job.hub())
        info = run_info(job.folder)
        assert info
        assert info.state == "running"
        assert not is_held(job.folder.lock_path)
        assert ensure_hub(job.folder)
        assert not ensure_hub(job.folder)
        taken_up = job.wait_for(HubStarted, 2)[1].t_ns
        until(lambda: job.all_of(ProcessSample)[-1].t_ns > taken_up, "the successor has found the ranks")
        job.go()
        assert job.end().outcome == "finished"
        assert [started.resumed for started in job.all_of(HubStarted)] == [False, True]
        assert len(job.all_of(RankProcess)) == 4
        assert sorted((one.rank, one.exitcode) for one in job.all_of(RankExited)) == [
            (n, 0) for n in range(4)
        ]
        assert job.output("output/*/*/*/stdout.log").count("done") == 4
        assert_all_output_recorded_once(job)
        job.assert_nothing_left()

    def test_the_end_is_told_even_if_no_hub_saw_it(self, jobs: Bench) -> None:
        job = jobs.start("fail:1")
        job.wait_up(2)
        job.wait_for(RankProcess, 2)
        job.kill(job.hub())
        job.go()
        until(job.folder.exit_path.exists, "the keeper has seen the end")
        assert ensure_hub(job.folder)
        end = job.end()
        assert end.outcome == "failed"
        assert end.failure
        assert end.failure.rank == 1
        assert "has had enough" in end.failure.cause
        assert_all_output_recorded_once(job)
        job.assert_nothing_left()
        assert not ensure_hub(job.folder)

    def test_probes_find_the_successor_where_the_dead_hub_was(self, jobs: Bench) -> None:
        job = jobs.start()
        job.wait_up(2)
        launch = job.folder.launch()
        assert launch
        job.kill(job.hub())
        assert Path(launch.socket).exists(), "a stale socket"
        ensure_hub(job.folder)

        def connected() -> socket.socket | None:
            probe = socket.socket(socket.AF_UNIX)
            try:
                probe.connect(launch.socket)
            except ConnectionRefusedError:
                probe.close()
                return None
            return probe

        with until(connected, "the successor listens") as probe:
            probe.sendall(json.dumps({"ev": "hello", "v": 1, "rank": 1}).encode() + b"\n")
            job.wait_for(Hello)
        job.go()
        assert job.end().outcome == "finished"
        job.assert_nothing_left()

    def test_several_viewers_want_a_successor_and_one_comes(self, jobs: Bench) -> None:
        job = jobs.start()
        job.wait_up(2)
        job.kill(job.hub())
        with ThreadPoolExecutor(4) as viewers:
            started = list(viewers.map(lambda _: ensure_hub(job.folder), range(4)))
        assert started.count(True) == 1
        job.go()
        assert job.end().outcome == "finished"
        assert len(job.all_of(HubStarted)) == 2
        job.assert_nothing_left()

    def test_a_line_torn_by_the_kill_harms_no_other(self, jobs: Bench) -> None:
        job = jobs.start()
        job.wait_up(2)
        job.kill(job.hub())
        with job.folder.events_path.open("ab") as record:
            record.write(b'{"ev":"note","t_ns":17')
        ensure_hub(job.folder)
        job.go()
        until(lambda: not is_held(job.folder.lock_path), "the hub has ended")
        lines = job.folder.events_path.read_bytes().splitlines()
        assert lines.count(b'{"ev":"note","t_ns":17') == 1
        assert b'"outcome":"finished"' in lines[-1]


class TestKeeperKilled:
    def test_the_job_goes_on_and_what_it_leaves_is_ended(self, jobs: Bench) -> None:
        job = jobs.start("orphans")
        job.wait_up(2)
        job.wait_for(RankProcess, 2)
        job.kill(job.keeper())
        job.wait_for(Note)
        job.go()
        end = job.end()
        assert (end.outcome, end.exitcode) == ("finished", None)
        assert job.output("output/*/*/*/stdout.log").count("done") == 2
        job.assert_nothing_left()

    def test_one_rank_keeps_its_terminal(self, jobs: Bench) -> None:
        job = jobs.start(nproc=1)
        job.wait_up(1)
        job.wait_for(RankProcess)
        job.kill(job.keeper())
        (note,) = job.wait_for(Note)
        assert "The job goes on" in note.text
        job.go()
        assert job.end().outcome == "finished"
        assert job.output("console.log").splitlines() == ["rank 0 up", "rank 0 done"]
        assert_all_output_recorded_once(job)
        job.assert_nothing_left()

    def test_a_whole_command_prints_on_however_much(self, jobs: Bench) -> None:
        job = jobs.launch(
            LaunchSpec(kind="command", argv=(sys.executable, "-c", PRINTS_A_LOT), cwd=jobs.path)
        )
        job.wait_for(LogLines)
        job.kill(job.keeper())
        job.wait_for(Note)
        job.go()
        assert job.end().exitcode is None
        assert job.output("console.log").splitlines() == ["up", *["x" * 99] * 10_000, "done"]
        assert_all_output_recorded_once(job)
        job.assert_nothing_left()

    def test_a_hub_that_took_over_says_that_the_terminal_is_gone(self, jobs: Bench) -> None:
        job = jobs.launch(
            LaunchSpec(kind="command", argv=(sys.executable, "-c", PRINTS_A_LOT), cwd=jobs.path)
        )
        job.wait_for(LogLines)
        job.kill(job.hub())
        assert ensure_hub(job.folder)
        job.kill(job.keeper())
        (note,) = job.wait_for(Note)
        assert "with it the terminal that the job prints on" in note.text
        job.go()
        assert job.end().outcome == "lost"
        assert job.output("console.log") == "up\n"
        job.assert_nothing_left()

    def test_the_job_can_still_be_stopped(self, jobs: Bench) -> None:
        job = jobs.start()
        job.wait_up(2)
        job.kill(job.keeper())
        assert request_stop(job.folder)
        assert job.end().outcome == "stopped"
        job.assert_nothing_left()

    def test_hub_and_keeper_both(self, jobs: Bench) -> None:
        job = jobs.start("orphans")
        job.wait_up(2)
        job.kill(job.keeper())
        job.kill(job.hub())
        assert ensure_hub(job.folder)
        job.go()
        assert job.end().exitcode is None
        job.assert_nothing_left()


def test_agent_killed(jobs: Bench) -> None:
    job = jobs.start("orphans")
    job.wait_up(2)
    job.wait_for(RankProcess, 2)
    job.kill(job.agent())
    end = job.end()
    assert (end.outcome, end.exitcode) == ("failed", -signal.SIGKILL)
    assert end.failure
    assert (end.failure.rank, end.failure.signal) == (None, "SIGKILL")
    assert end.left_behind >= 2
    job.assert_nothing_left()


@pytest.mark.parametrize("real_torchrun", [False, pytest.param(True, marks=pytest.mark.torch)])
def test_rank_killed_is_named_before_the_others_follow_up_errors(jobs: Bench, real_torchrun: bool) -> None:
    job = jobs.start("follow-up", nproc=3, real_torchrun=real_torchrun)
    job.wait_up(3)
    victim = next(one for one in job.wait_for(RankProcess, 3) if one.rank == 1)
    os.kill(victim.pid, signal.SIGKILL)
    end = job.end()
    assert "ConnectionResetError" in job.output("output/*/*/*/stderr.log")
    assert end.outcome == "failed"
    assert end.failure
    assert (end.failure.rank, end.failure.signal) == (1, "SIGKILL")
    assert job.all_of(JobFailed)[0].failure.rank == 1
    job.assert_nothing_left()


def test_a_rank_that_fails_is_named_with_its_own_error(jobs: Bench) -> None:
    job = jobs.start("fail:2", "follow-up", nproc=3)
    job.wait_up(3)
    job.wait_for(RankProcess, 3)
    job.go()
    end = job.end()
    assert end.failure
    assert (end.failure.rank, end.failure.exitcode) == (2, 1)
    assert "rank 2 has had enough" in end.failure.cause
    job.assert_nothing_left()


def test_a_restart_begins_anew(jobs: Bench) -> None:
    job = jobs.start("fail-once:0", options=("--max-restarts=1",))
    job.wait_up(2)
    job.wait_for(RankProcess, 2)
    job.go()
    end = job.end()
    assert (end.outcome, end.failure) == ("finished", None)
    assert {(one.restart, one.rank) for one in job.all_of(RankProcess)} >= {(0, 0), (0, 1)}
    assert {one.restart for one in job.all_of(LogLines) if one.rank is not None} == {0, 1}
    assert_all_output_recorded_once(job)


def test_every_attempt_tells_its_own_failure(jobs: Bench) -> None:
    job = jobs.start("fail:0", options=("--max-restarts=1",))
    job.wait_up(2)
    job.wait_for(RankProcess, 2)
    job.go(restart=0)
    job.wait_for(JobFailed)
    job.wait_up(2, restart=1)
    job.wait_for(RankProcess, 4)
    store = Store()
    for event in job.events():
        store.apply(event)
    assert store.snapshot().failure is None, "the second attempt runs"
    job.go(restart=1)
    end = job.end()
    assert end.failure
    files = [failure.file or "" for failure in (job.all_of(JobFailed)[0].failure, end.failure)]
    assert ["attempt_0" in files[0], "attempt_1" in files[1]] == [True, True]


def test_a_rank_that_only_wrote_an_error_file_is_named_with_it(jobs: Bench) -> None:
    job = jobs.start("record:1")
    job.wait_up(2)
    job.wait_for(RankProcess, 2)
    job.go()
    end = job.end()
    assert end.failure
    assert (end.failure.rank, end.failure.exitcode) == (1, 5)
    assert end.failure.cause == "RuntimeError: rank 1 wrote this"
    assert job.all_of(JobFailed)[-1].failure == end.failure


def test_two_runs_at_once(jobs: Bench) -> None:
    first, second = jobs.start("fail:0"), jobs.start()
    assert first.folder.run_id != second.folder.run_id
    for job in (first, second):
        job.wait_up(2)
    assert {info.state for info in list_runs(jobs.runs_dir)} == {"running"}
    assert prune(jobs.runs_dir) == []
    first.go()
    assert first.end().outcome == "failed"
    first.assert_nothing_left()
    assert len(second.left()) >= 3
    second.go()
    assert second.end().outcome == "finished"
    second.assert_nothing_left()
    assert len(prune(jobs.runs_dir)) == 2


def test_a_crashed_boot_is_told_and_can_be_removed(jobs: Bench) -> None:
    job = jobs.start()
    job.wait_up(2)
    header = read_header(job.folder)
    assert header
    crashed = jobs.runs_dir / "c0ffee"
    shutil.copytree(job.folder.path, crashed)
    launch = job.folder.launch()
    assert launch
    stale = jobs.path / "stale.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(stale))
    (crashed / "launch.json").write_bytes(
        msgspec.json.encode(msgspec.structs.replace(launch, socket=str(stale)))
    )
    (crashed / "events.jsonl").write_bytes(encode(msgspec.structs.replace(header, boot_id="another")))
    states = {info.id: info.state for info in list_runs(jobs.runs_dir)}
    assert states == {"c0ffee": "crashed", job.folder.run_id: "running"}
    folder = next(info.folder for info in list_runs(jobs.runs_dir) if info.id == "c0ffee")
    assert not ensure_hub(folder)
    assert not request_stop(folder), "its pids belong to others now"
    assert [info.id for info in prune(jobs.runs_dir)] == ["c0ffee"]
    assert not crashed.exists()
    assert not stale.exists()
    job.go()
    assert job.end().outcome == "finished"


def test_a_whole_command_prints_on_a_terminal_line_by_line(jobs: Bench) -> None:
    script = jobs.path / "print.py"
    script.write_text(
        "import os, resource, sys, time\n"
        "print('tty', sys.stdout.isatty(), sys.stdin.read() == '', os.environ['TERM'], *os.get_terminal_size(1))\n"
        "print(*resource.getrlimit(resource.RLIMIT_NOFILE))\n"
        "while not os.path.exists('go'): time.sleep(0.02)\n"
        "sys.exit(3)\n"
    )
    job = jobs.launch(LaunchSpec(kind="command", argv=(sys.executable, str(script)), cwd=jobs.path))
    job.wait_for(LogLines)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    until(lambda: job.output("console.log").count("\n") == 2, "both lines are there")
    assert job.output("console.log") == "tty True True dumb 200 50\n{} {}\n".format(*files)
    job.go()
    end = job.end()
    assert (end.outcome, end.exitcode) == ("failed", 3)
    job.assert_nothing_left()


def test_a_program_that_cannot_run_is_told(jobs: Bench) -> None:
    program = jobs.path / "broken"
    program.write_bytes(b"\x7fELF but not really")
    program.chmod(0o755)
    end = jobs.launch(LaunchSpec(kind="command", argv=(str(program),), cwd=jobs.path)).end()
    assert end.outcome == "failed"
    assert end.failure
    assert str(program) in end.failure.cause


def test_a_full_disk_is_told_and_does_not_harm_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    with bench(monkeypatch.setenv) as made:
        disk = made.path / "disk"
        disk.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=False, capture_output=True
        )
        if mounted.returncode != 0:
            pytest.skip("a small disk can be mounted by root alone")
        try:
            made.runs_dir = disk / "runs"
            job = made.start()
            job.wait_up(2)
            filler = disk / "filler"
            filled = subprocess.run(["dd", "if=/dev/zero", f"of={filler}"], check=False, capture_output=True)
            assert b"No space" in filled.stderr
            launch = job.folder.launch()
            assert launch
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(launch.socket)
                probe.sendall(b'{"ev":"hello","v":1,"rank":0}\n')
                probe.sendall(b'{"ev":"counter","name":"n","value":1}\n' * 3000)
                job.wait_for(Note)
                assert "Recording stands still" in job.all_of(Note)[0].text
                until(lambda: shutil.disk_usage(disk).free == 0, "no room is left")
            filler.unlink()
            job.wait_for(Note, 2)
            gap = next(one for one in job.wait_for(Dropped) if "disk" in one.reason)
            assert gap.count > 0
            job.go()
            assert job.end().outcome == "finished"
            job.assert_nothing_left()
        finally:
            for left in made.jobs:
                request_stop(left.folder, force=True)
                left.wait_hub_gone()
            subprocess.run(["umount", "-l", disk], check=True)
