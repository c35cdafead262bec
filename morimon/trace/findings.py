"""Situations that a trace is known to get into, each recognised and said in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from morimon.trace.model import Finding
from morimon.trace.source import lines_and_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from morimon.trace.model import Iteration, Process, Slot, Spans, Threads
    from morimon.trace.read import Reading

    Ints = NDArray[np.int64]

RING = 16384
MAX_WARPS = 4096
STALE_NS = 1_000_000_000
SAID = 3  # names or numbers that a sentence lists before it says "and N more"


def of_reading(reading: Reading, path: str) -> Iterator[Finding]:
    """What was wrong with the text."""
    damage = reading.damage
    places = lines_and_columns(path, (offset for offset, _ in damage.values())) if damage else {}
    for reason, (offset, count) in damage.items():
        line, column = places.get(offset, (None, None))  # none: the file has shrunk since
        where = "damaged" if line is None else f"damaged at line {line}, column {column}"
        more = f" ({count} times in all)" if count > 1 else ""
        yield Finding(
            kind="damaged",
            severity="damage",
            text=f"{where}: {reason}{more}",
            count=count,
            line=line,
            column=column,
        )
    if reading.half_written:
        why = reading.flaw or "the closing brackets are missing"
        yield Finding(
            kind="half_written", severity="damage", text=f"half written: {why}; what came before is shown"
        )
    foreseen = {reason: n for reason, n in reading.events.rejected.items() if reason not in reading.damage}
    for reason, count in foreseen.items():
        yield Finding(
            kind="rejected", severity="warning", text=f"{_n(count, 'event')} left out: {reason}", count=count
        )


def of_pairing(names: Sequence[str], opened: Sequence[str], orphans: int, unsorted: int) -> Iterator[Finding]:
    """Begins and ends that have no partner. names: of the threads of the open spans; opened: their slots."""
    if opened:
        what = _listed(sorted({f"{slot!r} in {thread}" for slot, thread in zip(opened, names, strict=True)}))
        n = len(opened)
        text = f"{_n(n, 'span')} {'was' if n == 1 else 'were'} begun and never ended: {what}"
        yield Finding(kind="open_spans", severity="warning", text=text, count=n)
    if orphans:
        text = f"{_n(orphans, 'end event')} without a begin dropped"
        yield Finding(kind="orphan_ends", severity="warning", text=text, count=orphans)
    if unsorted:
        text = f"events of {_n(unsorted, 'thread')} are not in order of time; they were sorted"
        yield Finding(kind="unsorted", severity="warning", text=text, count=unsorted)


def of_ring(
    calls: Ints, first_ns: Ints, first_slot: Ints, last_ns: int, slots: Sequence[Slot], process: int
) -> Iterator[Finding]:
    """A wrapped ring. calls, first_ns, first_slot: events, first time and slot of first span of every thread."""
    full = np.isin(calls, (RING, RING - 1))  # exporters may drop the end event that comes first
    if not full.any():
        return
    opener = min((s.order for s in slots if s.order >= 0), default=-1)
    late = (first_slot >= 0) & (np.array([s.order for s in slots])[first_slot] > opener)
    since = int(first_ns[full].max())
    if not (late & full).any() and since <= int(first_ns.min()):
        return
    text = (
        f"the profiler's ring went round in {_n(int(full.sum()), 'warp')} (exactly {RING} events): warps begin at "
        f"different times, and all of them are covered only from {since / 1000:.2f} to {last_ns / 1000:.2f} µs"
    )
    yield Finding(
        kind="wrapped_ring",
        severity="warning",
        text=text,
        count=int(full.sum()),
        process=process,
        window_ns=(since, last_ns),
    )


def of_warps(tid: Ints, process: int) -> Iterator[Finding]:
    """Warps beyond those that the profiler has room for. tid: of the threads of one process."""
    if tid.size and int(tid.max()) == MAX_WARPS - 1:
        text = f"warps stop at {MAX_WARPS - 1}, the last that the profiler has room for: a larger grid's others are missing"
        yield Finding(kind="warp_cap", severity="warning", text=text, process=process)


def of_gaps(start_ns: Ints, end_ns: Ints, process: int) -> Iterator[Finding]:
    """Seconds without any span: what comes before is an earlier run's. Spans in order of start."""
    idle = start_ns[1:] - np.maximum.accumulate(end_ns)[:-1]
    if not idle.size or int(idle.max()) < STALE_NS:
        return
    at = int(np.flatnonzero(idle >= STALE_NS)[-1])
    since, until = int(start_ns[at + 1]), int(end_ns.max())
    text = (
        f"nothing happens for {idle[at] / 1e9:.1f} s before {since / 1000:.2f} µs: {_n(at + 1, 'span')} before that "
        "are stale, left in the profiler's buffer by an earlier run, and are left out of statistics"
    )
    yield Finding(
        kind="stale_events",
        severity="warning",
        text=text,
        count=at + 1,
        process=process,
        window_ns=(since, until),
    )


def of_slots(slots: Sequence[Slot], processes: Sequence[Process], doubts: Sequence[str]) -> Iterator[Finding]:
    """What the slots and processes leave in doubt."""
    if all(p.family == "unknown" for p in processes):
        text = "no slot of a known EP kernel; iterations are told by repetition"
        yield Finding(kind="no_ep_slots", severity="note", text=text)
    for doubt in dict.fromkeys(filter(None, doubts)):
        yield Finding(kind="ambiguous_family", severity="warning", text=f"kernel family in doubt: {doubt}")
    renamed = [f"{s.name} as {s.canonical}" for s in slots if s.name != s.canonical]
    if renamed:
        text = f"slots of other versions read under today's names: {_listed(renamed)}"
        yield Finding(kind="renamed_slots", severity="note", text=text, count=len(renamed))
    if len(processes) > 1:
        ranks = [p.rank for p in processes if p.rank is not None]
        text = f"{len(processes)} processes in one file" + (
            f", ranks {min(ranks)} to {max(ranks)}" if ranks else ""
        )
        yield Finding(kind="several_ranks", severity="note", text=text, count=len(processes))


def of_iterations(iterations: Sequence[Iteration], process: int) -> Iterator[Finding]:
    """Partial and outlying iterations of one process."""
    mine = [it for it in iterations if it.process == process]
    partial = [it for it in mine if not it.whole]
    if partial:
        what = _listed([f"#{it.ordinal} ({it.missing})" for it in partial])
        text = f"{len(partial)} of {_n(len(mine), 'iteration')} partial: {what}"
        yield Finding(
            kind="partial_iteration",
            severity="warning",
            text=text,
            count=len(partial),
            process=process,
            iteration=partial[0].number if len(partial) == 1 else None,
        )
    slow = [it for it in mine if it.outlier]
    if slow:
        what = _listed([f"#{it.ordinal} ({it.duration_ns / 1000:.2f} µs)" for it in slow])
        text = f"{_n(len(slow), 'iteration')} far longer than the median: {what}"
        yield Finding(kind="outlier_iteration", severity="note", text=text, count=len(slow), process=process)


def of_slow_warps(
    slow: Sequence[tuple[int, int, float]],
    threads: Threads,
    slots: Sequence[Slot],
    processes: Sequence[Process],
) -> Iterator[Finding]:
    """Warps that `stats.slow_warps` picked."""
    if slow:
        several = len(processes) > 1

        def name(thread: int) -> str:
            process = processes[threads.process[thread]]
            who = process.label if process.rank is None else f"rank {process.rank}"
            return f"{who} {threads.name[thread]}" if several else threads.name[thread]

        what = _listed([f"{name(t)} in {slots[s].name} ({times:.2f} × the median)" for t, s, times in slow])
        n = len({t for t, _, _ in slow})
        yield Finding(kind="outlier_warp", severity="note", text=f"{_n(n, 'warp')} slow: {what}", count=n)


def nothing(spans: Spans, set_aside: dict[str, int]) -> Iterator[Finding]:
    """A trace in which nothing has a duration."""
    if not len(spans):
        aside = ", ".join(f"{n} {kind}" for kind, n in set_aside.items())
        text = "no events with a duration" + (f"; set aside: {aside}" if aside else "")
        yield Finding(kind="empty", severity="warning", text=text)


def _n(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _listed(items: Sequence[str]) -> str:
    more = len(items) - SAID
    return ", ".join(items[:SAID]) + (f" and {more} more" if more > 0 else "")
