"""Writes traces that tell what the exporter's do not: rank, configuration, clock, names of processes and threads.

The form is Chrome's, one event a line, complete events (X) in microseconds with nanosecond digits; what is ours stands
under the key "morimon" before the events, where a reader finds it first. The file appears under its name when it is
whole, by rename.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from morimon.trace.model import Clock, TraceError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from typing_extensions import Self

FLUSH_BYTES = 1 << 20
FORM = 1


class TraceWriter:
    """A context manager; leaving it without an error closes the file and gives it its name, else nothing is left.

    rank: whose trace it is (None for one that holds several). config: the job's, free of form. clock: what ts 0 is.
    Raises TraceError when the file cannot be written.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        rank: int | None = None,
        config: dict[str, Any] | None = None,
        clock: Clock | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.path = Path(path)
        self._part = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        own: dict[str, Any] = {
            "form": FORM,
            "rank": rank,
            "config": config or {},
            "clock": clock,
            **(extra or {}),
        }
        self._buffer = bytearray(
            b'{"displayTimeUnit":"ns","morimon":' + msgspec.json.encode(own) + b',"traceEvents":[\n'
        )
        self._between = b""
        try:
            self._file = self._part.open("wb", buffering=0)
        except OSError as error:
            raise self._failed(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if kind is not None:
            self._file.close()
            self._part.unlink(missing_ok=True)
            return
        self._buffer += b"\n]}\n"
        try:
            self._flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._part.replace(self.path)
        except OSError as failure:
            self._part.unlink(missing_ok=True)
            raise self._failed(failure) from failure

    def process(self, pid: int, name: str) -> None:
        """Name a process; viewers show processes in order of pid."""
        self._meta("process_name", pid, 0, {"name": name})
        self._meta("process_sort_index", pid, 0, {"sort_index": pid})

    def thread(self, pid: int, tid: int, name: str) -> None:
        """Name a thread."""
        self._meta("thread_name", pid, tid, {"name": name})

    def spans(self, rows: Iterable[tuple[str, int, int, int]], *, pid: int = 0) -> None:
        """Spans (name, start_ns, end_ns, tid) of one process, times from the clock's zero, best in order of start."""
        heads: dict[str, bytes] = {}
        for name, start, end, tid in rows:
            head = heads.get(name)
            if head is None:
                head = b'{"name":%b,"cat":"gpu_kernel","ph":"X","pid":%d,"tid":' % (
                    msgspec.json.encode(name),
                    pid,
                )
                heads[name] = head
            self._add(b'%b%d,"ts":%b,"dur":%b}' % (head, tid, _us(start), _us(end - start)))

    def _meta(self, name: str, pid: int, tid: int, args: dict[str, Any]) -> None:
        self._add(msgspec.json.encode({"name": name, "ph": "M", "pid": pid, "tid": tid, "args": args}))

    def _add(self, event: bytes) -> None:
        self._buffer += self._between
        self._buffer += event
        self._between = b",\n"
        if len(self._buffer) >= FLUSH_BYTES:
            try:
                self._flush()
            except OSError as error:
                raise self._failed(error) from error

    def _flush(self) -> None:
        view = memoryview(self._buffer)
        while view:
            view = view[self._file.write(view) :]
        self._buffer = bytearray()

    def _failed(self, error: OSError) -> TraceError:
        return TraceError(f"{self.path}: the trace cannot be written: {error.strerror or error}")


def _us(ns: int) -> bytes:
    """Nanoseconds as microseconds, exactly."""
    sign, ns = (b"-", -ns) if ns < 0 else (b"", ns)
    return b"%b%d.%03d" % (sign, ns // 1000, ns % 1000)
