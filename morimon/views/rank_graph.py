"""One rank over the rounds against the median of the others: a graph a phase, side by side where there is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import median
from typing import Literal

from morimon.draw.axis import Axis, round_axis, settled
from morimon.draw.graph import LEGEND, Series, graph
from morimon.draw.line import Line, Role, Run, merged, width_of
from morimon.draw.page import Frame, fitted
from morimon.store.snapshot import PhaseFigures, RankSnapshot, RunSnapshot

Figure = Literal["latency", "bandwidth"]
LEAST_HEIGHT = 6
"""Below this a graph says nothing."""


@dataclass(frozen=True, slots=True)
class Curves:
    """The points of one phase: those of the rank, and the median of all other ranks where there are any."""

    phase: Literal["dispatch", "combine"]
    own: Sequence[tuple[float, float]]
    others: Sequence[tuple[float, float]]

    @property
    def limits(self) -> tuple[float, float] | None:
        """Smallest and largest value of both curves."""
        values = [value for _, value in (*self.own, *self.others)]
        return (min(values), max(values)) if values else None


def curves(ranks: Sequence[RankSnapshot], chosen: int, figure: Figure) -> tuple[Curves, Curves]:
    """What the graph shows of dispatch and of combine for the rank `chosen`."""
    return _curves(ranks, chosen, figure, "dispatch"), _curves(ranks, chosen, figure, "combine")


def _series(figures: PhaseFigures, figure: Figure) -> tuple[Sequence[int], Sequence[float]]:
    """Rounds and their values."""
    values = figures.latencies_us if figure == "latency" else figures.xgmi_series_gbps
    return figures.rounds[len(figures.rounds) - len(values) :], values


def _curves(
    ranks: Sequence[RankSnapshot], chosen: int, figure: Figure, phase: Literal["dispatch", "combine"]
) -> Curves:
    own: list[tuple[int, float]] = []
    others = []
    for rank in ranks:
        rounds, values = _series(rank.dispatch if phase == "dispatch" else rank.combine, figure)
        if rank.rank == chosen:
            own = list(zip(rounds, values, strict=True))
        elif rounds:
            others.append((rounds, values))
    return Curves(phase, own, medians(others))


def medians(series: Sequence[tuple[Sequence[int], Sequence[float]]]) -> list[tuple[int, float]]:
    """(round, median of the series' values), for the rounds that all of them hold."""
    if not series:
        return []
    first, last = max(rounds[0] for rounds, _ in series), min(rounds[-1] for rounds, _ in series)
    if last < first:
        return []
    if all(rounds[-1] - rounds[0] + 1 == len(rounds) for rounds, _ in series):
        # without gaps, the rounds in common are one stretch of each series
        stretches = [values[first - rounds[0] : last - rounds[0] + 1] for rounds, values in series]
        return [(first + i, median(column)) for i, column in enumerate(zip(*stretches, strict=True))]
    known = [dict(zip(rounds, values, strict=True)) for rounds, values in series]
    common = sorted(set.intersection(*(set(one) for one in known)))
    return [(number, median(one[number] for one in known)) for number in common]


def settle(
    axes: tuple[Axis | None, Axis | None], both: tuple[Curves, Curves], now_s: float
) -> tuple[Axis | None, Axis | None]:
    """The axes to draw with from now on: they change at most once a second."""
    first, second = (
        settled(axis, *one.limits, now_s) if one.limits else axis
        for axis, one in zip(axes, both, strict=True)
    )
    return first, second


def round_range(snapshot: RunSnapshot, both: tuple[Curves, Curves], places: int) -> tuple[float, float]:
    """The rounds of the horizontal axis.

    All of the job where they are known and few enough for the room; else a window that moves on by a quarter of itself.
    """
    rounds = [
        number
        for one in both
        for number, _ in (*one.own[:1], *one.own[-1:], *one.others[:1], *one.others[-1:])
    ]
    first, last = (min(rounds), max(rounds)) if rounds else (0, 1)
    total = snapshot.config.rounds
    if total and total <= places and last < total:
        return min(first, 0), max(total - 1, 1)
    quarter = max(places // 4, 1)
    end = (last // quarter + 1) * quarter
    return max(min(first, 0), end - 4 * quarter), end


def rank_graph(
    snapshot: RunSnapshot,
    both: tuple[Curves, Curves],
    axes: tuple[Axis | None, Axis | None],
    chosen: int,
    figure: Figure,
    frame: Frame,
    height: int,
) -> tuple[Line, ...]:
    """`height` lines: a title with the legend, then dispatch and combine beside each other (dispatch alone if narrow)."""
    glyphs = frame.glyphs
    shown = both[:1] if frame.width < 100 else both
    width = frame.width // len(shown)
    parts = []
    for one, axis in zip(shown, axes, strict=False):
        places = max((width - 10) * (1 if glyphs.series else 2), 8)
        series = (Series(one.own, one.phase), Series(one.others, "dim"))
        parts.append(
            graph(
                series,
                width - 1,
                height - 1,
                round_range(snapshot, both, places),
                axis or round_axis(*(one.limits or (0.0, 1.0))),
                glyphs,
                labels=7,
            )
        )
    title = _title(chosen, figure, [one.phase for one in shown], frame)
    return (title, *(_beside(lines, width) for lines in zip_longest(*parts, fillvalue=())))


def _title(chosen: int, figure: Figure, phases: Sequence[Role], frame: Frame) -> Line:
    glyphs = frame.glyphs
    unit = f"{glyphs.micro}s" if figure == "latency" else "GB/s"
    key, other = (glyphs.series[0], glyphs.series[1]) if glyphs.series else LEGEND
    width = frame.width // len(phases)
    runs: list[Run] = []
    for phase in phases:
        legend = [
            Run(f"{glyphs.rule}{glyphs.rule} ", "border"),
            Run(f"{phase} {unit}", phase),
            Run("  "),
            Run(key, phase),
            Run(f" rank {chosen}  "),
            Run(other, "dim"),
            Run(" median of the others ", "dim"),
        ]
        line = fitted(tuple(legend), width - 1)
        runs += [*line, Run(glyphs.rule * (width - 1 - width_of(line)), "border"), Run(" ")]
    return merged(runs)


def _beside(lines: Sequence[Line], width: int) -> Line:
    runs: list[Run] = []
    for line in lines:
        runs += [*line, Run(" " * (width - width_of(line)))]
    return merged(runs)
