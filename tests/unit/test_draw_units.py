"""Figures as people read them."""

from __future__ import annotations

import math

import pytest

from morimon.draw import units
from morimon.draw.glyphs import ASCII, UNICODE

THIN = UNICODE.thousands


@pytest.mark.parametrize(
    ("got", "text"),
    [
        (units.micros(940.4), "940.4"),
        (units.micros(1161.0), f"1{THIN}161.0"),
        (units.micros(723_474.2), f"723{THIN}474"),
        (units.micros(None), "–"),
        (units.micros(float("nan")), "–"),
        (units.micros(math.inf), "inf"),
        (units.gbps(359.84), "359.8"),
        (units.gbps(9.876), "9.88"),
        (units.gbps(0.118), "0.118"),
        (units.gbps(0.0514), "0.0514"),
        (units.gbps(0.0012), "0.0012"),
        (units.gbps(0.000_042), "4.2e-5"),
        (units.gbps(float("nan")), "–"),
        (units.gbps(0), "0.000"),
        (units.lateness(0.0), "+0.0"),
        (units.lateness(112.6), "+112.6"),
        (units.lateness(-3.0), "-3.0"),
        (units.tokens(26_452), f"26{THIN}452"),
        (units.tokens(-1_000_000), f"-1{THIN}000{THIN}000"),
        (units.tokens(0), "0"),
        (units.number(12_345, 0, ASCII), "12 345"),
        (units.number(None, 0, ASCII), "-"),
        (units.size(0), "0 B"),
        (units.size(410_000_000), "391 MiB"),
        (units.size(1_288_490_189), "1.2 GiB"),
        (units.duration(0), "0:00"),
        (units.duration(42.9), "0:42"),
        (units.duration(3723), "1:02:03"),
        (units.duration(90_120), "1d 01:02"),
        (units.duration(None), "–"),
        (units.percent(0.344), "34"),
    ],
)
def test_units(got: str, text: str) -> None:
    assert got == text
