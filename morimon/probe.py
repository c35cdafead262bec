"""The probe: what a rank tells morimon about itself. One file of the standard library, to import or to copy.

    from morimon.probe import Probe

    probe = Probe()                                  # rank and socket come from the environment
    probe.config(num_tokens=4096, hidden=7168, topk=8)
    for i in range(rounds):
        probe.enter("dispatch", i)                   # on arrival, before anything collective
        ...
        probe.done("dispatch", i, latency_us, recv_tokens=n, bytes=n * 7168 * 2)

Contract: a call never blocks, never raises because of the connection, the listener or the figures, and costs about a
tenth of a microsecond where MORIMON_SOCKET is not set. What cannot be sent is dropped and counted, and the count is
sent as soon as possible; only what was under way when a listener dies is lost without a count. A lost connection is
tried again at most every 0.1 s, later every 5 s, for as long as the job lives, since a listener may come back at any
time; between two attempts a call makes no system call. After a fork the child opens a connection of its own. A probe
may be shared by threads: a lock is held for one non-blocking send. A signal handler may use it too, even where it
interrupts a call; only the counts can then be off by one.

Figures are plain or numpy numbers. A GPU tensor is refused (and counted), because reading it would wait for the
device. The lines on the socket are described in docs/protocol.md, for programs that are not written in Python.
"""

from __future__ import annotations

import json
import numbers
import os
import socket
import threading
import time
import weakref
from collections.abc import Iterable
from types import TracebackType

__all__ = ["PROTOCOL_VERSION", "Probe"]

PROTOCOL_VERSION = 1

# Values that are written as they stand, without the encoder: `enter` and `done` are called where time is measured.
_PHASES = ("dispatch", "combine")
_PLAIN = frozenset((int, float, type(None)))

_NO_SIGNAL = int(socket.MSG_NOSIGNAL)

_FIRST_RETRY_NS = 100_000_000
_LAST_RETRY_NS = 5_000_000_000

_BUFFER_BYTES = 1 << 20
"""Asked for; the kernel gives what its limits allow, a few hundred lines, for the moments when nobody reads."""

_NO_LISTENER = "nobody listened on the probe's socket"
_FULL = "the probe's socket was full"
_NOT_A_FIGURE = "the probe was given a value that is no plain number, text or list"

# What torchrun, Open MPI's mpirun and MPICH's mpiexec tell their processes, in this order.
_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_LOCAL_RANK = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
_NODE = ("GROUP_RANK",)
_WORLD_SIZE = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_LOCAL_WORLD_SIZE = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
_RESTART = ("TORCHELASTIC_RESTART_COUNT",)


class Probe:
    """A rank's connection to morimon; arguments override what the environment says.

    A script that starts its own ranks gives `rank` (and `world_size`) itself. Without a rank only `config` and
    `progress` are of use; the listener counts the rest as dropped, with the reason. `socket_path` defaults to
    MORIMON_SOCKET. Nothing is opened before `hello`, `with`, or the first message.
    """

    def __init__(
        self,
        socket_path: str | os.PathLike[str] | None = None,
        *,
        rank: int | None = None,
        local_rank: int | None = None,
        node: int | None = None,
        world_size: int | None = None,
        local_world_size: int | None = None,
        restart: int | None = None,
    ) -> None:
        self._path = str(socket_path or os.environ.get("MORIMON_SOCKET") or "")
        self._hello = {
            "ev": "hello",
            "v": PROTOCOL_VERSION,
            "rank": _number(rank, _RANK),
            "local_rank": _number(local_rank, _LOCAL_RANK),
            "node": _number(node, _NODE),
            "world_size": _number(world_size, _WORLD_SIZE),
            "local_world_size": _number(local_world_size, _LOCAL_WORLD_SIZE),
            "restart": _number(restart, _RESTART) or 0,
        }
        self._start_over()
        if self._path:
            _probes.add(self)

    @property
    def dropped(self) -> int:
        """Messages that this process could not send so far."""
        return self._dropped

    def hello(self) -> None:
        """Connect now and name this rank, instead of with the first message."""
        if self._path:
            with self._lock:
                self._ready()

    def config(self, **fields: object) -> None:
        """Tell the job's configuration: num_tokens, hidden, topk, num_experts, dtype, kernel_type, backend, …

        The fields are those of morimon.model.config.JobConfig; later calls complete earlier ones. Once, by one rank,
        is enough.
        """
        self._tell({"ev": "config", "config": fields})

    def enter(self, phase: str, round: int) -> None:  # noqa: A002 - the field's word
        """Say that this rank arrives at `phase` ("dispatch" or "combine") of `round`; warm-up rounds are negative.

        The time is read first thing, so call this immediately before the kernel or collective: who is late is read
        from these times.
        """
        if self._path:
            t_ns = time.monotonic_ns()
            if type(phase) is str and phase in _PHASES and type(round) is int:
                self._send(f'{{"ev":"phase","t_ns":{t_ns},"round":{round},"phase":"{phase}"}}\n'.encode())
            else:
                self._tell({"ev": "phase", "t_ns": t_ns, "round": round, "phase": phase})

    def done(
        self,
        phase: str,
        round: int,  # noqa: A002 - the field's word
        latency_us: float,
        *,
        recv_tokens: int | None = None,
        rdma_tokens_algo: int | None = None,
        bytes: int | None = None,  # noqa: A002 - the record's word
        rdma_bytes: int | None = None,
    ) -> None:
        """Tell the figures of a finished phase.

        `bytes` is recv_tokens × hidden × element size, `rdma_bytes` the same of rdma_tokens_algo; bandwidths are
        computed from them and `latency_us`.
        """
        if not self._path:
            return
        t_ns = time.monotonic_ns()
        figures = (round, latency_us, recv_tokens, rdma_tokens_algo, bytes, rdma_bytes)
        if type(phase) is str and phase in _PHASES and _PLAIN.issuperset(map(type, figures)):
            line = (
                f'{{"ev":"round","t_ns":{t_ns},"round":{round},"phase":"{phase}","latency_us":{latency_us},'
                f'"recv_tokens":{recv_tokens},"rdma_tokens_algo":{rdma_tokens_algo},'
                f'"bytes":{bytes},"rdma_bytes":{rdma_bytes}}}\n'
            )
            self._send(line.replace("None", "null").encode())
        else:
            self._tell(
                {
                    "ev": "round",
                    "t_ns": t_ns,
                    "round": round,
                    "phase": phase,
                    "latency_us": latency_us,
                    "recv_tokens": recv_tokens,
                    "rdma_tokens_algo": rdma_tokens_algo,
                    "bytes": bytes,
                    "rdma_bytes": rdma_bytes,
                }
            )

    def tokens(self, recv_tokens: int, rdma_tokens_algo: int | None = None) -> None:
        """Tell how many tokens this rank receives with the present configuration, and how many of them by RDMA."""
        self._tell({"ev": "tokens", "recv_tokens": recv_tokens, "rdma_tokens_algo": rdma_tokens_algo})

    def traffic(self, to_ranks: Iterable[int], to_experts: Iterable[int] = ()) -> None:
        """Tell how many tokens this rank dispatches to every rank (world_size numbers), and on every expert."""
        if self._path:
            self._tell({"ev": "traffic", "to_ranks": to_ranks, "to_experts": to_experts})

    def progress(self, done: int, total: int | None = None, label: str = "") -> None:
        """Tell how far the job is."""
        self._tell({"ev": "progress", "done": done, "total": total, "label": label})

    def counter(self, name: str, value: float, unit: str = "") -> None:
        """Tell a figure of your own; `name` and `unit` are shown as they stand (at most 64 and 16 characters)."""
        if self._path:
            self._tell({"ev": "counter", "name": name, "value": value, "unit": unit})

    def close(self) -> None:
        """End the connection; a later call opens a new one."""
        with self._lock:
            if self._socket is not None:
                self._flush(self._socket)
                self._disconnect()

    def __enter__(self) -> Probe:  # noqa: PYI034 - typing.Self needs Python 3.11
        self.hello()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start_over(self) -> None:
        """Begin without a connection, as at construction or in a forked child."""
        self._dropped = 0
        self._lock = threading.RLock()
        self._socket: socket.socket | None = None
        self._rest = b""
        self._untold: dict[str, int] = {}
        self._retry_ns = 0
        self._pause_ns = _FIRST_RETRY_NS

    def _leave_parent(self) -> None:
        """In a forked child: leave the parent's connection to the parent."""
        if self._socket is not None:
            self._socket.close()
        self._start_over()

    def _tell(self, fields: dict[str, object]) -> None:
        """Encode and send a message."""
        if not self._path:
            return
        try:
            line = _line(fields)
        except Exception:  # noqa: BLE001 - a fault of a figure's own methods is counted, never the job's
            with self._lock:
                self._drop(_NOT_A_FIGURE)
        else:
            self._send(line)

    def _send(self, line: bytes) -> None:
        """Send one message; what does not leave now is counted."""
        self._lock.acquire()  # with caches cold, as they are after a kernel, a `with` costs twice as much
        try:
            connection = self._socket
            if connection is None or self._rest or self._untold:
                connection = self._ready()
            if connection is None or not self._put(connection, line):
                self._drop(_FULL if self._socket else _NO_LISTENER)
        finally:
            self._lock.release()

    def _ready(self) -> socket.socket | None:
        """The connection, if there is one and nothing is left to be sent first."""
        connection = self._socket or self._connect()
        return connection if connection is not None and self._flush(connection) else None

    def _connect(self) -> socket.socket | None:
        """A connection with the hello sent, or None while nobody listens; a Unix socket connects at once or fails."""
        now = time.monotonic_ns()
        if now < self._retry_ns:
            return None
        lasted = now - self._retry_ns > _LAST_RETRY_NS
        self._pause_ns = _FIRST_RETRY_NS if lasted else min(2 * self._pause_ns, _LAST_RETRY_NS)
        self._retry_ns = now + self._pause_ns
        connection = self._new_connection()
        if (
            connection is not None and self._socket is not None
        ):  # a signal handler that came in between has one
            connection.close()
        elif connection is not None:
            self._socket, self._rest = connection, b""
        return self._socket

    def _new_connection(self) -> socket.socket | None:
        """A connected socket with the hello sent whole; the probe's own state changes when it is there, not before."""
        hello = _line(self._hello)
        try:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError:
            return None
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
            connection.connect(self._path)
            if connection.send(hello, _NO_SIGNAL) == len(hello):
                return connection
        except (OSError, ValueError):  # ValueError: a null byte in the path
            pass
        connection.close()
        return None

    def _flush(self, connection: socket.socket) -> bool:
        """Send what an earlier short send left, then the untold drops; True where the way is free."""
        if self._rest and not self._put(connection, self._rest):
            return False
        while self._untold and not self._rest:
            reason, count = self._untold.popitem()
            if not self._put(connection, _line({"ev": "dropped", "count": count, "reason": reason})):
                self._untold[reason] = count
                return False
        return not self._rest

    def _put(self, connection: socket.socket, line: bytes) -> bool:
        """Hand a line to the kernel; False where none of it left. What is left of a part goes to `_rest`."""
        try:
            sent = connection.send(line, _NO_SIGNAL)
        except BlockingIOError:
            return False
        except OSError:
            self._disconnect()
            return False
        self._rest = line[sent:]
        return True

    def _drop(self, reason: str) -> None:
        self._dropped += 1
        self._untold[reason] = self._untold.get(reason, 0) + 1

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._rest = b""


def _line(fields: dict[str, object]) -> bytes:
    return (_encode(fields) + "\n").encode("ascii")


def _plain(value: object) -> object:
    """What JSON knows for a numpy number or an iterable of numbers; TypeError for the rest, GPU tensors included."""
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no figure")


_encode = json.JSONEncoder(separators=(",", ":"), default=_plain).encode


def _number(given: object, names: tuple[str, ...]) -> int | None:
    """The given number, or the first of these environment variables that holds one."""
    if isinstance(given, numbers.Integral):
        return int(given)
    texts = map(os.environ.get, names)
    return next((int(text) for text in texts if text and len(text) < 10 and text.isdecimal()), None)


_probes: weakref.WeakSet[Probe] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for probe in _probes:
        probe._leave_parent()  # noqa: SLF001 - the same module


os.register_at_fork(after_in_child=_after_fork_in_child)
