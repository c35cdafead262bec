"""The keeper alone, as the hub starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from morimon import keeper
from morimon.hub.terminal import JobTerminal
from morimon.runs.folder import RunFolder
from morimon.runs.identity import ProcessIdentity
from tests.support.jobs import until

pytestmark = pytest.mark.e2e

SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPER


def start(
    folder: Path, *arguments: str, code: str | None = None, terminal: JobTerminal | None = None
) -> subprocess.Popen[bytes]:
    script = ["-c", code] if code else [keeper.__file__]
    sides = (terminal.ours, terminal.theirs) if terminal else ()
    option = [f"--terminal={sides[0]},{sides[1]}"] if sides else []
    run = subprocess.Popen(
        [sys.executable, "-I", "-S", *script, str(folder), *option, *arguments],
        stderr=subprocess.PIPE,
        pass_fds=sides,
    )
    if terminal:
        terminal.handed_over()
    return run


def wait_up(folder: Path) -> None:
    until(
        lambda: (folder / "console.log").exists() and "up" in (folder / "console.log").read_text(), "it is up"
    )


def test_it_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    run = start(tmp_path, "--", "sh", "-c", "echo $MORIMON_RUN; exit 3")
    assert run.communicate()[1] == b""
    seen = RunFolder(tmp_path).exit()
    assert seen
    assert (seen.returncode, seen.signal, seen.stops, seen.left) == (3, None, 0, ())
    assert (tmp_path / "console.log").read_text() == f"{tmp_path.name}\n"
    owners = RunFolder(tmp_path).owners()
    assert owners
    assert owners.keeper.pid == run.pid
    assert not owners.agent.is_alive()
    assert {path.name for path in tmp_path.iterdir()} == {"console.log", "exit.json", "keeper.json"}


def test_a_command_that_is_over_at_once(tmp_path: Path) -> None:
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        assert start(folder, "--", "false").communicate()[1] == b""
        seen = RunFolder(folder).exit()
        assert seen
        assert seen.returncode == 1


@pytest.mark.parametrize(("number", "name"), [(11, "SIGSEGV"), (40, "signal 40")])
def test_the_signal_that_ended_the_command(tmp_path: Path, number: int, name: str) -> None:
    start(tmp_path, "--", "sh", "-c", f"kill -{number} $$").communicate()
    seen = RunFolder(tmp_path).exit()
    assert seen
    assert (seen.returncode, seen.signal) == (-number, name)


def test_output_that_finds_no_room_is_counted_and_the_job_goes_on(tmp_path: Path) -> None:
    (tmp_path / "console.log").symlink_to("/dev/full")
    run = start(tmp_path, "--", "sh", "-c", "head -c 300000 /dev/zero; exit 4", terminal=JobTerminal())
    run.communicate()
    seen = RunFolder(tmp_path).exit()
    assert seen
    assert (seen.returncode, seen.console_lost_bytes) == (4, 300_000)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    start(tmp_path, "--", "/no/such/program").communicate()
    seen = RunFolder(tmp_path).exit()
    assert seen
    assert (seen.returncode, seen.error) == (127, "No such file or directory: /no/such/program")


@pytest.mark.parametrize("terminal", [True, False])
def test_the_first_stop_asks_and_the_second_kills(tmp_path: Path, terminal: bool) -> None:
    run = start(tmp_path, "--", sys.executable, "-c", STUBBORN, terminal=JobTerminal() if terminal else None)
    wait_up(tmp_path)
    owners = RunFolder(tmp_path).owners()
    assert owners

    def killed() -> bool:
        run.terminate()
        return not owners.agent.is_alive()

    until(killed, "the agent is gone")
    run.communicate()
    seen = RunFolder(tmp_path).exit()
    assert seen
    assert (seen.returncode, seen.signal) == (-signal.SIGKILL, "SIGKILL")
    assert seen.stops >= 2


def test_one_stop_is_enough_in_the_end(tmp_path: Path) -> None:
    code = (
        f"import runpy, sys; keeper = runpy.run_path({keeper.__file__!r})\n"
        "keeper['Keeper'].end_agent.__globals__['STOP_TIMEOUT_S'] = 1\n"
        "keeper['main']()\n"
    )
    run = start(tmp_path, "--", sys.executable, "-c", STUBBORN, code=code)
    wait_up(tmp_path)
    run.terminate()
    run.communicate()
    seen = RunFolder(tmp_path).exit()
    assert seen
    assert seen.signal == "SIGKILL"


def test_quit_kills_at_once(tmp_path: Path) -> None:
    run = start(tmp_path, "--", sys.executable, "-c", STUBBORN)
    wait_up(tmp_path)
    run.send_signal(signal.SIGQUIT)
    run.communicate()
    seen = RunFolder(tmp_path).exit()
    assert seen
    assert (seen.returncode, seen.stops) == (-signal.SIGKILL, 1)


def test_the_command_does_not_inherit_what_the_keeper_ignores(tmp_path: Path) -> None:
    run = start(tmp_path, "--", "sh", "-c", "grep SigIgn /proc/self/status")
    run.communicate()
    ignored = int((tmp_path / "console.log").read_text().split()[1], 16)
    assert not ignored & (1 << (signal.SIGHUP - 1) | 1 << (signal.SIGTERM - 1) | 1 << (signal.SIGQUIT - 1))


def test_orphans_are_named_and_ended_and_the_dead_are_buried(tmp_path: Path) -> None:
    code = "for i in 1 2 3; do (setsid true &); done; (setsid sleep 600 &) ; echo up; read x < go"
    os.mkfifo(tmp_path / "go")
    run = subprocess.Popen(
        [sys.executable, "-I", keeper.__file__, str(tmp_path), "--", "sh", "-c", code], cwd=tmp_path
    )
    wait_up(tmp_path)
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    until(lambda: len(children.read_text().split()) == 2, "only the agent and the sleeping orphan are left")
    orphans = [ProcessIdentity.of(int(pid)) for pid in children.read_text().split()]
    (tmp_path / "go").write_text("go\n")
    run.wait()
    seen = RunFolder(tmp_path).exit()
    assert seen
    assert [(left.name, left.signal) for left in seen.left] == [("sleep", "SIGTERM")]
    assert not any(orphan and orphan.is_alive() for orphan in orphans)
