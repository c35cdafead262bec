"""A trace as a picture: one Gantt an iteration, a few to a page, for reports and pull requests.

Serial kernels stand over the whole height, internode and intranode spans in lanes of their own with as many rows as
they need, the time in which both are open shaded. Iterations share one time scale unless one is far longer. Needs
matplotlib, which is imported when a picture is asked for.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morimon.report.trace_colours import colour_of, ink_on
from morimon.report.trace_text import detailed, heading, safe
from morimon.trace.lanes import timeline
from morimon.trace.names import stem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from morimon.trace.model import Bar, Iteration, Lane, Timeline, Trace

PER_PAGE, MOST_RANKS_PER_PAGE = 5, 8
WIDTH_IN, DPI = 16.0, 120
ROW_IN, LEAST_LANES_IN = 0.42, 1.3
LETTER_PT, EM = 7.5, 0.68
TOP_IN, BOTTOM_IN = 0.5, 0.4
"""Room above an iteration's lanes for its title and labels, and below for its axis."""
LEFT, WIDE, COLUMNS = 0.045, 0.945, 5
WARNING = "#a01818"
SERIAL_WHITE, GAP_WHITE = 0.25, 0.55
"""Serial kernels stand back behind the lanes; a bar is palest where none of its threads is in the slot."""
_LANES: tuple[tuple[Lane, str], ...] = (("inter", "inter"), ("intra", "intra"), ("other", ""))


class PictureError(Exception):
    """Why there is no picture: a sentence."""


def target(trace_path: str, name: str = "") -> Path:
    """Where the picture goes: `<stem>.png` beside the trace, or `name`, which is resolved there if it is relative."""
    return Path(trace_path).parent / (name or f"{stem(trace_path)}.png")


def draw(trace: Trace, path: Path, *, every: bool = False) -> list[Path]:
    """Write the picture's pages (`x.png`, `x-2.png`, …) and say where they are. Raises PictureError.

    Of very many iterations those are drawn that the text shows kernel by kernel; `every` draws them all.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PictureError(
            "Pictures need matplotlib: pip install 'morimon[plot]', or pip install matplotlib."
        ) from None
    if not trace.iterations:
        raise PictureError(f"{trace.path}: no spans, so there is nothing to draw.")
    chosen = detailed(trace.iterations, every=every)
    shared = _shared_scale(chosen)
    pages = _pages(chosen, len(trace.processes))
    written = []
    for number, iterations in enumerate(pages, start=1):
        lines = [timeline(trace, iteration.process, iteration.number) for iteration in iterations]
        about = f"page {number} of {len(pages)}" if len(pages) > 1 else ""
        if len(chosen) < len(trace.iterations):
            about += f", {len(chosen)} of {len(trace.iterations)} iterations"
        figure = _Page(trace, lines, shared, about).drawn(Figure)
        file = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        try:
            with warnings.catch_warnings():  # of characters that the font lacks: they are drawn as boxes
                warnings.filterwarnings("ignore", message="Glyph ", category=UserWarning)
                figure.savefig(file, dpi=DPI)
        except (OSError, ValueError) as error:
            raise PictureError(f"{file}: the picture cannot be written: {error}") from error
        written.append(file)
    return written


def _pages(iterations: Sequence[Iteration], processes: int) -> list[list[Iteration]]:
    """A few iterations a page; in a file of several ranks those of one number stand together, to be compared."""
    if processes == 1:
        return [list(iterations[begin : begin + PER_PAGE]) for begin in range(0, len(iterations), PER_PAGE)]
    pages = []
    for number in sorted({iteration.number for iteration in iterations}):
        ranks = [iteration for iteration in iterations if iteration.number == number]
        pages += [
            ranks[begin : begin + MOST_RANKS_PER_PAGE] for begin in range(0, len(ranks), MOST_RANKS_PER_PAGE)
        ]
    return pages


def _shared_scale(iterations: Sequence[Iteration]) -> float | None:
    """The length of the common time axis (µs), or None where the longest would dwarf the others."""
    longest = max(iteration.duration_ns for iteration in iterations) / 1000
    usual = sorted(iteration.duration_ns for iteration in iterations)[len(iterations) // 2] / 1000
    return longest if longest <= 2 * usual else None


@dataclass
class _Page:
    trace: Trace
    lines: Sequence[Timeline]
    scale_us: float | None
    page: str

    def drawn(self, figure_class: Any) -> Any:
        lanes = [max(self._rows(line) * ROW_IN, LEAST_LANES_IN) for line in self.lines]
        used = sorted({bar.slot for line in self.lines for bar in line.bars})[:40]
        title = self._title()
        head_in = 0.22 * len(title) + 0.22 * -(-len(used) // COLUMNS) + 0.2
        height = sum(lanes) + (TOP_IN + BOTTOM_IN) * len(lanes) + head_in + 0.1
        figure = figure_class(figsize=(WIDTH_IN, height))
        top = 1 - 0.1 / height
        for index, text in enumerate(title):
            weight = "bold" if index == 0 else "normal"
            colour = "black" if index < 2 else WARNING
            figure.text(LEFT, top, text, va="top", fontsize=8.5 if index else 11, weight=weight, color=colour)
            top -= 0.22 / height
        self._legend(figure, used, top)
        at = 1 - head_in / height
        for line, inches in zip(self.lines, lanes, strict=True):
            at -= (TOP_IN + inches) / height
            _Gantt(
                self.trace, line, figure.add_axes((LEFT, at, WIDE, inches / height)), self.scale_us, inches
            ).draw()
            at -= BOTTOM_IN / height
        return figure

    def _rows(self, line: Timeline) -> int:
        return min(sum(line.rows.get(lane, 0) for lane, _ in _LANES), 30)

    def _title(self) -> list[str]:
        lines = [" · ".join(part for part in (heading(self.trace), self.page) if part)]
        gate = next((f", of {slot.name} its last part" for slot in self.trace.slots if slot.sync), "")
        lines.append(
            f"bars: first start to last end over all threads{gate}, paler where none is in it; µs from the iteration's start"
        )
        warnings = [safe(text) for text in self.trace.warnings[:3]]
        return [*lines, *(f"! {text if len(text) < 200 else text[:199] + '…'}" for text in warnings)]

    def _legend(self, figure: Any, used: Sequence[int], top: float) -> None:
        from matplotlib.patches import Patch

        patches = [
            Patch(color=colour_of(self.trace.slots[code], code), label=safe(self.trace.slots[code].name)[:44])
            for code in used
        ]
        figure.legend(
            handles=patches, loc="upper left", bbox_to_anchor=(LEFT - 0.003, top), ncol=COLUMNS, fontsize=8, frameon=False,
            borderaxespad=0, handlelength=1.2, columnspacing=1.6,
        )  # fmt: skip


class _Gantt:
    """One iteration in its axes: lanes from the top, row 0 of a lane highest."""

    def __init__(
        self, trace: Trace, line: Timeline, axes: Any, scale_us: float | None, height_in: float
    ) -> None:
        self.trace, self.line, self.axes = trace, line, axes
        self.length_us = max(line.iteration.duration_ns / 1000, 0.01)
        self.limit_us = 1.01 * (scale_us or self.length_us)
        self.first_row: dict[Lane, int] = {}
        rows = 0
        for lane, _ in _LANES:
            if line.rows.get(lane):
                self.first_row[lane] = rows
                rows += line.rows[lane]
        self.rows = max(rows, 1)
        self.points_per_us = WIDTH_IN * WIDE * 72 / self.limit_us
        self.height_pt = height_in * 72
        self.points_per_row = height_in * 72 / (self.rows + 0.5)
        self.callouts: list[tuple[float, float, str]] = []

    def draw(self) -> None:
        axes, iteration = self.axes, self.line.iteration
        axes.set_xlim(0, self.limit_us)
        axes.set_ylim(self.rows + 0.05, -0.45)
        axes.set_yticks([])
        axes.tick_params(labelsize=8)
        axes.grid(axis="x", linestyle="--", alpha=0.3)
        axes.set_axisbelow(True)
        for spine in ("top", "right", "left"):
            axes.spines[spine].set_visible(False)
        axes.set_title(
            self._title(),
            fontsize=9.5,
            weight="bold",
            loc="left",
            pad=15,
            color="black" if iteration.whole else WARNING,
        )
        if not iteration.whole:
            axes.axvspan(
                0, self.length_us, facecolor="none", edgecolor=WARNING, hatch="//", alpha=0.12, zorder=0
            )
        self._concurrent()
        self._lane_names()
        for bar in self.line.bars:
            self._bar(bar)
        self._call_out()

    def _title(self) -> str:
        iteration = self.line.iteration
        process = self.trace.processes[iteration.process]
        who = f"{process.title}, " if len(self.trace.processes) > 1 else ""
        parts = [
            f"{who}iteration {iteration.ordinal}",
            f"{iteration.duration_ns / 1000:.1f} µs  [{iteration.start_ns / 1000:.1f} – {iteration.end_ns / 1000:.1f}]",
        ]
        if iteration.overlap is not None and self.line.rows.get("intra"):
            parts.append(f"overlap inter∥intra {100 * iteration.overlap:.0f} %")
        if iteration.barrier_ns is not None:
            parts.append(f"in barriers {iteration.barrier_ns / 1000:.1f} µs")
        if iteration.outlier:
            parts.append("outlier")
        if iteration.stale:
            parts.append("stale: an earlier run's")
        if not iteration.whole:
            parts.append(f"PARTIAL: {safe(iteration.missing)}")
        return "   ".join(parts)

    def _concurrent(self) -> None:
        for begin, end in ((self.line.concurrent - self.line.iteration.start_ns) / 1000).tolist():
            self.axes.axvspan(begin, end, color="#7a7a7a", alpha=0.13, zorder=0, linewidth=0)
            self.axes.text(
                (begin + end) / 2,
                -0.43,
                "concurrent",
                ha="center",
                va="top",
                fontsize=7,
                style="italic",
                color="#555555",
            )

    def _lane_names(self) -> None:
        for lane, name in _LANES:
            if lane in self.first_row:
                middle = self.first_row[lane] + self.line.rows[lane] / 2
                self.axes.text(
                    -0.004 * self.limit_us,
                    middle,
                    name,
                    ha="right",
                    va="center",
                    fontsize=8.5,
                    color="#444444",
                )

    def _bar(self, bar: Bar) -> None:
        slot = self.trace.slots[bar.slot]
        begin = (bar.start_ns - self.line.iteration.start_ns) / 1000
        length = (bar.end_ns - bar.start_ns) / 1000
        if slot.lane == "serial":
            height = self.rows / self.line.rows["serial"]
            top = bar.row * height
        else:
            height, top = 1.0, float(self.first_row[slot.lane] + bar.row)
        in_parts = bar.fragments > 1 and not slot.sync
        colour = colour_of(slot, bar.slot, white=SERIAL_WHITE if slot.lane == "serial" else 0.0)
        whole = {"left": begin, "height": height * 0.9, "edgecolor": "white", "linewidth": 0.5}
        order = 2 if slot.lane == "serial" else 3
        self.axes.barh(
            top + height / 2, max(length, 0.7 / self.points_per_us), zorder=order,
            color=colour_of(slot, bar.slot, white=GAP_WHITE) if in_parts else colour, **whole,
        )  # fmt: skip
        if in_parts:
            starts, ends = ((bar.intervals - self.line.iteration.start_ns) / 1000).T
            parts = list(zip(starts, ends - starts, strict=True))
            self.axes.broken_barh(
                parts, (top + height * 0.05, height * 0.9), color=colour, linewidth=0, zorder=order
            )
        hidden = self._hidden(bar) if slot.lane == "serial" else 0.0
        self._label(safe(slot.short), length, begin + hidden, length - hidden, top, height, colour)

    def _hidden(self, bar: Bar) -> float:
        """How much of a serial bar's beginning lies behind bars of the lanes (µs)."""
        lanes = (other for other in self.line.bars if self.trace.slots[other.slot].lane != "serial")
        ends = [
            other.end_ns
            for other in lanes
            if other.start_ns < bar.end_ns and bar.start_ns < other.end_ns < bar.end_ns
        ]
        return max((end - bar.start_ns) / 1000 for end in ends) if ends else 0.0

    def _label(
        self,
        name: str,
        duration_us: float,
        begin: float,
        length: float,
        top: float,
        height: float,
        colour: str,
    ) -> None:
        """Name and duration in the bar, the fullest form that fits; else outside, above the lanes."""
        from matplotlib.patheffects import withStroke

        duration = f"{duration_us:.1f} µs" if duration_us >= 1 else f"{duration_us:.2f} µs"
        wide, high = length * self.points_per_us - 3, height * 0.9 * self.points_per_row - 2
        style: dict[str, Any] = {
            "ha": "center", "va": "center", "color": ink_on(colour), "weight": "bold", "zorder": 5, "linespacing": 1.1,
            "path_effects": [withStroke(linewidth=2.2, foreground=colour)],
        }  # fmt: skip
        x, y = begin + length / 2, top + height / 2
        for size in (LETTER_PT, LETTER_PT - 1, LETTER_PT - 2):
            form = _fitting(name, duration, wide, high, size)
            if form:
                self.axes.text(x, y, form[0], rotation=form[1], fontsize=size, **style)
                return
        self.callouts.append((x, top, f"{name} {duration}"))

    def _call_out(self) -> None:
        """Labels that no bar had room for, above the lanes where they do not touch one another."""
        free = -1e9
        for x, top, text in sorted(self.callouts):
            half = len(text) * (LETTER_PT - 1) * 0.55 / 2 / self.points_per_us
            left = max(x - half, free, 0)
            if left > x + 3 * half or left + 2 * half > self.limit_us * 1.01:
                continue
            free = left + 2 * half + 4 / self.points_per_us
            self.axes.annotate(
                text, xy=(x, top + 0.05), xytext=(left + half, 1 + 2 / self.height_pt), ha="center", va="bottom",
                textcoords=("data", "axes fraction"), fontsize=LETTER_PT - 1,
                color="#333333", annotation_clip=False, zorder=6,
                arrowprops={"arrowstyle": "-", "color": "#888888", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
            )  # fmt: skip


def _fitting(name: str, duration: str, wide: float, high: float, size: float) -> tuple[str, int] | None:
    """A label's text and rotation in `wide` × `high` points, letters of `size`; None if no form fits."""
    long = max(len(name), len(duration)) * size * EM
    one = (len(name) + len(duration) + 2) * size * EM
    line = 1.25 * size
    if long <= wide and 2 * line <= high:
        return f"{name}\n{duration}", 0
    if one <= wide and line <= high:
        return f"{name}  {duration}", 0
    if 2 * line <= wide and long <= high:
        return f"{name}\n{duration}", 90
    if line <= wide and one <= high:
        return f"{name}  {duration}", 90
    return None
