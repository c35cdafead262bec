"""Time on cells: what is painted stands where it belongs, nothing stands elsewhere, nothing gets lost."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from morimon.draw.glyphs import ASCII, UNICODE, Glyphs
from morimon.draw.line import Role, Run, halves, plain, split, width_of
from morimon.views.trace_paint import NOTHING, PaintRow
from morimon.views.trace_scale import PARTS, SHORTEST_NS, Scale, Window, ticks, unit_for

ROLES: tuple[Role, ...] = ("slot-send", "slot-recv", "slot-intra", "slot-sync")
windows = st.builds(
    lambda start, length: Window(start, start + length),
    st.integers(-(10**12), 10**12),
    st.integers(1, 10**10),
)
scales = st.builds(Scale, windows, st.integers(8, 200))


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


@st.composite
def rows(draw: st.DrawFn) -> tuple[Scale, list[tuple[int, int, int]]]:
    """A scale and spans in sight that follow one another, as those of a warp do."""
    scale = draw(scales)
    window = scale.window
    edges = sorted(draw(st.lists(st.integers(window.start_ns, window.end_ns), min_size=2, max_size=40)))
    spans = [(a, b, draw(st.integers(0, 3))) for a, b in zip(edges[::2], edges[1::2], strict=False)]
    return scale, spans


def painted(scale: Scale, spans: list[tuple[int, int, int]]) -> PaintRow:
    row = PaintRow(scale)
    start, end, code = zip(*spans, strict=True)
    row.spans(ints(*start), ints(*end), np.array(code, np.int32))
    return row


@given(rows())
def test_a_span_covers_the_parts_of_its_time_to_the_nearest_eighth(
    case: tuple[Scale, list[tuple[int, int, int]]],
) -> None:
    scale, spans = case
    for start, end, code in spans:
        parts = np.flatnonzero(painted(scale, [(start, end, code)]).parts == code)
        per_part = scale.window.length_ns / (scale.width * PARTS)
        first = (start - scale.window.start_ns) / per_part
        last = (end - scale.window.start_ns) / per_part
        assert parts.size >= 1
        assert parts.tolist() == list(range(parts[0], parts[-1] + 1))
        assert parts[0] == min(round(first), scale.width * PARTS - 1) or abs(parts[0] - first) <= 0.5001
        assert abs(parts[-1] + 1 - last) <= 0.5001 or parts.size == 1


@given(rows())
def test_nothing_is_painted_where_no_span_is(case: tuple[Scale, list[tuple[int, int, int]]]) -> None:
    scale, spans = case
    row = painted(scale, spans)
    per_part = scale.window.length_ns / (scale.width * PARTS)
    for part in np.flatnonzero(row.parts != NOTHING).tolist():
        begin, end = (scale.window.start_ns + (part + more) * per_part for more in (-0.51, 1.51))
        assert any(a <= end and b >= begin for a, b, _ in spans), part


@given(rows(), st.sampled_from([UNICODE, ASCII]))
def test_a_row_fills_its_width_whatever_is_painted(
    case: tuple[Scale, list[tuple[int, int, int]]], glyphs: Glyphs
) -> None:
    scale, spans = case
    line = painted(scale, spans).line(ROLES, glyphs)
    assert width_of(line) == scale.width
    assert all(run.role == "text" or halves(run.role) is not None for run in line)


@given(rows(), st.sampled_from([UNICODE, ASCII]))
def test_every_span_is_visible_when_the_window_is_put_around_it(
    case: tuple[Scale, list[tuple[int, int, int]]], glyphs: Glyphs
) -> None:
    scale, spans = case
    limits = scale.window
    for start, end, code in spans:
        window = limits.around(start, end, limits)
        row = PaintRow(Scale(window, scale.width))
        seen = [(a, b, c) for a, b, c in spans if b >= window.start_ns and a <= window.end_ns]
        row.spans(
            ints(*(a for a, _, _ in seen)),
            ints(*(b for _, b, _ in seen)),
            np.array([c for _, _, c in seen], np.int32),
        )
        if end - start >= SHORTEST_NS:
            assert any(ROLES[code] in (halves(run.role) or ()) for run in row.line(ROLES, glyphs))


def test_edges_are_drawn_in_eighths() -> None:
    row = painted(Scale(Window(0, 80), 10), [(13, 35, 0)])
    assert row.line(ROLES, UNICODE) == (
        Run(" "),
        Run("▋", split("text", "slot-send")),  # five eighths of bare ground, then the span
        Run("██▍", split("slot-send")),
        Run(" " * 5),
    )


def test_touching_spans_share_a_cell() -> None:
    row = painted(Scale(Window(0, 80), 10), [(8, 20, 0), (20, 32, 1)])
    assert Run("▌", split("slot-send", "slot-recv")) in row.line(ROLES, UNICODE)


def test_ascii_says_without_colour_where_a_span_begins_and_ends() -> None:
    row = painted(Scale(Window(0, 80), 10), [(8, 40, 0), (40, 56, 1), (64, 72, 2)])
    assert plain(row.line(ROLES, ASCII)) == " [==][] ="


def test_between_the_parts_of_a_slot_stands_a_thin_line() -> None:
    row = PaintRow(Scale(Window(0, 80), 10))
    row.union(ints(8, 48), ints(24, 64), 0)
    assert plain(row.line(ROLES, UNICODE)) == " ██───██"
    assert plain(row.line(ROLES, ASCII)) == " []---[]"


def test_density_is_a_shade_of_the_code_that_covers_most() -> None:
    row = PaintRow(Scale(Window(0, 80), 4))
    row.density(np.array([0.0, 0.2, 0.6, 1.0]), np.array([0, 1, 2, 3], np.int32))
    assert row.line(ROLES, UNICODE) == (
        Run(" "),
        Run("░", split("slot-recv")),
        Run("▒", split("slot-intra")),
        Run("█", split("slot-sync")),
    )


def test_a_label_is_written_over_the_longest_solid_stretch() -> None:
    row = PaintRow(Scale(Window(0, 80), 10))
    row.union(ints(0, 24), ints(16, 80), 0)
    assert row.solid(0, 0, 80) == (3, 10)
    row.label(4, "recv", "slot-send")
    assert plain(row.line(ROLES, UNICODE)) == "██─█recv██"


@given(scales, st.integers(-(10**12), 10**12))
def test_ticks_are_round_in_sight_and_apart(scale: Scale, zero_ns: int) -> None:
    unit = unit_for(scale.window.length_ns)
    found = ticks(scale, zero_ns, unit)
    cells = [cell for cell, _ in found]
    assert all(0 <= cell < scale.width for cell in cells)
    assert all(b - a >= 8 for a, b in pairwise(cells))
    assert len({text for _, text in found}) == len(found), "figures tell the ticks apart"
    for cell, text in found:
        at = float(text) * unit.ns + zero_ns
        assert abs((at - scale.window.start_ns) / scale.window.length_ns * scale.width - cell) <= 1.01


@pytest.mark.parametrize(("length_ns", "name"), [(5_000, "µs"), (20_000_000, "ms"), (60_000_000_000, "s")])
def test_long_axes_have_larger_units(length_ns: int, name: str) -> None:
    assert unit_for(length_ns).name == name


@given(windows, st.floats(0, 1), st.floats(0.3, 40), st.floats(0, 1), st.floats(-2, 2))
def test_zoom_and_pan_stay_within_the_limits(
    limits: Window, start: float, factor: float, around: float, by: float
) -> None:
    window = limits
    for _ in range(3):
        at = window.start_ns + round(around * window.length_ns)
        zoomed = window.zoomed(factor, at, limits)
        assert limits.start_ns <= zoomed.start_ns < zoomed.end_ns <= limits.end_ns
        assert zoomed.length_ns >= min(SHORTEST_NS, limits.length_ns)
        assert zoomed.start_ns <= at <= zoomed.end_ns
        window = zoomed.panned(round(by * zoomed.length_ns), limits)
        assert window.length_ns == zoomed.length_ns
        assert limits.start_ns <= window.start_ns < window.end_ns <= limits.end_ns


def test_zooming_keeps_the_instant_under_the_pointer_where_it_is() -> None:
    limits = Window(0, 1_000_000)
    zoomed = limits.zoomed(4, 250_000, limits)
    assert (250_000 - zoomed.start_ns) / zoomed.length_ns == pytest.approx(0.25)
    assert zoomed.length_ns == 250_000
