"""Which trace is looked at: the newest run by itself, or what the person chose; and what has been worked out of it.

No widget and no key here. `ready` is called whenever something has arrived that may be shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from morimon.feeds.traces import FolderTraces, TraceFile, TraceGroup, spelled
from morimon.trace.model import Trace
from morimon.trace.stats import thread_table
from morimon.tui.trace_feed import TraceFeed
from morimon.tui.trace_parts import Parts
from morimon.views.trace import by_threads
from morimon.views.trace_figures import Figures, thread_figures
from morimon.views.trace_files import FileRow, GroupRow
from morimon.views.trace_look import Here, Look, TraceState, carried, look_at
from morimon.views.trace_warps import Warps

FIRST_NS = 1_000_000_000
"""How long the first trace waits for its run's lower ranks to be looked into."""


class TraceSession:
    """`file` is shown, `look` is what is seen of it; None until the first trace is there.

    Until something is `touched` the newest run is shown as it comes; from then on it is only told.
    """

    def __init__(self, path: Path, ready: Callable[[], None], *, polling: bool, settle_s: float) -> None:
        self.feed = TraceFeed(path, polling=polling, settle_s=settle_s)
        self.file: TraceFile | None = None
        self.look: Look | None = None
        self.touched = False
        self._ready = ready
        self._parts = Parts(self._arrive, self._fail)
        self._arrived = 0
        self._wanted: TraceFile | None = None
        self._wanted_rank: int | None = None
        self._process = self._number = 0
        self._since_ns = time.time_ns()
        self._seen: set[tuple[str, int]] = set()
        self._own: set[str] = set()
        self._trouble = self.feed.start()

    def close(self) -> None:
        """Stop looking, loading and working things out."""
        self._parts.close()
        self.feed.close()

    @property
    def version(self) -> object:
        """Changes whenever `here` does, but for ages: those of news count by seconds for a minute, then by minutes."""
        news = self.news
        age_s = (time.time_ns() - news.seen.modified_ns) // 10**9 if news is not None else 0
        return self.feed.version, self._arrived, age_s if age_s < 60 else age_s // 60 * 60

    @property
    def trace(self) -> Trace | None:
        """The trace of the file that is shown."""
        return self.feed.trace(self.file) if self.file is not None else None

    @property
    def group(self) -> TraceGroup | None:
        """The run that is shown."""
        return self.feed.listing.group_of(self.file.name) if self.file is not None else None

    @property
    def news(self) -> TraceFile | None:
        """The newest file that has come since the beginning and has not been looked at."""
        if self.file is None:
            return None
        fresh = [file for file in self.feed.listing.files if self._is_fresh(file)]
        return max(fresh, key=lambda file: file.seen.modified_ns, default=None)

    def _is_fresh(self, file: TraceFile) -> bool:
        return self._is_unseen(file) and file.seen.modified_ns > self._since_ns

    def _is_unseen(self, file: TraceFile) -> bool:
        return file.is_ready and file.name not in self._own and (file.name, file.revision) not in self._seen

    def writes(self, path: Path) -> None:
        """A file of this path is about to be written from here: in the folder it is no news."""
        if path.parent.resolve() == self.feed.path.resolve():
            self._own.add(path.name)

    def follow(self, *, paused: bool) -> None:
        """Show what was asked for once it is loaded; untouched, ask for the newest run."""
        listing = self.feed.listing
        if self._wanted is not None:
            trace = self.feed.trace(self._wanted)
            if trace is not None:
                self._show(self._wanted, trace)
            elif self.feed.loading is None:
                self._give_up(listing)
        if self._wanted is None and not self.touched and not paused:
            newest = self._newest(listing)
            if newest is not None:
                self.want(newest, self.rank)

    def _newest(self, listing: FolderTraces) -> TraceFile | None:
        """The file to show of the newest run, if that is not the one that is shown: of the same rank, if it has it."""
        for group in listing.groups:
            ready = [file for file in group.files if self._is_unseen(file)]
            if not ready:
                if self.file is not None and listing.group_of(self.file.name) is group:
                    return None
                continue
            if self.file is None:
                unknown = any(file.state == "growing" for file in group.files)
                return None if unknown and time.time_ns() - self._since_ns < FIRST_NS else ready[0]
            same = [file for file in ready if file.name == self.file.name]
            if same:
                return same[0]
            if listing.group_of(self.file.name) is group and not self._is_blank:
                return None
            later = [file for file in ready if file.seen.modified_ns > self.file.seen.modified_ns]
            return next((file for file in later if file.says.rank == self.rank), later[0] if later else None)
        return None

    @property
    def _is_blank(self) -> bool:
        """Whether the file that is shown has nothing in it."""
        trace = self.trace
        return trace is not None and not trace.iterations

    @property
    def rank(self) -> int | None:
        """The rank that is shown."""
        return self.look.trace.processes[self.look.process].rank if self.look is not None else None

    def want(self, file: TraceFile, rank: int | None = None) -> None:
        """Show this file as soon as it is loaded; of several ranks in it this one."""
        self._wanted, self._wanted_rank, self._trouble = file, rank, ""
        self._seen.add((file.name, file.revision))
        trace = self.feed.trace(file)
        if trace is not None:
            self._show(file, trace)
        else:
            self.feed.load(file).add_done_callback(lambda task: self._arrive())

    def _show(self, file: TraceFile, trace: Trace) -> None:
        self._wanted, self.file = None, file
        ranks = [process.rank for process in trace.processes]
        self._process = ranks.index(self._wanted_rank) if self._wanted_rank in ranks else 0
        self.go_to(self._number)
        if not trace.iterations:
            said = [finding.text for finding in trace.findings]
            self._trouble = f"{file.name}: {'; '.join(said) or 'no spans'}."
            self.look = None

    def _give_up(self, listing: FolderTraces) -> None:
        """What was asked for did not come: say why, unless it was cancelled."""
        wanted, self._wanted = self._wanted, None
        now = next((file for file in listing.files if wanted is not None and file.name == wanted.name), None)
        if now is not None and now.state == "failed":
            self._trouble = now.text
        else:
            self.touched = True

    def go_to(self, number: int) -> None:
        """Show the iteration of that number, or the nearest that there is."""
        trace = self.trace
        if trace is not None:
            numbers = [it.number for it in trace.iterations if it.process == self._process]
            self._number = min(numbers, key=lambda one: abs(one - number), default=0)

    def step_iteration(self, by: int) -> None:
        """The next iteration of the rank, or the one before."""
        self.go_to(self._number + by)

    def step_rank(self, by: int) -> None:
        """The next rank of the run, in this file or another, or the one before; after the last comes the first."""
        group = self.group
        if group is None or self.file is None:
            return
        choices: list[tuple[TraceFile, int]] = []
        for file in group.files:
            loaded = self.feed.trace(file)
            processes = len(loaded.processes) if loaded is not None else 1
            choices += [(file, process) for process in range(processes) if file.is_ready]
        places = [(file.name, process) for file, process in choices]
        here = (self.file.name, self._process)
        if here not in places:
            return
        file, process = choices[(places.index(here) + by) % len(choices)]
        if file.name == self.file.name:
            self._process = process
            self.go_to(self._number)
        else:
            self.want(file)

    def settled(self, state: TraceState) -> TraceState:
        """Take in the look that was asked for, if it has been worked out; the same choices on it."""
        trace = self.trace
        if trace is None or not trace.iterations:
            return state
        where = (trace.path, self.file.revision if self.file else 0, self._process, self._number)
        look = self._parts.get(("look", *where), partial(look_at, trace, self._process, self._number))
        if look is not None and look is not self.look:
            state = carried(self.look, look, state)
            self.look = look
        return state

    def here(self, state: TraceState) -> Here:
        """All that there is to show."""
        listing, look, news, group = self.feed.listing, self.look, self.news, self.group
        is_needed = look is not None and (state.below == "warps" or by_threads(look))
        return Here(
            groups=tuple(_group(one) for one in listing.groups),
            aside=len(listing.aside),
            folder=str(self.feed.path),
            mode=self.feed.mode,
            file=_file(self.file) if self.file is not None else None,
            ranks=group.text if group is not None else "",
            look=look,
            warps=self._warps() if is_needed else None,
            threads=self.threads() if state.below == "threads" else None,
            loading=self.feed.loading,
            news=_file(news) if news is not None else None,
            trouble=self._trouble,
            now_s=time.time(),
        )

    def _warps(self) -> Warps | None:
        look = self.look
        assert look is not None, "warps are of a look"
        where = (look.trace.path, look.process, look.number, id(look.trace))
        return self._parts.get(("warps", *where), partial(Warps, look.trace, look.process, look.number))

    def threads(self) -> Figures | None:
        """The table of warps; None while it is being added up."""
        look = self.look
        if look is None:
            return None
        where = (look.trace.path, look.process, look.number, id(look.trace))

        def add_up() -> Figures:
            return thread_figures(look.trace, thread_table(look.trace, look.process, look.number))

        return self._parts.get(("threads", *where), add_up)

    def _fail(self, text: str) -> None:
        self._trouble = text

    def _arrive(self) -> None:
        self._arrived += 1
        self._ready()


def _file(file: TraceFile) -> FileRow:
    ranks = file.ranks or (() if file.says.rank is None else (file.says.rank,))
    return FileRow(
        file.name,
        spelled(ranks),
        file.state,
        file.seen.size_bytes,
        file.seen.modified_ns / 1e9,
        file.revision,
        file.text,
        file.is_ready,
    )


def _group(group: TraceGroup) -> GroupRow:
    return GroupRow(group.title, group.text, tuple(_file(file) for file in group.files))
