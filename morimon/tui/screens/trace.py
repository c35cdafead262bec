"""The Trace screen: lanes of an iteration, its slots and warps, and the files that hold them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from textual.app import ComposeResult

from morimon.draw.line import Line, Run
from morimon.draw.page import Frame, Page
from morimon.draw.sheet import Sheet
from morimon.draw.text import sanitised
from morimon.tui.bindings import bindings_of
from morimon.tui.screens.trace_taking import TraceTaking
from morimon.tui.screens.trace_time import TraceTime
from morimon.tui.screens.trace_view import TraceView
from morimon.tui.trace_session import TraceSession
from morimon.views.trace import LEGEND, build
from morimon.views.trace_figures import FigureFilterError, Figures
from morimon.views.trace_files import entries
from morimon.views.trace_look import Here, Look, Sorting, TraceState
from morimon.views.trace_tables import sorts_of, table_rows
from morimon.views.trace_warps import Warps


class TraceScreen(TraceTime, TraceTaking):
    """Where inside the kernels the time went."""

    NAME = "trace"
    LEGEND = LEGEND
    FILTER_HINT = "inter   rdma   mean>50   share>=10   among warps also 0-63,128   outlier"
    BINDINGS = bindings_of("view", "trace")

    def __init__(self) -> None:
        super().__init__()
        self.state = TraceState()
        self.session: TraceSession | None = None

    def compose(self) -> ComposeResult:
        """One widget, with a time axis."""
        yield TraceView(self.owner.palette)

    def on_unmount(self) -> None:
        """Stop looking."""
        if self.session is not None:
            self.session.close()

    # What is shown.

    def _begin(self) -> TraceSession | None:
        """Follow the watched folder, or the job's working directory once it is known."""
        if self.session is None and (path := self._path()) is not None:
            options = self.owner.options
            self.session = TraceSession(path, self._ready, polling=options.polling, settle_s=options.settle_s)
        return self.session

    def _path(self) -> Path | None:
        mode, cwd = self.owner.viewing.mode, self.owner.snapshot.cwd
        if mode == "watch":
            return self.owner.folder
        return Path(cwd) if cwd and mode != "replay" else None

    def tick(self) -> None:
        """Take what is new, then repaint where something changed."""
        if (session := self._begin()) is not None:
            session.follow(paused=self.owner.viewing.paused)
        super().tick()

    def _ready(self) -> None:
        if self.is_attached and self.is_current:
            self.tick()

    def version(self) -> object:
        """The session's, and in a run the run's."""
        viewing = self.owner.viewing
        run = viewing if viewing.mode == "watch" else super().version()
        return run, self.session.version if self.session is not None else None

    def status(self, frame: Frame) -> tuple[Line, ...]:
        """The run's state; of a watched folder what is followed and how."""
        viewing = self.owner.viewing
        if viewing.mode != "watch":
            return super().status(frame)
        mode = self.session.feed.mode if self.session is not None else ""
        paused = f"  {frame.glyphs.paused} paused" if viewing.paused else ""
        where = Run(f" watching {sanitised(str(self.owner.folder))}", "title")
        return ((where, Run(f"  {frame.glyphs.dot} {mode}", "dim"), Run(paused, "warning")),)

    def page(self, frame: Frame) -> Page:
        """The view's page."""
        view = self.view
        if isinstance(view, TraceView):
            view.whole = self.state.below == "warps"
        session = self.session
        if session is None:
            return build(Here(), self.state, frame)
        self.state = session.settled(self.state)
        here = session.here(self.state)
        if self.owner.viewing.mode == "watch":
            here = replace(here, mode="")
        return build(here, self.state, frame)

    def sheet(self) -> Sheet | None:
        """The visible table with all its figures."""
        found = self._table()
        if found is None:
            return None
        figures, rows = found
        return figures.sheet("thread" if self.state.below == "threads" else "slot", rows)

    def _table(self) -> tuple[Figures, NDArray[np.int64]] | None:
        """The table in sight and its rows in order."""
        look = self.look
        if look is None or self.session is None or self.state.below not in ("slots", "threads"):
            return None
        threads = self.session.threads() if self.state.below == "threads" else None
        return table_rows(look, threads, self.state)

    # Rows.

    def move_cursor(self, row: int) -> None:
        """Choose the slot, warp or file of this row."""
        found = self._table()
        if found is not None and self.state.below == "slots" and row < len(found[1]):
            self.choose(row=row, slot=int(found[0].code[found[1][row]]))
        else:
            self.choose(row=row, span=None)

    def action_select_slot(self, code: int) -> None:
        """Choose a slot by its bar."""
        found = self._table()
        rows = found[1].tolist() if found is not None and self.state.below == "slots" else []
        row = next((at for at, one in enumerate(rows) if found and int(found[0].code[one]) == code), 0)
        self.choose(slot=code, row=row if rows else self.state.row)

    def action_open_row(self) -> None:
        """A slot's or warp's warps; a file of the list."""
        if self.state.below == "files" or self.look is None:
            self._open_file()
        elif self.state.below == "slots":
            self.open_warps(self.look)
        elif self.state.below == "threads":
            self._open_thread(self.look)

    def _open_thread(self, look: Look) -> None:
        """The warps of the chosen slot with this one under the cursor, if it logs the slot."""
        found, slot = self._table(), look.slot_of(self.state.slot)
        if found is None or slot is None or not len(found[1]):
            return
        thread = int(found[0].code[found[1][min(self.state.row, len(found[1]) - 1)]])
        warps = Warps(look.trace, look.process, look.number)
        rows = warps.of_slot(slot)
        self.open_warps(look, next(iter(np.flatnonzero(warps.thread[rows] == thread).tolist()), 0))

    def _open_file(self) -> None:
        session = self.session
        if session is None:
            return
        rows = entries(session.here(self.state).groups)
        if not rows:
            return
        group, row = rows[min(self.state.row, len(rows) - 1)]
        row = row or next((file for file in group.files if file.is_ready), None)
        file = next((one for one in session.feed.listing.files if row and one.name == row.name), None)
        if file is None or not file.is_ready:
            self.owner.say(
                "There is nothing to show in this file yet." if row is None or not row.text else row.text
            )
            return
        session.want(file)
        self.choose(below="slots", row=0)

    def action_threads(self) -> None:
        """A row a warp, or a row a slot."""
        self.choose(below="slots" if self.state.below == "threads" else "threads", row=0)

    def action_files(self) -> None:
        """The files of the folder, the one that is shown under the cursor."""
        session = self.session
        if session is None:
            return
        if self.state.below == "files":
            self.choose(below="slots", row=0)
            return
        rows = entries(session.here(self.state).groups)
        name = session.file.name if session.file is not None else ""
        row = next((at for at, (_, file) in enumerate(rows) if file is not None and file.name == name), 0)
        self.choose(below="files", row=row)

    def action_back(self) -> None:
        """Clear the filter; else close what stands instead of the lanes; else show the whole iteration."""
        if self.filter_text():
            super().action_back()
        elif self.state.below == "warps":
            self.choose(below="slots", window=None, row=0, span=None)
        elif self.state.below != "slots":
            self.choose(below="slots", row=0)
        else:
            self.choose(window=None)

    # Which trace.

    def action_iteration(self, by: int) -> None:
        """The next iteration, or the one before."""
        self._step(lambda session: session.step_iteration(by))

    def action_rank(self, by: int) -> None:
        """The next rank, or the one before."""
        self._step(lambda session: session.step_rank(by))

    def _step(self, step: Callable[[TraceSession], None]) -> None:
        if self.session is not None:
            self.touch()
            step(self.session)
            self.repaint()

    def action_newest(self) -> None:
        """The newest trace, and the newest run from now on."""
        session = self.session
        if session is None:
            return
        news = session.news
        if news is not None:
            session.want(news)
        session.touched = False
        self.state = replace(self.state, below="slots", row=0)
        self.tick()
        self.repaint()

    def action_cancel_loading(self) -> None:
        """Give up what is being loaded."""
        if self.session is not None and self.session.feed.loading is not None:
            self.touch()
            self.session.feed.cancel()
            self.tick()

    # Order and filter.

    def action_every(self) -> None:
        """Figures of all iterations, or of this one."""
        self.choose(every=not self.state.every)

    def action_sort(self, key: str) -> None:
        """Sort by a column; again, and the order turns round."""
        self._sort(self.state.sorting.by(key))

    def action_sort_next(self, by: int) -> None:
        """Sort by the next column; figures begin with the largest."""
        found = self._table()
        if found is not None:
            keys = sorts_of(found[0], of_threads=self.state.below == "threads")
            at = keys.index(self.state.sorting.key) if self.state.sorting.key in keys else 0
            key = keys[(at + by) % len(keys)]
            self._sort(Sorting(key, descending=key not in ("start", "name")))

    def action_reverse(self) -> None:
        """Turn the order round."""
        sorting = self.state.sorting
        self._sort(Sorting(sorting.key, not sorting.descending))

    def _sort(self, sorting: Sorting) -> None:
        if self.state.below == "threads":
            self.choose(sort_threads=sorting)
        else:
            self.choose(sort_slots=sorting)

    def filter_text(self) -> str:
        """The filter in force, as it was typed."""
        return self.state.filter.text if self.state.below in ("slots", "threads") else ""

    def set_filter(self, text: str) -> str | None:
        """Keep only rows that the filter keeps."""
        found = self._table()
        if found is None:
            return None
        try:
            self.state = self.state.with_filter(found[0].parse(text))
        except FigureFilterError as error:
            return str(error)
        return None
