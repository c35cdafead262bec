"""Figures as people read them: the unit stands in the heading, the cell holds digits of a steady length.

Every function takes None for "nobody told" and answers with the missing mark, never with 0.
"""

from __future__ import annotations

import math

from morimon.draw.glyphs import UNICODE, Glyphs


def _grouped(digits: str, glyphs: Glyphs) -> str:
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    whole, point, rest = digits.partition(".")
    head = len(whole) % 3
    groups = ([whole[:head]] if head else []) + [whole[i : i + 3] for i in range(head, len(whole), 3)]
    return sign + glyphs.thousands.join(groups) + point + rest


def number(value: float | None, decimals: int = 0, glyphs: Glyphs = UNICODE) -> str:
    """A figure with `decimals` digits after the point and thousands set apart."""
    if value is None or math.isnan(value):
        return glyphs.missing
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return _grouped(f"{value:.{decimals}f}", glyphs)


def tokens(count: int | None, glyphs: Glyphs = UNICODE) -> str:
    """A count of tokens, all its digits."""
    return number(count, 0, glyphs)


def micros(value_us: float | None, glyphs: Glyphs = UNICODE) -> str:
    """Microseconds with one decimal below 10 000, none above: at most 8 cells up to 10 seconds."""
    decimals = 1 if value_us is not None and abs(value_us) < 10_000 else 0
    return number(value_us, decimals, glyphs)


def gbps(value: float | None, glyphs: Glyphs = UNICODE) -> str:
    """10⁹ bytes/s: two digits at least, however small, in at most six cells below 1000: 310.3, 3.12, 0.118, 0.0042, 4.2e-5."""
    if value is None or math.isnan(value):
        return glyphs.missing
    size = abs(value)
    if 0 < size < 0.001:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    decimals = 4 if 0 < size < 0.1 else 3 if size < 1 else 2 if size < 10 else 1
    return number(value, decimals, glyphs)


def lateness(value_us: float | None, glyphs: Glyphs = UNICODE) -> str:
    """Microseconds after somebody else, with a sign."""
    if value_us is None:
        return glyphs.missing
    text = micros(value_us, glyphs)
    return text if value_us < 0 else "+" + text


def size(value_bytes: float | None, glyphs: Glyphs = UNICODE) -> str:
    """Bytes in powers of 1024 with their unit: `410 MiB`, `1.2 GiB`."""
    if value_bytes is None:
        return glyphs.missing
    value = float(value_bytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1000 or unit == "TiB":
            decimals = 0 if unit == "B" or abs(value) >= 100 else 1
            return f"{value:.{decimals}f} {unit}"
        value /= 1024
    raise AssertionError("unreachable: the last unit returns")


def duration(seconds: float | None, glyphs: Glyphs = UNICODE) -> str:
    """A clock: `0:42`, `12:04`, `1:02:03`, `2d 01:02`."""
    if seconds is None:
        return glyphs.missing
    whole = int(max(seconds, 0))
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d {hour:02}:{minute:02}"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def percent(part: float | None, glyphs: Glyphs = UNICODE) -> str:
    """A share between 0 and 1 in whole percent, without the sign."""
    return glyphs.missing if part is None else f"{part * 100:.0f}"
