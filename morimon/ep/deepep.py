"""The routing that DeepEP's tests/legacy/test_internode.py draws, number by number, when it runs on a CPU.

Each rank seeds torch with its rank, draws its bf16 tokens first (which only moves the generator on), then scores
of abs(randn) + 1 for every token and expert; keeps the experts of the best min(nodes, 4) nodes by their best
expert; and takes the top-k of these. print_bw_values.py counts exactly this routing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from morimon.ep.config import ConfigError, EpConfig
from morimon.ep.torch_rng import TorchCpuGenerator

MAX_TOPK_GROUPS = 4


def topk_groups(config: EpConfig) -> int:
    """Number of nodes that one token may reach."""
    return min(config.num_nodes, MAX_TOPK_GROUPS)


def topk_idx(config: EpConfig, seed: int, rank: int) -> npt.NDArray[np.int32]:
    """Experts [num_tokens, topk] of rank's tokens; seed 0 is what DeepEP draws, seed s what manual_seed(s + rank) does."""
    reachable = topk_groups(config) * config.experts_per_node
    if config.topk > reachable:
        raise ConfigError(
            f"A token of DeepEP's test reaches {topk_groups(config)} nodes with {reachable} experts: "
            f"top-k of {config.topk} is too many."
        )
    generator = TorchCpuGenerator(seed + rank)
    generator.skip_randn_bf16(config.num_tokens * config.hidden)
    scores = generator.randn(config.num_tokens * config.num_experts).reshape(config.num_tokens, -1)
    np.abs(scores, out=scores)
    scores += np.float32(1)
    if topk_groups(config) < config.num_nodes:
        grouped = scores.reshape(config.num_tokens, config.num_nodes, -1)
        best = np.argpartition(-grouped.max(axis=2), topk_groups(config) - 1, axis=1)[
            :, : topk_groups(config)
        ]
        kept = np.zeros((config.num_tokens, config.num_nodes, 1), dtype=bool)
        np.put_along_axis(kept, best[:, :, None], True, axis=1)
        grouped *= kept
    return np.argpartition(-scores, config.topk - 1, axis=1)[:, : config.topk].astype(np.int32)
