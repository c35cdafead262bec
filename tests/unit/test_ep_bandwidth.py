from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from morimon.ep.bandwidth import (
    ALL_CROSSES,
    algo_counted,
    bandwidth,
    gbps,
    judge,
    ll_scale,
    rdma_of_total,
    xgmi_counted,
)
from morimon.ep.config import Dtype, EpConfig
from morimon.ep.counts import RankCounts
from morimon.ep.imbalance import imbalance
from morimon.ep.predict import predict, routes
from morimon.ep.volume import DEEPEP_FP8_FACTOR, element_bytes, phase_bytes, row_bytes, scale_bytes

TWO_NODES = EpConfig(num_nodes=2, kernel_type="v1")


def counted(recv: int, algo: int, physical: int, sent: int, received: int) -> RankCounts:
    return RankCounts(
        rank=0,
        node=0,
        local_rank=0,
        num_tokens=4096,
        recv_tokens=recv,
        recv_tokens_own=recv,
        recv_tokens_same_node=0,
        recv_tokens_forwarded=0,
        rdma_tokens_algo=algo,
        rdma_tokens_unique=algo,
        rdma_tokens_physical=physical,
        rdma_tokens_physical_rule=algo / 2,
        wire_tokens_sent=sent,
        wire_tokens_received=received,
    )


@pytest.mark.parametrize(
    ("dtype", "elements", "scales"),
    [("bf16", 14336, 0), ("fp32", 28672, 0), ("fp8", 7168, 224), ("fp4", 3584, 224)],
)
def test_bytes_of_a_row(dtype: Dtype, elements: int, scales: int) -> None:
    config = EpConfig(dtype=dtype, combine_dtype=dtype)
    assert element_bytes(config.hidden, dtype) == elements
    assert scale_bytes(config) == scales
    assert row_bytes(config, "dispatch") == elements + 8 * 8 + scales + 4
    assert row_bytes(config, "combine") == elements


def test_rows_of_moris_own_test_carry_196_bytes_beside() -> None:
    config = EpConfig(num_nodes=2, kernel_type="v1", scale_dim=32, scale_type_size=4)
    assert row_bytes(config, "dispatch") - element_bytes(7168, "bf16") == 196


def test_combine_may_carry_weights() -> None:
    assert row_bytes(EpConfig(combine_weights=True), "combine") == 14336 + 32


def test_fp8_with_its_scales_is_deepeps_factor_of_bf16() -> None:
    config = EpConfig(dtype="fp8")
    assert element_bytes(7168, "fp8") + scale_bytes(config) == DEEPEP_FP8_FACTOR * element_bytes(7168, "bf16")


def test_combine_reverses_dispatch() -> None:
    counts = counted(recv=26452, algo=8163, physical=4081, sent=4081, received=4085)
    config = EpConfig(num_nodes=2, kernel_type="v1", combine_dtype="fp32")
    dispatch, combine = (phase_bytes(config, counts, phase) for phase in ("dispatch", "combine"))
    assert (dispatch.xgmi, dispatch.rdma_algo, dispatch.rdma_physical) == (379215872, 117024768, 4081 * 14336)
    assert combine.xgmi == 2 * dispatch.xgmi, "fp32 rows are twice as long"
    assert (dispatch.wire_sent, dispatch.wire_received) == (4081 * 14404, 4085 * 14404)
    assert (combine.wire_sent, combine.wire_received) == (4085 * 28672, 4081 * 28672)


@given(
    recv=st.integers(1, 10**6),
    share=st.floats(0, 1),
    duration_us=st.floats(1, 1e6),
    hidden=st.integers(1, 16384),
)
def test_rdma_is_total_times_its_share_of_tokens(
    recv: int, share: float, duration_us: float, hidden: int
) -> None:
    algo = int(recv * share)
    config = EpConfig(num_nodes=2, kernel_type="v1", hidden=hidden)
    figures = bandwidth(phase_bytes(config, counted(recv, algo, 0, 0, 0), "dispatch"), duration_us, 1.0)
    assert rdma_of_total(figures.xgmi_gbps, algo, recv) == pytest.approx(
        figures.rdma_algo_gbps, rel=1e-9, abs=0
    )


def test_rdma_share_holds_for_every_rank_of_a_job() -> None:
    config = EpConfig(num_nodes=2, gpu_per_node=4, num_tokens=200, hidden=128, kernel_type="v1")
    for one in predict(config, routes(config, "random", 3)).ranks:
        for phase in ("dispatch", "combine"):
            figures = bandwidth(phase_bytes(config, one, phase), 37.5, ll_scale(config, one.recv_tokens))
            assert rdma_of_total(figures.xgmi_gbps, one.rdma_tokens_algo, one.recv_tokens) == pytest.approx(
                figures.rdma_algo_gbps, rel=1e-9, abs=0
            )
            assert figures.ll_gbps == pytest.approx(200 * 8 * 128 * 2 / 37.5e3, rel=2e-3), (
                "every selection counts"
            )


def test_no_tokens_no_bandwidth() -> None:
    assert rdma_of_total(0.0, 0, 0) == 0


def test_gigabytes_are_decimal() -> None:
    assert gbps(10**9, 10**6) == 1
    assert gbps(379215872, 1054) == pytest.approx(359.787, abs=1e-3)


@pytest.mark.parametrize(
    ("claimed", "local", "percent", "reason"),
    [
        (45.0, True, 90, None),
        (
            90.0,
            True,
            180,
            "90.0 GB/s claimed > 50 GB/s line: the local node is counted (algo); physical is 45.0.",
        ),
        (
            111.0,
            True,
            222,
            "111.0 GB/s claimed > 50 GB/s line: the local node is counted (algo); physical is 55.5, still above: is the dtype counted right? Rows of half the bytes would make 27.8.",
        ),
        (
            300.0,
            True,
            600,
            "300.0 GB/s claimed > 50 GB/s line: the local node is counted (algo); physical is 150.0, still above: is the duration that of the whole phase, and the line rate that of all its ports?",
        ),
        (
            60.0,
            False,
            120,
            "60.0 GB/s claimed > 50 GB/s line: is the dtype counted right? Rows of half the bytes would make 30.0.",
        ),
    ],
)
def test_more_than_the_line_carries_is_impossible_for_a_reason(
    claimed: float, local: bool, percent: float, reason: str | None
) -> None:
    verdict = judge(claimed, 50, algo_counted(2) if local else ALL_CROSSES)
    assert verdict.percent == pytest.approx(percent)
    assert verdict.impossible is (reason is not None)
    assert verdict.reason == reason


def test_tokens_of_the_rank_itself_cross_no_link() -> None:
    counts = msgspec.structs.replace(counted(1000, 0, 0, 0, 0), recv_tokens_own=100)
    verdict = judge(400, 380, xgmi_counted(counts.recv_tokens, counts.recv_tokens_own))
    assert verdict.reason == (
        "400.0 GB/s claimed > 380 GB/s line: the rank's own tokens are counted; without them it is 360.0."
    )


def test_imbalance_of_even_and_lopsided_loads() -> None:
    even, one, none = imbalance([5, 5, 5, 5]), imbalance([0, 0, 8, 0]), imbalance([0, 0])
    assert (even.max_over_mean, even.jain) == (1, 1)
    assert (one.max_over_mean, one.jain) == (4, 0.25)
    assert (none.max_over_mean, none.jain) == (1, 1)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=50).filter(any))
def test_imbalance_stays_within_its_bounds(load: list[int]) -> None:
    spread = imbalance(load)
    assert 1 - 1e-9 <= spread.max_over_mean <= len(load) + 1e-9
    assert 1 / len(load) - 1e-9 <= spread.jain <= 1 + 1e-9
