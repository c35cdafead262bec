"""The routing that DeepEP's tests/legacy/test_internode.py draws, number by number, when it runs on a CPU.

Each rank seeds torch with its rank, draws its bf16 tokens first (which only moves the generator on), then scores
of abs(randn) + 1 for every token and expert; keeps the experts of the best min(nodes, 4) nodes by their best
expert; and takes the top-k of these. print_bw_values.py counts exactly this routing.

Scores are computed quickly, to within a few units of the last place. Tokens whose choice hangs on less than
that are computed once more, exactly, ties included.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from morimon.ep.config import ConfigError, EpConfig
from morimon.ep.torch_rng import Floats, TorchCpuGenerator
from morimon.ep.torch_topk import topk

MAX_TOPK_GROUPS = 4
_CLOSE = np.float32(4e-6)  # scores stay below 7, where a unit of the last place is 4.8e-7
_BLOCK_SCORES = 1 << 20
_MOST_SCORES = 1 << 28  # 1 GiB of them


def topk_groups(config: EpConfig) -> int:
    """Number of nodes that one token may reach."""
    return min(config.num_nodes, MAX_TOPK_GROUPS)


def topk_idx(config: EpConfig, seed: int, rank: int) -> npt.NDArray[np.int32]:
    """Experts [num_tokens, topk] of the tokens of `rank`, which seeds torch with seed + rank; DeepEP's seed is 0."""
    reachable = topk_groups(config) * config.experts_per_node
    if config.topk > reachable:
        raise ConfigError(
            f"A token of DeepEP's test reaches {topk_groups(config)} nodes with {reachable} experts: "
            f"a top-k of {config.topk} is too many."
        )
    if config.num_tokens * config.num_experts > _MOST_SCORES:
        raise ConfigError(
            f"DeepEP's test draws a score for each of {config.num_tokens} tokens and {config.num_experts} experts: "
            f"that is more than {_MOST_SCORES} a rank; choose another routing or fewer tokens."
        )
    generator = TorchCpuGenerator(seed + rank)
    generator.skip_randn_bf16(config.num_tokens * config.hidden)
    scores = generator.randn(config.num_tokens * config.num_experts)
    chosen = np.empty((config.num_tokens, config.topk), dtype=np.int32)
    rows = max(1, _BLOCK_SCORES // config.num_experts)
    for start in range(0, config.num_tokens, rows):
        stop = min(start + rows, config.num_tokens)
        quick = scores.quick(start * config.num_experts, stop * config.num_experts)
        chosen[start:stop], close = _choose(config, _positive(quick).reshape(stop - start, -1))
        for token in np.flatnonzero(close) + start:
            exact = scores.exact(token * config.num_experts, (token + 1) * config.num_experts)
            chosen[token] = _choose_exactly(config, _positive(exact))
    return chosen


def _positive(normal: Floats) -> Floats:
    positive: Floats = np.abs(normal)
    positive += np.float32(1)
    return positive


def _choose(config: EpConfig, scores: Floats) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Experts [tokens, topk] by scores [tokens, num_experts], and which tokens are too close to call."""
    close = np.zeros(len(scores), dtype=bool)
    if topk_groups(config) < config.num_nodes:
        grouped = scores.reshape(len(scores), config.num_nodes, -1)
        nodes, close = _largest(grouped.max(axis=2), topk_groups(config))
        reached = np.zeros((len(scores), config.num_nodes, 1), dtype=bool)
        np.put_along_axis(reached, nodes[:, :, None], True, axis=1)
        scores = (grouped * reached).reshape(scores.shape)
    experts, close_experts = _largest(scores, config.topk)
    return experts, close | close_experts


def _largest(scores: Floats, k: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Places of the k largest of each row, and the rows where the next one is as good as these."""
    size = scores.shape[1]
    if k == size:
        return np.broadcast_to(np.arange(size), scores.shape), np.zeros(len(scores), dtype=bool)
    order = np.argpartition(scores, (size - k - 1, size - k), axis=1)
    border = np.take_along_axis(scores, order[:, size - k - 1 : size - k + 1], axis=1)
    return order[:, size - k :], border[:, 1] - border[:, 0] < _CLOSE


def _choose_exactly(config: EpConfig, scores: Floats) -> list[int]:
    """Experts of one token by its scores [num_experts], as torch chooses among equal ones."""
    if topk_groups(config) < config.num_nodes:
        grouped = scores.reshape(config.num_nodes, -1)
        reached = topk(grouped.max(axis=1).tolist(), topk_groups(config))
        grouped[np.setdiff1d(np.arange(config.num_nodes), reached)] = 0
    return topk(scores.tolist(), config.topk)
