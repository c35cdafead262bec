"""A file to a Trace: read, pair, tell ranks, families, iterations and roles, and say what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from morimon.trace import families, findings, iterations, roles
from morimon.trace.group import above_the_others
from morimon.trace.iterations import NONE
from morimon.trace.lanes import hull, in_barriers, intervals_of, overlap
from morimon.trace.model import Clock, Intervals, Iteration, Process, Spans, Threads, Trace
from morimon.trace.names import file_name, rank_of
from morimon.trace.pair import pair
from morimon.trace.partial import Halves, Rows
from morimon.trace.read import EXACT_US, read
from morimon.trace.source import Source
from morimon.trace.stats import slow_warps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from morimon.trace.events import Events, Id
    from morimon.trace.model import Finding, Slot
    from morimon.trace.pair import Paired
    from morimon.trace.read import Reading

    Ints = NDArray[np.int64]

KINETO = {"baseTimeNanoseconds", "distributedInfo", "deviceProperties", "schemaVersion"}
LARGEST_MEMBER = 1 << 16


def load(
    path: str | Path,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Trace:
    """Read and analyse a Chrome trace (object or array; plain, gzip, zstd; UTF-8 or UTF-16), in pieces.

    progress(bytes_done, total) hears of the file's bytes as they are read; cancelled() is asked as often. Raises
    TraceError (unreadable or empty file), NotATraceError (something else than a trace), LoadCancelledError.
    """
    source = Source(path, progress, cancelled)
    reading = read(source)
    events = reading.events
    columns = events.columns()
    origin_ns = 0
    if len(columns) and int(np.abs(columns.ts_ns).max()) >= EXACT_US * 1000:
        origin_ns = int(columns.ts_ns.min())
        columns.ts_ns -= origin_ns
    if (
        columns.duration_ns is not None
        and int((columns.ts_ns // 2 + columns.duration_ns // 2).max()) >= 1 << 61
    ):
        columns.duration_ns = np.minimum(columns.duration_ns, (1 << 62) - np.maximum(columns.ts_ns, 0))
    paired = pair(columns, events.names.get(""))
    calls = np.bincount(columns.thread, minlength=len(events.threads.ids))
    open_, orphans = (
        Halves([table[c] for c in columns.name[at].tolist()], columns.thread[at], columns.ts_ns[at])
        for table in (events.names.table,)
        for at in (paired.open, paired.orphans)
    )
    del columns
    return _Analysis(str(path), source, reading, paired, calls, origin_ns).trace(open_, orphans)


class _Analysis:
    """Carries what the steps share; `trace` is the result."""

    def __init__(
        self, path: str, source: Source, reading: Reading, paired: Paired, calls: Ints, origin_ns: int
    ) -> None:
        self.path, self.source, self.reading, self.paired, self.origin_ns = (
            path,
            source,
            reading,
            paired,
            origin_ns,
        )
        events = reading.events
        self.ranks = list(_processes(events, reading.metadata, file_name(path).rank))
        word = "thread" if KINETO & reading.metadata.keys() else "warp"
        self.threads, renumbered, self.pid = _threads(events, self.ranks, word)
        self.thread = renumbered[paired.thread]
        self.renumbered = renumbered
        self.calls = np.zeros(calls.size, np.int64)
        self.calls[renumbered] = calls
        self.slots, code = _slots(events.names.table, paired)
        self.slot = code[paired.name]
        self.duration = paired.end_ns - paired.start_ns
        n = self.duration.size
        self.iteration = np.zeros(n, np.int32)
        self.role = np.zeros(n, np.int8)
        self.idle = np.zeros(n, bool)
        self.processes: list[Process] = []
        self.doubts: list[str] = []
        self.iterations: list[Iteration] = []
        self.found: list[Finding] = []

    def trace(self, open_: Halves, orphans: Halves) -> Trace:
        open_, orphans = (h._replace(thread=self.renumbered[h.thread]) for h in (open_, orphans))
        paired, events = self.paired, self.reading.events
        per_span = self.threads.process[self.thread]
        bounds = np.bincount(per_span, minlength=len(self.ranks)).cumsum()
        by_process = np.argsort(per_span, kind="stable") if len(self.ranks) > 1 else np.arange(per_span.size)
        for p, (label, rank, _) in enumerate(self.ranks):
            mine = by_process[bounds[p - 1] if p else 0 : bounds[p]]
            self._one(p, label, rank, mine)
        spans = Spans(
            paired.start_ns, paired.end_ns, self.slot, self.thread, self.iteration, self.role, self.idle
        )
        self._iterations(per_span, open_, orphans)
        names = [self.threads.name[t] for t in open_.thread.tolist()]
        self.found[:0] = [
            *findings.of_reading(self.reading, self.path),
            *findings.of_pairing(names, open_.slot, paired.orphans.size, paired.unsorted),
        ]
        if len(spans):
            self.found += findings.of_slots(self.slots, self.processes, self.doubts)
        self.found += findings.nothing(spans, dict(events.set_aside))
        for p in range(len(self.processes)):
            self.found += findings.of_iterations(self.iterations, p)
        ranks = {p.rank for p in self.processes}
        all_families = {p.family for p in self.processes}
        trace = Trace(
            path=self.path,
            size_bytes=self.source.size_bytes,
            events=events.count,
            set_aside=dict(events.set_aside),
            rejected=dict(events.rejected),
            open_spans=paired.open.size,
            orphan_ends=paired.orphans.size,
            origin_ns=self.origin_ns,
            family=all_families.pop() if len(all_families) == 1 else "unknown",
            rank=ranks.pop() if len(ranks) == 1 else None,
            processes=tuple(self.processes),
            slots=self.slots,
            threads=self.threads,
            spans=spans,
            iterations=tuple(self.iterations),
            intervals=self.intervals,
            findings=(),
            clock=_clock(self.reading.metadata),
            metadata=_small(self.reading.metadata),
        )
        self.found += findings.of_slow_warps(slow_warps(trace), self.threads, self.slots, self.processes)
        return replace(trace, findings=tuple(self.found))

    def _one(self, p: int, label: str, rank: int | None, mine: Ints) -> None:
        """Family, iterations, roles and findings of one process, whose spans are `mine`."""
        start, end, slot, thread = (
            self.paired.start_ns[mine],
            self.paired.end_ns[mine],
            self.slot[mine],
            self.thread[mine],
        )
        counts = np.bincount(slot, minlength=len(self.slots)).tolist()
        logged: dict[str, int] = {}
        for s, n in zip(self.slots, counts, strict=True):
            if n:
                logged[s.canonical] = logged.get(s.canonical, 0) + n
        verdict = families.family(logged)
        self.doubts.append(verdict.doubt)
        if not mine.size:
            self.processes.append(Process(label, rank, verdict.family))
            return
        self.iteration[mine] = iterations.number(
            iterations.Lines(start, end, slot, thread, self.slots, self.pid, self.threads.name)
        )
        found = roles.assign(self.duration[mine], slot, thread, self.threads.tid, self.slots)
        self.threads.role[:] = np.maximum(self.threads.role, found.role)
        self.role[mine], self.idle[mine] = found.span_role, found.idle
        self.processes.append(Process(label, rank, verdict.family))
        first = np.full(len(self.threads), -1)
        first[thread[::-1]] = np.arange(mine.size)[::-1]
        members = np.flatnonzero(first >= 0)
        first = first[members]
        self.found += findings.of_ring(
            self.calls[members], start[first], slot[first], int(end.max()), self.slots, p
        )
        if verdict.family != "unknown":  # other tools' traces may have many threads, and pauses
            self.found += findings.of_warps(self.threads.tid[members], p)
            self.found += findings.of_gaps(start, end, p)

    def _iterations(self, per_span: NDArray[np.int32], open_: Halves, orphans: Halves) -> None:
        """The table of iterations of all processes, and which of them are whole."""
        if not per_span.size:
            nothing = np.zeros(0, np.int64)
            self.intervals = Intervals(nothing, nothing, nothing, nothing)
            return
        many = int(self.iteration.max()) + 1
        none = self.iteration < 0
        kept = np.flatnonzero(~none) if none.any() else slice(None)
        key = per_span[kept].astype(np.int64) * many + self.iteration[kept]
        occurs = np.bincount(key) > 0
        present = np.flatnonzero(occurs)
        row = np.full(per_span.size, NONE)
        row[kept] = (np.cumsum(occurs) - 1)[key]
        process, number = np.divmod(present, many)
        for p in range(len(self.processes)):  # numbers without spans (a boundary in a gap) are closed up
            mine = process == p
            number[mine] = np.arange(mine.sum())
        self.iteration[kept] = number[row[kept]]
        rows = present.size
        start, end = self.paired.start_ns[kept], self.paired.end_ns[kept]
        intervals = intervals_of(row[kept], self.slot[kept], start, end, self.slots)
        self.intervals = intervals
        start, end = hull(intervals, rows)
        missing = Rows(
            row,
            self.slot,
            self.thread,
            self.paired.start_ns,
            process=process,
            first_ns=start,
            last_ns=end,
            slots=self.slots,
            family=[p.family for p in self.processes],
            process_of=self.threads.process,
        ).missing(open_, orphans)
        if self.reading.half_written:
            for last in np.flatnonzero(np.append(process[1:] != process[:-1], True)).tolist():
                missing[last] = missing[last] or "the file ends within it"
        whole = np.array([not text for text in missing])
        stale = self._stale(process, start)
        outlier = np.zeros(rows, bool)
        for p in range(len(self.processes)):
            mine = np.flatnonzero((process == p) & whole & ~stale)
            outlier[mine] = above_the_others((end - start)[mine])
        table = zip(
            process.tolist(),
            number.tolist(),
            start.tolist(),
            end.tolist(),
            whole.tolist(),
            missing,
            outlier.tolist(),
            stale.tolist(),
            overlap(intervals, self.slots, rows),
            in_barriers(intervals, self.slots, rows),
            strict=True,
        )
        keys = (
            "process",
            "number",
            "start_ns",
            "end_ns",
            "whole",
            "missing",
            "outlier",
            "stale",
            "overlap",
            "barrier_ns",
        )
        self.iterations += [Iteration(**dict(zip(keys, entry, strict=True))) for entry in table]

    def _stale(self, process: Ints, start: Ints) -> NDArray[np.bool_]:
        """Iterations that an earlier run left: those that begin before the gap that was found."""
        result = np.zeros(process.size, bool)
        for finding in self.found:
            if finding.kind == "stale_events" and finding.window_ns:
                result |= (process == finding.process) & (start < finding.window_ns[0])
        return result


def _processes(
    events: Events, metadata: dict[str, Any], named: int | None
) -> Iterator[tuple[str, int | None, list[Id]]]:
    """(label, rank, pids) of every process that is one rank, in order of rank. named: the file name's rank."""
    pids = list(dict.fromkeys(pid for pid, _ in events.threads.ids))
    labels = {pid: events.process_names.get(pid, "") for pid in pids}
    told = {pid: rank_of(label) for pid, label in labels.items()}
    if len(pids) < 2 or KINETO & metadata.keys():
        rank = named if named is not None else _rank_in(metadata)
        if rank is None and len(pids) == 1:
            rank = told[pids[0]]
        yield labels[pids[0]] if len(pids) == 1 else "", rank, pids
        return
    if not any(rank is not None for rank in told.values()) and named is None:
        told = {pid: pid if isinstance(pid, int) and 0 <= pid < 1 << 16 else None for pid in pids}
    order = {pid: (told[pid] is None, told[pid] or 0, isinstance(pid, str), pid) for pid in pids}
    for pid in sorted(pids, key=lambda pid: order[pid]):
        yield labels[pid] or f"pid {pid}", told[pid], [pid]


def _rank_in(metadata: dict[str, Any]) -> int | None:
    for member in ("distributedInfo", "morimon"):
        info = metadata.get(member)
        if isinstance(info, dict) and isinstance(rank := info.get("rank"), int):
            return rank
    return None


def _clock(metadata: dict[str, Any]) -> Clock | None:
    own = metadata.get("morimon")
    if (
        isinstance(own, dict)
        and isinstance(clock := own.get("clock"), dict)
        and isinstance(clock.get("zero_ns"), int)
    ):
        unix = clock.get("unix_ns")
        return Clock(
            "morimon", clock["zero_ns"], str(clock.get("domain", "")), unix if isinstance(unix, int) else None
        )
    base = metadata.get("baseTimeNanoseconds")
    return (
        Clock("kineto", base, unix_ns=base) if isinstance(base, int) and not isinstance(base, bool) else None
    )


def _small(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if len(repr(value)) <= LARGEST_MEMBER}


def _threads(
    events: Events, ranks: Sequence[tuple[str, int | None, list[Id]]], word: str
) -> tuple[Threads, NDArray[np.int32], NDArray[np.int32]]:
    """Threads in order of process and number, the new number of every old one, and a code of the pid of every new."""
    of_pid = {pid: p for p, (_, _, pids) in enumerate(ranks) for pid in pids}
    ids = events.threads.ids
    order = sorted(
        range(len(ids)),
        key=lambda t: (of_pid[ids[t][0]], isinstance(ids[t][1], str), ids[t][1], str(ids[t][0])),
    )
    renumbered = np.empty(len(ids), np.int32)
    renumbered[order] = np.arange(len(ids))
    tids = [ids[t][1] for t in order]
    plain = [tid if isinstance(tid, int) and 0 <= tid < 1 << 62 else -1 for tid in tids]
    names = tuple(
        events.thread_names.get(t) or (f"{word} {tid}" if isinstance(tid, int) else tid)
        for t, tid in zip(order, tids, strict=True)
    )
    process = np.array([of_pid[ids[t][0]] for t in order], np.int32)
    pids = {pid: code for code, pid in enumerate(of_pid)}
    pid = np.array([pids[ids[t][0]] for t in order], np.int32)
    threads = Threads(process, np.array(plain, np.int64), np.zeros(len(ids), np.int8), names)
    return threads, renumbered, pid


def _slots(names: Sequence[str], paired: Paired) -> tuple[tuple[Slot, ...], NDArray[np.int32]]:
    """Slots in order of an iteration, unknown ones after by first start; and the new code of every name."""
    slots = [families.slot(name) for name in names]
    first = np.full(len(names), paired.name.size)
    first[paired.name[::-1]] = np.arange(paired.name.size)[::-1]
    seen = [i for i in range(len(names)) if first[i] < paired.name.size]
    order = sorted(seen, key=lambda i: (slots[i].order < 0, slots[i].order, slots[i].lane, int(first[i])))
    code = np.full(len(names), -1, np.int32)
    code[order] = np.arange(len(order))
    return tuple(slots[i] for i in order), code
