"""The figures of print_bw_values.py, the script that mori's documentation lists, and its lines byte for byte.

It counts bf16 rows, and fp8 ones by DeepEP's factor, and knows no kernel types. Physical bytes are the algo bytes
times a ratio, truncated: one byte less than they are, now and then.
"""

from __future__ import annotations

from morimon.ep import deepep
from morimon.ep.config import EpConfig
from morimon.ep.counts import Counts, RankCounts
from morimon.ep.volume import DEEPEP_FP8_FACTOR

_BF16_BYTES = 2


def byte_figures(config: EpConfig, one: RankCounts) -> dict[str, int]:
    """Byte figures of print_bw_values.py: bf16 rows, and fp8 ones by DeepEP's factor, rounded as it prints them."""
    algo = one.rdma_tokens_algo * config.hidden * _BF16_BYTES
    received = one.recv_tokens * config.hidden * _BF16_BYTES
    return {
        "dispatch_rdma_send_bytes_algo": algo,
        "dispatch_rdma_send_bytes_physical": int(
            algo * _physical_ratio(one.rdma_tokens_physical, one.rdma_tokens_algo)
        ),
        "dispatch_nvl_recv_bytes": received,
        "combine_rdma_recv_bytes_algo": algo,
        "combine_nvl_send_bytes": received,
        "dispatch_rdma_send_bytes_algo_fp8": round(algo * DEEPEP_FP8_FACTOR),
        "dispatch_nvl_recv_bytes_fp8": round(received * DEEPEP_FP8_FACTOR),
    }


def _physical_ratio(physical: int, algo: int) -> float:
    return physical / algo if algo else 0


def as_bw_values(counts: Counts) -> str:
    """What print_bw_values.py prints for this routing, byte for byte (its figures know no kernel types)."""
    config = counts.config
    lines = [
        f"Simulating {config.num_nodes} node(s) × {config.gpu_per_node} GPUs = {config.world_size} ranks",
        f"num_tokens={config.num_tokens}, hidden={config.hidden}, num_experts={config.num_experts}, num_topk={config.topk}, num_topk_groups={deepep.topk_groups(config)}",
    ]
    for one in counts.ranks:
        unique, physical = one.rdma_tokens_unique, one.rdma_tokens_physical
        ratio = _physical_ratio(physical, unique)
        elements = one.recv_tokens * config.hidden
        received = elements * _BF16_BYTES
        algo = unique * config.hidden * _BF16_BYTES
        algo_fp8, received_fp8 = algo * DEEPEP_FP8_FACTOR, received * DEEPEP_FP8_FACTOR
        lines += [
            "",
            f"[rank {one.rank:2d}  node={one.node} gpu={one.local_rank}]",
            f"  num_tokens sent               = {one.num_tokens}",
            f"  recv_num_tokens               = {one.recv_tokens}",
            f"  recv_x_numel                  = {elements:,}  ({received / 1e9:.4f} GB BF16)",
            f"  num_rdma_token_sent (algo)    = {unique}  (all node-destinations incl. local — matches original)",
            f"  num_rdma_token_sent (physical)= {physical}  (cross-node only, ratio={ratio:.3f})",
            "  -- BF16 algorithm bandwidth bytes (as reported by original) --",
            f"  dispatch RDMA send (algo)     = {algo:>14,}  ({algo / 1e9:.4f} GB)",
            f"  dispatch RDMA send (physical) = {int(algo * ratio):>14,}  ({algo * ratio / 1e9:.4f} GB,  algo*{ratio:.3f})",
            f"  dispatch NVL  recv            = {received:>14,}  ({received / 1e9:.4f} GB)",
            f"  combine  RDMA recv (algo)     = {algo:>14,}  ({algo / 1e9:.4f} GB)",
            f"  combine  NVL  send            = {received:>14,}  ({received / 1e9:.4f} GB)",
            f"  -- FP8 (factor={DEEPEP_FP8_FACTOR:.5f}) --",
            f"  dispatch RDMA send (algo)     = {algo_fp8:>14,.0f}  ({algo_fp8 / 1e9:.4f} GB)",
            f"  dispatch NVL  recv            = {received_fp8:>14,.0f}  ({received_fp8 / 1e9:.4f} GB)",
        ]
    return "\n".join(lines) + "\n"
