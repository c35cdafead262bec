"""The viewer's memory of one run: events in, snapshots out; bounded however long the run.

`version` grows with every event that changes what can be seen; each rank carries the version of its own last change.
The newest restart's ranks are kept; output references, notes and drops are kept across restarts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from morimon.model.config import JobConfig
from morimon.model.events import (
    RECORD_VERSION,
    Configured,
    Counter,
    Dropped,
    Event,
    Failure,
    Hello,
    HubStarted,
    JobChanged,
    JobFailed,
    JobState,
    Level,
    LogLines,
    Note,
    Outcome,
    PhaseDone,
    PhaseEntered,
    ProcessSample,
    Progress,
    RankExited,
    RankProcess,
    RecordEvent,
    RunEnded,
    RunHeader,
    Tokens,
    Traffic,
)
from morimon.store.generation import Generation
from morimon.store.rank import COUNTERS_KEPT
from morimon.store.snapshot import DropCount, RunSnapshot

LOGS_KEPT = 100_000
NOTES_KEPT = 1000
DROPS_KEPT = 256
_LEVELS: tuple[Level, ...] = ("info", "warning", "error")


class Store:
    """All that a viewer remembers of a run."""

    def __init__(self) -> None:
        self.version = 0
        self._header: RunHeader | None = None
        self._newest_ns = 0
        self._config = JobConfig()
        self._state: JobState | Outcome = "starting"
        self._exitcode: int | None = None
        self._ended = False
        self._failure: Failure | None = None
        self._ranks = Generation(0)
        self._logs: deque[LogLines] = deque(maxlen=LOGS_KEPT)
        self._logs_forgotten = 0
        self._notes: deque[Note] = deque(maxlen=NOTES_KEPT)
        self._new_notes: deque[Note] = deque(maxlen=NOTES_KEPT)
        self._drops: dict[tuple[str, int | None], int] = {}
        self._worst_level: Level = "info"
        self._snapshot = RunSnapshot(version=0)
        self._logs_seen: tuple[LogLines, ...] = ()
        self._logs_changed = False
        self._take: dict[type[Event], Callable[[Any], bool]] = {
            RunHeader: self._run_header,
            HubStarted: self._hub_started,
            JobChanged: self._job_changed,
            RankProcess: self._rank_process,
            RankExited: self._rank_exited,
            Hello: self._hello,
            Configured: self._configured,
            PhaseEntered: self._phase_entered,
            PhaseDone: self._phase_done,
            Tokens: self._tokens,
            Traffic: self._traffic,
            Progress: self._progress,
            Counter: self._counter,
            ProcessSample: self._process_sample,
            LogLines: self._log_lines,
            JobFailed: self._job_failed,
            Dropped: self._dropped,
            Note: self._note,
            RunEnded: self._run_ended,
        }

    def apply(self, event: RecordEvent) -> None:
        """Take in one event, in the order of the record."""
        take = self._take.get(type(event))
        if take is None:
            return
        if not self._ended:
            self._newest_ns = max(self._newest_ns, event.t_ns)
        self.version += 1
        if not take(event):
            self.version -= 1

    def snapshot(self) -> RunSnapshot:
        """The run now; the same object as long as `version` stands still."""
        if self._snapshot.version != self.version:
            self._snapshot = self._build()
        return self._snapshot

    def take_notes(self) -> list[Note]:
        """Notes since the last call: the record's and the store's own."""
        notes = list(self._new_notes)
        self._new_notes.clear()
        return notes

    def _build(self) -> RunSnapshot:
        header, ranks, progress = self._header, self._ranks, self._ranks.progress
        crosses_nodes = _crosses_nodes(self._config)
        recv_total, rdma_total = ranks.totals()
        if self._logs_changed:
            self._logs_seen, self._logs_changed = tuple(self._logs), False
        return RunSnapshot(
            version=self.version,
            run_id=header.run_id if header else "",
            host=header.host if header else "",
            command=header.command if header else (),
            cwd=header.cwd if header else "",
            started_unix_ns=header.unix_ns if header else None,
            elapsed_s=(self._newest_ns - header.t_ns) / 1e9 if header else 0.0,
            config=self._config,
            crosses_nodes=crosses_nodes,
            state=self._state,
            exitcode=self._exitcode,
            failure=self._failure,
            progress_done=progress.newest.done if progress.newest else None,
            progress_total=progress.newest.total if progress.newest else None,
            eta_s=None if self._ended else progress.eta_s,
            ranks=ranks.snapshots(self._config),
            dispatch=ranks.tallies["dispatch"].summary(),
            combine=ranks.tallies["combine"].summary(),
            straggler=ranks.arrivals.straggler(),
            arrivals_judged=ranks.arrivals.judged,
            recv_tokens_total=recv_total,
            rdma_tokens_algo_total=rdma_total,
            logs=self._logs_seen,
            logs_forgotten=self._logs_forgotten,
            notes=tuple(self._notes),
            drops=tuple(DropCount(reason, rank, count) for (reason, rank), count in self._drops.items()),
            worst_level=self._worst_level,
        )

    def _current(self, event: Any) -> bool:
        """Whether a rank's event belongs to the newest restart; a higher one begins a new generation."""
        if event.restart > self._ranks.restart:
            self._ranks = Generation(event.restart)
            self._failure = None
            self._note(
                Note(
                    t_ns=event.t_ns,
                    text=f"The job was restarted (restart {event.restart}): figures start anew.",
                    level="warning",
                )
            )
        return bool(event.restart == self._ranks.restart)

    def _touch_all(self) -> None:
        for row in self._ranks.rows.values():
            row.version = self.version

    def _run_header(self, event: RunHeader) -> bool:
        self._header = event
        if event.kind == "builtin":
            for rank in range(event.nproc or 0):
                self._ranks.row(rank).version = self.version
        if event.version > RECORD_VERSION:
            text = f"Recorded in format {event.version}; this morimon knows {RECORD_VERSION} and leaves out what is new."
            self._note(Note(t_ns=event.t_ns, text=text, level="warning"))
        return True

    def _hub_started(self, event: HubStarted) -> bool:
        if not event.resumed:
            return False
        text = "The hub that recorded this run died; another one has taken up the record."
        return self._note(Note(t_ns=event.t_ns, text=text, level="warning"))

    def _job_changed(self, event: JobChanged) -> bool:
        if self._ended:
            return False
        self._state = event.state
        return True

    def _rank_process(self, event: RankProcess) -> bool:
        if not self._current(event):
            return False
        row = self._ranks.row(event.rank)
        row.process(event)
        row.version = self.version
        return True

    def _rank_exited(self, event: RankExited) -> bool:
        if not self._current(event):
            return False
        row = self._ranks.row(event.rank)
        if not row.exited(event):
            return False
        row.version = self.version
        return True

    def _hello(self, event: Hello) -> bool:
        if not self._current(event):
            return False
        row = self._ranks.row(event.rank)
        row.hello(event)
        self._ranks.heard(row, event.local_world_size)
        row.version = self.version
        if event.world_size is not None and self._config.world_size is None:
            self._configured(
                Configured(
                    t_ns=event.t_ns, config=JobConfig(world_size=event.world_size), restart=event.restart
                )
            )
        return True

    def _configured(self, event: Configured) -> bool:
        completed = self._config.completed_by(event.config)
        if completed == self._config:
            return False
        self._config = completed
        self._touch_all()
        return True

    def _phase_entered(self, event: PhaseEntered) -> bool:
        if not self._current(event):
            return False
        if self._ranks.entered(event, self._config):
            self._touch_all()
        self._ranks.row(event.rank).version = self.version
        return True

    def _phase_done(self, event: PhaseDone) -> bool:
        if not self._current(event) or not self._ranks.done(event):
            return False
        self._ranks.row(event.rank).version = self.version
        return True

    def _tokens(self, event: Tokens) -> bool:
        if not self._current(event):
            return False
        row = self._ranks.row(event.rank)
        row.tokens(event)
        row.version = self.version
        return True

    def _traffic(self, event: Traffic) -> bool:
        if not self._current(event):
            return False
        row = self._ranks.row(event.rank)
        row.traffic(event)
        row.version = self.version
        return True

    def _progress(self, event: Progress) -> bool:
        return self._current(event) and self._ranks.progress.add(event)

    def _counter(self, event: Counter) -> bool:
        if not self._current(event):
            return False
        row = self._ranks.row(event.rank)
        if not row.counter(event.name, event.value, event.unit):
            return self._set_aside(f"counters beyond the first {COUNTERS_KEPT} of a rank", event.rank, 1)
        row.version = self.version
        return True

    def _process_sample(self, event: ProcessSample) -> bool:
        if not self._current(event):
            return False
        row = self._ranks.row(event.rank)
        row.sample(event)
        row.version = self.version
        return True

    def _log_lines(self, event: LogLines) -> bool:
        self._current(event)
        if len(self._logs) == LOGS_KEPT:
            self._logs_forgotten += self._logs[0].lines
        self._logs.append(event)
        self._logs_changed = True
        self._raise_level(event.level)
        return True

    def _job_failed(self, event: JobFailed) -> bool:
        self._failed_first(event.failure)
        self._raise_level("error")
        return True

    def _failed_first(self, failure: Failure) -> None:
        self._failure = failure
        row = self._ranks.rows.get(failure.rank) if failure.rank is not None else None
        if row is not None:
            row.failed()
            row.version = self.version

    def _dropped(self, event: Dropped) -> bool:
        return self._set_aside(event.reason, event.rank, event.count)

    def _set_aside(self, reason: str, rank: int | None, count: int) -> bool:
        key = (reason, rank)
        if key not in self._drops and len(self._drops) >= DROPS_KEPT:
            key = ("other reasons", None)
        self._drops[key] = self._drops.get(key, 0) + count
        return True

    def _note(self, event: Note) -> bool:
        self._notes.append(event)
        self._new_notes.append(event)
        self._raise_level(event.level)
        return True

    def _raise_level(self, level: Level) -> None:
        self._worst_level = max(self._worst_level, level, key=_LEVELS.index)

    def _run_ended(self, event: RunEnded) -> bool:
        self._state, self._exitcode, self._ended = event.outcome, event.exitcode, True
        for row in self._ranks.rows.values():
            row.ended()
            row.version = self.version
        if event.failure is not None:
            self._failed_first(event.failure)
        elif event.outcome == "finished":  # an attempt had failed, the run has not
            self._failure = None
        return True


def _crosses_nodes(config: JobConfig) -> bool:
    """False where the configuration says one node; unknown counts as several, so that nothing told is hidden."""
    if config.num_nodes is not None:
        return config.num_nodes > 1
    if config.world_size is not None and config.gpu_per_node:
        return config.world_size > config.gpu_per_node
    return True
