"""The list of runs as text and as objects."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import msgspec

from morimon.draw.glyphs import Glyphs
from morimon.draw.table import Column
from morimon.draw.text import clipped, sanitised
from morimon.draw.units import size
from morimon.report.objects import encoded
from morimon.report.tables import table_lines
from morimon.runs.command import short_command
from morimon.runs.listing import RunInfo

if TYPE_CHECKING:
    from morimon.hub.foreign import ForeignJob

_COMMAND_CELLS = 80


class ListedRun(msgspec.Struct, frozen=True, kw_only=True, tag="listed", tag_field="type"):
    """One run of `morimon runs --json`."""

    id: str
    path: str
    host: str
    command: tuple[str, ...]
    started_unix_ns: int
    state: str
    ranks: int | None
    size_bytes: int


def json_lines(runs: Sequence[RunInfo]) -> list[str]:
    """An object a run."""
    return [
        encoded(
            ListedRun(
                id=run.id,
                path=str(run.path),
                host=run.host,
                command=run.command,
                started_unix_ns=run.started_unix_ns,
                state=run.state,
                ranks=run.ranks,
                size_bytes=run.size_bytes,
            )
        )
        for run in runs
    ]


def text_lines(runs: Sequence[RunInfo], now: datetime, glyphs: Glyphs) -> list[str]:
    """A row a run; `now` decides how much of a date is needed."""
    rows = [
        {
            "id": run.id,
            "state": run.state,
            "started": _started(run, now),
            "ranks": glyphs.missing if run.ranks is None else str(run.ranks),
            "size": size(run.size_bytes),
            "host": sanitised(run.host),
            "command": clipped(sanitised(short_command(run.command)), _COMMAND_CELLS, glyphs.ellipsis),
        }
        for run in runs
    ]
    columns = [
        Column("id", "id", 0, right=False),
        Column("state", "state", 0, right=False),
        Column("started", "started", 0),
        Column("ranks", "ranks", 0),
        Column("size", "size", 0),
        Column("host", "host", 0, right=False),
        Column("command", "command", 0, right=False),
    ]
    return table_lines(columns, rows, glyphs)


class ListedJob(msgspec.Struct, frozen=True, kw_only=True, tag="foreign", tag_field="type"):
    """One job of `morimon attach --json` that morimon did not start."""

    pid: int
    command: tuple[str, ...]
    cwd: str
    started_unix_ns: int
    ranks: int


def foreign_json_lines(jobs: Sequence[ForeignJob]) -> list[str]:
    """An object a job."""
    return [
        encoded(
            ListedJob(
                pid=job.pid,
                command=job.command,
                cwd=job.cwd,
                started_unix_ns=job.started_unix_ns,
                ranks=job.ranks,
            )
        )
        for job in jobs
    ]


def foreign_text_lines(jobs: Sequence[ForeignJob], glyphs: Glyphs) -> list[str]:
    """A row a job."""
    rows = [
        {
            "pid": str(job.pid),
            "ranks": str(job.ranks),
            "command": clipped(sanitised(short_command(job.command)), _COMMAND_CELLS, glyphs.ellipsis),
        }
        for job in jobs
    ]
    columns = [
        Column("pid", "pid", 0),
        Column("ranks", "ranks", 0),
        Column("command", "command", 0, right=False),
    ]
    return table_lines(columns, rows, glyphs)


def _started(run: RunInfo, now: datetime) -> str:
    """Local time of day, with the date where it was not today."""
    when = datetime.fromtimestamp(run.started_unix_ns / 1e9, timezone.utc).astimezone()
    return when.strftime("%H:%M:%S" if when.date() == now.astimezone().date() else "%Y-%m-%d %H:%M")
