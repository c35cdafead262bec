"""A run whose hub died gets another one from whoever looks at it, as long as that helps."""

from __future__ import annotations

import time
from collections import deque

from morimon.hub.control import ensure_hub
from morimon.hub.launch import LaunchError
from morimon.runs.folder import RunFolder
from morimon.runs.listing import has_ended, run_info
from morimon.runs.lock import is_held

TRIES = 3
WITHIN_S = 60.0
"""Hubs that may die within this time before no other is started."""


class Succession:
    """The hubs that one viewer started for a run."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._started_s: deque[float] = deque(maxlen=TRIES)

    def nobody_writes(self) -> bool:
        """Whether the record of a run that goes on will never be written again; a hub that died is replaced.

        LaunchError, a sentence, where no new hub can be had, or where the last few died soon.
        """
        now_s = time.monotonic()
        tried = len(self._started_s) == TRIES and now_s - self._started_s[0] < WITHIN_S
        if tried and self._has_no_hub():
            raise LaunchError(
                f"{TRIES} new ones died within {WITHIN_S:.0f} s. {self._folder.hub_log_path} tells why; "
                f"`morimon attach {self._folder.run_id}` tries again."
            )
        if ensure_hub(self._folder):
            self._started_s.append(now_s)
            return False
        return is_lost(self._folder)

    def _has_no_hub(self) -> bool:
        folder = self._folder
        return not (is_held(folder.lock_path) or has_ended(folder) or is_lost(folder))


def is_lost(folder: RunFolder) -> bool:
    """Whether a run has neither a hub nor a job that lives, and no known end."""
    if is_held(folder.lock_path):
        return False
    info = run_info(folder)
    return info is None or info.state == "crashed"
