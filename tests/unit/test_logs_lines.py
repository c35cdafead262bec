"""Bytes to lines, and lines to what a terminal shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morimon.logs.lines import MAX_LINE_BYTES, LineSplitter, visible


@given(st.lists(st.binary(max_size=12)), st.binary(max_size=3))
def test_any_cuts_give_the_same_lines(parts: list[bytes], rest: bytes) -> None:
    data = b"\n".join(parts) + rest
    splitter = LineSplitter()
    pieces = [piece for at in range(len(data)) for piece in splitter.feed(data[at : at + 1])]
    assert all(piece.data.endswith(b"\n") for piece in pieces)
    pieces += splitter.close()
    assert b"".join(piece.data for piece in pieces) == data
    assert all(data[piece.offset :].startswith(piece.data) for piece in pieces)
    lines = data.count(b"\n") + (data != b"" and not data.endswith(b"\n"))
    assert sum(piece.lines(0, len(piece.data)) for piece in pieces) == lines


def test_only_line_feeds_end_lines() -> None:
    splitter = LineSplitter()
    (piece,) = splitter.feed(b"a\rb\x0bc\x0cd\x1ce\xe2\x80\xa8f\ng")
    assert piece.data == b"a\rb\x0bc\x0cd\x1ce\xe2\x80\xa8f\n"
    assert piece.lines(0, len(piece.data)) == 1
    assert splitter.close()[0].data == b"g"


@pytest.mark.parametrize("size", [MAX_LINE_BYTES // 3, 3 * MAX_LINE_BYTES])
def test_a_file_without_line_ends_is_handed_on_in_pieces(size: int) -> None:
    data = b"x" * (3 * MAX_LINE_BYTES) + b"\nnext\n"
    splitter = LineSplitter()
    pieces = []
    for at in range(0, len(data), size):
        pieces += splitter.feed(data[at : at + size])
        assert len(splitter.tail(len(data))) <= MAX_LINE_BYTES
    assert max(len(piece.data) for piece in pieces) <= MAX_LINE_BYTES
    assert b"".join(piece.data for piece in pieces) == data


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x1b[31mred\x1b[0m plain\x1b[K\n", "red plain"),
        (b"\x1b[2J\x1b[H\x1b[?25lgrab\n", "grab"),
        (b"\x1b]0;title\x07text\n", "text"),
        (b"\x1b]8;;https://example.invalid\x1b\\link\x1b]8;;\x1b\\\n", "link"),
        (b"\x1b(Bcharset\x1b", "charset"),
        (b"bar 1\rbar 22\rbar 3\n", "bar 3"),
        (b"bar 1\rbar 2\r\n", "bar 2"),
        (b"carriage\r\n", "carriage"),
        (b"tab\tkept\x07\x08\n", "tab\tkept"),
        (b"bad \xff\xfe utf\n", "bad \ufffd\ufffd utf"),
        ("µs 宽 [b]x[/b]\n".encode(), "µs 宽 [b]x[/b]"),
        (b"\n", ""),
        (b"\r\r\n", ""),
    ],
)
def test_visible_text(data: bytes, text: str) -> None:
    assert visible(data) == text


@given(st.binary(max_size=200))
def test_visible_text_has_no_control_codes(data: bytes) -> None:
    assert all(char == "\t" or char.isprintable() or ord(char) > 0x9F for char in visible(data))
