"""Best, worst and average of each phase over all ranks and rounds, and who keeps the others waiting."""

from __future__ import annotations

from dataclasses import replace

from morimon.draw.line import Line, Role, Run, width_of
from morimon.draw.page import Frame
from morimon.draw.table import Cell, Column, fit
from morimon.draw.units import gbps, micros
from morimon.store.snapshot import Extreme, PhaseSummary, RunSnapshot, Spread

_PHASE_ROLES: dict[str, Role] = {"dispatch": "dispatch", "combine": "combine"}
_RDMA, _ONE_NODE = "RDMA algo GB/s", "RDMA: nothing crosses"

_COLUMNS = (
    Column("phase", "", 8, right=False),
    Column("best", "µs", 9, group="best"),
    Column("best_rank", "rank", 4, group="best"),
    Column("best_round", "round", 5, group="best"),
    Column("worst", "µs", 9, group="worst"),
    Column("worst_rank", "rank", 4, group="worst"),
    Column("worst_round", "round", 5, group="worst"),
    Column("average", "µs", 9, group="average"),
    Column("xgmi_best", "best", 7, group="XGMI/NVL GB/s", priority=1),
    Column("xgmi_worst", "worst", 7, group="XGMI/NVL GB/s", priority=1),
    Column("xgmi_average", "average", 7, group="XGMI/NVL GB/s", priority=1),
    Column("rdma_best", "best", 7, group=_RDMA, priority=2),
    Column("rdma_worst", "worst", 7, group=_RDMA, priority=2),
    Column("rdma_average", "average", 7, group=_RDMA, priority=2),
)


def summary(snapshot: RunSnapshot, frame: Frame) -> tuple[Line, ...]:
    """Four lines with headings where there is room; two lines below 110 columns or 30 lines."""
    phases = [phase for phase in (snapshot.dispatch, snapshot.combine) if phase is not None]
    if frame.is_narrow or (frame.height is not None and frame.height < 30):
        return tuple(_folded(phase, frame) for phase in phases)
    if not phases:
        return ()
    micro = frame.glyphs.micro + "s"
    columns = [
        replace(
            column,
            title=micro if column.title == "µs" else column.title,
            group=_ONE_NODE if column.group == _RDMA and not snapshot.crosses_nodes else column.group,
        )
        for column in _COLUMNS
    ]
    table = fit(columns, frame.width, frame.glyphs, gap=1 if frame.width < 130 else 2)
    rows = [table.row(_cells(phase, snapshot, frame)) for phase in phases]
    return (table.group_line(), table.heading()[0], *rows)


def _cells(phase: PhaseSummary, snapshot: RunSnapshot, frame: Frame) -> dict[str, Cell]:
    glyphs = frame.glyphs
    cells: dict[str, Cell] = {"phase": Run(phase.phase, _PHASE_ROLES[phase.phase])}
    if (latency := phase.latency_us) is not None:
        cells["average"] = micros(latency.average, glyphs)
        for name, extreme in (("best", latency.best), ("worst", latency.worst)):
            cells[name] = micros(extreme.value, glyphs)
            cells[f"{name}_rank"] = str(extreme.rank)
            cells[f"{name}_round"] = str(extreme.round)
    for name, spread in (("xgmi", phase.xgmi_gbps), ("rdma", snapshot.across(phase.rdma_algo_gbps))):
        values = _three(spread)
        cells |= {f"{name}_{which}": gbps(value, glyphs) for which, value in values.items()}
    missing = dict.fromkeys((column.key for column in _COLUMNS if column.key not in cells), glyphs.missing)
    return cells | missing


def _three(spread: Spread | None) -> dict[str, float | None]:
    if spread is None:
        return {"best": None, "worst": None, "average": None}
    return {"best": spread.best.value, "worst": spread.worst.value, "average": spread.average}


def _folded(phase: PhaseSummary, frame: Frame) -> Line:
    """One phase in one line of at most 80 cells; where there are fewer the last figures go, whole."""
    glyphs = frame.glyphs
    name = Run(f" {phase.phase:<8} ", _PHASE_ROLES[phase.phase])
    latency = phase.latency_us
    if latency is None:
        return (name, Run("no latency told yet", "dim"))

    def extreme(word: str, one: Extreme) -> list[Run]:
        where = f"r{one.rank} #{one.round}"
        return [Run(f"{word} ", "dim"), Run(f"{micros(one.value, glyphs):>7}"), Run(f" {where:<7} ", "dim")]

    bandwidth = gbps(phase.xgmi_gbps.average if phase.xgmi_gbps else None, glyphs)
    parts: list[list[Run]] = [
        extreme("best", latency.best),
        extreme("worst", latency.worst),
        [Run("mean ", "dim"), Run(f"{micros(latency.average, glyphs):>7} {glyphs.micro}s")],
        [Run(f" {bandwidth:>6} GB/s")],
    ]
    line: Line = (name,)
    for part in parts:
        if width_of((*line, *part)) > frame.width:
            break
        line = (*line, *part)
    return line


def verdict(snapshot: RunSnapshot, frame: Frame) -> Line:
    """Who keeps the others waiting, in one sentence; it is read from arrivals, never from durations.

    Nothing where nothing has been read yet.
    """
    glyphs = frame.glyphs
    late = snapshot.straggler
    if late is not None and late.is_late:
        behind = f"{micros(late.behind_us, glyphs)} {glyphs.micro}s"
        where = "" if frame.is_narrow else f" enters {late.phase}"
        text = (
            f" {glyphs.warning} rank {late.rank} is late:{where} {behind} after the median rank, "
            f"last in {late.rounds} of {late.judged} rounds"
        )
        return frame.fit((Run(text, "late"),))
    if snapshot.arrivals_judged:
        text = f" {glyphs.done} no rank is late ({snapshot.arrivals_judged} arrivals compared)"
        return frame.fit((Run(text, "dim"),))
    if snapshot.dispatch is not None or snapshot.combine is not None:
        text = " who is late cannot be told: this job reports durations, not arrivals"
        return frame.fit((Run(text, "dim"),))
    if snapshot.version and snapshot.state in ("starting", "running"):
        return frame.fit((Run(_waiting(snapshot), "dim"),))
    return ()


def _waiting(snapshot: RunSnapshot) -> str:
    """What a run without figures is waiting for."""
    here = sum(rank.state == "running" for rank in snapshot.ranks)
    rounds = [rank.round for rank in snapshot.ranks if rank.round is not None]
    if rounds and min(rounds) < 0:
        return f" warming up, round {min(rounds)}: figures begin with round 0"
    if here:
        return f" {here} of {len(snapshot.ranks)} ranks are up, none has told figures yet; Log shows what they print"
    return " the job is starting: no rank is up yet; Log shows what it prints"
