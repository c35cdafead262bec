"""Token counts against a count by hand, token by token."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from morimon.ep.config import KERNEL_TYPES, ConfigError, EpConfig
from morimon.ep.counting_rules import deepep_rdma_tokens, mori_rdma_tokens
from morimon.ep.counts import RankCounts, count, tally
from morimon.ep.predict import predict, routes

Routing = list[npt.NDArray[np.int64]]


@st.composite
def jobs(draw: st.DrawFn) -> tuple[EpConfig, Routing]:
    """Any shape, with −1 entries, repeated experts and ranks of different token counts."""
    nodes, gpus, per_rank = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    kernel_type = draw(st.sampled_from(KERNEL_TYPES if nodes == 1 else KERNEL_TYPES[1:]))
    experts = nodes * gpus * per_rank
    topk = draw(st.integers(1, min(experts, 6)))
    config = EpConfig(
        num_nodes=nodes,
        gpu_per_node=gpus,
        num_tokens=6,
        num_experts=experts,
        topk=topk,
        kernel_type=kernel_type,
    )
    row = st.lists(st.integers(-1, experts - 1), min_size=topk, max_size=topk)
    routing = [
        np.array(draw(st.lists(row, max_size=6)), dtype=np.int64).reshape(-1, topk)
        for _ in range(config.world_size)
    ]
    return config, routing


def by_hand(config: EpConfig, routing: Routing) -> list[RankCounts]:
    """Counts by their definitions, from the destination ranks of each token."""
    nodes, world = config.num_nodes, range(config.world_size)
    reached = [
        [{int(e) // config.experts_per_rank for e in row if e >= 0} for row in topk_idx]
        for topk_idx in routing
    ]
    result = []
    for r in world:
        own_node = config.node_of(r)
        peers = [s for s in world if s != r and config.local_rank_of(s) == config.local_rank_of(r)]
        to_nodes = [{config.node_of(d) for d in ranks} for ranks in reached[r]]
        here = {s: sum(r in ranks for ranks in reached[s]) for s in world}
        unique = sum(map(len, to_nodes))
        physical = sum(len(found - {own_node}) for found in to_nodes)
        algo, sent, received = unique, physical, 0
        match config.kernel_type:
            case "v1":
                received = sum(
                    own_node in {config.node_of(d) for d in ranks} for s in peers for ranks in reached[s]
                )
            case "v1_ll":
                algo, sent = len(routing[r]) * nodes, len(routing[r]) * (nodes - 1)
                received = sum(len(routing[s]) for s in peers)
            case "async_ll":
                sent = sum(config.node_of(d) != own_node for ranks in reached[r] for d in ranks)
                received = sum(here[s] for s in world if config.node_of(s) != own_node)
        result.append(
            RankCounts(
                rank=r,
                node=own_node,
                local_rank=config.local_rank_of(r),
                num_tokens=len(routing[r]),
                recv_tokens=sum(here.values()),
                recv_tokens_own=here[r],
                recv_tokens_same_node=sum(here[s] for s in world if s != r and config.node_of(s) == own_node),
                recv_tokens_forwarded=sum(here[s] for s in world if config.node_of(s) != own_node),
                rdma_tokens_algo=algo,
                rdma_tokens_unique=unique,
                rdma_tokens_physical=physical,
                rdma_tokens_physical_rule=algo * (nodes - 1) / nodes,
                wire_tokens_sent=sent,
                wire_tokens_received=received,
            )
        )
    return result


@given(jobs())
def test_counts_are_those_counted_by_hand(job: tuple[EpConfig, Routing]) -> None:
    config, routing = job
    assert list(predict(config, routing).ranks) == by_hand(config, routing)


@given(jobs())
def test_deepep_and_mori_count_the_same(job: tuple[EpConfig, Routing]) -> None:
    config, routing = job
    for one, topk_idx in zip(predict(config, routing).ranks, routing, strict=True):
        assert (
            deepep_rdma_tokens(config, topk_idx)
            == mori_rdma_tokens(config, topk_idx)
            == one.rdma_tokens_unique
        )


@given(jobs())
def test_nothing_is_lost_between_ranks(job: tuple[EpConfig, Routing]) -> None:
    config, routing = job
    counts = predict(config, routing)
    assert sum(one.wire_tokens_sent for one in counts.ranks) == sum(
        one.wire_tokens_received for one in counts.ranks
    )
    for one in counts.ranks:
        assert one.recv_tokens == (
            one.recv_tokens_own + one.recv_tokens_same_node + one.recv_tokens_forwarded
        )
    assert counts.to_rank.sum() == sum(one.recv_tokens for one in counts.ranks)
    assert counts.to_node.sum() == sum(one.rdma_tokens_unique for one in counts.ranks)
    assert counts.to_expert.sum() == sum(int((topk_idx >= 0).sum()) for topk_idx in routing)


def test_one_node_crosses_nothing() -> None:
    config = EpConfig(num_tokens=40, hidden=16)
    for one in predict(config, routes(config, "random", 0)).ranks:
        assert one.rdma_tokens_algo == 40
        assert one.rdma_tokens_physical == one.wire_tokens_sent == one.wire_tokens_received == 0
        assert one.recv_tokens_forwarded == 0


def test_small_integer_types_count_alike() -> None:
    config = EpConfig(gpu_per_node=2, num_experts=4, topk=2, num_tokens=3)
    routing = [[[0, 3], [-1, 1], [2, -1]], [[3, 3], [-1, -1], [0, 1]]]
    wide, narrow = (
        predict(config, [np.array(one, dtype=dtype) for one in routing]) for dtype in (np.int64, np.int8)
    )
    assert wide.ranks == narrow.ranks
    assert wide.to_rank.tolist() == [[2, 2], [1, 1]]
    assert wide.to_expert.tolist() == [2, 2, 1, 3]


@pytest.mark.parametrize(
    ("topk_idx", "sentence"),
    [
        (np.zeros(4, dtype=np.int64), "Routing of one rank is [tokens, topk], not of shape [4]."),
        (
            np.array([[0, 256]]),
            "Routing names experts from 0 to 256: allowed are 0 to 255, and -1 for an empty slot.",
        ),
        (
            np.array([[-2, 3]]),
            "Routing names experts from -2 to 3: allowed are 0 to 255, and -1 for an empty slot.",
        ),
    ],
)
def test_routing_that_cannot_be_is_refused(topk_idx: npt.NDArray[np.int64], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tally(EpConfig(), topk_idx)
    assert str(caught.value) == sentence


def test_every_rank_must_be_there() -> None:
    config = EpConfig()
    with pytest.raises(ConfigError, match="Routing is there for 1 ranks of 8"):
        count(config, [tally(config, np.zeros((1, 8), dtype=np.int64))])
