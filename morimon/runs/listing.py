"""Which runs there are, what became of them, and how to make room."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from morimon.runs.folder import RunFolder

RunState: TypeAlias = Literal["running", "ended", "crashed"]


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `morimon runs`."""

    id: str
    path: Path
    host: str
    command: tuple[str, ...]
    started_unix_ns: int
    state: RunState
    """running: a hub or a keeper of this boot lives; ended: the job's end is known; crashed: neither."""
    ranks: int | None
    """Ranks that were asked for on this node; None where a whole command decides for itself."""
    size_bytes: int

    @property
    def folder(self) -> RunFolder:
        """The run's folder."""
        return RunFolder(self.path)


class UnknownRun(Exception):
    """No run, or more than one, has this name; the message is a sentence."""


def list_runs(runs_dir: Path) -> list[RunInfo]:
    """Every run of `runs_dir`, newest first; folders that hold no record are left out."""
    raise NotImplementedError


def find_run(runs_dir: Path, name: str) -> RunFolder:
    """The run that an id, the beginning of one, or a path (of the folder or its record) means; UnknownRun else."""
    raise NotImplementedError


def prune(
    runs_dir: Path, *, keep: int = 0, older_than_s: float = 0.0, max_bytes: int | None = None
) -> list[RunInfo]:
    """Remove runs that do not run: all but the newest `keep`, and of those only what is older than `older_than_s`.

    With `max_bytes` the oldest go until the rest takes no more than that. Running ones are never touched. Returns
    what was removed.
    """
    raise NotImplementedError
