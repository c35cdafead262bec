"""Liveness is a lock: the hub of a run holds an flock on `hub.lock`, and the kernel lets go of it however the hub dies.

The file's text is the hub's identity as JSON; it is true only while the lock is held.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

import msgspec

from morimon.runs.identity import ProcessIdentity

_PATIENCE_S = 1.0
"""A looker holds a shared lock for a moment: only a lock that stays taken is another hub's."""


class HubLock:
    """The lock as its holder has it; released by `release` or by the end of the process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def take(cls, path: Path) -> HubLock | None:
        """Take the lock and sign it; None where another hub lives."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(fd)
                    return None
                time.sleep(0.01)
        signature = msgspec.json.encode(ProcessIdentity.of(os.getpid()))
        with contextlib.suppress(OSError):  # a full disk: the lock counts, the signature is a convenience
            os.pwrite(fd, signature.ljust(64), 0)
        return cls(fd)

    def release(self) -> None:
        """Let go."""
        os.close(self._fd)


def is_held(path: Path) -> bool:
    """Whether a hub lives: somebody holds the lock exclusively."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def holder(path: Path) -> ProcessIdentity | None:
    """The living hub; None where the lock is free or nobody could sign it."""
    if not is_held(path):
        return None
    try:
        signed = msgspec.json.decode(path.read_bytes(), type=ProcessIdentity)
    except (OSError, msgspec.DecodeError):
        return None
    return signed if signed.is_alive() else None
