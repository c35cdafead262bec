"""Who sends how many tokens to whom, as arrays: rank × rank, its sums, its blocks, and the load of every expert.

All counts are those of one dispatch, as the ranks themselves told them; a sender that has told nothing is unknown, not
silent: its row is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from morimon.store.snapshot import RankSnapshot, RunSnapshot

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Matrix:
    """`tokens[s, d]` from rank s to rank d; `experts[e]` rows on expert e, None where no sender told."""

    tokens: Floats
    experts: Floats | None
    gpu_per_node: int | None
    told_by: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    """What the senders told, to know again a snapshot that says the same."""

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return len(self.tokens)

    @property
    def senders(self) -> int:
        """Ranks that told what they send."""
        return int((~np.isnan(self.tokens[:, 0])).sum()) if self.world_size else 0

    @cached_property
    def sent(self) -> Floats:
        """[world_size] tokens that each rank sends, NaN where unknown."""
        return np.asarray(self.tokens.sum(axis=1))

    @cached_property
    def received(self) -> Floats:
        """[world_size] tokens that each rank receives; of the senders that told only."""
        return np.asarray(np.nansum(self.tokens, axis=0))

    @cached_property
    def mean(self) -> float:
        """Tokens of a pair of ranks, on average over the senders that told."""
        return float(np.nanmean(self.tokens))

    @property
    def experts_of_ranks(self) -> Floats | None:
        """[world_size, experts of a rank] rows; None where unknown, or where experts are not spread evenly."""
        if self.experts is None or not self.world_size or len(self.experts) % self.world_size:
            return None
        return self.experts.reshape(self.world_size, -1)


def matrix_of(snapshot: RunSnapshot, before: Matrix | None = None) -> Matrix:
    """The matrix of a snapshot; `before` itself where the ranks still say the same."""
    told_by = tuple((rank.to_ranks, rank.to_experts) for rank in snapshot.ranks)
    gpus = snapshot.config.gpu_per_node
    if (
        before is not None
        and before.gpu_per_node == gpus
        and len(before.told_by) == len(told_by)
        and all(a is c and b is d for (a, b), (c, d) in zip(before.told_by, told_by, strict=True))
    ):
        return before
    world = max((len(rank.to_ranks) for rank in snapshot.ranks), default=0)
    tokens = np.full((world, world), np.nan)
    for rank in snapshot.ranks:
        if len(rank.to_ranks) == world and rank.rank < world:
            tokens[rank.rank] = rank.to_ranks
    return Matrix(tokens, _experts(snapshot.ranks), gpus, told_by)


def _experts(ranks: Sequence[RankSnapshot]) -> Floats | None:
    experts = max((len(rank.to_experts) for rank in ranks), default=0)
    told = [rank.to_experts for rank in ranks if len(rank.to_experts) == experts]
    return np.sum(np.array(told, dtype=np.float64), axis=0) if experts else None


def blocks(tokens: Floats, per: int) -> Floats:
    """The mean of each block of `per` × `per` rank pairs, over the pairs that are known; NaN where none is."""
    if per == 1:
        return tokens
    edges = np.arange(0, len(tokens), per)
    known = ~np.isnan(tokens)

    def summed(values: Floats) -> Floats:
        by_rows: Floats = np.add.reduceat(values, edges, axis=0)
        both: Floats = np.add.reduceat(by_rows, edges, axis=1)
        return both

    counts = summed(known.astype(np.float64))
    sums = summed(np.where(known, tokens, 0.0))
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def cell_sizes(world: int, gpu_per_node: int | None) -> list[int]:
    """How many ranks a cell may stand for, growing: parts of a node, then whole nodes, so that no border is crossed."""
    gpus = gpu_per_node if gpu_per_node and world % gpu_per_node == 0 else 1
    parts = [size for size in range(1, gpus + 1) if gpus % size == 0]
    return parts + [gpus * nodes for nodes in range(2, world // gpus + 1)]
