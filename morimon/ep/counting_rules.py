"""DeepEP's and mori's way of counting the (token, node) pairs of one rank, each as its authors describe it.

Both give the number that their benchmarks divide by time for the RDMA bandwidth, local node included; they are
equal, and equal to `rdma_tokens_unique` of morimon.ep.counts. Slots of −1 count nowhere.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from morimon.ep.config import EpConfig

Routed = npt.NDArray[np.integer]


def deepep_rdma_tokens(config: EpConfig, topk_idx: Routed) -> int:
    """test_internode.py: replace experts by nodes, blank the repetitions in each row, count what is not −1."""
    rdma_idx = topk_idx // (config.num_experts // config.num_nodes)
    rdma_idx = np.where(topk_idx == -1, -1, rdma_idx)
    rdma_idx = np.sort(rdma_idx, axis=1)
    repeated = rdma_idx[:, 1:] == rdma_idx[:, :-1]
    rdma_idx[:, 1:][repeated] = -1
    return int(np.count_nonzero(rdma_idx != -1))


def mori_rdma_tokens(config: EpConfig, topk_idx: Routed) -> int:
    """compute_rdma_algo_token_count: mark the nodes that each token visits in a table, count the marks."""
    node_idx = topk_idx // (config.experts_per_rank * config.gpu_per_node)
    node_presence = np.zeros((len(topk_idx), config.num_nodes), dtype=bool)
    token, slot = np.nonzero(topk_idx >= 0)
    node_presence[token, node_idx[token, slot]] = True
    return int(node_presence.sum())
