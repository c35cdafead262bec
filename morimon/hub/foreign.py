"""Jobs that somebody else started: torchrun, mpirun or the like, typed into a shell; found, followed, left alone.

Such a job has no keeper and no probes; its processes are sampled and its output is read where it goes to files.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil

from morimon.hub.job import JobLook
from morimon.hub.launch import LaunchError, begin, make_folder
from morimon.hub.marked import send
from morimon.hub.processes import place_of
from morimon.hub.terminal import JobTerminal
from morimon.runs.folder import Exit, Launch, Owners, RunFolder
from morimon.runs.identity import ProcessIdentity
from morimon.runs.listing import list_runs


class ForeignJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job of this user that morimon did not start."""

    pid: int
    """Of the agent: the process that started the ranks."""
    command: tuple[str, ...]
    cwd: str
    started_unix_ns: int
    ranks: int


class ForeignHold:
    """A foreign job as its hub holds it: by the agent's pid alone (the counterpart of `hub.job.Job`)."""

    def __init__(self, agent: ProcessIdentity) -> None:
        self._stops = 0
        self.owners: Owners | None = Owners(keeper=agent, agent=agent)
        self.exit: Exit | None = None
        """Stays None: whoever started the agent takes its exit code."""
        self.terminal: JobTerminal | None = None
        """Stays None: its output is where it was before."""

    def start(self) -> None:
        """Nothing: the job runs."""

    def look(self) -> JobLook:
        """Whether the agent lives."""
        assert self.owners
        return "kept" if self.owners.agent.is_alive() else "over"

    def stop(self, *, force: bool = False) -> None:
        """Ask the agent to end; by `force`, or when asked again, kill it and all below it."""
        assert self.owners
        self._stops += 1
        agent = self.owners.agent
        if self._stops == 1 and not force:
            send(agent, signal.SIGTERM)
            return
        below = _descendants(agent.pid) if agent.is_alive() else []
        for process in [agent, *below]:
            send(process, signal.SIGKILL)


def foreign_jobs() -> list[ForeignJob]:
    """This user's jobs of several ranks that no morimon started, oldest first."""
    ranks: dict[psutil.Process, set[int]] = {}
    for process in psutil.process_iter():
        try:
            if process.uids().real != os.getuid():
                continue
            found = _agent_above(process)
            if found and "MORIMON_RUN" not in found[0].environ():
                ranks.setdefault(found[0], set()).add(found[1])
        except psutil.Error:
            continue
    jobs = [job for agent, numbers in ranks.items() for job in _describe(agent, len(numbers))]
    return sorted(jobs, key=lambda job: job.started_unix_ns)


def follow_foreign(pid: int, runs_dir: Path) -> RunFolder:
    """Start a hub that follows the job of process `pid`, its agent or one of its ranks; or find the one that does.

    LaunchError, a sentence, where there is no such job.
    """
    try:
        process = psutil.Process(pid)
        above = _agent_above(process)
        agent = above[0] if above else process
        if above is None and not any(_agent_above(child) for child in process.children(recursive=True)):
            raise LaunchError(
                f"Process {pid} ({process.name()}) is no rank of a job and has started none: nothing below it has RANK "
                "or the like in its environment."
            )
        command, cwd = tuple(agent.cmdline()), agent.cwd()
    except psutil.NoSuchProcess:
        raise LaunchError(f"There is no process {pid}.") from None
    except psutil.AccessDenied:
        raise LaunchError(
            f"Process {pid} belongs to somebody else; only one's own jobs can be followed."
        ) from None
    identity = ProcessIdentity.of(agent.pid)
    for run in list_runs(runs_dir):
        launch = run.folder.launch()
        if launch and identity and launch.follows == identity and run.state == "running":
            return run.folder
    if identity is None:
        raise LaunchError(f"The job of process {pid} has just ended.")
    folder, socket = make_folder(runs_dir)
    begin(
        folder, Launch(kind="command", command=command, cwd=cwd, socket=socket, follows=identity), os.environ
    )
    return folder


def _agent_above(process: psutil.Process) -> tuple[psutil.Process, int] | None:
    """The process that started a rank, and the rank, if `process` is one or hangs below one; None where it is none."""
    child, environ = process, process.environ()
    while (parent := child.parent()) is not None:
        try:
            parents = parent.environ()
        except psutil.AccessDenied:  # beyond what is ours
            return None
        if place := place_of(environ, parents):
            return parent, place.rank
        child, environ = parent, parents
    return None


def _describe(agent: psutil.Process, ranks: int) -> Iterator[ForeignJob]:
    try:
        yield ForeignJob(
            pid=agent.pid,
            command=tuple(agent.cmdline()),
            cwd=agent.cwd(),
            started_unix_ns=round(agent.create_time() * 1e9),
            ranks=ranks,
        )
    except psutil.Error:
        return


def _descendants(pid: int) -> list[ProcessIdentity]:
    try:
        below = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
    return [one for process in below if (one := ProcessIdentity.of(process.pid))]
