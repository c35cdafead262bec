"""The hub's end of the probes' socket: who may connect, how much of it is read, and what becomes of bad input.

Every connection is one protocol object. Its lines become record events and go to `sink`, in order and at once; a
viewer's request to stop the job goes to `on_stop`. What is set aside is counted by (reason, rank) and told as Dropped
events, at most one a second for each.

Nobody can harm the others: a connection is served `LINES_PER_TURN` lines a turn of the loop and `LINES_PER_SECOND` in
the long run, and is not read in between, so that a flood fills its own socket and no one's memory; a line is at most
64 KiB long; only the hub's own user, and root, may connect.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import struct
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from morimon.hub.protocol import (
    MAX_LINE_BYTES,
    DroppedMessage,
    HelloMessage,
    Message,
    ProtocolError,
    Sender,
    StopMessage,
    VersionError,
    parse,
    plausible,
)
from morimon.model.events import Bye, Dropped, RecordEvent

LINES_PER_TURN = 64
LINES_PER_SECOND = 2000
"""What one connection is served in the long run; a second's worth may come at once."""
BYTES_PER_LINE = 4096
"""Input that makes few lines of many bytes is charged as if its lines were this long."""
MAX_REASONS = 256
"""Different (reason, rank) pairs counted apart in a second."""
MAX_CONNECTIONS = 512
"""Below the usual limit of open files; a node has fewer ranks."""

Clock: TypeAlias = Callable[[], int]


class Tally:
    """Counts of what was set aside, told to `sink` once a second while there are any."""

    def __init__(self, sink: Callable[[RecordEvent], None], clock_ns: Clock) -> None:
        self._sink = sink
        self._clock_ns = clock_ns
        self._counts: Counter[tuple[str, int | None]] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, reason: str, rank: int | None, count: int = 1) -> None:
        """Count something that was set aside, and why."""
        key = (reason, rank)
        if key not in self._counts and len(self._counts) >= MAX_REASONS:
            key = ("input with faults of too many kinds", None)
        self._counts[key] += count
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(1, self.tell)

    def tell(self) -> None:
        """Send what was counted since the last time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        counts, self._counts = self._counts, Counter()
        for (reason, rank), count in counts.items():
            self._sink(Dropped(t_ns=self._clock_ns(), count=count, reason=reason, rank=rank))


class LineSplitter:
    """Bytes as they come to lines; of a line that does not end in time only a beginning that is too long is given."""

    def __init__(self) -> None:
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines, without their newlines, that `data` completes or makes longer than MAX_LINE_BYTES."""
        if self._skipping:
            _, newline, data = data.partition(b"\n")
            if not newline:
                return []
            self._skipping = False
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            lines.append(self._rest[: MAX_LINE_BYTES + 1])
            self._rest = b""
            self._skipping = True
        return lines

    @property
    def unfinished(self) -> bool:
        """Whether a line has begun and not ended."""
        return bool(self._rest)


class ProbeServer:
    """The listening socket of one run.

    `sink` receives every event; it must not raise. `on_stop(force)` is called where a viewer asks for the end of the
    job. `clock_ns` is CLOCK_MONOTONIC. Errors that the operating system reports at `start` (no such folder, path too
    long) are raised as OSError.
    """

    def __init__(
        self,
        sink: Callable[[RecordEvent], None],
        on_stop: Callable[[bool], None],
        *,
        clock_ns: Clock = time.monotonic_ns,
    ) -> None:
        self.sink = sink
        self.on_stop = on_stop
        self.clock_ns = clock_ns
        self.tally = Tally(sink, clock_ns)
        self._path: Path | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
        self._all_gone = asyncio.Event()
        self._all_gone.set()

    async def start(self, path: Path) -> None:
        """Listen on `path`, for this user alone; a socket that a dead hub left there is replaced."""
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISSOCK(path.lstat().st_mode):
                path.unlink()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.setblocking(False)
            listener.bind(os.fspath(path))
            path.chmod(0o600)  # nobody can connect before the socket listens
            self._server = await asyncio.get_running_loop().create_unix_server(
                lambda: _Connection(self), sock=listener, backlog=MAX_CONNECTIONS
            )
        except BaseException:
            listener.close()
            raise
        self._path = path

    @property
    def connections(self) -> int:
        """Open connections, viewers' included."""
        return len(self._connections)

    async def drain(self, timeout_s: float) -> bool:
        """Wait until everyone has hung up and all they said is with `sink`; False where some still hold on."""
        assert self._path is not None
        self._all_gone.clear()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as last_in_the_queue:
            last_in_the_queue.setblocking(False)
            await asyncio.get_running_loop().sock_connect(last_in_the_queue, os.fspath(self._path))
        try:
            await asyncio.wait_for(self._all_gone.wait(), timeout_s)
        except (TimeoutError, asyncio.TimeoutError):
            return False
        return True

    def close(self) -> None:
        """Stop listening, hang up on everyone, tell the last counts, remove the socket."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self._connections):
            connection.hang_up()
        self.tally.tell()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None

    def opened(self, connection: _Connection) -> None:
        """A connection began (called by it)."""
        self._connections.add(connection)
        self._all_gone.clear()

    def ended(self, connection: _Connection) -> None:
        """A connection is over (called by it)."""
        self._connections.discard(connection)
        if not self._connections:
            self._all_gone.set()


class _Connection(asyncio.Protocol):
    """One probe or viewer."""

    def __init__(self, server: ProbeServer) -> None:
        self._server = server
        self._sender = Sender()
        self._splitter = LineSplitter()
        self._lines: deque[bytes] = deque()
        self._transport: asyncio.Transport | None = None
        self._refusal: str | None = None
        self._dropped = 0
        self._allowance = float(LINES_PER_SECOND)
        self._allowed_ns = server.clock_ns()
        self._next_turn: asyncio.Handle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        pid, uid = _peer(transport.get_extra_info("socket"))
        if uid not in (os.geteuid(), 0):
            self._server.tally.add(f"a connection of another user (uid {uid}), refused", None)
            transport.abort()
            return
        if self._server.connections >= MAX_CONNECTIONS:
            self._server.tally.add(f"a connection beyond {MAX_CONNECTIONS}, refused", None)
            transport.abort()
            return
        self._transport = transport
        self._sender.peer_pid = pid
        self._server.opened(self)

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            return
        lines = self._splitter.feed(data)
        self._allowance -= max(0, max(1, len(data) // BYTES_PER_LINE) - len(lines))
        self._lines.extend(lines)
        self._take_turn()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is None:
            return
        self._transport = None
        if self._next_turn is not None:
            self._next_turn.cancel()
        now_ns = self._server.clock_ns()
        while self._lines:
            self._receive(self._lines.popleft(), now_ns)
        if self._splitter.unfinished:
            self._set_aside("half a line at the end of a connection")
        if (rank := self._sender.rank) is not None:
            self._server.sink(
                Bye(t_ns=now_ns, rank=rank, restart=self._sender.restart, dropped=self._dropped)
            )
        self._server.ended(self)

    def hang_up(self) -> None:
        """Close at once, with what was received so far."""
        if self._transport is not None:
            self._transport.abort()
            self.connection_lost(None)

    def _take_turn(self) -> None:
        """Serve as many lines as this turn may; then read on, or wait for the next turn."""
        if self._transport is None:
            return
        self._next_turn = None
        now_ns = self._server.clock_ns()
        grown = (now_ns - self._allowed_ns) * LINES_PER_SECOND / 1e9
        self._allowance = min(self._allowance + grown, LINES_PER_SECOND)
        self._allowed_ns = now_ns
        for _ in range(min(LINES_PER_TURN, len(self._lines), max(0, int(self._allowance)))):
            self._allowance -= 1
            self._receive(self._lines.popleft(), now_ns)
        loop = asyncio.get_running_loop()
        if self._allowance < 1:
            self._transport.pause_reading()
            self._next_turn = loop.call_later(LINES_PER_TURN / LINES_PER_SECOND, self._take_turn)
        elif self._lines:
            self._transport.pause_reading()
            self._next_turn = loop.call_soon(self._take_turn)
        else:
            self._transport.resume_reading()

    def _receive(self, line: bytes, now_ns: int) -> None:
        if self._refusal is not None:
            self._set_aside(self._refusal)
            return
        try:
            message = parse(line)
            if isinstance(message, DroppedMessage):
                self._dropped += message.count
                self._set_aside(message.reason, message.count)
                return
            if isinstance(message, StopMessage):
                self._server.on_stop(message.force)
                return
            if isinstance(message, HelloMessage):
                self._sender.greet(message)
            self._server.sink(self._sender.event(message, self._time(message, now_ns)))
        except VersionError as error:
            self._refusal = str(error)
            self._set_aside(self._refusal)
        except ProtocolError as error:
            self._set_aside(str(error))

    def _time(self, message: Message, now_ns: int) -> int:
        """When it happened: the rank's own word where it can be true, else the time of arrival."""
        if message.t_ns is None:
            return now_ns
        if not plausible(message.t_ns, now_ns):
            self._set_aside("a time not of this host's monotonic clock, replaced by the time of arrival")
            return now_ns
        return message.t_ns

    def _set_aside(self, reason: str, count: int = 1) -> None:
        self._server.tally.add(reason, self._sender.rank, count)


def _peer(connection: socket.socket) -> tuple[int, int]:
    """(pid, uid) of the process that connected, as the kernel recorded it."""
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid
