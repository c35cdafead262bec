"""`morimon runs`: recorded and running jobs, and making room."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import datetime, timezone

import click

from morimon.cli.headless import Refused, all_runs
from morimon.report.listing import json_lines, text_lines
from morimon.report.reporters import print_lines, say
from morimon.report.text import glyphs_for
from morimon.runs.folder import default_runs_dir
from morimon.runs.listing import RunInfo, RunsError, prune

_KEPT = 20
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One object a line instead of text; see docs/json.md.")
@click.option("--prune", "pruning", is_flag=True, help="Remove runs that have ended; the removed are listed.")
@click.option("--keep", type=int, metavar="N", help=f"With --prune: keep the newest N ended runs ({_KEPT}).")
@click.option("--older-than", metavar="AGE", help="With --prune: only what is older, as 12h, 7d or 2w.")
def command(as_json: bool, pruning: bool, keep: int | None, older_than: str | None) -> None:
    """List recorded and running jobs, newest first, or prune them. Running ones are never removed."""
    if not pruning:
        if keep is not None or older_than is not None:
            raise Refused("--keep and --older-than say what --prune removes; give --prune with them.")
        print_runs(all_runs(), as_json=as_json)
        return
    age_s = _seconds(older_than) if older_than else 0.0
    if keep is not None and keep < 0:
        raise Refused(f"--keep {keep} is no number of runs.")
    kept = keep if keep is not None else 0 if older_than else _KEPT
    try:
        removed = prune(default_runs_dir(), keep=kept, older_than_s=age_s)
    except RunsError as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(f"{error.filename} cannot be removed: {error.strerror}.") from None
    if removed:
        print_runs(removed[::-1], as_json=as_json)
    say(sys.stderr, f"removed {len(removed)} runs, {sum(run.size_bytes for run in removed) / 2**20:.1f} MiB.")


def print_runs(runs: Sequence[RunInfo], *, as_json: bool, none: str = "no runs") -> None:
    """The runs as a table or as objects; where there are none, that is told on standard error."""
    if as_json:
        print_lines(sys.stdout, json_lines(runs))
    elif runs:
        now = datetime.now(timezone.utc)
        print_lines(sys.stdout, text_lines(runs, now, glyphs_for(sys.stdout.encoding)))
    else:
        say(sys.stderr, f"{none} in {default_runs_dir()}.")


def _seconds(age: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", age)
    if found is None:
        raise Refused(f"--older-than {age} is no age; write a number and s, m, h, d or w, as in 7d.")
    return float(found[1]) * _UNITS_S[found[2]]
