"""Whether a file may be shown yet: a cheap look at its head and tail, for a watcher that meets files being written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from morimon.trace.json_text import SEAM, STRING
from morimon.trace.model import TraceError
from morimon.trace.source import GZIP, STEP, ZSTD, Source

if TYPE_CHECKING:
    from pathlib import Path

Wholeness = Literal["whole", "growing", "empty", "not a trace"]
TAIL = 64 << 10
PARTNER = {b"{": b"}", b"[": b"]"}
SPACE = b" \t\r\n\0"
BRACKET = re.compile(rb"[{}\[\]]")
QUOTED = re.compile(STRING, re.DOTALL)


def wholeness(path: str | Path) -> Wholeness:
    """What the file looks like now.

    "whole": its brackets are closed. "growing": it begins as a trace may, but does not end as one (a bare array may
    legally stay so: show it when it has been quiet for a while). "empty": nothing there yet. "not a trace": it begins
    with something else, or is a whole JSON text without traceEvents. Of plain files head and tail are read; compressed
    ones are unpacked to their end. Raises TraceError when the file cannot be read.
    """
    source = Source(path)
    head, tail, size = _ends(source)
    text = head.lstrip(SPACE)
    if not text:
        return "growing" if source.flaw else "empty"
    if text[:1] not in b"{[":
        return "not a trace"
    if text[:1] == b"[" and text[1:].lstrip(SPACE)[:1] not in (b"{", b"]", b""):
        return "not a trace"
    if source.flaw or not _closed(tail, PARTNER[text[:1]], size <= TAIL):
        return "growing"
    if text[:1] == b"{" and size <= STEP and b'"traceEvents"' not in head:
        return "not a trace"
    return "whole"


def _ends(source: Source) -> tuple[bytes, bytes, int]:
    """The first STEP and the last TAIL bytes of the decoded text, and its size."""
    try:
        with source.path.open("rb") as file:
            magic = file.read(4)
            plain = (
                not magic.startswith((GZIP, ZSTD))
                and 0 not in magic[:2]
                and magic[:2] not in (b"\xff\xfe", b"\xfe\xff")
            )
            if plain and source.size_bytes > STEP:
                head = magic + file.read(STEP - 4)
                file.seek(-TAIL, 2)
                return head.removeprefix(b"\xef\xbb\xbf"), file.read(), source.size_bytes
    except OSError as error:
        raise TraceError(f"{source.path}: {error.strerror or error}") from error
    head = tail = b""
    size = 0
    for piece in source.pieces():
        size += len(piece)
        head += piece[: max(0, STEP - len(head))]
        tail = (tail + piece)[-TAIL:]
    return head, tail, size


def _closed(tail: bytes, bracket: bytes, is_all: bool) -> bool:
    """Whether the text ends with `bracket` and that closes the outermost value: going back from it, its partner must
    not turn up (or, if the tail is the whole text, only at the very start).
    """
    tail = tail.rstrip(SPACE)
    if not tail.endswith(bracket):
        return False
    seam = (
        None if is_all else SEAM.search(tail)
    )  # a tail may begin within a string; after a seam it is outside
    text = QUOTED.sub(lambda m: b'"' * len(m[0]), tail[seam.end() :] if seam else tail)
    start = len(text) - len(text.lstrip(SPACE))
    depth = 0
    for found in reversed(list(BRACKET.finditer(text))):
        depth += 1 if found[0] in b"}]" else -1
        if depth == 0:
            return is_all and found.start() == start
    return not is_all
