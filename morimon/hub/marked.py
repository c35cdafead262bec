"""The processes of a run, by the mark that all of them inherit, for when no keeper can tell any more.

The mark is MORIMON_RUN together with MORIMON_SOCKET in the environment that a process was started with: run ids are
unique in one runs folder, sockets on the whole machine.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from morimon.runs.identity import ProcessIdentity


def marked(run_id: str, socket: str) -> list[ProcessIdentity]:
    """Every live process of the run, this one excepted; those of other users can't be seen."""
    marks = {f"MORIMON_RUN={run_id}".encode(), f"MORIMON_SOCKET={socket}".encode()}
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            if marks <= set(Path(entry.path, "environ").read_bytes().split(b"\0")):
                process = ProcessIdentity.of(int(entry.name))
                found += [process] if process else []
    return found


def send(process: ProcessIdentity, signum: int) -> bool:
    """Signal this very process; False where it is gone."""
    if not process.is_alive():
        return False
    with suppress(ProcessLookupError):
        os.kill(process.pid, signum)
        return True
    return False
