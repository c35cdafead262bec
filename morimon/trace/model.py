"""What a loaded trace is: frozen values, and nothing that reads or computes.

Times are int64 nanoseconds on the file's own axis (`Trace.origin_ns` must be added for the absolute `ts × 1000`).
Columns are numpy arrays of one length per table; they may be memory-mapped and must not be written to.
Names of files, jobs and kernels are data from outside: never markup, never a format string.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

Family = Literal["v1", "v1_ll", "async_ll", "intranode", "intranode_ll", "unknown"]
Lane = Literal["inter", "intra", "serial", "other"]
Phase = Literal["dispatch", "combine", ""]
Severity = Literal["note", "warning", "damage"]
FindingKind = Literal[
    "damaged",  # the file is no valid JSON, or holds numbers that are none; what could be read is kept
    "half_written",  # the file ends before its events do
    "empty",  # no event that has a duration
    "wrapped_ring",  # a warp's ring of 16 384 events went round: warps cover different windows
    "warp_cap",  # warps from 4096 on were not recorded
    "stale_events",  # a gap of seconds: events before it belong to an earlier run
    "open_spans",  # a begin without its end
    "orphan_ends",  # an end without its begin
    "unsorted",  # a thread's events are not in order of time
    "rejected",  # events that are valid JSON but cannot be used
    "partial_iteration",  # an iteration that lacks a phase or warps
    "no_ep_slots",  # no slot of a known kernel family
    "ambiguous_family",  # the slots belong to more than one kernel family, or to two by version
    "renamed_slots",  # names that a slot has had in other versions were read as today's
    "outlier_iteration",  # above the median of its rank by 5 MAD and by 5 %
    "outlier_warp",  # above the median of its slot and role by 5 MAD and by 5 %
    "several_ranks",  # the file holds more than one rank
]

ROLES = ("", "rdma", "xgmi")
"""What `Threads.role` and `Spans.role` index: no role, a warp of an RDMA block, a warp of an XGMI block."""


class TraceError(ValueError):
    """The room's only error: a sentence that says what is wrong, where, and what to do."""


class NotATraceError(TraceError):
    """The file holds something else than a Chrome trace; a watcher sets it aside quietly."""


class LoadCancelledError(TraceError):
    """The caller's cancellation check said yes while the file was being read."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A situation that was recognised. `text` is the sentence for the user; the rest is for programs.

    `window_ns` is the part of the time axis that holds for all warps (wrapped_ring, stale_events); `line` and `column`
    count from 1 in the decoded text (damage).
    """

    kind: FindingKind
    severity: Severity
    text: str
    count: int = 1
    process: int | None = None
    iteration: int | None = None
    window_ns: tuple[int, int] | None = None
    line: int | None = None
    column: int | None = None


class Slot(msgspec.Struct, frozen=True):
    """A traced phase. `name` is the file's; `canonical` is today's name of a slot that had others (else `name`).

    `short` fits into a bar (`comb_inter`); `order` is the kernel's place in an iteration (-1: not known); `sync` marks
    slots whose bar is the last fragment, the one that gates.
    """

    name: str
    canonical: str
    short: str
    lane: Lane
    phase: Phase
    order: int
    sync: bool = False


class Process(msgspec.Struct, frozen=True):
    """One rank's part of the file (all of it, unless the file says otherwise); `rank` None is shown as "?"."""

    label: str
    rank: int | None
    family: Family

    @property
    def title(self) -> str:
        """How people call it: `rank 3`."""
        return f"rank {'?' if self.rank is None else self.rank}"


class Threads(msgspec.Struct, frozen=True, eq=False):
    """Threads (warps), one row each, ranks in order and numbers in order.

    process int32: index into `Trace.processes`. tid int64: the file's tid (warp), or -1 for one that is no number.
    role int8: index into ROLES, from what the warp logs in the main kernels. name: for the screen, one a thread.
    """

    process: NDArray[np.int32]
    tid: NDArray[np.int64]
    role: NDArray[np.int8]
    name: tuple[str, ...]

    def __len__(self) -> int:
        return self.process.size


class Spans(msgspec.Struct, frozen=True, eq=False):
    """Spans in order of start, ties in file order.

    start_ns, end_ns int64. slot int32: index into `Trace.slots`. thread int32: index into `Trace.threads`.
    iteration int32: number within the span's process, or -1. role int8: index into ROLES; a slot of a kernel that has
    no RDMA and XGMI blocks has none. idle bool: a warp that passed through this slot without work.
    """

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    slot: NDArray[np.int32]
    thread: NDArray[np.int32]
    iteration: NDArray[np.int32]
    role: NDArray[np.int8]
    idle: NDArray[np.bool_]

    def __len__(self) -> int:
        return self.start_ns.size


class Intervals(msgspec.Struct, frozen=True, eq=False):
    """Union of all warps' spans of every slot in every iteration, touching ones merged; in order of iteration, slot
    and start.

    row int64: index into `Trace.iterations`. slot int64: index into `Trace.slots`. start_ns, end_ns int64.
    """

    row: NDArray[np.int64]
    slot: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]


class Iteration(msgspec.Struct, frozen=True, kw_only=True):
    """One dispatch+combine of one process, from its first start to its last end.

    `number` counts from 0, here and in `Spans.iteration`; whatever is shown or written counts from 1 (`ordinal`).
    `missing` says what a partial one lacks ("" when `whole`); a `stale` one was left in the profiler's buffer by an
    earlier run, and statistics of the whole file leave it out. overlap: time with an inter and an intra span open ÷ time
    with either, None without inter spans. barrier_ns: the last dispatch_sync fragment + ep_combine_sync_barrier, or
    combine_barrier, or the recv_transfers; None where the family has none.
    """

    process: int
    number: int
    start_ns: int
    end_ns: int
    whole: bool
    missing: str = ""
    outlier: bool = False
    stale: bool = False
    overlap: float | None = None
    barrier_ns: int | None = None

    @property
    def ordinal(self) -> int:
        """The number as it is shown: from 1."""
        return self.number + 1

    @property
    def duration_ns(self) -> int:
        """From the first start to the last end, nanoseconds."""
        return self.end_ns - self.start_ns


class Clock(msgspec.Struct, frozen=True):
    """What the file says about its zero: `zero_ns` is the reading of clock `source` at ts 0.

    source "kineto": baseTimeNanoseconds, Unix time. source "morimon": CLOCK_MONOTONIC of the machine whose boot is
    `domain` (equal domains share a time axis); `unix_ns` is the Unix time at ts 0, where it was noted.
    """

    source: Literal["kineto", "morimon"]
    zero_ns: int
    domain: str = ""
    unix_ns: int | None = None


class Trace(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A file, read and analysed.

    events: all events met, of any kind. set_aside: kinds that are legal but not drawn -> how many. rejected: reason ->
    how many. family: of all processes, "unknown" if they differ. rank: None if the file names none or several.
    metadata: what stands beside traceEvents, as it is (without large members).
    """

    path: str
    size_bytes: int
    events: int
    set_aside: dict[str, int]
    rejected: dict[str, int]
    open_spans: int
    orphan_ends: int
    origin_ns: int
    family: Family
    rank: int | None
    processes: tuple[Process, ...]
    slots: tuple[Slot, ...]
    threads: Threads
    spans: Spans
    iterations: tuple[Iteration, ...]
    intervals: Intervals
    findings: tuple[Finding, ...]
    clock: Clock | None = None
    metadata: dict[str, Any] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences of the findings that are more than notes."""
        return tuple(f.text for f in self.findings if f.severity != "note")

    @property
    def damaged(self) -> bool:
        """True if something of the file could not be read."""
        return any(f.severity == "damage" for f in self.findings)


class Bar(msgspec.Struct, frozen=True, eq=False):
    """A slot in one iteration. start_ns..end_ns is what is drawn: the hull of `intervals`, for a sync slot the last one.

    row: sub-row of its lane, so that bars of a lane do not overlap. first_ns: when the first warp arrived.
    intervals int64 (n, 2): union of all warps' spans, touching ones merged; their number is the number of fragments.
    warps, idle: warps that logged the slot, and how many of them only passed through.
    """

    slot: int
    row: int
    start_ns: int
    end_ns: int
    first_ns: int
    intervals: NDArray[np.int64]
    warps: int
    idle: int

    @property
    def fragments(self) -> int:
        """Number of separate intervals."""
        return len(self.intervals)


class Timeline(msgspec.Struct, frozen=True, eq=False):
    """What the Gantt of one iteration draws: bars in order of start; `concurrent` int64 (n, 2): hull, a phase, of the
    time in which inter and intra spans are both open; `rows`: sub-rows that each lane needs.
    """

    iteration: Iteration
    bars: tuple[Bar, ...]
    concurrent: NDArray[np.int64]
    rows: dict[Lane, int]


class Warps(msgspec.Struct, frozen=True, eq=False):
    """A lane opened: one row a thread, the one that ends last on top.

    thread int32 (rows): index into `Trace.threads`. spans int64: rows of `Trace.spans`, thread by thread in order of
    start; those of row r are spans[bounds[r] : bounds[r + 1]] (bounds int64, rows + 1).
    """

    thread: NDArray[np.int32]
    bounds: NDArray[np.int64]
    spans: NDArray[np.int64]


class Figures(msgspec.Struct, frozen=True):
    """Statistics of durations, microseconds; percentiles by linear interpolation, std of the population.

    share: total ÷ total of all spans that were looked at.
    """

    calls: int
    total_us: float
    mean_us: float
    min_us: float
    p50_us: float
    p90_us: float
    p99_us: float
    max_us: float
    std_us: float
    share: float


class SlotRow(msgspec.Struct, frozen=True):
    """One slot and role. `working`: the figures without idle passes (None if all are idle); `idle`: how many passes."""

    slot: int
    role: int
    working: Figures | None
    idle: int
    all: Figures


class ThreadTable(msgspec.Struct, frozen=True, eq=False):
    """One row a thread, columns of equal length, times in microseconds.

    total_us is spans' durations added (nested ones count twice); by_slot_us float64 (threads, slots) their parts;
    ratio: total ÷ median of the threads of the same process and role that come to the same slots (of all of that role
    where these are fewer than three); outlier: the thread is one in some slot.
    """

    thread: NDArray[np.int32]
    calls: NDArray[np.int64]
    total_us: NDArray[np.float64]
    mean_us: NDArray[np.float64]
    min_us: NDArray[np.float64]
    p50_us: NDArray[np.float64]
    p90_us: NDArray[np.float64]
    p99_us: NDArray[np.float64]
    max_us: NDArray[np.float64]
    std_us: NDArray[np.float64]
    share: NDArray[np.float64]
    ratio: NDArray[np.float64]
    outlier: NDArray[np.bool_]
    by_slot_us: NDArray[np.float64]


class Alignment(msgspec.Struct, frozen=True):
    """How ranks were put on one time axis.

    offsets_ns: to add to each process' times, in the order of `processes` (file, process). clock: what was used, in
    words ("" where ranks stay unaligned). residual_us: largest disagreement that is left, None if it cannot be told.
    """

    offsets_ns: tuple[int, ...]
    processes: tuple[tuple[int, int], ...]
    clock: str
    residual_us: float | None
    text: str


class FileName(msgspec.Struct, frozen=True):
    """What a trace's file name says. stamp: `mmdd_HHMMSS` or ""; prefix: the name without rank, stamp and suffixes."""

    rank: int | None
    stamp: str
    prefix: str
