"""What happens in a run, as frozen structs: the lines of a run folder's `events.jsonl`.

One JSON object a line, tagged by `ev`. The hub writes them, every viewer reads them, nothing else passes between the
two. Times `t_ns` are CLOCK_MONOTONIC nanoseconds of the host that wrote the record; the header ties them to the
calendar. A rank's data are keyed by (restart, rank), since torchrun may give a rank to another process after a
restart.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import msgspec

from morimon.model.config import JobConfig

RECORD_VERSION = 1

Phase: TypeAlias = Literal["dispatch", "combine"]
PHASES: tuple[Phase, ...] = get_args(Phase)
Stream: TypeAlias = Literal["stdout", "stderr", "console"]
Level: TypeAlias = Literal["info", "warning", "error"]
JobState: TypeAlias = Literal["starting", "running", "stopping"]
Outcome: TypeAlias = Literal["finished", "failed", "stopped", "lost"]


class Event(msgspec.Struct, frozen=True, tag_field="ev", omit_defaults=True, kw_only=True, gc=False):
    """Base of all record lines; `t_ns` is CLOCK_MONOTONIC of the recording host."""

    t_ns: int


class RunHeader(Event, frozen=True, kw_only=True, tag="run"):
    """First line of a record: what was started, where, and how its clock maps to the calendar."""

    version: int
    run_id: str
    host: str
    boot_id: str
    unix_ns: int
    """CLOCK_REALTIME at the moment `t_ns`."""
    command: tuple[str, ...]
    cwd: str
    kind: Literal["builtin", "script", "command"]
    nproc: int | None = None
    """Ranks that were asked for on this node; None where a whole command decides for itself."""


class HubStarted(Event, frozen=True, kw_only=True, tag="hub"):
    """A hub took up the record: the first one, or a successor after the last one died."""

    pid: int
    resumed: bool = False


class JobChanged(Event, frozen=True, kw_only=True, tag="job"):
    """The job entered a state; its end is told by `RunEnded`."""

    state: JobState
    agent_pid: int | None = None


class RankProcess(Event, frozen=True, kw_only=True, tag="process"):
    """A rank's process was found below the agent; (pid, started_s) is its identity."""

    rank: int
    restart: int
    local_rank: int
    node: int
    pid: int
    started_s: float
    """Start time, seconds since the epoch."""


class RankExited(Event, frozen=True, kw_only=True, tag="exited"):
    """A rank's process is gone. `exitcode` and `signal` are None where nobody could tell."""

    rank: int
    restart: int
    pid: int
    exitcode: int | None = None
    signal: int | None = None


class Hello(Event, frozen=True, kw_only=True, tag="hello"):
    """A probe connected and named its rank."""

    rank: int
    restart: int = 0
    local_rank: int | None = None
    node: int | None = None
    world_size: int | None = None
    local_world_size: int | None = None
    pid: int | None = None
    host: str | None = None


class Bye(Event, frozen=True, kw_only=True, tag="bye"):
    """A probe's connection ended; `dropped` is how many messages the probe itself had to drop."""

    rank: int
    restart: int = 0
    dropped: int = 0


class Configured(Event, frozen=True, kw_only=True, tag="config"):
    """The job's configuration, as its probe or its log told it; later ones complete earlier ones."""

    config: JobConfig
    restart: int = 0


class PhaseEntered(Event, frozen=True, kw_only=True, tag="phase"):
    """A rank arrived at a phase of a round: `t_ns` is the moment of entry, read by the rank itself.

    Who is late is read from these, never from durations. Warm-up rounds are negative.
    """

    rank: int
    round: int
    phase: Phase
    restart: int = 0


class PhaseDone(Event, frozen=True, kw_only=True, tag="round"):
    """One rank's figures of one phase of one round.

    `bytes` is recv_tokens × hidden × element size and `rdma_bytes` rdma_tokens_algo × the same: what XGMI/NVL and RDMA
    algo bandwidths are computed from. `xgmi_gbps` and `rdma_algo_gbps` are what the job printed (10⁹ bytes/s), where a
    log is the source.
    """

    rank: int
    round: int
    phase: Phase
    latency_us: float
    restart: int = 0
    recv_tokens: int | None = None
    rdma_tokens_algo: int | None = None
    bytes: int | None = None
    rdma_bytes: int | None = None
    xgmi_gbps: float | None = None
    rdma_algo_gbps: float | None = None
    source: Literal["probe", "log"] = "probe"


class Tokens(Event, frozen=True, kw_only=True, tag="tokens"):
    """A rank's token counts, told once a configuration (mori's token line, or the probe)."""

    rank: int
    recv_tokens: int
    rdma_tokens_algo: int | None = None
    restart: int = 0
    source: Literal["probe", "log"] = "probe"


class Traffic(Event, frozen=True, kw_only=True, tag="traffic"):
    """Tokens that one rank dispatches: to every rank (`to_ranks[d]`), and on every expert (`to_experts[e]`)."""

    rank: int
    to_ranks: tuple[int, ...]
    to_experts: tuple[int, ...] = ()
    restart: int = 0


class Progress(Event, frozen=True, kw_only=True, tag="progress"):
    """How far the job is, in its own words."""

    done: int
    total: int | None = None
    label: str = ""
    rank: int = 0
    restart: int = 0


class Counter(Event, frozen=True, kw_only=True, tag="counter"):
    """A custom figure of the job; `unit` is shown as it stands."""

    rank: int
    name: str
    value: float
    unit: str = ""
    restart: int = 0


class ProcessSample(Event, frozen=True, kw_only=True, tag="sample"):
    """CPU (100 = one core), resident memory and threads of a rank's process and its descendants."""

    rank: int
    restart: int
    pid: int
    cpu_percent: float
    rss_bytes: int
    threads: int


class LogLines(Event, frozen=True, kw_only=True, tag="log"):
    """Consecutive lines of one output file that belong to one rank and level; the text stays in the file.

    `file` is relative to the run folder, [offset, offset + length) the bytes, line ends included.
    """

    file: str
    offset: int
    length: int
    lines: int
    stream: Stream
    rank: int | None = None
    restart: int = 0
    level: Level = "info"


class Failure(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Why a job failed: the first cause, not the others' follow-up errors."""

    rank: int | None
    cause: str
    """A sentence: the rank's own error line, or what ended its process."""
    exitcode: int | None = None
    signal: str | None = None
    """Name of the signal (SIGKILL) that ended the rank."""
    file: str | None = None
    offset: int | None = None
    """Where the error's own text begins, in a file of the run folder."""


class JobFailed(Event, frozen=True, kw_only=True, tag="failure"):
    """The hub knows (more of) why the job fails; a later one replaces an earlier one."""

    failure: Failure


class Dropped(Event, frozen=True, kw_only=True, tag="dropped"):
    """Input that was set aside since the last such event, with the reason in words."""

    count: int
    reason: str
    rank: int | None = None


class Note(Event, frozen=True, kw_only=True, tag="note"):
    """Something the person at the screen must know (recording thinned, disk full, sampler missing)."""

    text: str
    level: Level = "info"


class RunEnded(Event, frozen=True, kw_only=True, tag="end"):
    """The job is over. `exitcode` is the agent's, negative for a signal; None where it is unknown."""

    outcome: Outcome
    exitcode: int | None = None
    failure: Failure | None = None
    left_behind: int = 0
    """Processes that had to be ended after the agent was gone."""


RecordEvent: TypeAlias = (
    RunHeader
    | HubStarted
    | JobChanged
    | RankProcess
    | RankExited
    | Hello
    | Bye
    | Configured
    | PhaseEntered
    | PhaseDone
    | Tokens
    | Traffic
    | Progress
    | Counter
    | ProcessSample
    | LogLines
    | JobFailed
    | Dropped
    | Note
    | RunEnded
)
