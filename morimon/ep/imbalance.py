"""How evenly a load is spread."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt


class Imbalance(msgspec.Struct, frozen=True):
    """`max_over_mean` is 1 for an even load and n where one of n carries all; `jain` is 1 and 1/n."""

    max_over_mean: float
    jain: float


def imbalance(load: npt.ArrayLike) -> Imbalance:
    """Imbalance of a load, one figure for each that carries it; a load of nothing is even."""
    figures = np.asarray(load, dtype=np.float64)
    total = figures.sum()
    if not total:
        return Imbalance(1.0, 1.0)
    return Imbalance(
        max_over_mean=float(figures.max() * figures.size / total),
        jain=float(total**2 / (figures.size * (figures**2).sum())),
    )
