"""Loads a trace while keys keep answering: large files in a process of their own, small ones in a thread.

The worker (`python -m morimon.trace`) hands over columns as files, which are mapped into memory and then have no name
any more: nothing stays behind. It is the first to be killed when memory runs out, and cancelling the task kills it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from morimon.trace.handover import open_saved
from morimon.trace.load import load
from morimon.trace.model import NotATraceError, Trace, TraceError
from morimon.trace.source import GZIP, ZSTD

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable

    Progress: TypeAlias = Callable[[int, int], None]

SMALL_BYTES = 8 << 20
"""Up to here a thread is quicker than a process, and holds the interpreter for no longer than a key may wait."""
PACKED = 20
"""How many times larger a compressed trace may become: JSON of events repeats itself."""
NICE = 10
WORKER = (sys.executable, "-m", "morimon.trace")


async def load_trace(
    path: Path, progress: Progress | None = None, *, small_bytes: int = SMALL_BYTES
) -> Trace:
    """The trace of a file. Raises TraceError (NotATraceError for something else than a trace), never anything else.

    progress(bytes_done, bytes_total) is called in the event loop's thread.
    """
    if _text_bytes(path) <= small_bytes:
        return await _in_thread(path)
    folder = Path(tempfile.mkdtemp(prefix="morimon-trace-"))
    try:
        await _in_process(path, folder, progress)
        return open_saved(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _text_bytes(path: Path) -> int:
    """About how many bytes of JSON the file holds."""
    try:
        with path.open("rb") as file:
            packed = file.read(4).startswith((GZIP, ZSTD))
        size = path.stat().st_size
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error
    return size * PACKED if packed else size


async def _in_thread(path: Path) -> Trace:
    cancelled = threading.Event()
    try:
        return await asyncio.to_thread(load, path, None, cancelled.is_set)
    except MemoryError:
        raise TraceError(_no_memory(path)) from None
    finally:
        cancelled.set()


async def _in_process(path: Path, folder: Path, progress: Progress | None) -> None:
    worker = await asyncio.create_subprocess_exec(
        *WORKER,
        str(path),
        str(folder),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        with contextlib.suppress(OSError):  # it may be gone already, or this kernel may not have the file
            Path(f"/proc/{worker.pid}/oom_score_adj").write_text("1000")
        with contextlib.suppress(OSError):  # where cores are scarce, keys go first
            os.setpriority(os.PRIO_PROCESS, worker.pid, NICE)
        await _listen(worker, path, progress)
    finally:
        if worker.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                worker.kill()
            await worker.wait()


async def _listen(worker: Process, path: Path, progress: Progress | None) -> None:
    """Follow the worker to its end; raises what it tells, or what its end tells."""
    assert worker.stdout is not None
    assert worker.stderr is not None
    complaint = asyncio.create_task(worker.stderr.read())
    ready = False
    try:
        async for line in worker.stdout:
            said = msgspec.json.decode(line)
            if "error" in said:
                raise (NotATraceError if said["not_a_trace"] else TraceError)(said["error"])
            ready = ready or "ready" in said
            if progress is not None and "bytes_done" in said:
                progress(said["bytes_done"], said["bytes_total"])
        code = await worker.wait()
        words = (await complaint).decode("utf-8", "replace")
    finally:
        complaint.cancel()
    if ready and code == 0:
        return
    if code == -9 or "MemoryError" in words:
        raise TraceError(_no_memory(path))
    last = words.strip().rpartition("\n")[2]
    raise TraceError(f"{path}: the loading process ended with code {code}{': ' + last if last else ''}")


def _no_memory(path: Path) -> str:
    return (
        f"{path}: loading it was ended for want of memory; free some, or cut the trace to fewer iterations."
    )
