"""Which runs there are, what became of them, and how to make room."""

from __future__ import annotations

import os
import shutil
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from morimon.model.codec import decode
from morimon.model.events import Outcome, RunEnded, RunHeader
from morimon.runs.folder import RunFolder
from morimon.runs.identity import boot_id
from morimon.runs.lock import is_held

RunState: TypeAlias = Outcome | Literal["running", "ended", "crashed"]

_TAIL_BYTES = 1 << 16
"""The record's last line is well within this."""


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `morimon runs`."""

    id: str
    path: Path
    host: str
    command: tuple[str, ...]
    started_unix_ns: int
    state: RunState
    """running: a hub or a keeper lives; an outcome: what the record says of the job's end; ended: the job is over, but no
    hub has judged it yet; crashed: nobody lives that could.

    A run of another host that shares this disk cannot be looked at: it is running until its record says that it ended.
    """
    ranks: int | None
    """Ranks that were asked for on this node; None where a whole command decides for itself."""
    size_bytes: int

    @property
    def folder(self) -> RunFolder:
        """The run's folder."""
        return RunFolder(self.path)


class RunsError(Exception):
    """Runs cannot be looked at; the message is a sentence."""


class UnknownRunError(RunsError):
    """No run, or more than one, has this name."""


def list_runs(runs_dir: Path) -> list[RunInfo]:
    """Every run of `runs_dir`, newest first; folders that hold no record are left out.

    Empty where there is no such folder; RunsError where it cannot be read.
    """
    try:
        paths = [Path(entry) for entry in os.scandir(runs_dir) if entry.is_dir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunsError(
            f"The runs folder {runs_dir} cannot be read ({error.strerror}); set MORIMON_RUNS_DIR to a folder of yours."
        ) from None
    infos = [info for path in paths if (info := run_info(RunFolder(path)))]
    return sorted(infos, key=lambda info: info.started_unix_ns, reverse=True)


def run_info(folder: RunFolder) -> RunInfo | None:
    """What one run folder tells; None where it holds no record."""
    header = read_header(folder)
    if header is None:
        return None
    return RunInfo(
        id=folder.run_id,
        path=folder.path,
        host=header.host,
        command=header.command,
        started_unix_ns=header.unix_ns,
        state=_state(folder, header),
        ranks=header.nproc,
        size_bytes=_size_bytes(folder.path),
    )


def read_header(folder: RunFolder) -> RunHeader | None:
    """First line of the record; None where it is missing or no header."""
    try:
        with folder.events_path.open("rb") as file:
            first = decode(file.readline())
    except (OSError, msgspec.DecodeError):
        return None
    return first if isinstance(first, RunHeader) else None


def read_end(folder: RunFolder) -> RunEnded | None:
    """How the run ended, from the last line of its record; None while it goes on."""
    try:
        with folder.events_path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read().splitlines()
        last = decode(lines[-1]) if lines else None
    except (OSError, msgspec.DecodeError):
        return None
    return last if isinstance(last, RunEnded) else None


def has_ended(folder: RunFolder) -> bool:
    """Whether the record tells the job's end."""
    return read_end(folder) is not None


def find_run(runs_dir: Path, name: str) -> RunFolder:
    """The run that an id, the beginning of one, or a path (of the folder or its record) means; UnknownRunError else."""
    if os.sep in name or name.endswith(".jsonl"):
        path = Path(name).absolute()
        folder = RunFolder(path.parent if path.is_file() else path)
        if read_header(folder) is None:
            raise UnknownRunError(
                f"{name} holds no record of a run (no events.jsonl that begins with a header)."
            )
        return folder
    exact = RunFolder(runs_dir.absolute() / name)
    if name and read_header(exact):
        return exact
    meant = [info for info in list_runs(runs_dir) if name and info.id.startswith(name)]
    if not meant:
        raise UnknownRunError(f"No run is called {name!r} in {runs_dir}; `morimon runs` lists them.")
    if len(meant) > 1:
        ids = ", ".join(info.id for info in meant)
        raise UnknownRunError(f"{name!r} may mean {ids}; give more of the id.")
    return meant[0].folder


def prune(runs_dir: Path, *, keep: int = 0, older_than_s: float = 0.0) -> list[RunInfo]:
    """Remove runs that do not run: all but the newest `keep`, and of those only what is older than `older_than_s`.

    Returns what was removed, oldest first.
    """
    runs = list_runs(runs_dir)
    youngest_unix_ns = time.time_ns() - round(older_than_s * 1e9)
    removed = []
    for info in reversed([info for info in runs if info.state != "running"][keep:]):
        if info.started_unix_ns > youngest_unix_ns:
            break
        if launch := info.folder.launch():
            Path(launch.socket).unlink(missing_ok=True)
        shutil.rmtree(info.path)
        removed.append(info)
    return removed


def _state(folder: RunFolder, header: RunHeader) -> RunState:
    if is_held(folder.lock_path):
        return "running"
    end = read_end(folder)
    if end is not None:
        return end.outcome
    if folder.exit() is not None:
        return "ended"
    if header.host != socket.gethostname():
        return "running"
    if header.boot_id != boot_id():
        return "crashed"
    owners, launch = folder.owners(), folder.launch()
    job = [owners.keeper, owners.agent] if owners else [launch.follows] if launch and launch.follows else []
    return "running" if any(process.is_alive() for process in job) else "crashed"


def _size_bytes(path: Path) -> int:
    total = 0
    for parent, _, names in os.walk(path):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(parent, name).lstat().st_size
    return total
