"""What lies in a folder that may be a trace."""

from __future__ import annotations

import os
from pathlib import Path

from morimon.feeds.traces import Seen, is_candidate


def list_folder(folder: Path) -> dict[str, Seen]:
    """Every file that may be a trace, by name. Raises OSError when the folder cannot be read."""
    found = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if not is_candidate(entry.name):
                continue
            try:
                if entry.is_file():
                    found[entry.name] = seen(entry.stat())
            except FileNotFoundError:
                continue  # removed since it was listed
    return found


def seen(status: os.stat_result) -> Seen:
    """What tells one content of a file from another."""
    return Seen(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def is_unchanged(path: Path, before: Seen) -> bool:
    """Whether the file still holds what it held then."""
    try:
        return seen(path.stat()) == before
    except OSError:
        return False
