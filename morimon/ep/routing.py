"""Which experts the tokens of a rank go to, from (configuration, name, seed, rank) alone.

`route` gives an int32 array [num_tokens, topk] of expert numbers, −1 for an empty slot.
The same arguments give the same array in every process, on every machine and with every numpy version:
only raw words of a bit generator and integer arithmetic are used, never numpy's distributions.

The patterns random, round_robin, remote_round_robin, spread and all_to_one mean what they mean in mori's
bench_dispatch_combine.py (random draws other numbers than the GPU's generator does);
skewed is random with hot experts; deepep is, number by number, what DeepEP's test_internode.py draws on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from morimon.ep import deepep
from morimon.ep.config import ConfigError, EpConfig

Routing = Literal["random", "round_robin", "remote_round_robin", "spread", "all_to_one", "skewed", "deepep"]
ROUTINGS: tuple[Routing, ...] = get_args(Routing)

TopkIdx: TypeAlias = npt.NDArray[np.int32]

_ID_BITS = np.uint64(16)
_ID_MASK = np.uint64(0xFFFF)
_MAX_EXPERTS = 1 << 16
_BLOCK_WORDS = 1 << 20
_MOST_SLOTS = 1 << 25


def route(config: EpConfig, routing: Routing, *, seed: int, rank: int) -> TopkIdx:
    """Expert numbers [num_tokens, topk] of the tokens of `rank`.

    Raises ConfigError where the pattern does not fit the configuration.
    """
    if not 0 <= rank < config.world_size:
        raise ConfigError(f"There is no rank {rank} among {config.world_size} ranks.")
    if seed < 0:
        raise ConfigError(f"The seed must not be negative, but is {seed}.")
    if config.num_tokens * config.topk > _MOST_SLOTS:
        raise ConfigError(
            f"Routing is drawn for up to {_MOST_SLOTS} experts of a rank's tokens, "
            f"not for {config.num_tokens} × {config.topk}."
        )
    return _PATTERNS[routing](config, seed, rank)


def _random(config: EpConfig, seed: int, rank: int) -> TopkIdx:
    return _draw(config, seed, rank, None)


def _skewed(config: EpConfig, seed: int, rank: int) -> TopkIdx:
    """Expert e is drawn about in proportion to 1/√(e+1): the first ranks carry the hot experts."""
    place = np.arange(1, config.num_experts + 1, dtype=np.float64)
    return _draw(config, seed, rank, np.ceil(256 / np.sqrt(place)).astype(np.uint64))


def _draw(config: EpConfig, seed: int, rank: int, weights: npt.NDArray[np.uint64] | None) -> TopkIdx:
    """Distinct experts for each token: those with the `topk` smallest random keys.

    A key holds random bits above and the expert's number below, so that no two are equal and the smallest keys
    say by themselves whose they are. Dividing the random bits by a weight makes an expert that much likelier.
    """
    experts = config.num_experts
    if experts > _MAX_EXPERTS:
        raise ConfigError(f"Random routing reaches up to {_MAX_EXPERTS} experts, not {experts}.")
    words = np.random.Philox(np.random.SeedSequence([seed, rank]))
    numbers = np.arange(experts, dtype=np.uint64)
    topk_idx = np.empty((config.num_tokens, config.topk), dtype=np.int32)
    block = max(1, _BLOCK_WORDS // experts)
    for start in range(0, config.num_tokens, block):
        rows = min(block, config.num_tokens - start)
        keys = words.random_raw(rows * experts).reshape(rows, experts) >> _ID_BITS
        if weights is not None:
            keys //= weights
        keys = keys << _ID_BITS | numbers
        if config.topk < experts:
            keys = np.partition(keys, config.topk - 1, axis=1)[:, : config.topk]
        keys.sort(axis=1)
        topk_idx[start : start + rows] = keys & _ID_MASK
    return topk_idx


def _round_robin(config: EpConfig, seed: int, rank: int) -> TopkIdx:
    """All experts in turn, over tokens and ranks."""
    del seed
    first = rank * config.num_tokens * config.topk
    return _int32((_slots(config) + first) % config.num_experts)


def _remote_round_robin(config: EpConfig, seed: int, rank: int) -> TopkIdx:
    """All other ranks in turn, and the experts of each in turn."""
    del seed
    others = config.world_size - 1
    if not others:
        raise ConfigError("Routing remote_round_robin needs at least 2 ranks.")
    if config.topk > others * config.experts_per_rank:
        raise ConfigError(
            f"Routing remote_round_robin cannot choose {config.topk} experts among the "
            f"{others * config.experts_per_rank} of the other ranks."
        )
    turn, destination = np.divmod(_slots(config), others)
    destination = (rank + 1 + destination) % config.world_size
    return _int32(destination * config.experts_per_rank + turn % config.experts_per_rank)


def _spread(config: EpConfig, seed: int, rank: int) -> TopkIdx:
    """The first expert of every rank: each rank receives every token once, the most there can be."""
    del seed, rank
    if config.topk != config.world_size:
        raise ConfigError(
            f"Routing spread needs a top-k equal to the number of ranks ({config.world_size}), not {config.topk}."
        )
    return np.tile(_int32(np.arange(config.topk) * config.experts_per_rank), (config.num_tokens, 1))


def _all_to_one(config: EpConfig, seed: int, rank: int) -> TopkIdx:
    """Expert 0 in every slot: rank 0 receives every token once."""
    del seed, rank
    return np.zeros((config.num_tokens, config.topk), dtype=np.int32)


def _slots(config: EpConfig) -> npt.NDArray[np.int64]:
    """Numbers of the top-k slots of one rank, [num_tokens, topk]."""
    return np.arange(config.num_tokens * config.topk, dtype=np.int64).reshape(config.num_tokens, config.topk)


def _int32(experts: npt.NDArray[np.integer]) -> TopkIdx:
    return experts.astype(np.int32)


_PATTERNS: dict[Routing, Callable[[EpConfig, int, int], TopkIdx]] = {
    "random": _random,
    "round_robin": _round_robin,
    "remote_round_robin": _remote_round_robin,
    "spread": _spread,
    "all_to_one": _all_to_one,
    "skewed": _skewed,
    "deepep": deepep.topk_idx,
}
