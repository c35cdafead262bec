"""mori's printed lines, today's form and those of old logs."""

from __future__ import annotations

import pytest

from morimon.model.config import JobConfig
from morimon.model.events import Configured, PhaseDone, Progress, Tokens
from tests.support.parsing import CASES, lines_of, only, parse

Row = tuple[int, str, int, float, float | None, float | None]

TODAY = """Round 0
  dispatch duration [1500, 1510] avg 1505.00 µs
  dispatch rdma bandwidth [77, 78] avg 77.76 GB/s
  dispatch bandwidth [252, 251] avg 251.97 GB/s
Round 1
  dispatch duration [1040, 1043] avg 1043.21 µs
  dispatch rdma bandwidth [111, 112] avg 112.05 GB/s
  dispatch bandwidth [362, 366] avg 364.88 GB/s
  combine duration [1600, 1601] avg 1600.50 µs
  combine rdma bandwidth [70, 71] avg 70.50 GB/s
  combine bandwidth [240, 241] avg 240.50 GB/s
  combine duration [1300, 1301] avg 1300.50 µs
  combine rdma bandwidth [80, 81] avg 80.50 GB/s
  combine bandwidth [250, 251] avg 250.50 GB/s
"""


def rows(text: str | bytes) -> list[Row]:
    return [
        (e.round, e.phase, e.rank, e.latency_us, e.xgmi_gbps, e.rdma_algo_gbps)
        for e in only(PhaseDone, parse(text))
    ]


def test_todays_form_numbers_combines_by_counting() -> None:
    assert rows(TODAY) == [
        (-1, "dispatch", 0, 1500, 252, 77),
        (-1, "dispatch", 1, 1510, 251, 78),
        (1, "dispatch", 0, 1040, 362, 111),
        (1, "dispatch", 1, 1043, 366, 112),
        (-1, "combine", 0, 1600, 240, 70),
        (-1, "combine", 1, 1601, 241, 71),
        (1, "combine", 0, 1300, 250, 80),
        (1, "combine", 1, 1301, 251, 81),
    ]


def test_combine_may_follow_its_dispatch_at_once() -> None:
    text = "".join(
        f"Round {i}\n  dispatch duration [{i}00] avg 1 µs\n  dispatch bandwidth [1] avg 1 GB/s\n"
        f"  combine duration [{i}50] avg 1 µs\n  combine bandwidth [1] avg 1 GB/s\n"
        for i in range(1, 4)
    )
    assert [row[:4] for row in rows(text)] == [
        (1, "dispatch", 0, 100),
        (1, "combine", 0, 150),
        (2, "dispatch", 0, 200),
        (2, "combine", 0, 250),
        (3, "dispatch", 0, 300),
        (3, "combine", 0, 350),
    ]


def test_a_second_benchmark_counts_anew() -> None:
    again = [row[:4] for row in rows(TODAY + TODAY)]
    assert again == [row[:4] for row in rows(TODAY)] * 2


def test_a_cut_benchmark_does_not_shift_the_next() -> None:
    cut = TODAY[: TODAY.index("  combine duration [1300")]
    assert [row[:4] for row in rows(cut + TODAY)][-8:] == [row[:4] for row in rows(TODAY)]


@pytest.mark.parametrize(
    ("since", "text", "expected"),
    [
        (
            "2025-06-30",
            (
                "Round 2 dispatch duration [1040, 1043] bandwidth [100, 102] avg 101\n"
                "Round 2 combine duration [1300, 1301] bandwidth [80, 82] avg 81\n"
            ),
            [
                (2, "dispatch", 0, 1040, 100, None),
                (2, "dispatch", 1, 1043, 102, None),
                (2, "combine", 0, 1300, 80, None),
                (2, "combine", 1, 1301, 82, None),
            ],
        ),
        (
            "2025-07-28",
            (
                "Round 2 dispatch duration [1040] bandwidth [100] avg 1043.2 µs avg 101.2 GB/s\n"
                "Round 2 combine  duration [1300] bandwidth [80] avg 1300.2 µs avg 81.2 GB/s\n"
            ),
            [(2, "dispatch", 0, 1040, 100, None), (2, "combine", 0, 1300, 80, None)],
        ),
        (
            "2025-10-27",
            (
                "Round 2\n  dispatch duration [1040] avg 1043.21 µs\n  rdma bandwidth [111] avg 112.05 GB/s\n"
                "  bandwidth [362] avg 364.88 GB/s\nRound 2\n  combine duration [1300] avg 1 µs\n"
                "  rdma bandwidth [70] avg 70.50 GB/s\n  bandwidth [240] avg 240.50 GB/s\n"
            ),
            [(2, "dispatch", 0, 1040, 362, 111), (2, "combine", 0, 1300, 240, 70)],
        ),
    ],
)
def test_older_forms(since: str, text: str, expected: list[Row]) -> None:
    assert rows(text) == expected, since


@pytest.mark.parametrize(
    ("since", "line", "latency", "bandwidth"),
    [
        ("2025-07-07", "Round 3 duration(us) [902, 903] bandwidth(GB/s) [416, 417] avg bytes(MB) 296.27 bw 366(400)", 902, 416),
        ("2025-11-04", "Round 3 duration(us) [902, 903] bandwidth(GB/s) [416, 417]avg bytes(MB) 358.31 bw 416.02 / 510.33", 902, 416),
        ("2026-04-17", "Round 3 duration(us) [902.1, 903.4] bandwidth(GB/s) [416.11, 417.0] avg bytes(MB) 358.31 lat 903.0 bw 416.02 / 510.33", 902.1, 416.11),
    ],
)  # fmt: skip
def test_intranode_rounds(since: str, line: str, latency: float, bandwidth: float) -> None:
    text = f"Dispatch result:\n{line}\n\nCombine result:\n{line}\n\nEnd-to-end result:\n{line}\n"
    assert [row for row in rows(text) if row[2] == 0] == [
        (3, "dispatch", 0, latency, bandwidth, None),
        (3, "combine", 0, latency, bandwidth, None),
    ], since
    assert len(rows(text)) == 4


def test_intranode_banner() -> None:
    text = (
        "Running bench with max_tokens_per_rank: 4096, dispatch_dtype: fp8_ocp, combine_dtype: bf16, "
        "hidden_dim: 7168, world_size(EP): 8, num_experts_per_rank: 32, num_experts_per_token: 8, "
        "zero_copy: true, quant_type: none, graph_replay_iters: None\n"
    )
    (told,) = only(Configured, parse(text))
    assert told.config == JobConfig(
        kernel_type="intranode", cmd="bench", world_size=8, num_nodes=1, gpu_per_node=8, num_tokens=4096,
        hidden=7168, topk=8, num_experts=256, dtype="fp8", combine_dtype="bf16",
    )  # fmt: skip


def test_configuration_is_told_once() -> None:
    text = "I'm pe 0 in 16 pes\nI'm pe 1 in 16 pes\n|  Dispatch Performance (bfloat16)  |\n"
    assert [e.config for e in only(Configured, parse(text))] == [
        JobConfig(world_size=16),
        JobConfig(dtype="bf16"),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rank 8 recv 26757 tokens 8166 rdma tokens", (8, 26757, 8166)),
        ("rank 3 recv 26452 tokens", (3, 26452, None)),
        ("rank 2 got 4096 tokens received 26452 tokens", (2, 26452, None)),
        ("Rank 0: sent 128 tokens, received 830", (0, 830, None)),
    ],
)
def test_token_lines(line: str, expected: tuple[int, int, int | None]) -> None:
    events = parse(line)
    assert [(e.rank, e.recv_tokens, e.rdma_tokens_algo) for e in only(Tokens, events)] == [expected]
    assert lines_of(events) == [(expected[0], "info", 1)]


def test_records_that_are_glued_into_one_line() -> None:
    text = (
        "rank 1 recv 11 tokens 4 rdma tokensrank 2 recv 12 tokens 5 rdma tokens\n\n"
        "Round 4  dispatch duration [5] avg 5.00 µs  dispatch bandwidth [6] avg 6.00 GB/s\n"
    )
    assert [(e.rank, e.recv_tokens) for e in only(Tokens, parse(text))] == [(1, 11), (2, 12)]
    assert rows(text) == [(4, "dispatch", 0, 5, 6, None)]


def test_half_lines_behind_prefixes() -> None:
    text = (
        "[default0]:[testing] Running with BF16 ...[default2]:rank 2 recv 20000 tokens 8000 rdma tokens\n"
        "[default0]: passed\n[1,3]<stdout>:rank 3 recv 7 tokens 1 rdma tokens\n"
    )
    events = parse(text)
    assert [(e.rank, e.recv_tokens) for e in only(Tokens, events)] == [(2, 20000), (3, 7)]
    assert lines_of(events) == [(0, "info", 1), (0, "info", 1), (3, "info", 1)]


def test_duration_lines_alone_are_rows_too() -> None:
    text = "".join(f"Round {i}\n  dispatch duration {[100 + i] * 8} avg {100 + i}.00 µs\n" for i in range(10))
    told = rows(text)
    assert [row[0] for row in told[::8]] == [-1, *range(1, 10)]
    assert [row[3] for row in told[::8]] == [100 + i for i in range(10)]


def test_test_rounds_tuning_and_warm_ups() -> None:
    text = (
        "WarmUp Round 0 begin\nRound 12 begin\nRound 12 gen test_data done\n"
        "Sentinel round 4 begin (pattern='every_other')\n"
        "[38/75] block_num=128, warp=8, rdma_block_num=64\n"
    )
    assert [(e.done, e.total, e.label) for e in only(Progress, parse(text))] == [
        (12, None, "test rounds"),
        (4, None, "sentinel rounds"),
        (38, 75, "tuning block_num=128, warp=8, rdma_block_num=64"),
    ]


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("rank 3 expected token num 26452 got 26451", "error"),
        ("rank:  3 error times:  0 appear round:  set()", "info"),
        ("rank:  3 error times:  2 appear round:  {4, 7}", "error"),
        ("Weight mismatch for token 7:", "error"),
        ("[2026-08-21 17:09:32.123] [4711] [application] [error] no device", "error"),
        ("[2026-08-21 17:09:32.123] [4711] [application] [info] rank 3 rankInNode 3 select no device", "warning"),
        ("  ct=128   [hip] CHECK FAIL (2/8 ranks, worst 0.1)", "error"),
        ("# PARITY ct=64: FAIL (recv=1)", "error"),
        ("# PARITY ct=64: PASS (recv=1)", "info"),
        ("[mori] Warning: MORI_SOCKET_IFNAME=eth9 specified but interface not found", "warning"),
    ],
)  # fmt: skip
def test_levels(line: str, level: str) -> None:
    assert lines_of(parse(line))[0][1] == level


def test_case_16_ansi() -> None:
    events = parse((CASES / "16_ansi_in_log.log").read_bytes())
    assert [(e.rank, e.recv_tokens) for e in only(Tokens, events)] == [(0, 10), (1, 11)]


def test_case_17_brackets() -> None:
    data = (CASES / "17_brackets_are_not_markup.log").read_bytes()
    events = parse(data)
    assert [(e.rank, e.recv_tokens, e.rdma_tokens_algo) for e in only(Tokens, events)] == [(3, 5, 2)]
    assert (0, "error", 1) in lines_of(events)


def test_case_18_carriage_returns() -> None:
    events = parse((CASES / "18_carriage_returns.log").read_bytes())
    assert [(e.done, e.total, e.label) for e in only(Progress, events)] == [(4, 4, "warm-up")]
    assert [(e.rank, e.recv_tokens) for e in only(Tokens, events)] == [(0, 8), (1, 9)]


def test_case_23_algo_figures() -> None:
    assert rows((CASES / "23_algo_vs_physical.log").read_bytes()) == [
        (-1, "dispatch", 0, 1500, 252, 77),
        (-1, "dispatch", 1, 1510, 251, 78),
    ]
