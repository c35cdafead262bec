"""Lines from probes to record events: the forms of docs/protocol.md, version 1.

Pure. A line is one JSON object tagged by `ev`, in the words of `morimon.model.events`. What a probe may leave out is
filled in here: the time, and the rank and restart that the connection's hello named. Text and numbers from a probe
are data of bounded size; control codes in them are kept, for whoever shows them to escape.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from morimon.model.config import JobConfig
from morimon.model.events import (
    Configured,
    Counter,
    Hello,
    Phase,
    PhaseDone,
    PhaseEntered,
    Progress,
    RecordEvent,
    Tokens,
    Traffic,
)

PROTOCOL_VERSION = 1
MAX_LINE_BYTES = 65536
MAX_WORLD_SIZE = 4096
"""Ranks beyond this are taken for a fault: every rank costs its readers memory."""
OLDEST_NS = 600 * 10**9
"""A rank may report what happened up to ten minutes ago."""
NEWEST_NS = 10**7
"""One host has one monotonic clock: a time of the future is a fault, or another clock."""

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Round: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
_Restart: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
_Rank: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=MAX_WORLD_SIZE)]
_World: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MAX_WORLD_SIZE)]
_Microseconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
_Unit: TypeAlias = Annotated[str, msgspec.Meta(max_length=16)]
_Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=200)]
_Tokens: TypeAlias = Annotated[tuple[_Count, ...], msgspec.Meta(max_length=MAX_WORLD_SIZE)]
_Experts: TypeAlias = Annotated[tuple[_Count, ...], msgspec.Meta(max_length=2**16)]


class ProtocolError(Exception):
    """A line that is set aside; its text says why, to be counted and shown."""


class VersionError(ProtocolError):
    """A hello of another protocol version: nothing on its connection can be understood."""


class Message(
    msgspec.Struct, frozen=True, tag_field="ev", forbid_unknown_fields=True, kw_only=True, gc=False
):
    """What every line may carry. Unknown fields are faults: a misspelt figure must not vanish silently."""

    t_ns: _Count | None = None
    rank: _Rank | None = None
    restart: _Restart | None = None


class HelloMessage(Message, frozen=True, kw_only=True, tag="hello"):
    """First line of a rank's connection."""

    v: int
    local_rank: _Rank | None = None
    node: _Rank | None = None
    world_size: _World | None = None
    local_world_size: _World | None = None
    pid: _Count | None = None
    host: _Text | None = None


class ConfigMessage(Message, frozen=True, kw_only=True, tag="config"):
    """The job's configuration: fields of JobConfig."""

    config: dict[str, _Text | _Count | None]


class PhaseMessage(Message, frozen=True, kw_only=True, tag="phase"):
    """The rank arrives at a phase."""

    round: _Round
    phase: Phase


class RoundMessage(Message, frozen=True, kw_only=True, tag="round"):
    """Figures of a finished phase."""

    round: _Round
    phase: Phase
    latency_us: _Microseconds
    recv_tokens: _Count | None = None
    rdma_tokens_algo: _Count | None = None
    bytes: _Count | None = None
    rdma_bytes: _Count | None = None


class TokensMessage(Message, frozen=True, kw_only=True, tag="tokens"):
    """Token counts of the rank."""

    recv_tokens: _Count
    rdma_tokens_algo: _Count | None = None


class TrafficMessage(Message, frozen=True, kw_only=True, tag="traffic"):
    """What the rank dispatches to whom."""

    to_ranks: _Tokens
    to_experts: _Experts = ()


class ProgressMessage(Message, frozen=True, kw_only=True, tag="progress"):
    """How far the job is."""

    done: _Count
    total: _Count | None = None
    label: _Text = ""


class CounterMessage(Message, frozen=True, kw_only=True, tag="counter"):
    """A figure of the job's own."""

    name: _Name
    value: float
    unit: _Unit = ""


class DroppedMessage(Message, frozen=True, kw_only=True, tag="dropped"):
    """How many messages the probe had to drop since it last said so."""

    count: _Count
    reason: _Text = "the probe's socket was full"


class StopMessage(Message, frozen=True, kw_only=True, tag="stop"):
    """A viewer asks for the end of the job."""

    force: bool = False


EventMessage: TypeAlias = (
    HelloMessage
    | ConfigMessage
    | PhaseMessage
    | RoundMessage
    | TokensMessage
    | TrafficMessage
    | ProgressMessage
    | CounterMessage
)
AnyMessage: TypeAlias = EventMessage | DroppedMessage | StopMessage

_decoder: msgspec.json.Decoder[AnyMessage] = msgspec.json.Decoder(AnyMessage)


def parse(line: bytes) -> AnyMessage:
    """The message of one line (with or without its newline); ProtocolError where it is none."""
    if len(line) > MAX_LINE_BYTES:
        raise ProtocolError(f"a line longer than {MAX_LINE_BYTES // 1024} KiB")
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"not a message of protocol version {PROTOCOL_VERSION}: {error}"[:160]) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ProtocolError("not a line of JSON") from None
    except RecursionError:
        raise ProtocolError("JSON nested too deeply") from None


class Sender:
    """Who speaks on one connection: nobody known, until a hello says it."""

    def __init__(self, peer_pid: int | None = None) -> None:
        self.peer_pid = peer_pid
        self.rank: int | None = None
        self.restart = 0
        self.world_size: int | None = None

    def greet(self, message: HelloMessage) -> None:
        """Take rank, restart and world size from a hello; ProtocolError where it makes no sense."""
        if message.v != PROTOCOL_VERSION:
            raise VersionError(f"a probe of protocol version {message.v}; only {PROTOCOL_VERSION} is known")
        _check_below("rank", message.rank, message.world_size)
        _check_below("local rank", message.local_rank, message.local_world_size)
        if message.rank is None:
            raise ProtocolError("a hello without a rank: RANK is not set and the probe was given none")
        self.rank = message.rank
        self.restart = message.restart or 0
        self.world_size = message.world_size

    def event(self, message: EventMessage, t_ns: int) -> RecordEvent:
        """The record event of a message that happened at `t_ns`; ProtocolError where rank or figures make no sense."""
        rank = self.rank if message.rank is None else message.rank
        restart = self.restart if message.restart is None else message.restart
        match message:
            case ConfigMessage():
                return Configured(t_ns=t_ns, config=_job_config(message.config), restart=restart)
            case ProgressMessage():
                return Progress(
                    t_ns=t_ns,
                    done=message.done,
                    total=message.total,
                    label=message.label,
                    rank=rank or 0,
                    restart=restart,
                )
        if rank is None:
            raise ProtocolError("a line without a rank, on a connection whose hello named none")
        _check_below("rank", rank, self.world_size)
        match message:
            case PhaseMessage():
                return PhaseEntered(
                    t_ns=t_ns, rank=rank, round=message.round, phase=message.phase, restart=restart
                )
            case RoundMessage():
                return PhaseDone(
                    t_ns=t_ns,
                    rank=rank,
                    round=message.round,
                    phase=message.phase,
                    latency_us=message.latency_us,
                    restart=restart,
                    recv_tokens=message.recv_tokens,
                    rdma_tokens_algo=message.rdma_tokens_algo,
                    bytes=message.bytes,
                    rdma_bytes=message.rdma_bytes,
                )
            case TokensMessage():
                return Tokens(
                    t_ns=t_ns,
                    rank=rank,
                    recv_tokens=message.recv_tokens,
                    rdma_tokens_algo=message.rdma_tokens_algo,
                    restart=restart,
                )
            case TrafficMessage():
                return self._traffic(message, t_ns, rank, restart)
            case CounterMessage():
                return Counter(
                    t_ns=t_ns,
                    rank=rank,
                    name=message.name,
                    value=message.value,
                    unit=message.unit,
                    restart=restart,
                )
            case HelloMessage():
                return Hello(
                    t_ns=t_ns,
                    rank=rank,
                    restart=restart,
                    local_rank=message.local_rank,
                    node=message.node,
                    world_size=message.world_size,
                    local_world_size=message.local_world_size,
                    pid=self.peer_pid if message.pid is None else message.pid,
                    host=message.host,
                )

    def _traffic(self, message: TrafficMessage, t_ns: int, rank: int, restart: int) -> Traffic:
        if self.world_size not in (None, len(message.to_ranks)):
            raise ProtocolError("a traffic line whose to_ranks is not of length world_size")
        return Traffic(
            t_ns=t_ns,
            rank=rank,
            to_ranks=message.to_ranks,
            to_experts=message.to_experts,
            restart=restart,
        )


def plausible(t_ns: int, now_ns: int) -> bool:
    """Whether a rank's own time can be of this host's monotonic clock, read not long ago."""
    return now_ns - OLDEST_NS <= t_ns <= now_ns + NEWEST_NS


def _check_below(what: str, number: int | None, size: int | None) -> None:
    if number is not None and size is not None and number >= size:
        raise ProtocolError(f"{what} {number} in a world of {size}")


def _job_config(fields: dict[str, str | int | None]) -> JobConfig:
    unknown = sorted(fields.keys() - set(JobConfig.__struct_fields__))
    if unknown:
        raise ProtocolError(f"a configuration with an unknown field: {unknown[0]}"[:160])
    try:
        return msgspec.convert(fields, JobConfig)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"a configuration that makes no sense: {error}"[:160]) from None
