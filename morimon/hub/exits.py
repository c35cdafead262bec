"""The end of processes that are not our children: when, and with which status.

A pidfd wakes the loop at the moment of death. The status is then in /proc/PID/stat for as long as the parent has not
buried the process; torchrun's agent looks ten times a second, so that we nearly always come first. Linux 6.15 and
later tell it after the burial too.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from morimon.runs.identity import ProcessIdentity

_libc = ctypes.CDLL(None, use_errno=True)
_SYS_PIDFD_OPEN = 434
"""The same number on every architecture."""
_PIDFD_INFO = struct.Struct("=Q52xi")
"""struct pidfd_info: mask first, exit_code last."""
_PIDFD_GET_INFO = 0xC000FF0B | _PIDFD_INFO.size << 16
_PIDFD_INFO_EXIT = 1 << 3


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
            fd = open_pidfd(process.pid)
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
        fd = self._watched[process]
        status = status_of_zombie(process) or (status_of_buried(fd) if fd is not None else None)
        self._forget(process)
        self._told(process, status or ExitStatus())

    def _forget(self, process: ProcessIdentity) -> None:
        fd = self._watched.pop(process)
        if fd is not None:
            asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)


def open_pidfd(pid: int) -> int:
    """A file descriptor that is readable when the process has ended; OSError where that can't be had.

    Pythons that were built against old kernel headers (conda's are) lack os.pidfd_open, whatever kernel they run on.
    """
    if hasattr(os, "pidfd_open"):
        return os.pidfd_open(pid)
    fd: int = _libc.syscall(_SYS_PIDFD_OPEN, pid, 0)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd


def status_of_zombie(process: ProcessIdentity) -> ExitStatus | None:
    """Status of a process that its parent has not buried, from /proc/PID/stat (field 52)."""
    try:
        stat = Path(f"/proc/{process.pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    if fields[0] not in b"ZX" or int(fields[19]) != process.start:
        return None
    return _decoded(int(fields[49]))


def status_of_buried(fd: int) -> ExitStatus | None:
    """Status of a buried process by its pidfd (PIDFD_GET_INFO of linux/pidfd.h); None from older kernels."""
    info = bytearray(_PIDFD_INFO.size)
    struct.pack_into("=Q", info, 0, _PIDFD_INFO_EXIT)
    try:
        fcntl.ioctl(fd, _PIDFD_GET_INFO, info)
    except OSError:
        return None
    mask, status = _PIDFD_INFO.unpack(info)
    return _decoded(status) if mask & _PIDFD_INFO_EXIT else None


def _decoded(status: int) -> ExitStatus:
    if os.WIFSIGNALED(status):
        return ExitStatus(signal=os.WTERMSIG(status))
    return ExitStatus(exitcode=os.WEXITSTATUS(status))
