"""Columns straight from the exporter's own layout: json.dump(indent=2), eight lines an event in one order of keys.

The layout is checked, not assumed: every byte that belongs to no name or number must be the expected one, names and
numbers must be plain. Anything else raises `OtherLayoutError`, and the general reader takes the piece.
Eight bytes are looked at together: `window` is the piece seen as overlapping little-endian 64-bit words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from morimon.trace.events import BEGIN, END, LARGEST_NS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from morimon.trace.events import Events

    Bytes = NDArray[np.uint8]
    Words = NDArray[np.uint64]
    Places = NDArray[np.int64]

FIRST_EVENT = b'{\n      "name": "'
BEFORE_NAME = b"    " + FIRST_EVENT
BETWEEN = b"\n    },\n" + BEFORE_NAME
PH_BEFORE = b'",\n      "cat": "gpu_kernel",\n      "ph": "'
BEFORE_TS = PH_BEFORE + b'?",\n      "ts": '
BEFORE_PID, BEFORE_TID = b',\n      "pid": ', b',\n      "tid": '
LINES = 8
PAD = b" " * 8
HIGH = np.uint64(0x8080808080808080)
DECIMALS = 3
UNIT = np.array([0, 100, 10, 1])
LONGEST_NUMBER = 15
MOST_NAMES = 256
MIX = np.uint64(0x9E3779B97F4A7C15)
ZEROS = np.array([0x3030303030303030 >> (8 * n) if n < 8 else 0 for n in range(9)], np.uint64)
KEEP = np.array([((1 << 64) - 1) << (64 - 8 * n) & ((1 << 64) - 1) for n in range(9)], np.uint64)


class OtherLayoutError(Exception):
    """The piece is not in this layout."""


class Layout:
    """Reads pieces of one file; remembers the names that it met."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._forget(0)

    def read(self, piece: bytes) -> None:
        """Append the events of `piece`, which runs from an event's `{` to an event's `}`."""
        text = b"".join((PAD, BEFORE_NAME[: -len(FIRST_EVENT)], piece, b",\n", BEFORE_NAME, PAD))
        byte = np.frombuffer(text, np.uint8)
        window = np.ndarray((byte.size - 7,), "<u8", text, strides=(1,))
        newline = np.flatnonzero(byte == ord("\n"))[:-1]
        if newline.size % LINES or not newline.size:
            raise OtherLayoutError
        name_end = newline[1::LINES] - 2
        ts_end, pid_end, tid_end = newline[4::LINES] - 1, newline[5::LINES] - 1, newline[6::LINES]
        name_begin = np.empty_like(tid_end)
        name_begin[0] = len(PAD) + len(BEFORE_NAME)
        name_begin[1:] = tid_end[:-1] + len(BETWEEN)
        _expect(window, name_begin[:1] - len(BEFORE_NAME), BEFORE_NAME)
        _expect(window, tid_end, BETWEEN)
        ph_at = name_end + len(PH_BEFORE)
        _expect(window, name_end, PH_BEFORE)
        _expect(window, ph_at + 1, BEFORE_TS[len(PH_BEFORE) + 1 :])
        _expect(window, ts_end, BEFORE_PID)
        _expect(window, pid_end, BEFORE_TID)
        begins = byte[ph_at] == ord("B")
        _require((begins | (byte[ph_at] == ord("E"))).all())

        ts_ns = _decimals(byte, window, name_end + len(BEFORE_TS), ts_end)
        pid = _integers(byte, window, ts_end + len(BEFORE_PID), pid_end)
        tid = _integers(byte, window, pid_end + len(BEFORE_TID), tid_end)
        name = self._names(text, window, name_begin, name_end)
        kind = np.where(begins, np.int8(BEGIN), np.int8(END))
        self._events.count += kind.size
        self._events.add(kind, ts_ns, name, self._events.threads.of_arrays(pid, tid))

    def _forget(self, words: int) -> None:
        """Start a table of names, each seen as its last `words` × 8 bytes and those before it."""
        self._hash, self._size = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._words: list[Words] = [np.zeros(0, np.uint64)] * words
        self._code = np.zeros(0, np.int32)

    def _names(self, text: bytes, window: Words, begin: Places, end: Places) -> NDArray[np.int32]:
        """Codes of the texts; equal codes are proved word by word, the hash only finds the candidate.

        Words are counted from the end; what a short name's words hold before it is BEFORE_NAME, the same for all.
        """
        size = end - begin
        shortest, longest = int(size.min()), int(size.max())
        _require(shortest >= 0)
        if longest > 8 * len(self._words):
            self._forget(-(-longest // 8))
        _require(8 * len(self._words) <= shortest + len(BEFORE_NAME))
        words = [window[end - 8 * (i + 1)] for i in range(len(self._words))]
        mixed = size.astype(np.uint64)
        for word in words:
            mixed = (mixed ^ word) * MIX
            mixed ^= mixed >> np.uint64(32)
        while True:
            found = np.minimum(np.searchsorted(self._hash, mixed), max(self._hash.size - 1, 0))
            unknown = np.flatnonzero(self._hash[found] != mixed) if self._hash.size else np.arange(size.size)
            if not unknown.size:
                break
            self._learn(text, int(unknown[0]), begin, end, mixed, words)
        _require((self._size[found] == size).all())
        _require(all((known[found] == word).all() for known, word in zip(self._words, words, strict=True)))
        return self._code[found]

    def _learn(
        self, text: bytes, at: int, begin: Places, end: Places, mixed: Words, words: list[Words]
    ) -> None:
        """Enter the name of event `at` into the table."""
        _require(self._code.size < MOST_NAMES)
        try:
            name = text[begin[at] : end[at]].decode("ascii")
        except UnicodeDecodeError:
            raise OtherLayoutError from None
        _require(name.isprintable() and '"' not in name and "\\" not in name)
        place = int(np.searchsorted(self._hash, mixed[at]))
        self._hash = np.insert(self._hash, place, mixed[at])
        self._size = np.insert(self._size, place, end[at] - begin[at])
        self._words = [
            np.insert(known, place, word[at]) for known, word in zip(self._words, words, strict=True)
        ]
        self._code = np.insert(self._code, place, self._events.names[name])


def _require(holds: bool | np.bool_) -> None:
    if not holds:
        raise OtherLayoutError


def _expect(window: Words, at: Places, text: bytes) -> None:
    """Every place of `at` must read `text`, which has at least eight bytes."""
    for i in [*range(0, len(text) - 8, 8), len(text) - 8]:
        word = int.from_bytes(text[i : i + 8], "little")
        _require((window[i:][at] == np.uint64(word)).all())


def _digits(word: Words) -> NDArray[np.int64]:
    """The value of eight ASCII digits."""
    word = word - np.uint64(0x3030303030303030)
    _require(not ((word | (word + np.uint64(0x7676767676767676))) & HIGH).any())
    word = (word * np.uint64(10) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    word = (word * np.uint64(10000) + (word >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return word.astype(np.int64)


def _last8(window: Words, end: Places, size: Places) -> NDArray[np.int64]:
    """The value of the `size` (0 to 8) digits before `end`."""
    return _digits(window[end - 8] & KEEP[size] | ZEROS[size])


def _integers(byte: Bytes, window: Words, begin: Places, end: Places) -> NDArray[np.int64]:
    size = end - begin
    longest = int(size.max())
    _require(int(size.min()) >= 1 and longest <= LONGEST_NUMBER)
    if longest == 1:
        digit = byte[begin].astype(np.int64) - ord("0")
        _require(int(digit.min()) >= 0 and int(digit.max()) <= 9)
        return digit
    _require(not ((byte[begin] == ord("0")) & (size > 1)).any())
    value = _last8(window, end, np.minimum(size, 8))
    if longest > 8:
        value += _last8(window, np.maximum(end - 8, begin), np.maximum(size - 8, 0)) * 10**8
    return value


def _decimals(byte: Bytes, window: Words, begin: Places, end: Places) -> NDArray[np.int64]:
    """Numbers with at most DECIMALS decimals, in units of the last of them."""
    decimals = np.zeros(begin.size, np.int64)
    for n in range(1, DECIMALS + 1):
        decimals[byte[np.maximum(end - n - 1, begin)] == ord(".")] = n
    value = _integers(byte, window, begin, np.where(decimals > 0, end - decimals - 1, end)) * 10**DECIMALS
    _require(int(value.max()) < LARGEST_NS)
    result: NDArray[np.int64] = value + _last8(window, end, decimals) * UNIT[decimals]
    return result
