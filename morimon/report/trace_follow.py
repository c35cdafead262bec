"""A folder of traces on paper: each one as soon as it is whole, and what becomes of the folder in between.

Forms: "text" prints reports; "lines" prints a JSON object a line for every trace that is shown ({"type": "trace",
"state", "group", "ranks_here"} and the keys of `morimon.trace.summary`), is removed or cannot be shown; "list" prints
one JSON list of traces, as `morimon trace --json` does. What is no data goes to `err`.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from morimon.feeds.listing import is_unchanged
from morimon.report.trace_text import as_text
from morimon.trace.load import load
from morimon.trace.model import LoadCancelledError, NotATraceError, Trace, TraceError
from morimon.trace.names import readable
from morimon.trace.summary import summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from morimon.feeds.trace_folder import TraceFolder
    from morimon.feeds.traces import FolderTraces, TraceFile

Form: TypeAlias = Literal["text", "lines", "list"]
WAIT_S = 0.5


class FolderReporter:
    """Shows what is new in a folder, file by file, until `is_over()`."""

    def __init__(
        self,
        folder: TraceFolder,
        form: Form,
        out: IO[str],
        err: IO[str],
        is_over: Callable[[], bool],
        width: int = 80,
    ) -> None:
        self._folder, self._form, self._out, self._err = folder, form, out, err
        self._is_over, self._width = is_over, width
        self._met: dict[str, int] = {}
        self._failed: dict[str, str] = {}
        self._mode = ""
        self._aside = 0
        self.shown = 0
        """Traces that were shown so far."""

    @property
    def failures(self) -> int:
        """Files that could not be shown."""
        return len(self._failed)

    def follow(self, *, once: bool = False) -> None:
        """Show traces as they come; `once`: until none of the files that are there grows any more."""
        met = -1
        while not self._is_over():
            settled = (
                self._folder.is_settled
            )  # asked before the version: what settles in between is shown first
            version = self._folder.version
            if version != met:
                self._step()
                met = version
            if once and settled:
                break
            self._folder.wait(version, WAIT_S)
        if self._form == "list":
            self._write("\n]\n" if self.shown else "[]\n")

    def _step(self) -> None:
        """Show what has become ready, the newest run first."""
        traces = self._folder.traces()
        self._tell_mode()
        self._tell_gone(traces)
        for file in traces.files:
            if self._is_over():
                return
            if file.is_ready and self._met.get(file.name) != file.revision:
                self._met[file.name] = file.revision
                self._show(file)
            elif file.state == "failed":
                self._tell_failed(file.name, file.text)
        aside = len(self._folder.traces().aside)
        if aside > self._aside:
            self._say(f"{aside} JSON {'files are no traces' if aside > 1 else 'file is no trace'}, set aside")
        self._aside = aside

    def _show(self, file: TraceFile) -> None:
        path = self._folder.path / file.name
        try:
            trace: Trace | TraceError = load(path, cancelled=self._is_over)
        except LoadCancelledError:
            return
        except TraceError as error:
            trace = error
        if not is_unchanged(path, file.seen):
            return  # it is another file by now, and will be ready again
        if isinstance(trace, TraceError):
            aside = isinstance(trace, NotATraceError)
            self._folder.failed(file.name, file.revision, str(trace), aside=aside)
            if not aside:
                self._tell_failed(file.name, str(trace))
            return
        self._folder.loaded(file.name, file.revision, trace)
        self._failed.pop(file.name, None)
        self._print(file, trace)
        self.shown += 1

    def _print(self, file: TraceFile, trace: Trace) -> None:
        if self._form == "list":
            self._write(("," if self.shown else "[") + "\n" + _json(summary(trace)))
            return
        group = self._folder.traces().group_of(file.name)
        title, here = (group.title, group.text) if group else (file.says.prefix, "")
        if self._form == "lines":
            about = {
                "type": "trace",
                "state": file.state,
                "group": readable(title),
                "ranks_here": readable(here),
            }
            self._write(_json(about | summary(trace)) + "\n")
            return
        note = ", half-written" if file.state == "half-written" else ""
        self._write(f"── {title}: {here}{note}\n{as_text(trace, self._width)}\n")

    def _tell_failed(self, name: str, text: str) -> None:
        if self._failed.get(name) == text:
            return
        self._failed[name] = text
        where = readable(self._folder.path / name)
        self._event({"type": "failed", "file": where, "text": readable(text)}, text)

    def _tell_gone(self, traces: FolderTraces) -> None:
        here = {file.name for file in traces.files} | set(traces.aside)
        for name in sorted((self._met.keys() | self._failed.keys()) - here):
            self._met.pop(name, None)
            self._failed.pop(name, None)
            where = readable(self._folder.path / name)
            self._event({"type": "removed", "file": where}, f"{name} was removed")

    def _tell_mode(self) -> None:
        mode = self._folder.mode
        if mode not in (self._mode, "starting"):
            self._mode = mode
            self._say(f"following {self._folder.path}: {mode}")

    def _event(self, value: dict[str, Any], text: str) -> None:
        if self._form == "lines":
            self._write(_json(value) + "\n")
        else:
            self._say(text)

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _say(self, text: str) -> None:
        self._err.write(f"morimon: {text}\n")
        self._err.flush()


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode()
