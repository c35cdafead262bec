"""Taking a trace out of the screen: a picture of it, or all ranks of its run in one file."""

from __future__ import annotations

import asyncio
from pathlib import Path

from morimon.feeds.traces import TraceFile
from morimon.trace.merge import write_merged
from morimon.trace.model import Trace, TraceError
from morimon.tui.screens.trace_base import TraceBase


class TraceTaking(TraceBase):
    """Actions that write files."""

    def action_picture(self) -> None:
        """Draw the trace into a picture."""
        draw, trace = self.owner.options.draw_trace, self.session.trace if self.session is not None else None
        if draw is None:
            self.owner.say("This viewer cannot draw pictures; `morimon trace --png FILE` can.", "warning")
        elif trace is not None:
            self.owner.say("drawing …")
            self.run_worker(self._draw(trace), exit_on_error=True)

    async def _draw(self, trace: Trace) -> None:
        draw = self.owner.options.draw_trace
        assert draw is not None, "the caller has looked"
        self.owner.say(await asyncio.to_thread(draw, trace))

    def action_merge(self) -> None:
        """Write all ranks of the run into one file."""
        group = self.session.group if self.session is not None else None
        if group is not None:
            self.run_worker(self._merge(group.title, [file for file in group.files if file.is_ready]))

    async def _merge(self, title: str, files: list[TraceFile]) -> None:
        assert self.session is not None, "the caller has looked"
        feed, traces = self.session.feed, []
        for file in files:
            trace = feed.trace(file)
            if trace is None:
                try:
                    trace = await feed.load(file)
                except asyncio.CancelledError:
                    self.owner.say("merging was given up", "warning")
                    return
            if trace is None:
                self.owner.say(f"{file.name} cannot be loaded: nothing is merged", "error")
                return
            traces.append(trace)
        folder = self.owner.options.export_dir or Path.cwd()
        path = _free(folder, f"merged_{'_'.join(title.split())}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.session.writes(path)
            alignment = await asyncio.to_thread(write_merged, traces, path)
        except (TraceError, OSError) as error:
            self.owner.say(f"could not merge: {error}", "error")
            return
        self.owner.say(f"wrote {path}: {len(alignment.processes)} ranks, {alignment.text}")


def _free(folder: Path, stem: str) -> Path:
    """A name that is not taken."""
    stem = "".join(char if char.isalnum() or char in "-_." else "_" for char in stem)
    names = (f"{stem}{'' if at == 1 else f'-{at}'}.json" for at in range(1, 10_000))
    return next(path for path in (folder / name for name in names) if not path.exists())
