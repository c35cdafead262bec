"""What uniform random routing gives on average, in closed form, and how far a draw strays from it.

A token that picks `topk` of E experts, without repetition and all alike, misses a set of m experts with the
probability C(E−m, topk) / C(E, topk). Everything here follows from that, tokens being independent.
"""

from __future__ import annotations

from math import comb, sqrt

import msgspec

from morimon.ep.config import EpConfig


class Expected(msgspec.Struct, frozen=True):
    """A count of one rank: its mean and standard deviation over draws."""

    mean: float
    sigma: float


class Expectation(msgspec.Struct, frozen=True):
    """Counts of one rank under uniform routing; wire counts are those sent, by the configured kernel type."""

    recv_tokens: Expected
    rdma_tokens_algo: Expected
    rdma_tokens_physical: Expected
    wire_tokens_sent: Expected
    ll_scale: float


def expect(config: EpConfig) -> Expectation:
    """Expectation for any one rank of the job."""
    tokens, nodes, gpus = config.num_tokens, config.num_nodes, config.gpu_per_node
    remote_ranks = config.world_size - gpus
    reached = _hits(config, config.experts_per_rank, config.world_size)
    unique = _hits(config, config.experts_per_node, nodes)
    physical = _hits(config, config.experts_per_node, nodes - 1)
    one_rank = _hits(config, config.experts_per_rank, 1)
    recv = Expected(reached.mean * tokens, one_rank.sigma * sqrt(tokens * config.world_size))
    algo, wire = _over_tokens(unique, tokens), _over_tokens(physical, tokens)
    match config.kernel_type:
        case "v1_ll":
            algo, wire = Expected(tokens * nodes, 0.0), Expected(tokens * (nodes - 1), 0.0)
        case "async_ll":
            wire = _over_tokens(_hits(config, config.experts_per_rank, remote_ranks), tokens)
    return Expectation(
        recv_tokens=recv,
        rdma_tokens_algo=algo,
        rdma_tokens_physical=_over_tokens(physical, tokens),
        wire_tokens_sent=wire,
        ll_scale=config.topk / reached.mean,
    )


def _hits(config: EpConfig, experts: int, places: int) -> Expected:
    """How many of `places` disjoint sets of `experts` experts one token reaches."""
    hit = 1 - _misses(config, experts)
    both = 1 - 2 * _misses(config, experts) + _misses(config, 2 * experts)
    variance = places * hit * (1 - hit) + places * (places - 1) * (both - hit**2)
    return Expected(places * hit, sqrt(max(variance, 0.0)))


def _misses(config: EpConfig, experts: int) -> float:
    if experts > config.num_experts:
        return 0.0
    return comb(config.num_experts - experts, config.topk) / comb(config.num_experts, config.topk)


def _over_tokens(one: Expected, tokens: int) -> Expected:
    return Expected(one.mean * tokens, one.sigma * sqrt(tokens))
