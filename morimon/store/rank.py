"""One rank's rows: what its events said, kept in fixed rings, and the frozen snapshot made of it when asked."""

from __future__ import annotations

import signal
from collections import deque
from dataclasses import replace
from math import isnan, nan

from morimon.model.events import (
    Hello,
    Phase,
    PhaseDone,
    PhaseEntered,
    ProcessSample,
    RankExited,
    RankProcess,
    Tokens,
    Traffic,
)
from morimon.store.snapshot import Claim, PhaseFigures, RankSnapshot, RankState
from morimon.store.tally import PhaseTally

ROUNDS_KEPT = 512
SAMPLES_KEPT = 512
COUNTERS_KEPT = 64


def gbps(bytes_moved: int | None, latency_us: float) -> float | None:
    """Bandwidth in 10⁹ bytes/s; None where bytes or time are unknown."""
    if bytes_moved is None or latency_us <= 0:
        return None
    return bytes_moved / latency_us / 1000


class PhaseRing:
    """One rank's newest rounds of one phase, and the tally of all of them."""

    def __init__(self, phase: Phase) -> None:
        self._tally = PhaseTally(phase, open_rounds=0)
        self._rounds: deque[int] = deque(maxlen=ROUNDS_KEPT)
        self._latencies_us: deque[float] = deque(maxlen=ROUNDS_KEPT)
        self._xgmi_gbps: deque[float] = deque(maxlen=ROUNDS_KEPT)
        self._xgmi_known = 0
        """Bandwidths of the ring that somebody told; the others are nan."""
        self._rdma_algo_gbps: float | None = None
        self._is_printed = False

    def add(
        self,
        rank: int,
        number: int,
        latency_us: float,
        xgmi_gbps: float | None,
        rdma_algo_gbps: float | None,
        *,
        is_printed: bool,
    ) -> None:
        """Append a round."""
        self._tally.add(rank, number, latency_us, xgmi_gbps, rdma_algo_gbps)
        if len(self._xgmi_gbps) == ROUNDS_KEPT:
            self._xgmi_known -= not isnan(self._xgmi_gbps[0])
        self._xgmi_known += xgmi_gbps is not None
        self._rounds.append(number)
        self._latencies_us.append(latency_us)
        self._xgmi_gbps.append(nan if xgmi_gbps is None else xgmi_gbps)
        self._rdma_algo_gbps = rdma_algo_gbps
        self._is_printed = is_printed

    def figures(self, arrival_us: float | None) -> PhaseFigures:
        """The ring as values, with the arrival that others know of."""
        if not self._rounds:
            return PhaseFigures(arrival_us=arrival_us)
        newest_gbps = self._xgmi_gbps[-1]
        return PhaseFigures(
            round=self._rounds[-1],
            latency_us=self._latencies_us[-1],
            xgmi_gbps=None if isnan(newest_gbps) else newest_gbps,
            rdma_algo_gbps=self._rdma_algo_gbps,
            arrival_us=arrival_us,
            rounds=tuple(self._rounds),
            latencies_us=tuple(self._latencies_us),
            xgmi_series_gbps=tuple(self._xgmi_gbps) if self._xgmi_known else (),
            overall=self._tally.summary(),
            is_printed=self._is_printed,
        )


def _empty_rings() -> dict[Phase, PhaseRing]:
    return {"dispatch": PhaseRing("dispatch"), "combine": PhaseRing("combine")}


class RankRow:
    """What is known of one rank of the newest restart; `version` is the store's at its last change."""

    def __init__(self, rank: int, restart: int) -> None:
        self.rank = rank
        self.restart = restart
        self.version = 0
        self.heard = False
        """Its probe has spoken: it tells when it enters a phase."""
        self._node: int | None = None
        self._local_rank: int | None = None
        self._pid: int | None = None
        self._state: RankState = "waiting"
        self._phase: Phase | None = None
        self._round: int | None = None
        self.recv_tokens: int | None = None
        self.rdma_tokens_algo: int | None = None
        self._tokens_from_probe = False
        self._rings = _empty_rings()
        self._claims: dict[Phase, Claim] = {}
        self._sample: ProcessSample | None = None
        self._cpu: deque[float] = deque(maxlen=SAMPLES_KEPT)
        self._exit: RankExited | None = None
        self._counters: dict[str, tuple[float, str]] = {}
        self._traffic: Traffic | None = None

    def process(self, event: RankProcess) -> None:
        """Its process was found; the probe's own word on node and local rank, where it came first, stays."""
        self._pid = event.pid
        self._exit = None
        self._state = "running"
        if not self.heard:
            self._node, self._local_rank = event.node, event.local_rank

    def hello(self, event: Hello) -> None:
        """Its probe connected."""
        self._state = "running"
        self._node = self._node if event.node is None else event.node
        self._local_rank = self._local_rank if event.local_rank is None else event.local_rank
        self._pid = self._pid if event.pid is None else event.pid

    def exited(self, event: RankExited) -> bool:
        """Its process is gone; False where that was an earlier process of the same rank."""
        if self._pid is not None and event.pid != self._pid:
            return False
        self._exit = event
        was_ended = event.signal == signal.SIGTERM  # by its agent, after another rank's failure or a stop
        self._state = "exited" if was_ended or not (event.exitcode or event.signal) else "failed"
        return True

    def failed(self) -> None:
        """It is the one whose failure ended the job."""
        self._state = "failed"

    def ended(self) -> None:
        """The job is over, and so is this rank, whether or not anyone saw it go."""
        if self._state == "running":
            self._state = "exited"

    def entered(self, event: PhaseEntered) -> None:
        """It arrived at a phase."""
        self._state = "running"
        self._phase, self._round = event.phase, event.round

    def done(self, event: PhaseDone, xgmi_gbps: float | None, rdma_algo_gbps: float | None) -> None:
        """It finished a phase; warm-up rounds move the row's round and nothing else."""
        self._state = "running"
        self._phase, self._round = event.phase, event.round
        if event.round < 0:
            return
        self._rings[event.phase].add(
            self.rank,
            event.round,
            event.latency_us,
            xgmi_gbps,
            rdma_algo_gbps,
            is_printed=event.source == "log",
        )
        if event.recv_tokens is not None:
            self.told_tokens(event.recv_tokens, event.rdma_tokens_algo, probe=event.source == "probe")

    def claim(self, event: PhaseDone) -> bool:
        """It (or rank 0 for it) printed figures; False where no bandwidth of a counted round is among them."""
        if event.round < 0 or (event.xgmi_gbps is None and event.rdma_algo_gbps is None):
            return False
        self._claims[event.phase] = Claim(
            event.round, event.latency_us, event.xgmi_gbps, event.rdma_algo_gbps
        )
        return True

    def tokens(self, event: Tokens) -> None:
        """Its token counts."""
        self.told_tokens(event.recv_tokens, event.rdma_tokens_algo, probe=event.source == "probe")

    def told_tokens(self, recv_tokens: int, rdma_tokens_algo: int | None, *, probe: bool) -> None:
        """Take counts, unless a log repeats what the probe has said."""
        if self._tokens_from_probe and not probe:
            return
        self._tokens_from_probe = probe
        self.recv_tokens, self.rdma_tokens_algo = recv_tokens, rdma_tokens_algo

    def forget_rounds(self) -> None:
        """Empty both rings: a better source of the same rounds begins."""
        self._rings = _empty_rings()

    def traffic(self, event: Traffic) -> None:
        """Where its tokens go."""
        self._traffic = event

    def sample(self, event: ProcessSample) -> None:
        """Its process was looked at."""
        self._sample = event
        self._cpu.append(event.cpu_percent)

    def counter(self, name: str, value: float, unit: str) -> bool:
        """A custom figure; False where the rank already has COUNTERS_KEPT others."""
        if name not in self._counters and len(self._counters) >= COUNTERS_KEPT:
            return False
        self._counters[name] = (value, unit)
        return True

    def snapshot(
        self,
        *,
        gpu_per_node: int | None,
        arrivals_us: dict[Phase, float | None],
        last_to_arrive: int,
        is_late: bool,
    ) -> RankSnapshot:
        """The row as a value, with what only the whole job knows."""
        node = self._node
        if node is None and gpu_per_node:
            node = self.rank // gpu_per_node
        figures = {
            phase: replace(ring.figures(arrivals_us[phase]), claimed=self._claims.get(phase))
            for phase, ring in self._rings.items()
        }
        sample, gone, traffic = self._sample, self._exit, self._traffic
        return RankSnapshot(
            rank=self.rank,
            version=self.version,
            node=node,
            local_rank=self._local_rank,
            pid=self._pid,
            restart=self.restart,
            state=self._state,
            phase=self._phase,
            round=self._round,
            recv_tokens=self.recv_tokens,
            rdma_tokens_algo=self.rdma_tokens_algo,
            dispatch=figures["dispatch"],
            combine=figures["combine"],
            last_to_arrive=last_to_arrive,
            is_late=is_late,
            cpu_percent=sample.cpu_percent if sample else None,
            cpu_series_percent=tuple(self._cpu),
            rss_bytes=sample.rss_bytes if sample else None,
            threads=sample.threads if sample else None,
            exitcode=gone.exitcode if gone else None,
            signal=gone.signal if gone else None,
            counters=tuple((name, value, unit) for name, (value, unit) in self._counters.items()),
            to_ranks=traffic.to_ranks if traffic else (),
            to_experts=traffic.to_experts if traffic else (),
        )
