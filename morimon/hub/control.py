"""What other processes may ask of a run: to stop its job, and to have a hub again."""

from __future__ import annotations

import os
import signal

from morimon.hub.launch import LaunchError, start_hub
from morimon.hub.marked import marked, send
from morimon.runs.folder import RunFolder
from morimon.runs.identity import boot_id
from morimon.runs.listing import has_ended, read_header
from morimon.runs.lock import holder, is_held


def request_stop(folder: RunFolder, *, force: bool = False) -> bool:
    """Ask for the job's end: first politely (SIGTERM to the agent, which grants its ranks 30 s), by `force` at once.

    A second polite request counts as force. Returns False where nothing of the job lives any more.
    """
    if not _is_of_this_boot(folder):
        return False
    owners = folder.owners()
    hub = holder(folder.lock_path)
    if force:
        if hub:
            send(hub, signal.SIGQUIT)
        if owners and send(owners.keeper, signal.SIGQUIT):  # itself, in case the hub is stuck
            return True
        return _kill_marked(folder) or hub is not None
    if hub:
        return send(hub, signal.SIGTERM)
    if owners is None:
        return False
    return send(owners.keeper, signal.SIGTERM) or send(owners.agent, signal.SIGTERM)


def ensure_hub(folder: RunFolder) -> bool:
    """Start a hub where the lock is free and the job lives, or has ended unrecorded; True if one was started.

    LaunchError, a sentence, where one is needed and cannot be had.
    """
    if not _is_of_this_boot(folder) or is_held(folder.lock_path) or has_ended(folder):
        return False
    try:
        start_hub(folder, os.environ)
    except LaunchError:
        if is_held(folder.lock_path) or has_ended(folder):  # somebody else was quicker
            return False
        raise
    return True


def _is_of_this_boot(folder: RunFolder) -> bool:
    header = read_header(folder)
    return header is not None and header.boot_id == boot_id()


def _kill_marked(folder: RunFolder) -> bool:
    launch = folder.launch()
    found = marked(folder.run_id, launch.socket) if launch else []
    return sum(send(process, signal.SIGKILL) for process in found) > 0
