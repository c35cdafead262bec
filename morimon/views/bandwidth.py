"""The Bandwidth screen: per rank and phase what the job claims beside what its tokens make of it, on one axis.

A figure that the line cannot carry stands out with its reason. `build` is pure: a snapshot, room, line rates and what
the person chose in; a page out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

from morimon.draw.axis import Axis, settled
from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run, merged
from morimon.draw.page import Frame, Lines, Page, body_lines, fitted
from morimon.draw.sheet import Scalar, Sheet
from morimon.draw.text import clipped, padded
from morimon.draw.units import gbps, percent
from morimon.model.events import Phase
from morimon.store.snapshot import PhaseFigures, RankSnapshot, RunSnapshot
from morimon.views.bandwidth_bars import Scale
from morimon.views.bandwidth_figures import LABELS, NAMES, Figure, Job, figures_of, mean_of
from morimon.views.line_rates import UNKNOWN_RATES, LineRates, Link
from morimon.views.rank_filter import EVERY_RANK, RankFilter

PHASES: tuple[Phase, ...] = ("dispatch", "combine")
_LABEL_WIDTH = 17
_FIGURES_WIDTH = 15
_LEAST_REASON = 14
_MEAN = -1
"""Stands for the mean where a rank's number would be."""


@dataclass(frozen=True, slots=True)
class BandwidthState:
    """What the person at the screen chose, and the axis that must not jump."""

    phase: Phase = "dispatch"
    link: Link | None = None
    """None: RDMA where the job runs on several nodes, else XGMI/NVL."""
    rank: int = _MEAN
    name: str = ""
    """The figure under the cursor; empty: the first one."""
    filter: RankFilter = EVERY_RANK
    axis: Axis | None = None
    axis_of: Link | None = None

    def link_on(self, snapshot: RunSnapshot) -> Link:
        """The link that is shown."""
        return self.link or ("rdma" if snapshot.crosses_nodes else "xgmi")


@dataclass(frozen=True, slots=True)
class _Block:
    """The figures of one rank, or the mean, in the phases that are shown."""

    rank: int
    phases: tuple[tuple[Figure, ...], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """All blocks to show, and the names of the figures that at least one rank knows."""

    link: Link
    phases: tuple[Phase, ...]
    blocks: tuple[_Block, ...]
    names: tuple[str, ...]
    line_gbps: float | None

    @property
    def known(self) -> list[Figure]:
        """All figures with a value."""
        return [
            figure
            for block in self.blocks
            for figures in block.phases
            for figure in figures
            if figure.gbps is not None
        ]

    def figure(self, index: int, phase: int) -> Figure:
        """The figure in a row of the body."""
        block, name = divmod(index, len(self.names))
        return self.blocks[block].phases[phase][NAMES[self.link].index(self.names[name])]

    def row_of(self, rank: int, name: str) -> int:
        """The row of a rank's figure; of its first one, or the first of all, where that is not shown."""
        at = next((i for i, block in enumerate(self.blocks) if block.rank == rank), 0)
        return at * len(self.names) + (self.names.index(name) if name in self.names else 0)

    def at(self, index: int) -> tuple[int, str]:
        """Rank and figure of a row; the mean's rank is negative."""
        block, name = divmod(index, len(self.names))
        return self.blocks[block].rank, self.names[name]


def chart(
    snapshot: RunSnapshot, state: BandwidthState, rates: LineRates, *, both_phases: bool = False
) -> Chart:
    """The figures of the chosen ranks; nothing at all for RDMA on one node."""
    link = state.link_on(snapshot)
    phases = PHASES if both_phases else (state.phase,)
    job = Job.of(snapshot.config)
    ranks = [rank for rank in snapshot.ranks if state.filter.keeps(rank)]
    if link == "rdma" and not snapshot.crosses_nodes:
        ranks = []
    told = [
        _Block(rank.rank, tuple(figures_of(rank, phase, link, job, rates) for phase in phases))
        for rank in ranks
    ]
    if not told:
        return Chart(link, phases, (), NAMES[link], rates.of(link))
    columns = zip(*(block.phases for block in told), strict=True)
    mean = _Block(_MEAN, tuple(mean_of(ranks, column, link, job, rates) for column in columns))
    known = {figure.name for figures in mean.phases for figure in figures if figure.gbps is not None}
    names = tuple(name for name in NAMES[link] if name in known) or NAMES[link]
    return Chart(link, phases, (mean, *told), names, rates.of(link))


def settled_state(
    snapshot: RunSnapshot, state: BandwidthState, rates: LineRates, now_s: float
) -> BandwidthState:
    """The same choices with an axis that holds both phases' figures and the line rate; it stands still for a second."""
    shown = chart(snapshot, state, rates, both_phases=True)
    most = max((figure.gbps or 0.0 for figure in shown.known), default=0.0)
    top = max(most, shown.line_gbps or 0.0) or 1.0
    before = state.axis if state.axis_of == shown.link else None
    return replace(state, axis=settled(before, 0.0, top, now_s), axis_of=shown.link)


def build(
    snapshot: RunSnapshot,
    frame: Frame,
    state: BandwidthState | None = None,
    rates: LineRates = UNKNOWN_RATES,
) -> Page:
    """The page of a settled state; without one, all links and phases, one after the other, for paper."""
    if state is None:
        return _on_paper(snapshot, frame, rates)
    shown = chart(snapshot, state, rates, both_phases=frame.is_wide)
    rows = BandwidthRows(shown, state.axis or Axis(0.0, 1.0, 1.0), frame)
    cursor = shown.row_of(state.rank, state.name) if shown.blocks else None
    head = [_title(snapshot, shown, state, frame), *_notes(snapshot, shown, frame)]
    if shown.blocks:
        head.append(rows.heading())
    foot = () if cursor is None else _detail(shown, cursor, state, frame)
    return Page(tuple(head), rows, foot, cursor)


def _on_paper(snapshot: RunSnapshot, frame: Frame, rates: LineRates) -> Page:
    """Every link and phase with the full reasons under it."""
    lines: list[Line] = []
    for link in ("rdma", "xgmi") if snapshot.crosses_nodes else ("xgmi",):
        for phase in PHASES[:1] if frame.is_wide else PHASES:
            state = settled_state(snapshot, BandwidthState(phase, link), rates, 0.0)
            page = build(snapshot, frame, state, rates)
            shown = chart(snapshot, state, rates, both_phases=frame.is_wide)
            reasons = [text for text in (_worst(shown, name) for name in shown.names) if text]
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
        return fitted(merged(runs), self.frame.width)

    def heading(self) -> Line:
        """Titles of the columns, and the axis over the bars."""
        runs = [Run(" " + padded(" rank figure", _LABEL_WIDTH), "heading")]
        for phase in self.chart.phases:
            title = phase if len(self.chart.phases) > 1 else ""
            share = "% line" if self.chart.line_gbps is not None else ""
            runs += [
                Run(f"{'GB/s':>8} {share:>5} ", "heading"),
                *self._scale().ticks(),
                Run(
                    f" {padded(title, self._reason_width(), right=True)}" if self._reason_width() else "",
                    phase,
                ),
            ]
        return fitted(merged(runs), self.frame.width)

    def _half(self, figure: Figure, phase: Phase) -> list[Run]:
        glyphs = self.frame.glyphs
        share = percent(figure.verdict.percent / 100, glyphs) if figure.verdict is not None else ""
        role = "impossible" if figure.is_impossible else _role(figure.name, phase, self.chart.link)
        runs = [
            Run(
                f"{gbps(figure.gbps, glyphs):>8} {share:>5} ",
                "impossible" if figure.is_impossible else "text",
            ),
            *self._scale().bar(figure.gbps, role),
        ]
        if width := self._reason_width():
            runs.append(Run(" " + padded(_aside(figure), width, ellipsis=glyphs.ellipsis), "impossible"))
        return runs

    def _room(self) -> int:
        """Cells for one bar and what stands beside it."""
        return (self.frame.width - _LABEL_WIDTH - 1) // len(self.chart.phases) - _FIGURES_WIDTH

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
    rounds = [_figures(rank, shown.phases[0]).round for rank in snapshot.ranks]
    newest = max((number for number in rounds if number is not None), default=None)
    if newest is not None:
        runs.append(Run(f" {glyphs.dot} newest round, {newest}", "dim"))
    if shown.line_gbps is not None:
        runs += [Run(f" {glyphs.dot} line rate ", "dim"), Run(f"{shown.line_gbps:g}", "title")]
    if state.filter.text:
        ranks = max(len(shown.blocks) - 1, 0)
        runs += [Run("  "), Run(f" {ranks} of {len(snapshot.ranks)} ranks: {state.filter.text} ", "match")]
    return fitted(merged(runs), frame.width)


def _figures(rank: RankSnapshot, phase: Phase) -> PhaseFigures:
    return rank.dispatch if phase == "dispatch" else rank.combine


def _notes(snapshot: RunSnapshot, shown: Chart, frame: Frame) -> list[Line]:
    """What is impossible, first; then, once, what cannot be told and why."""
    lines: list[Line] = []
    if trouble := _trouble(shown, frame.glyphs):
        lines.append((Run(trouble, "impossible"),))
    if not snapshot.ranks:
        lines.append((Run(" no rank has told anything yet", "dim"),))
    elif shown.link == "rdma" and not snapshot.crosses_nodes:
        text = f" one node: nothing crosses the network, every RDMA figure is {frame.glyphs.missing}"
        lines.append((Run(text, "dim"),))
    else:
        text = _spelled(_unknown(snapshot, shown), frame.glyphs)
        lines += [(Run(f" {line}", "dim"),) for line in _wrapped(text, frame)]
    return [fitted(line, frame.width) for line in lines]


def _trouble(shown: Chart, glyphs: Glyphs) -> str:
    """How many ranks are above their line, by the figure nearest to what really moves."""
    told = [block for block in shown.blocks if block.rank >= 0]
    for phase, name in ((p, n) for n in reversed(shown.names) for p in range(len(shown.phases))):
        at = NAMES[shown.link].index(name)
        above = [block.rank for block in told if block.phases[phase][at].is_impossible]
        if above:
            who = f"rank {above[0]}" if len(above) == 1 else f"{len(above)} of {len(told)} ranks"
            return (
                f" {glyphs.warning} {shown.phases[phase]}: {name} of {who} is more than the line carries "
                f"({shown.line_gbps:g} GB/s)"
            )
    return ""


def _unknown(snapshot: RunSnapshot, shown: Chart) -> str:
    sentences = []
    if shown.line_gbps is None:
        sentences.append(f"line rate unknown: --{shown.link}-line-gbps tells it")
    if not shown.known:
        return "; ".join([*sentences, "no bandwidth told yet"])
    job = Job.of(snapshot.config)
    unknown = (name for name in NAMES[shown.link] if name not in shown.names)
    sentences += [f"{name}: {_why_unknown(name, job)}" for name in unknown]
    if "physical" in shown.names:
        nodes = job.num_nodes or 0
        sentences.append(f"physical = algo × {nodes - 1}/{nodes}")
    return "; ".join(sentences)


def _why_unknown(name: str, job: Job) -> str:
    told = job.told
    if name == "claimed":
        return "the job printed none"
    if name == "physical" and job.num_nodes is None:
        return "the job does not tell its nodes"
    if name == "others'":
        return "the job does not tell whom it sends to"
    if name in ("wire", "LL"):
        wanted = ("kernel_type", "hidden", "topk", "num_tokens", "num_experts", "dtype", "combine_dtype")
        missing = [field for field in wanted if getattr(told, field) is None]
        if missing:
            return f"the job does not tell {', '.join(missing)}"
    return "the job tells too little"


def _spelled(text: str, glyphs: Glyphs) -> str:
    """Words of the arithmetic in the characters that there are."""
    return text.replace("×", glyphs.times).replace("µ", glyphs.micro)


def _wrapped(text: str, frame: Frame) -> list[str]:
    lines = textwrap.wrap(text, frame.width - 2)
    return lines if frame.height is None else lines[:2]


def _detail(shown: Chart, cursor: int, state: BandwidthState, frame: Frame) -> tuple[Line, ...]:
    """The figure under the cursor: how it comes about, and why it cannot be; always as many lines."""
    phase = shown.phases.index(state.phase)
    figure, (rank, name) = shown.figure(cursor, phase), shown.at(cursor)
    glyphs = frame.glyphs
    who = "mean" if rank < 0 else f"rank {rank}"
    value = f"{gbps(figure.gbps, glyphs)} GB/s" if figure.gbps is not None else glyphs.missing
    how = f" = {figure.how}" if figure.how else ""
    text = _spelled(f" {who} {glyphs.dot} {state.phase} {glyphs.dot} {name}: {value}{how}", glyphs)
    why = textwrap.wrap(_why_impossible(figure, shown), frame.width - 4)
    rest = 2 if frame.is_narrow else 1
    lines: list[Line] = [
        (Run(frame.glyphs.rule * frame.width, "border"),),
        (Run(clipped(text, frame.width, glyphs.ellipsis), "text"),),
    ]
    if why[rest:]:
        why[rest - 1] = clipped(f"{why[rest - 1]} {why[rest]}", frame.width - 4, glyphs.ellipsis)
    lines += [(Run(f" {line}", "impossible"),) for line in why[:rest]]
    return (*lines, *[()] * (rest + 2 - len(lines)))


def _why_impossible(figure: Figure, shown: Chart) -> str:
    if not figure.is_impossible:
        return ""
    return f"{figure.gbps:.1f} > {shown.line_gbps:g} GB/s line: {figure.reason}"


def _worst(shown: Chart, name: str) -> str:
    """The highest impossible figure of this name, whose it is, and why it cannot be."""
    at = NAMES[shown.link].index(name)
    told = [
        (figure.gbps, block.rank, phase, figure)
        for block in shown.blocks
        if block.rank >= 0
        for phase, figures in zip(shown.phases, block.phases, strict=True)
        if (figure := figures[at]).is_impossible and figure.gbps is not None
    ]
    if not told:
        return ""
    _, rank, phase, figure = max(told, key=lambda one: one[0])
    return f"rank {rank}, {phase}, {name}: {_why_impossible(figure, shown)}"


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
            seen = _figures(rank, phase)
            figures = [f.gbps for link in links for f in figures_of(rank, phase, link, job, rates)]
            rows.append([rank.rank, rank.node, phase, seen.round, seen.latency_us, *figures])
    return Sheet(["rank", "node", "phase", "round", "latency_us", *names], rows)
