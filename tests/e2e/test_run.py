"""`morimon run` as a process: signals, a viewer that dies, a rank that is killed, a reader that leaves, real ranks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from morimon.model.events import RankProcess
from morimon.runs.folder import RunFolder
from morimon.runs.listing import list_runs
from tests.support.jobs import DEADLINE_S, SUPPORT, Bench, Job, bench, until

pytestmark = pytest.mark.e2e


@dataclass
class Viewer:
    """A `morimon` command and what it prints."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    signs: Path = field(default_factory=Path)

    def wait(self) -> int:
        return self.process.wait(DEADLINE_S)

    def stdout(self) -> str:
        return self.out.read_text()

    def stderr(self) -> str:
        return self.err.read_text()

    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stdout().splitlines()]


class Desk:
    """Where commands are typed."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.viewers: list[Viewer] = []
        self.env = {**os.environ, "MORIMON_RUNS_DIR": str(bench.runs_dir)}
        self.env.pop("PYTHONUNBUFFERED", None)

    def morimon(self, *args: str, stdout: int | None = None, env: dict[str, str] | None = None) -> Viewer:
        folder = Path(tempfile.mkdtemp(dir=self.bench.path))
        out, err = folder / "out", folder / "err"
        with out.open("wb") as o, err.open("wb") as e:
            process = subprocess.Popen(
                [sys.executable, "-m", "morimon", *args],
                stdin=subprocess.DEVNULL,
                stdout=o if stdout is None else stdout,
                stderr=e,
                env={**self.env, **(env or {})},
                cwd=self.bench.path,
            )
        viewer = Viewer(process, out, err)
        self.viewers.append(viewer)
        return viewer

    def run(
        self, *behaviours: str, flags: tuple[str, ...] = (), stdout: int | None = None
    ) -> tuple[Viewer, Job]:
        """`morimon run` of two ranks of `rank_script.py`, which are up when this returns."""
        signs = Path(tempfile.mkdtemp(dir=self.bench.path))
        before = {run.id for run in list_runs(self.bench.runs_dir)}
        viewer = self.morimon(
            *("run", "--headless", "--nproc", "2", "--python", sys.executable, *flags),
            *("--", str(SUPPORT / "rank_script.py"), str(signs), *behaviours),
            stdout=stdout,
            env={"PYTHONPATH": str(self.bench.path / "stub"), "STUB_GRACE_S": "30"},
        )

        def new() -> RunFolder | None:
            assert viewer.process.poll() is None, viewer.stderr()
            runs = [run for run in list_runs(self.bench.runs_dir) if run.id not in before]
            return runs[0].folder if runs else None

        job = Job(until(new, "the run has a record"), signs)
        self.bench.jobs.append(job)
        job.wait_up(2)
        job.wait_for(RankProcess, 2)
        until(lambda: job.folder.run_id in viewer.stderr(), "the viewer says where the run is recorded")
        return viewer, job


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with bench(monkeypatch.setenv) as made:
        desk = Desk(made)
        try:
            yield desk
        finally:
            for viewer in desk.viewers:
                viewer.process.kill()
                viewer.process.wait()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_the_job_politely(desk: Desk, signum: signal.Signals) -> None:
    viewer, job = desk.run(flags=("--json",))
    viewer.process.send_signal(signum)
    assert viewer.wait() == 130
    assert f"{signum.name}: stopping the job" in viewer.stderr()
    result = viewer.objects()[-1]
    assert (result["type"], result["state"], result["ok"]) == ("result", "stopped", False)
    assert result["failure"] is None
    assert job.end().outcome == "stopped"
    job.assert_nothing_left()


def test_a_second_signal_kills_at_once(desk: Desk) -> None:
    viewer, job = desk.run("stubborn")
    viewer.process.send_signal(signal.SIGINT)
    until(lambda: "stopping the job" in viewer.stderr(), "the first signal is answered")
    assert viewer.process.poll() is None
    viewer.process.send_signal(signal.SIGINT)
    assert viewer.wait() == 130
    assert "killing the job" in viewer.stderr()
    job.wait_hub_gone()
    job.assert_nothing_left()


def test_a_killed_viewer_leaves_the_job_and_attach_shows_all_of_it(desk: Desk) -> None:
    viewer, job = desk.run()
    viewer.process.kill()
    viewer.wait()
    listed = desk.morimon("attach", "--json")
    assert listed.wait() == 0
    assert [o["id"] for o in listed.objects() if o["type"] == "listed"] == [job.folder.run_id]
    by_pid = desk.morimon("attach", str(job.wait_for(RankProcess, 2)[0].pid), "--json")
    attached = desk.morimon("attach", job.folder.run_id, "--headless")
    for follower in (by_pid, attached):
        until(lambda: "attached to" in follower.stderr(), "it follows")  # noqa: B023 - asked at once
    job.go()
    assert (by_pid.wait(), attached.wait()) == (0, 0)
    assert "finished after" in attached.stdout()
    result = by_pid.objects()[-1]
    assert (result["run_id"], result["ok"], len(result["ranks"])) == (job.folder.run_id, True, 2)
    again = desk.morimon("replay", job.folder.run_id, "--json")
    assert again.wait() == 0
    assert again.stdout() == by_pid.stdout()


def test_a_killed_hub_is_replaced_and_the_run_goes_on(desk: Desk) -> None:
    viewer, job = desk.run(flags=("--json",))
    job.kill(job.hub())
    until(lambda: "another one has taken up the record" in viewer.stdout(), "the viewer starts a new hub")
    job.go()
    assert viewer.wait() == 0
    assert viewer.objects()[-1]["ok"] is True
    again = desk.morimon("replay", job.folder.run_id, "--json")
    assert again.wait() == 0
    assert again.stdout() == viewer.stdout()


def test_leaving_an_attached_viewer_leaves_the_job(desk: Desk) -> None:
    viewer, job = desk.run()
    attached = desk.morimon("attach", job.folder.run_id)
    until(lambda: "attached to" in attached.stderr(), "it follows")
    attached.process.send_signal(signal.SIGINT)
    assert attached.wait() == 130
    job.go()
    assert viewer.wait() == 0


def test_a_killed_rank_is_named_with_its_signal(desk: Desk) -> None:
    viewer, job = desk.run("follow-up:0", flags=("--json",))
    victim = next(p for p in job.all_of(RankProcess) if p.rank == 1)
    os.kill(victim.pid, signal.SIGKILL)
    assert viewer.wait() == 1
    failure = viewer.objects()[-1]["failure"]
    assert (failure["rank"], failure["signal"]) == (1, "SIGKILL")
    text = desk.morimon("replay", job.folder.run_id)
    assert text.wait() == 1
    first = next(line for line in text.stdout().splitlines() if "failed" in line)
    assert first.startswith(("✗ rank 1 failed first:", "x rank 1 failed first:"))
    assert "SIGKILL" in first


def test_an_error_shows_its_own_lines(desk: Desk) -> None:
    viewer, job = desk.run("fail:1")
    job.go()
    assert viewer.wait() == 1
    assert "rank 1 failed first" in viewer.stdout()
    assert "ValueError: rank 1 has had enough" in viewer.stdout()


def test_a_reader_that_leaves_stops_the_job(desk: Desk) -> None:
    reading, writing = os.pipe()
    viewer, job = desk.run(flags=("--json",), stdout=writing)
    os.close(writing)
    os.close(reading)
    job.go()
    assert viewer.wait() == 1
    assert "Traceback" not in viewer.stderr()
    job.end()
    job.assert_nothing_left()


def test_a_job_that_somebody_else_started_can_be_followed(desk: Desk) -> None:
    signs = Path(tempfile.mkdtemp(dir=desk.bench.path))
    agent = subprocess.Popen(
        [
            *(sys.executable, str(SUPPORT / "stub_torchrun.py"), "--standalone", "--nproc-per-node=2"),
            *(f"--log-dir={signs}/logs", "--redirects=3", str(SUPPORT / "rank_script.py"), str(signs)),
        ],
        cwd=signs,
    )
    try:
        until(lambda: all((signs / f"up.0.{rank}").exists() for rank in (0, 1)), "the ranks are up")
        listed = desk.morimon("attach", "--json")
        assert listed.wait() == 0
        assert [o["ranks"] for o in listed.objects() if o.get("pid") == agent.pid] == [2]
        attached = desk.morimon("attach", str(agent.pid), "--json")
        until(lambda: "attached to" in attached.stderr(), "it follows")
        job = Job(list_runs(desk.bench.runs_dir)[0].folder, signs)
        desk.bench.jobs.append(job)
        job.wait_for(RankProcess, 2)
        job.go()
        assert agent.wait(DEADLINE_S) == 0
        assert attached.wait() == 0, attached.stdout()
        assert [rank["rank"] for rank in attached.objects()[-1]["ranks"]] == [0, 1]
    finally:
        agent.kill()
        agent.wait()


@pytest.mark.torch
def test_the_built_in_job_names_its_late_rank_and_replays_byte_for_byte(desk: Desk) -> None:
    """Eight real gloo ranks; the late rank's own durations would acquit it."""
    viewer = desk.morimon(
        *("run", "--nproc", "8", "--json", "--rounds", "8", "--slow-rank", "5", "--slow-us", "60000"),
        *("--max-tokens", "64", "--hidden-dim", "256"),
    )
    assert viewer.process.wait(100) == 0, viewer.stderr()
    objects = viewer.objects()
    result = objects[-1]
    (run,) = (thing for thing in objects if thing["type"] == "run")
    assert run["config"]["num_tokens"] == 64
    assert result["ok"] is True
    assert result["failure"] is None
    assert [rank["rank"] for rank in result["ranks"]] == list(range(8))
    assert result["totals"]["recv_tokens"] == sum(rank["recv_tokens"] for rank in result["ranks"])
    for rank in result["ranks"]:
        assert rank["dispatch"]["rounds"] == rank["combine"]["rounds"] == 7
        assert rank["dispatch"]["xgmi_gbps"]["average"] > 0
    late = result["last_to_arrive"]
    assert (late["rank"], late["late"]) == (5, True)
    assert late["behind_us"] > 30_000
    assert [rank["rank"] for rank in result["ranks"] if rank["late"]] == [5]
    again = desk.morimon("replay", result["run_id"], "--json")
    assert again.wait() == 0
    assert again.stdout() == viewer.stdout()
