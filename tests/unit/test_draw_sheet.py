"""Tables as data."""

from __future__ import annotations

import csv
import json

from morimon.draw.sheet import Sheet

SHEET = Sheet(["rank", "text", "dispatch_us"], [[0, 'says "a|b", twice', 940.4], [1, "two\nlines", None]])


def test_csv_reads_back() -> None:
    rows = list(csv.reader(SHEET.csv().splitlines(keepends=True)))
    assert rows == [
        ["rank", "text", "dispatch_us"],
        ["0", 'says "a|b", twice', "940.4"],
        ["1", "two\nlines", ""],
    ]


def test_json_keeps_missing_figures_apart_from_zero() -> None:
    rows = json.loads(SHEET.json())
    assert rows[1] == {"rank": 1, "text": "two\nlines", "dispatch_us": None}


def test_markdown_is_one_line_a_row_with_figures_to_the_right() -> None:
    lines = SHEET.markdown().splitlines()
    assert lines[1] == "| ---: | --- | ---: |"
    assert lines[2] == '| 0 | says "a\\|b", twice | 940.4 |'
    assert lines[3] == "| 1 | two lines |  |"
