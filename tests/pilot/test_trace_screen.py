"""The Trace screen with keys pressed: real files in real folders, read by the real loader."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from msgspec.structs import replace as changed
from textual import events
from textual.pilot import Pilot

from morimon.model.events import RecordEvent
from morimon.trace.model import Trace, TraceError
from morimon.tui import trace_feed, trace_session
from morimon.tui.options import Options
from morimon.tui.screens.trace import TraceScreen
from morimon.tui.source import NoRun, Source
from morimon.views.trace_scale import Window
from tests.support.records import Plan, make_record
from tests.support.synth_trace import Grid, write
from tests.support.traces import DATA, span
from tests.support.viewer import CountingApp, FedSource, screen_text, viewer

PATIENCE_S = 20.0


@dataclass
class Watched:
    """The app on a folder."""

    app: CountingApp
    pilot: Pilot[int]

    @property
    def screen(self) -> TraceScreen:
        assert isinstance(self.app.screen, TraceScreen), self.app.screen
        return self.app.screen

    @property
    def text(self) -> str:
        return screen_text(self.app)

    @property
    def window(self) -> Window:
        look = self.screen.look
        assert look is not None
        return self.screen.state.window or look.limits

    @property
    def chosen(self) -> str:
        look = self.screen.look
        assert look is not None
        code = look.slot_of(self.screen.state.slot)
        assert code is not None
        return look.trace.slots[code].short

    def view_row(self) -> str:
        """The row under the cursor."""
        cursor = self.screen.view.page.cursor
        assert cursor is not None
        return self.screen.view.row_text(cursor)

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        """Let the app work until something holds."""
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, f"not in time: {what}\n{self.text}"
            await asyncio.sleep(0.01)
            self.app.tick()
        await self.pilot.pause()

    async def until_text(self, text: str) -> str:
        await self.until(lambda: text in self.text, text)
        return self.text

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()


@asynccontextmanager
async def watching(
    folder: Path,
    size: tuple[int, int] = (120, 40),
    source: Source | None = None,
    options: Options | None = None,
) -> AsyncIterator[Watched]:
    options = options or Options(theme="dark", refresh_hz=0.01)
    options = replace(options, start_screen="trace", settle_s=0.2)
    mode = "live" if source is not None else "watch"
    async with viewer(source or NoRun(), size, mode=mode, folder=folder, options=options) as (app, pilot):  # type: ignore[arg-type]
        yield Watched(app, pilot)


def trace_file(
    folder: Path, rank: int, kernel: str = "v1", *, stamp: str = "0821_170932", warps: int = 48
) -> Path:
    path = folder / f"trace_rank_{rank}_{stamp}.json"
    write(str(path), kernel, Grid(warps, warps // 8 * 5 // 6), 3, rank)
    return path


def aged(path: Path, seconds: int) -> Path:
    """The file as if it had been written so long ago."""
    at = time.time() - seconds
    os.utime(path, (at, at))
    return path


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    for rank in (0, 1, 3):
        aged(trace_file(tmp_path, rank), 100 - rank)
    return tmp_path


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)], ids=str)
async def test_watching_a_folder_shows_its_newest_run_by_itself(ranks: Path, size: tuple[int, int]) -> None:
    aged(trace_file(ranks, 0, "async_ll", stamp="0821_120000"), 9000)
    async with watching(ranks, size) as it:
        text = await it.until_text("dispatch_intra")
        assert "rank 0 · v1" in text
        assert "3 of 4 ranks, missing 2" in text
        assert "inotify" in text
        assert "2 Trace" in text
        assert "Ranks" not in text, "there is no run to show"
        await it.press("1")
        assert isinstance(it.app.screen, TraceScreen)


async def test_polling_is_said_in_the_status_line(ranks: Path) -> None:
    async with watching(ranks, options=Options(theme="dark", refresh_hz=0.01, polling=True)) as it:
        await it.until_text("polling every 1 s")


async def test_rows_and_lanes_are_chosen_together(ranks: Path) -> None:
    async with watching(ranks) as it:
        await it.until_text("dispatch_intra")
        assert it.chosen == "staging"
        assert "0.00 to" in it.text
        await it.press("down")
        assert it.chosen in ("disp_send", "disp_intra")
        await it.press("end")
        assert it.chosen == "comb_all"
        assert "ep_combine_all" in it.view_row()
        line = next(at for at, text in enumerate(it.text.splitlines()) if "comb_inter " in text)
        column = it.text.splitlines()[line].index("comb_inter ")
        await it.pilot.click(offset=(column + 2, line))
        await it.pilot.pause()
        assert it.chosen == "comb_inter"
        assert "combine_inter_node" in it.view_row()


async def test_zoom_pan_and_fit(ranks: Path) -> None:
    async with watching(ranks) as it:
        await it.until_text("dispatch_intra")
        whole = it.window
        await it.press("end", "plus", "plus")
        assert it.window.length_ns == pytest.approx(whole.length_ns / 4, rel=0.01)
        assert "zoom 4.0×" in it.text
        look = it.screen.look
        assert look is not None
        bar = look.bars[look.slot_of(it.screen.state.slot) or 0]
        assert it.window.start_ns <= bar.start_ns <= it.window.end_ns, "the chosen slot stays in sight"
        before = it.window
        await it.press("left")
        assert it.window.start_ns < before.start_ns
        await it.press("right")
        assert it.window == before
        await it.press("z")
        assert it.window.length_ns < 2 * (bar.end_ns - bar.start_ns)
        await it.press("0")
        assert it.window == whole
        await it.press("minus")
        assert it.window == whole, "there is nothing beyond the iteration"


async def test_the_mouse_zooms_where_it_points_and_drags_the_time(ranks: Path) -> None:
    async with watching(ranks) as it:
        await it.until_text("dispatch_intra")
        whole = it.window
        view = it.screen.view
        at = (60, 6)
        await it.pilot.hover(offset=at)
        for _ in range(4):
            view.post_message(events.MouseScrollUp(view, *at, 0, -1, 0, False, False, False))
            await it.pilot.pause()
        zoomed = it.window
        assert zoomed.length_ns < whole.length_ns / 2
        share = (60 - 9) / 110
        assert (
            whole.start_ns + share * whole.length_ns - zoomed.start_ns
        ) / zoomed.length_ns == pytest.approx(share, abs=0.03)
        await it.pilot.mouse_down(offset=at)
        await it.pilot.hover(offset=(80, 6))
        await it.pilot.mouse_up(offset=(80, 6))
        await it.pilot.pause()
        assert zoomed.start_ns - it.window.start_ns == pytest.approx(20 / 110 * zoomed.length_ns, rel=0.1)
        assert it.window.length_ns == zoomed.length_ns


async def test_iterations_and_ranks_keep_what_was_chosen(ranks: Path) -> None:
    async with watching(ranks) as it:
        await it.until_text("dispatch_intra")
        await it.press("end", "right_square_bracket")
        await it.until_text("iteration 2/3")
        assert it.chosen == "comb_all"
        await it.press("left_square_bracket", "left_square_bracket")
        await it.until_text("iteration 1/3")
        await it.press("r")
        await it.until_text("rank 1 · v1")
        assert it.chosen == "comb_all"
        await it.press("r")
        await it.until_text("rank 3 · v1")
        await it.press("r")
        await it.until_text("rank 0 · v1")
        await it.press("R")
        await it.until_text("rank 3 · v1")


async def test_ranks_of_one_file_are_switched_inside_it(tmp_path: Path) -> None:
    shutil.copy(DATA / "traces" / "h200_ep8_emulated.json.gz", tmp_path)
    async with watching(tmp_path) as it:
        text = await it.until_text("DispatchCopy")
        assert "rank 0" in text
        assert "8 ranks" in text
        for rank in (1, 2, 3):
            await it.press("r")
            await it.until_text(f"rank {rank} ·")
        await it.press("R", "R", "R", "R")
        await it.until_text("rank 7 ·")


async def test_a_slot_opens_into_its_warps_and_closes_again(ranks: Path) -> None:
    async with watching(ranks) as it:
        await it.until_text("dispatch_intra")
        whole = it.window
        await it.press("end", "up", "enter")
        text = await it.until_text("the last to leave it on top")
        assert f"warps of {it.screen.look.trace.slots[it.screen.state.slot].name}" in text  # type: ignore[union-attr,index]
        assert it.window.length_ns < whole.length_ns, "the slot fills the width"
        assert "the last to leave" in text.splitlines()[-2]
        await it.press("down", "down")
        assert "before the last warp" in it.text
        measured = it.text.splitlines()[-2]
        await it.press("b")
        assert it.text.splitlines()[-2] != measured, "the span before"
        await it.press("w")
        assert it.text.splitlines()[-2] == measured
        await it.press("G")
        assert it.view_row().startswith(" warp")
        await it.press("escape")
        await it.until_text("slots · µs")
        assert it.window == whole


async def test_warps_have_a_table_that_is_sorted_and_filtered(ranks: Path) -> None:
    async with watching(ranks) as it:
        await it.until_text("dispatch_intra")
        await it.press("t")
        await it.until_text("warps · µs · this iteration")
        assert "▼total" in it.text
        await it.press("s")
        assert "▼× median" in it.text
        await it.press("o")
        assert "▲× median" in it.text
        await it.press("slash", *"0-3", "enter")
        assert "4 of 48: 0-3" in it.text
        await it.press("enter")
        await it.until_text("the last to leave it on top")
        await it.press("escape", "t", "escape")
        assert "of 48" not in it.text
        await it.press("t")
        await it.until_text("slots · µs")
        await it.press("slash", *"rdma", "enter")
        assert "of 11: rdma" in it.text
        assert "ep_combine_all" not in it.text.partition("slots ·")[2]
        await it.press("escape", "a")
        assert "all iterations" in it.text


async def test_a_new_file_is_shown_by_itself_only_while_nobody_has_done_anything(ranks: Path) -> None:
    async with watching(ranks) as it:
        await it.until_text("rank 0 · v1")
        trace_file(ranks, 5, "v1_ll", stamp="0821_180000")
        await it.until_text("rank 5 · v1_ll")
        await it.press("down")
        trace_file(ranks, 2, "v1_ll", stamp="0821_180002")
        text = await it.until_text("▲ new: rank 2")
        assert "rank 5 · v1_ll" in text
        await it.press("n")
        await it.until_text("rank 2 · v1_ll")
        assert "▲ new" not in it.text
        trace_file(ranks, 4, "async_ll", stamp="0821_190000")
        await it.until_text("rank 4 · async_ll")


async def test_a_file_that_is_replaced_is_shown_anew(ranks: Path) -> None:
    async with watching(ranks) as it:
        await it.until_text("rank 0 · v1 · 48 warps")
        trace_file(ranks, 0, "v1", warps=96)
        await it.until_text("rank 0 · v1 · 96 warps")


async def test_the_picker_lists_runs_and_opens_files(ranks: Path) -> None:
    aged(trace_file(ranks, 0, "async_ll", stamp="0821_120000"), 9000)
    (ranks / "package.json").write_text('{"name": "no trace"}')
    (ranks / "trace_rank_7_0821_170933.json").write_text("[" + ",".join(["x"] * 9))
    async with watching(ranks) as it:
        await it.until_text("rank 0 · v1")
        await it.press("f")
        text = await it.until_text("set aside: no traces")
        assert "2 runs" in text
        assert "3 of 4 ranks, missing 2" in text
        await it.press("G", "enter")
        await it.until_text("rank 0 · async_ll")
        await it.press("f", "g", "enter")
        await it.until_text("rank 0 · v1")


async def test_a_file_that_cannot_be_shown_says_why_and_leaves_the_rest(ranks: Path) -> None:
    async with watching(ranks) as it:
        await it.until_text("rank 0 · v1")
        (ranks / "trace_rank_1_0821_170932.json").write_text('{"traceEvents": [1, 2, 3]}')
        await it.until_text("▲ new: rank 1")
        await it.press("n")
        text = await it.until_text("✗ trace_rank_1_0821_170932.json: damaged at line 1, column 18")
        assert "3 traces in 1 run" in text, "the list of files stands where the lanes were"
        await it.press("f", "G", "enter")
        await it.until_text("rank 3 · v1")


class SlowLoader:
    """Loads when it is told to; counts what was cancelled."""

    def __init__(self, result: Trace | TraceError) -> None:
        self.result = result
        self.started = asyncio.Event()
        self.go = asyncio.Event()
        self.cancelled = 0

    async def __call__(self, path: Path, progress: Callable[[int, int], None]) -> Trace:
        progress(45 << 20, 90 << 20)
        self.started.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(self.result, TraceError):
            raise self.result
        return self.result


async def test_keys_answer_while_a_file_loads_and_loading_can_be_given_up(
    ranks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watching(ranks) as it:
        await it.until_text("rank 0 · v1")
        trace = it.screen.session.trace  # type: ignore[union-attr]
        assert trace is not None
        slow = SlowLoader(trace)
        monkeypatch.setattr(trace_feed, "load_trace", slow)
        await it.press("r")
        text = await it.until_text("50 %  45.0 MiB of 90.0 MiB  x cancel")
        assert "loading trace_rank_1_0821_170932.json" in text
        assert "rank 0 · v1" in text, "what was shown stays"
        await it.press("end", "plus", "t")
        assert "warps · µs" in it.text
        await it.press("x")
        await it.until(lambda: slow.cancelled == 1, "the loader is told")
        assert "loading" not in it.text
        assert "rank 0 · v1" in it.text
        await it.press("r")
        await it.until_text("loading")
        slow.go.set()
        await it.until(lambda: it.screen.session.file.says.rank == 1, "shown after all")  # type: ignore[union-attr]


async def test_a_load_that_fails_is_a_sentence(ranks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching(ranks) as it:
        await it.until_text("rank 0 · v1")
        slow = SlowLoader(TraceError("trace_rank_1: loading it was ended for want of memory; free some."))
        slow.go.set()
        monkeypatch.setattr(trace_feed, "load_trace", slow)
        await it.press("r")
        await it.until_text("✗ trace_rank_1: loading it was ended for want of memory; free some.")
        assert "rank 0 · v1" in it.text


async def test_nothing_is_painted_while_nothing_happens(ranks: Path) -> None:
    async with watching(ranks) as it:
        await it.until_text("dispatch_intra")
        await it.until(lambda: it.screen.session.feed.loading is None, "all loaded")  # type: ignore[union-attr]
        before = it.app.paints
        for _ in range(20):
            it.app.tick()
            await it.pilot.pause()
        assert it.app.paints == before


async def test_a_run_shows_the_traces_of_the_jobs_working_directory(ranks: Path) -> None:
    plan = Plan(ranks=4, rounds=3)
    started: list[RecordEvent] = [replace_cwd(event, str(ranks)) for event in make_record(plan).events]
    async with watching(Path(), source=FedSource(started)) as it:
        text = await it.until_text("dispatch_intra")
        assert "3 of 4 ranks, missing 2" in text
        assert "finished" in text or "running" in text, "the state of the run stays on top"
        assert "1 Ranks" in text


def replace_cwd(event: RecordEvent, cwd: str) -> RecordEvent:
    return changed(event, cwd=cwd) if hasattr(event, "cwd") else event


async def test_pictures_and_merged_files_are_written(
    ranks: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.mktemp("out")
    drawn: list[str] = []

    def draw(trace: Trace) -> str:
        drawn.append(trace.path)
        return "wrote x.png"

    options = Options(theme="dark", refresh_hz=0.01, export_dir=out, draw_trace=draw)
    async with watching(ranks, options=options) as it:
        await it.until_text("rank 0 · v1")
        await it.press("p")
        await it.until(lambda: bool(drawn), "drawn")
        await it.press("m")
        await it.until(lambda: bool(list(out.glob("merged_trace_0821_170932.json"))), "merged")
        await it.press("e", "c")
        await it.until(lambda: bool(list(out.glob("morimon-trace-*.csv"))), "exported")
        text = next(out.glob("*.csv")).read_text()
        assert text.startswith("slot,role,start,wall,working,idle,mean")
        assert "combine_inter_node,rdma," in text


async def test_a_file_merged_into_the_watched_folder_is_no_news(ranks: Path) -> None:
    options = Options(theme="dark", refresh_hz=0.01, export_dir=ranks)
    async with watching(ranks, options=options) as it:
        await it.until_text("rank 0 · v1")
        await it.press("m")
        await it.until(lambda: bool(list(ranks.glob("merged_*.json"))), "merged")
        await it.press("f")
        await it.until_text("merged_trace")
        session = it.screen.session
        assert session is not None
        merged = "merged_trace_0821_170932.json"
        await it.until(
            lambda: any(f.name == merged and f.is_ready for f in session.feed.listing.files), "ready"
        )
        assert session.news is None
        await it.press("home", "down", "enter")
        await it.until(lambda: session.file is not None and session.file.name == merged, "shown")
        await it.press("f")
        text = await it.until_text("written")
        assert any(merged in line and "0, 1, 3" in line for line in text.splitlines())


async def test_a_trace_without_spans_and_one_of_zero_length_are_shown_as_sentences(tmp_path: Path) -> None:
    (tmp_path / "trace_rank_0_0821_170932.json").write_text(json.dumps({"traceEvents": []}))
    async with watching(tmp_path) as it:
        await it.until_text("no events with a duration")
        (tmp_path / "trace_rank_1_0821_170933.json").write_text(
            json.dumps({"traceEvents": span("one", 5, 5)})
        )
        await it.until(lambda: "1/1" in it.text or "rank 1" in it.text, "the other")
        await it.press("f", "G", "enter")
        await it.until_text("iteration 1/1")
        await it.press("plus", "minus", "enter", "escape", "t")


async def test_want_of_memory_is_a_sentence_and_asked_for_once(
    ranks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    def greedy(*arguments: object) -> None:
        nonlocal asked
        asked += 1
        raise MemoryError

    monkeypatch.setattr(trace_session, "thread_table", greedy)
    async with watching(ranks) as it:
        await it.until_text("dispatch_intra")
        await it.press("t")
        await it.until_text("✗ There is not enough memory to work this out of the trace")
        for _ in range(5):
            it.app.tick()
            await it.pilot.pause()
        assert asked == 1
        await it.press("t")
        await it.until_text("slots · µs")


async def test_a_working_directory_that_is_not_here_is_a_sentence() -> None:
    events_here = [
        replace_cwd(event, "/no/such/folder") for event in make_record(Plan(ranks=2, rounds=2)).events
    ]
    async with watching(Path(), source=FedSource(events_here)) as it:
        await it.until_text("/no/such/folder cannot be read: No such file or directory")
