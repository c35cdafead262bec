"""The job: rounds of dispatch, experts and combine, each verified before it may tell a figure.

A rank tells the probe of its arrival at a phase before anything collective of that phase. The barrier before it (and
the delay of a rank that is slow on purpose, between the two) is no part of the phase: ranks leave the barrier together,
so that a late arrival is that rank's own doing.

Rounds are numbered as they are printed, from 0. Round 0 and the warm-up rounds before it are out of the statistics, and
the probe tells them as rounds below 0, round 0 as −1.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from morimon.bench import data, printing
from morimon.bench.backend import Backend
from morimon.bench.options import Options
from morimon.bench.spans import Spans, export
from morimon.bench.verify import verify_combine, verify_dispatch
from morimon.ep.counts import tally
from morimon.ep.volume import element_bytes
from morimon.model.events import Phase
from morimon.probe import Probe


@dataclass(frozen=True)
class _Done:
    """What one rank has to tell of a round."""

    recv_tokens: int
    rdma_tokens_algo: int
    dispatch_us: float
    combine_us: float


def describe(options: Options, platform: str) -> dict[str, object]:
    """The job's configuration in the words of morimon.model.config.JobConfig."""
    ep = options.ep
    return {
        "name": f"morimon {options.cmd}",
        "kernel_type": ep.kernel_type,
        "backend": options.backend,
        "platform": platform,
        "cmd": options.cmd,
        "world_size": ep.world_size,
        "num_nodes": ep.num_nodes,
        "gpu_per_node": ep.gpu_per_node,
        "num_tokens": ep.num_tokens,
        "hidden": ep.hidden,
        "topk": ep.topk,
        "num_experts": ep.num_experts,
        "dtype": ep.dtype,
        "combine_dtype": ep.combine_dtype,
        "routing": options.routing,
        "seed": options.seed,
        "rounds": options.rounds,
        "warmup": options.warmup,
    }


class Job:
    """One rank's part of the job; `say` prints a line at once. The backend notes its spans with the job's."""

    def __init__(
        self, options: Options, backend: Backend, probe: Probe, say: Callable[[str], None], spans: Spans
    ) -> None:
        self._options = options
        self._backend = backend
        self._probe = probe
        self._say = say
        self._spans = spans
        self._leads = backend.rank == 0
        self._told = False

    def run(self) -> None:
        """Run to the end; raises VerificationError in the rank that got something wrong, TraceError for a full disk."""
        self._say(f"I'm pe {self._backend.rank} in {self._options.ep.world_size} pes")
        config = describe(self._options, self._backend.platform)
        if self._leads:
            self._probe.config(**config)
        if self._options.cmd == "stress":
            self._stress()
        else:
            self._bench()
        if self._options.cmd == "profile":
            path = export(self._spans, self._options, self._backend.rank, config)
            self._say(f"Trace exported to {path} ({len(self._spans.rows)} events)")
            self._lead(f"Profiling data exported to {path.parent}")
        self._say(f"rank:  {self._backend.rank} error times:  0 appear round:  set()")

    def _bench(self) -> None:
        options, ep = self._options, self._options.ep
        kept: dict[Phase, list[printing.PhaseRound]] = {"dispatch": [], "combine": []}
        for printed in range(-options.warmup, options.rounds):
            if printed < 0:
                self._lead(f"WarmUp Round {printed + options.warmup} begin")
            everybody = self._everybody(self._round(printed))
            if printed >= 0 and everybody:
                recv, algo = ([int(n) for n in column] for column in (everybody[0], everybody[1]))
                self._say(f"Round {printed}")
                phases: tuple[tuple[Phase, list[float]], ...] = (
                    ("dispatch", everybody[2]),
                    ("combine", everybody[3]),
                )
                for phase, latencies_us in phases:
                    figures = printing.phase_round(ep, phase, latencies_us, recv, algo)
                    for line in printing.round_lines(phase, figures):
                        self._say(line)
                    if printed > 0:
                        kept[phase].append(figures)
            self._progress(printed + options.warmup + 1, options.warmup + options.rounds)
        if self._leads:
            for phase, rounds in kept.items():
                self._say(printing.summary(ep, phase, rounds))

    def _stress(self) -> None:
        self._lead("Stress Test")
        for printed in range(self._options.rounds):
            self._round(printed)
            self._progress(printed + 1, self._options.rounds)

    def _round(self, printed: int) -> _Done:
        """One verified round; its figures go to the probe as soon as the phase they belong to is verified."""
        options, backend, rank = self._options, self._backend, self._backend.rank
        told = printed if printed > 0 else printed - 1
        batch = data.batch(options, printed, rank)
        routed = tally(options.ep, batch.topk_idx.numpy())
        algo = int(routed.to_node.sum())

        self._arrive("dispatch", told)
        arrival = backend.dispatch(batch)
        recv = len(arrival.rows.source)
        verify_dispatch(options, printed, rank, arrival.rows)
        if not self._told or options.cmd == "stress":
            self._probe.tokens(recv, algo)
            self._probe.traffic(routed.to_rank.tolist(), routed.to_expert.tolist())
            self._say(f"rank {rank} recv {recv} tokens")
        if not self._told:
            self._lead("Node 0 Dispatch Pass")
        self._done("dispatch", told, arrival.latency_us, recv, algo)

        with self._spans.slot("experts"):  # they are the identity
            weight = data.weight_on(options, arrival.rows.topk_idx, arrival.rows.weights, rank)
            outputs = arrival.rows.values() * weight[:, None]
        self._arrive("combine", told)
        combined = backend.combine(arrival, outputs)
        verify_combine(options, printed, rank, combined.tokens)
        if not self._told:
            self._lead("Node 0 Combine Pass")
            self._say(printing.token_line(rank, recv, algo))
        self._done("combine", told, combined.latency_us, recv, algo)
        self._told = True
        return _Done(recv, algo, arrival.latency_us, combined.latency_us)

    def _arrive(self, phase: Phase, told: int) -> None:
        self._backend.barrier()
        if self._backend.rank == self._options.slow_rank:
            time.sleep(self._options.slow_us / 1e6)
        self._probe.enter(phase, told)

    def _done(self, phase: Phase, told: int, latency_us: float, recv: int, algo: int) -> None:
        ep = self._options.ep
        row = element_bytes(ep.hidden, ep.dtype if phase == "dispatch" else ep.combine_dtype)
        self._probe.done(
            phase,
            told,
            latency_us,
            recv_tokens=recv,
            rdma_tokens_algo=algo,
            bytes=recv * row,
            rdma_bytes=algo * row,
        )

    def _everybody(self, done: _Done) -> list[list[float]]:
        """On rank 0 each figure of all ranks, by rank: recv, algo, dispatch and combine; on others nothing."""
        figures = (done.recv_tokens, done.rdma_tokens_algo, done.dispatch_us, done.combine_us)
        return [list(column) for column in zip(*self._backend.gather(figures), strict=True)]

    def _progress(self, done: int, total: int) -> None:
        if self._leads:
            self._probe.progress(done, total, "rounds")

    def _lead(self, line: str) -> None:
        if self._leads:
            self._say(line)
