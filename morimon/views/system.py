"""The System screen: CPU, memory and threads of every rank's process, the job's own counters, and what was set aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from morimon.draw.charts import spark
from morimon.draw.line import Line, Role, Run, merged
from morimon.draw.page import Frame, Page, Spot
from morimon.draw.sheet import Scalar, Sheet
from morimon.draw.table import Cell, Column, Table, fit
from morimon.draw.text import sanitised
from morimon.draw.units import number, size
from morimon.model.events import Level
from morimon.store.snapshot import RankSnapshot, RunSnapshot
from morimon.views.rank_fields import FIELDS, doing, ordered
from morimon.views.rank_filter import EVERY_RANK, RankFilter

LEGEND = (
    ("CPU %", "of the rank's process and its children; 100 is one core"),
    ("over time", "the newest samples as columns, from 0 to 25, 50, 100, 200, … %"),
    ("memory", "resident, of the process and its children, in powers of 1024"),
    ("counters", "figures that the job tells by its probe: smallest, median, largest over the ranks"),
    ("set aside", "input that could not be used, counted by reason"),
)
SORTS = ("rank", "node", "pid", "phase", "cpu", "rss", "threads")
NOTES_SHOWN = 3
COUNTERS_SHOWN = 6
_SPARK_MOST = 32
_SPARK_TOPS = (25.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0)
"""Percent at which a column of the sparks is full; few, so that the scale seldom changes."""
_LEVEL_ROLES: dict[Level, Role] = {"info": "text", "warning": "warning", "error": "failed"}
_COLUMNS = (
    Column("rank", "rank", 5, sortable=True),
    Column("node", "node", 4, priority=3, sortable=True),
    Column("pid", "pid", 8, priority=2, role="dim", sortable=True),
    Column("phase", "phase", 8, right=False, sortable=True),
    Column("cpu", "CPU %", 7, group="process", sortable=True),
    Column("cpu_series", "over time", 10, right=False, priority=1, group="process", most=_SPARK_MOST),
    Column("rss", "memory", 9, group="process", sortable=True),
    Column("threads", "threads", 7, group="process", sortable=True),
)


@dataclass(frozen=True, slots=True)
class SystemState:
    """What the person at the screen chose."""

    selected: int | None = None
    sort: str = "rank"
    descending: bool = False
    filter: RankFilter = EVERY_RANK


def chosen_ranks(snapshot: RunSnapshot, state: SystemState) -> list[RankSnapshot]:
    """The ranks of the table, filtered and sorted."""
    kept = [rank for rank in snapshot.ranks if state.filter.keeps(rank)]
    return ordered(kept, state.sort, descending=state.descending)


def build(snapshot: RunSnapshot, frame: Frame, state: SystemState | None = None) -> Page:
    """The page: processes above, counters, notes and what was set aside below."""
    state = state or SystemState()
    ranks = chosen_ranks(snapshot, state)
    table = fit(_COLUMNS, frame.width, frame.glyphs, gap=1 if frame.is_narrow else 2)
    head, spots = _head(snapshot, frame, state, table, len(ranks))
    highest = max((max(rank.cpu_series_percent[-_SPARK_MOST:], default=0.0) for rank in ranks), default=0.0)
    full = next((top for top in _SPARK_TOPS if top >= highest), highest)
    foot = [*_counters(snapshot, frame), *_set_aside(snapshot, frame), *_notes(snapshot, frame)]
    if frame.height is not None:
        foot = foot[: max(frame.height - len(head) - min(len(ranks) + 1, frame.height // 2), 0)]
    rows = ProcessRows(ranks, table, full, _total(snapshot, table))
    cursor = next((i for i, rank in enumerate(ranks) if rank.rank == state.selected), 0 if ranks else None)
    return Page(head, rows, tuple(foot), cursor, spots)


def _head(
    snapshot: RunSnapshot, frame: Frame, state: SystemState, table: Table, shown: int
) -> tuple[tuple[Line, ...], tuple[Spot, ...]]:
    where = f" on {sanitised(snapshot.host)}" if snapshot.host else ""
    note = f"  {shown} of {len(snapshot.ranks)}: {state.filter.text} " if state.filter.text else ""
    first = merged(
        [Run(f" processes of the ranks{where}, with their children", "heading"), Run(note, "match")]
    )
    heading, spots = table.heading(state.sort, descending=state.descending, line=1)
    return (frame.fit(first), heading), spots


@dataclass(frozen=True, slots=True)
class ProcessRows:
    """A row a rank, then the total."""

    ranks: Sequence[RankSnapshot]
    table: Table
    full_percent: float
    total: Line

    def __len__(self) -> int:
        """Ranks and the total."""
        return len(self.ranks) + 1

    def line(self, index: int) -> Line:
        """The row of one rank, or the total."""
        if index == len(self.ranks):
            return self.total
        rank, glyphs = self.ranks[index], self.table.glyphs
        width = next((column.width for column in self.table.columns if column.key == "cpu_series"), 0)
        role: Role = "failed" if rank.state == "failed" else "text" if rank.state == "running" else "dim"
        cells: dict[str, Cell] = {
            "rank": Run(str(rank.rank), role),
            "node": glyphs.missing if rank.node is None else str(rank.node),
            "pid": glyphs.missing if rank.pid is None else str(rank.pid),
            "phase": Run(doing(rank), role),
            "cpu": number(rank.cpu_percent, 1, glyphs),
            "cpu_series": Run(
                spark(rank.cpu_series_percent, width, 0.0, self.full_percent, glyphs), "concurrent"
            ),
            "rss": size(rank.rss_bytes, glyphs),
            "threads": number(rank.threads, 0, glyphs),
        }
        return self.table.row(cells)


def _total(snapshot: RunSnapshot, table: Table) -> Line:
    glyphs = table.glyphs

    def sum_of(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    cells: dict[str, Cell] = {
        "rank": "all",
        "cpu": number(sum_of([rank.cpu_percent for rank in snapshot.ranks]), 1, glyphs),
        "rss": size(sum_of([rank.rss_bytes for rank in snapshot.ranks]), glyphs),
        "threads": number(sum_of([rank.threads for rank in snapshot.ranks]), 0, glyphs),
    }
    return table.row(cells, role="title")


def _rule(title: str, frame: Frame) -> Line:
    lead = frame.glyphs.rule * 2
    rest = frame.glyphs.rule * (frame.width - len(title) - 4)
    return (Run(f"{lead} ", "border"), Run(title, "heading"), Run(f" {rest}", "border"))


def _counters(snapshot: RunSnapshot, frame: Frame) -> list[Line]:
    """The job's own figures: a line each, over the ranks that told it."""
    values: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for rank in snapshot.ranks:
        for name, value, unit in rank.counters:
            values.setdefault((name, unit), []).append((value, rank.rank))
    if not values:
        return []
    lines: list[Line] = [_rule("counters of the job", frame)]
    for (name, unit), told in list(values.items())[:COUNTERS_SHOWN]:
        low, high = min(told), max(told)
        label = f" {sanitised(name)}{f' ({sanitised(unit)})' if unit else ''} "
        if len(told) == 1:
            text = f"{told[0][0]:g}  rank {told[0][1]}"
        else:
            middle = median(value for value, _ in told)
            text = f"{low[0]:g} rank {low[1]}  ..  median {middle:g}  ..  {high[0]:g} rank {high[1]}"
        lines.append(frame.fit((Run(f"{label:<24}", "text"), Run(text))))
    if len(values) > COUNTERS_SHOWN:
        lines.append((Run(f" and {len(values) - COUNTERS_SHOWN} more", "dim"),))
    return lines


def _set_aside(snapshot: RunSnapshot, frame: Frame) -> list[Line]:
    """Input that was dropped, by reason."""
    if not snapshot.drops:
        return []
    lines: list[Line] = [_rule("set aside", frame)]
    for drop in snapshot.drops[-NOTES_SHOWN:]:
        who = "" if drop.rank is None else f" (rank {drop.rank})"
        text = f" {frame.glyphs.warning} {number(drop.count, 0, frame.glyphs)} {sanitised(drop.reason)}{who}"
        lines.append(frame.fit((Run(text, "warning"),)))
    return lines


def _notes(snapshot: RunSnapshot, frame: Frame) -> list[Line]:
    """What the hub had to say, newest last; where it said nothing of GPUs and NICs, that there are no figures."""
    lines: list[Line] = [_rule("this machine", frame)]
    lines += [
        frame.fit((Run(f" {sanitised(note.text)}", _LEVEL_ROLES[note.level]),))
        for note in snapshot.notes[-NOTES_SHOWN:]
    ]
    if not any("GPU" in note.text for note in snapshot.notes):
        lines.append((Run(" no figures of GPUs or network ports in this record", "dim"),))
    return lines


def sheet(snapshot: RunSnapshot, state: SystemState) -> Sheet:
    """The visible processes, for export."""
    fields = [FIELDS[key] for key in SORTS]
    rows: list[list[Scalar]] = [
        [field.read(rank) for field in fields] for rank in chosen_ranks(snapshot, state)
    ]
    return Sheet([field.name for field in fields], rows)
