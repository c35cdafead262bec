"""The Traffic screen: which rank sends how many tokens to which, and how the experts are loaded.

`build` is pure: a snapshot, room and what the person chose (`TrafficState`) in; a page out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from morimon.draw.line import Line, Run, merged, width_of
from morimon.draw.page import Frame, Page
from morimon.draw.sheet import Scalar, Sheet
from morimon.draw.units import number, tokens
from morimon.ep.imbalance import imbalance
from morimon.store.snapshot import RunSnapshot
from morimon.views.traffic_grid import Grid, grid_of
from morimon.views.traffic_load import bars, evenness, loads
from morimon.views.traffic_matrix import Matrix, matrix_of

LEGEND = (
    (
        "cells",
        "tokens of one dispatch from the rank on the left to the rank above; colour or digit: where on the scale",
    ),
    ("sent, recv", "what a rank sends in all, and what it receives in all"),
    (
        "expert",
        "a digit an expert of the rank above, or the hottest of a few: how many rows it gets, 0 least, 7 most",
    ),
    ("rows", "pairs of a token and an expert that it selects: what the experts of a rank have to compute"),
    ("max/mean", "the largest load over the mean load: 1 is even, and the largest is what all wait for"),
    ("Jain", "Jain's index of fairness: 1 is even, 1/n is all on one of n"),
)


@dataclass(frozen=True, slots=True)
class TrafficState:
    """What the person at the screen chose, and the matrix as long as the ranks say the same."""

    sender: int | None = None
    receiver: int | None = None
    """The cell under the cursor; None: the one with the most tokens."""
    exact: bool = False
    """Single ranks and counts, however many columns that takes."""
    matrix: Matrix | None = None


def settled_state(snapshot: RunSnapshot, state: TrafficState) -> TrafficState:
    """The same choices with the matrix of this snapshot."""
    matrix = matrix_of(snapshot, state.matrix)
    return state if matrix is state.matrix else replace(state, matrix=matrix)


def cursor_of(state: TrafficState) -> tuple[int, int]:
    """Sender and receiver under the cursor."""
    matrix = state.matrix
    if matrix is None or not matrix.senders:
        return 0, 0
    last = matrix.world_size - 1
    if state.sender is None or state.receiver is None:
        most = np.unravel_index(np.nanargmax(matrix.tokens), matrix.tokens.shape)
        return int(most[0]), int(most[1])
    return min(max(state.sender, 0), last), min(max(state.receiver, 0), last)


@dataclass(frozen=True, slots=True)
class TrafficRows:
    """A row a sender (or a few of them), and a border between nodes; where all has room, what stands under them."""

    grid: Grid
    cursor: tuple[int, int]
    entries: tuple[int | None, ...]
    """Row of the grid; None for a border."""
    below: tuple[Line, ...] = ()

    def __len__(self) -> int:
        """Senders and borders, and what is below."""
        return len(self.entries) + len(self.below)

    def line(self, index: int) -> Line:
        """One of them."""
        if index >= len(self.entries):
            return self.below[index - len(self.entries)]
        entry = self.entries[index]
        return self.grid.border() if entry is None else self.grid.row(entry, self.cursor)


def rows_of(grid: Grid, cursor: tuple[int, int]) -> TrafficRows:
    """The body; `cursor` is in ranks."""
    entries: list[int | None] = []
    for index in range(len(grid.values)):
        if grid.begins_node(index):
            entries.append(None)
        entries.append(index)
    return TrafficRows(grid, (cursor[0] // grid.per, cursor[1] // grid.per), tuple(entries))


def build(snapshot: RunSnapshot, frame: Frame, state: TrafficState | None = None) -> Page:
    """The page of a settled state; without one, with the cursor on the largest count."""
    state = settled_state(snapshot, state or TrafficState())
    matrix = state.matrix
    if matrix is None or not matrix.senders:
        return Page(_nothing(snapshot, frame))
    cursor = cursor_of(state)
    grid = grid_of(matrix, frame.width, cursor[1], frame.glyphs, exact=state.exact)
    rows = rows_of(grid, cursor)
    head = [_title(grid, frame), *_notes(snapshot, grid, frame), grid.heading(rows.cursor)]
    under = [line for line in (grid.sums(), grid.experts(frame.width)) if line]
    cell, words, more = _cell(grid, rows.cursor, frame), loads(matrix, frame), bars(matrix, frame)
    below = [*under, cell, *words]
    foot = [*under, *words, cell]
    room = len(below) if frame.height is None else frame.height - len(head) - len(rows)
    if len(below) <= room:
        has_room_for_more = frame.height is None or len(below) + len(more) <= room
        rows = replace(rows, below=_fitted([*below, *more] if has_room_for_more else below, frame))
        foot = []
    return Page(_fitted(head, frame), rows, _fitted(foot, frame), rows.entries.index(rows.cursor[0]))


def _fitted(lines: Sequence[Line], frame: Frame) -> tuple[Line, ...]:
    return tuple(frame.fit(line) for line in lines)


def _title(grid: Grid, frame: Frame) -> Line:
    """What the cells are, and their scale."""
    who = "ranks" if grid.per > 1 else "rank"
    of = "" if frame.is_narrow else " of a dispatch"
    what = f" tokens{of}, from {who} (down) to {who} (across)"
    scale = grid.legend()
    return merged([Run(what, "title"), Run(" " * max(grid.width - len(what) - width_of(scale), 2)), *scale])


def _notes(snapshot: RunSnapshot, grid: Grid, frame: Frame) -> list[Line]:
    """What is not as it looks: cells of several ranks, columns out of sight, senders that have not told."""
    matrix, glyphs = grid.matrix, frame.glyphs
    notes: list[Line] = []
    if grid.per > 1:
        text = (
            f" a cell is the mean of {grid.per}{glyphs.times}{grid.per} pairs of ranks: "
            f"{matrix.world_size} do not fit side by side"
        )
        notes.append((Run(text, "dim"),))
    elif grid.columns < matrix.world_size:
        last = grid.first + grid.columns - 1
        text = f" receivers {grid.first} to {last} of {matrix.world_size}; the others are to the sides"
        notes.append((Run(text, "dim"),))
    if matrix.senders < matrix.world_size:
        text = f" {glyphs.warning} {matrix.senders} of {matrix.world_size} ranks have told what they send"
        notes.append((Run(text, "warning"),))
    else:
        notes += [(Run(f" {glyphs.warning} {text}", "warning"),) for text in _disagreements(snapshot, matrix)]
    return notes


def _disagreements(snapshot: RunSnapshot, matrix: Matrix) -> list[str]:
    """Ranks that count other tokens than were sent to them: the first of them, and how many more."""
    wrong = [
        (rank.rank, rank.recv_tokens, int(matrix.received[rank.rank]))
        for rank in snapshot.ranks
        if rank.recv_tokens is not None
        and rank.rank < matrix.world_size
        and rank.recv_tokens != matrix.received[rank.rank]
    ]
    if not wrong:
        return []
    rank, counted, sent = wrong[0]
    more = f"; {len(wrong) - 1} more do not agree" if len(wrong) > 1 else ""
    return [f"rank {rank} counts {counted} tokens received, its senders {sent}{more}"]


def _cell(grid: Grid, cursor: tuple[int, int], frame: Frame) -> Line:
    """The cell under the cursor in words and exact figures."""
    matrix, glyphs = grid.matrix, frame.glyphs
    sender, receiver = (slice(index * grid.per, (index + 1) * grid.per) for index in cursor)
    block = matrix.tokens[sender, receiver]
    who = f" {_ranks(sender, matrix)} to {_ranks(receiver, matrix)}: "
    if np.isnan(block).any():
        return (Run(f"{who}{glyphs.missing}, not told", "selected"),)
    count, sent, mean = float(block.sum()), float(matrix.sent[sender].sum()), matrix.mean * block.size
    words = [f"{number(count, 0, glyphs)} tokens"]
    if block.size > 1:
        words.append(f"{number(count / block.size, 1, glyphs)} a pair")
    if mean:
        words.append(f"{count / mean:.2f} {glyphs.times} the mean")
    if sent:
        words.append(f"{100 * count / sent:.1f} % of what it sends")
    if (gpus := matrix.gpu_per_node) and gpus < matrix.world_size and grid.per <= gpus:
        same = sender.start // gpus == receiver.start // gpus
        words.append(
            "its own" if cursor[0] == cursor[1] and grid.per == 1 else "same node" if same else "other node"
        )
    between = f" {glyphs.dot} "
    while len(words) > 1 and len(who) + 1 + len(between.join(words)) > frame.width:
        words.pop()
    return (Run(who, "selected"), Run(" " + between.join(words), "text"))


def _ranks(part: slice, matrix: Matrix) -> str:
    last = min(part.stop, matrix.world_size) - 1
    return f"rank {part.start}" if part.start == last else f"ranks {part.start}-{last}"


def _nothing(snapshot: RunSnapshot, frame: Frame) -> tuple[Line, ...]:
    """What stands in place of a matrix that nobody told."""
    lines = [" no rank has told where its tokens go: the built-in job does, others by the probe's traffic()"]
    told = [(rank.rank, rank.recv_tokens) for rank in snapshot.ranks if rank.recv_tokens is not None]
    if told:
        loads = np.array([count for _, count in told], dtype=np.float64)
        rank, most = max(told, key=lambda one: one[1])
        lines.append(
            f" tokens received, {len(told)} ranks: {evenness(imbalance(loads))}, "
            f"most by rank {rank}: {tokens(most, frame.glyphs)}"
        )
    return tuple(frame.fit((Run(line, "dim"),)) for line in lines)


def sheet(snapshot: RunSnapshot, state: TrafficState) -> Sheet:
    """The whole matrix, a row a sender, for export."""
    matrix = settled_state(snapshot, state).matrix
    world = matrix.world_size if matrix is not None else 0
    columns = ["rank", *(f"to_{rank}" for rank in range(world)), "sent"]
    rows: list[list[Scalar]] = []
    if matrix is not None:
        for rank, row in enumerate(matrix.tokens):
            told: list[Scalar] = [None if np.isnan(value) else int(value) for value in row]
            rows.append([rank, *told, None if np.isnan(row).any() else int(row.sum())])
    return Sheet(columns, rows)
