"""From what the user asked for to a running hub: the agent's command line, the run folder, the hub's process."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from morimon.runs.folder import JobKind, RunFolder


class LaunchError(Exception):
    """The run cannot be started; the message is a sentence that says what to do."""


@dataclass(frozen=True)
class LaunchSpec:
    """A run as it was asked for.

    `argv` is what follows torchrun's options: the built-in job's arguments, a script (or `-m module`) with its own, or
    a whole command. `python` is the interpreter of a script: by default the `python` on PATH; the built-in job always
    runs in ours. `env` is the job's environment, by default this process's.
    """

    kind: JobKind
    argv: tuple[str, ...] = ()
    nproc: int | None = None
    torchrun_options: tuple[str, ...] = ()
    python: str | None = None
    cwd: Path = field(default_factory=Path.cwd)
    env: dict[str, str] | None = None


def start(spec: LaunchSpec, runs_dir: Path) -> RunFolder:
    """Start a hub, and by it the job; returns as soon as the record has its first line.

    The hub and the job are processes of their own: they outlive the caller. Raises LaunchError.
    """
    raise NotImplementedError
