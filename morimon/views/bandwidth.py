"""The Bandwidth screen: per rank and phase what the job claims beside what its tokens make of it, on one axis.

A figure that the line cannot carry stands out with its reason. `build` is pure: a snapshot, room, line rates and what
the person chose in; a page out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from morimon.draw.axis import Axis
from morimon.draw.line import Line, Role, Run, merged
from morimon.draw.page import Frame, Lines, Page, body_lines
from morimon.draw.sheet import Scalar, Sheet
from morimon.draw.text import padded
from morimon.draw.units import percent
from morimon.model.events import Phase
from morimon.store.snapshot import RunSnapshot
from morimon.views.bandwidth_bars import Scale
from morimon.views.bandwidth_chart import PHASES, BandwidthState, Chart, settled_state
from morimon.views.bandwidth_figures import LABELS, NAMES, Figure, Job, figures_of, seen_of
from morimon.views.bandwidth_words import detail, notes, value_text, worst
from morimon.views.line_rates import UNKNOWN_RATES, LineRates, Link

LEGEND = (
    ("claimed", "the bandwidth that the job itself printed"),
    ("algo", "RDMA: all pairs of a token and a node that it goes to, the own node included, as mori counts"),
    ("physical", "RDMA: those of algo that leave the node"),
    (
        "wire",
        "RDMA: the rows that this kernel type really moves over the network, with all that travels beside them",
    ),
    ("received", "XGMI or NVL: all tokens that the rank receives"),
    ("others'", "XGMI or NVL: the same without the rank's own tokens, which cross no link"),
    (
        "LL",
        "XGMI or NVL: what a kernel that sends every selection of an expert by itself would move",
    ),
    (
        "%line",
        "share of the line rate, which is the vertical rule; more than all of it is impossible, and marked",
    ),
)
_LABEL_WIDTH = 17
_FIGURES_WIDTH = 15
_LEAST_REASON = 14


def build(
    snapshot: RunSnapshot,
    frame: Frame,
    state: BandwidthState | None = None,
    rates: LineRates = UNKNOWN_RATES,
) -> Page:
    """The page of a settled state; without one, all links and phases, one after the other, for paper."""
    if state is None:
        return _on_paper(snapshot, frame, rates)
    shown = state.chart(both_phases=frame.is_wide)
    rows = BandwidthRows(shown, state.axis or Axis(0.0, 1.0, 1.0), frame)
    cursor = shown.row_of(state.rank, state.name) if shown.blocks else None
    head = [_title(snapshot, shown, state, frame), *notes(snapshot, shown, frame)]
    if shown.blocks:
        head += rows.headings()
    foot = () if cursor is None else detail(shown, cursor, state, frame)
    return Page(tuple(head), rows, foot, cursor)


def _on_paper(snapshot: RunSnapshot, frame: Frame, rates: LineRates) -> Page:
    """Every link and phase with the full reasons under it."""
    lines: list[Line] = []
    for link in ("rdma", "xgmi") if snapshot.crosses_nodes else ("xgmi",):
        for phase in PHASES[:1] if frame.is_wide else PHASES:
            state = settled_state(snapshot, BandwidthState(phase, link), rates, 0.0)
            page = build(snapshot, frame, state)
            shown = state.chart(both_phases=frame.is_wide)
            reasons = [text for text in (worst(shown, name) for name in shown.names) if text]
            lines += [*([()] if lines else []), *page.head, *body_lines(page.body)]
            lines += [
                (Run(f" {line}", "impossible"),)
                for text in reasons
                for line in textwrap.wrap(text, frame.width - 2, subsequent_indent="  ")
            ]
    return Page(body=Lines(lines))


@dataclass(frozen=True, slots=True)
class BandwidthRows:
    """A row a figure: number, share of the line, bar, and the reason where it is impossible."""

    chart: Chart
    axis: Axis
    frame: Frame

    def __len__(self) -> int:
        """Ranks and the mean, times figures."""
        return len(self.chart.blocks) * len(self.chart.names)

    def line(self, index: int) -> Line:
        """The row of one figure."""
        rank, name = self.chart.at(index)
        halves = [self.chart.figure(index, phase) for phase in range(len(self.chart.phases))]
        is_first = name == self.chart.names[0]
        who = ("mean" if rank < 0 else str(rank)) if is_first else ""
        trouble = any(figure.is_impossible for figure in halves)
        runs = [
            Run(f"{self.frame.glyphs.warning if trouble else ' '}", "impossible"),
            Run(f"{who:>5} ", "title"),
            Run(padded(name, _LABEL_WIDTH - 7) + " ", "text" if rank >= 0 else "title"),
        ]
        for phase, figure in zip(self.chart.phases, halves, strict=True):
            runs += self._half(figure, phase)
        return self.frame.fit(merged(runs))

    def headings(self) -> list[Line]:
        """Titles of the columns and the axis over the bars; the phases above them where there are two."""
        label = Run(padded("  rank figure", _LABEL_WIDTH + 1), "heading")
        share = "%line" if self.chart.line_gbps is not None else ""
        names, runs = [Run(" " * len(label.text))], [label]
        for phase in self.chart.phases:
            half = [Run(f"{'GB/s':>8} {share:>5} ", "heading"), *self._scale().ticks()]
            room = self._half_width() - sum(run.width for run in half)
            runs += [*half, Run(" " * room)]
            names.append(Run(padded(f"{phase:>8}", self._half_width()), phase))
        lines = [names, runs] if len(self.chart.phases) > 1 else [runs]
        return [self.frame.fit(merged(line)) for line in lines]

    def _half(self, figure: Figure, phase: Phase) -> list[Run]:
        glyphs = self.frame.glyphs
        share = percent(figure.verdict.percent / 100, glyphs) if figure.verdict is not None else ""
        role = "impossible" if figure.is_impossible else _role(figure.name, phase, self.chart.link)
        runs = [
            Run(
                f"{value_text(figure, glyphs):>8} {share:>5} ",
                "impossible" if figure.is_impossible else "text",
            ),
            *self._scale().bar(figure.gbps, role),
        ]
        if width := self._reason_width():
            runs.append(Run(" " + padded(_aside(figure), width, ellipsis=glyphs.ellipsis), "impossible"))
        return [*runs, Run(" ")]

    def _half_width(self) -> int:
        """Cells for one phase."""
        return (self.frame.width - _LABEL_WIDTH - 1) // len(self.chart.phases)

    def _room(self) -> int:
        """Cells for one bar and what stands beside it."""
        return self._half_width() - _FIGURES_WIDTH

    def _reason_width(self) -> int:
        """Cells beside the bars: none where nothing is impossible."""
        if not any(figure.is_impossible for figure in self.chart.known) and len(self.chart.phases) == 1:
            return 0
        return max(self._room() // 2 - 1, _LEAST_REASON)

    def _scale(self) -> Scale:
        beside = self._reason_width()
        width = self._room() - (beside + 1 if beside else 0) - 1
        return Scale(self.axis, max(width, 4), self.chart.line_gbps, self.frame.glyphs)


def _aside(figure: Figure) -> str:
    return figure.reason.removeprefix("the ") if figure.is_impossible else ""


def _role(name: str, phase: Phase, link: Link) -> Role:
    """What is counted has its phase's colour, what crosses that of the link."""
    if name in ("claimed", "LL"):
        return "dim"
    if name in ("algo", "received"):
        return phase
    return "inter" if link == "rdma" else "intra"


def _title(snapshot: RunSnapshot, shown: Chart, state: BandwidthState, frame: Frame) -> Line:
    glyphs = frame.glyphs
    what = " and ".join(shown.phases)
    runs = [Run(f" {LABELS[shown.link]} GB/s", "title"), Run(" of ", "dim")]
    runs.append(Run(what, shown.phases[0] if len(shown.phases) == 1 else "text"))
    rounds = [seen_of(rank, shown.phases[0]).round for rank in snapshot.ranks]
    newest = max((number for number in rounds if number is not None), default=None)
    if newest is not None:
        runs.append(Run(f" {glyphs.dot} newest round, {newest}", "dim"))
    if shown.line_gbps is not None:
        runs += [Run(f" {glyphs.dot} line rate ", "dim"), Run(f"{shown.line_gbps:g}", "title")]
    if state.filter.text:
        ranks = max(len(shown.blocks) - 1, 0)
        runs += [Run("  "), Run(f" {ranks} of {len(snapshot.ranks)} ranks: {state.filter.text} ", "match")]
    return frame.fit(merged(runs))


def sheet(snapshot: RunSnapshot, state: BandwidthState, rates: LineRates) -> Sheet:
    """Both phases and both links of the visible ranks, for export."""
    job = Job.of(snapshot.config)
    links: Sequence[Link] = ("rdma", "xgmi") if snapshot.crosses_nodes else ("xgmi",)
    names = [f"{link}_{name.rstrip(chr(39)).lower()}_gbps" for link in links for name in NAMES[link]]
    rows: list[list[Scalar]] = []
    for rank in snapshot.ranks:
        if not state.filter.keeps(rank):
            continue
        for phase in PHASES:
            seen = seen_of(rank, phase)
            figures = [f.gbps for link in links for f in figures_of(rank, phase, link, job, rates)]
            rows.append([rank.rank, rank.node, phase, seen.round, seen.latency_us, *figures])
    return Sheet(["rank", "node", "phase", "round", "latency_us", *names], rows)
