"""When to look at a folder again: woken by inotify, or by the clock where events do not come.

Events only wake; what is in the folder is always read from the folder. So a lost event costs a delay, never a file,
and a folder that is polled behaves like one that is not. `FolderEvents.mode` says which it is, in words for the screen.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from watchdog.events import (
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

POLL_S = 1.0
SAFETY_S = 5.0
"""How often a folder with events is looked at all the same."""
_CHANGES: list[type[FileSystemEvent]] = [
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
]
_REMOTE = {
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "drvfs", "gfs", "gfs2", "gpfs", "lustre", "ncpfs", "nfs",
    "nfs4", "ocfs2", "orangefs", "panfs", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs", "wekafs",
}  # fmt: skip
"""File systems on which other machines write without this kernel hearing of it."""


def remote_file_system(folder: Path, mounts: str) -> str:
    """The type of the network file system that holds `folder`, "" for a local one.

    mounts: text of /proc/mounts. FUSE counts as remote (sshfs, gluster), but for those over a local block device.
    """
    best, kind = "", ""
    for line in mounts.splitlines():
        _, point, found, *_ = [*line.split(" "), "", "", ""]
        point = point.encode().decode("unicode_escape").encode("latin-1").decode("utf-8", "replace")
        if len(point) >= len(best) and Path(point) in (folder, *folder.parents):
            best, kind = point, found
    return kind if kind in _REMOTE or kind.startswith("fuse.") or kind == "fuse" else ""


class FolderEvents:
    """Sets `woken` when something happens in the folder; without events nobody does, and `interval_s` is shorter.

    polling: True looks by the clock from the start, as a network file system and a spent inotify limit do.
    """

    def __init__(self, folder: Path, *, polling: bool = False, poll_s: float = POLL_S) -> None:
        self.woken = threading.Event()
        self.mode = "inotify"
        self.interval_s = SAFETY_S
        self._observer: BaseObserver | None = None
        reason = "asked for" if polling else _remote(folder)
        if not reason:
            try:
                self._observer = _observe(folder, self.woken)
            except OSError as error:
                reason = str(error.strerror or error)
        if reason:
            self.mode = f"polling every {poll_s:g} s ({reason})"
            self.interval_s = poll_s

    def close(self) -> None:
        """Stop listening."""
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
            self._observer = None


def _remote(folder: Path) -> str:
    try:
        mounts = Path("/proc/mounts").read_text("utf-8", "replace")
    except OSError:
        return ""
    return remote_file_system(folder.resolve(), mounts)


def _observe(folder: Path, woken: threading.Event) -> BaseObserver:
    """A running observer that sets `woken`; raises OSError where the kernel has no watch left to give.

    Reading a file is an event, too: only changes are asked for, or looking would wake the looker.
    """
    observer = Observer()
    try:
        observer.schedule(_Waker(woken), str(folder), recursive=False, event_filter=_CHANGES)
        observer.start()
    except OSError:
        if observer.is_alive():
            observer.stop()
        raise
    return observer


class _Waker(FileSystemEventHandler):
    def __init__(self, woken: threading.Event) -> None:
        self._woken = woken

    def on_any_event(self, event: FileSystemEvent) -> None:
        self._woken.set()
