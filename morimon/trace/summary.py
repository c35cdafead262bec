"""The JSON object of one file: what the reference's text says, and what it leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from morimon.trace.lanes import intervals_of
from morimon.trace.model import ROLES
from morimon.trace.names import readable
from morimon.trace.stats import chosen, slot_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from morimon.trace.model import Figures, Finding, Intervals, SlotRow, Trace


def summary(trace: Trace) -> dict[str, Any]:
    """Plain values, ready for JSON. Times are microseconds.

    spans, threads: how many. iterations: number (from 1), start_us, end_us on the file's axis; kernels: name -> union intervals
    [start, end] from the iteration's start, touching ones merged; duration_us, whole, missing, outlier, stale, overlap,
    barrier_us. per_thread: slot name -> mean_us (4 decimals), min_us, max_us, calls over all spans of all threads and
    iterations that are not stale, and total_us, share. roles: per slot and role the same and p50_us, p90_us, p99_us, std_us, idle passes
    counted apart. processes: in a file of several ranks label, rank, family, spans, threads, iterations and roles of
    each; the iterations of the whole file then are the ranks' of one number taken together (overlap and barrier_us
    None). origin_us is to be added to start_us and end_us where the file counts from an epoch.
    """
    several = len(trace.processes) > 1
    rows = slot_table(trace)
    return {
        "file": readable(trace.path),
        "family": trace.family,
        "rank": trace.rank,
        "ranks": [p.rank for p in trace.processes],
        "spans": len(trace.spans),
        "threads": len(trace.threads),
        "events": trace.events,
        "origin_us": trace.origin_ns / 1000,
        "iterations": _together(trace) if several else _iterations(trace, 0),
        "per_thread": _per_thread(trace, rows),
        "roles": _roles(trace, rows),
        "processes": [_process(trace, p) for p in range(len(trace.processes))] if several else [],
        "set_aside": trace.set_aside,
        "rejected": trace.rejected,
        "open_spans": trace.open_spans,
        "orphan_ends": trace.orphan_ends,
        "warnings": list(trace.warnings),
        "findings": [_finding(f) for f in trace.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(finding)
    number = None if finding.iteration is None else finding.iteration + 1
    return told | {"iteration": number}


def _process(trace: Trace, process: int) -> dict[str, Any]:
    info = trace.processes[process]
    mine = trace.threads.process == process
    return {
        "label": info.label,
        "rank": info.rank,
        "family": info.family,
        "spans": int(mine[trace.spans.thread].sum()),
        "threads": int(mine.sum()),
        "iterations": _iterations(trace, process),
        "roles": _roles(trace, slot_table(trace, process)),
    }


def _iterations(trace: Trace, process: int) -> list[dict[str, Any]]:
    return [
        {
            "number": it.ordinal,
            **_window(it.start_ns, it.end_ns),
            "whole": it.whole,
            "missing": it.missing,
            "outlier": it.outlier,
            "stale": it.stale,
            "overlap": it.overlap,
            "barrier_us": None if it.barrier_ns is None else it.barrier_ns / 1000,
            "kernels": _kernels(trace, trace.intervals, row, it.start_ns),
        }
        for row, it in enumerate(trace.iterations)
        if it.process == process
    ]


def _together(trace: Trace) -> list[dict[str, Any]]:
    """Iterations over all processes, by number."""
    spans = trace.spans
    at = np.flatnonzero(spans.iteration >= 0)
    columns = (spans.iteration[at].astype(np.int64), spans.slot[at], spans.start_ns[at], spans.end_ns[at])
    found = intervals_of(*columns, trace.slots)
    result = []
    for number in sorted({it.number for it in trace.iterations}):
        mine = [it for it in trace.iterations if it.number == number]
        start = min(it.start_ns for it in mine)
        result.append(
            {
                "number": number + 1,
                **_window(start, max(it.end_ns for it in mine)),
                "whole": all(it.whole for it in mine),
                "missing": "; ".join(dict.fromkeys(it.missing for it in mine if it.missing)),
                "outlier": any(it.outlier for it in mine),
                "stale": any(it.stale for it in mine),
                "overlap": None,
                "barrier_us": None,
                "kernels": _kernels(trace, found, number, start),
            }
        )
    return result


def _window(start_ns: int, end_ns: int) -> dict[str, float]:
    return {"start_us": start_ns / 1000, "end_us": end_ns / 1000, "duration_us": (end_ns - start_ns) / 1000}


def _kernels(trace: Trace, found: Intervals, row: int, zero_ns: int) -> dict[str, list[list[float]]]:
    a, b = np.searchsorted(found.row, [row, row + 1]).tolist()
    kernels: dict[str, list[list[float]]] = {}
    columns = (found.slot[a:b].tolist(), found.start_ns[a:b].tolist(), found.end_ns[a:b].tolist())
    for slot, start, end in zip(*columns, strict=True):
        kernels.setdefault(trace.slots[slot].name, []).append(
            [(start - zero_ns) / 1000, (end - zero_ns) / 1000]
        )
    return dict(sorted(kernels.items()))


def _roles(trace: Trace, rows: Sequence[SlotRow]) -> list[dict[str, Any]]:
    return [
        {
            "slot": trace.slots[row.slot].name,
            "role": ROLES[row.role],
            "lane": trace.slots[row.slot].lane,
            "phase": trace.slots[row.slot].phase,
            "idle": row.idle,
            "working": row.working and _figures(row.working),
            "all": _figures(row.all),
        }
        for row in rows
    ]


def _per_thread(trace: Trace, rows: Sequence[SlotRow]) -> dict[str, dict[str, Any]]:
    by_slot: dict[int, list[Figures]] = {}
    for row in rows:
        by_slot.setdefault(row.slot, []).append(row.all)
    result = {}
    for code, parts in by_slot.items():
        calls = sum(f.calls for f in parts)
        result[trace.slots[code].name] = {
            "mean_us": _mean_us(trace, code, round(sum(f.total_us for f in parts) * 1000), calls),
            "min_us": min(f.min_us for f in parts),
            "max_us": max(f.max_us for f in parts),
            "calls": calls,
            "total_us": round(sum(f.total_us for f in parts), 3),
            "share": round(sum(f.share for f in parts), 6),
        }
    return dict(sorted(result.items()))


def _mean_us(trace: Trace, code: int, total_ns: int, calls: int) -> float:
    """Four decimals. Where the exact mean lies half way between two, the mean of the file's own microsecond values
    decides, as in the reference: so the last digit is the same.
    """
    if total_ns * 20 % calls or total_ns * 20 // calls % 2 == 0:
        return round(total_ns / calls / 1000, 4)
    at = chosen(trace)
    start, end, slot = trace.spans.start_ns[at], trace.spans.end_ns[at], trace.spans.slot[at]
    return round(float(np.mean(end[slot == code] / 1000 - start[slot == code] / 1000)), 4)


def _figures(f: Figures) -> dict[str, Any]:
    return {
        "mean_us": round(f.mean_us, 4),
        "min_us": f.min_us,
        "max_us": f.max_us,
        "calls": f.calls,
        "p50_us": round(f.p50_us, 4),
        "p90_us": round(f.p90_us, 4),
        "p99_us": round(f.p99_us, 4),
        "std_us": round(f.std_us, 4),
        "total_us": round(f.total_us, 3),
        "share": round(f.share, 6),
    }
