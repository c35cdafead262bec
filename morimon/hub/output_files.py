"""Which output files a job has: those of the run folder, or, for a job that somebody else started, those it holds open.

console.log                                                 the agent's own output, or a whole command's
output/<name>/attempt_<restart>/<local_rank>/stdout.log     torchrun's files, one a rank and stream
output/<name>/attempt_<restart>/<local_rank>/stderr.log
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from morimon.model.events import RankProcess, Stream
from morimon.runs.folder import RunFolder

_ATTEMPT = re.compile(r"attempt_(\d+)")

RankOf: TypeAlias = Callable[[int, int], int | None]
"""(restart, local_rank) to the rank, None as long as it is unknown."""


class OutputFile(NamedTuple):
    """One file and whose output it is; `rank` is None where several ranks share it, or nobody can tell."""

    path: str
    stream: Stream
    rank: int | None = None
    restart: int = 0


OutputFiles: TypeAlias = Callable[[bool], Iterable[OutputFile]]
"""All output files that are there now; the argument says whether the job has ended."""


def files_of_run(folder: RunFolder, rank_of: RankOf) -> OutputFiles:
    """The files of a run folder. One whose rank is unknown is held back until the job has ended."""

    def files(ended: bool) -> Iterator[OutputFile]:
        if folder.console_path.exists():
            yield OutputFile(str(folder.console_path), "console")
        for run in _folders(folder.output_path):
            for attempt in _folders(run.path):
                if match := _ATTEMPT.fullmatch(attempt.name):
                    yield from files_of_attempt(attempt.path, int(match[1]), ended)

    def files_of_attempt(path: str, restart: int, ended: bool) -> Iterator[OutputFile]:
        for entry in _folders(path):
            if entry.name.isdigit():
                rank = rank_of(restart, int(entry.name))
                if rank is not None or ended:
                    yield OutputFile(f"{entry.path}/stdout.log", "stdout", rank, restart)
                    yield OutputFile(f"{entry.path}/stderr.log", "stderr", rank, restart)

    return files


def files_held_open(agent_pid: int, ranks: Callable[[], Iterable[RankProcess]]) -> OutputFiles:
    """The regular files that a job's processes have for standard output and error.

    One that the agent or several ranks write to is a console; a terminal or a pipe cannot be read a second time.
    """

    def files(_ended: bool) -> Iterator[OutputFile]:
        shared = {path for fd in (1, 2) if (path := _regular_file(agent_pid, fd))}
        own: dict[str, OutputFile] = {}
        streams: tuple[tuple[int, Stream], ...] = ((1, "stdout"), (2, "stderr"))
        for process in ranks():
            for fd, stream in streams:
                path = _regular_file(process.pid, fd)
                if path is None:
                    continue
                made = own.setdefault(path, OutputFile(path, stream, process.rank, process.restart))
                if made.rank != process.rank:
                    shared.add(path)
        yield from (OutputFile(path, "console") for path in sorted(shared))
        yield from (made for path, made in own.items() if path not in shared)

    return files


def _regular_file(pid: int, fd: int) -> str | None:
    """Path of a file that a process has open; None where it is none, or is deleted."""
    link = f"/proc/{pid}/fd/{fd}"
    try:
        if not stat.S_ISREG(os.stat(link).st_mode):  # noqa: PTH116 - a link of the kernel's, not a path to resolve
            return None
        path = os.readlink(link)  # noqa: PTH115
        return path if os.path.samestat(os.stat(link), os.stat(path)) else None  # noqa: PTH116
    except OSError:
        return None


def _folders(path: str | os.PathLike[str]) -> list[os.DirEntry[str]]:
    try:
        return sorted((entry for entry in os.scandir(path) if entry.is_dir()), key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
