"""Small traces to load, and a slow plain summary of a trace that shares no code with the one under test."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.support.synth_trace import Grid, write

DATA = Path(__file__).parent.parent / "data"
Event = dict[str, Any]
FIRST = {
    "v1": "ep_dispatch_copy_to_staging",
    "v1_ll": "ep_dispatch_copy_to_staging",
    "async_ll": "dispatch_async_slot_assign",
    "intranode": "combine_stage_input",
    "intranode_ll": "dispatch_send_tokens",
}


def event(ph: str, name: str | None, ts: Any, tid: Any = 0, pid: Any = 0, **more: Any) -> Event:
    """One event; a name of None leaves the key out."""
    return {**({} if name is None else {"name": name}), "ph": ph, "ts": ts, "pid": pid, "tid": tid, **more}


def span(name: str, start: float, end: float, tid: Any = 0, pid: Any = 0) -> list[Event]:
    """A begin and an end."""
    return [event("B", name, start, tid, pid), event("E", name, end, tid, pid)]


def file_of(
    folder: Path, events: list[Event], name: str = "trace_rank_0_0821_170932.json", **beside: Any
) -> Path:
    """Write events as an object, with what stands beside them."""
    path = folder / name
    path.write_text(json.dumps({"traceEvents": events, **beside}))
    return path


def synth(
    folder: Path, kernel: str, warps: int = 48, iterations: int = 3, seed: int = 0, **more: Any
) -> Path:
    """A synthetic trace in the exporter's layout."""
    path = folder / f"trace_rank_0_0821_17{seed:04d}.json"
    cus = more.pop("cus", max(warps // 8 * 5 // 6, 1))
    write(str(path), kernel, Grid(warps, cus), iterations, seed, **more)
    return path


def events_of(path: Path) -> list[Event]:
    """All events of a file, by the standard library."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    value = json.loads(text)
    result: list[Event] = value["traceEvents"] if isinstance(value, dict) else value
    return result


Span = tuple[str, Any, int, int]  # name, thread, start and end in nanoseconds


def spans_of(events: list[Event]) -> list[Span]:
    """Spans by one stack a thread, in order of start."""
    stacks: dict[Any, list[tuple[str, int]]] = defaultdict(list)
    found: list[Span] = []
    for e in events:
        thread = e.get("pid", 0), e.get("tid", 0)
        if e["ph"] == "X":
            start = round(e["ts"] * 1000)
            found.append((e["name"], thread, start, start + round(e["dur"] * 1000)))
        elif e["ph"] == "B":
            stacks[thread].append((e["name"], round(e["ts"] * 1000)))
        elif e["ph"] == "E":
            stack = stacks[thread]
            at = max((i for i, (name, _) in enumerate(stack) if name == e["name"]), default=None)
            if at is not None:
                found.append((e["name"], thread, stack.pop(at)[1], round(e["ts"] * 1000)))
    return sorted(found, key=lambda s: s[2])


def union(parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merged intervals; touching ones become one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(parts):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def split(spans: list[Span], first: str) -> list[list[Span]]:
    """Iterations: one begins where the first kernel starts after all else has ended."""
    iterations: list[list[Span]] = []
    until, last = 0, first
    for s in spans:
        if not iterations or (s[0] == first and last != first and s[2] >= until):
            iterations.append([])
        iterations[-1].append(s)
        until, last = max(until, s[3]), s[0]
    return iterations


def plain_summary(events: list[Event], first: str) -> dict[str, Any]:
    """The keys of the reference's summary."""
    spans = spans_of(events)
    iterations = []
    for part in split(spans, first):
        zero = min(s[2] for s in part)
        names = sorted({s[0] for s in part})
        iterations.append(
            {
                "start_us": zero / 1000,
                "end_us": max(s[3] for s in part) / 1000,
                "kernels": {
                    name: [
                        [(a - zero) / 1000, (b - zero) / 1000]
                        for a, b in union([(s[2], s[3]) for s in part if s[0] == name])
                    ]
                    for name in names
                },
            }
        )
    per_thread = {}
    for name in sorted({s[0] for s in spans}):
        durations = [s[3] - s[2] for s in spans if s[0] == name]
        per_thread[name] = {
            "mean_us": sum(durations) / len(durations) / 1000,
            "min_us": min(durations) / 1000,
            "max_us": max(durations) / 1000,
            "calls": len(durations),
        }
    threads = len({s[1] for s in spans})
    return {"spans": len(spans), "threads": threads, "iterations": iterations, "per_thread": per_thread}


def open_together(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> float:
    """Time in which both are open ÷ time in which one is, by looking between every two edges."""
    edges = sorted({t for part in a + b for t in part})
    both = either = 0
    for left, right in pairwise(edges):
        in_a, in_b = (any(s <= left and right <= e for s, e in parts) for parts in (a, b))
        both += (right - left) * (in_a and in_b)
        either += (right - left) * (in_a or in_b)
    return both / either
