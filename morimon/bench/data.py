"""What every rank feeds into a round, from (options, round, rank) alone, so that any rank can say what another sent.

All values are small binary fractions: tokens are multiples of 1/64 within [-2, 2), weights multiples of 1/256 within
(0, 1], fp8 scales powers of two. Products and sums of up to some dozens of ranks are thus exact in fp32, and a correct
exchange gives the same bits in whatever order it adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from morimon.bench.options import Options
from morimon.ep.routing import route

_DATA, _SIZE = 1, 2  # streams of random numbers beside the routing's own


@dataclass(frozen=True)
class Batch:
    """One rank's input of one round."""

    tokens: torch.Tensor  # [T, hidden] fp32
    topk_idx: torch.Tensor  # [T, topk] int32, −1 for an empty slot
    weights: torch.Tensor  # [T, topk] fp32

    @property
    def num_tokens(self) -> int:
        """Tokens that the rank has in this round."""
        return self.tokens.shape[0]


@lru_cache(maxsize=512)
def _routing(options: Options, seed: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    topk_idx = torch.from_numpy(route(options.ep, options.routing, seed=seed, rank=rank))
    words = np.random.Philox(np.random.SeedSequence([seed, rank, _DATA])).random_raw(topk_idx.numel())
    weights = (words % np.uint64(256) + np.uint64(1)).astype(np.float32) / np.float32(256)
    return topk_idx, torch.from_numpy(weights).reshape(topk_idx.shape)


def batch(options: Options, round_: int, rank: int) -> Batch:
    """Input of `rank` in a round; round_ may be negative.

    In a stress job every round has a routing of its own and each rank its own number of tokens, 0 among them.
    """
    ep = options.ep
    stream = np.random.SeedSequence([options.seed, rank, round_ % (1 << 32)])
    bits: npt.NDArray[np.uint64] = np.random.Philox(stream).random_raw(-(-ep.num_tokens * ep.hidden // 8))
    values = torch.from_numpy(bits.view(np.int8))[: ep.num_tokens * ep.hidden]
    tokens = values.reshape(ep.num_tokens, ep.hidden).to(torch.float32) / 64
    if options.cmd != "stress":
        topk_idx, weights = _routing(options, options.seed, rank)
        return Batch(tokens, topk_idx, weights)
    topk_idx, weights = _routing(options, options.seed + round_ % (1 << 16), rank)
    size = int(np.random.Philox(stream.spawn(1)[0]).random_raw() % np.uint64(ep.num_tokens + 1))
    return Batch(tokens[:size], topk_idx[:size], weights[:size])


def destinations(options: Options, topk_idx: torch.Tensor) -> torch.Tensor:
    """Which ranks each token goes to, [T, world_size] bool, straight from its definition."""
    ranks = torch.div(topk_idx, options.ep.experts_per_rank, rounding_mode="floor")
    each = torch.arange(options.ep.world_size, dtype=ranks.dtype)
    return (ranks[:, :, None] == each).any(dim=1)


def weight_on(options: Options, topk_idx: torch.Tensor, weights: torch.Tensor, rank: int) -> torch.Tensor:
    """Summed weights [T] of those of a token's experts that live on `rank`; 1 for an unweighted combine."""
    if options.combine == "unweighted":
        return torch.ones(topk_idx.shape[0])
    first = rank * options.ep.experts_per_rank
    here = (topk_idx >= first) & (topk_idx < first + options.ep.experts_per_rank)
    return (weights * here).sum(dim=1)
