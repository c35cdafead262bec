"""The terminal that a whole command prints on, line by line: its other side is copied to console.log.

The keeper copies. The hub holds the terminal as well, so that it stays one when the keeper is killed, and copies from
then on.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import termios
from pathlib import Path

ROWS, COLUMNS = 50, 200
_PIECE_BYTES = 1 << 16


class JobTerminal:
    """A new terminal: `ours` and `theirs` are its two sides, of which the keeper is given copies."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        modes = termios.tcgetattr(self.theirs)
        modes[1] &= ~termios.OPOST
        termios.tcsetattr(self.theirs, termios.TCSANOW, modes)
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.lost_bytes = 0
        """Output that found no room on the disk."""
        self._log: int | None = None

    def handed_over(self) -> None:
        """The keeper has its copies: the programs' side is theirs alone, so that its end can be seen."""
        os.close(self.theirs)

    @property
    def is_copied_here(self) -> bool:
        """Whether this process copies."""
        return self._log is not None

    def copy_to(self, log: Path) -> None:
        """Copy from now on, from the running loop, since nobody else does any more."""
        if self._log is None:
            self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.set_blocking(self.ours, False)
            asyncio.get_running_loop().add_reader(self.ours, self.copy)

    def copy(self) -> None:
        """Copy what was printed; a full disk must not stop the job."""
        if self._log is None:
            return
        try:
            while data := os.read(self.ours, _PIECE_BYTES):
                self._write(self._log, data)
        except BlockingIOError:
            return
        except OSError:  # nobody holds the other side any more
            asyncio.get_running_loop().remove_reader(self.ours)

    def _write(self, log: int, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(log, data) :]
        except OSError:
            self.lost_bytes += len(data)
