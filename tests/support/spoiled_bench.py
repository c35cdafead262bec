"""The built-in job with a fault: rank 1 sees one bit of its third uneven exchange flipped. Started by torchrun."""

from __future__ import annotations

import sys

import torch

from morimon.bench.__main__ import main
from morimon.bench.gloo import GlooBackend

exchange = GlooBackend._all_to_all
seen = 0


def spoiled(self: GlooBackend, rows: torch.Tensor, sent: list[int], received: list[int]) -> torch.Tensor:
    """The real exchange, and one bit."""
    global seen
    arrived = exchange(self, rows, sent, received)
    seen += rows.dtype == torch.uint8
    if self.rank == 1 and seen == 3:
        arrived[4, 0] ^= 1
        seen += 1
    return arrived


GlooBackend._all_to_all = spoiled  # type: ignore[method-assign]
sys.exit(main(sys.argv[1:]))
