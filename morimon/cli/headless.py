"""What the commands that show a run have in common: refusals, the choice between screen and lines, the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, NoReturn

import click

from morimon.hub.launch import LaunchError
from morimon.model.events import RecordEvent
from morimon.report.exits import ExitCode, exit_code
from morimon.report.follow import follow
from morimon.report.reporters import JsonReporter, TextReporter, say
from morimon.runs.folder import RunFolder, default_runs_dir
from morimon.runs.listing import UnknownRunError, find_run
from morimon.store.snapshot import RunSnapshot


class Refused(click.ClickException):
    """Input that cannot be used: one line on standard error, exit code 2."""

    exit_code = ExitCode.USAGE

    def show(self, file: IO[Any] | None = None) -> None:
        """One line."""
        say(sys.stderr, self.message)


def run_folder(name: str) -> RunFolder:
    """The run that a name on the command line means."""
    try:
        return find_run(default_runs_dir(), name)
    except UnknownRunError as error:
        raise Refused(str(error)) from None


def wants_screen(*, headless: bool, as_json: bool) -> bool:
    """Whether to open the screens: nothing else was asked for, and there is a terminal."""
    there = find_spec("morimon.tui.app") is not None
    return there and not headless and not as_json and sys.stdin.isatty() and sys.stdout.isatty()


def report(events: Iterator[RecordEvent], folder: Path, *, as_json: bool) -> RunSnapshot:
    """Print a run on standard output, to the end of its events; a record that cannot be read is refused."""
    reporter = JsonReporter(sys.stdout) if as_json else TextReporter(sys.stdout, sys.stderr, folder)
    try:
        return follow(_readable(events), reporter)
    except LaunchError as error:
        say(sys.stderr, f"the run's hub is gone and no other can be had: {error}")
        sys.exit(ExitCode.FAILED)


def leave(snapshot: RunSnapshot, *, interrupted: bool = False) -> NoReturn:
    """End the command with what the run's end tells."""
    sys.exit(exit_code(snapshot, interrupted=interrupted))


def _readable(events: Iterator[RecordEvent]) -> Iterator[RecordEvent]:
    try:
        yield from events
    except OSError as error:
        raise Refused(f"{error.filename or 'The record'} cannot be read: {error.strerror}.") from None
