"""Why a run failed: the first cause, not what followed from it."""

from __future__ import annotations

import pytest

from morimon.logs import Causes, ended
from morimon.model.events import Failure
from tests.support.parsing import CASES, lines_of, parse, root_of

AGENT = """\
E1201 11:19:45.895000 10 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: {code}) local_rank: {rank} (pid: 17) of binary: /usr/bin/python
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:{blank}
============================================================
job FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-12-01_11:19:45
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 16)
  error_file: <N/A>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-12-01_11:19:45
  host      : localhost
  rank      : {rank} (local_rank: {rank})
  exitcode  : {code} (pid: 17)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""


def agent(rank: int, code: int) -> str:
    return AGENT.format(rank=rank, code=code, blank=" ")


def test_case_32_root_cause_first() -> None:
    root = root_of((CASES / "32_root_cause_first.log").read_bytes())
    assert (root.rank, root.cause) == (6, "RuntimeError: shmem heap too small: need 4294967296")
    assert root.exitcode == 1
    assert root.file == "console.log"
    data = (CASES / "32_root_cause_first.log").read_bytes()
    assert root.offset is not None
    assert data[root.offset :].startswith(b"[rank6]: RuntimeError")


def test_case_33_spawn_inside_torchrun() -> None:
    root = root_of((CASES / "33_spawn_inside_torchrun.log").read_bytes() + agent(0, 1).encode())
    assert (root.rank, root.cause) == (5, "RuntimeError: boom")


def test_a_spawned_process_of_another_node_has_no_known_rank() -> None:
    text = "[rank3]: -- Process 5 terminated with the following error:\n[rank3]: RuntimeError: boom\n"
    assert root_of(text) == Failure(rank=None, cause="RuntimeError: boom", file="console.log", offset=59)


def test_a_spawned_process_that_a_signal_ended() -> None:
    root = root_of(
        "torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with signal SIGSEGV\n"
    )
    assert (root.rank, root.signal) == (2, "SIGSEGV")


def test_a_killed_rank_goes_before_those_that_lost_it() -> None:
    causes = Causes()
    for rank in (0, 1, 3):
        parse(
            "Traceback (most recent call last):\n  File x\n"
            "RuntimeError: [gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:4\n",
            rank=rank,
            causes=causes,
        )
        causes.add(ended(rank, 1))
    causes.add(ended(2, -9))
    root = causes.root()
    assert root is not None
    assert (root.rank, root.signal, root.exitcode) == (2, "SIGKILL", None)
    assert "SIGKILL" in root.cause


def test_an_abort_because_of_a_lost_peer_is_no_cause() -> None:
    causes = Causes()
    parse("  what():  Connection reset by peer\n", rank=0, causes=causes)
    causes.add(ended(0, -6))
    causes.add(ended(1, 3))
    root = causes.root()
    assert root is not None
    assert (root.rank, root.exitcode) == (1, 3)
    own = causes.of(0)
    assert own is not None
    assert (own.cause, own.signal) == ("Connection reset by peer", "SIGABRT")


def test_agents_report_alone() -> None:
    root = root_of(agent(4, -9))
    assert (root.rank, root.signal) == (4, "SIGKILL")
    assert root.cause.startswith("Rank 4 was ended by SIGKILL")


def test_ranks_own_error_completes_agents_report() -> None:
    causes = Causes()
    parse(agent(4, 1), causes=causes)
    parse("KeyError: 'hidden'\n", rank=4, causes=causes)
    root = causes.root()
    assert root is not None
    assert (root.rank, root.cause, root.exitcode) == (4, "KeyError: 'hidden'", 1)


def test_ranks_ended_by_the_agent_are_no_cause() -> None:
    causes = Causes()
    causes.add(ended(0, -15))
    causes.add(ended(1, 7))
    root = causes.root()
    assert root is not None
    assert (root.rank, root.exitcode) == (1, 7)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Traceback (most recent call last):\n  File x\n    y()\nmine.Boom\n", "mine.Boom"),
        ("Traceback (most recent call last):\n  File x\nAssertionError\n", "AssertionError"),
        ("Traceback (most recent call last):\n  File x\nSystemExit: 4\n", "SystemExit: 4"),
        (
            ("Traceback (most recent call last):\n  File x\nKeyError: 1\n\nDuring handling of the above exception, "
            "another exception occurred:\n\nTraceback (most recent call last):\n  File x\nValueError: 2\n"),
            "KeyError: 1",
        ),
        ("train.py: error: unrecognized arguments: --bench\n", "unrecognized arguments: --bench"),
        ("terminate called after throwing an instance of 'E'\n  what():  heap too small\n", "heap too small"),
        ("python: a.cpp:12: void f(): Assertion `x > 0' failed.\n", "Assertion `x > 0' failed"),
        ("rank 3 expected token num 26452 got 26451\n", "rank 3 expected token num 26452 got 26451"),
    ],
)  # fmt: skip
def test_first_error(text: str, cause: str) -> None:
    assert root_of(text).cause == cause


@pytest.mark.parametrize(
    "text",
    [
        "ready: yes\nstep: 3\n",
        "UserWarning: old\nFutureWarning: older\n",
        "Exception ignored in: <function f>\nTraceback (most recent call last):\n  File x\nOSError: closed\n",
        "errors: 0\nrank:  0 error times:  0 appear round:  set()\n",
    ],
)
def test_harmless_lines_are_no_cause(text: str) -> None:
    causes = Causes()
    parse(text, causes=causes)
    assert causes.root() is None


def test_a_traceback_is_all_error() -> None:
    text = "before\nTraceback (most recent call last):\n  File x\n    y()\nValueError: z\nafter\n"
    assert lines_of(parse(text, rank=1)) == [(1, "info", 1), (1, "error", 4), (1, "info", 1)]


def test_tracebacks_of_two_ranks_interleaved() -> None:
    text = (
        "[rank0]: Traceback (most recent call last):\n[rank1]: Traceback (most recent call last):\n"
        "[rank0]:   File x\n[rank1]:   File y\n[rank1]: a.Odd\n[rank0]: b.Even\n"
    )
    causes = Causes()
    parse(text, causes=causes)
    assert [getattr(causes.of(rank), "cause", None) for rank in (0, 1, None)] == ["b.Even", "a.Odd", None]
