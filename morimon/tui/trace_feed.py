"""The traces of one folder as a screen needs them: followed, loaded one at a time, the last few kept.

Everything here happens in the event loop's thread but for the looking (`TraceFolder`) and the loading (`load_trace`).
Screens pull: `version` changes whenever anything here does.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from pathlib import Path
from typing import TypeAlias

from morimon.feeds.trace_folder import SETTLE_S, TraceFolder
from morimon.feeds.trace_loader import load_trace
from morimon.feeds.traces import FolderTraces, TraceFile
from morimon.trace.model import NotATraceError, Trace, TraceError
from morimon.views.trace_look import Loading

KEPT = 8
"""Loaded traces that are kept, so that going from rank to rank and back costs nothing."""
Content: TypeAlias = tuple[str, int]
"""Name and revision: which contents of which file."""


class TraceFeed:
    """Follows `path` from `start` to `close`."""

    def __init__(self, path: Path, *, polling: bool = False, settle_s: float = SETTLE_S) -> None:
        self.path = path
        self.loading: Loading | None = None
        self._folder = TraceFolder(path, polling=polling, settle_s=settle_s)
        self._kept: OrderedDict[Content, Trace] = OrderedDict()
        self._task: asyncio.Task[Trace | None] | None = None
        self._turns = 0

    def start(self) -> str:
        """Begin; returns why the folder cannot be followed, "" if it can."""
        try:
            self._folder.start()
        except OSError as error:
            return f"{self.path} cannot be read: {error.strerror or error}"
        return ""

    def close(self) -> None:
        """Stop looking and loading."""
        self.cancel()
        self._folder.close(wait=False)

    @property
    def version(self) -> tuple[int, int, int]:
        """Changes with the folder, with what is loaded, and with every percent of what is being loaded."""
        loading = self.loading
        percent = 100 * loading.bytes_done // loading.bytes_total if loading and loading.bytes_total else 0
        return self._folder.version, self._turns, percent

    @property
    def mode(self) -> str:
        """How the folder is followed, in words."""
        return self._folder.mode

    @property
    def listing(self) -> FolderTraces:
        """What lies in the folder."""
        return self._folder.traces()

    def trace(self, file: TraceFile) -> Trace | None:
        """The file's trace, if these contents of it are loaded."""
        found = self._kept.get((file.name, file.revision))
        if found is not None:
            self._kept.move_to_end((file.name, file.revision))
        return found

    def load(self, file: TraceFile) -> asyncio.Task[Trace | None]:
        """Load the file, instead of one that is on its way; the task's result is None where that failed."""
        if self._task is not None and self.loading is not None and self.loading.name == file.name:
            return self._task
        self.cancel()
        self.loading = Loading(file.name)
        self._turns += 1
        self._task = asyncio.get_running_loop().create_task(self._load(file))
        return self._task

    def cancel(self) -> None:
        """Give up what is being loaded."""
        if self._task is not None and self.loading is not None:
            self._task.cancel()
            self.loading = None
            self._turns += 1

    async def _load(self, file: TraceFile) -> Trace | None:
        mine = self.loading

        def moved(done: int, total: int) -> None:
            nonlocal mine
            if self.loading is mine:
                self.loading = mine = Loading(file.name, done, total)

        trace = None
        try:
            trace = await load_trace(self.path / file.name, moved)
        except NotATraceError as error:
            self._folder.failed(file.name, file.revision, str(error), aside=True)
        except TraceError as error:
            self._folder.failed(file.name, file.revision, str(error))
        if self.loading is mine:
            self.loading = None
        if trace is not None:
            self._keep(file, trace)
        self._turns += 1
        return trace

    def _keep(self, file: TraceFile, trace: Trace) -> None:
        self._kept[file.name, file.revision] = trace
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        self._folder.loaded(file.name, file.revision, trace)
