"""What the Bandwidth screen says in words: what is impossible, what cannot be told, how a figure comes about."""

from __future__ import annotations

import textwrap

from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Run
from morimon.draw.page import Frame
from morimon.draw.text import clipped
from morimon.draw.units import gbps, number
from morimon.store.snapshot import RunSnapshot
from morimon.views.bandwidth_chart import BandwidthState, Chart
from morimon.views.bandwidth_figures import NAMES, Figure, Job


def value_text(figure: Figure, glyphs: Glyphs) -> str:
    """A printed whole number as it was printed."""
    if figure.name == "claimed" and figure.gbps is not None and figure.gbps.is_integer():
        return number(figure.gbps, 0, glyphs)
    return gbps(figure.gbps, glyphs)


def notes(snapshot: RunSnapshot, shown: Chart, frame: Frame) -> list[Line]:
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
        text = spelled(_unknown(snapshot, shown), frame.glyphs)
        lines += [(Run(f" {line}", "dim"),) for line in _wrapped(text, frame)]
    return [frame.fit(line) for line in lines]


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
    ranks = [figures for block in shown.blocks if block.rank >= 0 for figures in block.phases]
    claims = [claim.gbps for claim, *_ in ranks if claim.gbps is not None]
    sentences += [f"{name}: {_why_unknown(name, job)}" for name in unknown if name != "claimed" or not claims]
    if claims and all(claim.is_integer() for claim in claims):
        all_0 = "" if any(claims) else ", all of them to 0"
        sentences.append(f"claimed: printed as whole numbers, cut off{all_0}")
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


def spelled(text: str, glyphs: Glyphs) -> str:
    """Words of the arithmetic in the characters that there are."""
    return text.replace("×", glyphs.times).replace("µ", glyphs.micro)


def _wrapped(text: str, frame: Frame) -> list[str]:
    lines = textwrap.wrap(text, frame.width - 2)
    return lines if frame.height is None else lines[:2]


def detail(shown: Chart, cursor: int, state: BandwidthState, frame: Frame) -> tuple[Line, ...]:
    """The figure under the cursor: how it comes about, and why it cannot be; always as many lines."""
    phase = shown.phases.index(state.phase)
    figure, (rank, name) = shown.figure(cursor, phase), shown.at(cursor)
    glyphs = frame.glyphs
    who = "mean" if rank < 0 else f"rank {rank}"
    value = f"{value_text(figure, glyphs)} GB/s" if figure.gbps is not None else glyphs.missing
    how = f" = {figure.how}" if figure.how else ""
    text = spelled(f" {who} {glyphs.dot} {state.phase} {glyphs.dot} {name}: {value}{how}", glyphs)
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
    return f"{gbps(figure.gbps)} > {shown.line_gbps:g} GB/s line: {figure.reason}"


def worst(shown: Chart, name: str) -> str:
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
