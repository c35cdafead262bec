"""Rows of coloured time: spans become parts of cells, parts become block glyphs in as few runs as possible.

A row is painted span by span or by masks; whatever is painted later stands on top. Codes index a palette of roles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run, merged, split
from morimon.views.trace_scale import PARTS, Scale

Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
NOTHING = -1


class PaintRow:
    """One row of `width` cells; `parts` holds the code that owns each eighth of a cell, or NOTHING."""

    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        self.parts = np.full(scale.width * PARTS, NOTHING, np.int32)
        self._thin = np.full(scale.width * PARTS, NOTHING, np.int32)
        self._shade = np.zeros(scale.width, np.int8)
        self._labels: list[tuple[int, str, Role]] = []

    def spans(self, starts_ns: Ints, ends_ns: Ints, codes: NDArray[np.int32]) -> None:
        """Paint spans one after the other; all of them must be in sight."""
        size = self.parts.size
        first = np.clip(self.scale.parts(starts_ns), 0, size - 1)
        last = np.clip(self.scale.parts(ends_ns), first + 1, size)
        for begin, end, code in zip(first.tolist(), last.tolist(), codes.tolist(), strict=True):
            self.parts[begin:end] = code

    def union(self, starts_ns: Ints, ends_ns: Ints, code: int) -> None:
        """Paint many spans of one code at once; between them the row shows a thin line."""
        window = self.scale.window
        seen = (ends_ns >= window.start_ns) & (starts_ns <= window.end_ns)
        if not seen.any():
            return
        size = self.parts.size
        first = np.clip(self.scale.parts(starts_ns[seen]), 0, size - 1)
        last = np.clip(self.scale.parts(ends_ns[seen]), first + 1, size)
        edges = np.bincount(first, minlength=size + 1) - np.bincount(last, minlength=size + 1)
        self.parts[np.cumsum(edges[:size]) > 0] = code
        whole = self.scale.stretch(int(starts_ns[0]), int(ends_ns[-1]))
        if whole is not None:
            self._thin[whole[0] : whole[1]] = code

    def density(self, share: NDArray[np.float64], code: NDArray[np.int32]) -> None:
        """Paint cells by how much of their time is covered (0 to 1), each in the colour of its code."""
        covered = share > 0
        self._shade[covered] = np.clip(np.ceil(share[covered] * PARTS), 1, PARTS)
        self.parts[np.repeat(covered, PARTS)] = np.repeat(code[covered], PARTS)

    def solid(self, code: int, first: int, last: int) -> tuple[int, int]:
        """The longest stretch of cells (begin, end) between two parts that belong wholly to this code."""
        begin, end = -(-first // PARTS), last // PARTS
        if begin >= end:
            return begin, begin
        whole = (self.parts[begin * PARTS : end * PARTS].reshape(-1, PARTS) == code).all(axis=1)
        edges = np.flatnonzero(np.diff(np.concatenate([[0], whole.view(np.int8), [0]])))
        if not edges.size:
            return begin, begin
        lengths = edges[1::2] - edges[::2]
        at = int(lengths.argmax())
        return begin + int(edges[2 * at]), begin + int(edges[2 * at + 1])

    def label(self, cell: int, text: str, role: Role) -> None:
        """Write over solid cells; the text holds characters of one cell."""
        self._labels.append((cell, text, role))

    def copy(self) -> PaintRow:
        """The same colours without the labels."""
        row = PaintRow(self.scale)
        row.parts, row._thin, row._shade = self.parts, self._thin, self._shade
        return row

    def line(self, palette: Sequence[Role], glyphs: Glyphs) -> Line:
        """The row as runs."""
        key = self._keys(len(glyphs.eighths) > 1)
        starts = np.flatnonzero(np.diff(key, prepend=key[:1] - 1))
        lengths = np.diff(np.append(starts, key.size))
        runs = [
            self._run(value, length, palette, glyphs)
            for value, length in zip(key[starts].tolist(), lengths.tolist(), strict=True)
        ]
        for cell, text, role in self._labels:
            runs = _over(runs, cell, Run(text, role))
        return merged(runs)

    def _keys(self, fine: bool) -> Ints:
        """What each cell shows as one number: left code, right code, how many parts are left, shade, thin code."""
        cells = self.parts.reshape(-1, PARTS)
        left, right = cells[:, 0], cells[:, -1]
        changes = cells[:, 1:] != cells[:, :-1]
        count = changes.sum(axis=1)
        many = count > 1
        filled = np.where(count == 1, changes.argmax(axis=1) + 1, PARTS)
        left, right = left.copy(), np.where(count == 0, NOTHING, right)
        if many.any():
            left[many], filled[many] = _majority(cells[many])
            right[many] = NOTHING
        if not fine:
            more = filled * 2 >= PARTS
            left = np.where(more | (right == NOTHING), left, right)
            left = np.where((left == NOTHING) & (right != NOTHING), right, left)
            filled = np.where(left == NOTHING, 0, PARTS)
            right = np.full_like(left, NOTHING)
        thin = np.where((left == NOTHING) & (right == NOTHING), self._thin[::PARTS], NOTHING)
        key = (left + 1).astype(np.int64)
        for digit, base in ((right + 1, 4096), (filled, 16), (self._shade, 16), (thin + 1, 4096)):
            key = key * base + digit
        return key

    def _run(self, key: int, length: int, palette: Sequence[Role], glyphs: Glyphs) -> Run:
        key, thin = divmod(key, 4096)
        key, shade = divmod(key, 16)
        key, filled = divmod(key, 16)
        left, right = divmod(key, 4096)
        open_, gap, begin, end = tuple(glyphs.lane)
        if left == 0 and right == 0:
            return Run(gap * length, split(palette[thin - 1])) if thin else Run(" " * length)
        roles = tuple(palette[code - 1] if code else "text" for code in (left, right))
        if shade and shade < PARTS:
            return Run(glyphs.shades[max(shade - 1, 2)] * length, split(palette[left - 1]))
        if filled >= PARTS:
            text = open_ * length
            if begin != open_ and length > 1:
                text = begin + text[2:] + end
            return Run(text, split(palette[left - 1]))
        return Run(glyphs.eighths[filled - 1] * length, split(*roles))


def _majority(cells: NDArray[np.int32]) -> tuple[NDArray[np.int32], Ints]:
    """Of cells with several owners, the code that owns most and how many parts are owned by anybody."""
    owned = cells != NOTHING
    votes = ((cells[:, :, None] == cells[:, None, :]) & owned[:, None, :]).sum(axis=2) * owned
    return cells[np.arange(len(cells)), votes.argmax(axis=1)], owned.sum(axis=1)


def _over(runs: Sequence[Run], cell: int, label: Run) -> list[Run]:
    """The runs with a text written over them."""
    out: list[Run] = []
    at = 0
    end = cell + len(label.text)
    for run in runs:
        size = len(run.text)
        before, after = max(min(cell - at, size), 0), max(min(end - at, size), 0)
        if before:
            out.append(Run(run.text[:before], run.role))
        if at <= cell < at + size:
            out.append(label)
        if after < size:
            out.append(Run(run.text[max(after, before) :], run.role))
        at += size
    return out
