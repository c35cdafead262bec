"""Counts of a whole job from its configuration and routing, rank after rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from morimon.ep.config import EpConfig
from morimon.ep.counts import Counts, Tally, count, tally
from morimon.ep.routing import Routing, TopkIdx, route


def routes(config: EpConfig, routing: Routing, seed: int) -> Iterator[TopkIdx]:
    """Routing of each rank in turn, drawn when it is asked for."""
    return (route(config, routing, seed=seed, rank=rank) for rank in range(config.world_size))


def predict(config: EpConfig, topk_idx: Iterable[npt.NDArray[np.integer]]) -> Counts:
    """Counts of the job whose ranks route by `topk_idx`, one array [tokens, topk] for each rank.

    No more than one rank's routing need be in memory.
    """
    tallies: list[Tally] = [tally(config, one) for one in topk_idx]
    return count(config, tallies)
