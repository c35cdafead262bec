"""The ranks of a run as events: found, sampled, gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import psutil

from morimon.hub.exits import ExitStatus, ExitWatch
from morimon.hub.processes import Place, Processes
from morimon.model.events import Hello, RankExited, RankProcess, RecordEvent
from morimon.runs.identity import ProcessIdentity

_SEARCH_NS = 200_000_000
_SAMPLE_NS = 1_000_000_000


class Ranks:
    """Follows the rank processes of one job; events go to `sink`. `clock_ns` is CLOCK_MONOTONIC."""

    def __init__(
        self, sink: Callable[[RecordEvent], None], clock_ns: Callable[[], int], *, nproc: int | None
    ) -> None:
        self._sink = sink
        self._clock_ns = clock_ns
        self._nproc = nproc
        self._processes: Processes | None = None
        self._watch = ExitWatch(self._ended)
        self._alive: dict[ProcessIdentity, RankProcess] = {}
        self._by_local_rank: dict[tuple[int, int], int] = {}
        self._searched_ns = self._sampled_ns = 0

    def resume(self, found: Iterable[RankProcess], exits: Iterable[RankExited]) -> None:
        """Take over what an earlier hub recorded; ranks that died since are told now."""
        gone = {(one.restart, one.rank, one.pid) for one in exits}
        for event in found:
            self._by_local_rank[event.restart, event.local_rank] = event.rank
            if (event.restart, event.rank, event.pid) not in gone:
                self._follow(event)

    def rank_of(self, restart: int, local_rank: int) -> int | None:
        """The global rank of a local one; None as long as its process was not found."""
        return self._by_local_rank.get((restart, local_rank))

    def alive(self) -> list[RankProcess]:
        """The ranks whose processes run."""
        return list(self._alive.values())

    def look(self, keeper_pid: int, agent_pid: int) -> None:
        """Search and sample, each as often as is due: ranks that are missing are searched for more often."""
        now_ns = self._clock_ns()
        self._watch.poll()
        due_sample = now_ns - self._sampled_ns >= _SAMPLE_NS
        is_missing = len(self._alive) < (self._nproc or 1)
        if not due_sample and not (is_missing and now_ns - self._searched_ns >= _SEARCH_NS):
            return
        try:
            if self._processes is None:
                self._processes = Processes(keeper_pid, agent_pid)
                self._sampled_ns = (
                    now_ns  # CPU is measured over a time: the first sample comes when some has passed
                )
                due_sample = False
            found = self._processes.find(now_ns)
        except psutil.Error:  # the job has just ended
            return
        self._searched_ns = now_ns
        recorded = {(one.restart, one.rank, one.pid) for one in self._alive.values()}  # by an earlier hub
        for event in found:
            if (event.restart, event.rank, event.pid) not in recorded:
                self._tell_found(event)
        if due_sample:
            self._sampled_ns = now_ns
            for sample in self._processes.sample(now_ns):
                self._sink(sample)

    def claim(self, hello: Hello) -> None:
        """Learn from its probe which process a rank is, where its environment does not tell."""
        known = any((one.restart, one.rank) == (hello.restart, hello.rank) for one in self._alive.values())
        if known or hello.pid is None or self._processes is None:
            return
        local_rank = hello.rank if hello.local_rank is None else hello.local_rank
        place = Place(hello.rank, local_rank, hello.node or 0, hello.restart)
        try:
            event = self._processes.claim(hello.pid, place, self._clock_ns())
        except psutil.Error:
            return
        if event is not None:
            self._tell_found(event)

    def close(self) -> None:
        """Tell the end of every rank, when the job is over."""
        self._watch.close()
        for process in list(self._alive):
            self._ended(process, ExitStatus())

    def _tell_found(self, event: RankProcess) -> None:
        self._by_local_rank[event.restart, event.local_rank] = event.rank
        self._sink(event)
        self._follow(event)

    def _follow(self, event: RankProcess) -> None:
        process = ProcessIdentity.of(event.pid)
        if process is None:
            self._sink(self._exited(event, ExitStatus()))
            return
        self._alive[process] = event
        self._watch.add(process)

    def _ended(self, process: ProcessIdentity, status: ExitStatus) -> None:
        if (event := self._alive.pop(process, None)) is not None:
            self._sink(self._exited(event, status))

    def _exited(self, event: RankProcess, status: ExitStatus) -> RankExited:
        return RankExited(
            t_ns=self._clock_ns(),
            rank=event.rank,
            restart=event.restart,
            pid=event.pid,
            exitcode=status.exitcode,
            signal=status.signal,
        )
