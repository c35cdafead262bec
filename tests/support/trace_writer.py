"""Writes a trace into a folder the way a job does: a process that is told step by step what to do.

Run as a script: every line on standard input is a command ("write 1000": the next 1000 bytes, "write rest", "flush"
happens by itself, "end": close and leave), and each is answered by "done" when it is on disk.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import IO


class TraceWriter:
    """A process that writes `text` into `path` a piece at a time."""

    def __init__(self, path: Path, text: bytes) -> None:
        source = path.with_name(f".{path.name}.text")
        source.write_bytes(text)
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(source), str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> TraceWriter:  # noqa: PYI034 - typing.Self is new in Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def write(self, size: int | None = None) -> None:
        """Write the next `size` bytes, or all that is left; returns when they are in the file."""
        self._tell("write rest" if size is None else f"write {size}")

    def end(self) -> None:
        """Let it close the file and leave."""
        self._tell("end")
        self._process.wait()

    def kill(self) -> None:
        """Kill it where it stands (SIGKILL)."""
        self._process.kill()
        self._process.wait()

    def _tell(self, command: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"


def obey(commands: IO[str], text: bytes, path: Path) -> None:
    """The script: follow the commands."""
    at = 0
    with path.open("wb") as file:
        for command in commands:
            verb, _, size = command.strip().partition(" ")
            if verb == "end":
                break
            piece = text[at:] if size == "rest" else text[at : at + int(size)]
            at += file.write(piece)
            file.flush()
            print("done", flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    obey(sys.stdin, Path(sys.argv[1]).read_bytes(), Path(sys.argv[2]))
