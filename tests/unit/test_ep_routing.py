from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from morimon.ep.config import ConfigError, EpConfig
from morimon.ep.counts import tally
from morimon.ep.routing import ROUTINGS, route

RANDOM_7_3 = [[13, 17, 23, 7], [23, 28, 14, 29], [0, 9, 17, 4]]
SKEWED_7_3 = [[13, 1, 0, 17], [23, 14, 28, 3], [0, 9, 4, 17]]
SMALL = EpConfig(gpu_per_node=4, num_tokens=50, hidden=16, num_experts=32, topk=4)


@pytest.mark.parametrize("routing", ROUTINGS)
def test_routing_has_its_shape_and_names_experts_that_exist(routing: str) -> None:
    topk_idx = route(SMALL, routing, seed=1, rank=2)  # type: ignore[arg-type]  # parametrized over the literals
    assert topk_idx.shape == (50, 4)
    assert topk_idx.dtype == np.int32
    assert topk_idx.min() >= 0
    assert topk_idx.max() < 32


@pytest.mark.parametrize("routing", ["random", "skewed", "deepep"])
def test_drawn_experts_are_distinct_and_depend_on_seed_and_rank_alone(routing: str) -> None:
    def draw(seed: int, rank: int) -> list[list[int]]:
        drawn: list[list[int]] = route(SMALL, routing, seed=seed, rank=rank).tolist()  # type: ignore[arg-type]
        return drawn

    assert all(len(set(row)) == 4 for row in draw(1, 2))
    assert draw(1, 2) == draw(1, 2)
    assert draw(1, 2) != draw(1, 3)
    assert draw(1, 2) != draw(2, 2)


def test_draws_stay_the_same_from_version_to_version() -> None:
    # A job and its viewer may run on different machines and versions of numpy, and must agree.
    assert route(SMALL, "random", seed=7, rank=3)[:3].tolist() == RANDOM_7_3
    assert route(SMALL, "skewed", seed=7, rank=3)[:3].tolist() == SKEWED_7_3


def test_more_tokens_begin_with_the_same_ones() -> None:
    few = EpConfig(num_tokens=100, hidden=16)
    many = EpConfig(num_tokens=10_000, hidden=16)
    assert np.array_equal(route(few, "random", seed=0, rank=1), route(many, "random", seed=0, rank=1)[:100])


def test_random_takes_all_experts_where_topk_asks_for_all() -> None:
    config = EpConfig(gpu_per_node=2, num_tokens=20, num_experts=8, topk=8)
    rows = route(config, "random", seed=0, rank=0)
    assert np.array_equal(np.sort(rows, axis=1), np.tile(np.arange(8), (20, 1)))
    assert len({tuple(row) for row in rows.tolist()}) > 10, "their order is random"


def test_skewed_loads_the_first_ranks() -> None:
    config = EpConfig(num_tokens=4000)
    loads = tally(config, route(config, "skewed", seed=0, rank=5)).to_expert.reshape(8, -1).sum(axis=1)
    assert np.all(np.diff(loads) < 0)
    share = loads[0] / loads.sum()
    assert share == pytest.approx(np.sqrt(1 / 8), abs=0.06), "expert e is drawn about as 1/√(e+1)"


@given(
    nodes=st.integers(1, 3),
    gpus=st.integers(1, 4),
    per_rank=st.integers(1, 5),
    tokens=st.integers(1, 12),
    data=st.data(),
)
def test_turns_are_taken_as_mori_takes_them(
    nodes: int, gpus: int, per_rank: int, tokens: int, data: st.DataObject
) -> None:
    world = nodes * gpus
    topk = data.draw(st.integers(1, world * per_rank))
    rank = data.draw(st.integers(0, world - 1))
    config = EpConfig(
        num_nodes=nodes,
        gpu_per_node=gpus,
        num_tokens=tokens,
        num_experts=world * per_rank,
        topk=topk,
        kernel_type="v1",
    )
    in_turn = route(config, "round_robin", seed=0, rank=rank)
    for i in range(tokens):
        for j in range(topk):
            assert in_turn[i, j] == ((rank * tokens + i) * topk + j) % config.num_experts
    if topk > (world - 1) * per_rank:
        with pytest.raises(ConfigError, match="remote_round_robin"):
            route(config, "remote_round_robin", seed=0, rank=rank)
        return
    remote = route(config, "remote_round_robin", seed=0, rank=rank)
    for i in range(tokens):
        for j in range(topk):
            turn, place = divmod(i * topk + j, world - 1)
            assert remote[i, j] // per_rank == (rank + 1 + place) % world
            assert remote[i, j] % per_rank == turn % per_rank
    assert not np.any(remote // per_rank == rank), "nothing stays at home"


def test_spread_reaches_every_rank_and_all_to_one_a_single_one() -> None:
    config = EpConfig(num_tokens=10, hidden=16)
    spread = tally(config, route(config, "spread", seed=0, rank=3))
    assert spread.to_rank.tolist() == [10] * 8
    one = tally(config, route(config, "all_to_one", seed=0, rank=3))
    assert one.to_rank.tolist() == [10] + [0] * 7
    assert one.to_expert[0] == 80


@pytest.mark.parametrize(
    ("config", "routing", "seed", "rank", "sentence"),
    [
        (SMALL, "random", 0, 4, "There is no rank 4 among 4 ranks."),
        (SMALL, "random", -1, 0, "The seed must not be negative, but is -1."),
        (
            EpConfig(gpu_per_node=2, topk=8),
            "spread",
            0,
            0,
            "Routing spread needs a top-k equal to the number of ranks (2), not 8.",
        ),
        (
            EpConfig(gpu_per_node=1),
            "remote_round_robin",
            0,
            0,
            "Routing remote_round_robin needs at least 2 ranks.",
        ),
        (
            EpConfig(num_experts=1 << 17),
            "random",
            0,
            0,
            "Random routing reaches up to 65536 experts, not 131072.",
        ),
        (
            EpConfig(num_tokens=10**9),
            "round_robin",
            0,
            0,
            "Routing is drawn for up to 33554432 experts of a rank's tokens, not for 1000000000 × 8.",
        ),
        (
            EpConfig(num_tokens=1 << 22),
            "deepep",
            0,
            0,
            "DeepEP's test draws a score for each of 4194304 tokens and 256 experts: that is more than 268435456 a rank; choose another routing or fewer tokens.",
        ),
        (
            EpConfig(num_nodes=8, gpu_per_node=1, num_experts=8, kernel_type="v1"),
            "deepep",
            0,
            0,
            "A token of DeepEP's test reaches 4 nodes with 4 experts: a top-k of 8 is too many.",
        ),
    ],
)
def test_patterns_that_do_not_fit_are_refused(
    config: EpConfig, routing: str, seed: int, rank: int, sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        route(config, routing, seed=seed, rank=rank)  # type: ignore[arg-type]
    assert str(caught.value) == sentence
