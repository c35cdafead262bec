"""What the commands that show a run have in common: refusals, the choice between screen and lines, the end."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click

from morimon.hub.control import request_stop
from morimon.hub.launch import LaunchError
from morimon.model.events import Outcome, RecordEvent
from morimon.report.exits import ExitCode, exit_code
from morimon.report.follow import NotARecordError, follow, recorded
from morimon.report.reporters import JsonReporter, TextReporter, say
from morimon.report.succession import Succession
from morimon.runs.folder import RunFolder, default_runs_dir
from morimon.runs.listing import RunInfo, RunsError, find_run, list_runs, read_end
from morimon.store.snapshot import RunSnapshot

if TYPE_CHECKING:
    from morimon.tui.options import Mode, Options
    from morimon.views.line_rates import LineRates


_ENDS: dict[Outcome, str] = {
    "finished": "has finished",
    "failed": "has failed",
    "stopped": "was stopped",
    "lost": "ended while nobody looked",
}


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
    except RunsError as error:
        raise Refused(str(error)) from None


def all_runs() -> list[RunInfo]:
    """Every run, newest first; Refused where they cannot be looked at."""
    try:
        return list_runs(default_runs_dir())
    except RunsError as error:
        raise Refused(str(error)) from None


def wants_screen(*, headless: bool, as_json: bool) -> bool:
    """Whether to open the screens: nothing else was asked for, and there is a terminal.

    Refused where they are wanted and the settings cannot be used: that is found before a job is started.
    """
    wanted = not headless and not as_json and sys.stdin.isatty() and sys.stdout.isatty()
    if wanted:
        _options()
    return wanted


def report(events: Iterator[RecordEvent], folder: Path, *, as_json: bool) -> RunSnapshot:
    """Print a run on standard output, to the end of its events; a record that cannot be read is refused."""
    reporter = JsonReporter(sys.stdout) if as_json else TextReporter(sys.stdout, sys.stderr, folder)
    try:
        return follow(readable(events), reporter)
    except LaunchError as error:
        say(sys.stderr, f"the run's hub is gone and no other can be had: {error}")
        sys.exit(ExitCode.FAILED)


def open_screens(folder: RunFolder, mode: Mode, record: Path | None = None) -> NoReturn:
    """Open the screens on a run, and end the command with the run's end, or with 0 where it goes on."""
    from morimon.tui.app import show

    if mode == "replay":
        next(readable(recorded(record or folder.events_path, folder)))  # what is no record is refused here
        options = _options()
    else:
        succession = Succession(folder)
        options = _options(lambda force: request_stop(folder, force=force), lambda: _loss(succession))
    if code := show(record or folder.path, mode, options):
        sys.exit(code)
    if mode == "replay":
        sys.exit(ExitCode.OK)
    end = read_end(folder)
    if end is None:
        say(sys.stderr, f"run {folder.run_id} goes on; `morimon attach {folder.run_id}` shows it again.")
        sys.exit(ExitCode.OK)
    name = folder.run_id if folder.path.parent == default_runs_dir() else shlex.quote(str(folder.path))
    what = f"run {folder.run_id} {_ENDS[end.outcome]}"
    say(sys.stderr, f"{what}; its record is in {folder.path}, `morimon replay {name}` shows it again.")
    sys.exit(exit_code(end.outcome))


def _loss(succession: Succession) -> str | None:
    """Why nobody will write this record any more; None while somebody does."""
    try:
        return (
            "The run's hub and its keeper are gone: how it ended is not known."
            if succession.nobody_writes()
            else None
        )
    except LaunchError as error:
        return f"The run's hub is gone and no other can be had: {error}"


def _options(
    on_stop: Callable[[bool], object] | None = None, look_after: Callable[[], str | None] | None = None
) -> Options:
    """What the person wants of the screens; Refused where the settings cannot be used."""
    from morimon.cli.screen import chosen_options
    from morimon.cli.settings import SettingsError

    try:
        return chosen_options(on_stop, look_after)
    except SettingsError as error:
        raise Refused(str(error)) from None


def line_rates() -> LineRates:
    """What the person says that the links carry."""
    return _options(None).line_rates


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Ends the command well where nobody reads its output to the end, as `head` does not."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still in its buffer
        sys.exit(ExitCode.OK)


def leave(snapshot: RunSnapshot, *, interrupted: bool = False) -> NoReturn:
    """End the command with what the run's end tells."""
    sys.exit(exit_code(snapshot.state, interrupted=interrupted))


def readable(events: Iterator[RecordEvent]) -> Iterator[RecordEvent]:
    """The same events; Refused where they cannot be read."""
    try:
        yield from events
    except OSError as error:
        raise Refused(f"{error.filename} cannot be read: {error.strerror}.") from None
    except NotARecordError as error:
        raise Refused(str(error)) from None
