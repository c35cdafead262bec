"""Foreign text on a character grid."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from morimon.draw.text import cells, clipped, head, in_ascii, padded, sanitised, tail_from


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain [bold]text[/bold]", "plain [bold]text[/bold]"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x1b\\after", "after"),
        ("bell\x07", "bell␇"),
        ("del\x7f", "del␡"),
        ("a\tb", "a       b"),
        ("e\u0301t\u00e9", "e\u0301té"),
        ("\u0301lost", "lost"),
        ("👩\u200d🔬 lab", "👩🔬 lab"),
        ("👍🏽", "👍"),
        ("🇩🇪", "DE"),
        ("right\u202eleft", "right<U+202E>left"),
        ("no\u00a0break", "no break"),
        ("private \ue000", "private \ufffd"),
    ],
)
def test_sanitised(raw: str, shown: str) -> None:
    assert sanitised(raw) == shown


@given(st.text())
def test_sanitised_text_is_printable(raw: str) -> None:
    assert all(unicodedata.category(char) not in ("Cc", "Cs", "Co", "Cn") for char in sanitised(raw))


# Terminals disagree about spacing vowel signs (Mc), and have learnt scripts above this at different times.
@given(st.text(st.characters(max_codepoint=0x19FF, exclude_categories=("Mc", "Cs"))))
def test_sanitised_text_is_as_wide_as_the_terminal_library_thinks(raw: str) -> None:
    text = sanitised(raw)
    assert cells(text) == cell_len(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("900.00 µs", "900.00 us"),
        ("größe 漢字…", "gr??e ????~"),
        ("e\u0301", "e"),
        ("“a” – b×2", '"a" - bx2'),
    ],
)
def test_in_ascii(text: str, shown: str) -> None:
    assert in_ascii(text) == shown


@given(st.text(st.characters(max_codepoint=0x19FF, exclude_categories=("Mc", "Cs"))))
def test_ascii_takes_as_many_cells(raw: str) -> None:
    text = sanitised(raw)
    assert in_ascii(text).isascii()
    assert len(in_ascii(text)) == cells(text)


@given(st.text(), st.integers(0, 30))
def test_clipped_and_padded_keep_to_their_width(raw: str, width: int) -> None:
    text = sanitised(raw)
    assert cells(clipped(text, width)) <= width
    assert cells(padded(text, width)) == width
    assert cells(padded(text, width, right=True)) == width


@given(st.text(), st.integers(0, 20))
def test_head_and_tail_are_the_whole(raw: str, column: int) -> None:
    text = sanitised(raw)
    assert cells(head(text, column)) <= column
    if cells(text) >= column:
        assert cells(tail_from(text, column)) == cells(text) - column


def test_a_line_of_ten_thousand_characters_is_clipped_with_a_mark() -> None:
    text = clipped("x" * 10_000, 80)
    assert len(text) == 80
    assert text.endswith("x…")


def test_wide_characters_are_not_cut_in_half() -> None:
    assert clipped("日本語", 5) == "日本…"
    assert clipped("日本語", 4) == "日…"
    assert padded("日本語", 4) == "日… "
    assert tail_from("日本語", 1) == " 本語"
