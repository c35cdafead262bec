"""Bytes that dispatch and combine move, from the counts of a rank.

Payload bytes are tokens × hidden × element size, as mori and DeepEP count them for their bandwidths.
Wire bytes are whole rows with what travels beside the elements (mori's xferBytes):
dispatch hidden + 4·topk (indices) + 4·topk (weights) + scales + 4, combine hidden (+ 4·topk where weights go back).
Combine reverses dispatch: what a rank received then, it sends now.
"""

from __future__ import annotations

import msgspec

from morimon.ep.config import Dtype, EpConfig
from morimon.ep.counts import RankCounts
from morimon.model.events import Phase

ELEMENT_BITS: dict[Dtype, int] = {"bf16": 16, "fp32": 32, "fp8": 8, "fp4": 4}
DEEPEP_FP8_FACTOR = (1 + 4 / 128) / 2
"""DeepEP's bytes of fp8 rows with their scales, against bf16 rows."""


class PhaseBytes(msgspec.Struct, frozen=True):
    """Bytes of one rank in one phase; `rdma_physical_rule` is algo × (nodes − 1) / nodes."""

    xgmi: int
    rdma_algo: int
    rdma_physical: int
    rdma_physical_rule: float
    wire_sent: int
    wire_received: int


def element_bytes(hidden: int, dtype: Dtype) -> int:
    """Bytes of the elements of one row."""
    return -(-hidden * ELEMENT_BITS[dtype] // 8)


def scale_bytes(config: EpConfig) -> int:
    """Bytes of the scales that travel with one dispatched row."""
    if config.scale_dim is not None:
        return config.scale_dim * config.scale_type_size
    match config.dtype:
        case "fp8":
            return -(-config.hidden // 128) * 4
        case "fp4":
            return -(-config.hidden // 32)
        case _:
            return 0


def row_bytes(config: EpConfig, phase: Phase) -> int:
    """Bytes of one row on the wire, with what travels beside its elements."""
    if phase == "dispatch":
        return element_bytes(config.hidden, config.dtype) + 8 * config.topk + scale_bytes(config) + 4
    return element_bytes(config.hidden, config.combine_dtype) + 4 * config.topk * config.combine_weights


def phase_bytes(config: EpConfig, counts: RankCounts, phase: Phase) -> PhaseBytes:
    """What the rank of `counts` moves in one dispatch or one combine."""
    dispatching = phase == "dispatch"
    payload = element_bytes(config.hidden, config.dtype if dispatching else config.combine_dtype)
    row = row_bytes(config, phase)
    sent, received = counts.wire_tokens_sent, counts.wire_tokens_received
    if not dispatching:
        sent, received = received, sent
    return PhaseBytes(
        xgmi=counts.recv_tokens * payload,
        rdma_algo=counts.rdma_tokens_algo * payload,
        rdma_physical=counts.rdma_tokens_physical * payload,
        rdma_physical_rule=counts.rdma_tokens_physical_rule * payload,
        wire_sent=sent * row,
        wire_received=received * row,
    )
