"""Following a record without a screen: a recorded run to its end, or a living one as it grows.

What is printed, and when, depends on the record alone, so that a replay prints what the live run printed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from morimon.feeds.record import RecordReader
from morimon.model.config import JobConfig
from morimon.model.events import (
    Configured,
    Dropped,
    Note,
    PhaseDone,
    Progress,
    RecordEvent,
    RunEnded,
    RunHeader,
)
from morimon.report.succession import Succession, is_lost
from morimon.runs.folder import RunFolder
from morimon.store.snapshot import RunSnapshot
from morimon.store.store import Store

_POLL_S = 0.1
_LOOK_S = 1.0
"""Pause between two looks at whether anybody still writes the record."""
_PARTS = 10
_LEAST_S = 1.0
_MOST_S = 10.0
"""A progress line comes with the first figures and with every tenth of the work, but not more often and not more seldom
than these.
"""


class Reporter(Protocol):
    """Prints what a follower finds."""

    def header(self, snapshot: RunSnapshot) -> None:
        """The job has told its configuration and its first figures; or no configuration in time, or nothing at all."""

    def progress(self, snapshot: RunSnapshot) -> None:
        """A progress line is due."""

    def note(self, event: Note) -> None:
        """Something to know."""

    def dropped(self, event: Dropped) -> None:
        """Something was set aside."""

    def result(self, snapshot: RunSnapshot) -> None:
        """There is nothing more to read."""


@dataclass
class Pace:
    """When a progress line is due, by the record's own clock."""

    newest_ns: int | None = None
    newest_done: int = 0
    first_figures: Literal["awaited", "there", "told"] = "awaited"
    first_round: int | None = None

    def is_due(self, event: RecordEvent) -> bool:
        """Whether a line follows this event."""
        next_round = False
        if isinstance(event, PhaseDone) and event.round >= 0:
            if self.first_figures == "awaited":
                self.first_figures, self.first_round = "there", event.round
            next_round = event.round != self.first_round
        if self.newest_ns is None:
            self.newest_ns = event.t_ns
        waited_s = (event.t_ns - self.newest_ns) / 1e9
        first = self.first_figures == "there" and (next_round or isinstance(event, Progress))
        due = waited_s >= _MOST_S or first
        if isinstance(event, Progress):
            if event.done < self.newest_done:
                self.newest_done = 0
            step = max((event.total or 0) / _PARTS, 1)
            tenth = event.total is not None and event.done - self.newest_done >= step
            due = due or event.done == event.total or (tenth and waited_s >= _LEAST_S)
            if due:
                self.newest_done = event.done
        if first:
            self.first_figures = "told"
        if due:
            self.newest_ns = event.t_ns
        return due


def follow(events: Iterator[RecordEvent], reporter: Reporter) -> RunSnapshot:
    """Report events to their end; returns the run as it is then."""
    store, pace = Store(), Pace()
    has_figures = is_configured = introduced = False
    for event in events:
        store.apply(event)
        for note in store.take_notes():
            reporter.note(note)
        if isinstance(event, Dropped):
            reporter.dropped(event)
        due = pace.is_due(event)
        has_figures = has_figures or isinstance(event, PhaseDone | Progress)
        is_configured = is_configured or _configures(event)
        if not introduced and (isinstance(event, RunEnded) or (has_figures and (is_configured or due))):
            introduced = True
            reporter.header(store.snapshot())
        if due and not isinstance(event, RunEnded):
            reporter.progress(store.snapshot())
    reporter.result(store.snapshot())
    return store.snapshot()


def _configures(event: RecordEvent) -> bool:
    """Whether the job tells more of itself than how many ranks it has, which every rank's probe knows."""
    return isinstance(event, Configured) and event.config != JobConfig(world_size=event.config.world_size)


class NotARecordError(Exception):
    """The file is no record of a run; the message is a sentence."""


def recorded(path: Path, folder: RunFolder) -> Iterator[RecordEvent]:
    """What a record holds now, to the run's end where it is known. Raises OSError and NotARecordError."""
    reader = RecordReader(path)
    newest_ns = 0
    try:
        events = reader.read()
        if not events or not isinstance(events[0], RunHeader):
            raise NotARecordError(f"{path} is no record of a run: it does not begin with a header.")
        while events:
            for event in events:
                newest_ns = max(newest_ns, event.t_ns)
                yield event
                if isinstance(event, RunEnded):
                    return
            events = reader.read()
    finally:
        reader.close()
    if is_lost(folder):
        yield RunEnded(t_ns=newest_ns, outcome="lost")


def living(folder: RunFolder) -> Iterator[RecordEvent]:
    """What a record holds and what is added to it, until the run's end; a hub that died is replaced.

    LaunchError, a sentence, where that fails.
    """
    reader, succession = RecordReader(folder.events_path), Succession(folder)
    newest_ns = 0
    looked_s = time.monotonic()
    last_read = False
    try:
        while True:
            events = reader.read()
            for event in events:
                newest_ns = max(newest_ns, event.t_ns)
                yield event
                if isinstance(event, RunEnded):
                    return
            if events:
                continue
            if last_read:
                break
            if time.monotonic() - looked_s > _LOOK_S:
                looked_s = time.monotonic()
                last_read = succession.nobody_writes()
            else:
                time.sleep(_POLL_S)
    finally:
        reader.close()
    yield RunEnded(t_ns=newest_ns, outcome="lost")
