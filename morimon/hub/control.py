"""What other processes may ask of a run: to stop its job, and to have a hub again."""

from __future__ import annotations

from morimon.runs.folder import RunFolder


def request_stop(folder: RunFolder, *, force: bool = False) -> bool:
    """Ask for the job's end: first politely (SIGTERM to the agent, which grants its ranks 30 s), by `force` at once.

    A second polite request counts as force. Returns False where nothing of the job lives any more.
    """
    raise NotImplementedError


def ensure_hub(folder: RunFolder) -> bool:
    """Start a hub where the lock is free and the job lives, or has ended unrecorded; True if one was started."""
    raise NotImplementedError
