"""Rounds of mori's benchmarks, put together from lines that tell their parts, for all ranks at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from morimon.logs.dialect import Source
from morimon.model.events import Phase, PhaseDone

_PATIENCE_NS = 500_000_000


class Rounds:
    """Remembers which round the next figures belong to.

    In today's internode form a header `Round 3` precedes the figures of dispatch alone: a combine without a header is
    that of the oldest dispatched round which has none yet. Round 0, which mori leaves out of its statistics, is told as
    −1, a warm-up round.
    """

    def __init__(self) -> None:
        self.phase: Phase | None = None
        """What the figures are of, where a heading said so for all that follow (intranode)."""
        self._header: int | None = None
        self._uncombined: deque[int] = deque(maxlen=1 << 16)
        self._last_dispatched = -1
        self._next: dict[Phase, int] = {"dispatch": 0, "combine": 0}
        self._open: _Group | None = None

    def header(self, round_: int, source: Source) -> Iterator[PhaseDone]:
        """A line named the round of the figures after it."""
        yield from self.flush(source)
        self._header = round_

    def duration(self, source: Source, phase: Phase, latencies_us: Sequence[float]) -> Iterator[PhaseDone]:
        """A line with every rank's duration: bandwidths may follow."""
        yield from self.flush(source)
        self._open = _Group(source.t_ns, phase, self._place(phase), latencies_us)

    def bandwidth(
        self, source: Source, phase: Phase | None, figures_gbps: Sequence[float], *, rdma: bool
    ) -> Iterator[PhaseDone]:
        """A line with every rank's bandwidth; XGMI's is the last of a round's lines."""
        group = self._open
        if group is None or (phase is not None and phase != group.phase):
            return
        if rdma:
            group.rdma_gbps = figures_gbps
        else:
            group.xgmi_gbps = figures_gbps
            yield from self.flush(source)

    def whole(
        self,
        source: Source,
        phase: Phase,
        latencies_us: Sequence[float],
        xgmi_gbps: Sequence[float],
    ) -> Iterator[PhaseDone]:
        """A line with all of a phase, of the round that a header named."""
        yield from self.duration(source, phase, latencies_us)
        yield from self.bandwidth(source, phase, xgmi_gbps, rdma=False)

    def flush(self, source: Source) -> Iterator[PhaseDone]:
        """What is known of an unfinished group: nothing more will come."""
        group, self._open = self._open, None
        if group is not None:
            yield from group.events(source)

    def flush_overdue(self, source: Source) -> Iterator[PhaseDone]:
        """The unfinished group, if its other lines fail to come."""
        if self._open is not None and source.t_ns - self._open.t_ns > _PATIENCE_NS:
            yield from self.flush(source)

    def _place(self, phase: Phase) -> int:
        """The round of a phase whose figures begin now."""
        header, self._header = self._header, None
        if phase == "dispatch":
            round_ = self._next[phase] if header is None else header
            if round_ <= self._last_dispatched:
                self._uncombined.clear()  # the benchmark starts over: another configuration
            self._last_dispatched = round_
            self._uncombined.append(round_)
        elif header is not None:
            round_ = header
            if round_ in self._uncombined:
                self._uncombined.remove(round_)
        else:
            round_ = self._uncombined.popleft() if self._uncombined else self._next[phase]
        self._next[phase] = round_ + 1
        return round_


class _Group:
    def __init__(self, t_ns: int, phase: Phase, round_: int, latencies_us: Sequence[float]) -> None:
        self.t_ns = t_ns
        self.phase = phase
        self.round = round_ or -1
        self.latencies_us = latencies_us
        self.rdma_gbps: Sequence[float] = ()
        self.xgmi_gbps: Sequence[float] = ()

    def events(self, source: Source) -> Iterator[PhaseDone]:
        for rank, latency_us in enumerate(self.latencies_us):
            yield PhaseDone(
                t_ns=source.t_ns,
                restart=source.restart,
                rank=rank,
                round=self.round,
                phase=self.phase,
                latency_us=latency_us,
                xgmi_gbps=_at(self.xgmi_gbps, rank),
                rdma_algo_gbps=_at(self.rdma_gbps, rank),
                source="log",
            )


def _at(figures: Sequence[float], rank: int) -> float | None:
    return figures[rank] if rank < len(figures) else None
