"""Chrome-trace text to columns, in pieces, within bounded memory.

Three ways to decode a piece, the quickest that fits: the exporter's own layout (layout.py), typed JSON (here), event
by event (mend.py). A piece is cut at a seam `},{` between events. A seam may also stand inside an event's arguments or
in a string; what is cut there is no valid JSON, so it is noticed, and an earlier seam is taken.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from morimon.trace.events import COMPLETE, Damage, Events, kinds
from morimon.trace.json_text import BLANKS, SEAM
from morimon.trace.layout import FIRST_EVENT, Layout, OtherLayoutError
from morimon.trace.model import NotATraceError, TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from morimon.trace.mend import Careful
    from morimon.trace.source import Source

PIECE = 2 << 20
KEY = b'"traceEvents"'
FILLER = b'"":0'  # stands for traceEvents where the rest of the object is read
ARRAY = re.compile(BLANKS + b":" + BLANKS + rb"\[")
SPACE = b" \t\r\n"
TRIES = 8
LARGEST_HEAD = 64 << 20
LARGEST_TAIL = 16 << 20
EXACT_US = 1 << 42  # below, a float64 holds microseconds to less than half a nanosecond
NAN = float("nan")


class Event(msgspec.Struct, gc=False):
    """What most events are."""

    ph: str
    ts: float = NAN
    name: str | None = None
    pid: int | str = 0
    tid: int | str = 0
    dur: float = NAN


EVENTS = msgspec.json.Decoder(list[Event])
ROWS = msgspec.json.Decoder(list[dict[str, Any]], float_hook=str)
FRAME = msgspec.json.Decoder(list[msgspec.Raw])
FAULT_AT = re.compile(r"\(byte (\d+)\)")  # counts from 1


class NotQuickError(Exception):
    """This decoder cannot take the piece; a slower one may."""


class Reading:
    """What a file held: `events`, `metadata` beside them, `damage`, and whether its brackets were closed."""

    def __init__(self) -> None:
        self.events = Events()
        self.metadata: dict[str, Any] = {}
        self.is_object = False
        self.closed = False
        self.damage = Damage()
        self.flaw = ""

    @property
    def half_written(self) -> bool:
        """An object must be closed; the end of a bare array may be missing, but no part of an event."""
        return bool(self.flaw) or (self.is_object and not self.closed)


def read(source: Source) -> Reading:
    """Read all of a file. Raises TraceError if it cannot be read or is empty, NotATraceError if it is something else."""
    reading = Reading()
    text = _Text(source.pieces(PIECE))
    _head(text, reading, source)
    reading.closed = _Reader(reading, text).run() and _tail(text, reading)
    reading.flaw = source.flaw
    return reading


class _Text:
    """The part of the text that is in memory: `buffer`, which begins at `base` of the whole."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.buffer = b""
        self.base = 0
        self.ended = False

    def more(self) -> bool:
        """Append about PIECE bytes; False at the end."""
        parts, size = [self.buffer], 0
        while size < PIECE and not self.ended:
            part = next(self._pieces, None)
            if part is None:
                self.ended = True
            else:
                parts.append(part)
                size += len(part)
        self.buffer = b"".join(parts)
        return size > 0

    def drop(self, n: int) -> None:
        """Let the first n bytes go."""
        self.buffer = self.buffer[n:]
        self.base += n


def _head(text: _Text, reading: Reading, source: Source) -> None:
    """Go to the first event; what stands before becomes metadata."""
    from_ = 0
    while text.more() or text.buffer:
        start = text.buffer.lstrip(SPACE)
        if start[:1] == b"[":
            if len(start.lstrip(b"[ \t\r\n")) == 0 and not text.ended:
                continue
            if start[1:].lstrip(SPACE)[:1] not in (b"{", b"]", b""):
                raise NotATraceError(f"{source.path}: a JSON array whose elements are no trace events")
            text.drop(len(text.buffer) - len(start) + 1)
            return
        if start and start[:1] != b"{":
            raise NotATraceError(f"{source.path}: no JSON (it begins with {start[:12]!r}), so no trace")
        found = _events_key(text.buffer, from_)
        if found:
            reading.is_object = True
            _members(text.buffer[: found[0]] + FILLER + b"}", 0, reading)
            text.drop(found[1])
            return
        if text.ended:
            break
        if len(text.buffer) > LARGEST_HEAD:
            raise NotATraceError(f"{source.path}: no traceEvents in the first {LARGEST_HEAD >> 20} MiB")
        from_ = max(0, len(text.buffer) - 100)
    if not text.buffer.strip(SPACE):
        raise TraceError(
            f"{source.path}: "
            + (f"nothing can be read: {source.flaw}" if source.flaw else "the file is empty")
        )
    raise NotATraceError(f"{source.path}: a JSON object without a traceEvents array")


def _events_key(text: bytes, from_: int) -> tuple[int, int] | None:
    """Where the key traceEvents of the outermost object begins, and where its first element may."""
    at = text.find(KEY, from_)
    while at >= 0:
        array = ARRAY.match(text, at + len(KEY))
        if array and _depth(text, at) == 1:
            return at, array.end()
        at = text.find(KEY, at + 1)
    return None


def _depth(text: bytes, at: int) -> int:
    if not text[:at].strip(SPACE + b"{"):
        return text[:at].count(b"{")
    from morimon.trace.mend import TOKEN  # slow path: see _Reader._careful

    depth = 0
    for token in TOKEN.finditer(text):
        if token.end() > at:
            return depth if token.start() >= at else -1
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token[0], 0)
    return depth


def _members(text: bytes, offset: int, reading: Reading) -> bool:
    """Add the members of the object `text`, which begins at `offset`, to the metadata; False if it cannot be read."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        from morimon.trace.mend import loads

        mended = loads(text)
        value = mended.value
        for flaw, place in mended.flaws.items():
            reading.damage.note(offset + place, f"beside the events: {flaw}")
    if isinstance(value, dict):
        reading.metadata |= value
        reading.metadata.pop("", None)
    return isinstance(value, dict)


def _tail(text: _Text, reading: Reading) -> bool:
    """Read what stands after the events' `]`; True if the outermost value is closed."""
    while not text.ended and len(text.buffer) <= LARGEST_TAIL:
        text.more()
    if not text.ended:  # too large to keep
        last = text.buffer[-1:]
        while text.more():
            last = text.buffer.rstrip(SPACE)[-1:] or last
            text.drop(len(text.buffer))
        return last == b"}"
    rest = text.buffer.strip(SPACE)
    if reading.is_object:
        head = b"{" + FILLER
        offset = text.base + text.buffer.find(rest) - len(head)
        return rest.endswith(b"}") and _members(head + rest, offset, reading)
    if rest:
        reading.damage.note(text.base + text.buffer.find(rest), "text after the end of the events")
    return True


class _Reader:
    def __init__(self, reading: Reading, text: _Text) -> None:
        self._events, self._damage, self._text = reading.events, reading.damage, text
        self._layout: Layout | None = None
        self._slow: Careful | None = None

    def run(self) -> bool:
        """Read events up to the `]` of their array -> True, or to the end of the text -> False."""
        text = self._text
        text.drop(len(text.buffer) - len(text.buffer.lstrip(SPACE)))
        if text.buffer.startswith(FIRST_EVENT):
            self._layout = Layout(self._events)
        while True:
            if not text.ended and len(text.buffer) < PIECE:
                text.more()
            used, closed = (0, False) if text.ended else self._to_a_seam()
            if not used and not closed:
                used, closed = self._last() if text.ended else self._careful()
                if not used and not closed and not text.ended:
                    text.more()
                    continue
            text.drop(used)
            if closed:
                return True
            if text.ended and not text.buffer.strip(SPACE + b","):
                return False

    def _to_a_seam(self) -> tuple[int, bool]:
        """Decode up to one of the last seams -> bytes used, 0 if that does not work."""
        buffer = self._text.buffer
        at = len(buffer)
        for _ in range(TRIES):
            at = buffer.rfind(b"}", 0, at)
            seam = SEAM.match(buffer, at) if at > 0 else None
            while seam is None and at > 0:
                at = buffer.rfind(b"}", 0, at)
                seam = SEAM.match(buffer, at) if at > 0 else None
            if seam is None:
                return 0, False
            try:
                self._decode(buffer[: at + 1])
            except msgspec.DecodeError as error:
                if "truncated" not in str(error):
                    return self._closed_within(buffer[: at + 1], error)
            else:
                return seam.end(), False
        return 0, False

    def _last(self) -> tuple[int, bool]:
        """Decode the rest of the text."""
        buffer = self._text.buffer
        try:
            FRAME.decode(b"[" + buffer)
        except msgspec.DecodeError as error:
            used, closed = self._closed_within(buffer, error)
            if closed:
                return used, closed
        except RecursionError:
            pass
        else:
            used, closed = self._closed_at(buffer, len(buffer.rstrip(SPACE)))
            if closed:
                return used, closed
        whole = buffer.rstrip(SPACE + b",")
        if whole.endswith(b"}"):
            try:
                self._decode(whole)
            except msgspec.DecodeError:
                pass
            else:
                return len(buffer), False
        return self._careful()

    def _closed_within(self, buffer: bytes, error: msgspec.DecodeError) -> tuple[int, bool]:
        """If what the decoder did not expect is text after the array's `]`, decode up to there."""
        found = FAULT_AT.search(str(error)) if "trailing characters" in str(error) else None
        return self._closed_at(buffer, int(found[1]) - 2) if found else (0, False)

    def _closed_at(self, buffer: bytes, end: int) -> tuple[int, bool]:
        """Decode events up to the `]` that is the last character before `end`."""
        array = buffer[:end].rstrip(SPACE)
        inner = array[:-1].rstrip(SPACE)
        try:
            if inner:
                self._decode(inner)
        except msgspec.DecodeError:
            return 0, False
        return len(array), True

    def _careful(self) -> tuple[int, bool]:
        from morimon.trace.mend import Careful  # most files never need it, and it loads json and decimal

        if self._slow is None:
            self._slow = Careful(self._events, self._damage)
        return self._slow.read(self._text.buffer, self._text.base, last=self._text.ended)

    def _decode(self, piece: bytes) -> None:
        """Append the events of `piece`, `{…},…,{…}`; raise DecodeError, with nothing appended, if it is no JSON."""
        if self._layout:
            try:
                self._layout.read(piece)
            except OtherLayoutError:
                self._layout = None
            else:
                return
        array = b"[" + piece + b"]"
        try:
            self._typed(array)
        except (NotQuickError, msgspec.ValidationError):
            self._rows(array)
        except RecursionError:
            raise msgspec.DecodeError("nested too deeply") from None

    def _typed(self, array: bytes) -> None:
        found = EVENTS.decode(array)
        n = len(found)
        events = self._events
        ts = np.fromiter([e.ts for e in found], np.float64, n)
        kind = kinds([e.ph for e in found])
        timed = kind > 0
        if not (np.abs(ts) < EXACT_US)[timed].all():
            raise NotQuickError
        duration = None
        if (kind == COMPLETE).any():
            dur = np.fromiter([e.dur for e in found], np.float64, n)
            dur[kind != COMPLETE] = 0
            if not ((dur >= 0) & (dur < EXACT_US)).all():
                raise NotQuickError
            duration = np.rint(dur * 1000).astype(np.int64)
        if not timed.all():
            if any(e.ph == "M" for e in found):
                raise NotQuickError
            for at in np.flatnonzero(~timed).tolist():
                e = found[at]
                events.add_aside(e.ph, e.name, e.pid, e.tid, None)
            found = [e for e, keep in zip(found, timed.tolist(), strict=True) if keep]
            kind, ts = kind[timed], ts[timed]
            duration = duration[timed] if duration is not None else None
        events.count += n
        if found:
            events.add(
                kind,
                np.rint(ts * 1000).astype(np.int64),
                np.fromiter([events.names[e.name] for e in found], np.int32, len(found)),
                np.fromiter([events.threads[e.pid, e.tid] for e in found], np.int32, len(found)),
                duration,
            )

    def _rows(self, array: bytes) -> None:
        from morimon.trace.mend import add_rows

        try:
            rows = ROWS.decode(array)
        except RecursionError:
            raise msgspec.DecodeError("nested too deeply") from None
        add_rows(rows, self._events)
