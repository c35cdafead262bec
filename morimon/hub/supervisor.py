"""The hub of one run: starts the keeper, listens, reads, samples, records, and says how it ended.

One loop looks at everything twenty times a second; probes and deaths wake it in between. Nothing in it waits for the
disk, the job or a viewer.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import time
from collections.abc import Iterable
from pathlib import Path

from morimon.hub.error_files import ErrorFiles
from morimon.hub.foreign import ForeignHold
from morimon.hub.job import Job
from morimon.hub.outcome import Attempts, judge
from morimon.hub.output_files import files_held_open, files_of_run
from morimon.hub.probes import ProbeServer
from morimon.hub.ranks import Ranks
from morimon.hub.recorder import Recorder
from morimon.hub.resume import Recorded
from morimon.hub.tails import Tails
from morimon.model.events import (
    RECORD_VERSION,
    Dropped,
    Hello,
    HubStarted,
    JobChanged,
    JobFailed,
    LogLines,
    Note,
    RankExited,
    RankProcess,
    RecordEvent,
    RunHeader,
)
from morimon.runs.folder import Launch, RunFolder
from morimon.runs.identity import boot_id

ORDERS = (signal.SIGTERM, signal.SIGQUIT)
"""Signals that stop the job; blocked until `Supervisor.run` listens to them."""

_TURN_S = 0.05
_SHORT_TURN_S = 0.02
_FLUSH_NS = 100_000_000
_LOOK_NS = 100_000_000
_LAST_WORDS_S = 1.0
_LAST_READING_S = 5.0
"""How long the hub reads on when the job is over."""
_FULL_DISK_PATIENCE_S = 10.0

_ORPHANED = "The keeper of the job was killed. The job goes on; how it ends will not be known for sure."
_ORPHANED_ON_TERMINAL = (
    "The keeper of the job was killed, and with it the terminal that the job prints on: whatever it prints now fails, "
    "which may end it. How it ends will not be known for sure."
)


class Supervisor:
    """One hub's work on one run, begun (`recorded` is empty) or taken over."""

    def __init__(self, folder: RunFolder, launch: Launch, recorder: Recorder, recorded: Recorded) -> None:
        self._folder = folder
        self._launch = launch
        self._recorder = recorder
        self._recorded = recorded
        self._job = ForeignHold(launch.follows) if launch.follows else Job(folder, launch)
        self._ranks = Ranks(self._take, time.monotonic_ns, nproc=launch.nproc)
        self._attempts = Attempts()
        files = (
            files_held_open(launch.follows.pid, self._ranks.alive)
            if launch.follows
            else files_of_run(folder, self._rank_of)
        )
        self._tails = Tails(folder.path, files, self._attempts, recorded.log_bytes)
        self._error_files = ErrorFiles(folder.output_path, self._rank_of, self._attempts)
        self._server = ProbeServer(self._take, lambda force: self.stop(force=force))
        self._stopped_ns = recorded.stopped_ns
        self._is_running = recorded.state is not None and recorded.state.state != "starting"
        self._failure = recorded.failed.failure if recorded.failed else None
        self._is_failing = False
        """Whether a rank has ended badly since the last look."""
        self._is_orphaned = False
        self._is_mute = False
        self._flushed_ns = self._looked_ns = 0

    def begin(self) -> bool:
        """Put the record's first line, or the word that somebody takes it up, on the disk; whether it took it."""
        now_ns = time.monotonic_ns()
        is_first = self._recorded.header is None
        if is_first:
            self._recorder.append(
                RunHeader(
                    t_ns=now_ns,
                    version=RECORD_VERSION,
                    run_id=self._folder.run_id,
                    host=socket.gethostname(),
                    boot_id=boot_id(),
                    unix_ns=time.time_ns(),
                    command=self._launch.command,
                    cwd=self._launch.cwd,
                    kind=self._launch.kind,
                    nproc=self._launch.nproc,
                )
            )
        self._recorder.append(HubStarted(t_ns=now_ns, pid=os.getpid(), resumed=not is_first))
        if is_first:
            self._recorder.append(JobChanged(t_ns=now_ns, state="starting"))
        self._recorder.flush(now_ns)
        return not self._recorder.is_stuck

    async def run(self) -> None:
        """Start the keeper where none was, follow the job to its end, and record that."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.stop)
        loop.add_signal_handler(signal.SIGQUIT, lambda: self.stop(force=True))
        for ignored in (signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(ignored, lambda: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ORDERS)
        await self._listen()
        if self._recorded.header is None:
            self._job.start()
        _raise_file_limit()
        for exited in self._recorded.exits:
            self._learn(exited)
        self._ranks.resume(self._recorded.processes, self._recorded.exits)
        while not self._is_over():
            await asyncio.sleep(_SHORT_TURN_S if self._tails.is_behind else _TURN_S)
        await self._finish()

    def stop(self, *, force: bool = False) -> None:
        """Ask for the job's end; by `force`, or when asked again, at once."""
        if self._stopped_ns is None:
            self._stopped_ns = time.monotonic_ns()
            self._take(JobChanged(t_ns=self._stopped_ns, state="stopping"))
        self._job.stop(force=force)

    def _is_over(self) -> bool:
        """One turn of the loop; whether the job has ended."""
        now_ns = time.monotonic_ns()
        self._take_all(self._tails.read(now_ns))
        over = False
        if now_ns - self._looked_ns >= _LOOK_NS:
            self._looked_ns = now_ns
            over = self._look(now_ns)
        if now_ns - self._flushed_ns >= _FLUSH_NS:
            self._flushed_ns = now_ns
            self._recorder.flush(now_ns)
        return over

    def _look(self, now_ns: int) -> bool:
        """Look after the job, its ranks and its files; whether it is over."""
        self._tell_failure(now_ns)  # before the next attempt is taken up
        look = self._job.look()
        if look == "orphaned" and not self._is_orphaned:
            self._is_orphaned = True
            text = _ORPHANED_ON_TERMINAL if self._launch.terminal and not self._job.terminal else _ORPHANED
            self._take(Note(t_ns=now_ns, level="warning", text=text))
        if owners := self._job.owners:
            self._ranks.look(owners.keeper.pid, owners.agent.pid)
        self._tails.look()
        if self._launch.follows and not self._is_mute and self._ranks.alive() and not len(self._tails):
            self._is_mute = True
            text = "The job's output goes to a terminal or a pipe, where it cannot be read a second time."
            self._take(Note(t_ns=now_ns, level="warning", text=text))
        return look == "over"

    def _tell_failure(self, now_ns: int) -> None:
        """Tell why the newest attempt fails, as soon as that is known, and again when more is."""
        if self._is_failing:
            self._is_failing = False
            self._error_files.look()
        failure = self._attempts.first_cause()
        if failure is not None and failure != self._failure:
            self._take(JobFailed(t_ns=now_ns, failure=failure))
        self._failure = failure

    async def _finish(self) -> None:
        """Hear everybody out, judge, record the end, leave nothing behind."""
        await self._server.drain(_LAST_WORDS_S)
        self._server.close()
        self._ranks.close()
        now_ns = time.monotonic_ns()
        self._tails.look(ended=True)
        self._read_the_rest(now_ns)
        self._error_files.look()
        seen, terminal = self._job.exit, self._job.terminal
        if lost := seen.console_lost_bytes if seen else terminal.lost_bytes if terminal else 0:
            reason = "bytes of output for which the run folder's disk had no room"
            self._take(Dropped(t_ns=now_ns, count=lost, reason=reason))
        if seen and seen.alive:
            text = f"{seen.alive} processes of the job did not end by SIGKILL; a driver may hold them."
            self._take(Note(t_ns=now_ns, level="error", text=text))
        was_stopped = self._stopped_ns is not None
        self._take(judge(self._job.exit, self._attempts, t_ns=now_ns, was_stopped=was_stopped))
        deadline_s = time.monotonic() + _FULL_DISK_PATIENCE_S
        self._recorder.flush(now_ns)
        while self._recorder.is_stuck and time.monotonic() < deadline_s:
            await asyncio.sleep(_TURN_S)
            self._recorder.flush(time.monotonic_ns())
        self._recorder.close(time.monotonic_ns())

    def _read_the_rest(self, now_ns: int) -> None:
        """Read what the job printed to its end, within reason."""
        deadline_s = time.monotonic() + _LAST_READING_S
        while time.monotonic() < deadline_s and (events := self._tails.read(now_ns)):
            self._take_all(events)
            self._recorder.flush(now_ns)
        lines, skimmed_bytes = self._tails.skim(now_ns)
        self._take_all(lines)
        self._take_all(self._tails.close(now_ns))
        if skimmed_bytes:
            text = (
                f"The job printed faster than its output could be read: {skimmed_bytes / 2**20:.0f} MiB were not "
                "searched for figures and errors. The Log screen has them."
            )
            self._take(Note(t_ns=now_ns, level="warning", text=text))

    async def _listen(self) -> None:
        """Open the socket; a run without one still has its output and its samples."""
        try:
            await self._server.start(Path(self._launch.socket))
        except OSError as error:
            text = f"Probes cannot connect: the socket {self._launch.socket} cannot be opened ({error.strerror})."
            self._take(Note(t_ns=time.monotonic_ns(), level="error", text=text))

    def _take(self, event: RecordEvent) -> None:
        """Record an event, and learn from it."""
        self._recorder.append(event)
        if isinstance(event, Hello):
            self._ranks.claim(event)
        elif isinstance(event, RankProcess):
            self._attempts.of(event.restart)
        elif isinstance(event, RankExited):
            self._learn(event)
        if not self._is_running and self._stopped_ns is None and self._shows_life(event):
            self._is_running = True
            agent = self._job.owners.agent.pid if self._job.owners else None
            self._recorder.append(JobChanged(t_ns=event.t_ns, state="running", agent_pid=agent))

    def _learn(self, exited: RankExited) -> None:
        """Take a rank's end for a reason why the job fails, unless the job was asked to end before."""
        if self._stopped_ns is None or exited.t_ns < self._stopped_ns:
            self._attempts.take(exited)
            self._is_failing = self._is_failing or exited.exitcode != 0

    def _shows_life(self, event: RecordEvent) -> bool:
        """Whether an event tells that ranks run: the agent's own output does not, a whole command's may."""
        if isinstance(event, LogLines):
            return event.rank is not None or self._launch.kind == "command"
        return isinstance(event, (Hello, RankProcess))

    def _take_all(self, events: Iterable[RecordEvent]) -> None:
        for event in events:
            self._take(event)

    def _rank_of(self, restart: int, local_rank: int) -> int | None:
        """On one node torchrun numbers its ranks from 0; on several, the processes' environments tell."""
        return local_rank if self._launch.nodes == "1" else self._ranks.rank_of(restart, local_rank)


def _raise_file_limit() -> None:
    """Make room for two files, a socket and a pidfd for each of many ranks; the job keeps the limit that it was given."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
