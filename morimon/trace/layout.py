"""Columns straight from the exporter's own layout: json.dump(indent=2), eight lines an event in one order of keys.

The layout is checked, not assumed: every byte of a line that is no name or number must be the expected one, names and
numbers must be plain. Anything else raises `OtherLayoutError`, and the general reader takes the piece.
Eight bytes are looked at together: `window` is the piece seen as overlapping little-endian 64-bit words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from morimon.trace.events import BEGIN, END, LARGEST_NS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from morimon.trace.events import Events, Names

    Words = NDArray[np.uint64]
    Places = NDArray[np.int64]

OPEN, CAT, CLOSE = b"    {", b'      "cat": "gpu_kernel",', b"    },"
NAME, PH, TS, PID, TID = (b'      "%s": ' % key for key in (b"name", b"ph", b"ts", b"pid", b"tid"))
FIRST_EVENT = OPEN + b"\n" + NAME + b'"'
PAD = b" " * 8
HIGH = np.uint64(0x8080808080808080)
DECIMALS = 3
UNIT = np.array([0, 100, 10, 1])
LONGEST_NUMBER = 15
MIX = np.uint64(0x9E3779B97F4A7C15)


class OtherLayoutError(Exception):
    """The piece is not in this layout."""


def read(piece: bytes, events: Events) -> None:
    """Append the events of `piece`, which runs from an event's `{` to an event's `}`."""
    text = b"".join((PAD, OPEN[:-1], piece, b",\n", PAD))
    byte = np.frombuffer(text, np.uint8)
    window = np.ndarray((byte.size - 7,), "<u8", text, strides=(1,))
    newline = np.flatnonzero(byte == ord("\n"))
    if newline.size % 8 or not newline.size:
        raise OtherLayoutError
    begin = np.empty_like(newline)
    begin[0] = len(PAD)
    begin[1:] = newline[:-1] + 1
    lines = begin.reshape(-1, 8).T
    ends = newline.reshape(-1, 8).T
    for line, wanted in ((0, OPEN), (2, CAT), (7, CLOSE)):
        _require((ends[line] - lines[line] == len(wanted)).all())
        _expect(window, lines[line], wanted)
    for line, key in ((1, NAME + b'"'), (3, PH + b'"'), (4, TS), (5, PID), (6, TID)):
        _expect(window, lines[line], key)
    _require((ends[3] - lines[3] == len(PH) + 4).all())
    _expect(window, ends[3] - 2, b'",')
    _expect(window, ends[1] - 2, b'",')
    _expect(window, ends[4] - 1, b",")
    _expect(window, ends[5] - 1, b",")

    ph = byte[lines[3] + len(PH) + 1]
    begins = ph == ord("B")
    _require((begins | (ph == ord("E"))).all())
    ts_ns = _decimals(byte, window, lines[4] + len(TS), ends[4] - 1)
    pid = _integers(byte, window, lines[5] + len(PID), ends[5] - 1)
    tid = _integers(byte, window, lines[6] + len(TID), ends[6])
    name = _names(byte, window, lines[1] + len(NAME) + 1, ends[1] - 2, events.names)
    events.count += ph.size
    events.add(np.where(begins, BEGIN, END).astype(np.int8), ts_ns, name, events.threads.of_arrays(pid, tid))


def _require(holds: bool | np.bool_) -> None:
    if not holds:
        raise OtherLayoutError


def _word(text: bytes) -> np.uint64:
    word: np.uint64 = np.uint64(int.from_bytes(text, "little"))
    return word


def _expect(window: Words, at: Places, text: bytes) -> None:
    """Every place of `at` must read `text`."""
    if len(text) < 8:
        mask = np.uint64((1 << 8 * len(text)) - 1)
        _require((window[at] & mask == _word(text)).all())
        return
    for i in [*range(0, len(text) - 8, 8), len(text) - 8]:
        _require((window[at + i] == _word(text[i : i + 8])).all())


def _digits(word: Words) -> NDArray[np.int64]:
    """The value of eight ASCII digits."""
    word = word - np.uint64(0x3030303030303030)
    _require(not ((word | (word + np.uint64(0x7676767676767676))) & HIGH).any())
    word = (word * np.uint64(10) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    word = (word * np.uint64(10000) + (word >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return word.astype(np.int64)


ZEROS = np.array([0x3030303030303030 >> (8 * n) if n < 8 else 0 for n in range(9)], np.uint64)
KEEP = np.array([((1 << 64) - 1) << (64 - 8 * n) & ((1 << 64) - 1) for n in range(9)], np.uint64)


def _last8(window: Words, end: Places, size: Places) -> NDArray[np.int64]:
    """The value of the `size` (0 to 8) digits before `end`."""
    return _digits(window[end - 8] & KEEP[size] | ZEROS[size])


def _integers(byte: NDArray[np.uint8], window: Words, begin: Places, end: Places) -> NDArray[np.int64]:
    size = end - begin
    longest = int(size.max())
    _require(int(size.min()) >= 1 and longest <= LONGEST_NUMBER)
    _require(not ((byte[begin] == ord("0")) & (size > 1)).any())
    value = _last8(window, end, np.minimum(size, 8))
    if longest > 8:
        value += _last8(window, np.maximum(end - 8, begin), np.maximum(size - 8, 0)) * 10**8
    return value


def _decimals(byte: NDArray[np.uint8], window: Words, begin: Places, end: Places) -> NDArray[np.int64]:
    """Numbers with at most DECIMALS decimals, in units of the last of them."""
    decimals = np.zeros(begin.size, np.int64)
    for n in range(1, DECIMALS + 1):
        decimals[byte[np.maximum(end - n - 1, begin)] == ord(".")] = n
    value = _integers(byte, window, begin, np.where(decimals > 0, end - decimals - 1, end)) * 10**DECIMALS
    _require(int(value.max()) < LARGEST_NS)
    result: NDArray[np.int64] = value + _last8(window, end, decimals) * UNIT[decimals]
    return result


def _names(
    byte: NDArray[np.uint8], window: Words, begin: Places, end: Places, names: Names
) -> NDArray[np.int32]:
    """Codes of the texts; equal codes are proved byte by byte, not by a hash alone."""
    size = end - begin
    _require(int(size.min()) >= 0)
    words = []
    mixed = size.astype(np.uint64)
    for i in range(0, int(size.max()), 8):
        left = np.clip(size - i, 0, 8)
        word = window[np.minimum(begin + i, window.size - 1)] << ((8 - left) * 8 % 64).astype(np.uint64)
        word[left == 0] = 0
        words.append(word)
        mixed = (mixed ^ word) * MIX
        mixed ^= mixed >> np.uint64(29)
    _, first, group = np.unique(mixed, return_index=True, return_inverse=True)
    like = first[group]
    _require((size == size[like]).all() and all((word == word[like]).all() for word in words))
    codes = np.empty(first.size, np.int32)
    for k, i in enumerate(first.tolist()):
        text = byte[begin[i] : end[i]].tobytes()
        try:
            name = text.decode("ascii")
        except UnicodeDecodeError:
            raise OtherLayoutError from None
        _require(name.isprintable() and '"' not in name and "\\" not in name)
        codes[k] = names[name]
    return codes[group]
