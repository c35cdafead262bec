"""The end of processes that are not our children: when, and with which status.

A pidfd wakes the loop at the moment of death. The status is then in /proc/PID/stat for as long as the parent has not
buried the process; torchrun's agent looks ten times a second, so that we nearly always come first.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from morimon.runs.identity import ProcessIdentity


class ExitStatus(NamedTuple):
    """How a process ended; both None where nobody could tell."""

    exitcode: int | None = None
    signal: int | None = None


class ExitWatch:
    """Watches processes; `told(identity, status)` is called once for each, from the running loop."""

    def __init__(self, told: Callable[[ProcessIdentity, ExitStatus], None]) -> None:
        self._told = told
        self._watched: dict[ProcessIdentity, int | None] = {}

    def add(self, process: ProcessIdentity) -> None:
        """Watch a process, which may have ended already."""
        if process in self._watched:
            return
        self._watched[process] = None
        try:
            fd = os.pidfd_open(process.pid)
        except OSError:  # gone already, a kernel before 5.3, or no file left to open: `poll` will look
            return
        self._watched[process] = fd
        asyncio.get_running_loop().add_reader(fd, self._ended, process)

    def poll(self) -> None:
        """Look after the processes that no pidfd watches."""
        for process, fd in list(self._watched.items()):
            if fd is None and not process.is_alive():
                self._ended(process)

    def close(self) -> None:
        """Tell the end of everything that has ended and watch no more."""
        for process in list(self._watched):
            if not process.is_alive():
                self._ended(process)
        for process in list(self._watched):
            self._forget(process)

    def _ended(self, process: ProcessIdentity) -> None:
        status = read_status(process)
        self._forget(process)
        self._told(process, status)

    def _forget(self, process: ProcessIdentity) -> None:
        fd = self._watched.pop(process)
        if fd is not None:
            asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)


def read_status(process: ProcessIdentity) -> ExitStatus:
    """Status of a zombie, from /proc/PID/stat (field 52)."""
    try:
        stat = Path(f"/proc/{process.pid}/stat").read_bytes()
    except OSError:
        return ExitStatus()
    fields = stat[stat.rindex(b")") + 2 :].split()
    if fields[0] not in b"ZX" or int(fields[19]) != process.start:
        return ExitStatus()
    status = int(fields[49])
    if os.WIFSIGNALED(status):
        return ExitStatus(signal=os.WTERMSIG(status))
    return ExitStatus(exitcode=os.WEXITSTATUS(status))
