"""The JSON object of one file: what the reference's text says, and what it leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from morimon.trace.group import firsts, stable_order
from morimon.trace.lanes import Intervals, of_trace
from morimon.trace.model import ROLES
from morimon.trace.stats import slot_table, slot_totals

if TYPE_CHECKING:
    from morimon.trace.model import Figures, Trace


def summary(trace: Trace) -> dict[str, Any]:
    """Plain values, ready for JSON. Times are microseconds.

    spans, threads: how many. iterations: number, start_us, end_us on the file's axis; kernels: name -> union intervals
    [start, end] from the iteration's start, touching ones merged; duration_us, whole, missing, outlier, overlap,
    barrier_us. per_thread: slot name -> mean_us (4 decimals), min_us, max_us, calls over all spans of all threads and
    iterations, and p50_us, p90_us, p99_us, std_us, total_us, share. roles: the same per slot and role, idle passes
    counted apart. processes: in a file of several ranks label, rank, family, spans, threads, iterations and roles of
    each; the iterations of the whole file then are the ranks' of one number taken together (overlap and barrier_us
    None). origin_us is to be added to start_us and end_us where the file counts from an epoch.
    """
    several = len(trace.processes) > 1
    return {
        "file": trace.path,
        "family": trace.family,
        "rank": trace.rank,
        "ranks": [p.rank for p in trace.processes],
        "spans": len(trace.spans),
        "threads": len(trace.threads),
        "events": trace.events,
        "origin_us": trace.origin_ns / 1000,
        "iterations": _together(trace) if several else _iterations(trace, 0),
        "per_thread": _per_thread(trace),
        "roles": _roles(trace, None),
        "processes": [_process(trace, p) for p in range(len(trace.processes))] if several else [],
        "set_aside": trace.set_aside,
        "rejected": trace.rejected,
        "open_spans": trace.open_spans,
        "orphan_ends": trace.orphan_ends,
        "warnings": list(trace.warnings),
        "findings": [msgspec.to_builtins(f) for f in trace.findings],
    }


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
        "roles": _roles(trace, process),
    }


def _iterations(trace: Trace, process: int) -> list[dict[str, Any]]:
    found = of_trace(trace)
    return [
        {
            "number": it.number,
            **_window(it.start_ns, it.end_ns),
            "whole": it.whole,
            "missing": it.missing,
            "outlier": it.outlier,
            "overlap": it.overlap,
            "barrier_us": None if it.barrier_ns is None else it.barrier_ns / 1000,
            "kernels": _kernels(trace, found, row, it.start_ns),
        }
        for row, it in enumerate(trace.iterations)
        if it.process == process
    ]


def _together(trace: Trace) -> list[dict[str, Any]]:
    """Iterations over all processes, by number."""
    spans = trace.spans
    found = Intervals(
        spans.iteration.astype(np.int64), spans.slot, spans.start_ns, spans.end_ns, len(trace.slots)
    )
    result = []
    for number in sorted({it.number for it in trace.iterations}):
        mine = [it for it in trace.iterations if it.number == number]
        start = min(it.start_ns for it in mine)
        result.append(
            {
                "number": number,
                **_window(start, max(it.end_ns for it in mine)),
                "whole": all(it.whole for it in mine),
                "missing": "; ".join(dict.fromkeys(it.missing for it in mine if it.missing)),
                "outlier": any(it.outlier for it in mine),
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


def _roles(trace: Trace, process: int | None) -> list[dict[str, Any]]:
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
        for row in slot_table(trace, process)
    ]


def _per_thread(trace: Trace) -> dict[str, dict[str, Any]]:
    spans = trace.spans
    # The mean is that of the file's own microsecond values, as the reference takes it: where the exact mean lies half
    # way between two of four decimals, the last digit is then the reference's too.
    duration_us = spans.end_ns / 1000 - spans.start_ns / 1000
    order, slot = stable_order(spans.slot)
    parts = np.split(duration_us[order], np.flatnonzero(firsts(slot))[1:])
    means = {
        trace.slots[code].name: float(np.mean(part))
        for code, part in zip(np.unique(slot).tolist(), parts, strict=False)
    }
    return {
        name: _figures(figures) | {"mean_us": round(means[name], 4)}
        for name, figures in sorted(slot_totals(trace).items())
    }


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
