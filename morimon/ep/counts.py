"""Token counts of a job, from the routing of all its ranks.

A token goes once to every distinct rank that holds one of its experts (its destination ranks D) and so to the
distinct nodes of these ranks (N); slots of −1 count nowhere. Three tables say all that is counted:
`to_rank[r, d]`, the tokens of rank r with rank d in D; `to_node[r, m]`, those with node m in N; and `tokens[r]`.

| count (of rank r)   | intranode                     | v1                       | v1_ll      | async_ll                |
| ------------------- | ----------------------------- | ------------------------ | ---------- | ----------------------- |
| recv_tokens         | tokens of all ranks with r in D (own + same_node + forwarded), for every kernel type           |
| rdma_tokens_algo    | Σ #N (tokens, at one node)    | Σ #N                     | tokens × n | Σ #N                    |
| rdma_tokens_unique  | Σ #N, DeepEP's rule, for every kernel type                                                     |
| rdma_tokens_physical| Σ #(N without r's own node): 0 at one node, for every kernel type                              |
| wire sent           | 0                             | = physical               | tokens×(n−1)| Σ #(D outside own node)|
| wire received       | 0                             | peers' tokens with own node in N | peers' tokens | remote tokens with r in D |

rdma_tokens_algo is the second number of mori's line `rank 8 recv 26757 tokens 8166 rdma tokens`.
Peers are the ranks of the same local rank on the other nodes: v1 and v1_ll send between these.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from morimon.ep.config import ConfigError, EpConfig

Ints = npt.NDArray[np.int64]


class Tally(msgspec.Struct, frozen=True, eq=False):
    """What one rank sends: everything about its routing that a count depends on."""

    tokens: int
    to_rank: Ints  # [world_size] tokens with a destination there
    to_node: Ints  # [num_nodes]
    to_expert: Ints  # [num_experts] filled slots


class RankCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one rank; the wire's are those of the configured kernel type."""

    rank: int
    node: int
    local_rank: int
    num_tokens: int
    recv_tokens: int
    recv_tokens_own: int
    recv_tokens_same_node: int
    recv_tokens_forwarded: int
    rdma_tokens_algo: int
    rdma_tokens_unique: int
    rdma_tokens_physical: int
    rdma_tokens_physical_rule: float
    wire_tokens_sent: int
    wire_tokens_received: int


class Counts(msgspec.Struct, frozen=True, eq=False):
    """Counts of a whole job."""

    config: EpConfig
    ranks: tuple[RankCounts, ...]
    to_rank: Ints  # [world_size, world_size] source × destination
    to_node: Ints  # [world_size, num_nodes]
    to_expert: Ints  # [num_experts]


def tally(config: EpConfig, topk_idx: npt.NDArray[np.integer]) -> Tally:
    """Tally the routing of one rank, [tokens, topk] with −1 for empty slots.

    Raises ConfigError for another shape or for experts that do not exist.
    """
    if topk_idx.ndim != 2:
        raise ConfigError(f"Routing of one rank is [tokens, topk], not of shape {list(topk_idx.shape)}.")
    if topk_idx.size and not (topk_idx.min() >= -1 and topk_idx.max() < config.num_experts):
        raise ConfigError(
            f"Routing names experts from {topk_idx.min()} to {topk_idx.max()}: "
            f"allowed are 0 to {config.num_experts - 1}, and -1 for an empty slot."
        )
    tokens = topk_idx.shape[0]
    experts = topk_idx[topk_idx >= 0]
    # One column is spare: −1 lands there, for every divisor, by indexing from the end.
    ranks = np.zeros((tokens, config.world_size + 1), dtype=bool)
    np.put_along_axis(ranks, topk_idx // config.experts_per_rank, True, axis=1)
    ranks = ranks[:, :-1]
    nodes = ranks.reshape(tokens, config.num_nodes, config.gpu_per_node).any(axis=2)
    return Tally(
        tokens=tokens,
        to_rank=np.count_nonzero(ranks, axis=0).astype(np.int64),
        to_node=np.count_nonzero(nodes, axis=0).astype(np.int64),
        to_expert=np.bincount(experts, minlength=config.num_experts).astype(np.int64),
    )


def count(config: EpConfig, tallies: Sequence[Tally]) -> Counts:
    """Counts of the job whose rank r sends `tallies[r]`."""
    if len(tallies) != config.world_size:
        raise ConfigError(f"Routing is there for {len(tallies)} ranks of {config.world_size}.")
    tokens = np.array([one.tokens for one in tallies], dtype=np.int64)
    to_rank = np.stack([one.to_rank for one in tallies])
    to_node = np.stack([one.to_node for one in tallies])
    nodes, gpus = config.num_nodes, config.gpu_per_node
    node = np.arange(config.world_size) // gpus
    same_node = node[:, None] == node[None, :]

    unique = to_node.sum(axis=1)
    physical = unique - to_node[np.arange(config.world_size), node]
    own = to_rank.diagonal()
    from_node = np.where(same_node, to_rank, 0).sum(axis=0)
    received = to_rank.sum(axis=0)
    match config.kernel_type:
        case "intranode" | "v1":
            # [node, local rank, destination node]: what peers send here is a column sum without the own node.
            to_peer = to_node.reshape(nodes, gpus, nodes)
            here = np.einsum("sld->dl", to_peer) - np.einsum("dld->dl", to_peer)
            algo, sent, arrived = unique, physical, here.reshape(-1)
        case "v1_ll":
            peers = tokens.reshape(nodes, gpus).sum(axis=0)
            algo, sent, arrived = tokens * nodes, tokens * (nodes - 1), np.tile(peers, nodes) - tokens
        case "async_ll":
            remote = np.where(same_node, 0, to_rank)
            algo, sent, arrived = unique, remote.sum(axis=1), remote.sum(axis=0)

    return Counts(
        config=config,
        ranks=tuple(
            RankCounts(
                rank=rank,
                node=config.node_of(rank),
                local_rank=config.local_rank_of(rank),
                num_tokens=int(tokens[rank]),
                recv_tokens=int(received[rank]),
                recv_tokens_own=int(own[rank]),
                recv_tokens_same_node=int(from_node[rank] - own[rank]),
                recv_tokens_forwarded=int(received[rank] - from_node[rank]),
                rdma_tokens_algo=int(algo[rank]),
                rdma_tokens_unique=int(unique[rank]),
                rdma_tokens_physical=int(physical[rank]),
                rdma_tokens_physical_rule=int(algo[rank]) * (nodes - 1) / nodes,
                wire_tokens_sent=int(sent[rank]),
                wire_tokens_received=int(arrived[rank]),
            )
            for rank in range(config.world_size)
        ),
        to_rank=to_rank,
        to_node=to_node,
        to_expert=np.sum([one.to_expert for one in tallies], axis=0),
    )
