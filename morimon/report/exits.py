"""Exit codes of all commands."""

from __future__ import annotations

from enum import IntEnum

from morimon.model.events import JobState, Outcome


class ExitCode(IntEnum):
    """What a morimon command tells its caller."""

    OK = 0
    FAILED = 1
    """The job failed, was stopped by somebody else or got lost; a check found a mismatch."""
    USAGE = 2
    """The command line or a file it names cannot be used; one line on stderr says why."""
    INTERRUPTED = 130
    """A signal (SIGINT, SIGTERM, SIGHUP) ended the command."""


def exit_code(state: JobState | Outcome, *, interrupted: bool = False) -> ExitCode:
    """What the state of a run tells the caller; a run that is still going is no failure."""
    if interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.FAILED if state in ("failed", "stopped", "lost") else ExitCode.OK
