"""A terminal for tests: a pty, a screen of what was written to it, and whether it was left as it was found."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import pyte
from typing_extensions import Self

PATIENCE_S = 30.0


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """Runs a command on a pty of its own, as its controlling terminal."""

    def __init__(
        self,
        command: Sequence[str | Path],
        size: tuple[int, int] = (120, 40),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.raw = bytearray()
        self._undrawn = bytearray()
        self._master, self._slave = pty.openpty()
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self.resize(*size, tell=False)
        self.before = termios.tcgetattr(self._slave)
        base = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "MORIMON_CONFIG": os.devnull,
        }
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env=base | dict(environ or {}),
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - the child does one ioctl before it becomes the command
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for descriptor in (self._master, self._slave):
            if descriptor >= 0:
                os.close(descriptor)

    def resize(self, columns: int, lines: int, *, tell: bool = True) -> None:
        """Give the terminal another size; `tell` sends SIGWINCH as a terminal does."""
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._screen.resize(lines, columns)
        if tell:
            os.killpg(self.process.pid, signal.SIGWINCH)

    def send(self, keys: str | bytes) -> None:
        """Type."""
        os.write(self._master, keys.encode() if isinstance(keys, str) else keys)

    def read(self, seconds: float = 0.0, *, draws: bool = True) -> int:
        """Take in what was written, for so long; returns the bytes.

        Without `draws` they are not put on the screen before the next read, which takes time: for measurements.
        """
        until, taken = time.monotonic() + seconds, 0
        while True:
            left = max(until - time.monotonic(), 0.0)
            if not select.select([self._master], [], [], left)[0]:
                break
            try:
                data = os.read(self._master, 65536)
            except OSError:
                break
            self.raw += data
            self._undrawn += data
            taken += len(data)
            if draws:
                self._draw()
        if draws:
            self._draw()
        return taken

    def _draw(self) -> None:
        # pyte does not know these private modes of Kitty's keyboards and takes them for cursor commands
        self._stream.feed(re.sub(rb"\x1b\[[<>=?][0-9;]*u", b"", self._undrawn))
        self._undrawn.clear()

    def text(self) -> str:
        """What is in sight."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def wait_for(self, text: str, *, gone: bool = False) -> str:
        """Read until the text is in sight (or no longer); returns the screen."""
        until = time.monotonic() + PATIENCE_S
        while (text in self.text()) is gone:
            assert time.monotonic() < until, f"{text!r} {'still' if gone else 'not'} in sight:\n{self.text()}"
            assert self.process.poll() is None or self.read(), (
                f"ended with {self.process.poll()}:\n{self.text()}"
            )
            self.read(0.05)
        return self.text()

    def wait_for_bytes(self, data: bytes) -> None:
        """Read until this was written since `raw` was last cleared."""
        until = time.monotonic() + PATIENCE_S
        while data not in self.raw:
            assert time.monotonic() < until, f"{data!r} was not written"
            self.read(0.05)

    def wait_for_end(self) -> int:
        """Read until the command has ended; returns its exit code."""
        until = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < until, f"still running:\n{self.text()}"
            self.read(0.05)
        self.read()
        return self.process.returncode

    def hang_up(self) -> None:
        """Let the terminal go away, as a dropped connection does."""
        for descriptor in (self._slave, self._master):
            os.close(descriptor)
        self._master = self._slave = -1

    def assert_clean(self) -> None:
        """The normal screen, a cursor, no mouse reports, no bracketed paste, the line discipline as it was."""
        raw = bytes(self.raw)
        for on, off in (
            (rb"\x1b\[\?1049h", rb"\x1b\[\?1049l"),
            (rb"\x1b\[\?25l", rb"\x1b\[\?25h"),
            (rb"\x1b\[\?1000h", rb"\x1b\[\?1000l"),
            (rb"\x1b\[\?1003h", rb"\x1b\[\?1003l"),
            (rb"\x1b\[\?1006h", rb"\x1b\[\?1006l"),
            (rb"\x1b\[\?1004h", rb"\x1b\[\?1004l"),
            (rb"\x1b\[\?2004h", rb"\x1b\[\?2004l"),
        ):
            begun = [match.end() for match in re.finditer(on, raw)]
            ended = [match.end() for match in re.finditer(off, raw)]
            assert not begun or (ended and ended[-1] > begun[-1]), f"{on!r} was not taken back"
        assert termios.tcgetattr(self._slave)[:4] == self.before[:4], "the line discipline is not as it was"
