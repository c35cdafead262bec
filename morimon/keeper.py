"""The job's own small init: owns the agent, outlives the hub, and leaves nothing behind.

    python -I keeper.py RUN_FOLDER [--terminal=OURS,THEIRS] -- COMMAND…

Standard library alone and nothing of ours, so that nothing else we ship can break a running job. Every orphan below
becomes a child of this process (PR_SET_CHILD_SUBREAPER), whatever session it made: "all descendants" is exact.

The command's standard input is /dev/null; its output goes to RUN_FOLDER/console.log, directly or, with --terminal,
through the terminal whose two sides are these file descriptors: on one programs write line by line. keeper.json appears when the command runs, exit.json
when nothing is left of it; morimon.runs.folder describes both.

SIGTERM asks the agent to end. A second one, SIGQUIT, or the time-out kills every descendant. SIGINT and SIGHUP are
the viewers' affair.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType

PR_SET_CHILD_SUBREAPER = 36
STOP_TIMEOUT_S = 40
"""More than the 30 s that torchrun grants its ranks between SIGTERM and SIGKILL."""
LEFT_GRACE_S = 5.0
RESERVED_BYTES = 8192
LEFT_NAMED = 50


def stat_fields(pid: int) -> list[str]:
    """/proc/PID/stat after the name: state, parent, …, the start time at index 19; empty where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()


def descendants() -> list[int]:
    """Every live process below this one."""
    children: dict[int, list[int]] = {}
    for pid in [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]:
        if (fields := stat_fields(pid)) and fields[0] not in "ZX":
            children.setdefault(int(fields[1]), []).append(pid)
    found = children.get(os.getpid(), [])
    for pid in found:  # grows while it is walked
        found += children.get(pid, [])
    return found


def reap() -> bool:
    """Bury dead children; whether any child, dead or alive, was left (without one there is no descendant)."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def send(pid: int, signum: int) -> None:
    """Signal a process that may be gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signum)


class Keeper:
    """One job, from its start to the last of its processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.agent: int | None = None
        self.stops = 0
        self.console_lost_bytes = 0

    def on_stop(self, signum: int, _frame: FrameType | None) -> None:
        """First the agent, then everybody."""
        self.stops += 1
        if self.stops == 1 and signum == signal.SIGTERM:
            self.end_agent()
        else:
            for pid in descendants():
                send(pid, signal.SIGKILL)

    def end_agent(self) -> None:
        """Ask the agent to end, if it is there, and set the clock."""
        if self.agent:
            send(self.agent, signal.SIGTERM)
            signal.alarm(STOP_TIMEOUT_S)

    def start(self, command: list[str], terminal: list[int]) -> None:
        """Start the command; OSError where that is impossible."""
        log = os.open(self.folder / "console.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        output = log
        if terminal:
            ours, output = terminal
            self.copier = threading.Thread(target=self.copy, args=(ours, log), daemon=True)
            self.copier.start()
        dumb = {"TERM": "dumb"} if terminal else {}
        self.started = subprocess.Popen(  # kept: a Popen that is forgotten buries its process
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "MORIMON_RUN": self.folder.name, **dumb},
            start_new_session=True,
        )
        os.close(output)
        self.agent = self.started.pid
        if self.stops:
            self.end_agent()

    def copy(self, terminal: int, log: int) -> None:
        """Drain the terminal, whatever becomes of the disk: a full one must not stop the job."""
        while True:
            try:
                data = os.read(terminal, 65536)
            except OSError:  # nobody holds the other side any more
                return
            try:
                while data:
                    data = data[os.write(log, data) :]
            except OSError:
                self.console_lost_bytes += len(data)

    def wait(self) -> int:
        """Bury orphans until the agent ends; its exit code, negative for a signal."""
        while True:
            pid, status = os.wait()
            if pid == self.agent:
                self.agent = None
                return os.waitstatus_to_exitcode(status)

    def end_what_is_left(self) -> dict[int, dict[str, object]]:
        """End the descendants that outlived the agent, patiently unless that was asked for twice; who they were, by pid."""
        left: dict[int, dict[str, object]] = {}
        for signum in (signal.SIGTERM, signal.SIGKILL)[self.stops > 1 :]:
            deadline = time.monotonic() + LEFT_GRACE_S
            while reap() and time.monotonic() < deadline:
                for pid in descendants():
                    known = left.setdefault(pid, {"pid": pid, "name": name_of(pid), "signal": None})
                    if known["signal"] != signum.name:
                        known["signal"] = signum.name
                        send(pid, signum)
                time.sleep(0.01)
        return left

    def reserve(self, name: str) -> Path:
        """A draft of the file `name`, longer than that will ever be: the disk may be full when it is needed."""
        draft = self.folder / f"{name}.tmp"
        draft.write_bytes(b" " * RESERVED_BYTES)
        draft.chmod(0o600)
        return draft

    def write(self, name: str, content: Mapping[str, object]) -> None:
        """Fill the draft of `name` in and put it in its place."""
        draft = self.folder / f"{name}.tmp"
        text = json.dumps(content).encode()
        with draft.open("r+b") as file:
            file.write(text)
            file.truncate()
        draft.rename(self.folder / name)

    def run(self, command: list[str], terminal: list[int]) -> None:
        """The job's whole life."""
        for signum in (signal.SIGTERM, signal.SIGQUIT, signal.SIGALRM):
            signal.signal(signum, self.on_stop)
        for signum in (signal.SIGINT, signal.SIGHUP):  # not SIG_IGN, which the command would inherit
            signal.signal(signum, lambda *_: None)
        for name in ("keeper.json", "exit.json"):
            self.reserve(name)
        try:
            self.start(command, terminal)
        except OSError as error:
            self.write("exit.json", {"returncode": 127, "error": f"{error.strerror}: {command[0]}"})
            return
        assert self.agent
        self.write("keeper.json", {"keeper": identity(os.getpid()), "agent": identity(self.agent)})
        code = self.wait()
        left = self.end_what_is_left()
        if terminal:
            self.copier.join(1.0)
        ended = {
            "returncode": code,
            "signal": signal_name(-code) if code < 0 else None,
            "stops": self.stops,
            "left": list(left.values())[:LEFT_NAMED],
            "left_count": len(left),
            "alive": len(descendants()),
            "console_lost_bytes": self.console_lost_bytes,
        }
        self.write("exit.json", ended)


def identity(pid: int) -> dict[str, int]:
    """A pid with its start time (a zombie still has one)."""
    return {"pid": pid, "start": int(stat_fields(pid)[19])}


def signal_name(number: int) -> str:
    """SIGKILL for 9; most real-time signals have a number alone."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def name_of(pid: int) -> str:
    """What the kernel calls a process."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "?"


def main() -> None:
    """Read the command line, become the subreaper, run the job."""
    split = sys.argv.index("--")
    with suppress(PermissionError):  # a session leader already
        os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    terminal = [int(fd) for option in sys.argv[2:split] for fd in option.partition("=")[2].split(",")]
    Keeper(Path(sys.argv[1])).run(sys.argv[split + 1 :], terminal)


if __name__ == "__main__":
    main()
