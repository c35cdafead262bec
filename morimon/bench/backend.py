"""What the job asks of a backend: dispatch and combine among ranks, each timed by itself, and three plain collectives.

The job knows no process group, buffer or stream. A backend on GPUs keeps its peers' buffers in a table of pointers,
whoever allocated them (symmetric memory, IPC handles, one process of logical ranks), and brings the barrier that its
buffers allow; nothing of this shows here. Rows may arrive in any order: they are told apart by their source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from morimon.bench.data import Batch
from morimon.bench.rows import Rows


@dataclass(frozen=True)
class Arrival:
    """Rows that a dispatch brought; `handle` is the backend's own way back to their sources."""

    rows: Rows
    latency_us: float
    handle: object


@dataclass(frozen=True)
class Combined:
    """A rank's tokens again, [T, hidden] of the combine dtype, each the sum of what its destinations sent back."""

    tokens: torch.Tensor
    latency_us: float


class Backend(Protocol):
    """One rank's end of the exchange."""

    @property
    def rank(self) -> int:
        """This rank."""
        ...

    @property
    def platform(self) -> str:
        """What the figures are measured on, shown beside them: CPU, GPU, EMULATED GPU."""
        ...

    def dispatch(self, batch: Batch) -> Arrival:
        """Send each token's row once to every rank that holds one of its experts. Collective; returns when done."""
        ...

    def combine(self, arrival: Arrival, outputs: torch.Tensor) -> Combined:
        """Send `outputs` [rows, hidden], one for each row of `arrival`, back and add them up. Collective."""
        ...

    def barrier(self) -> None:
        """Return once every rank is here."""
        ...

    def gather(self, figures: Sequence[float]) -> list[list[float]]:
        """Everybody's figures, by rank, on rank 0; an empty list on the others. Collective."""
        ...

    def close(self) -> None:
        """Leave the group."""
        ...
