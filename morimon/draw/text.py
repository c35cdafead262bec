"""Text that others wrote, made safe for a character grid: no control codes, no surprises in width."""

from __future__ import annotations

import re
from functools import lru_cache

from wcwidth import wcswidth, wcwidth

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC and the other strings
    r"|\x1b[ -/]*[0-~]?"
)
_TAB_COLUMNS = 8
_REGIONAL_A = 0x1F1E6


def _shown(char: str) -> str:
    """What stands for a character that is not printable or whose width terminals disagree about."""
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if char.isprintable():
        if _REGIONAL_A <= code < _REGIONAL_A + 26:
            return chr(ord("A") + code - _REGIONAL_A)
        if 0xFE00 <= code <= 0xFE0F or 0x1F3FB <= code <= 0x1F3FF:
            return ""  # variation selectors and skin tones join what precedes them on some terminals only
        return char
    if char in "\u00a0\u2007\u202f\u3000" or char.isspace():
        return " "
    if code in (0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x00AD):
        return ""  # joiners and marks without width
    return f"<U+{code:04X}>" if 0x200E <= code <= 0x206F else "\ufffd"


def sanitised(text: str) -> str:
    """One line of text to print on a grid.

    Escape sequences go, tabs become blanks, other control codes their pictures (␀…␡), directional marks are spelled
    out, joiners go (each part of a joined emoji then stands for itself), unassigned and private characters become
    U+FFFD. Combining marks stay on the letter before them; leading ones go.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPES.sub("", text)
    if "\t" in text:
        text = text.expandtabs(_TAB_COLUMNS)
    if not (text.isascii() and text.isprintable()):
        text = "".join(char if char.isascii() and char.isprintable() else _shown(char) for char in text)
    start = 0
    while start < len(text) and wcwidth(text[start]) == 0:
        start += 1
    return text[start:]


_LOOKALIKES = str.maketrans(
    {
        **dict.fromkeys("µμ", "u"),
        **dict.fromkeys("‐‑‒–—―−─━", "-"),
        **dict.fromkeys("‘’‚′", "'"),
        **dict.fromkeys("“”„″", '"'),
        **dict.fromkeys("│┃╎┆", "|"),
        **dict.fromkeys("·•", "."),
        "×": "x",
        "…": "~",
        "\u00a0": " ",
        "\u202f": " ",
    }
)


def in_ascii(text: str) -> str:
    """Sanitised text for a terminal that has ASCII only, in as many cells: what has no lookalike becomes `?`."""
    if text.isascii():
        return text
    text = text.translate(_LOOKALIKES)
    return "".join(char if char.isascii() else "?" * max(wcwidth(char), 0) for char in text)


@lru_cache(maxsize=16_384)
def _wide_cells(text: str) -> int:
    return max(wcswidth(text), 0)


def cells(text: str) -> int:
    """Terminal cells that sanitised text takes."""
    return len(text) if text.isascii() else _wide_cells(text)


def clipped(text: str, width: int, ellipsis: str = "…") -> str:
    """The text in at most `width` cells; where something is missing the last cell says so."""
    if len(text) <= width and cells(text) <= width:
        return text
    if width <= 0:
        return ""
    return head(text, width - 1) + ellipsis


def head(text: str, width: int) -> str:
    """The longest beginning of the text that fits in `width` cells."""
    if text.isascii():
        return text[: max(width, 0)]
    used = 0
    for index, char in enumerate(text):
        used += max(wcwidth(char), 0)
        if used > width:
            return text[:index]
    return text


def tail_from(text: str, column: int) -> str:
    """The text from terminal cell `column` on; half of a wide character becomes a blank."""
    if column <= 0:
        return text
    if text.isascii():
        return text[column:]
    used = 0
    for index, char in enumerate(text):
        if used >= column and wcwidth(char) != 0:
            return " " * (used - column) + text[index:]
        used += max(wcwidth(char), 0)
    return ""


def padded(text: str, width: int, *, right: bool = False, ellipsis: str = "…") -> str:
    """The text in exactly `width` cells: clipped, or filled with blanks on its left (`right`) or right."""
    text = clipped(text, width, ellipsis)
    blanks = " " * (width - cells(text))
    return blanks + text if right else text + blanks
