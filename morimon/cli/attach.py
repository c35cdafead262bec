"""`morimon attach`: a further look at a job that runs already."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from morimon.cli.headless import (
    Refused,
    all_runs,
    leave,
    line_rates,
    open_screens,
    readable,
    reader_may_leave,
    report,
    run_folder,
    wants_screen,
)
from morimon.cli.runs import print_runs
from morimon.cli.screen import screen_options
from morimon.hub.control import ensure_hub
from morimon.hub.launch import LaunchError
from morimon.report.exits import ExitCode
from morimon.report.follow import living, recorded
from morimon.report.listing import foreign_json_lines, foreign_text_lines
from morimon.report.once import SCREENS, screen_lines
from morimon.report.reporters import print_lines, say
from morimon.report.text import glyphs_for
from morimon.runs.folder import RunFolder, default_runs_dir
from morimon.runs.listing import RunInfo

_PAPER_COLUMNS = 120


@click.command()
@click.argument("job", required=False, metavar="[ID|PID]")
@click.option("--once", is_flag=True, help="Print one screen as it is now, and leave.")
@click.option("--screen", type=click.Choice(SCREENS), default="ranks", help="Which one, with --once.")
@click.option("--headless", is_flag=True, help="Lines instead of screens, also on a terminal.")
@click.option("--json", "as_json", is_flag=True, help="One object a line instead of text; see docs/json.md.")
@screen_options
def command(job: str | None, once: bool, screen: str, headless: bool, as_json: bool) -> None:
    """Show a job that already runs, with all of its history; without an argument, list those that run.

    It is named by the run's id, by the beginning of one, or by the process id of the job's agent or of one of its
    ranks; by process id jobs that morimon did not start can be followed too. Leaving does not touch the job.
    """
    if job is None:
        _list(as_json=as_json)
        return
    folder = _folder(job)
    _revive(folder)
    if once:
        width = shutil.get_terminal_size((_PAPER_COLUMNS, 0)).columns
        events = readable(recorded(folder.events_path, folder))
        glyphs = glyphs_for(sys.stdout.encoding)
        print_lines(sys.stdout, screen_lines(events, folder.path, screen, width, glyphs, line_rates()))
        return
    if wants_screen(headless=headless, as_json=as_json):
        open_screens(folder, "attach")
    try:
        say(sys.stderr, f"attached to run {folder.run_id}; Ctrl+C leaves the job as it is.")
        with reader_may_leave():
            snapshot = report(living(folder), folder.path, as_json=as_json)
    except KeyboardInterrupt:
        say(sys.stderr, f"detached; the job goes on, `morimon attach {folder.run_id}` shows it again.")
        sys.exit(ExitCode.INTERRUPTED)
    leave(snapshot)


def _list(*, as_json: bool) -> None:
    """Runs whose job lives, and this user's jobs that morimon did not start."""
    from morimon.hub.foreign import foreign_jobs

    running = [run for run in all_runs() if run.state == "running"]
    foreign = foreign_jobs()
    if running or not foreign:
        print_runs(running, as_json=as_json, none="no job runs")
    if foreign and as_json:
        print_lines(sys.stdout, foreign_json_lines(foreign))
    elif foreign:
        say(sys.stderr, "jobs that morimon did not start; attach to them by their process id:")
        print_lines(sys.stdout, foreign_text_lines(foreign, glyphs_for(sys.stdout.encoding)))


def _revive(folder: RunFolder) -> None:
    """Give a job whose hub died a new one, so that its record goes on."""
    try:
        revived = ensure_hub(folder)
    except LaunchError as error:
        say(sys.stderr, f"the hub of run {folder.run_id} is gone and no other can be had: {error}")
        return
    if revived:
        say(sys.stderr, f"the hub of run {folder.run_id} was gone; a new one has taken up the record.")


def _folder(job: str) -> RunFolder:
    """The run of this name, or the one that a process belongs to.

    A number may be both: a whole run id comes first, then the process id of a job, since the beginning of an id can be
    given longer.
    """
    if not job.isdecimal():
        return run_folder(job)
    runs = all_runs()
    alike = [run.id for run in runs if run.id.startswith(job)]
    if job in alike:
        return run_folder(job)
    folder = _run_of_process(int(job), runs)
    if folder is None:
        from morimon.hub.foreign import follow_foreign

        try:
            folder = follow_foreign(int(job), default_runs_dir())
        except LaunchError as error:
            if alike:
                return run_folder(job)
            raise Refused(str(error)) from None
    if others := [run_id for run_id in alike if run_id != folder.run_id]:
        text = f"{job} is taken for a process, of run {folder.run_id}; run {others[0]} is meant by more of its id."
        say(sys.stderr, text)
    return folder


def _run_of_process(pid: int, runs: Sequence[RunInfo]) -> RunFolder | None:
    """The run that a process says it belongs to, by the MORIMON_RUN in its environment."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    names = [entry.removeprefix(b"MORIMON_RUN=") for entry in environ if entry.startswith(b"MORIMON_RUN=")]
    for run in runs:
        owners = run.folder.owners()
        if owners and pid in (owners.keeper.pid, owners.agent.pid) and run.state == "running":
            return run.folder
        if names and run.id == names[0].decode(errors="replace"):
            return run.folder
    return None
