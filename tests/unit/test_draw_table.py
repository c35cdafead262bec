"""Tables of fixed columns."""

from __future__ import annotations

from morimon.draw.glyphs import ASCII, UNICODE
from morimon.draw.line import Run, plain, width_of
from morimon.draw.table import Column, fit

COLUMNS = (
    Column("rank", "rank", 4, sortable=True),
    Column("phase", "phase", 8, right=False),
    Column("us", "µs", 9, group="dispatch", sortable=True),
    Column("spark", "rounds", 8, right=False, priority=2, group="dispatch", most=20),
    Column("gbps", "GB/s", 6, group="combine", priority=1),
)


def test_columns_go_by_priority_when_there_is_no_room() -> None:
    keys = {width: [c.key for c in fit(COLUMNS, width, UNICODE).columns] for width in (60, 40, 30, 5)}
    assert keys[60] == ["rank", "phase", "us", "spark", "gbps"]
    assert keys[40] == ["rank", "phase", "us", "gbps"]
    assert keys[30] == keys[5] == ["rank", "phase", "us"]


def test_a_stretchable_column_takes_what_is_left_up_to_its_most() -> None:
    widths = [
        next(c.width for c in fit(COLUMNS, width, UNICODE).columns if c.key == "spark")
        for width in (46, 50, 99)
    ]
    assert widths == [8, 12, 20]


def test_every_row_is_as_wide_as_the_heading() -> None:
    table = fit(COLUMNS, 70, UNICODE)
    heading, _ = table.heading("us")
    rows = [
        table.row({"rank": "3", "us": "1 161.0", "spark": Run("▁▂▃", "dispatch")}),
        table.row({"rank": "123456789", "phase": "日本語日本語", "gbps": (Run("1"), Run("2", "late"))}),
        table.row({}),
        table.group_line(),
    ]
    assert {width_of(row) for row in rows} == {width_of(heading)}


def test_figures_are_aligned_right_and_too_long_ones_are_marked() -> None:
    table = fit(COLUMNS[:2], 30, UNICODE)
    assert plain(table.row({"rank": "3", "phase": "x"})) == "    3  x"
    assert plain(table.row({"rank": "123456"})) == " 123…"
    assert plain(fit(COLUMNS[:2], 30, ASCII).row({"rank": "123456"})) == " 123~"


def test_the_arrow_of_the_sorted_column_moves_no_column() -> None:
    table = fit(COLUMNS, 70, UNICODE)
    bare, _ = table.heading()
    up, spots = table.heading("us", line=5)
    down, _ = table.heading("us", descending=True)
    assert plain(up) == plain(bare).replace(" µs", "▲µs")
    assert plain(down) == plain(bare).replace(" µs", "▼µs")
    assert [spot.action for spot in spots] == ["sort('rank')", "sort('us')"]
    us = spots[1]
    assert us.line == 5
    assert plain(bare)[us.start : us.end].strip() == "µs"


def test_a_role_for_the_row_does_not_take_the_colour_of_cells_with_their_own() -> None:
    row = fit(COLUMNS, 70, UNICODE).row({"rank": "1", "phase": Run("late", "late")}, role="title")
    assert [run.role for run in row if run.text.strip() in ("1", "late")] == ["title", "late"]
