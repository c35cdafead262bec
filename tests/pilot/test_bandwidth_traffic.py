"""The Bandwidth and Traffic screens with keys pressed."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from morimon.draw.axis import RESCALE_S, Axis
from morimon.draw.glyphs import ASCII
from morimon.model.events import RecordEvent
from morimon.tui.options import Options
from morimon.tui.screens.bandwidth import BandwidthScreen
from morimon.tui.screens.log import LogScreen
from morimon.tui.screens.traffic import TrafficScreen
from morimon.views.bandwidth_chart import MEAN
from morimon.views.line_rates import LineRates
from morimon.views.traffic import cursor_of
from tests.support.records import Plan, make_record
from tests.support.viewer import CountingApp, FedSource, RenderCount, data_screen, screen_text, viewer

SIZES = [(80, 24), (120, 40), (200, 50)]


def events_of(ranks: int = 16, nodes: int = 2) -> list[RecordEvent]:
    return make_record(Plan(ranks=ranks, nodes=nodes, rounds=12, ends=False, tokens=4096, hidden=7168)).events


def options(**more: object) -> Options:
    return Options(theme="dark", refresh_hz=0.01, line_rates=LineRates(50, 450), **more)  # type: ignore[arg-type]


def bandwidth(app: CountingApp) -> BandwidthScreen:
    screen = data_screen(app)
    assert isinstance(screen, BandwidthScreen)
    return screen


def traffic(app: CountingApp) -> TrafficScreen:
    screen = data_screen(app)
    assert isinstance(screen, TrafficScreen)
    return screen


def cursor(app: CountingApp) -> tuple[int, int]:
    return cursor_of(traffic(app).state)


@pytest.mark.parametrize("size", SIZES)
async def test_both_screens_answer_at_every_size(size: tuple[int, int]) -> None:
    async with viewer(FedSource(events_of()), size, options=options()) as (app, pilot):
        await pilot.press("3")
        text = screen_text(app)
        assert "RDMA GB/s of dispatch" in text
        assert "line rate 50" in text
        assert "is more than the line carries" in text
        await pilot.press("4")
        text = screen_text(app)
        assert "from rank (down) to rank (across)" in text
        assert "max/mean" in text
        assert "its senders" not in text


async def test_phase_and_link_change_by_key() -> None:
    async with viewer(FedSource(events_of()), (120, 40), options=options()) as (app, pilot):
        await pilot.press("3", "d")
        assert "RDMA GB/s of combine" in screen_text(app)
        await pilot.press("m")
        assert "XGMI/NVL GB/s of combine" in screen_text(app)
        assert "line rate 450" in screen_text(app)
        await pilot.press("d", "m")
        assert "RDMA GB/s of dispatch" in screen_text(app)


async def test_the_cursor_walks_over_figures_and_ranks_to_the_log() -> None:
    async with viewer(FedSource(events_of()), (120, 24), options=options()) as (app, pilot):
        await pilot.press("3")
        assert bandwidth(app).state.rank == MEAN
        await pilot.press("down", "j")
        assert (bandwidth(app).state.rank, bandwidth(app).state.name) == (MEAN, "wire")
        assert "mean · dispatch · wire:" in screen_text(app)
        await pilot.press("j", "n", "n")
        assert (bandwidth(app).state.rank, bandwidth(app).state.name) == (2, "algo")
        await pilot.press("G")
        assert (bandwidth(app).state.rank, bandwidth(app).state.name) == (15, "wire")
        assert "rank 15 · dispatch · wire:" in screen_text(app)
        await pilot.press("n", "enter")
        log = data_screen(app)
        assert isinstance(log, LogScreen)
        assert log.state.choice.rank == 15


async def test_bandwidth_filters_ranks_and_says_what_it_cannot_read() -> None:
    async with viewer(FedSource(events_of()), (120, 40), options=options()) as (app, pilot):
        await pilot.press("3", "/", "3", "minus", "5", "enter")
        assert "3 of 16 ranks: 3-5" in screen_text(app)
        assert len(bandwidth(app).view.page.body) == 4 * 3
        await pilot.press("escape")
        assert len(bandwidth(app).view.page.body) == 17 * 3
        assert bandwidth(app).set_filter("speed>3") is not None


async def test_the_axis_follows_figures_that_came_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr("morimon.tui.screens.bandwidth.time", SimpleNamespace(monotonic=lambda: now_s))
    async with viewer(FedSource(events_of()), (120, 40), options=options()) as (app, pilot):
        await pilot.press("3")
        screen = bandwidth(app)
        settled, wide = screen.state.axis, Axis(0.0, 8000.0, 2000.0, set_s=now_s)
        assert settled is not None
        screen.state = replace(screen.state, axis=wide)
        now_s += RESCALE_S / 2
        app.tick()
        assert screen.state.axis == wide
        now_s += RESCALE_S / 2
        app.tick()
        assert screen.state.axis is not None
        assert screen.state.axis.high == settled.high


async def test_the_cursor_walks_over_the_matrix_and_across_nodes() -> None:
    async with viewer(FedSource(events_of()), (120, 40), options=options()) as (app, pilot):
        await pilot.press("4", "g", *["left"] * 16)
        assert cursor(app) == (0, 0)
        assert "rank 0 to rank 0:" in screen_text(app)
        await pilot.press("h", "right", "l", *["down"] * 7)
        assert cursor(app) == (7, 2)
        await pilot.press("j")
        assert cursor(app) == (8, 2)
        assert "other node" in screen_text(app)
        await pilot.press("k", "n")
        assert cursor(app) == (7, 10)
        await pilot.press("n")
        assert cursor(app) == (7, 10)
        await pilot.press("N", "G")
        assert cursor(app) == (15, 2)
        await pilot.press("enter")
        log = data_screen(app)
        assert isinstance(log, LogScreen)
        assert log.state.choice.rank == 15


async def test_counts_on_request_and_columns_that_follow_the_cursor() -> None:
    async with viewer(FedSource(events_of(64, 8)), (80, 24), options=options()) as (app, pilot):
        await pilot.press("4")
        assert "receivers" not in screen_text(app)
        await pilot.press("z", *["n"] * 8)
        assert "of 64; the others are to the sides" in screen_text(app)
        sent = app.snapshot.ranks[cursor(app)[0]].to_ranks[cursor(app)[1]]
        row = traffic(app).view.row_text(traffic(app).view.page.cursor or 0)
        assert str(sent) in row.split("▶")[1].split()[0]
        await pilot.press("z")
        assert "receivers" not in screen_text(app)


async def test_the_matrix_goes_to_a_file(tmp_path: Path) -> None:
    async with viewer(FedSource(events_of(8, 1)), (120, 40), options=options(export_dir=tmp_path)) as (
        app,
        pilot,
    ):
        await pilot.press("4", "e", "c")
        await pilot.press("3", "e", "c")
        await pilot.pause()
        ranks = app.snapshot.ranks
    (matrix,) = tmp_path.glob("morimon-traffic-*.csv")
    rows = list(csv.reader(matrix.read_text().splitlines()))[1:]
    assert [[int(cell) for cell in row[1:-1]] for row in rows] == [list(rank.to_ranks) for rank in ranks]
    (figures,) = tmp_path.glob("morimon-bandwidth-*.csv")
    assert "xgmi_received_gbps" in figures.read_text().splitlines()[0]


@pytest.mark.parametrize("key", ["3", "4"])
async def test_nothing_is_painted_where_nothing_changed(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with viewer(FedSource(events_of()), (120, 40), options=options()) as (app, pilot):
        await pilot.press(key)
        await pilot.pause()
        count, before = RenderCount(monkeypatch), app.paints
        for _ in range(5):
            app.tick()
            await pilot.pause()
        assert (count.lines, app.paints) == (0, before)


async def test_a_run_without_figures_is_no_trouble() -> None:
    async with viewer(FedSource(), (80, 24), options=options(), glyphs=ASCII) as (app, pilot):
        for key in ("3", "down", "d", "m", "n", "enter", "4", "down", "right", "n", "z", "g"):
            await pilot.press(key)
        assert "no rank has told where its tokens go" in screen_text(app)
        assert screen_text(app).isascii()
