"""The Ranks screen as lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from morimon.draw.axis import RESCALE_S
from morimon.draw.glyphs import ASCII, UNICODE, Glyphs
from morimon.draw.line import Line, plain, width_of
from morimon.draw.page import Frame, Page
from morimon.model.config import JobConfig
from morimon.store.snapshot import PhaseFigures, RankSnapshot, RunSnapshot
from morimon.store.store import Store
from morimon.views.rank_filter import FilterError, parse_filter
from morimon.views.rank_graph import medians
from morimon.views.ranks import (
    GRAPH_S,
    RanksState,
    build,
    chosen_ranks,
    selection,
    settled_state,
    sheet,
    worst_rank,
)
from morimon.views.status import Viewing, state_lines
from tests.support.goldens import compare, snapshot_lines
from tests.support.records import Plan, make_record


def snapshot_of(plan: Plan) -> RunSnapshot:
    store = Store()
    for event in make_record(plan).events:
        store.apply(event)
    return store.snapshot()


RUNNING = snapshot_of(Plan(rounds=37, ends=False, tokens=4096, hidden=7168))
TWO_NODES = snapshot_of(Plan(ranks=16, nodes=2, rounds=37, ends=False, tokens=4096, hidden=7168))
KILLED = snapshot_of(Plan(killed=(5, 12)))


def whole(snapshot: RunSnapshot, size: tuple[int, int], glyphs: Glyphs = UNICODE) -> list[Line]:
    frame = Frame(*size, glyphs)
    top = state_lines(snapshot, Viewing(), frame)
    page = build(snapshot, replace(frame, height=size[1] - len(top)))
    return snapshot_lines(size, [*top, *page.lines()])


def text_of(page: Page) -> list[str]:
    return [plain(line) for line in page.lines()]


@pytest.mark.parametrize("width", range(60, 81))
def test_no_figure_and_no_sentence_is_cut_without_a_mark(width: int) -> None:
    wide = build(RUNNING, Frame(109, 24)).head[:3]
    for line, whole in zip(build(RUNNING, Frame(width, 24)).head[:3], wide, strict=True):
        text = plain(line)
        assert width_of(line) <= width
        rest = plain(whole).removeprefix(text.removesuffix("…"))
        assert rest != plain(whole)
        assert text.endswith("…") or not rest or rest.startswith(" ")


@pytest.mark.parametrize(
    ("name", "snapshot", "size", "glyphs"),
    [
        ("ranks_80x24", RUNNING, (80, 24), UNICODE),
        ("ranks_120x40", TWO_NODES, (120, 40), UNICODE),
        ("ranks_killed_ascii_80x24", KILLED, (80, 24), ASCII),
    ],
)
def test_the_screen_looks_as_accepted(
    name: str, snapshot: RunSnapshot, size: tuple[int, int], glyphs: Glyphs
) -> None:
    compare(name, whole(snapshot, size, glyphs))


@pytest.mark.parametrize("width", [60, 61, 80, 99, 100, 109, 110, 140, 200])
@pytest.mark.parametrize("height", [15, 24, 50, None])
@pytest.mark.parametrize("snapshot", [RUNNING, TWO_NODES, KILLED, RunSnapshot(0)])
def test_every_line_fits_at_every_size(snapshot: RunSnapshot, width: int, height: int | None) -> None:
    frame = Frame(width, height)
    for line in [*state_lines(snapshot, Viewing(), frame), *build(snapshot, frame).lines()]:
        assert width_of(line) <= width, plain(line)


def test_ascii_is_ascii() -> None:
    for line in whole(TWO_NODES, (200, 50), ASCII):
        assert plain(line).isascii()


def test_the_late_rank_is_named_by_its_arrival_and_marked() -> None:
    text = text_of(build(RUNNING, Frame(120)))
    verdict = next(line for line in text if "is late" in line)
    assert verdict.startswith(" ! rank 3 is late: enters dispatch 400.")
    rows = [line for line in text if "◀ late" in line]
    assert len(rows) == 1
    assert rows[0].startswith(" !     3 ")
    assert "+40" in rows[0]


def test_durations_alone_give_no_verdict() -> None:
    ranks = tuple(
        RankSnapshot(
            rank=rank,
            version=0,
            state="running",
            dispatch=PhaseFigures(round=0, latency_us=us, rounds=(0,), latencies_us=(us,)),
        )
        for rank, us in enumerate((5.0, 9.0, 4.0))
    )
    summary = replace(RUNNING, ranks=ranks, straggler=None, arrivals_judged=0)
    text = "\n".join(text_of(build(summary, Frame(120))))
    assert "who is late cannot be told" in text
    assert "late:" not in text
    notes = {line.split()[0]: line.split()[-1] for line in text.splitlines() if "running" in line}
    assert notes["1"] == "longest"
    assert notes["2"] == "shortest"
    assert "longest" not in "\n".join(text_of(build(RUNNING, Frame(120))))


def test_one_node_shows_no_rdma_figures_and_two_nodes_do() -> None:
    one, two = (
        "\n".join(text_of(build(snapshot, Frame(200)))).replace(UNICODE.thousands, "")
        for snapshot in (RUNNING, TWO_NODES)
    )
    assert str(TWO_NODES.rdma_tokens_algo_total) in two
    assert ["RDMA: nothing crosses" in text for text in (one, two)] == [True, False]
    assert ["RDMA algo" in text for text in (one, two)] == [False, True]
    figures = next(line for line in one.splitlines() if line.split()[:2] == ["dispatch", "│"])
    assert figures.split()[-3:] == [UNICODE.missing] * 3
    assert str(RUNNING.rdma_tokens_algo_total) not in one


def test_nothing_is_said_of_a_run_of_which_nothing_was_read() -> None:
    assert "no rank is up" in text_of(build(RunSnapshot(1), Frame(120)))[0]
    assert "no rank is up" not in "".join(text_of(build(RunSnapshot(0), Frame(120))))


def test_a_missing_figure_is_a_dash_and_never_zero() -> None:
    ranks = (RankSnapshot(rank=0, version=0),)
    row = build(RunSnapshot(1, ranks=ranks), Frame(120)).body.line(0)
    figures = [word for word in plain(row).split() if word != "│"]
    assert figures[0] == "0"
    assert "waiting" in figures
    assert "0" not in figures[1:]
    assert figures.count("–") >= 6


def test_sorting_puts_unknown_figures_last_either_way() -> None:
    ranks = tuple(
        RankSnapshot(rank=r, version=0, dispatch=PhaseFigures(latency_us=us))
        for r, us in enumerate([5.0, None, 9.0, 1.0])
    )
    snapshot = RunSnapshot(1, ranks=ranks)
    up = [r.rank for r in chosen_ranks(snapshot, RanksState(sort="dispatch"))]
    down = [r.rank for r in chosen_ranks(snapshot, RanksState(sort="dispatch", descending=True))]
    assert up == [3, 0, 2, 1]
    assert down == [2, 0, 3, 1]


def test_the_cursor_goes_to_the_worst_rank_until_somebody_chooses() -> None:
    assert worst_rank(RUNNING) == 3
    assert worst_rank(KILLED) == 5
    assert selection(RUNNING, RanksState()) == 3
    assert selection(RUNNING, RanksState(selected=6)) == 6
    assert selection(RUNNING, RanksState(selected=6, follow=True)) == 3
    assert selection(RUNNING, RanksState(selected=99)) == 3
    assert selection(RunSnapshot(0), RanksState()) is None


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("3", [3]),
        ("0-2,7", [0, 1, 2, 7]),
        ("late", [3]),
        ("combine 0-3", [0, 1, 2, 3]),
        ("dispatch", []),
        ("arrived>100", [3]),
        ("dispatch<1000 rank!=3", []),
        ("rank>=6", [6, 7]),
        ("cpu<1000", [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_filters(text: str, ranks: list[int]) -> None:
    state = RanksState(filter=parse_filter(text))
    assert [rank.rank for rank in chosen_ranks(RUNNING, state)] == ranks


@pytest.mark.parametrize(
    ("text", "word"), [("lat", "'lat'"), ("speed>3", "'speed'"), ("phase=1", "'phase'"), ("3-", "'3-'")]
)
def test_a_filter_that_cannot_be_read_says_why(text: str, word: str) -> None:
    with pytest.raises(FilterError, match=word):
        parse_filter(text)


def test_the_filter_in_force_is_said() -> None:
    page = build(RUNNING, Frame(120), settled_state(RUNNING, RanksState(filter=parse_filter("0-2")), 0.0))
    assert any("3 of 8 ranks: 0-2" in line for line in text_of(page))
    assert len(page.body) == 3 + 1


def test_following_is_said() -> None:
    page = build(RUNNING, Frame(80), settled_state(RUNNING, RanksState(follow=True), 0.0))
    assert any("following the worst" in line for line in text_of(page))


def test_medians_of_series_with_and_without_gaps() -> None:
    whole_series = [
        ((0, 1, 2), (1.0, 2.0, 3.0)),
        ((1, 2, 3), (4.0, 6.0, 8.0)),
        ((0, 1, 2, 3), (0.0, 9.0, 9.0, 9.0)),
    ]
    assert medians(whole_series) == [(1, 4.0), (2, 6.0)]
    assert medians([((0, 2), (1.0, 3.0)), ((0, 1, 2), (5.0, 6.0, 7.0))]) == [(0, 3.0), (2, 5.0)]
    assert medians([((0,), (1.0,)), ((1,), (1.0,))]) == []
    assert medians([]) == []


def test_the_graph_is_drawn_anew_once_a_second_or_for_another_rank() -> None:
    store = Store()
    events = make_record(Plan(rounds=30, ends=False)).events
    half = len(events) // 2
    for event in events[:half]:
        store.apply(event)
    first = settled_state(store.snapshot(), RanksState(), 10.0)
    for event in events[half:]:
        store.apply(event)
    soon = settled_state(store.snapshot(), first, 10.0 + GRAPH_S / 2)
    assert soon.curves is first.curves
    assert not soon.is_due(store.snapshot(), 10.0 + GRAPH_S / 2)
    assert soon.is_due(store.snapshot(), 10.0 + GRAPH_S)
    later = settled_state(store.snapshot(), soon, 10.0 + GRAPH_S)
    assert later.curves != first.curves
    assert not later.is_due(store.snapshot(), 99.0)
    other = settled_state(store.snapshot(), replace(soon, selected=6), 10.1)
    assert other.curves_of == (6, "latency")


def test_axes_do_not_jump_between_two_looks() -> None:
    state = settled_state(RUNNING, RanksState(), 10.0)
    slower = tuple(
        replace(
            rank,
            dispatch=replace(rank.dispatch, latencies_us=tuple(v * 50 for v in rank.dispatch.latencies_us)),
        )
        for rank in RUNNING.ranks
    )
    moved = replace(RUNNING, version=RUNNING.version + 1, ranks=slower)
    assert settled_state(moved, state, 10.0 + RESCALE_S / 2).sparks == state.sparks
    assert settled_state(moved, state, 10.0 + RESCALE_S).sparks != state.sparks


def test_export_holds_every_figure_with_its_unit() -> None:
    table = sheet(RUNNING, RanksState(sort="arrived", descending=True))
    assert table.rows[0][0] == 3
    assert "dispatch_us" in table.columns
    assert "recv_tokens" in table.columns


def test_unknown_configuration_falls_back_to_the_command() -> None:
    snapshot = RunSnapshot(1, command=("/usr/bin/python", "train.py", "\x1b[31m--x"))
    top = plain(state_lines(snapshot, Viewing(), Frame(120))[0])
    assert top.startswith(" python train.py --x")
    named = replace(snapshot, config=JobConfig(name="[red]job", world_size=4))
    assert plain(state_lines(named, Viewing(), Frame(120))[0]).startswith(" [red]job · 4 ranks")
