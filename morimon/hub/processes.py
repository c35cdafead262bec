"""The ranks' processes: found below the agent by what launchers put into their environment, sampled with all below them.

A rank's process is the eldest one that carries the rank; what it starts (data loaders, compilers) counts with it. A
process that carries no rank, because it was forked within the job, is told to us by its probe.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

import psutil

from morimon.model.events import ProcessSample, RankProcess

_YOUNG_S = 3.0
"""A process between fork and exec shows its parent's environment: young ones are looked at again."""


class Scheme(NamedTuple):
    """How a launcher tells a process its rank: names of environment variables."""

    marker: str
    rank: str
    local_rank: str
    node: str = ""
    restart: str = ""


SCHEMES = (
    Scheme("TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK", "GROUP_RANK", "TORCHELASTIC_RESTART_COUNT"),
    Scheme("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    Scheme("PMI_RANK", "PMI_RANK", "MPI_LOCALRANKID"),
    Scheme("SLURM_PROCID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"),
    Scheme("RANK", "RANK", "LOCAL_RANK", "GROUP_RANK"),
)


class Place(NamedTuple):
    """Which rank a process is."""

    rank: int
    local_rank: int
    node: int
    restart: int


def place_of(environ: Mapping[str, str], agent_environ: Mapping[str, str]) -> Place | None:
    """The rank that an environment names; what the agent itself carries is inherited and says nothing."""
    for scheme in SCHEMES:
        marker = environ.get(scheme.marker)
        if marker is None or agent_environ.get(scheme.marker) == marker:
            continue
        rank = _number(environ, scheme.rank)
        if rank is not None:
            local_rank = _number(environ, scheme.local_rank)
            return Place(
                rank,
                rank if local_rank is None else local_rank,
                _number(environ, scheme.node) or 0,
                _number(environ, scheme.restart) or 0,
            )
    return None


class Processes:
    """The ranks of one job: what hangs below the keeper, or below the agent where the keeper was killed.

    psutil.NoSuchProcess where both have ended.
    """

    def __init__(self, keeper_pid: int, agent_pid: int) -> None:
        self._agent = psutil.Process(agent_pid)
        self._agent_environ = self._agent.environ()
        try:
            self._root = psutil.Process(keeper_pid)
        except psutil.NoSuchProcess:
            self._root = self._agent
        self._known: dict[psutil.Process, Place | None] = {}
        """Every live process below the agent and the rank that its environment names."""
        self._seen: set[int] = set()
        self._ranks: dict[psutil.Process, Place] = {}

    def claim(self, pid: int, place: Place, t_ns: int) -> RankProcess | None:
        """Take a process for a rank's because its probe says so; None where it is not below the agent, or is known.

        Only what is above the process is looked at: hundreds of probes may speak at once.
        """
        process = psutil.Process(pid)
        if process in self._ranks or not self._is_below_root(process):
            return None
        self._known.setdefault(process, None)
        return self._take(process, place, t_ns)

    def find(self, t_ns: int) -> list[RankProcess]:
        """Ranks that were not there at the last look.

        An orphan that a rank left behind carries the rank too, and hangs below nobody who does: the eldest is the rank.
        """
        self._refresh()
        found = []
        for process in sorted(self._known, key=psutil.Process.create_time):
            place = self._known[process]
            if place is not None and place not in self._ranks.values():
                found.append(self._take(process, place, t_ns))
        return found

    def sample(self, t_ns: int) -> list[ProcessSample]:
        """What each rank's process and all below it use now; CPU is over the time since the last sample."""
        ranks = {process.pid: process for process in self._ranks}
        parents = {process.pid: _parent(process) for process in self._known}
        used = {process: [0.0, 0, 0] for process in self._ranks if process in self._known}
        for process in self._known:
            pid = process.pid
            while pid not in ranks and pid in parents:
                pid = parents[pid]
            total = used.get(ranks[pid]) if pid in ranks else None
            if total is None:
                continue
            with suppress(psutil.Error), process.oneshot():
                total[0] += process.cpu_percent()
                total[1] += process.memory_info().rss
                total[2] += process.num_threads()
        return [
            ProcessSample(
                t_ns=t_ns,
                rank=self._ranks[process].rank,
                restart=self._ranks[process].restart,
                pid=process.pid,
                cpu_percent=round(cpu_percent, 1),
                rss_bytes=int(rss_bytes),
                threads=int(threads),
            )
            for process, (cpu_percent, rss_bytes, threads) in used.items()
        ]

    def _is_below_root(self, process: psutil.Process) -> bool:
        above: psutil.Process | None = process
        while above is not None and above not in self._known:
            above = above.parent()
            if above == self._root:
                return True
        return above is not None

    def _refresh(self) -> None:
        """Take up what is new below the root, forget what is gone.

        Only pids that are new are looked at: what hangs below a subreaper never leaves, and nothing joins later.
        """
        if not self._root.is_running():
            self._root = self._agent
        pids = set(psutil.pids())
        parents: dict[psutil.Process, int] = {}
        new = pids - self._seen
        for pid in new:
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                parents[process] = process.ppid()
        self._seen = pids
        self._known = {process: place for process, place in self._known.items() if process.pid in pids}
        below = {self._root.pid, *(process.pid for process in self._known)}
        while found := [process for process, parent in parents.items() if parent in below]:
            for process in found:
                del parents[process]
                self._known[process] = None
                below.add(process.pid)
        now_s = time.time()
        for process, place in self._known.items():
            if place is None and (process.pid in new or now_s - process.create_time() < _YOUNG_S):
                with suppress(psutil.Error):
                    self._known[process] = place_of(process.environ(), self._agent_environ)

    def _take(self, process: psutil.Process, place: Place, t_ns: int) -> RankProcess:
        self._ranks[process] = place
        with suppress(psutil.Error):
            process.cpu_percent()  # from here on it is measured
        return RankProcess(
            t_ns=t_ns,
            rank=place.rank,
            restart=place.restart,
            local_rank=place.local_rank,
            node=place.node,
            pid=process.pid,
            started_s=process.create_time(),
        )


def _parent(process: psutil.Process) -> int:
    try:
        return process.ppid()
    except psutil.Error:
        return 0


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None
