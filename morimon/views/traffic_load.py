"""How evenly experts and ranks are loaded: in words, and a bar a rank where there is room."""

from __future__ import annotations

import numpy as np

from morimon.draw.charts import bar
from morimon.draw.line import Line, Run, merged
from morimon.draw.page import Frame
from morimon.draw.units import number
from morimon.ep.imbalance import Imbalance, imbalance
from morimon.views.traffic_matrix import Floats, Matrix

_HOTTEST = 4


def loads(matrix: Matrix, frame: Frame) -> list[Line]:
    """The load of experts and of ranks: how even it is, and who carries most."""
    lines: list[Line] = []
    by_rank = matrix.experts_of_ranks
    if matrix.experts is not None:
        per_rank = by_rank.shape[1] if by_rank is not None else None
        hottest = [
            f"{expert} (rank {expert // per_rank}): {load}" if per_rank else f"{expert}: {load}"
            for expert, load in _most(matrix.experts, frame)
        ]
        lines.append(
            _load_line(f"{len(matrix.experts)} experts", matrix.experts, "hottest expert", hottest, frame)
        )
    else:
        lines.append((Run(" the load of experts is not told", "dim"),))
    if by_rank is not None:
        rows = by_rank.sum(axis=1)
        carrying = [f"rank {rank}: {load}" for rank, load in _most(rows, frame)]
        lines.append(_load_line("rows of ranks", rows, "carried by", carrying, frame))
    elif matrix.senders == matrix.world_size:
        carrying = [f"rank {rank}: {load}" for rank, load in _most(matrix.received, frame)]
        lines.append(_load_line("recv tokens", matrix.received, "carried by", carrying, frame))
    return [(Run(frame.glyphs.rule * frame.width, "border"),), *lines]


def bars(matrix: Matrix, frame: Frame) -> list[Line]:
    """A line a rank: the rows that its experts get, against the mean of ranks, and its hottest expert."""
    by_rank = matrix.experts_of_ranks
    if by_rank is None:
        return []
    rows, glyphs = by_rank.sum(axis=1), frame.glyphs
    mean, most = float(rows.mean()), float(rows.max())
    heading = f"{'rank':>6} {'rows':>10} {glyphs.times + ' mean':>7} {'hottest expert':>16}  "
    room = frame.width - len(heading) - 1
    if room < 1:
        return []
    lines: list[Line] = [(Run(heading, "heading"),)]
    for rank, own in enumerate(by_rank):
        hottest = int(own.argmax())
        share = f"{rows[rank] / mean:.2f}" if mean else glyphs.missing
        expert = f"{rank * len(own) + hottest}: {number(float(own[hottest]), 0, glyphs)}"
        figures = f" {number(float(rows[rank]), 0, glyphs):>10} {share:>7} {expert:>16}  "
        length = Run(bar(float(rows[rank]), most, room, glyphs), "dispatch")
        lines.append(merged([Run(f"{rank:>6}", "heading"), Run(figures), length]))
    return lines


def evenness(uneven: Imbalance) -> str:
    """Two figures of imbalance in words."""
    return f"max/mean {uneven.max_over_mean:.2f}  Jain {uneven.jain:.3f}"


def _load_line(what: str, values: Floats, word: str, most: list[str], frame: Frame) -> Line:
    figures = f" {what:<13} {evenness(imbalance(values))} {frame.glyphs.dot} {word} "
    while len(most) > 1 and len(figures) + len(", ".join(most)) > frame.width:
        most = most[:-1]
    if len(figures) + len(most[0]) > frame.width:
        most = [most[0].partition(" = ")[0]]
    return merged([Run(figures, "text"), Run(", ".join(most), "title")])


def _most(values: Floats, frame: Frame) -> list[tuple[int, str]]:
    """The largest loads: whose, and how many times the mean."""
    mean = float(values.mean())
    order = np.argsort(-values, kind="stable")[:_HOTTEST]
    times = frame.glyphs.times
    return [
        (
            int(at),
            f"{number(float(values[at]), 0, frame.glyphs)} = {values[at] / mean if mean else 1:.2f}{times}",
        )
        for at in order
    ]
