"""Records of runs that could have been: N ranks × R rounds with a late rank, and a rank that is killed, if wanted.

The clockwork is that of a collective: a phase ends for everybody a little after the last rank has entered it. The
late rank therefore shows the shortest duration and the others, who wait for it, the long ones.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from morimon.model.codec import encode
from morimon.model.config import JobConfig
from morimon.model.events import (
    RECORD_VERSION,
    Bye,
    Configured,
    Counter,
    Failure,
    Hello,
    HubStarted,
    JobChanged,
    JobFailed,
    LogLines,
    Phase,
    PhaseDone,
    PhaseEntered,
    ProcessSample,
    Progress,
    RankExited,
    RankProcess,
    RecordEvent,
    RunEnded,
    RunHeader,
    Stream,
    Tokens,
    Traffic,
)

START_NS = 1_000_000_000_000
"""CLOCK_MONOTONIC of the header of every record made here."""
START_UNIX_NS = 1_796_000_000_000_000_000


@dataclass(frozen=True)
class Plan:
    """What the run to be invented looks like; `killed` is (rank, round): SIGKILL as it enters that dispatch."""

    ranks: int = 8
    rounds: int = 20
    warmup: int = 2
    nodes: int = 1
    late_rank: int | None = 3
    late_by_us: float = 400.0
    jitter_us: float = 8.0
    dispatch_us: float = 900.0
    combine_us: float = 1100.0
    pause_us: float = 20_000.0
    tokens: int = 512
    hidden: int = 1024
    topk: int = 4
    experts_per_rank: int = 4
    killed: tuple[int, int] | None = None
    sample_every: int = 1
    """Rounds between two samples of the processes; 0 for none."""
    ends: bool = True
    """False leaves the run going: no byes, no end."""
    run_id: str = "4f2a"
    host: str = "node0"
    seed: int = 0

    @property
    def gpu_per_node(self) -> int:
        """Ranks of a node."""
        return self.ranks // self.nodes


@dataclass
class Record:
    """Events in the order of a record, and the output files (relative to the run folder) that they point into."""

    events: list[RecordEvent] = field(default_factory=list)
    files: dict[str, bytearray] = field(default_factory=dict)

    def lines(self) -> bytes:
        """The record's bytes."""
        return b"".join(encode(event) for event in self.events)

    def write(self, folder: Path) -> Path:
        """Write the run folder's `events.jsonl` and output files; the folder is made where it is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        (folder / "events.jsonl").write_bytes(self.lines())
        return folder

    def print(
        self, t_ns: int, rank: int, text: str, stream: Stream = "stdout", *, error: bool = False
    ) -> int:
        """Let a rank print lines; returns the offset at which they begin in its file."""
        name = output_file(rank, stream)
        data = self.files.setdefault(name, bytearray())
        offset = len(data)
        raw = (text + "\n").encode()
        data += raw
        self.events.append(
            LogLines(
                t_ns=t_ns,
                file=name,
                offset=offset,
                length=len(raw),
                lines=raw.count(b"\n"),
                stream=stream,
                rank=rank,
                level="error" if error else "info",
            )
        )
        return offset


def output_file(rank: int, stream: Stream = "stdout") -> str:
    """Where torchrun's --log-dir puts a rank's stream, relative to the run folder."""
    return f"output/none_k1x2y3z4/attempt_0/{rank}/{stream}.log"


def make_record(plan: Plan | None = None) -> Record:
    """A record of the whole plan, the same for the same plan."""
    return _Author(plan or Plan()).write()


class _Author:
    """Writes one record: a clock, a source of chance, and who is still alive."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.record = Record()
        self.random = random.Random(plan.seed)
        self.now_ns = START_NS
        world, tokens = plan.ranks, plan.tokens
        share = 1 - (1 - 1 / world) ** plan.topk
        self.recv = [round(tokens * world * share * self.random.uniform(0.98, 1.02)) for _ in range(world)]
        node_share = 1 - (1 - 1 / plan.nodes) ** plan.topk
        self.rdma = [
            round(tokens * plan.nodes * node_share * self.random.uniform(0.99, 1.0)) for _ in range(world)
        ]

    def write(self) -> Record:
        """Start-up, rounds, end."""
        plan = self.plan
        self._start()
        for number in range(-plan.warmup, plan.rounds):
            if plan.killed is not None and number == plan.killed[1]:
                self._kill(plan.killed[0], number)
                return self.record
            self._round(number)
        if plan.ends:
            self._end()
        return self.record

    def _add(self, *events: RecordEvent) -> None:
        self.record.events.extend(events)

    def _jitter_ns(self) -> int:
        return round(self.random.uniform(0, self.plan.jitter_us) * 1000)

    def _start(self) -> None:
        plan, t = self.plan, self.now_ns
        self._add(
            RunHeader(
                t_ns=t,
                version=RECORD_VERSION,
                run_id=plan.run_id,
                host=plan.host,
                boot_id="0d3c1a52-6c1e-4b7e-9f5e-2d1f4c1f7b10",
                unix_ns=START_UNIX_NS,
                command=("morimon", "run", "--nproc", str(plan.ranks)),
                cwd="/home/user",
                kind="builtin",
                nproc=plan.ranks,
            ),
            HubStarted(t_ns=t, pid=4000),
            JobChanged(t_ns=t, state="starting", agent_pid=4001),
        )
        t += 900_000_000
        for rank in range(plan.ranks):
            node, local = divmod(rank, plan.gpu_per_node)
            self._add(
                RankProcess(
                    t_ns=t + rank,
                    rank=rank,
                    restart=0,
                    local_rank=local,
                    node=node,
                    pid=4100 + rank,
                    started_s=1000.0,
                )
            )
        t += 2_000_000_000
        for rank in range(plan.ranks):
            node, local = divmod(rank, plan.gpu_per_node)
            self._add(
                Hello(
                    t_ns=t + rank,
                    rank=rank,
                    local_rank=local,
                    node=node,
                    world_size=plan.ranks,
                    local_world_size=plan.ranks,
                    pid=4100 + rank,
                    host=plan.host,
                )
            )
        experts = plan.experts_per_rank * plan.ranks
        self._add(
            JobChanged(t_ns=t + 1_000_000, state="running", agent_pid=4001),
            Configured(
                t_ns=t + 1_000_000,
                config=JobConfig(
                    name="ep-bench",
                    kernel_type="intranode" if plan.nodes == 1 else "v1",
                    backend="gloo",
                    platform="CPU",
                    cmd="bench",
                    world_size=plan.ranks,
                    num_nodes=plan.nodes,
                    gpu_per_node=plan.gpu_per_node,
                    num_tokens=plan.tokens,
                    hidden=plan.hidden,
                    topk=plan.topk,
                    num_experts=experts,
                    dtype="bf16",
                    combine_dtype="bf16",
                    routing="random",
                    seed=plan.seed,
                    rounds=plan.rounds,
                    warmup=plan.warmup,
                ),
            ),
        )
        for rank in range(plan.ranks):
            counts = tuple(self._sent(rank, d) for d in range(plan.ranks))
            loads = tuple(plan.tokens * plan.topk // experts + (rank + e) % 7 for e in range(experts))
            self._add(
                Tokens(
                    t_ns=t + 2_000_000 + rank,
                    rank=rank,
                    recv_tokens=self.recv[rank],
                    rdma_tokens_algo=self.rdma[rank],
                ),
                Traffic(t_ns=t + 2_000_000 + rank, rank=rank, to_ranks=counts, to_experts=loads),
            )
            self.record.print(
                t + 3_000_000 + rank,
                rank,
                f"rank {rank} recv {self.recv[rank]} tokens {self.rdma[rank]} rdma tokens",
            )
        self.now_ns = t + 10_000_000

    def _sent(self, source: int, destination: int) -> int:
        """Tokens from one rank to another: shares of what that one receives, a little more or less by turns."""
        share, rest = divmod(self.recv[destination], self.plan.ranks)
        extra = 1 if source < rest else 0
        pair, second = divmod(source, 2)
        if 2 * pair + 1 < self.plan.ranks:
            swing = share * ((3 * pair + destination) % 7) // 50
            extra += -swing if second else swing
        return share + extra

    def _round(self, number: int) -> None:
        plan = self.plan
        begin = [self.now_ns + self._jitter_ns() for _ in range(plan.ranks)]
        if plan.late_rank is not None and plan.late_rank < plan.ranks:
            begin[plan.late_rank] += round(plan.late_by_us * 1000)
        left = self._phase("dispatch", number, begin, plan.dispatch_us)
        left = self._phase(
            "combine", number, [t + 200_000 + self._jitter_ns() for t in left], plan.combine_us
        )
        t = max(left)
        if number >= 0:
            self._add(Progress(t_ns=t, done=number + 1, total=plan.rounds, label="round"))
            self.record.print(t, 0, f"Round {number}\n  dispatch duration avg {plan.dispatch_us:.2f} µs")
            self._add(Counter(t_ns=t, rank=0, name="loss", value=round(1 / (number + 2), 4), unit=""))
        if plan.sample_every and number % plan.sample_every == 0:
            for rank in range(plan.ranks):
                self._add(
                    ProcessSample(
                        t_ns=t,
                        rank=rank,
                        restart=0,
                        pid=4100 + rank,
                        cpu_percent=round(self.random.uniform(18, 26), 1),
                        rss_bytes=410_000_000 + 1_000_000 * rank,
                        threads=9,
                    )
                )
        self.now_ns = t + round(plan.pause_us * 1000)

    def _phase(self, phase: Phase, number: int, entries: list[int], work_us: float) -> list[int]:
        """One phase of all ranks: events in the order of time; returns when each rank left it."""
        end = max(entries) + round(work_us * 1000)
        left = [end + self._jitter_ns() for _ in entries]
        for t, rank in sorted((t, rank) for rank, t in enumerate(entries)):
            self._add(PhaseEntered(t_ns=t, rank=rank, round=number, phase=phase))
        row_bytes = self.plan.hidden * 2
        for t, rank in sorted((t, rank) for rank, t in enumerate(left)):
            self._add(
                PhaseDone(
                    t_ns=t,
                    rank=rank,
                    round=number,
                    phase=phase,
                    latency_us=(t - entries[rank]) / 1000,
                    recv_tokens=self.recv[rank],
                    rdma_tokens_algo=self.rdma[rank],
                    bytes=self.recv[rank] * row_bytes,
                    rdma_bytes=self.rdma[rank] * row_bytes,
                )
            )
        return left

    def _kill(self, victim: int, number: int) -> None:
        t = self.now_ns
        for rank in range(self.plan.ranks):
            self._add(PhaseEntered(t_ns=t + rank * 1000, rank=rank, round=number, phase="dispatch"))
        t += 1_000_000
        self._add(RankExited(t_ns=t, rank=victim, restart=0, pid=4100 + victim, signal=9))
        failure = Failure(rank=victim, cause="killed by SIGKILL", signal="SIGKILL")
        self._add(JobFailed(t_ns=t, failure=failure))
        for rank in range(self.plan.ranks):
            if rank != victim:
                self.record.print(
                    t + 1_000_000 + rank,
                    rank,
                    f"RuntimeError: Connection closed by peer [rank {victim}]",
                    "stderr",
                    error=True,
                )
                self._add(
                    RankExited(t_ns=t + 2_000_000 + rank, rank=rank, restart=0, pid=4100 + rank, exitcode=1)
                )
        self._add(RunEnded(t_ns=t + 900_000_000, outcome="failed", exitcode=1, failure=failure))

    def _end(self) -> None:
        t = self.now_ns
        for rank in range(self.plan.ranks):
            self._add(
                Bye(t_ns=t + rank, rank=rank),
                RankExited(t_ns=t + 1_000_000 + rank, rank=rank, restart=0, pid=4100 + rank, exitcode=0),
            )
        self._add(RunEnded(t_ns=t + 500_000_000, outcome="finished", exitcode=0))
