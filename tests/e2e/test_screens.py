"""The screens on real jobs: attach, look, detach, attach again from another size, stop; a viewer's end is not the job's."""

from __future__ import annotations

import signal
import sys

import pytest

from tests.support.jobs import Bench, Job, until
from tests.support.terminal import Terminal

pytestmark = pytest.mark.e2e


def attached(jobs: Bench, job: Job, size: tuple[int, int] = (120, 40)) -> Terminal:
    environ = {"MORIMON_RUNS_DIR": str(jobs.runs_dir), "XDG_RUNTIME_DIR": str(jobs.path), "NO_COLOR": ""}
    return Terminal([sys.executable, "-m", "morimon", "attach", job.folder.run_id], size, environ)


def test_detaching_and_attaching_again_from_another_size(jobs: Bench) -> None:
    job = jobs.start()
    job.wait_up(2)
    with attached(jobs, job) as terminal:
        terminal.wait_for("2 of 2 ranks are up")
        terminal.send("6")
        terminal.wait_for("1 │  rank 1 up")
        terminal.send("q")
        terminal.wait_for("Leave it?")
        terminal.send("d")
        assert terminal.wait_for_end() == 0
        terminal.assert_clean()
        assert f"morimon attach {job.folder.run_id}" in terminal.text()
    with attached(jobs, job, (80, 24)) as terminal:
        terminal.wait_for("2 of 2 ranks are up")
        job.go()
        terminal.wait_for("✓ finished")
        terminal.send("q")
        assert terminal.wait_for_end() == 0
        terminal.assert_clean()
    assert job.end().outcome == "finished"


def test_stopping_the_job_from_the_screen(jobs: Bench) -> None:
    job = jobs.start()
    job.wait_up(2)
    with attached(jobs, job) as terminal:
        terminal.wait_for("2 of 2 ranks are up")
        terminal.send("q")
        terminal.wait_for("stop the job")
        terminal.send("s")
        terminal.wait_for("● stopped")
        terminal.send("q")
        assert terminal.wait_for_end() == 1
        terminal.assert_clean()
        assert f"run {job.folder.run_id} was stopped; its record is in" in terminal.text()
    assert job.end().outcome == "stopped"
    job.assert_nothing_left()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_viewer_that_is_ended_leaves_the_job_alone(jobs: Bench, number: signal.Signals) -> None:
    job = jobs.start()
    job.wait_up(2)
    with attached(jobs, job) as terminal:
        terminal.wait_for("2 of 2 ranks are up")
        terminal.process.send_signal(number)
        terminal.wait_for_end()
        terminal.assert_clean()
    job.go()
    assert job.end().outcome == "finished"


def test_a_hub_that_dies_is_replaced_while_one_looks(jobs: Bench) -> None:
    job = jobs.start()
    job.wait_up(2)
    with attached(jobs, job) as terminal:
        terminal.wait_for("2 of 2 ranks are up")
        dead = job.hub()
        job.kill(dead)
        until(lambda: job.hub() != dead, "another hub lives")
        job.go()
        terminal.wait_for("✓ finished")
        terminal.process.terminate()
        terminal.wait_for_end()


def test_a_failing_rank_is_named_with_its_own_words_on_top_of_the_log(jobs: Bench) -> None:
    job = jobs.start("fail:1")
    job.wait_up(2)
    with attached(jobs, job) as terminal:
        terminal.wait_for("2 of 2 ranks are up")
        job.go()
        terminal.wait_for("✗ rank 1 failed first: ")
        terminal.send("6")
        text = terminal.wait_for("in the words of rank 1")
        assert "ValueError: rank 1 has had enough" in text
        terminal.wait_for("✗ failed")
        terminal.send("q")
        terminal.wait_for_end()
