"""The Traffic screen as arrays and as lines."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from morimon.draw.glyphs import ASCII, UNICODE, Glyphs
from morimon.draw.line import Line, plain, width_of
from morimon.draw.page import Frame
from morimon.ep.config import EpConfig, default_kernel_type
from morimon.ep.counts import Counts
from morimon.ep.imbalance import imbalance
from morimon.ep.predict import predict, routes
from morimon.ep.routing import Routing
from morimon.model.config import JobConfig
from morimon.model.events import Configured, Tokens, Traffic
from morimon.store.snapshot import RankSnapshot, RunSnapshot
from morimon.store.store import Store
from morimon.views.status import Viewing, state_lines
from morimon.views.traffic import TrafficRows, TrafficState, build, sheet
from morimon.views.traffic_grid import grid_of
from morimon.views.traffic_matrix import blocks, cell_sizes, matrix_of
from tests.support.goldens import compare, snapshot_lines


@cache
def routed(num_nodes: int, gpu_per_node: int, routing: Routing = "skewed") -> tuple[Counts, RunSnapshot]:
    """Counts, and a snapshot of a job that has told all of them."""
    ep = EpConfig(
        num_nodes=num_nodes,
        gpu_per_node=gpu_per_node,
        num_tokens=64,
        hidden=64,
        num_experts=8 * num_nodes * gpu_per_node,
        topk=4,
        kernel_type=default_kernel_type(num_nodes),
    )
    tables = list(routes(ep, routing, 3))
    counts = predict(ep, tables)
    store = Store()
    shape = JobConfig(world_size=ep.world_size, num_nodes=num_nodes, gpu_per_node=gpu_per_node)
    store.apply(Configured(t_ns=0, config=shape))
    for one, topk_idx in zip(counts.ranks, tables, strict=True):
        loads = np.bincount(topk_idx.ravel(), minlength=ep.num_experts)
        store.apply(
            Traffic(
                t_ns=0,
                rank=one.rank,
                to_ranks=tuple(counts.to_rank[one.rank].tolist()),
                to_experts=tuple(loads.tolist()),
            )
        )
        store.apply(Tokens(t_ns=0, rank=one.rank, recv_tokens=one.recv_tokens))
    return counts, store.snapshot()


def whole(
    snapshot: RunSnapshot, size: tuple[int, int], state: TrafficState | None = None, glyphs: Glyphs = UNICODE
) -> list[Line]:
    frame = Frame(*size, glyphs)
    top = state_lines(snapshot, Viewing(), frame)
    room = size[1] - len(top)
    page = build(snapshot, replace(frame, height=room), state)
    rows = range(min(len(page.body), room - len(page.head) - len(page.foot)))
    return snapshot_lines(size, [*top, *page.head, *(page.body.line(i) for i in rows), *page.foot])


@pytest.mark.parametrize(
    ("name", "shape", "size", "state", "glyphs"),
    [
        ("traffic_120x40", (2, 8), (120, 40), None, UNICODE),
        ("traffic_ascii_80x24", (2, 8), (80, 24), None, ASCII),
        ("traffic_256_ranks_80x24", (32, 8), (80, 24), None, UNICODE),
        ("traffic_counts_80x24", (4, 8), (80, 24), TrafficState(9, 20, exact=True), UNICODE),
    ],
)
def test_the_screen_looks_as_accepted(
    name: str, shape: tuple[int, int], size: tuple[int, int], state: TrafficState | None, glyphs: Glyphs
) -> None:
    compare(name, whole(routed(*shape)[1], size, state, glyphs))


@pytest.mark.parametrize("width", [60, 109, 200])
@pytest.mark.parametrize("height", [13, 30, None])
@pytest.mark.parametrize("shape", [(1, 1), (1, 8), (1, 12), (2, 8), (8, 8), (32, 8)])
@pytest.mark.parametrize("exact", [False, True])
def test_every_line_fits_at_every_size(
    shape: tuple[int, int], width: int, height: int | None, exact: bool
) -> None:
    world = shape[0] * shape[1]
    page = build(routed(*shape)[1], Frame(width, height), TrafficState(world - 1, world - 1, exact=exact))
    for line in page.lines():
        assert width_of(line) <= width, plain(line)
    if height is not None:
        assert len(page.head) + len(page.foot) < height
    assert page.cursor is not None
    assert (
        plain(page.body.line(page.cursor))
        .strip()
        .startswith(str((world - 1) // rows(page.body).grid.per * rows(page.body).grid.per))
    )


def rows(body: object) -> TrafficRows:
    assert isinstance(body, TrafficRows)
    return body


def test_ascii_is_ascii() -> None:
    for shape in ((1, 8), (2, 8), (32, 8)):
        for line in whole(routed(*shape)[1], (120, 40), None, ASCII):
            assert plain(line).isascii()


# counts


@pytest.mark.parametrize("shape", [(1, 8), (2, 8)])
def test_cells_and_sums_are_the_counts(shape: tuple[int, int]) -> None:
    counts, snapshot = routed(*shape)
    page = build(snapshot, Frame(160))
    body = rows(page.body)
    for index, entry in enumerate(body.entries):
        if entry is None:
            continue
        text = plain(body.line(index)).replace(UNICODE.bar, " ").replace(UNICODE.play, " ")
        label, *cells, sent = text.replace(UNICODE.thousands, "").split()
        assert int(label) == entry
        assert [int(cell) for cell in cells] == counts.to_rank[entry].tolist()
        assert int(sent) == counts.to_rank[entry].sum()
    received = plain(body.below[0]).replace(UNICODE.bar, " ").replace(UNICODE.thousands, "").split()
    assert received[0] == "recv"
    assert [int(cell) for cell in received[1:-1]] == [one.recv_tokens for one in counts.ranks]
    assert int(received[-1]) == counts.to_rank.sum()


def test_the_load_of_experts_and_who_carries_it() -> None:
    counts, snapshot = routed(2, 8)
    text = "\n".join(plain(line) for line in build(snapshot, Frame(160)).lines())
    experts, ranks = imbalance(counts.to_expert), imbalance(counts.to_expert.reshape(16, -1).sum(axis=1))
    hottest = int(counts.to_expert.argmax())
    assert f" 128 experts   max/mean {experts.max_over_mean:.2f}  Jain {experts.jain:.3f}" in text
    assert f"hottest expert {hottest} (rank {hottest // 8}): {counts.to_expert[hottest]} = " in text
    assert (
        f"rows of ranks max/mean {ranks.max_over_mean:.2f}  Jain {ranks.jain:.3f} · carried by rank 0: "
        in text
    )


def test_where_there_is_room_every_rank_has_a_bar() -> None:
    counts, snapshot = routed(1, 8)
    by_rank = counts.to_expert.reshape(8, 8)
    loads = by_rank.sum(axis=1)
    text = [plain(line) for line in build(snapshot, Frame(120, 38)).lines()]
    bars = text[next(at for at, line in enumerate(text) if "× mean" in line and "rank " in line[:7]) + 1 :]
    assert len(bars) == 8
    longest = max(range(8), key=lambda rank: bars[rank].count("█"))
    assert loads[longest] == loads.max()
    for rank, line in enumerate(bars):
        hottest = int(by_rank[rank].argmax())
        figures = line.replace(UNICODE.thousands, "").split()
        assert figures[:2] == [str(rank), str(loads[rank])]
        assert figures[3:5] == [f"{rank * 8 + hottest}:", str(by_rank[rank, hottest])]
    assert not any("× mean   hottest" in plain(line) for line in build(snapshot, Frame(120, 20)).lines())


def test_experts_stand_under_their_ranks() -> None:
    counts, snapshot = routed(1, 8)
    grid = grid_of(matrix_of(snapshot), 120, 0, UNICODE, exact=False)
    digits = plain(grid.experts(100)).split()[1:9]
    most, least = counts.to_expert.max(), counts.to_expert.min()
    assert plain(grid.experts(100)) + f"  rows {least} 01234567 {most}" == plain(grid.experts(120))
    by_rank = counts.to_expert.reshape(8, 8)
    order = np.argsort([digit.count("7") for digit in digits])
    assert by_rank[order[-1]].max() == counts.to_expert.max()
    assert all(len(digit) == grid.cell - 1 for digit in digits)


def test_a_rank_that_counts_otherwise_is_named() -> None:
    _, snapshot = routed(2, 8)
    wrong = replace(snapshot.ranks[5], recv_tokens=1)
    text = "\n".join(
        plain(line) for line in build(replace(snapshot, ranks=(*snapshot.ranks[:5], wrong)), Frame(120)).head
    )
    assert "6 of 16 ranks have told what they send" in text
    ranks = (*snapshot.ranks[:5], wrong, *snapshot.ranks[6:])
    text = "\n".join(plain(line) for line in build(replace(snapshot, ranks=ranks), Frame(120)).head)
    assert f"! rank 5 counts 1 tokens received, its senders {snapshot.ranks[5].recv_tokens}" in text
    assert "counts" not in "\n".join(plain(line) for line in build(snapshot, Frame(120)).head)


def test_a_sender_that_has_not_told_is_missing_and_not_zero() -> None:
    _, snapshot = routed(1, 8)
    silent = replace(snapshot.ranks[2], to_ranks=(), to_experts=())
    page = build(replace(snapshot, ranks=(*snapshot.ranks[:2], silent, *snapshot.ranks[3:])), Frame(120))
    assert plain(page.body.line(2)).split()[1:] == ["–"] * 9
    assert "7 of 8 ranks have told" in plain(page.head[1])


def test_a_job_that_tells_no_traffic_says_so_and_what_is_known() -> None:
    ranks = tuple(RankSnapshot(rank=r, version=0, recv_tokens=100 + 20 * r) for r in range(3))
    text = [plain(line) for line in build(RunSnapshot(1, ranks=ranks), Frame(120)).lines()]
    assert "no rank has told where its tokens go" in text[0]
    assert "max/mean 1.17" in text[1]
    assert "most by rank 2: 140" in text[1]
    assert len(build(RunSnapshot(0), Frame(80, 20)).lines()) == 1
    assert sheet(RunSnapshot(0), TrafficState()).rows == []


# the grid


def test_loads_that_are_all_alike_look_neither_hot_nor_cold() -> None:
    _, snapshot = routed(1, 8)
    even = tuple(replace(rank, to_ranks=(1000,) * 8, to_experts=(500,) * 64) for rank in snapshot.ranks)
    uneven = replace(even[0], to_ranks=(1001, *(1000,) * 7), to_experts=(501, *(500,) * 63))
    grid = grid_of(matrix_of(replace(snapshot, ranks=(uneven, *even[1:]))), 120, 0, UNICODE, exact=False)
    for line in (grid.row(0, (1, 1)), grid.sums(), grid.experts(10)):
        assert {run.role for run in line if run.role.startswith("heat-")} - {"heat-0", "heat-7"} <= {
            "heat-3",
            "heat-4",
        }
    assert set("".join(plain(grid.experts(10)).split()[1:])) <= {"3", "4"}


def test_blocks_are_means_of_what_is_known() -> None:
    tokens = np.arange(25, dtype=np.float64).reshape(5, 5)
    tokens[4] = np.nan
    mean = blocks(tokens, 2)
    assert mean.shape == (3, 3)
    assert mean[0, 0] == tokens[:2, :2].mean()
    assert mean[1, 2] == tokens[2:4, 4].mean()
    assert np.isnan(mean[2]).all()
    assert blocks(tokens, 1) is tokens


def test_cells_never_cross_a_border_between_nodes() -> None:
    assert cell_sizes(32, 8) == [1, 2, 4, 8, 16, 24, 32]
    assert cell_sizes(12, 12) == [1, 2, 3, 4, 6, 12]
    assert cell_sizes(6, 4) == [1, 2, 3, 4, 5, 6]
    assert cell_sizes(3, None) == [1, 2, 3]


@pytest.mark.parametrize(
    ("shape", "width", "exact", "per", "columns", "has_numbers"),
    [
        ((1, 8), 80, False, 1, 8, True),
        ((2, 8), 80, False, 1, 16, False),
        ((2, 8), 120, False, 1, 16, True),
        ((8, 8), 120, False, 1, 64, False),
        ((32, 8), 80, False, 8, 32, False),
        ((32, 8), 200, False, 2, 128, False),
        ((32, 8), 80, True, 1, 6, True),
    ],
)
def test_cells_are_as_fine_as_the_room_allows(
    shape: tuple[int, int], width: int, exact: bool, per: int, columns: int, has_numbers: bool
) -> None:
    grid = grid_of(matrix_of(routed(*shape)[1]), width, 0, UNICODE, exact=exact)
    assert (grid.per, grid.columns, grid.has_numbers) == (per, columns, has_numbers)


def test_counts_in_sight_follow_the_cursor() -> None:
    _, snapshot = routed(8, 8)
    for receiver in (0, 31, 63):
        body = rows(build(snapshot, Frame(80, 20), TrafficState(0, receiver, exact=True)).body)
        assert receiver in body.grid.shown
        assert str(receiver) in plain(body.grid.heading(body.cursor)).split()


def test_the_cell_under_the_cursor_is_said_exactly() -> None:
    counts, snapshot = routed(2, 8)
    count = int(counts.to_rank[3, 12])

    def said(snapshot: RunSnapshot, frame: Frame, state: TrafficState) -> str:
        lines = (plain(line) for line in build(snapshot, frame, state).lines())
        return next(line for line in lines if line.startswith(" rank") and " to rank" in line)

    line = said(snapshot, Frame(120), TrafficState(3, 12))
    share = 100 * count / counts.to_rank[3].sum()
    ratio = count / counts.to_rank.mean()
    assert (
        line
        == f" rank 3 to rank 12:  {count} tokens · {ratio:.2f} × the mean · {share:.1f} % of what it sends · other node"
    )
    same = said(snapshot, Frame(120), TrafficState(3, 4))
    assert same.endswith("same node")
    _, many = routed(32, 8)
    block = said(many, Frame(80, 20), TrafficState(9, 20))
    assert block.startswith(" ranks 8-15 to ranks 16-23:  ")
    assert " a pair" in block


def test_the_cursor_begins_at_the_largest_count() -> None:
    counts, snapshot = routed(2, 8)
    body = rows(build(snapshot, Frame(120)).body)
    assert counts.to_rank[body.cursor] == counts.to_rank.max()


def test_the_matrix_is_built_anew_only_where_a_rank_says_something_else() -> None:
    _, snapshot = routed(2, 8)
    matrix = matrix_of(snapshot)
    later = replace(
        snapshot, version=snapshot.version + 1, ranks=tuple(replace(r, version=99) for r in snapshot.ranks)
    )
    assert matrix_of(later, matrix) is matrix
    other = replace(snapshot.ranks[0], to_ranks=(1,) * 16)
    assert matrix_of(replace(snapshot, ranks=(other, *snapshot.ranks[1:])), matrix) is not matrix


def test_a_sheet_is_the_matrix() -> None:
    counts, snapshot = routed(1, 8)
    made = sheet(snapshot, TrafficState())
    assert made.columns[:2] == ["rank", "to_0"]
    assert [list(row[1:-1]) for row in made.rows] == counts.to_rank.tolist()
    assert [row[-1] for row in made.rows] == counts.to_rank.sum(axis=1).tolist()
