"""Events that the quick decoders refuse: numbers as strings, epoch-sized times, NaN, broken strings, cut-off files."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import numpy as np

from morimon.trace.events import COMPLETE, KINDS, LARGEST_NS
from morimon.trace.json_text import BLANKS, STRING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from morimon.trace.events import Damage, Events

TOKEN = re.compile(STRING + rb"|[{}\[\]]", re.DOTALL)
RESYNC = re.compile(b"," + BLANKS + rb"(?=\{)")
BETWEEN = re.compile(rb"[ \t\r\n,]*")
NOTHING_MORE = re.compile(BLANKS + rb"\Z")
FOREIGN = re.compile(STRING + rb"|[^{},\[\]\"]+", re.DOTALL)
NUMBER_LIKE = re.compile(STRING.decode() + r"|[-+]?\b(?:nan|inf|infinity)\b", re.DOTALL | re.IGNORECASE)
HALF = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)
BAD_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|(.?))', re.DOTALL)
CLOSES = {b"{": b"}", b"[": b"]"}
LONGEST_EVENT = 4 << 20

NOT_FINITE = "a number is NaN or infinite"
BROKEN = "an event is no valid JSON"
TOO_DEEP = "an event is nested too deeply"
HALF_CHARACTER = "half of a surrogate pair, which is no character"
CUT_OFF = "the text ends within an event"
NO_TS = "no usable ts"
FAR_TS = "a ts beyond 146 years: Chrome's are microseconds, these look like nanoseconds"
NO_DURATION = "a complete event (X) without a usable dur"
NO_OBJECT = "an element of traceEvents is no object"
NO_COMMA = "there is not one comma between two events"
NO_KIND = "no ph"


def nanoseconds(value: Any) -> int | None:
    """`value` microseconds (a number, or text that is one) as nanoseconds, exactly; None if it is none or too large."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        return None
    try:
        exact = Decimal(value.strip() if isinstance(value, str) else str(value))
    except (InvalidOperation, ValueError):
        return None
    if not exact.is_finite() or exact.adjusted() > 16:
        return None
    result = int((exact * 1000).to_integral_value())
    return result if abs(result) < LARGEST_NS else None


def _is_far(value: Any) -> bool:
    """Whether `value`, too large for microseconds, may be nanoseconds."""
    try:
        exact = Decimal(str(value))
    except InvalidOperation:
        return False
    return not isinstance(value, bool) and exact.is_finite() and exact.adjusted() < 20


def add_rows(rows: Iterable[dict[str, Any]], events: Events) -> None:
    """Append events that were decoded one by one; what cannot be used is counted by reason."""
    kept: list[tuple[int, int, int, int, int]] = []
    for row in rows:
        events.count += 1
        ph, name = row.get("ph"), row.get("name")
        if not isinstance(ph, str) or not ph:
            events.rejected[NO_KIND] += 1
            continue
        if name is not None and not isinstance(name, str):
            name = str(name)
        kind, pid, tid = KINDS.get(ph, 0), _id(row.get("pid")), _id(row.get("tid"))
        if not kind:
            events.add_aside(ph, name, pid, tid, row.get("args"))
            continue
        ts_ns = nanoseconds(row.get("ts"))
        duration_ns = nanoseconds(row.get("dur")) if kind == COMPLETE else 0
        if ts_ns is None:
            events.rejected[FAR_TS if _is_far(row.get("ts")) else NO_TS] += 1
        elif duration_ns is None or duration_ns < 0:
            events.rejected[NO_DURATION] += 1
        else:
            kept.append((kind, ts_ns, events.names[name], events.threads[pid, tid], duration_ns))
    if kept:
        kind_, ts, names, threads, duration = zip(*kept, strict=True)
        events.add(
            np.array(kind_, np.int8),
            np.array(ts, np.int64),
            np.array(names, np.int32),
            np.array(threads, np.int32),
            np.array(duration, np.int64),
        )


def _id(value: Any) -> int | str:
    return value if isinstance(value, (int, str)) else 0 if value is None else str(value)


class Mended:
    """Result of `loads`: the value, or None; `flaws`: what was mended or cannot be -> its first place in the text."""

    def __init__(self, value: Any, flaws: dict[str, int]) -> None:
        self.value, self.flaws = value, flaws


def loads(text: bytes) -> Mended:
    """Decode one JSON object as json.loads does, and also bare nan and inf, bad escapes, raw control characters, and
    bytes that are no UTF-8; halves of surrogate pairs become U+FFFD, so that every text can be written again. Numbers stay exact (Decimal). Never raises.
    """
    flaws: dict[str, int] = {}
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        decoded = text.decode("utf-8", "replace")
        flaws["bytes that are no UTF-8"] = error.start

    def note(reason: str, found: re.Match[str]) -> None:
        flaws.setdefault(reason, len(decoded[: found.start()].encode()))

    def mend(found: re.Match[str]) -> str:
        token = found[0]
        if not token.startswith('"'):
            note(NOT_FINITE, found)
            return "null"
        if "\\" in token:
            mended = BAD_ESCAPE.sub(lambda m: m[0] if m[1] else "\\\\" + (m[2] or ""), token[1:-1])
            if mended != token[1:-1]:
                note("a string with a bad escape", found)
            whole = HALF.sub(lambda m: "\\ufffd" if m[1] else m[0], mended)
            if whole != mended:
                note(HALF_CHARACTER, found)
            token = f'"{whole}"'
        if any(c < " " for c in token):
            note("a string with a raw control character", found)
        return token

    mended = NUMBER_LIKE.sub(mend, decoded)
    try:
        value = json.loads(mended, strict=False, parse_float=Decimal)
    except json.JSONDecodeError as error:
        same = decoded.startswith(mended[: error.pos])
        return Mended(None, {BROKEN: len(mended[: error.pos].encode()) if same else 0})
    except RecursionError:
        return Mended(None, {TOO_DEEP: 0})
    except (ValueError, ArithmeticError):
        return Mended(None, {BROKEN: 0})
    return Mended(value, flaws)


class Careful:
    """Reads events one by one out of text in which the quick way stumbled."""

    def __init__(self, events: Events, damage: Damage) -> None:
        self._events, self._damage = events, damage

    def read(self, text: bytes, base: int, last: bool) -> tuple[int, bool]:
        """Take all events that `text` holds whole -> (bytes used up, whether the array's `]` was among them).

        `text` begins where an event may, and so does what is left of it: the last event is taken with what follows it.
        base: offset of `text` in the file. last: no text follows, so that an unfinished event is damage.
        """
        rows: list[dict[str, Any]] = []
        at, closed, due = 0, False, 0
        while True:
            between = BETWEEN.match(text, at)
            commas, at = (between[0].count(b","), between.end()) if between else (0, at)
            if at >= len(text):
                break
            closed = text[at : at + 1] == b"]"
            if commas > due or (commas < due and not closed):
                self._damage.note(base + at, NO_COMMA)
            if closed:
                at += 1
                break
            due = 1
            if text[at : at + 1] != b"{":
                at = self._skip_foreign(text, at, base)
                continue
            end = _end_of_value(text, at)
            is_cut = end is None or NOTHING_MORE.match(text, end) is not None
            if is_cut and not last and len(text) - at < LONGEST_EVENT:
                break
            at = self._event(text, at, end, base, rows)
            due = int(at == end)  # else it went on behind a comma
        add_rows(rows, self._events)
        return at, closed

    def _event(self, text: bytes, at: int, end: int | None, base: int, rows: list[dict[str, Any]]) -> int:
        """Read the event at `at`, whose brackets close at `end`; return where to go on."""
        if end is not None:
            mended = loads(text[at:end])
            good = isinstance(mended.value, dict) and NOT_FINITE not in mended.flaws
            for flaw, place in mended.flaws.items():
                self._damage.note(base + at + place, flaw)
            if good:
                rows.append(mended.value)
                return end
            self._drop(next((why for why in (NOT_FINITE, TOO_DEEP) if why in mended.flaws), BROKEN))
            if NOT_FINITE in mended.flaws and isinstance(mended.value, dict):
                return end
        else:
            reason = CUT_OFF if len(text) - at < LONGEST_EVENT else BROKEN
            self._damage.note(base + at, reason)
            self._drop(reason)
        seam = RESYNC.search(text, at + 1, len(text) if end is None else end)
        return seam.end() if seam else end or len(text)

    def _drop(self, reason: str) -> None:
        self._events.count += 1
        self._events.rejected[reason] += 1

    def _skip_foreign(self, text: bytes, at: int, base: int) -> int:
        """Step over something between events that is no object; return where the next event or the end may be."""
        self._damage.note(base + at, NO_OBJECT)
        self._drop(NO_OBJECT)
        if text[at : at + 1] == b"[" and (end := _end_of_value(text, at)):
            return end
        found = FOREIGN.match(text, at)
        return max(found.end() if found else at, at + 1)


def _end_of_value(text: bytes, at: int) -> int | None:
    """Where the object or array that begins at `at` is closed, or where a wrong bracket stands, or None if neither."""
    wanted: list[bytes] = []
    for token in TOKEN.finditer(text, at):
        first = token[0][:1]
        if first in CLOSES:
            wanted.append(CLOSES[first])
        elif first != b'"':
            if first != wanted.pop():
                return token.start()
            if not wanted:
                return token.end()
    return None
