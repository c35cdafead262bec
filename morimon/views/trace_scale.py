"""Time on a row of cells: which part of a cell an instant falls into, round ticks, zooming and panning.

Instants are nanoseconds on the trace's axis. A cell has eight parts, as many as block glyphs can show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PARTS = 8
SHORTEST_NS = 100
"""The window never becomes shorter: ten ticks of the exporters' clocks."""
TICK_CELLS = 10
"""Least distance of two figures on the axis."""


class Window(NamedTuple):
    """The stretch of time in sight, start_ns < end_ns."""

    start_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        """How much time is in sight."""
        return self.end_ns - self.start_ns

    def zoomed(self, factor: float, around_ns: int, limits: Window) -> Window:
        """A window `factor` times shorter in which `around_ns` keeps its place, within the limits."""
        length = min(
            max(round(self.length_ns / factor), min(SHORTEST_NS, limits.length_ns)), limits.length_ns
        )
        around_ns = min(max(around_ns, self.start_ns), self.end_ns)
        share = (around_ns - self.start_ns) / self.length_ns
        start = round(around_ns - share * length)
        return Window(start, start + length).within(limits)

    def panned(self, by_ns: int, limits: Window) -> Window:
        """The window moved, as far as the limits allow."""
        return Window(self.start_ns + by_ns, self.end_ns + by_ns).within(limits)

    def within(self, limits: Window) -> Window:
        """The window pushed into the limits."""
        length = min(self.length_ns, limits.length_ns)
        start = min(max(self.start_ns, limits.start_ns), limits.end_ns - length)
        return Window(start, start + length)

    def around(self, start_ns: int, end_ns: int, limits: Window, margin: float = 0.08) -> Window:
        """A window that shows a stretch whole, with some room beside it."""
        more = round((end_ns - start_ns) * margin) + SHORTEST_NS
        return Window(start_ns - more, end_ns + more).within(limits)


@dataclass(frozen=True, slots=True)
class Scale:
    """A window on `width` cells."""

    window: Window
    width: int

    def parts(self, times_ns: Any) -> NDArray[np.int64]:
        """Which part of a cell instants fall into, the nearest edge; 0 is the window's start. Not cut at the window."""
        per_ns = self.width * PARTS / self.window.length_ns
        shares = (np.asarray(times_ns, np.int64) - self.window.start_ns) * per_ns
        found: NDArray[np.int64] = np.rint(shares).astype(np.int64)
        return found

    def stretch(self, start_ns: int, end_ns: int) -> tuple[int, int] | None:
        """First and last+1 part of a span in sight, one part at least; None if it is out of sight."""
        if end_ns < self.window.start_ns or start_ns > self.window.end_ns:
            return None
        first, last = self.parts((start_ns, end_ns)).tolist()
        total = self.width * PARTS
        first = min(max(first, 0), total - 1)
        return first, min(max(last, first + 1), total)

    def time_ns(self, cell: float) -> int:
        """The instant at the left edge of a cell."""
        return self.window.start_ns + round(cell / self.width * self.window.length_ns)


class Unit(NamedTuple):
    """A unit of time for axes: its name and its length."""

    name: str
    ns: int


MICROS = Unit("µs", 1_000)
UNITS = (MICROS, Unit("ms", 1_000_000), Unit("s", 1_000_000_000))


def unit_for(length_ns: int) -> Unit:
    """Microseconds below 10 ms, milliseconds below 10 s."""
    return next((unit for unit in UNITS if length_ns < 10_000 * unit.ns), UNITS[-1])


def ticks(scale: Scale, zero_ns: int, unit: Unit) -> list[tuple[int, str]]:
    """Cells and figures of round instants in sight, counted from `zero_ns`."""
    wanted = scale.window.length_ns * TICK_CELLS / max(scale.width, 1)
    power = 10 ** max(len(str(int(max(wanted, 1)))) - 1, 0)
    step = next(m * power for m in (1, 2, 5, 10, 20) if m * power >= wanted)
    decimals = next((d for d in range(10) if step * 10**d % unit.ns == 0), 9)
    first = -((zero_ns - scale.window.start_ns) // step) * step
    found = []
    for at in range(first, scale.window.end_ns - zero_ns + 1, step):
        cell = int(scale.parts(at + zero_ns)) // PARTS
        if 0 <= cell < scale.width:
            found.append((cell, f"{at / unit.ns:.{decimals}f}"))
    return found
