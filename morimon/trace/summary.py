"""The JSON object of one file: what the reference's text says, and what it leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from morimon.trace.group import firsts, stable_order
from morimon.trace.lanes import of_trace
from morimon.trace.model import ROLES
from morimon.trace.stats import slot_table, slot_totals

if TYPE_CHECKING:
    from morimon.trace.model import Figures, Trace


def summary(trace: Trace) -> dict[str, Any]:
    """Plain values, ready for JSON. Times are microseconds.

    spans, threads: how many. iterations: start_us, end_us on the file's axis; kernels: name -> union intervals
    [start, end] from the iteration's start, touching ones merged; process, rank, number, whole, missing, duration_us,
    outlier, overlap, barrier_us. In a file of several ranks they come rank by rank. per_thread: slot name -> mean_us
    (4 decimals), min_us, max_us, calls over all spans of all threads and iterations, and p50_us, p90_us, p99_us,
    std_us, total_us, share. roles: the same per slot and role, idle passes counted apart.
    """
    found = of_trace(trace)
    kernels: list[dict[str, list[list[float]]]] = [{} for _ in trace.iterations]
    zero = [it.start_ns for it in trace.iterations]
    columns = (found.row.tolist(), found.slot.tolist(), found.start_ns.tolist(), found.end_ns.tolist())
    for row, slot, start, end in zip(*columns, strict=True):
        parts = kernels[row].setdefault(trace.slots[slot].name, [])
        parts.append([(start - zero[row]) / 1000, (end - zero[row]) / 1000])
    return {
        "file": trace.path,
        "family": trace.family,
        "rank": trace.rank,
        "ranks": [p.rank for p in trace.processes],
        "spans": len(trace.spans),
        "threads": len(trace.threads),
        "events": trace.events,
        "origin_us": trace.origin_ns / 1000,
        "iterations": [
            {
                "process": it.process,
                "rank": trace.processes[it.process].rank,
                "number": it.number,
                "start_us": it.start_ns / 1000,
                "end_us": it.end_ns / 1000,
                "duration_us": it.duration_ns / 1000,
                "whole": it.whole,
                "missing": it.missing,
                "outlier": it.outlier,
                "overlap": it.overlap,
                "barrier_us": None if it.barrier_ns is None else it.barrier_ns / 1000,
                "kernels": dict(sorted(kernels[row].items())),
            }
            for row, it in enumerate(trace.iterations)
        ],
        "per_thread": _per_thread(trace),
        "roles": [
            {
                "slot": trace.slots[row.slot].name,
                "role": ROLES[row.role],
                "lane": trace.slots[row.slot].lane,
                "phase": trace.slots[row.slot].phase,
                "idle": row.idle,
                "working": row.working and _figures(row.working),
                "all": _figures(row.all),
            }
            for row in slot_table(trace)
        ],
        "set_aside": trace.set_aside,
        "rejected": trace.rejected,
        "open_spans": trace.open_spans,
        "orphan_ends": trace.orphan_ends,
        "warnings": list(trace.warnings),
        "findings": [msgspec.to_builtins(f) for f in trace.findings],
    }


def _per_thread(trace: Trace) -> dict[str, dict[str, Any]]:
    spans = trace.spans
    # The mean is that of the file's own microsecond values, as the reference takes it: where the exact mean lies half
    # way between two of four decimals, the last digit is then the reference's too.
    duration_us = spans.end_ns / 1000 - spans.start_ns / 1000
    order, slot = stable_order(spans.slot)
    parts = np.split(duration_us[order], np.flatnonzero(firsts(slot))[1:])
    means = {trace.slots[code].name: float(np.mean(part)) for code, part in zip(np.unique(slot).tolist(), parts, strict=False)}
    return {
        name: _figures(figures) | {"mean_us": round(means[name], 4)} for name, figures in sorted(slot_totals(trace).items())
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

