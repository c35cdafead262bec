"""`python -m morimon.hub RUN_FOLDER [--ready-fd N]`: the hub of one run, detached from whoever started it.

Writes "ready" to the file descriptor N once it holds the lock and the record has begun, or a sentence on why not.
"""

from __future__ import annotations

import os
import sys

if os.fork():  # before anything slow: the starter waits for this process, the hub belongs to nobody
    os._exit(0)

import asyncio
import signal
from contextlib import suppress
from pathlib import Path

from morimon.hub.recorder import Recorder
from morimon.hub.resume import read_recorded
from morimon.hub.supervisor import ORDERS, Supervisor
from morimon.runs.folder import RunFolder
from morimon.runs.lock import HubLock


def main(arguments: list[str]) -> int:
    """Run the hub; 0 when the job is over and recorded, 1 where there was nothing to do."""
    folder = RunFolder(Path(arguments[0]))
    ready_fd = int(arguments[2]) if arguments[1:2] == ["--ready-fd"] else None
    signal.pthread_sigmask(signal.SIG_BLOCK, ORDERS)
    try:
        lock = HubLock.take(folder.lock_path)
        launch = folder.launch()
        if lock is None or launch is None:
            _answer(ready_fd, "another hub lives" if lock is None else f"{folder.launch_path} cannot be read")
            return 1
        recorded = read_recorded(folder.events_path)
        if recorded.ended:
            _answer(ready_fd, "the run has ended")
            return 1
        supervisor = Supervisor(folder, launch, Recorder(folder.events_path), recorded)
        if not supervisor.begin() and recorded.header is None:
            _answer(ready_fd, f"the disk of {folder.path} is full")
            return 1
    except OSError as error:
        _answer(ready_fd, f"{error.strerror}: {error.filename or folder.path}")
        return 1
    _answer(ready_fd, "ready")
    asyncio.run(supervisor.run())
    lock.release()
    return 0


def _answer(ready_fd: int | None, text: str) -> None:
    if ready_fd is not None:
        with suppress(BrokenPipeError):  # the starter was killed
            os.write(ready_fd, text.encode())
        os.close(ready_fd)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
