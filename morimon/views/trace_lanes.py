"""The lanes of an iteration: internode above intranode, serial kernels over their full height, concurrency named.

Slots of a lane that overlap have rows of their own. A bar reaches from a slot's first span to its last; where no warp is
in the slot in between, it is a thin line. The bar of a sync slot is its last part, the one that gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run, merged
from morimon.draw.page import Frame, Spot
from morimon.draw.text import cells, clipped, padded, sanitised
from morimon.trace.model import Bar, Lane, Slot
from morimon.views.trace_look import Look
from morimon.views.trace_paint import PaintRow
from morimon.views.trace_scale import PARTS, Scale

GUTTER = 9
HIDDEN = 0.5
"""A serial kernel of which more than this share runs beside the lanes does not stand over them."""
_ORDER: tuple[Lane, ...] = ("inter", "intra", "other")
_LANE_ROLES: dict[Lane, Role] = {"inter": "inter", "intra": "intra", "serial": "serial", "other": "text"}


@dataclass(frozen=True, slots=True)
class Layout:
    """Which rows the lanes take: a lane and its sub-row each; `standing`: serial kernels cover all of them."""

    rows: tuple[tuple[Lane, int], ...]
    standing: bool

    def rows_of(self, bar: Bar, lane: Lane, stacked: int) -> range:
        """Indices of the rows that a bar stands in; `stacked`: how many serial bars share its time."""
        if lane != "serial" or not self.standing:
            at = self.rows.index((lane, bar.row))
            return range(at, at + 1)
        size = len(self.rows)
        low = bar.row * size // stacked
        return range(low, max((bar.row + 1) * size // stacked, low + 1))


def layout(look: Look) -> Layout:
    """The rows of an iteration."""
    depth, slots = look.timeline.rows, look.trace.slots
    rows = [(lane, row) for lane in _ORDER for row in range(depth.get(lane, 0))]
    serial = [bar for bar in look.timeline.bars if slots[bar.slot].lane == "serial"]
    others = [bar for bar in look.timeline.bars if slots[bar.slot].lane != "serial"]
    standing = len(rows) >= depth.get("serial", 0) and all(_covered(bar, others) <= HIDDEN for bar in serial)
    if serial and not standing:
        rows += [("serial", row) for row in range(depth["serial"])]
    return Layout(tuple(rows), standing)


def _covered(bar: Bar, others: Sequence[Bar]) -> float:
    """The share of a bar during which others are open, the most of them one after the other."""
    length = max(bar.end_ns - bar.start_ns, 1)
    return max(
        ((min(bar.end_ns, other.end_ns) - max(bar.start_ns, other.start_ns)) / length for other in others),
        default=0.0,
    )


def _stacked(bars: Sequence[Bar]) -> dict[int, int]:
    """Slot -> how many rows the serial bars of its time need together."""
    depth: dict[int, int] = {}
    cluster: list[Bar] = []
    until = 0
    for bar in (*sorted(bars, key=lambda bar: bar.start_ns), None):
        if bar is None or (cluster and bar.start_ns >= until):
            rows = max((one.row for one in cluster), default=0) + 1
            depth |= {one.slot: rows for one in cluster}
            cluster, until = [], 0
        if bar is not None:
            cluster.append(bar)
            until = max(until, bar.end_ns)
    return depth


@dataclass(frozen=True, slots=True)
class Picture:
    """Lines with a gutter, and where a click chooses a slot (lines count within the picture)."""

    lines: tuple[Line, ...]
    spots: tuple[Spot, ...]


def lanes(look: Look, scale: Scale, frame: Frame, chosen: int | None, room: int) -> Picture:
    """The lanes in at most `room` lines, rows two or three lines thick where there is room for that."""
    plan = layout(look)
    slots = look.trace.slots
    shown = plan.rows[: max(room, 1)]
    thick = min(max(room // max(len(shown), 1), 1), 5 if len(shown) == 1 else 3)
    bands = [[PaintRow(scale)] for _ in shown]
    serial = [bar for bar in look.timeline.bars if slots[bar.slot].lane == "serial"]
    stacked = _stacked(serial)
    order = [*serial, *(bar for bar in look.timeline.bars if slots[bar.slot].lane != "serial")]
    places: list[tuple[Bar, range]] = []
    for bar in order:
        rows = plan.rows_of(bar, slots[bar.slot].lane, stacked.get(bar.slot, 1))
        rows = range(rows.start, min(rows.stop, len(shown)))
        parts = bar.intervals[-1:] if slots[bar.slot].sync else bar.intervals
        for row in rows:
            bands[row][0].union(parts[:, 0], parts[:, 1], bar.slot)
        places.append((bar, rows))
    for band in bands:
        band += [band[0].copy() for _ in range(thick - 1)]
    for bar, rows in places:
        painted = [line for row in rows for line in bands[row]]
        if painted:
            _label(painted, bar, slots[bar.slot], look, scale, frame.glyphs, bar.slot == chosen)
    lines = [
        merged([_lead(shown, index, part, frame.glyphs), *line.line(look.palette, frame.glyphs)])
        for index, band in enumerate(bands)
        for part, line in enumerate(band)
    ]
    spots = [spot for bar, rows in reversed(places) for spot in _spots(bar, rows, thick, scale)]
    return Picture(tuple(lines), tuple(spots))


def _lead(rows: Sequence[tuple[Lane, int]], index: int, part: int, glyphs: Glyphs) -> Run:
    lane, row = rows[index]
    name = {"other": "slots"}.get(lane, lane) if row == 0 and part == 0 else ""
    return Run(f" {padded(name, GUTTER - 2, ellipsis=glyphs.ellipsis)} ", _LANE_ROLES[lane])


def _spots(bar: Bar, rows: range, thick: int, scale: Scale) -> list[Spot]:
    found = scale.stretch(bar.start_ns, bar.end_ns)
    if found is None:
        return []
    begin, end = found[0] // PARTS + GUTTER, -(-found[1] // PARTS) + GUTTER
    action = f"select_slot({bar.slot})"
    return [Spot(line, begin, end, action) for line in range(rows.start * thick, rows.stop * thick)]


def _label(
    lines: Sequence[PaintRow], bar: Bar, slot: Slot, look: Look, scale: Scale, glyphs: Glyphs, is_chosen: bool
) -> None:
    """The slot's short name and time where its bar has room: along it, or down it where it is tall and narrow."""
    found = scale.stretch(bar.start_ns, bar.end_ns)
    if found is None:
        return
    ends = [line.solid(bar.slot, *found) for line in lines]
    begin, end = max(a for a, _ in ends), min(b for _, b in ends)
    if end <= begin:
        begin, end = ends[0]
        lines = lines[:1]
    room, role = end - begin, look.palette[bar.slot]
    name = "".join(char if cells(char) == 1 else "?" for char in sanitised(slot.short))
    figure = f"{(bar.end_ns - bar.start_ns) / 1000:.1f}"
    marked = f"{glyphs.play} {name}" if is_chosen else name
    top, texts = _texts(marked if len(marked) <= room else name, figure, room, len(lines), glyphs)
    for line, text in enumerate(texts, start=top):
        lines[line].label(begin + (room - len(text)) // 2, text, role)


def _texts(name: str, figure: str, room: int, height: int, glyphs: Glyphs) -> tuple[int, list[str]]:
    """What to write into `height` lines of `room` cells, and on which of them it begins.

    In order of preference: name and time side by side, one above the other, the name's words one above the other, its
    letters so, what fits of the name, nothing.
    """
    middle = (height - 1) // 2
    words = name.split("_")
    if room >= len(name) + len(figure) + 3:
        return middle, [f" {name} {figure} "]
    if room >= len(name):
        return middle, [name, figure] if height > middle + 1 and room >= len(figure) else [name]
    if room >= max(map(len, words)) and height >= len(words):
        return (height - len(words)) // 2, words
    if room >= 1 and height >= len(name):
        return (height - len(name)) // 2, list(name)
    if room >= 3:
        return middle, [clipped(name, room, glyphs.ellipsis) if room > 4 else name[:room]]
    return middle, []


def regions(look: Look, scale: Scale, frame: Frame) -> Line:
    """What the time under the lanes is: concurrent, or serial."""
    width, glyphs = scale.width, frame.glyphs
    text, roles = [" "] * width, ["border"] * width
    serial = [
        (bar.start_ns, bar.end_ns)
        for bar in look.timeline.bars
        if look.trace.slots[bar.slot].lane == "serial"
    ]
    together = [(int(start), int(end)) for start, end in np.asarray(look.timeline.concurrent).tolist()]
    for name, short, spans in (("serial", "", serial), ("concurrent", "conc", together)):
        for start, end in spans:
            found = scale.stretch(start, end)
            if found is None:
                continue
            begin, stop = found[0] // PARTS, max(-(-found[1] // PARTS), found[0] // PARTS + 1)
            drawn = _region(stop - begin, name, short, glyphs)
            text[begin:stop] = drawn
            roles[begin:stop] = [name] * len(drawn)
    runs = [Run(char, role) for char, role in zip(text, roles, strict=True)]  # type: ignore[arg-type]  # names of regions are roles
    return merged([Run(" " * GUTTER), *runs])


def _region(size: int, name: str, short: str, glyphs: Glyphs) -> list[str]:
    begin, rule, end = tuple(glyphs.region)
    if size < 2:
        return [rule] * size
    for label in (f" {name} ", name, short, ""):
        if len(label) + 2 <= size:
            return list(begin + label.center(size - 2, rule) + end)
    raise AssertionError("unreachable: the empty label fits")
