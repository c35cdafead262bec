"""Sparks, bars, progress, heat, axes and graphs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morimon.draw.axis import Axis, round_axis, settled
from morimon.draw.charts import bar, heat, progress, spark
from morimon.draw.glyphs import ASCII, UNICODE, glyphs_for
from morimon.draw.graph import Series, graph
from morimon.draw.line import plain, width_of


def test_a_spark_shows_the_newest_values_at_its_right_end() -> None:
    assert spark([0, 1, 2, 3, 4, 5, 6, 7], 8, 0, 7, UNICODE) == "▁▂▃▄▅▆▇█"
    assert spark([9, 9, 0, 7], 2, 0, 7, UNICODE) == "▁█"
    assert spark([7], 3, 0, 7, UNICODE) == "  █"
    assert spark([5, math.nan, 5], 3, 5, 5, UNICODE) == "▄ ▄"
    assert spark([-10, 100], 2, 0, 7, UNICODE) == "▁█"
    assert spark([0, 7], 2, 0, 7, ASCII) == "_#"
    assert spark([1.0], 0, 0, 1, UNICODE) == ""


def test_a_bar_grows_by_eighths() -> None:
    assert bar(50, 100, 4, UNICODE) == "██  "
    assert bar(100 / 32, 100, 4, UNICODE) == "▏   "
    assert bar(1000, 100, 4, UNICODE) == "████"
    assert bar(None, 100, 4, UNICODE) == "    "
    assert bar(50, 100, 4, ASCII) == "##  "


def test_progress_ends_full_and_never_before() -> None:
    assert plain(progress(1.0, 4, UNICODE)) == "━━━━"
    assert plain(progress(0.999, 4, UNICODE)) == "━━━╸"
    assert plain(progress(0.0, 4, UNICODE)) == "────"
    assert plain(progress(0.5, 4, ASCII)) == "==--"


@pytest.mark.parametrize(
    ("value", "step"), [(0, 0), (12.4, 0), (12.5, 1), (99, 7), (100, 7), (1000, 7), (-5, 0)]
)
def test_heat_has_eight_steps(value: float, step: int) -> None:
    assert heat(value, 0, 100, "12").role == f"heat-{step}"


@given(st.floats(-1e12, 1e12), st.floats(0, 1e12))
def test_a_round_axis_holds_its_values_and_its_ends_are_steps(low: float, span: float) -> None:
    axis = round_axis(low, low + span)
    slack = axis.step * 1e-6
    assert axis.low <= low + slack
    assert axis.high >= low + span - slack
    assert (axis.high - axis.low) / axis.step == pytest.approx(
        round((axis.high - axis.low) / axis.step), rel=1e-6
    )


def test_an_axis_changes_at_most_once_a_second_and_not_for_little() -> None:
    axis = settled(None, 900, 1100, now_s=10.0)
    assert settled(axis, 0, 5000, now_s=10.9) is axis
    grown = settled(axis, 0, 5000, now_s=11.0)
    assert (grown.low, grown.high) == (0, 6000)
    assert settled(grown, 100, 4000, now_s=99.0) is grown
    shrunk = settled(grown, 900, 1000, now_s=99.0)
    assert shrunk.high < 2000


def test_a_graph_stands_on_its_axes() -> None:
    lines = graph([Series([(0, 0), (9, 10)], "dispatch")], 20, 7, (0, 9), Axis(0, 10, 5), UNICODE)
    text = [plain(line) for line in lines]
    assert len(lines) == 7
    assert max(width_of(line) for line in lines) <= 20
    assert text[0].startswith(" 10 ┤")
    assert text[2].startswith("  5 ┤")
    assert text[4].startswith("  0 ┤")
    assert text[5].startswith("    └──")
    assert text[6].split() == ["0", "9"]
    assert text[0][-1] != " "
    assert text[4][5] != " "


def test_values_outside_the_axis_stand_at_its_ends_and_ascii_has_a_point_a_curve() -> None:
    series = [Series([(0, 99), (1, -99)], "dispatch"), Series([(0, 5), (1, 5)], "dim")]
    lines = graph(series, 12, 7, (0, 1), Axis(0, 10, 5), ASCII)
    text = [plain(line) for line in lines]
    assert text[0].endswith("|*")
    assert text[4].endswith("*")
    assert "+" in text[2]
    assert all(line.isascii() for line in text)


@pytest.mark.parametrize("end", [(9, 5), (0, 10)])
def test_the_second_curve_leaves_dots_out(end: tuple[float, float]) -> None:
    points = [(0.0, 5.0), end]
    first, second = (
        sum(
            (ord(char) - 0x2800).bit_count()
            for line in graph(series, 20, 7, (0, 9), Axis(0, 10, 5), UNICODE)
            for char in plain(line)
            if 0x2800 <= ord(char) <= 0x28FF
        )
        for series in ([Series(points, "dispatch")], [Series([], "dispatch"), Series(points, "dim")])
    )
    assert second <= first / 2 + 1


def test_a_graph_without_room_is_blank() -> None:
    assert graph([], 4, 3, (0, 1), Axis(0, 1, 1), UNICODE) == ((), (), ())


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"LANG": "en_US.UTF-8", "TERM": "xterm-256color"}, "unicode"),
        ({"LANG": "C.utf8", "TERM": "tmux"}, "unicode"),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C", "TERM": "xterm"}, "ascii"),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8", "TERM": "xterm"}, "unicode"),
        ({"LANG": "", "TERM": "xterm"}, "ascii"),
        ({"LANG": "C.UTF-8", "TERM": "linux"}, "ascii"),
        ({"LANG": "C.UTF-8"}, "ascii"),
    ],
)
def test_glyphs_go_by_locale_and_term(environ: dict[str, str], name: str) -> None:
    assert glyphs_for(environ).name == name


def test_both_glyph_sets_have_the_same_widths() -> None:
    for field in UNICODE.__slots__:
        one, other = getattr(UNICODE, field), getattr(ASCII, field)
        if field not in ("name", "eighths", "series"):
            assert len(one) == len(other), field
    assert all(ord(char) < 128 for field in ASCII.__slots__ for char in getattr(ASCII, field))
