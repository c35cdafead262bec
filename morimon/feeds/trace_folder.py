"""A folder that is followed: a thread that looks, asks what it finds for its wholeness, and keeps the answers.

The shell around `traces.TraceShelf` and `folder.FolderEvents`. Viewers pull: they compare `version`, take `traces()`,
and may block in `wait()`. Nothing is loaded here; whoever loads a file tells `loaded` or `failed`.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from morimon.feeds.folder import POLL_S, FolderEvents
from morimon.feeds.listing import list_folder, seen
from morimon.feeds.traces import FolderTraces, Seen, TraceShelf
from morimon.trace.metadata import world_size_of
from morimon.trace.model import TraceError
from morimon.trace.whole import wholeness

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from morimon.trace.model import Trace

SETTLE_S = 5.0
BREATH_S = 0.1
"""Least time between two looks: a writer causes hundreds of events a second."""


class TraceFolder:
    """Follows `path` from `start()` to `close()`, or as a context manager. All methods may be called from any thread.

    settle_s: a file that is not whole and has not grown for so long is shown as half-written.
    polling: look every `poll_s` seconds instead of waiting for events.
    """

    def __init__(
        self, path: Path, *, polling: bool = False, poll_s: float = POLL_S, settle_s: float = SETTLE_S
    ) -> None:
        self.path = path
        self._polling, self._poll_s = polling, poll_s
        self._shelf = TraceShelf(settle_s)
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="trace-folder", daemon=True)
        self._events: FolderEvents | None = None
        self._folder_id: tuple[int, int] | None = None
        self._trouble = ""
        self._turns = 0
        self._looked = False

    def start(self) -> None:
        """Begin to look. Raises OSError when the folder cannot be read now."""
        list_folder(self.path)
        self._thread.start()

    def close(self, *, wait: bool = True) -> None:
        """Stop looking; what is known stays. `wait` until the thread has ended, which may be reading a large file."""
        self._closed.set()
        if self._events is not None:
            self._events.woken.set()
        if wait and self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def version(self) -> int:
        """Changes whenever `traces()` or `mode` does."""
        with self._changed:
            return self._version()

    @property
    def mode(self) -> str:
        """How the folder is followed, for a status line: `inotify`, `polling every 1 s (nfs4)`, or what is wrong."""
        with self._changed:
            return self._trouble or (self._events.mode if self._events else "starting")

    @property
    def is_settled(self) -> bool:
        """Whether the folder has been looked at and no file in it is growing."""
        with self._changed:
            return self._looked and self._shelf.is_settled

    def traces(self) -> FolderTraces:
        """What is known now."""
        with self._changed:
            return self._shelf.traces()

    def wait(self, version: int, timeout_s: float) -> bool:
        """Block until `version` is not the newest any more; False when nothing happened in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._version() != version, timeout_s)

    def loaded(self, name: str, revision: int, trace: Trace) -> None:
        """Say what a file holds that has been loaded."""
        ranks = [process.rank for process in trace.processes if process.rank is not None]
        with self._changed:
            self._shelf.loaded(name, revision, ranks, world_size_of(trace))
            self._changed.notify_all()

    def failed(self, name: str, revision: int, text: str, *, aside: bool = False) -> None:
        """Say why a file could not be shown; `aside`: because it is no trace."""
        with self._changed:
            self._shelf.failed(name, revision, text, aside=aside)
            self._changed.notify_all()

    def _version(self) -> int:
        return self._shelf.version + self._turns

    def _follow(self) -> None:
        while not self._closed.is_set():
            self._listen()
            if self._events is not None:
                self._events.woken.clear()
            self._look()
            self._closed.wait(BREATH_S)
            if self._events is None:
                self._closed.wait(self._poll_s)
            elif not self._closed.is_set():
                self._events.woken.wait(self._pause_s(self._events.interval_s))
        if self._events is not None:
            self._events.close()

    def _listen(self) -> None:
        """Listen for events of the folder of that name: it may have been made anew."""
        try:
            status = self.path.stat()
        except OSError:
            found = None
        else:
            found = (status.st_dev, status.st_ino)
        if found == self._folder_id:
            return
        if self._events is not None:
            self._events.close()
        events = (
            None if found is None else FolderEvents(self.path, polling=self._polling, poll_s=self._poll_s)
        )
        self._folder_id = found
        with self._changed:
            self._events = events
            self._turns += 1

    def _look(self) -> None:
        trouble = ""
        try:
            listing = list_folder(self.path)
        except OSError as error:
            listing, trouble = {}, f"cannot be read: {error.strerror or error}"
        with self._changed:
            if trouble != self._trouble:
                self._trouble = trouble
                self._turns += 1
            names = self._shelf.listed(listing, time.monotonic())
            self._looked = True
            self._changed.notify_all()
        for name in names:
            if self._closed.is_set():
                return
            self._ask(name, listing[name])

    def _ask(self, name: str, listed: Seen) -> None:
        path = self.path / name
        try:
            answer = wholeness(path)
            now = seen(path.stat())
        except FileNotFoundError:
            return
        except (OSError, TraceError) as error:
            with self._changed:
                self._shelf.unreadable(name, listed, str(error))
                self._changed.notify_all()
            return
        with self._changed:
            self._shelf.judged(name, now, answer)
            self._changed.notify_all()

    def _pause_s(self, longest: float) -> float:
        with self._changed:
            due = self._shelf.due_s()
        return longest if due is None else min(max(due - time.monotonic(), 0.0), longest)
