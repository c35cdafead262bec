"""The hub's end of the probes' socket: who may connect, how much of it is read, and what becomes of bad input.

Lines become record events and go to `sink`, in order; a viewer's request to stop the job goes to `on_stop`. What is
set aside is counted by (reason, rank) and told as Dropped events, at most one a second for each.

The socket is read twenty times a second and not waited for in between: a rank that sends wakes nobody, and so is not
preempted in the moment that it measures. Nobody can harm the others: a connection is served `LINES_PER_POLL` lines at
a time, and what it sends beyond that waits in its own socket; a line is at most 64 KiB long; only the hub's own user,
and root, may connect.
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

POLLS_PER_SECOND = 20
LINES_PER_POLL = 100
PIECE_BYTES = 65536
PIECES_PER_POLL = 4
"""Read from one connection at a time, where its lines are few and long."""
MAX_CONNECTIONS = 512
"""Below the usual limit of open files; a node has fewer ranks."""
MAX_REASONS = 256
"""Different (reason, rank) pairs counted apart in a second."""
TELL_NS = 10**9


class Tally:
    """Counts of what was set aside, told to `sink` once a second while there are any."""

    def __init__(self, sink: Callable[[RecordEvent], None]) -> None:
        self._sink = sink
        self._counts: Counter[tuple[str, int | None]] = Counter()
        self._told_ns = 0

    def add(self, reason: str, rank: int | None, count: int = 1) -> None:
        """Count something that was set aside, and why."""
        key = (reason, rank)
        if key not in self._counts and len(self._counts) >= MAX_REASONS:
            key = ("input with faults of too many kinds", None)
        self._counts[key] += count

    def tell(self, now_ns: int, *, at_once: bool = False) -> None:
        """Send what was counted since the last time, if that is due."""
        if self._counts and (at_once or now_ns - self._told_ns >= TELL_NS):
            self._told_ns = now_ns
            counts, self._counts = self._counts, Counter()
            for (reason, rank), count in counts.items():
                self._sink(Dropped(t_ns=now_ns, count=count, reason=reason, rank=rank))


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
    job. `clock_ns` is CLOCK_MONOTONIC.
    """

    def __init__(
        self,
        sink: Callable[[RecordEvent], None],
        on_stop: Callable[[bool], None],
        *,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._sink = sink
        self._on_stop = on_stop
        self._clock_ns = clock_ns
        self._tally = Tally(sink)
        self._path: Path | None = None
        self._listener: socket.socket | None = None
        self._connections: list[_Connection] = []
        self._timer: asyncio.TimerHandle | None = None

    async def start(self, path: Path) -> None:
        """Listen on `path`, for this user alone; a socket that a dead hub left there is replaced.

        OSError where that is impossible (no such folder, path too long, a file of another kind in the way).
        """
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISSOCK(path.lstat().st_mode):
                path.unlink()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.setblocking(False)
            listener.bind(os.fspath(path))
            path.chmod(0o600)  # nobody can connect before the socket listens
            listener.listen(MAX_CONNECTIONS)
        except OSError:
            listener.close()
            raise
        self._path, self._listener = path, listener
        self._timer = asyncio.get_running_loop().call_later(1 / POLLS_PER_SECOND, self._turn)

    @property
    def connections(self) -> int:
        """Open connections, viewers' included."""
        return len(self._connections)

    def poll(self) -> None:
        """Accept who waits and serve everyone once; otherwise done by itself, POLLS_PER_SECOND times a second."""
        self._accept()
        self._connections = [
            connection for connection in self._connections if connection.serve(self._clock_ns)
        ]
        self._tally.tell(self._clock_ns())

    async def drain(self, timeout_s: float) -> bool:
        """Wait until everyone has hung up and all they said is with `sink`; False where some still hold on."""
        end_ns = self._clock_ns() + int(timeout_s * 1e9)
        self.poll()
        while self._connections and self._clock_ns() < end_ns:
            await asyncio.sleep(0.01)  # more often than usual: nobody is measuring any more
            self.poll()
        return not self._connections

    def close(self) -> None:
        """Stop listening, hang up on everyone, tell the last counts, remove the socket."""
        if self._timer is not None:
            self._timer.cancel()
        self.poll()
        for connection in self._connections:
            connection.end(self._clock_ns())
        self._connections = []
        self._tally.tell(self._clock_ns(), at_once=True)
        if self._listener is not None and self._path is not None:
            self._listener.close()
            self._path.unlink(missing_ok=True)
            self._listener = self._path = None

    def _turn(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(1 / POLLS_PER_SECOND, self._turn)
        self.poll()

    def _accept(self) -> None:
        while self._listener is not None:
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:  # no file descriptors left, or whoever came is gone again
                self._tally.add(f"a connection that could not be accepted: {error.strerror}", None)
                return
            pid, uid = _peer(connection)
            if uid not in (os.geteuid(), 0):
                self._tally.add(f"a connection of another user (uid {uid}), refused", None)
                connection.close()
            elif len(self._connections) >= MAX_CONNECTIONS:
                self._tally.add(f"a connection beyond {MAX_CONNECTIONS}, refused", None)
                connection.close()
            else:
                connection.setblocking(False)
                self._connections.append(_Connection(connection, pid, self._sink, self._on_stop, self._tally))


class _Connection:
    """One probe or viewer."""

    def __init__(
        self,
        connection: socket.socket,
        pid: int,
        sink: Callable[[RecordEvent], None],
        on_stop: Callable[[bool], None],
        tally: Tally,
    ) -> None:
        self._socket = connection
        self._sender = Sender(pid)
        self._sink = sink
        self._on_stop = on_stop
        self._tally = tally
        self._splitter = LineSplitter()
        self._lines: deque[bytes] = deque()
        self._read_ns = 0
        self._refusal: str | None = None
        self._dropped = 0

    def serve(self, clock_ns: Callable[[], int]) -> bool:
        """Read and handle as much as one connection may at a time; False where it has ended."""
        pieces, lines = PIECES_PER_POLL, LINES_PER_POLL
        while lines:
            if self._lines:
                lines -= 1
                self._receive(self._lines.popleft(), self._read_ns)
            elif not pieces:
                return True
            else:
                pieces -= 1
                try:
                    data = self._socket.recv(PIECE_BYTES)
                except BlockingIOError:
                    return True
                except OSError:  # reset by its process
                    data = b""
                self._read_ns = clock_ns()
                if not data:
                    self.end(self._read_ns)
                    return False
                self._lines.extend(self._splitter.feed(data))
        return True

    def end(self, now_ns: int) -> None:
        """Hang up, with what was received so far."""
        self._socket.close()
        while self._lines:
            self._receive(self._lines.popleft(), now_ns)
        if self._splitter.unfinished:
            self._set_aside("half a line at the end of a connection")
        if (rank := self._sender.rank) is not None:
            self._sink(Bye(t_ns=now_ns, rank=rank, restart=self._sender.restart, dropped=self._dropped))

    def _receive(self, line: bytes, now_ns: int) -> None:
        if self._refusal is not None:
            self._set_aside(self._refusal)
            return
        try:
            message = parse(line)
            if isinstance(message, DroppedMessage):
                self._dropped += message.count
                self._set_aside(message.reason, message.count)
            elif isinstance(message, StopMessage):
                self._on_stop(message.force)
            else:
                if isinstance(message, HelloMessage):
                    self._sender.greet(message)
                self._sink(self._sender.event(message, self._time(message, now_ns)))
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
        self._tally.add(reason, self._sender.rank, count)


def _peer(connection: socket.socket) -> tuple[int, int]:
    """(pid, uid) of the process that connected, as the kernel recorded it."""
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid
