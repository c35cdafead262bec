"""Signals of a command that owns a job: the first stops it politely, the second at once, none leaves it behind.

A scheduler that ends the command (SIGTERM, SIGHUP) ends the job with it, as Ctrl+C does.
"""

from __future__ import annotations

import os
import signal
from types import FrameType, TracebackType
from typing import Any

from morimon.hub.control import request_stop
from morimon.runs.folder import RunFolder

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


_STDERR = 2


class StopOnSignals:
    """While entered, SIGINT, SIGTERM and SIGHUP stop the job of `folder` instead of this process.

    Signals that arrive before there is a folder are kept for it.
    """

    def __init__(self) -> None:
        self._folder: RunFolder | None = None
        self._before: dict[int, Any] = {}
        self.count = 0
        """Signals so far."""

    def __enter__(self) -> StopOnSignals:  # noqa: PYI034 - typing.Self is new in Python 3.11
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, and background jobs of a plain shell
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def owns(self, folder: RunFolder) -> None:
        """From now on there is a job to stop."""
        self._folder = folder
        if self.count:
            self.stop("The command was interrupted")

    def stop(self, why: str) -> None:
        """Ask for the job's end: at once where it has been asked before."""
        if self._folder is None:
            return
        force = self.count > 1
        if force:
            self._say(f"{why} again: killing the job.")
        else:
            self._say(f"{why}: stopping the job, its ranks have 30 s to end; once more kills them at once.")
        request_stop(self._folder, force=force)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.stop(signal.Signals(number).name)

    def _say(self, sentence: str) -> None:
        # A handler may interrupt a write to sys.stderr, whose buffer must then not be entered again.
        try:
            os.write(_STDERR, f"morimon: {sentence}\n".encode())
        except OSError:  # nobody listens any more; the job must be stopped all the same
            return
