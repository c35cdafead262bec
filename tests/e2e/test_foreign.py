"""Jobs that somebody else started: found, followed, and left alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from morimon.hub.control import ensure_hub, request_stop
from morimon.hub.foreign import follow_foreign, foreign_jobs
from morimon.hub.launch import LaunchError
from morimon.model.events import JobChanged, LogLines, Note, ProcessSample, RankProcess
from morimon.runs.listing import run_info
from tests.support.jobs import SUPPORT, Bench, Job, until

pytestmark = pytest.mark.e2e


class Shell:
    """What a user might have typed before morimon was thought of."""

    def __init__(self, path: Path, *, redirects: str, log: bool) -> None:
        self.path = path
        command = [sys.executable, str(SUPPORT / "stub_torchrun.py"), "--nproc-per-node=2"]
        command += [f"--log-dir={path / 'logs'}", f"--redirects={redirects}"]
        command += [str(SUPPORT / "rank_script.py"), str(path)]
        output = (path / "nohup.out").open("wb") if log else subprocess.PIPE
        env = {name: value for name, value in os.environ.items() if not name.startswith("MORIMON_")}
        self.agent = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=env)
        until(lambda: all((path / f"up.0.{rank}").exists() for rank in range(2)), "both ranks are up")

    def finish(self) -> int:
        """Let the ranks go; the agent's exit code."""
        (self.path / "go").touch()
        self.agent.communicate()
        return self.agent.returncode


@contextmanager
def shell_job(path: Path, *, redirects: str = "3", log: bool = True) -> Iterator[Shell]:
    shell = Shell(path, redirects=redirects, log=log)
    try:
        yield shell
    finally:
        shell.finish()


def follow(jobs: Bench, pid: int) -> Job:
    job = Job(follow_foreign(pid, jobs.runs_dir), jobs.path)
    jobs.jobs.append(job)
    return job


def test_it_is_listed_and_followed_to_its_end_whichever_of_its_processes_is_named(jobs: Bench) -> None:
    with shell_job(jobs.path) as shell:
        mine = next(one for one in foreign_jobs() if one.pid == shell.agent.pid)
        assert mine.ranks == 2
        assert mine.command[1] == str(SUPPORT / "stub_torchrun.py")
        job = follow(jobs, shell.agent.pid)
        ranks = job.wait_for(RankProcess, 2)
        assert sorted(one.rank for one in ranks) == [0, 1]
        assert follow_foreign(ranks[1].pid, jobs.runs_dir) == job.folder
        job.wait_for(ProcessSample, 2)
        job.go()
        until(lambda: shell.agent.poll() is not None, "the job is over")
        end = job.end()
        assert (end.outcome, end.exitcode) == ("finished", None)
        texts = {
            (lines.rank, (job.folder.path / lines.file).read_text())
            for lines in job.all_of(LogLines)
            if lines.rank is not None
        }
        assert texts == {(rank, f"rank {rank} up\nrank {rank} done\n") for rank in range(2)}
    assert shell.agent.returncode == 0


def test_output_that_all_ranks_share_is_a_console(jobs: Bench) -> None:
    with shell_job(jobs.path, redirects="0") as shell:
        job = follow(jobs, shell.agent.pid)
        lines = job.wait_for(LogLines)
        assert {(one.stream, job.folder.path / one.file) for one in lines} >= {
            ("console", job.folder.path / os.path.relpath(jobs.path / "nohup.out", job.folder.path))
        }
        job.go()
        assert job.end().outcome == "finished"


def test_output_that_cannot_be_read_is_told(jobs: Bench) -> None:
    with shell_job(jobs.path, redirects="0", log=False) as shell:
        job = follow(jobs, shell.agent.pid)
        assert "cannot be read" in job.wait_for(Note)[0].text
        job.go()
        assert job.end().outcome == "finished"


def test_its_hub_may_be_killed_and_replaced(jobs: Bench) -> None:
    with shell_job(jobs.path) as shell:
        job = follow(jobs, shell.agent.pid)
        job.wait_for(RankProcess, 2)
        job.kill(job.hub())
        info = run_info(job.folder)
        assert info
        assert info.state == "running"
        assert ensure_hub(job.folder)
        job.go()
        assert job.end().outcome == "finished"


@pytest.mark.parametrize("force", [False, True])
def test_it_can_be_stopped(jobs: Bench, force: bool) -> None:
    with shell_job(jobs.path) as shell:
        job = follow(jobs, shell.agent.pid)
        ranks = job.wait_for(RankProcess, 2)
        assert request_stop(job.folder, force=force)
        assert job.wait_for(JobChanged, 3)[-1].state == "stopping"
        until(lambda: shell.agent.poll() is not None, "the agent has ended")
        assert job.end().outcome == "stopped"
        until(lambda: not any(Path(f"/proc/{one.pid}").exists() for one in ranks), "no rank is left")


@pytest.mark.parametrize(("pid", "says"), [(2**22 - 1, "There is no process"), (None, "is no rank of a job")])
def test_what_is_no_job_is_refused(jobs: Bench, pid: int | None, says: str) -> None:
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        with pytest.raises(LaunchError, match=says):
            follow_foreign(pid or sleeper.pid, jobs.runs_dir)
        sleeper.kill()
    assert not jobs.runs_dir.exists()
