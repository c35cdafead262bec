"""A trace file as UTF-8 bytes in pieces: decompressed by its magic bytes, without byte order mark, never all at once."""

from __future__ import annotations

import codecs
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from morimon.trace.model import LoadCancelledError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

STEP = 1 << 18
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class Decompressor(Protocol):
    """What zlib's and zstandard's decompression objects have in common."""

    @property
    def eof(self) -> bool:
        """The stream has ended."""

    @property
    def unused_data(self) -> bytes:
        """What stood behind the end."""

    def decompress(self, data: bytes, /) -> bytes:
        """Unpack some more."""


class Source:
    """The decoded text of a file. Iterate over `pieces`; `flaw` then says what was wrong with the compressed stream.

    progress(bytes_done, total) is called with positions in the file as it lies on disk; cancelled() is asked as often.
    Raises TraceError when the file cannot be opened or read, LoadCancelledError when cancelled() is true.
    """

    def __init__(
        self,
        path: str | Path,
        progress: Callable[[int, int], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self.path = Path(path)
        self.flaw = ""
        self._progress, self._cancelled = progress, cancelled
        try:
            self.size_bytes = self.path.stat().st_size
        except (OSError, ValueError) as error:
            raise TraceError(f"{path}: {getattr(error, 'strerror', None) or error}") from error

    def pieces(self, size: int = STEP) -> Iterator[bytes]:
        """Text in pieces, none of them empty, of about `size` bytes where the file is not compressed."""
        try:
            with self.path.open("rb") as file:
                yield from self._decoded(file, size)
        except OSError as error:
            raise TraceError(f"{self.path}: {error.strerror or error}") from error

    def _decoded(self, file: BinaryIO, size: int) -> Iterator[bytes]:
        magic = file.read(4)
        file.seek(0)
        raw = self._raw(file, size)
        if magic.startswith(GZIP):
            raw = self._unpacked(raw, "gzip", lambda: zlib.decompressobj(31), zlib.error, 1 << 16)
        elif magic == ZSTD:
            import zstandard  # costs a few ms that most files need not pay

            unpacker = zstandard.ZstdDecompressor()
            raw = self._unpacked(raw, "zstd", unpacker.decompressobj, zstandard.ZstdError, 1 << 10)
        raw = (piece for piece in raw if piece)
        first = next(raw, b"")
        while 0 < len(first) < 4 and (more := next(raw, b"")):
            first += more
        encoding = _utf16(first)
        if encoding:
            decoder = codecs.getincrementaldecoder(encoding)("replace")
            yield decoder.decode(first).lstrip("\ufeff").encode("utf-8", "replace")
            for piece in raw:
                yield decoder.decode(piece).encode("utf-8", "replace")
            yield decoder.decode(b"", True).encode("utf-8", "replace")
        else:
            yield first.removeprefix(codecs.BOM_UTF8)
            yield from raw

    def _raw(self, file: BinaryIO, size: int) -> Iterator[bytes]:
        done = 0
        while piece := file.read(size):
            if self._cancelled and self._cancelled():
                raise LoadCancelledError(f"{self.path}: loading was cancelled")
            yield piece
            done += len(piece)
            if self._progress:
                self._progress(done, max(done, self.size_bytes))

    def _unpacked(
        self,
        raw: Iterator[bytes],
        what: str,
        start: Callable[[], Decompressor],
        error: type[Exception],
        step: int,
    ) -> Iterator[bytes]:
        """Members one after the other; a stream that ends early or is corrupt gives what it held and sets `flaw`.

        step: bytes unpacked at once; a packed byte may hold a thousand (gzip) or thirty thousand (zstd).
        """
        member, ended = start(), False
        try:
            for piece in raw:
                for at in range(0, len(piece), step):
                    rest = piece[at : at + step]
                    while rest:
                        if ended:
                            rest = rest.lstrip(b"\0")  # padding between members is legal
                            if not rest:
                                break
                            member = start()
                        yield member.decompress(rest)
                        ended = member.eof
                        rest = member.unused_data if ended else b""
        except error as corrupt:
            self.flaw = f"the {what} stream is corrupt ({corrupt})"
        else:
            if not ended:
                self.flaw = f"the {what} stream ends before its end mark"


def _utf16(first: bytes) -> str:
    if first[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16-le" if first[:2] == codecs.BOM_UTF16_LE else "utf-16-be"
    if len(first) > 1 and 0 in first[:2]:  # JSON begins with an ASCII character
        return "utf-16-le" if first[1] == 0 else "utf-16-be"
    return ""


def lines_and_columns(path: str | Path, offsets: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Where bytes of the decoded text stand: offset -> line and column, both from 1. The file is read once more."""
    found: dict[int, tuple[int, int]] = {}
    wanted = sorted(set(offsets), reverse=True)
    line, start, done = 1, 0, 0
    for piece in Source(path).pieces():
        if not wanted:
            break
        at = 0
        while wanted and wanted[-1] <= done + len(piece):
            offset = wanted.pop()
            part = piece[at : offset - done]
            line += part.count(b"\n")
            if b"\n" in part:
                start = done + at + part.rindex(b"\n") + 1
            at = offset - done
            found[offset] = line, offset - start + 1
        part = piece[at:]
        line += part.count(b"\n")
        if b"\n" in part:
            start = done + at + part.rindex(b"\n") + 1
        done += len(piece)
    return found
