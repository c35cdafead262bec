"""What a successor must know of a record that an earlier hub left unfinished."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from morimon.model.codec import decode
from morimon.model.events import (
    JobChanged,
    JobFailed,
    LogLines,
    RankExited,
    RankProcess,
    RunEnded,
    RunHeader,
)

_NEEDED = tuple(
    f'{{"ev":"{kind.__struct_config__.tag}",'.encode()
    for kind in (RunHeader, LogLines, JobChanged, JobFailed, RankProcess, RankExited, RunEnded)
)


@dataclass
class Recorded:
    """The state of a run as its record tells it."""

    header: RunHeader | None = None
    log_bytes: dict[str, int] = field(default_factory=dict)
    """How much of each output file is recorded, by its path in the run folder."""
    processes: list[RankProcess] = field(default_factory=list)
    exits: list[RankExited] = field(default_factory=list)
    state: JobChanged | None = None
    stopped_ns: int | None = None
    failed: JobFailed | None = None
    ended: RunEnded | None = None


def read_recorded(path: Path) -> Recorded:
    """Go through a record once; lines that are none are left out. Nothing is recorded where there is no file."""
    recorded = Recorded()
    if not path.exists():
        return recorded
    with path.open("rb") as file:
        for line in file:
            if not line.startswith(_NEEDED):
                continue
            try:
                event = decode(line)
            except msgspec.DecodeError:  # the end of a hub that was killed while it wrote
                continue
            match event:
                case RunHeader():
                    recorded.header = event
                case LogLines():
                    end = event.offset + event.length
                    recorded.log_bytes[event.file] = max(end, recorded.log_bytes.get(event.file, 0))
                case JobChanged():
                    recorded.state = event
                    if event.state == "stopping" and recorded.stopped_ns is None:
                        recorded.stopped_ns = event.t_ns
                case JobFailed():
                    recorded.failed = event
                case RankProcess():
                    recorded.processes.append(event)
                case RankExited():
                    recorded.exits.append(event)
                case RunEnded():
                    recorded.ended = event
    return recorded
