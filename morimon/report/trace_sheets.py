"""A trace's tables as data: iterations, kernels of iterations, slots by role, threads.

Times are microseconds; iterations are numbered from 1, in each rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from morimon.draw.sheet import Scalar, Sheet
from morimon.trace.lanes import timeline
from morimon.trace.model import ROLES, Figures
from morimon.trace.stats import slot_table, thread_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from morimon.trace.model import Trace

Table: TypeAlias = Literal["slots", "kernels", "iterations", "threads"]
_FIGURES = Figures.__struct_fields__


def sheet(trace: Trace, table: Table) -> Sheet:
    """The table of that name; its first columns are the file and the rank, so that files can be put below another."""
    make = {"slots": _slots, "kernels": _kernels, "iterations": _iterations, "threads": _threads}[table]
    return make(trace)


def joined(sheets: Iterable[Sheet]) -> Sheet:
    """Tables of one name of several files, one below the other; a slot's column is that of its name."""
    parts = list(sheets)
    columns = list(dict.fromkeys(column for part in parts for column in part.columns))
    rows = [
        [named.get(column) for column in columns]
        for part in parts
        for row in part.rows
        for named in [dict(zip(part.columns, row, strict=True))]
    ]
    return Sheet(columns, rows)


def _slots(trace: Trace) -> Sheet:
    columns = ["file", "rank", "family", "slot", "role", "lane", "phase", "passes", "idle_passes", *_FIGURES]
    rows: list[list[Scalar]] = []
    for index, process in enumerate(trace.processes):
        for row in slot_table(trace, index):
            slot = trace.slots[row.slot]
            figures = msgspec.structs.astuple(row.working) if row.working else (None,) * len(_FIGURES)
            name = (slot.name, ROLES[row.role], slot.lane, slot.phase)
            rows.append(
                [trace.path, process.rank, process.family, *name, row.all.calls, row.idle, *_short(figures)]
            )
    return Sheet(columns, rows)


def _kernels(trace: Trace) -> Sheet:
    columns = [
        "file",
        "rank",
        "iteration",
        "slot",
        "lane",
        "start_us",
        "end_us",
        "duration_us",
        "first_warp_us",
    ]
    rows: list[list[Scalar]] = []
    for it in trace.iterations:
        for bar in timeline(trace, it.process, it.number).bars:
            slot = trace.slots[bar.slot]
            start, end, first = ((at - it.start_ns) / 1000 for at in (bar.start_ns, bar.end_ns, bar.first_ns))
            duration = (bar.end_ns - bar.start_ns) / 1000
            head = [trace.path, trace.processes[it.process].rank, it.ordinal, slot.name, slot.lane]
            rows.append([*head, start, end, duration, first, bar.fragments, bar.warps, bar.idle])
    return Sheet([*columns, "parts", "warps", "idle_warps"], rows)


def _iterations(trace: Trace) -> Sheet:
    columns = ["file", "rank", "iteration", "start_us", "end_us", "duration_us", "overlap", "barrier_us"]
    rows: list[list[Scalar]] = []
    for it in trace.iterations:
        barrier = None if it.barrier_ns is None else it.barrier_ns / 1000
        overlap = None if it.overlap is None else round(it.overlap, 6)
        times = (it.start_ns / 1000, it.end_ns / 1000, it.duration_ns / 1000)
        marks = (int(it.whole), it.missing, int(it.outlier), int(it.stale))
        rows.append(
            [trace.path, trace.processes[it.process].rank, it.ordinal, *times, overlap, barrier, *marks]
        )
    return Sheet([*columns, "whole", "missing", "outlier", "stale"], rows)


def _threads(trace: Trace) -> Sheet:
    table = thread_table(trace)
    names = (
        "calls",
        "total_us",
        "mean_us",
        "min_us",
        "p50_us",
        "p90_us",
        "p99_us",
        "max_us",
        "std_us",
        "share",
        "ratio",
    )
    slots = [f"{slot.name}_us" for slot in trace.slots]
    rows: list[list[Scalar]] = []
    numbers = zip(*(getattr(table, name).tolist() for name in names), strict=True)
    parts = table.by_slot_us.tolist()
    for thread, figures, outlier, by_slot in zip(
        table.thread.tolist(), numbers, table.outlier.tolist(), parts, strict=True
    ):
        process = trace.processes[int(trace.threads.process[thread])]
        who = (trace.path, process.rank, trace.threads.name[thread], ROLES[int(trace.threads.role[thread])])
        rows.append([*who, *_short(figures), int(outlier), *_short(by_slot)])
    return Sheet(["file", "rank", "thread", "role", *names, "outlier", *slots], rows)


def _short(values: Iterable[Scalar]) -> list[Scalar]:
    """Figures without the digits that no clock stands for."""
    return [round(value, 6) if isinstance(value, float) else value for value in values]
