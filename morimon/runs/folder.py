"""A run's folder: its name, its files and what the small ones hold.

<runs_dir>/<run_id>/            mode 0700
    launch.json                 what was started (`Launch`)
    events.jsonl                the record: one event a line
    hub.lock  hub.log           held by the living hub; what it had to say beside the record
    keeper.json                 who owns the job (`Owners`), written by the keeper
    exit.json                   how the job ended (`Exit`), written by the keeper, by rename
    console.log                 the agent's own output, or a whole command's
    output/                     torchrun's --log-dir
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import msgspec
import platformdirs

from morimon.runs.identity import ProcessIdentity
from morimon.runs.sockets import socket_path

JobKind: TypeAlias = Literal["builtin", "script", "command"]
T = TypeVar("T")


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What the hub of a run starts, and where its probes find it."""

    kind: JobKind
    command: tuple[str, ...]
    """The agent's whole command line, program first."""
    cwd: str
    socket: str
    nproc: int | None = None
    terminal: bool = False
    """Whether the command's output goes through the keeper's terminal to console.log."""
    nodes: str = "1"
    """torchrun's --nnodes."""
    follows: ProcessIdentity | None = None
    """The agent of a job that somebody else started; nothing is started then."""


class Owners(msgspec.Struct, frozen=True):
    """Who owns the job."""

    keeper: ProcessIdentity
    agent: ProcessIdentity


class Left(msgspec.Struct, frozen=True):
    """A process that the keeper had to end after the agent was gone."""

    pid: int
    name: str
    signal: str
    """Name of the last signal that it was sent."""


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How the job ended, as its keeper saw it."""

    returncode: int
    """The agent's exit code, negative for a signal."""
    signal: str | None = None
    stops: int = 0
    """How often the keeper was asked to stop the job."""
    left: tuple[Left, ...] = ()
    """The first few of those that had to be ended after the agent was gone."""
    left_count: int = 0
    alive: int = 0
    """Processes that outlived SIGKILL (a driver holds them)."""
    console_lost_bytes: int = 0
    """Output that found no room on the disk."""
    error: str | None = None
    """Why the command could not be started."""


@dataclass(frozen=True)
class RunFolder:
    """One run's folder; its files may be missing."""

    path: Path

    @property
    def run_id(self) -> str:
        """The run's name: the folder's."""
        return self.path.name

    @property
    def launch_path(self) -> Path:
        """What was started."""
        return self.path / "launch.json"

    @property
    def events_path(self) -> Path:
        """The record."""
        return self.path / "events.jsonl"

    @property
    def lock_path(self) -> Path:
        """The lock that the living hub holds."""
        return self.path / "hub.lock"

    @property
    def hub_log_path(self) -> Path:
        """Standard output and error of hub and keeper."""
        return self.path / "hub.log"

    @property
    def keeper_path(self) -> Path:
        """Who owns the job."""
        return self.path / "keeper.json"

    @property
    def exit_path(self) -> Path:
        """How the job ended."""
        return self.path / "exit.json"

    @property
    def console_path(self) -> Path:
        """The agent's own output, or a whole command's."""
        return self.path / "console.log"

    @property
    def output_path(self) -> Path:
        """The --log-dir of torchrun."""
        return self.path / "output"

    def launch(self) -> Launch | None:
        """What was started; None where the file is missing or damaged."""
        return _read(self.launch_path, Launch)

    def owners(self) -> Owners | None:
        """Who owns the job; None before the keeper is up."""
        return _read(self.keeper_path, Owners)

    def exit(self) -> Exit | None:
        """How the job ended; None while it runs, and for ever if its keeper was killed."""
        return _read(self.exit_path, Exit)


def default_runs_dir() -> Path:
    """$MORIMON_RUNS_DIR, or this user's state folder."""
    named = os.environ.get("MORIMON_RUNS_DIR")
    return Path(named).absolute() if named else platformdirs.user_state_path("morimon") / "runs"


def create_run(runs_dir: Path, sockets: Path) -> RunFolder:
    """A new folder with a new id: exclusive mkdir, and no socket of that name in the folder `sockets`, where runs of
    other runs folders have theirs. OSError where it can't be made.
    """
    runs_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        path = runs_dir.absolute() / secrets.token_hex(3)
        if socket_path(sockets, path.name).exists():
            continue
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return RunFolder(path)


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        return None
