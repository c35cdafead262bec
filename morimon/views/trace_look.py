"""What the Trace screen shows and what a person chose to see of it: values, without drawing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

from morimon.draw.line import Role
from morimon.draw.text import cells, sanitised
from morimon.trace.lanes import timeline
from morimon.trace.model import Bar, Iteration, SlotRow, Timeline, Trace
from morimon.trace.stats import slot_table
from morimon.views.trace_colours import palette
from morimon.views.trace_figures import FigureFilter, Figures, slot_figures
from morimon.views.trace_files import FileRow, GroupRow
from morimon.views.trace_scale import Window
from morimon.views.trace_warps import Warps

Below: TypeAlias = Literal["slots", "threads", "warps", "files"]
"""What stands below the lanes, or instead of them."""


@dataclass(frozen=True)
class Look:
    """One iteration of one process of a trace, its timeline and its slots; `of_all`: the slots of all iterations."""

    trace: Trace
    process: int
    number: int
    timeline: Timeline
    slots: Figures
    of_all: Figures

    @property
    def iteration(self) -> Iteration:
        """The iteration."""
        return self.timeline.iteration

    @property
    def limits(self) -> Window:
        """All of the iteration, a nanosecond at least."""
        it = self.iteration
        return Window(it.start_ns, max(it.end_ns, it.start_ns + 1))

    @cached_property
    def palette(self) -> tuple[Role, ...]:
        """Roles of the slots."""
        return palette(self.trace.slots)

    @cached_property
    def siblings(self) -> tuple[Iteration, ...]:
        """All iterations of this process, in order."""
        return tuple(it for it in self.trace.iterations if it.process == self.process)

    @cached_property
    def bars(self) -> Mapping[int, Bar]:
        """The bars by slot."""
        return {bar.slot: bar for bar in self.timeline.bars}

    @cached_property
    def name_cells(self) -> int:
        """Cells that the longest name of a thread takes."""
        return max((cells(sanitised(name)) for name in self.trace.threads.name), default=0)

    def slot_of(self, code: int | None) -> int | None:
        """The slot, if it is in this iteration, else the first one of the timeline."""
        if code in self.bars:
            return code
        return self.timeline.bars[0].slot if self.timeline.bars else None


def look_at(trace: Trace, process: int, number: int) -> Look:
    """Everything that a first picture needs. Raises KeyError if there is no such iteration."""
    line = timeline(trace, process, number)
    rows: tuple[SlotRow, ...] = slot_table(trace, process, number)
    several = sum(it.process == process for it in trace.iterations) > 1
    here = slot_figures(trace, rows, line)
    return Look(
        trace,
        process,
        number,
        line,
        here,
        slot_figures(trace, slot_table(trace, process), line) if several else here,
    )


@dataclass(frozen=True, slots=True)
class Loading:
    """A file on its way in."""

    name: str
    bytes_done: int = 0
    bytes_total: int = 0


@dataclass(frozen=True, slots=True)
class Here:
    """All that there is to show. `folder` and `mode`: what is followed and how ("" where the status line says it);
    `news`: a file that has come since.
    """

    groups: tuple[GroupRow, ...] = ()
    aside: int = 0
    """JSON files that are no traces."""
    folder: str = ""
    mode: str = ""
    file: FileRow | None = None
    ranks: str = ""
    """Which ranks of the run are here: `5 of 8 ranks, missing 3, 6, 7`."""
    look: Look | None = None
    warps: Warps | None = None
    threads: Figures | None = None
    loading: Loading | None = None
    news: FileRow | None = None
    trouble: str = ""
    """Why the chosen file cannot be shown."""
    now_s: float = 0.0
    """Unix time, for ages."""


@dataclass(frozen=True, slots=True)
class Sorting:
    """A column and a direction."""

    key: str
    descending: bool = False

    def by(self, key: str) -> Sorting:
        """By this column; by the same one again turns round."""
        return Sorting(key, self.key == key and not self.descending)


@dataclass(frozen=True, slots=True)
class TraceState:
    """What the person at the screen chose. `window` None: the whole iteration; `slot` None: the first one."""

    below: Below = "slots"
    slot: int | None = None
    window: Window | None = None
    every: bool = False
    """Figures of all iterations instead of this one's."""
    row: int = 0
    """The row under the cursor in threads, warps and files."""
    span: int | None = None
    """Which of the warp's spans is measured; None: what it did in the chosen slot."""
    sort_slots: Sorting = Sorting("start")
    sort_threads: Sorting = Sorting("total", descending=True)
    filters: tuple[FigureFilter, FigureFilter] = (FigureFilter(), FigureFilter())
    """Of the table of slots and of the table of threads."""

    def with_filter(self, chosen: FigureFilter) -> TraceState:
        """The filter of the table that is in sight replaced."""
        slots, threads = self.filters
        return replace(self, filters=(slots, chosen) if self.below == "threads" else (chosen, threads), row=0)

    @property
    def filter(self) -> FigureFilter:
        """The filter of the table that is in sight."""
        return self.filters[self.below == "threads"]

    @property
    def sorting(self) -> Sorting:
        """The order of the table that is in sight."""
        return self.sort_threads if self.below == "threads" else self.sort_slots


def carried(old: Look | None, new: Look, state: TraceState) -> TraceState:
    """The same choices on another iteration, rank or file: the slot of the same name, the same stretch of it."""
    if old is None or old is new:
        return state
    name = old.trace.slots[state.slot].name if state.slot is not None else None
    slot = next((code for code in new.bars if new.trace.slots[code].name == name), None)
    window = state.window
    if window is not None:
        shift = new.limits.start_ns - old.limits.start_ns
        window = Window(window.start_ns + shift, window.end_ns + shift).within(new.limits)
        window = None if window == new.limits else window
    return replace(state, slot=slot, window=window, span=None)
