"""Where a screen's snapshots come from: a record that grows, or one that is played again.

`poll` is called by the app's timer and does a bounded piece of work; `snapshot` is the newest picture. Nothing here
knows Textual.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from morimon.feeds.record import RecordReader
from morimon.model.events import Note, PhaseDone, PhaseEntered, RecordEvent, RunEnded
from morimon.store.snapshot import RunSnapshot
from morimon.store.store import Store

WORK_S = 0.05
"""Longest piece of reading between two looks at the keyboard."""
LOADING_BYTES = 4 << 20
"""Less than this left of a record is not worth a word."""

Clock = Callable[[], float]


class Source(Protocol):
    """A run to look at."""

    @property
    def snapshot(self) -> RunSnapshot:
        """The run as far as it is known."""
        ...

    @property
    def loading(self) -> float | None:
        """Share of the record read so far, while there is much left; else None."""
        ...

    @property
    def is_behind(self) -> bool:
        """Whether `poll` left work undone for want of time."""
        ...

    def poll(self, now_s: float) -> None:
        """Take in what is new; `now_s` is a steady clock."""
        ...

    def close(self) -> None:
        """Give files back."""
        ...


class NoRun:
    """No run at all: for screens that only follow a folder."""

    loading: float | None = None
    is_behind = False

    @property
    def snapshot(self) -> RunSnapshot:
        """Nothing, and it never changes."""
        return _NOTHING

    def poll(self, now_s: float) -> None:
        """There is nothing to take in."""

    def close(self) -> None:
        """There is nothing to give back."""


_NOTHING = RunSnapshot(version=0)


class LiveSource:
    """The record of a run that goes on, read from its beginning."""

    def __init__(self, record: Path, clock: Clock = time.monotonic) -> None:
        self._reader = RecordReader(record)
        self._store = Store()
        self._clock = clock
        self._newest_ns = 0
        self.loading: float | None = None
        self.is_behind = False

    def lose(self, why: str) -> None:
        """Nobody writes the record any more: take in what is left of it, and end the run here."""
        self.poll(self._clock())
        self._store.apply(Note(t_ns=self._newest_ns, text=why, level="error"))
        self._store.apply(RunEnded(t_ns=self._newest_ns, outcome="lost"))

    @property
    def snapshot(self) -> RunSnapshot:
        """The run now."""
        return self._store.snapshot()

    def poll(self, now_s: float) -> None:
        """Read for at most WORK_S."""
        until = self._clock() + WORK_S
        self.is_behind = False
        while not self.is_behind and (events := self._reader.read()):
            for event in events:
                self._store.apply(event)
            self._newest_ns = events[-1].t_ns
            self.is_behind = self._clock() >= until
        size = self._reader.path.stat().st_size
        self.loading = self._reader.offset / size if size - self._reader.offset > LOADING_BYTES else None

    def close(self) -> None:
        """Close the record."""
        self._reader.close()


class ReplaySource:
    """A finished record, played at any speed from any point; positions are seconds since its first event."""

    def __init__(self, record: Path, clock: Clock = time.monotonic) -> None:
        self._reader = RecordReader(record)
        self._clock = clock
        self._events: list[RecordEvent] = []
        self._times_s = array("d")
        self._rounds: list[tuple[float, int]] = []
        self._store = Store()
        self._applied = 0
        self._last_s: float | None = None
        self.position_s = 0.0
        self.speed = 1.0
        self.paused = False
        self.loading: float | None = 0.0

    @property
    def snapshot(self) -> RunSnapshot:
        """The run at the position."""
        return self._store.snapshot()

    @property
    def is_behind(self) -> bool:
        """Whether the record is being read, or the store has not come to the position yet."""
        return self.loading is not None or self._applied < bisect_right(self._times_s, self.position_s)

    @property
    def length_s(self) -> float:
        """From the first event to the last."""
        return self._times_s[-1] if self._times_s else 0.0

    def poll(self, now_s: float) -> None:
        """Load the record, then move on by the time since the last call times the speed."""
        until = self._clock() + WORK_S
        if self.loading is not None:
            self._load(until)
            self._last_s = now_s
            return
        if not self.paused and self._last_s is not None:
            self.position_s = min(self.position_s + (now_s - self._last_s) * self.speed, self.length_s)
            self.paused = self.position_s >= self.length_s
        self._last_s = now_s
        self._apply(until)

    def seek(self, position_s: float) -> None:
        """Go to a position; going back plays the record again up to it."""
        self.position_s = min(max(position_s, 0.0), self.length_s)
        if bisect_right(self._times_s, self.position_s) < self._applied:
            self._store, self._applied = Store(), 0
        self._apply(self._clock() + WORK_S)

    def step(self, rounds: int) -> None:
        """Pause at the beginning of the next (or the previous) round."""
        self.paused = True
        begins = [begin for begin, _ in self._rounds]
        at = bisect_right(begins, self.position_s) if rounds > 0 else bisect_left(begins, self.position_s) - 1
        if 0 <= at < len(begins):
            self.seek(begins[at])
        else:
            self.seek(self.length_s if rounds > 0 else 0.0)

    def time_of_round(self, number: int) -> float | None:
        """When a round began, or the first one after it; None where there is none."""
        return next((begin for begin, begun in self._rounds if begun >= number), None)

    def close(self) -> None:
        """Close the record."""
        self._reader.close()

    def _load(self, until: float) -> None:
        while events := self._reader.read():
            self._take(events)
            if self._clock() >= until:
                size = max(self._reader.path.stat().st_size, 1)
                self.loading = min(self._reader.offset / size, 0.99)
                return
        self.loading = None
        if self._rounds:
            self.seek(self._rounds[0][0] - 1.0)

    def _take(self, events: Sequence[RecordEvent]) -> None:
        """Remember events, when they were, and where rounds begin."""
        self._events += events
        first_ns, newest = self._events[0].t_ns, self.length_s
        highest = self._rounds[-1][1] if self._rounds else None
        for event in events:
            newest = max(newest, (event.t_ns - first_ns) / 1e9)
            self._times_s.append(newest)
            if isinstance(event, (PhaseEntered, PhaseDone)) and (highest is None or event.round > highest):
                highest = event.round
                self._rounds.append((newest, highest))

    def _apply(self, until: float) -> None:
        """Bring the store to the position; what takes too long goes on at the next call."""
        wanted = bisect_right(self._times_s, self.position_s)
        while self._applied < wanted:
            upto = min(self._applied + 1000, wanted)
            for event in self._events[self._applied : upto]:
                self._store.apply(event)
            self._applied = upto
            if self._clock() >= until:
                return


def parse_position(text: str, source: ReplaySource) -> float | None:
    """Seconds that `1:30`, `90`, `45%` or `#12` mean in this recording; None where it is none of these."""
    text = text.strip()
    try:
        if text.startswith("#"):
            return source.time_of_round(int(text[1:]))
        if text.endswith("%"):
            return float(text[:-1]) / 100 * source.length_s
        seconds = 0.0
        for part in text.split(":"):
            seconds = seconds * 60 + float(part)
    except ValueError:
        return None
    return seconds
