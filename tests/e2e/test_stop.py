"""Orders to stop a job: asked politely, asked twice, by force; and signals that are no orders."""

from __future__ import annotations

import signal

import pytest

from morimon.hub.control import ensure_hub, request_stop
from morimon.model.events import JobChanged
from tests.support.jobs import Bench, until

pytestmark = pytest.mark.e2e


def test_asked_once(jobs: Bench) -> None:
    job = jobs.start()
    job.wait_up(2)
    assert request_stop(job.folder)
    end = job.end()
    assert (end.outcome, end.failure) == ("stopped", None)
    assert job.all_of(JobChanged)[-1].state == "stopping"
    job.assert_nothing_left()
    assert not request_stop(job.folder)


def test_ranks_that_ignore_it_and_their_grandchildren(jobs: Bench) -> None:
    job = jobs.start("stubborn", "orphans", grace_s=0.5)
    job.wait_up(2)
    assert request_stop(job.folder)
    end = job.end()
    assert end.outcome == "stopped"
    assert end.left_behind >= 4
    job.assert_nothing_left()


def test_asked_twice_it_does_not_wait(jobs: Bench) -> None:
    job = jobs.start("stubborn", "orphans", grace_s=600)
    job.wait_up(2)
    assert request_stop(job.folder)
    until(lambda: job.all_of(JobChanged)[-1].state == "stopping", "the hub has heard it")
    assert request_stop(job.folder)
    assert job.end().outcome == "stopped"
    job.assert_nothing_left()


def test_by_force(jobs: Bench) -> None:
    job = jobs.start("stubborn", grace_s=600)
    job.wait_up(2)
    assert request_stop(job.folder, force=True)
    assert job.end().outcome == "stopped"
    job.assert_nothing_left()


def test_before_the_job_is_there(jobs: Bench) -> None:
    job = jobs.start()
    assert request_stop(job.folder)
    assert job.end().outcome == "stopped"
    job.assert_nothing_left()


def test_without_a_hub(jobs: Bench) -> None:
    job = jobs.start()
    job.wait_up(2)
    job.kill(job.hub())
    assert request_stop(job.folder)
    until(job.folder.exit_path.exists, "the keeper has seen the end")
    ensure_hub(job.folder)
    assert job.end().outcome == "stopped"
    job.assert_nothing_left()


@pytest.mark.torch
def test_the_real_torchrun(jobs: Bench) -> None:
    job = jobs.start("orphans", real_torchrun=True)
    job.wait_up(2)
    assert request_stop(job.folder)
    assert job.end().outcome == "stopped"
    job.assert_nothing_left()


@pytest.mark.parametrize("signum", [signal.SIGHUP, signal.SIGINT])
def test_hangup_and_interrupt_are_no_orders(jobs: Bench, signum: signal.Signals) -> None:
    job = jobs.start()
    job.wait_up(2)
    job.kill(job.hub(), signum)
    job.kill(job.keeper(), signum)
    job.go()
    assert job.end().outcome == "finished"
    job.assert_nothing_left()
