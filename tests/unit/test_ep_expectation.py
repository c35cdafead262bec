from __future__ import annotations

from itertools import combinations

import msgspec
import numpy as np
import pytest

from morimon.ep.config import EpConfig, KernelType
from morimon.ep.counts import RankCounts
from morimon.ep.expectation import expect
from morimon.ep.predict import predict, routes

FIELDS = ("recv_tokens", "rdma_tokens_algo", "rdma_tokens_physical", "wire_tokens_sent")
CROSSING: tuple[KernelType, ...] = ("v1", "v1_ll", "async_ll")


@pytest.mark.parametrize(
    ("nodes", "recv", "algo", "wire", "ll"),
    [
        (2, 6.52, 1.993, (0.997, 1, 3.26), 1.226),
        (4, 7.27, 3.61, (2.71, 3, 5.45), 1.10),
        (8, 7.68, 5.30, (4.63, 7, 6.72), 1.04),
    ],
)
def test_known_averages_of_8_of_256_experts(
    nodes: int, recv: float, algo: float, wire: tuple[float, float, float], ll: float
) -> None:
    for kernel_type, sent in zip(CROSSING, wire, strict=True):
        config = EpConfig(num_nodes=nodes, kernel_type=kernel_type)
        expectation = expect(config)
        assert expectation.recv_tokens.mean / 4096 == pytest.approx(recv, abs=0.005)
        assert expectation.wire_tokens_sent.mean / 4096 == pytest.approx(sent, abs=0.005)
        assert expectation.ll_scale == pytest.approx(ll, abs=0.005)
        due = nodes if kernel_type == "v1_ll" else algo
        assert expectation.rdma_tokens_algo.mean / 4096 == pytest.approx(due, abs=0.006)


@pytest.mark.parametrize("kernel_type", CROSSING)
def test_mean_and_deviation_over_all_choices_of_a_small_job(kernel_type: KernelType) -> None:
    # One token a rank; every choice of 3 of 12 experts is as likely as any other: enumerate them.
    config = EpConfig(
        num_nodes=3, gpu_per_node=2, num_tokens=1, num_experts=12, topk=3, kernel_type=kernel_type
    )
    choices = [np.array([choice]) for choice in combinations(range(12), 3)]
    idle = np.full((1, 3), -1)
    drawn = [predict(config, [choice, *[idle] * 5]).ranks for choice in choices]
    expectation = expect(config)
    for field in FIELDS[1:]:
        values = [getattr(ranks[0], field) for ranks in drawn]
        assert getattr(expectation, field).mean == pytest.approx(np.mean(values))
        assert getattr(expectation, field).sigma == pytest.approx(np.std(values), abs=1e-7)
    one_source = [ranks[4].recv_tokens for ranks in drawn]
    assert expectation.recv_tokens.mean == pytest.approx(6 * np.mean(one_source))
    assert expectation.recv_tokens.sigma == pytest.approx(np.sqrt(6) * np.std(one_source))


@pytest.mark.parametrize("kernel_type", CROSSING)
def test_drawn_counts_stray_as_far_as_they_should(kernel_type: KernelType) -> None:
    config = EpConfig(
        num_nodes=4, gpu_per_node=4, num_tokens=64, hidden=16, num_experts=64, topk=6, kernel_type=kernel_type
    )
    ranks: list[RankCounts] = []
    draws = 40
    for seed in range(draws):
        ranks += predict(config, routes(config, "random", seed)).ranks
    expectation = expect(config)
    for field in FIELDS:
        values = np.array([getattr(one, field) for one in ranks], dtype=float)
        due = getattr(expectation, field)
        assert values.mean() == pytest.approx(due.mean, abs=5 * due.sigma / np.sqrt(len(values)) + 1e-9)
        assert values.std() == pytest.approx(due.sigma, rel=0.15, abs=1e-9)


def test_a_single_node_expects_nothing_to_cross() -> None:
    expectation = expect(EpConfig(num_nodes=1, num_tokens=100))
    assert expectation.rdma_tokens_algo.mean == 100
    assert msgspec.to_builtins(expectation.wire_tokens_sent) == {"mean": 0.0, "sigma": 0.0}
