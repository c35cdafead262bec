"""A folder's trace files over time: appears → growing → ready → shown, replaced, removed. Pure: told, never looking.

Whoever looks at the folder tells `TraceShelf` what lies there (`listed`), asks the files that it names for their
wholeness and tells the answers (`judged`). A file is ready when it is whole, or when it is not but has stopped growing
for `settle_s` (its writer was killed: what is there can be salvaged). Every change sends a file back to growing, so
that it is asked again; nothing is ever given up. A file's `revision` counts how often it became ready: whoever shows
traces compares revisions, and tells what came of loading (`loaded`, `failed`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from morimon.trace.names import file_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from morimon.trace.model import FileName
    from morimon.trace.whole import Wholeness

State: TypeAlias = Literal["growing", "whole", "half-written", "aside", "failed"]

SUFFIXES = (".json", ".json.gz", ".json.zst")
SAME_RUN_S = 30
"""Ranks of one run stamp their files within this time of each other: each when its own export is done."""


class Seen(NamedTuple):
    """What a directory entry says of a file's contents: two that are equal stand for the same bytes."""

    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A file of the folder. `says`: rank and stamp of its name; `ranks`: what it holds, once it has been loaded.

    `revision` is 0 until it first was ready, and counts contents from there; `text` says what is wrong.
    """

    name: str
    seen: Seen
    says: FileName
    state: State = "growing"
    revision: int = 0
    text: str = ""
    ranks: tuple[int, ...] = ()
    world_size: int | None = None

    @property
    def is_ready(self) -> bool:
        """Whether there is something to load: a whole trace, or as much as a killed writer left."""
        return self.state in ("whole", "half-written")


@dataclass(frozen=True, slots=True)
class TraceGroup:
    """Files of one run, ranks in order: same name but for the rank, stamps close together, no rank twice."""

    prefix: str
    stamp: str
    """The earliest of its files, `mmdd_HHMMSS`, or "" where names carry none."""
    files: tuple[TraceFile, ...]

    @property
    def modified_ns(self) -> int:
        """When its newest file was last written, Unix time."""
        return max(file.seen.modified_ns for file in self.files)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks that are here, in order; what files hold counts more than what they are called."""
        return tuple(sorted({rank for file in self.files for rank in _ranks(file)}))

    @property
    def world_size(self) -> int | None:
        """Ranks of the run: what its traces say, or else one more than the highest that is here."""
        said = [file.world_size for file in self.files if file.world_size is not None]
        return max([*said, *(rank + 1 for rank in self.ranks)], default=None)

    @property
    def missing(self) -> tuple[int, ...]:
        """Ranks of the run that are not here."""
        return tuple(sorted(set(range(self.world_size or 0)) - set(self.ranks)))

    @property
    def title(self) -> str:
        """How the run is called on a line: `trace 0821_171105`."""
        return " ".join(part for part in (self.prefix or "trace", self.stamp) if part)

    @property
    def text(self) -> str:
        """`8 ranks`, or `5 of 8 ranks, missing 3, 6, 7`; names without a rank are counted as files."""
        if self.world_size is None:
            return f"{len(self.files)} file{'s' * (len(self.files) != 1)}, no rank in the name"
        if not self.missing:
            return f"{self.world_size} rank{'s' * (self.world_size != 1)}"
        return f"{len(self.ranks)} of {self.world_size} ranks, missing {spelled(self.missing)}"


@dataclass(frozen=True, slots=True)
class FolderTraces:
    """The folder at one moment, runs in order of their newest file, the newest first."""

    groups: tuple[TraceGroup, ...] = ()
    aside: tuple[str, ...] = ()
    """JSON that is no trace, by name: counted, otherwise left in peace."""

    @property
    def files(self) -> tuple[TraceFile, ...]:
        """All files but those set aside, group by group."""
        return tuple(file for group in self.groups for file in group.files)

    def group_of(self, name: str) -> TraceGroup | None:
        """The run that a file belongs to."""
        return next((group for group in self.groups for file in group.files if file.name == name), None)


@dataclass(slots=True)
class _Entry:
    file: TraceFile
    since_s: float
    asked: bool = False
    verdict: Wholeness = "growing"


@dataclass(slots=True)
class TraceShelf:
    """What is known of a folder; `version` changes whenever `traces()` does."""

    settle_s: float = 5.0
    version: int = 0
    _entries: dict[str, _Entry] = field(default_factory=dict)

    def listed(self, listing: Mapping[str, Seen], now_s: float) -> tuple[str, ...]:
        """Take in what lies in the folder (name -> seen); the names whose wholeness is to be asked now.

        Newest first, so that a folder of hundreds shows its latest run at once.
        """
        for name in self._entries.keys() - listing.keys():
            del self._entries[name]
            self.version += 1
        for name, seen in listing.items():
            entry = self._entries.get(name)
            if entry is None:
                self._entries[name] = _Entry(TraceFile(name, seen, file_name(name)), now_s)
                self.version += 1
            elif entry.file.seen != seen:
                self._set(entry, state="growing", seen=seen, text="")
                entry.since_s, entry.asked = now_s, False
            elif entry.asked and entry.file.state == "growing" and now_s - entry.since_s >= self.settle_s:
                self._settle(entry)
        unasked = [entry for entry in self._entries.values() if not entry.asked]
        unasked.sort(key=lambda entry: -entry.file.seen.modified_ns)
        return tuple(entry.file.name for entry in unasked)

    def judged(self, name: str, seen: Seen, verdict: Wholeness) -> None:
        """Take in a file's wholeness; `seen` is what it was before and after it was looked into."""
        entry = self._entries.get(name)
        if entry is None or entry.file.seen != seen:
            return
        entry.asked, entry.verdict = True, verdict
        if verdict == "whole":
            self._set(entry, state="whole", revision=entry.file.revision + 1)
        elif verdict == "not a trace":
            self._set(entry, state="aside")

    def loaded(self, name: str, revision: int, ranks: Iterable[int], world_size: int | None) -> None:
        """Take in what a loaded file holds."""
        if entry := self._current(name, revision):
            self._set(entry, ranks=tuple(sorted(ranks)), world_size=world_size)

    def failed(self, name: str, revision: int, text: str, *, aside: bool = False) -> None:
        """Take in why a file could not be shown; it is asked again as soon as it changes."""
        if entry := self._current(name, revision):
            self._set(entry, state="aside" if aside else "failed", text=text)

    def unreadable(self, name: str, seen: Seen, text: str) -> None:
        """Take in that a file could not even be opened."""
        entry = self._entries.get(name)
        if entry is not None and entry.file.seen == seen:
            entry.asked = True
            self._set(entry, state="failed", text=text)

    def due_s(self) -> float | None:
        """When (on the clock of `now_s`) the next file will have settled; None if nothing is growing."""
        waiting = [e.since_s for e in self._entries.values() if e.asked and e.file.state == "growing"]
        return min(waiting) + self.settle_s if waiting else None

    @property
    def is_settled(self) -> bool:
        """Whether every file has an answer and none is expected to change."""
        return all(entry.file.state != "growing" for entry in self._entries.values())

    def traces(self) -> FolderTraces:
        """All of it, grouped by run."""
        files = [entry.file for entry in self._entries.values()]
        return FolderTraces(
            groups=group_by_run(file for file in files if file.state != "aside"),
            aside=tuple(sorted(file.name for file in files if file.state == "aside")),
        )

    def _current(self, name: str, revision: int) -> _Entry | None:
        entry = self._entries.get(name)
        return entry if entry and entry.file.revision == revision and entry.file.is_ready else None

    def _settle(self, entry: _Entry) -> None:
        if entry.verdict == "empty":
            self._set(entry, state="failed", text=f"{entry.file.name}: empty, nothing was written into it.")
        else:
            self._set(entry, state="half-written", revision=entry.file.revision + 1)

    def _set(self, entry: _Entry, **changes: object) -> None:
        entry.file = replace(entry.file, **changes)  # type: ignore[arg-type]  # fields by name
        self.version += 1


def is_candidate(name: str) -> bool:
    """Whether a file of this name may be a trace; hidden files are other programs' drafts."""
    return name.lower().endswith(SUFFIXES) and not name.startswith(".")


def group_by_run(files: Iterable[TraceFile]) -> tuple[TraceGroup, ...]:
    """Files grouped by run, the newest run first, ranks in order."""
    by_prefix: dict[tuple[str, bool], list[TraceFile]] = {}
    for file in files:
        by_prefix.setdefault((file.says.prefix, bool(file.says.stamp)), []).append(file)
    groups = []
    for (prefix, stamped), members in by_prefix.items():
        for run in _by_stamp(members) if stamped else [members]:
            run.sort(key=lambda file: (_ranks(file)[:1] or (1 << 30,), file.name))
            groups.append(TraceGroup(prefix, min(file.says.stamp for file in run), tuple(run)))
    groups.sort(key=lambda group: (-group.modified_ns, group.title))
    return tuple(groups)


def _by_stamp(files: list[TraceFile]) -> list[list[TraceFile]]:
    runs: list[list[TraceFile]] = []
    ranks: set[int | None] = set()
    before_s = 0
    for file in sorted(files, key=lambda file: (_seconds(file.says.stamp), file.says.rank or 0)):
        at_s = _seconds(file.says.stamp)
        if not runs or at_s - before_s > SAME_RUN_S or file.says.rank in ranks:
            runs.append([])
            ranks = set()
        runs[-1].append(file)
        ranks.add(file.says.rank)
        before_s = at_s
    return runs


def _seconds(stamp: str) -> int:
    """Order and distance of `mmdd_HHMMSS` stamps; months of 31 days do for both."""
    month, day, hour, minute, second = (int(stamp[i : i + 2]) for i in (0, 2, 5, 7, 9))
    return (((month * 31 + day) * 24 + hour) * 60 + minute) * 60 + second


def _ranks(file: TraceFile) -> tuple[int, ...]:
    if file.ranks:
        return file.ranks
    return () if file.says.rank is None else (file.says.rank,)


def spelled(numbers: Iterable[int]) -> str:
    """`0, 2-5, 7`: ascending numbers, three and more neighbours as a range."""
    parts: list[str] = []
    run: list[int] = []

    def close() -> None:
        parts.extend([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))

    for number in numbers:
        if run and number != run[-1] + 1:
            close()
            run = []
        run.append(number)
    close()
    return ", ".join(parts)
