"""`morimon replay`: a recorded run through the same reporters and screens as a living one."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from morimon.cli.headless import (
    Refused,
    leave,
    open_screens,
    reader_may_leave,
    report,
    run_folder,
    wants_screen,
)
from morimon.cli.screen import screen_options
from morimon.report.exits import ExitCode
from morimon.report.follow import recorded
from morimon.runs.folder import RunFolder

DEMO = Path(__file__).resolve().parent.parent / "demo"
"""A run folder that is shipped: 60 rounds of the built-in job, of which rank 2 enters every phase 40 ms late."""


@click.command()
@click.argument("run", required=False, metavar="ID|FILE")
@click.option("--demo", is_flag=True, help="Show a recorded run of 8 gloo ranks that comes with morimon.")
@click.option("--headless", is_flag=True, help="Lines instead of screens, also on a terminal.")
@click.option("--json", "as_json", is_flag=True, help="One object a line instead of text; see docs/json.md.")
@screen_options
def command(run: str | None, demo: bool, headless: bool, as_json: bool) -> None:
    """Show a recorded run again: by its id, the beginning of its id, its folder, or its events.jsonl."""
    if (run is None) is not demo:
        raise Refused("Name one run: its id (`morimon runs` lists them), its events.jsonl, or --demo.")
    path, folder = _record(str(DEMO / "events.jsonl") if run is None else run)
    if wants_screen(headless=headless, as_json=as_json):
        open_screens(folder, "replay", path)
    try:
        with reader_may_leave():
            snapshot = report(recorded(path, folder), folder.path, as_json=as_json)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    leave(snapshot)


def _record(name: str) -> tuple[Path, RunFolder]:
    """The record that a name means and the folder whose output files it points into."""
    path = Path(name)
    if path.is_file():
        return path, RunFolder(path.absolute().parent)
    if name.endswith(".jsonl"):
        raise Refused(f"There is no file {name}.")
    folder = run_folder(name)
    return folder.events_path, folder
