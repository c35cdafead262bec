"""The app with keys pressed: what is in sight, what is painted, and that nothing is painted for nothing."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from textual.command import CommandPalette
from textual.events import Key
from textual.pilot import Pilot

from morimon.draw.glyphs import ASCII, UNICODE, Glyphs
from morimon.draw.line import Run
from morimon.draw.page import Lines, Page
from morimon.model.events import RecordEvent
from morimon.tui.options import Options
from morimon.tui.screens import SCREENS
from morimon.tui.screens.dialogs import ChoiceDialog
from morimon.tui.screens.help import HelpScreen
from morimon.tui.source import LiveSource, ReplaySource
from morimon.tui.widgets.lines import LinesView
from morimon.tui.widgets.prompt import Prompt
from tests.support.records import START_UNIX_NS, Plan, make_record
from tests.support.viewer import (
    CountingApp,
    FedSource,
    RenderCount,
    data_screen,
    full_paint,
    screen_text,
    viewer,
)

SIZES = [(80, 24), (120, 40), (200, 50)]
# One round of 8 ranks changes every row of the table; the graph follows once a second.
BYTES_A_ROUND = {(80, 24): 6_500, (120, 40): 8_500, (200, 50): 14_000}


def events_of(plan: Plan) -> list[RecordEvent]:
    return make_record(plan).events


def running(ranks: int = 8, rounds: int = 20) -> FedSource:
    return FedSource(events_of(Plan(ranks=ranks, rounds=rounds, ends=False, tokens=4096, hidden=7168)))


def split_at_round(plan: Plan, number: int) -> tuple[list[RecordEvent], list[RecordEvent]]:
    events = events_of(plan)
    at = next(i for i, event in enumerate(events) if getattr(event, "round", -99) == number)
    return events[:at], events[at:]


async def typed(pilot: Pilot[int], text: str) -> None:
    await pilot.press(*("space" if char == " " else char for char in text))


@pytest.mark.parametrize("size", SIZES)
async def test_the_screens_answer_at_every_size(size: tuple[int, int]) -> None:
    async with viewer(running(), size) as (app, pilot):
        assert "rank 3 is late" in screen_text(app)
        assert "◀ late" in screen_text(app)
        await pilot.press("5")
        assert "CPU %" in screen_text(app)
        await pilot.press("6")
        assert "all ranks · all levels" in screen_text(app)
        for line in screen_text(app).splitlines():
            assert len(line) <= size[0]


async def test_a_screen_too_small_says_so_and_comes_back() -> None:
    async with viewer(running(), (80, 24)) as (app, pilot):
        for size in ((20, 5), (59, 24), (80, 14), (1, 1)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert "rank" not in screen_text(app)
        await pilot.resize_terminal(40, 5)
        await pilot.pause()
        assert "morimon needs 60×15 cells; here are 40×5" in screen_text(app).replace("\n", "")
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert "rank 3 is late" in screen_text(app)


async def test_nothing_is_painted_where_nothing_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with viewer(FedSource(events_of(Plan(rounds=20)))) as (app, pilot):
        await pilot.pause()
        count = RenderCount(monkeypatch)
        before = app.paints
        for _ in range(20):
            app.tick()
            await pilot.pause()
        assert app.paints == before
        assert count.lines == 0


async def test_the_clock_goes_on_where_a_job_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = START_UNIX_NS // 1_000_000_000 + 61
    monkeypatch.setattr("morimon.tui.shell.time.time_ns", lambda: now_s * 1_000_000_000)
    async with viewer(running()) as (app, pilot):
        assert screen_text(app).splitlines()[0].endswith(" 1:01")
        count = RenderCount(monkeypatch)
        now_s += 1
        app.tick()
        await pilot.pause()
        assert screen_text(app).splitlines()[0].endswith(" 1:02")
        assert count.lines == 1


@pytest.mark.parametrize("size", SIZES)
async def test_a_round_costs_few_bytes_and_rows(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    past, future = split_at_round(Plan(rounds=30, ends=False, tokens=4096, hidden=7168), 20)
    source = FedSource(past)
    async with viewer(source, size) as (app, pilot):
        await pilot.pause()
        count = RenderCount(monkeypatch)
        app.paints = app.painted_bytes = 0
        for number in range(20, 30):
            source.feed(event for event in future if getattr(event, "round", None) == number)
            app.tick()
            await pilot.pause()
        assert 0 < app.paints <= 20
        assert app.painted_bytes / 10 <= BYTES_A_ROUND[size]
        assert count.lines / 10 <= size[1]


async def test_one_changed_rank_paints_its_row_and_not_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    past, future = split_at_round(Plan(ranks=64, rounds=30, ends=False, late_rank=None), 20)
    source = FedSource(past)
    async with viewer(source, (120, 40)) as (app, pilot):
        await pilot.pause()
        count = RenderCount(monkeypatch)
        source.feed([next(event for event in future if getattr(event, "rank", None) == 1)])
        app.tick()
        await pilot.pause()
        assert 1 <= count.lines <= 3


async def test_a_hidden_screen_does_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    past, future = split_at_round(Plan(rounds=30, ends=False), 20)
    source = FedSource(past)
    async with viewer(source) as (app, pilot):
        await pilot.press("6")
        monkeypatch.setattr("morimon.tui.screens.ranks.build", lambda *_: pytest.fail("built while hidden"))
        source.feed(future)
        app.tick()
        await pilot.pause()
        monkeypatch.undo()
        await pilot.press("1")
        await pilot.pause()
        assert "29 │" in screen_text(app)


async def test_pausing_freezes_the_view_and_says_how_far_behind_it_is() -> None:
    past, future = split_at_round(Plan(rounds=200, pause_us=50_000, ends=False), 20)
    source = FedSource(past)
    async with viewer(source) as (app, pilot):
        await pilot.press("space")
        assert "‖ paused, 0:00 behind" in screen_text(app)
        source.feed(future)
        app.tick()
        await pilot.pause()
        frozen = screen_text(app)
        assert " 19 │" in frozen
        assert "199 │" not in frozen
        assert "behind" in frozen
        assert "0:00 behind" not in frozen
        await pilot.press("space")
        await pilot.pause()
        assert "199 │" in screen_text(app)
        assert "paused" not in screen_text(app)


async def test_sorting_by_key_and_by_click() -> None:
    async with viewer(running()) as (app, pilot):
        assert first_rank(app) == "0"
        await pilot.press("r")
        assert first_rank(app) == "7"
        heading = next(y for y, line in enumerate(screen_text(app).splitlines()) if "▼rank" in line)
        column = screen_text(app).splitlines()[heading].index("recv")
        await pilot.click(offset=(column + 1, heading))
        await pilot.pause()
        assert "▲recv" in screen_text(app)
        await pilot.press("s")
        assert "▲recv" not in screen_text(app)


def first_rank(app: CountingApp) -> str:
    rows = re.findall(r"^ [! ] +(\d+) ", screen_text(app), re.MULTILINE)
    return str(rows[0])


async def test_filtering_while_typing_and_a_filter_that_cannot_be_read() -> None:
    async with viewer(running()) as (app, pilot):
        await pilot.press("/")
        await typed(pilot, "2-3")
        await pilot.pause()
        assert "2 of 8 ranks: 2-3" in screen_text(app)
        await pilot.press("enter")
        await pilot.pause()
        assert not app.screen.query(Prompt)
        await pilot.press("escape")
        await pilot.pause()
        assert " of 8 ranks" not in screen_text(app)
        await pilot.press("/")
        await typed(pilot, "speed>3")
        await pilot.press("enter")
        await pilot.pause()
        assert app.screen.query(Prompt), "the prompt stays, so that the filter can be mended"
        assert [notice.severity for notice in app._notifications] == ["warning"]
        await pilot.press("escape")
        await pilot.pause()
        assert not app.screen.query(Prompt)
        assert first_rank(app) == "0"


async def test_the_cursor_moves_with_arrows_letters_mouse_and_follows_the_worst() -> None:
    async with viewer(running(ranks=64), (120, 40)) as (app, pilot):
        page = data_screen(app).view.page
        assert page.cursor == 3
        await pilot.press("j", "down", "k")
        assert data_screen(app).view.page.cursor == 4
        await pilot.press("G")
        assert data_screen(app).view.page.cursor == 63
        assert data_screen(app).view.top > 0
        await pilot.press("g")
        assert data_screen(app).view.page.cursor == 0
        await pilot.press("pagedown")
        assert data_screen(app).view.page.cursor == data_screen(app).view.body_height - 1
        await pilot.press("f")
        assert data_screen(app).view.page.cursor == 3
        y = len(data_screen(app).view.page.head)
        await pilot.click(offset=(10, y))
        assert data_screen(app).view.page.cursor == data_screen(app).view.top


async def test_enter_opens_the_log_of_the_rank(tmp_path: Path) -> None:
    record = make_record(Plan(rounds=5, ends=False))
    record.write(tmp_path)
    async with viewer(FedSource(record.events), folder=tmp_path) as (app, pilot):
        await pilot.press("down", "enter")
        await pilot.pause()
        assert "rank 4 · all levels · 1 lines · following" in screen_text(app)
        assert "   4 │  rank 4 recv" in screen_text(app)
        await pilot.press("a")
        await pilot.pause()
        assert "all ranks" in screen_text(app)
        await pilot.press("up")
        assert "staying at line" in screen_text(app)
        await pilot.press("f")
        assert "following" in screen_text(app)


async def test_searching_the_log(tmp_path: Path) -> None:
    record = make_record(Plan(rounds=30, ends=False))
    record.write(tmp_path)
    options = Options(theme="dark", refresh_hz=0.01, start_screen="log")
    async with viewer(FedSource(record.events), folder=tmp_path, options=options) as (app, pilot):
        await pilot.press("/")
        await typed(pilot, "round 7")
        await pilot.press("enter", "N")
        await pilot.pause()
        cursor = data_screen(app).view.page.cursor
        assert cursor is not None
        assert data_screen(app).view.row_text(cursor).endswith("Round 7")
        await pilot.press("n")
        await pilot.pause()
        assert any("no further line" in notice.message for notice in app._notifications)


async def test_the_ends_of_long_lines_are_a_key_away(tmp_path: Path) -> None:
    record = make_record(Plan(rounds=3, ends=False))
    record.print(record.events[-1].t_ns, 0, "BEGIN" + "x" * 10_000 + "END needle")
    record.write(tmp_path)
    options = Options(theme="dark", refresh_hz=0.01, start_screen="log")
    async with viewer(FedSource(record.events), folder=tmp_path, options=options) as (app, pilot):
        assert "/ search" in screen_text(app)
        await pilot.press("$")
        assert "END needle" in screen_text(app)
        assert "BEGIN" not in screen_text(app)
        await pilot.press("0")
        assert "BEGIN" in screen_text(app)
        await pilot.press("g", "/")
        await typed(pilot, "needle")
        await pilot.press("enter", "n")
        assert "END needle" in screen_text(app)
        await pilot.press("escape", "escape")
        assert "BEGIN" in screen_text(app)
        await pilot.press("v", "v", "down", "G", "y")
        assert "no error so far" in screen_text(app)


@pytest.mark.parametrize("key", [screen.key for screen in SCREENS])
async def test_every_screen_explains_its_words(key: str) -> None:
    async with viewer(running(), (120, 60)) as (app, pilot):
        await pilot.press(key)
        await pilot.pause()
        assert data_screen(app).LEGEND
        await pilot.press("?")
        await pilot.pause()
        assert "what is shown" in screen_text(app)


async def test_a_screen_without_a_filter_names_no_key_for_it() -> None:
    async with viewer(running(), (200, 50)) as (app, pilot):
        assert "/ filter" in screen_text(app)
        await pilot.press("4")
        assert "/ filter" not in screen_text(app)
        await pilot.press("?")
        await pilot.pause()
        assert "Filter or search" not in screen_text(app)


async def test_help_is_made_of_the_registry_with_own_keys() -> None:
    options = Options(theme="dark", refresh_hz=0.01, keys={"ranks.sort": "z", "screen.log": "0"})
    async with viewer(running(), (120, 60), options=options) as (app, pilot):
        assert "z sort" in screen_text(app)
        await pilot.press("z")
        assert "▲rank" not in screen_text(app)
        await pilot.press("?")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        text = screen_text(app)
        assert "Sort by the next column." in text
        assert "Go to the Log screen." in text
        assert "ranks.sort" in text
        await pilot.press("escape")
        await pilot.pause()
        assert data_screen(app).NAME == "ranks"
        assert "0 Log" in screen_text(app)
        await pilot.press("0")
        assert data_screen(app).NAME == "log"


async def test_the_palette_runs_the_keys_commands() -> None:
    async with viewer(running()) as (app, pilot):
        for command, sign in (
            ("reverse", "▼rank"),
            ("log screen", "all ranks · all levels"),
        ):
            await pilot.press("ctrl+p")
            await pilot.pause()
            await typed(pilot, command)
            for _ in range(100):
                if app.screen.query_one("CommandList").option_count:  # type: ignore[attr-defined]
                    break
                await pilot.pause(0.02)
            await pilot.press("enter")
            for _ in range(100):
                if not isinstance(app.screen, CommandPalette) and sign in screen_text(app):
                    break
                await pilot.pause(0.02)
            assert sign in screen_text(app)


async def test_quitting_a_running_job_asks_and_a_finished_one_does_not() -> None:
    stopped: list[bool] = []
    options = Options(theme="dark", refresh_hz=0.01, on_stop=stopped.append)
    async with viewer(running(), options=options) as (app, pilot):
        await pilot.press("q")
        await pilot.pause()
        assert isinstance(app.screen, ChoiceDialog)
        await pilot.press("escape")
        await pilot.pause()
        assert data_screen(app).NAME == "ranks"
        await pilot.press("q", "s")
        await pilot.pause()
        assert stopped == [False]
        await pilot.press("q", "d")
        await pilot.pause()
        assert app.return_value == 0
    async with viewer(FedSource(events_of(Plan(rounds=3)))) as (app, pilot):
        await pilot.press("q")
        await pilot.pause()
        assert app.return_value == 0


async def test_keys_that_come_twice_answer_a_question_once(tmp_path: Path) -> None:
    options = Options(theme="dark", refresh_hz=0.01, export_dir=tmp_path)
    async with viewer(running(), options=options) as (app, pilot):
        for opens, key in (("e", "j"), ("question_mark", "escape"), ("q", "escape")):
            await pilot.press(opens)
            await pilot.pause()
            dialog = app.screen
            for _ in range(2):
                dialog.post_message(Key(key, None))
            await pilot.pause()
            assert data_screen(app).NAME == "ranks"
        assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


async def test_answers_are_chosen_by_arrows_and_by_click_too(tmp_path: Path) -> None:
    options = Options(theme="dark", refresh_hz=0.01, export_dir=tmp_path)
    async with viewer(running(), options=options) as (app, pilot):
        await pilot.press("e", "down", "down", "up", "enter")
        await pilot.pause()
        assert [path.suffix for path in tmp_path.iterdir()] == [".json"]
        await pilot.press("e")
        await pilot.pause()
        await pilot.click(app.screen.query_one(LinesView), offset=(8, 4))
        await pilot.pause()
        assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".md"}
        assert data_screen(app).NAME == "ranks"


async def test_a_viewer_that_may_not_stop_the_job_does_not_offer_it() -> None:
    async with viewer(running()) as (app, pilot):
        await pilot.press("q", "s")
        await pilot.pause()
        assert isinstance(app.screen, ChoiceDialog)


async def test_replay_plays_steps_and_goes_to_a_round(tmp_path: Path) -> None:
    make_record(Plan(rounds=20, pause_us=100_000)).write(tmp_path)
    source = ReplaySource(tmp_path / "events.jsonl")
    async with viewer(source, folder=tmp_path) as (app, pilot):
        assert "▶ replay 1×" in screen_text(app)
        await pilot.press(">", ">")
        assert source.speed == 4
        await pilot.press("space")
        assert "‖ replay 4×" in screen_text(app)
        await pilot.press(":")
        await typed(pilot, "#7")
        await pilot.press("enter")
        await pilot.pause()
        assert source.position_s == source.time_of_round(7)
        await pilot.press(".")
        assert source.position_s == source.time_of_round(8)
        await pilot.press("comma")
        assert source.position_s == source.time_of_round(7)
        await pilot.press("q")
        await pilot.pause()
        assert app.return_value == 0


async def test_a_long_record_is_read_without_waiting_for_the_timer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("morimon.feeds.record.PIECE_BYTES", 5_000)
    monkeypatch.setattr("morimon.tui.source.WORK_S", 0.0)
    make_record(Plan(rounds=20, ends=False)).write(tmp_path)
    source = LiveSource(tmp_path / "events.jsonl")
    async with viewer(source, folder=tmp_path) as (app, pilot):
        for _ in range(200):
            if not source.is_behind:
                break
            await pilot.pause(0.02)
        await pilot.pause()
        assert "20/20" in screen_text(app)


async def test_replay_keys_mean_nothing_in_a_live_run() -> None:
    async with viewer(running()) as (app, pilot):
        before = screen_text(app)
        await pilot.press(">", ".", "comma", ":")
        await pilot.pause()
        assert screen_text(app) == before


async def test_exports_and_screenshots_go_to_new_files(tmp_path: Path) -> None:
    options = Options(theme="dark", refresh_hz=0.01, export_dir=tmp_path / "out")
    async with viewer(running(), options=options) as (_, pilot):
        await pilot.press("e", "j")
        await pilot.pause()
        (exported,) = (tmp_path / "out").glob("*.json")
        assert json.loads(exported.read_text())[3]["rank"] == 3
        await pilot.press("e", "m")
        await pilot.press("P")
        await pilot.pause()
        kinds = sorted(path.suffix for path in (tmp_path / "out").iterdir())
        assert kinds == [".json", ".md", ".svg", ".txt"]
        (text,) = (tmp_path / "out").glob("*.txt")
        assert "rank 3 is late" in text.read_text()


async def test_an_export_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    options = Options(theme="dark", refresh_hz=0.01, export_dir=tmp_path / "file")
    async with viewer(running(), options=options) as (app, pilot):
        await pilot.press("e", "c")
        await pilot.pause()
        assert [notice.severity for notice in app._notifications] == ["error"]


async def test_copying_a_row_and_a_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    past, future = split_at_round(Plan(rounds=30, ends=False), 20)
    source = FedSource(past)
    async with viewer(source) as (app, pilot):
        copied: list[str] = []
        monkeypatch.setattr(app, "copy", copied.append)
        await pilot.press("y")
        assert copied[0].startswith(" !     3 ")
        top = next(y for y, line in enumerate(screen_text(app).splitlines()) if "rank 3 is late" in line)
        await pilot.mouse_down(offset=(3, top))
        await pilot.hover(offset=(16, top))
        await pilot.mouse_up(offset=(16, top))
        await pilot.pause()
        before = screen_text(app)
        source.feed(future)
        app.tick()
        await pilot.pause()
        assert screen_text(app) == before, "what is selected stands still"
        await pilot.press("y")
        await pilot.pause()
        assert copied[1] == "rank 3 is late"
        assert "29 │" in screen_text(app)


async def test_a_click_does_not_stop_the_screen() -> None:
    past, future = split_at_round(Plan(rounds=30, ends=False), 20)
    source = FedSource(past)
    async with viewer(source) as (app, pilot):
        await pilot.click(offset=(10, len(data_screen(app).view.page.head) + 1))
        await pilot.pause()
        assert data_screen(app).view.page.cursor == 1
        source.feed(future)
        app.tick()
        await pilot.pause()
        assert "29 │" in screen_text(app)


async def test_ascii_draws_no_other_characters() -> None:
    async with viewer(running(), glyphs=ASCII) as (app, pilot):
        for key in ("1", "5", "6"):
            await pilot.press(key)
            assert screen_text(app).isascii()


@pytest.mark.parametrize("glyphs", [ASCII, UNICODE], ids=lambda glyphs: glyphs.name)
async def test_text_of_others_is_ascii_where_all_is(glyphs: Glyphs) -> None:
    async with viewer(running(), glyphs=glyphs) as (app, pilot):
        await pilot.press("6")
        data_screen(app).view.show(Page((), Lines([(Run("rank 0 took 900 µs, größe 漢字", "text"),)])))
        await pilot.pause()
        painted = full_paint(app)
        assert painted.isascii() == (glyphs is ASCII)
        assert ("took 900 us, gr??e ????" in painted) == (glyphs is ASCII)


async def test_without_colours_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "NO_COLOR", "1")
    async with viewer(running(), options=Options(refresh_hz=0.01)) as (app, pilot):
        await pilot.pause()
        assert app.palette.name == "16-colour"
        sequence = full_paint(app)
        assert not re.search(r"\x1b\[[0-9;]*(?:3[0-7]|4[0-7]|[34]8;|9[0-7]|10[0-7])[0-9;]*m", sequence)


async def test_two_hundred_and_fifty_six_ranks_scroll_by_rows_in_sight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with viewer(running(ranks=256, rounds=5), (120, 40)) as (app, pilot):
        await pilot.press("g")
        count = RenderCount(monkeypatch)
        await pilot.press("down")
        await pilot.pause()
        assert count.lines <= 40
        await pilot.press("G")
        await pilot.pause()
        assert "255" in screen_text(app)
