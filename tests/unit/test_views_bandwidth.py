"""The Bandwidth screen as figures and as lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from morimon.draw.axis import RESCALE_S
from morimon.draw.glyphs import ASCII, UNICODE, Glyphs
from morimon.draw.line import Line, plain, width_of
from morimon.draw.page import Frame
from morimon.ep.config import EpConfig, KernelType
from morimon.ep.counts import Counts
from morimon.ep.predict import predict, routes
from morimon.ep.volume import phase_bytes
from morimon.logs import StreamParser
from morimon.model.config import JobConfig
from morimon.model.events import Configured, PhaseDone, RecordEvent, Tokens, Traffic
from morimon.store.snapshot import RunSnapshot
from morimon.store.store import Store
from morimon.views.bandwidth import build, sheet
from morimon.views.bandwidth_bars import Scale
from morimon.views.bandwidth_chart import MEAN, BandwidthState, chart, settled_state
from morimon.views.bandwidth_figures import NAMES, Figure, Job, figures_of
from morimon.views.line_rates import UNKNOWN_RATES, LineRates, Link
from morimon.views.rank_filter import parse_filter
from morimon.views.status import Viewing, state_lines
from tests.support.goldens import compare, snapshot_lines
from tests.support.records import Plan, make_record

CASE = Path(__file__).parents[1] / "data" / "cases" / "23_algo_vs_physical.log"
LATENCY_US = 1000.0


def stored(events: Iterable[RecordEvent]) -> RunSnapshot:
    store = Store()
    for event in events:
        store.apply(event)
    return store.snapshot()


def printed(ranks: int = 16) -> list[RecordEvent]:
    """What a job prints of its last round, in whole numbers."""
    return [
        PhaseDone(
            t_ns=0,
            rank=rank,
            round=36,
            phase="dispatch",
            latency_us=1043.0,
            xgmi_gbps=360.0,
            rdma_algo_gbps=111.0,
            source="log",
        )
        for rank in range(ranks)
    ]


ONE_NODE = stored(make_record(Plan(rounds=37, ends=False, tokens=4096, hidden=7168)).events)
TWO_NODES = stored(
    [
        *make_record(Plan(ranks=16, nodes=2, rounds=37, ends=False, tokens=4096, hidden=7168)).events,
        *printed(),
    ]
)


def case_23(**told: object) -> RunSnapshot:
    """The two ranks of a log that prints an impossible bandwidth, and what else the job may have told."""
    parser = StreamParser(CASE.name, stream="console")
    # Round 0 is out of mori's statistics; the case shows a round that counts.
    log = CASE.read_bytes().replace(b"Round 0", b"Round 1")
    config = Configured(t_ns=0, config=JobConfig(**told))  # type: ignore[arg-type]
    return stored([config, *parser.feed(log, 0), *parser.close(0)])


def figures(
    snapshot: RunSnapshot, rank: int, link: Link = "rdma", rates: LineRates = UNKNOWN_RATES
) -> dict[str, Figure]:
    job = Job.of(snapshot.config)
    return {one.name: one for one in figures_of(snapshot.ranks[rank], "dispatch", link, job, rates)}


def whole(
    snapshot: RunSnapshot, size: tuple[int, int], rates: LineRates, glyphs: Glyphs = UNICODE
) -> list[Line]:
    frame = Frame(*size, glyphs)
    top = state_lines(snapshot, Viewing(), frame)
    room = size[1] - len(top)
    page = build(snapshot, replace(frame, height=room), settled_state(snapshot, BandwidthState(), rates, 0.0))
    rows = range(min(len(page.body), room - len(page.head) - len(page.foot)))
    return snapshot_lines(size, [*top, *page.head, *(page.body.line(i) for i in rows), *page.foot])


@pytest.mark.parametrize(
    ("name", "snapshot", "size", "rates", "glyphs"),
    [
        ("bandwidth_80x24", TWO_NODES, (80, 24), LineRates(50), UNICODE),
        ("bandwidth_one_node_ascii_80x24", ONE_NODE, (80, 24), LineRates(xgmi_gbps=450), ASCII),
        ("bandwidth_200x20", TWO_NODES, (200, 20), LineRates(60), UNICODE),
    ],
)
def test_the_screen_looks_as_accepted(
    name: str, snapshot: RunSnapshot, size: tuple[int, int], rates: LineRates, glyphs: Glyphs
) -> None:
    compare(name, whole(snapshot, size, rates, glyphs))


@pytest.mark.parametrize("width", [60, 109, 110, 180, 200])
@pytest.mark.parametrize("height", [13, 30, None])
@pytest.mark.parametrize("snapshot", [ONE_NODE, TWO_NODES, case_23(), RunSnapshot(0)])
@pytest.mark.parametrize("rates", [UNKNOWN_RATES, LineRates(50, 1e-3)])
def test_every_line_fits_at_every_size(
    snapshot: RunSnapshot, width: int, height: int | None, rates: LineRates
) -> None:
    state = None if height is None else settled_state(snapshot, BandwidthState(), rates, 0.0)
    page = build(snapshot, Frame(width, height), state, rates)
    for line in page.lines():
        assert width_of(line) <= width, plain(line)
    if height is not None:
        assert len(page.head) + len(page.foot) < height


def test_ascii_is_ascii() -> None:
    for snapshot in (ONE_NODE, TWO_NODES, case_23()):
        for line in build(snapshot, Frame(100, None, ASCII), None, LineRates(50, 300)).lines():
            assert plain(line).isascii()


# the arithmetic


def routed(kernel_type: KernelType) -> tuple[Counts, RunSnapshot]:
    """A job of 2 × 4 ranks that has told its counts, its traffic and one round."""
    ep = EpConfig(
        num_nodes=2,
        gpu_per_node=4,
        num_tokens=64,
        hidden=512,
        num_experts=32,
        topk=4,
        kernel_type=kernel_type,
    )
    counts = predict(ep, routes(ep, "random", 7))
    events: list[RecordEvent] = [
        Configured(
            t_ns=0,
            config=JobConfig(
                world_size=8,
                num_nodes=2,
                gpu_per_node=4,
                num_tokens=64,
                hidden=512,
                num_experts=32,
                topk=4,
                dtype="bf16",
                combine_dtype="bf16",
                kernel_type=kernel_type,
            ),
        )
    ]
    for one in counts.ranks:
        moved = phase_bytes(ep, one, "dispatch")
        events += [
            Tokens(t_ns=0, rank=one.rank, recv_tokens=one.recv_tokens, rdma_tokens_algo=one.rdma_tokens_algo),
            Traffic(t_ns=0, rank=one.rank, to_ranks=tuple(counts.to_rank[one.rank].tolist())),
            PhaseDone(
                t_ns=0,
                rank=one.rank,
                round=1,
                phase="dispatch",
                latency_us=LATENCY_US,
                bytes=moved.xgmi,
                rdma_bytes=moved.rdma_algo,
            ),
        ]
    return counts, stored(events)


@pytest.mark.parametrize("kernel_type", ["v1", "v1_ll", "async_ll"])
def test_figures_are_those_of_the_counts(kernel_type: KernelType) -> None:
    counts, snapshot = routed(kernel_type)
    for one in counts.ranks:
        moved = phase_bytes(counts.config, one, "dispatch")
        seen = figures(snapshot, one.rank)
        assert seen["claimed"].gbps is None
        assert seen["algo"].gbps == pytest.approx(moved.rdma_algo / LATENCY_US / 1e3)
        assert seen["physical"].gbps == pytest.approx(moved.rdma_physical_rule / LATENCY_US / 1e3)
        # v1's rows are known by the rule algo × (n − 1) ÷ n, the others' exactly.
        wire = moved.wire_sent / LATENCY_US / 1e3
        assert seen["wire"].gbps == pytest.approx(wire, rel=0.1 if kernel_type == "v1" else 1e-9)
        xgmi = figures(snapshot, one.rank, "xgmi")
        assert xgmi["received"].gbps == pytest.approx(moved.xgmi / LATENCY_US / 1e3)
        share = (one.recv_tokens - one.recv_tokens_own) / one.recv_tokens
        assert xgmi["others'"].gbps == pytest.approx(moved.xgmi * share / LATENCY_US / 1e3)
        scale = 64 * 4 / (one.recv_tokens + 1)
        assert xgmi["LL"].gbps == pytest.approx(moved.xgmi * scale / LATENCY_US / 1e3)


def test_combine_moves_the_same_tokens_the_other_way() -> None:
    _, snapshot = routed("async_ll")
    rank = snapshot.ranks[0]
    both = replace(rank, combine=rank.dispatch)
    job = Job.of(snapshot.config)
    dispatch, combine = (
        {one.name: one for one in figures_of(both, phase, "rdma", job, UNKNOWN_RATES)}
        for phase in ("dispatch", "combine")
    )
    assert combine["physical"].gbps == dispatch["physical"].gbps
    # A dispatched row carries 8 bytes a selection and 4 more; a combined one elements alone.
    sent, back = dispatch["wire"].gbps, combine["wire"].gbps
    assert sent is not None
    assert back == pytest.approx(sent * 1024 / (1024 + 8 * 4 + 4))


def test_a_printed_bandwidth_above_the_line_is_explained() -> None:
    snapshot = case_23(num_nodes=2, world_size=16, gpu_per_node=8)
    seen = figures(snapshot, 0, rates=LineRates(50))
    assert seen["claimed"].gbps == 77
    # 252 GB/s of 26452 tokens, of which 8163 are RDMA's
    assert seen["algo"].gbps == pytest.approx(252 * 8163 / 26452)
    assert seen["physical"].gbps == pytest.approx(252 * 8163 / 26452 / 2)
    assert seen["wire"].gbps is None
    assert [name for name, one in seen.items() if one.is_impossible] == ["claimed", "algo"]
    assert seen["claimed"].reason == "the local node is counted (algo); physical is 38.5."
    text = "\n".join(plain(line) for line in build(snapshot, Frame(120), None, LineRates(50)).lines())
    assert "! dispatch: algo of rank 0 is more than the line carries (50 GB/s)" in text
    assert "wire: the job does not tell kernel_type, hidden, topk, num_tokens, num_experts" in text
    assert (
        "rank 1, dispatch, claimed: 78.0 > 50 GB/s line: the local node is counted (algo); physical is 39.0."
        in text
    )


def test_without_the_number_of_nodes_physical_is_not_told() -> None:
    seen = figures(case_23(), 0, rates=LineRates(50))
    assert seen["physical"].gbps is None
    assert seen["claimed"].reason == "the local node is counted (algo); on two nodes physical is 38.5."
    text = "\n".join(plain(line) for line in build(case_23(), Frame(120)).lines())
    assert "physical: the job does not tell its nodes" in text


@pytest.mark.parametrize(
    ("line_gbps", "impossible"),
    [
        (200.0, []),
        (100.0, ["claimed"]),
        (50.0, ["claimed", "algo"]),
        (40.0, ["claimed", "algo", "physical", "wire"]),
    ],
)
def test_what_is_impossible_follows_from_the_line_rate(line_gbps: float, impossible: list[str]) -> None:
    seen = figures(TWO_NODES, 0, rates=LineRates(line_gbps))
    assert [name for name, one in seen.items() if one.is_impossible] == impossible


# the page


def test_on_one_node_nothing_crosses() -> None:
    rdma = BandwidthState(link="rdma")
    text = [
        plain(line)
        for line in build(ONE_NODE, Frame(100, 30), settled_state(ONE_NODE, rdma, UNKNOWN_RATES, 0.0)).lines()
    ]
    assert " one node: nothing crosses the network, every RDMA figure is –" in text
    assert not any(char.isdigit() for line in text[1:] for char in line)
    assert BandwidthState().link_on(ONE_NODE) == "xgmi"
    assert BandwidthState().link_on(TWO_NODES) == "rdma"


def test_what_cannot_be_told_is_said_once() -> None:
    text = "\n".join(plain(line) for line in whole(ONE_NODE, (120, 60), UNKNOWN_RATES))
    assert text.count("line rate unknown: --xgmi-line-gbps tells it") == 1
    assert text.count("claimed: the job printed none") == 1
    assert " claimed " not in text.replace("claimed: ", "")


def test_whole_numbers_are_said_to_be_cut_off() -> None:
    said = "claimed: printed as whole numbers, cut off"
    assert any(said in plain(line) for line in whole(TWO_NODES, (120, 40), UNKNOWN_RATES))
    exact = stored([replace_gbps(event, 111.25) for event in printed()])
    assert not any(said in plain(line) for line in whole(exact, (120, 40), UNKNOWN_RATES))


def replace_gbps(event: RecordEvent, gbps: float) -> RecordEvent:
    return msgspec.structs.replace(event, rdma_algo_gbps=gbps)


def test_claims_that_are_all_cut_off_to_0_take_no_rows() -> None:
    told = make_record(Plan(ranks=16, nodes=2, rounds=37, ends=False, tokens=4096, hidden=7168)).events
    cut_off = stored([*told, *(replace_gbps(event, 0.0) for event in printed())])
    shown = chart(cut_off, BandwidthState(), UNKNOWN_RATES)
    assert "claimed" not in shown.names
    assert "algo" in shown.names
    text = "\n".join(plain(line) for line in whole(cut_off, (120, 40), UNKNOWN_RATES))
    assert "claimed: printed as whole numbers, cut off, all of them to 0" in text
    assert "the job printed none" not in text


def test_the_mean_comes_first_and_says_the_sum() -> None:
    shown = chart(TWO_NODES, BandwidthState(), UNKNOWN_RATES)
    assert [block.rank for block in shown.blocks] == [MEAN, *range(16)]
    told = [one.phases[0][1].gbps or 0 for one in shown.blocks[1:]]
    mean = shown.figure(shown.row_of(MEAN, "algo"), 0)
    assert mean.gbps == pytest.approx(sum(told) / 16)
    assert mean.how == f"mean of 16 ranks; together {sum(told):.1f} GB/s"


def test_rows_and_figures_find_each_other_and_the_filter_holds() -> None:
    state = BandwidthState(filter=parse_filter("3,5"))
    shown = chart(TWO_NODES, state, UNKNOWN_RATES)
    assert [shown.at(row) for row in range(4, 8)] == [(3, name) for name in NAMES["rdma"]]
    assert shown.row_of(5, "wire") == 11
    assert shown.row_of(99, "wire") == 3
    assert len(sheet(TWO_NODES, state, UNKNOWN_RATES).rows) == 2 * 2


def test_the_detail_says_how_the_figure_comes_about() -> None:
    state = settled_state(TWO_NODES, BandwidthState(rank=3, name="wire"), LineRates(50), 0.0)
    page = build(TWO_NODES, Frame(120, 30), state, LineRates(50))
    rank = TWO_NODES.ranks[3]
    rows = f"{(rank.rdma_tokens_algo or 0) / 2:.1f}".removesuffix(".0")
    detail = plain(page.foot[1])
    assert detail.startswith(" rank 3 · dispatch · wire: ")
    assert f"= {rows} rows × 14372 B (v1) in {rank.dispatch.latency_us:.1f} µs" in detail


def test_one_phase_is_part_of_both() -> None:
    both = chart(TWO_NODES, BandwidthState(), UNKNOWN_RATES)
    for at, phase in enumerate(both.phases):
        one = both.only(phase)
        assert one.phases == (phase,)
        assert [block.rank for block in one.blocks] == [block.rank for block in both.blocks]
        assert [block.phases[0] for block in one.blocks] == [block.phases[at] for block in both.blocks]


def test_the_axis_stands_still_for_a_second() -> None:
    first = settled_state(TWO_NODES, BandwidthState(), UNKNOWN_RATES, 10.0)
    fast = stored([*make_record(Plan(ranks=16, nodes=2, rounds=2, ends=False)).events])
    assert settled_state(fast, first, UNKNOWN_RATES, 10.0 + RESCALE_S / 2).axis == first.axis
    assert settled_state(fast, first, UNKNOWN_RATES, 10.0 + RESCALE_S).axis != first.axis


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
@pytest.mark.parametrize(
    ("value", "passes"), [(None, False), (0.0, False), (49.0, False), (80.0, True), (500.0, True)]
)
def test_the_rule_goes_through_every_bar(glyphs: Glyphs, value: float | None, passes: bool) -> None:
    axis = settled_state(TWO_NODES, BandwidthState(), LineRates(50), 0.0).axis
    assert axis is not None
    scale = Scale(axis, 30, 50.0, glyphs)
    text = "".join(run.text for run in scale.bar(value, "text"))
    assert len(text) == 30
    assert text[scale.rule_at or 0] == glyphs.bar
    assert (text[(scale.rule_at or 0) + 1] != " ") == passes
    ticks = plain(scale.ticks())
    assert "50" in ticks.split()
    assert len(ticks) <= 30


def test_a_sheet_has_both_links_and_phases() -> None:
    made = sheet(TWO_NODES, BandwidthState(), UNKNOWN_RATES)
    assert list(made.columns[5:]) == [
        "rdma_claimed_gbps",
        "rdma_algo_gbps",
        "rdma_physical_gbps",
        "rdma_wire_gbps",
        "xgmi_claimed_gbps",
        "xgmi_received_gbps",
        "xgmi_others_gbps",
        "xgmi_ll_gbps",
    ]
    assert len(made.rows) == 32
    assert [row[2] for row in made.rows[:2]] == ["dispatch", "combine"]
    assert not any("rdma" in name for name in sheet(ONE_NODE, BandwidthState(), UNKNOWN_RATES).columns)
