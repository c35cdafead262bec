"""What travels in a dispatched row, byte for byte: elements, scales, weights, indices, source; mori's xferBytes.

A row is `row_bytes(config, "dispatch")` bytes: hidden elements of the dispatch dtype, fp32 scales (fp8 alone: one for
128 elements), topk fp32 weights, topk int32 expert numbers, and the int32 number of the token in its world,
rank × max tokens + token.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn.functional import pad

from morimon.bench.data import Batch
from morimon.ep.config import EpConfig
from morimon.ep.volume import element_bytes, row_bytes, scale_bytes

TORCH_DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32, "fp8": torch.float8_e4m3fn}

_FP8_BLOCK = 128
_FP8_MAX = 448.0


@dataclass(frozen=True)
class Rows:
    """Rows with their columns apart."""

    elements: torch.Tensor  # [rows, hidden] of the dispatch dtype
    scales: torch.Tensor  # [rows, scales] fp32
    weights: torch.Tensor  # [rows, topk] fp32
    topk_idx: torch.Tensor  # [rows, topk] int32
    source: torch.Tensor  # [rows] int32

    def select(self, which: torch.Tensor) -> Rows:
        """The rows that `which` names, in its order."""
        return Rows(
            self.elements.view(torch.uint8)[which].view(self.elements.dtype),
            self.scales[which],
            self.weights[which],
            self.topk_idx[which],
            self.source[which],
        )

    def values(self) -> torch.Tensor:
        """The tokens that the rows stand for, [rows, hidden] fp32."""
        values = self.elements.to(torch.float32)
        if not self.scales.shape[1]:
            return values
        spread = self.scales.repeat_interleave(_FP8_BLOCK, dim=1)
        return values * spread[:, : values.shape[1]]


def encode(config: EpConfig, batch: Batch, source: torch.Tensor) -> Rows:
    """One row for each token of a batch; `source` [T] are the tokens' numbers."""
    dtype = TORCH_DTYPES[config.dtype]
    tokens, scales = batch.tokens, torch.empty(batch.num_tokens, 0)
    if config.dtype == "fp8":
        tokens, scales = _quantize(tokens)
    return Rows(
        elements=tokens.to(dtype),
        scales=scales,
        weights=batch.weights,
        topk_idx=batch.topk_idx,
        source=source.to(torch.int32),
    )


def pack(rows: Rows) -> torch.Tensor:
    """Rows as they travel, [rows, row_bytes] uint8."""
    columns = (rows.elements, rows.scales, rows.weights, rows.topk_idx, rows.source[:, None])
    return torch.cat([_as(column, torch.uint8) for column in columns], dim=1)


def unpack(config: EpConfig, packed: torch.Tensor) -> Rows:
    """The columns of travelled rows."""
    metadata = config.topk * 4
    sizes = [
        element_bytes(config.hidden, config.dtype),
        scale_bytes(config),
        metadata,
        metadata,
        4,
    ]
    assert sum(sizes) == row_bytes(config, "dispatch") == packed.shape[1]
    dtypes = (TORCH_DTYPES[config.dtype], torch.float32, torch.float32, torch.int32, torch.int32)
    elements, scales, weights, topk_idx, source = (
        _as(column, dtype) for column, dtype in zip(torch.split(packed, sizes, dim=1), dtypes, strict=True)
    )
    return Rows(elements, scales, weights, topk_idx, source[:, 0])


def _as(column: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The bytes of a column as another type; torch's own view refuses columns of no width."""
    if not column.shape[1]:
        return torch.empty(len(column), 0, dtype=dtype)
    return column.contiguous().view(dtype)


def _quantize(tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens divided by one power of two for 128 elements, so that the largest still fits into fp8; and these."""
    padded = pad(tokens, (0, -tokens.shape[1] % _FP8_BLOCK))
    blocks = padded.reshape(len(tokens), padded.shape[1] // _FP8_BLOCK, _FP8_BLOCK)
    largest = blocks.abs().amax(dim=2).clamp(min=2.0**-6)
    scales = torch.exp2(torch.ceil(torch.log2(largest / _FP8_MAX)))
    scaled = (blocks / scales[:, :, None]).flatten(1)
    return scaled[:, : tokens.shape[1]], scales
