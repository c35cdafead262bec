"""Which rank a process is, by what launchers put into its environment; and the end of processes that are not ours."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys

import psutil
import pytest

from morimon.hub.exits import ExitStatus, ExitWatch, open_pidfd, status_of_buried, status_of_zombie
from morimon.hub.marked import marked, send
from morimon.hub.processes import Place, Processes, place_of
from morimon.runs.identity import ProcessIdentity

TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "x",
    "RANK": "9",
    "LOCAL_RANK": "1",
    "GROUP_RANK": "1",
    "TORCHELASTIC_RESTART_COUNT": "2",
}


@pytest.mark.parametrize(
    ("environ", "agent", "place"),
    [
        (TORCHRUN, {}, Place(9, 1, 1, 2)),
        (TORCHRUN, {"RANK": "9", "WORLD_SIZE": "2"}, Place(9, 1, 1, 2)),
        ({"RANK": "3"}, {}, Place(3, 3, 0, 0)),
        ({"RANK": "3"}, {"RANK": "3"}, None),
        ({"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, {}, Place(5, 1, 0, 0)),
        ({"SLURM_PROCID": "0"}, {"SLURM_PROCID": "0"}, None),
        ({"SLURM_PROCID": "4", "SLURM_LOCALID": "0", "SLURM_NODEID": "1"}, {}, Place(4, 0, 1, 0)),
        ({"RANK": "many"}, {}, None),
        ({"RANK": "²"}, {}, None),
        ({}, {}, None),
    ],
)
def test_place(environ: dict[str, str], agent: dict[str, str], place: Place | None) -> None:
    assert place_of(environ, agent) == place


FAMILY = """
import os, subprocess, sys
child = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()']); print(flush=True); input()"
ranks = [
    subprocess.Popen([sys.executable, "-c", child], env={**os.environ, "RANK": str(rank)}, stdout=subprocess.PIPE)
    for rank in range(2)
]
for rank in ranks:
    rank.stdout.readline()
print("up", flush=True)
input()
"""


def test_the_topmost_process_is_the_rank_and_all_below_it_counts() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as agent:
        assert agent.stdout
        assert agent.stdin
        assert agent.stdout.readline() == b"up\n"
        processes = Processes(agent.pid, agent.pid)
        found = processes.find(1)
        assert sorted(one.rank for one in found) == [0, 1]
        assert processes.find(2) == []
        samples = processes.sample(3)
        assert sorted(one.rank for one in samples) == [0, 1]
        assert {one.threads for one in samples} == {2}, "one thread each of the rank and its child"
        assert all(one.rss_bytes > 1_000_000 for one in samples)
        assert processes.claim(found[0].pid, Place(7, 7, 0, 0), 4) is None
        assert processes.claim(os.getpid(), Place(7, 7, 0, 0), 4) is None
        agent.stdin.close()


def test_a_claim_looks_at_what_is_above_the_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as agent:
        assert agent.stdout
        assert agent.stdin
        assert agent.stdout.readline() == b"up\n"
        processes = Processes(agent.pid, agent.pid)
        monkeypatch.setattr("psutil.pids", lambda: pytest.fail("all of /proc was listed"))
        child = psutil.Process(agent.pid).children()[0].children()[0]
        claimed = processes.claim(child.pid, Place(5, 5, 0, 0), 1)
        assert claimed
        assert (claimed.rank, claimed.pid) == (5, child.pid)
        assert processes.claim(child.pid, Place(5, 5, 0, 0), 2) is None
        assert processes.claim(os.getpid(), Place(7, 7, 0, 0), 3) is None
        monkeypatch.undo()
        assert sorted(one.rank for one in processes.find(4)) == [0, 1]
        assert {one.rank for one in processes.sample(5)} == {0, 1, 5}
        agent.stdin.close()


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import sys; input(); sys.exit(7)", ExitStatus(exitcode=7)),
        ("input()", ExitStatus(exitcode=0)),
        ("import os; input(); os.kill(os.getpid(), 9)", ExitStatus(signal=signal.SIGKILL)),
    ],
)
@pytest.mark.parametrize("pidfd", ["python's", "the kernel's", "none"])
async def test_the_end_of_a_process_is_told_with_its_status(
    monkeypatch: pytest.MonkeyPatch, code: str, status: ExitStatus, pidfd: str
) -> None:
    if pidfd == "the kernel's":
        monkeypatch.delattr("os.pidfd_open")
    elif pidfd == "none":

        def refuse(_: int) -> int:
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr("os.pidfd_open", refuse)
    told: asyncio.Queue[tuple[ProcessIdentity, ExitStatus]] = asyncio.Queue()
    watch = ExitWatch(lambda process, how: told.put_nowait((process, how)))
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    process = ProcessIdentity.of(child.pid)
    assert process
    assert child.stdin
    watch.add(process)
    watch.add(process)
    watch.poll()
    assert told.empty()
    child.stdin.write(b"\n")
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    watch.poll()
    assert await asyncio.wait_for(told.get(), 10) == (process, status)
    child.wait()
    watch.close()
    assert told.empty()


def test_a_python_without_pidfds_asks_the_kernel_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.pidfd_open")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    fd = open_pidfd(child.pid)
    assert select.select([fd], [], [], 0)[0] == []
    child.kill()
    assert select.select([fd], [], [], 10)[0] == [fd]
    os.close(fd)
    child.communicate()
    with pytest.raises(ProcessLookupError):
        open_pidfd(child.pid)


def test_the_status_of_a_buried_process() -> None:
    child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(9)"])
    fd = os.pidfd_open(child.pid)
    process = ProcessIdentity.of(child.pid)
    child.wait()
    assert process
    assert status_of_zombie(process) is None
    status = status_of_buried(fd)
    os.close(fd)
    if status is None:
        pytest.skip("this kernel is older than 6.15")
    assert status == ExitStatus(exitcode=9)


def test_marks_find_the_processes_of_one_run_alone() -> None:
    env = {**os.environ, "MORIMON_RUN": "abcdef", "MORIMON_SOCKET": "/here/abcdef.sock"}
    child = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"], env=env, stdin=-1, stdout=-1
    )
    assert child.stdout
    child.stdout.readline()
    assert [one.pid for one in marked("abcdef", "/here/abcdef.sock")] == [child.pid]
    assert marked("abcdef", "/elsewhere/abcdef.sock") == []
    assert marked("abcde", "/here/abcdef.sock") == []
    process = ProcessIdentity.of(child.pid)
    assert process
    assert not send(ProcessIdentity(process.pid, process.start - 1), signal.SIGKILL), "somebody else's pid"
    assert child.poll() is None
    assert send(process, signal.SIGKILL)
    child.communicate()
    assert not send(process, signal.SIGKILL)
