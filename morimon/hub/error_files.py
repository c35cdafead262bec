"""torchrun's error files: a rank whose main function is wrapped by `@record` writes its error down before it ends.

output/<name>/attempt_<restart>/<local_rank>/error.json     {"message": {"message": "ValueError: …", …}}, or a string
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from morimon.hub.outcome import Attempts
from morimon.hub.output_files import RankOf
from morimon.model.events import Failure

_PLACE = re.compile(r"attempt_(\d+)/(\d+)/error\.json$")
_LONGEST_CAUSE = 2000
_MOST_BYTES = 1 << 20


class _Details(msgspec.Struct):
    message: str


class _ErrorFile(msgspec.Struct):
    message: _Details | str


class ErrorFiles:
    """The error files below torchrun's log folder; each is told to `attempts` once."""

    def __init__(self, output: Path, rank_of: RankOf, attempts: Attempts) -> None:
        self._output = output
        self._rank_of = rank_of
        self._attempts = attempts
        self._told: set[Path] = set()

    def look(self) -> None:
        """Take in what is new; a file that is still being written is looked at again."""
        for path in sorted(self._output.glob("*/attempt_*/*/error.json")):
            place = _PLACE.search(path.as_posix())
            cause = None if path in self._told or place is None else cause_of(path)
            if cause is None or place is None:
                continue
            self._told.add(path)
            restart, local_rank = int(place[1]), int(place[2])
            failure = Failure(rank=self._rank_of(restart, local_rank), cause=cause)
            self._attempts.of(restart).add(failure)


def cause_of(path: Path) -> str | None:
    """First line of the error that a file tells; None where it is no such file."""
    try:
        with path.open("rb") as file:
            message = msgspec.json.decode(file.read(_MOST_BYTES), type=_ErrorFile).message
    except (OSError, msgspec.DecodeError):
        return None
    text = message if isinstance(message, str) else message.message
    return text.strip().partition("\n")[0][:_LONGEST_CAUSE] or None
