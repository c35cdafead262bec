"""Both ends of the probes' socket for tests: a real hub end in this loop, and a plain listener that reads on demand."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from morimon.hub.probes import ProbeServer
from morimon.model.events import Dropped, Event, RecordEvent

DEADLINE_S = 30.0
E = TypeVar("E", bound=Event)


@dataclass
class Heard:
    """What a ProbeServer gave to its sink and to its stop callback."""

    events: list[RecordEvent] = field(default_factory=list)
    stops: list[bool] = field(default_factory=list)

    def of(self, kind: type[E], rank: int | None = None) -> list[E]:
        """The events of a kind so far, of one rank where it is given."""
        events = [event for event in self.events if isinstance(event, kind)]
        return [event for event in events if rank is None or getattr(event, "rank", None) == rank]

    def dropped(self, rank: int | None = None) -> dict[str, int]:
        """What was set aside so far by reason, of this rank or of nobody known."""
        counts: dict[str, int] = {}
        for event in self.of(Dropped):
            if event.rank == rank:
                counts[event.reason] = counts.get(event.reason, 0) + event.count
        return counts


@contextlib.asynccontextmanager
async def serving(path: Path, **options: Any) -> AsyncIterator[tuple[ProbeServer, Heard]]:
    """A listening hub end, closed at the end."""
    heard = Heard()
    server = ProbeServer(heard.events.append, heard.stops.append, **options)
    await server.start(path)
    try:
        yield server, heard
    finally:
        server.close()


def tell_now(server: ProbeServer) -> None:
    """Have the counts of what was set aside in `heard` before the second is over."""
    server._tally.tell(time.monotonic_ns(), at_once=True)


async def until(condition: Callable[[], object], what: str) -> None:
    """Let the loop run until the condition holds; AssertionError after DEADLINE_S."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, f"waited in vain: {what}"
        await asyncio.sleep(0.005)


class Listener:
    """A socket that accepts and reads when it is told to, for one connection at a time."""

    def __init__(self, path: Path, backlog: int = 16) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen(backlog)
        self._socket.settimeout(DEADLINE_S)

    def accept(self) -> socket.socket:
        """The next connection."""
        connection, _ = self._socket.accept()
        connection.settimeout(DEADLINE_S)
        return connection

    def close(self) -> None:
        """Stop listening and remove the socket."""
        self._socket.close()
        self.path.unlink(missing_ok=True)


def objects(connection: socket.socket) -> Iterator[dict[str, Any]]:
    """The lines of a connection until it ends, each of which must be one whole JSON object."""
    with connection.makefile("rb") as lines:
        for line in lines:
            value = json.loads(line)
            assert isinstance(value, dict)
            yield value
