"""The exchange on CPUs: rows packed for one uneven all-to-all of torch.distributed's gloo, and back the same way."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from morimon.bench.backend import Arrival, Combined
from morimon.bench.data import Batch, destinations
from morimon.bench.options import Options
from morimon.bench.rows import TORCH_DTYPES, encode, pack, unpack
from morimon.bench.spans import Spans


@dataclass(frozen=True)
class _Handle:
    """What a combine must know of its dispatch: the tokens sent, grouped by destination, and the rows a peer."""

    num_tokens: int
    sent_tokens: torch.Tensor
    sent: list[int]
    received: list[int]


class GlooBackend:
    """A rank of torch.distributed's default group."""

    platform = "CPU"

    def __init__(self, options: Options, spans: Spans) -> None:
        dist.init_process_group("gloo")
        self.rank = dist.get_rank()
        self._options = options
        self._spans = spans
        self._world_size = dist.get_world_size()

    def dispatch(self, batch: Batch) -> Arrival:
        """Layout, counts, rows: everything between the tokens here and the rows there is timed."""
        config = self._options.ep
        start = time.perf_counter()
        slot = self._spans.slot
        with slot("dispatch_layout"):
            destination, token = destinations(self._options, batch.topk_idx).t().nonzero(as_tuple=True)
            sent = destination.bincount(minlength=self._world_size)
        with slot("dispatch_counts"):
            each = [1] * self._world_size
            received = self._all_to_all(sent, each, each)
            handle = _Handle(batch.num_tokens, token, sent.tolist(), received.tolist())
        with slot("dispatch_pack"):
            source = torch.arange(batch.num_tokens) + self.rank * config.num_tokens
            packed = pack(encode(config, batch, source))[token]
        with slot("dispatch_rows"):
            arrived = self._all_to_all(packed, handle.sent, handle.received)
        with slot("dispatch_unpack"):
            rows = unpack(config, arrived)
        return Arrival(rows, (time.perf_counter() - start) * 1e6, handle)

    def combine(self, arrival: Arrival, outputs: torch.Tensor) -> Combined:
        """Rows back to their sources, and one sum a token, in fp32."""
        start = time.perf_counter()
        handle = arrival.handle
        assert isinstance(handle, _Handle)
        dtype = TORCH_DTYPES[self._options.ep.combine_dtype]
        with self._spans.slot("combine_rows"):
            # gloo moves bytes; what they mean is the same on both ends
            rows = outputs.to(dtype).contiguous().view(torch.uint8)
            back = self._all_to_all(rows, handle.received, handle.sent).view(dtype)
        with self._spans.slot("combine_sum"):
            sums = torch.zeros(handle.num_tokens, outputs.shape[1])
            sums.index_add_(0, handle.sent_tokens, back.to(torch.float32))
            tokens = sums.to(dtype)
        return Combined(tokens, (time.perf_counter() - start) * 1e6)

    def barrier(self) -> None:
        """All ranks of the group."""
        dist.barrier()

    def gather(self, figures: Sequence[float]) -> list[list[float]]:
        """By one collective of doubles."""
        mine = torch.tensor(figures, dtype=torch.float64)
        if self.rank:
            dist.gather(mine)
            return []
        everybody = [torch.empty_like(mine) for _ in range(self._world_size)]
        dist.gather(mine, everybody)
        return [one.tolist() for one in everybody]

    def close(self) -> None:
        """Destroy the default group."""
        dist.destroy_process_group()

    def _all_to_all(self, rows: torch.Tensor, sent: list[int], received: list[int]) -> torch.Tensor:
        arrived = rows.new_empty((sum(received), *rows.shape[1:]))
        dist.all_to_all_single(arrived, rows, received, sent)
        return arrived
