"""Bandwidths from bytes and durations, and what a link says about them. GB/s are 10⁹ bytes a second.

XGMI/NVL counts all tokens that a rank receives, its own included; RDMA algo all (token, node) pairs, the own node
included; RDMA physical those that leave the node; wire the rows that the kernel sends over the network, with
everything beside the elements. LL scales XGMI to what a kernel that sends each selection by itself would move.
"""

from __future__ import annotations

import msgspec

from morimon.ep.config import EpConfig
from morimon.ep.volume import PhaseBytes

_DTYPE_MISCOUNT = 0.5  # fp8 rows counted as bf16 show twice the bytes that move


class PhaseBandwidth(msgspec.Struct, frozen=True):
    """Bandwidths of one rank in one phase, GB/s."""

    xgmi_gbps: float
    ll_gbps: float
    rdma_algo_gbps: float
    rdma_physical_gbps: float
    wire_sent_gbps: float
    wire_received_gbps: float


class LineVerdict(msgspec.Struct, frozen=True):
    """A figure against the rate of its line; `reason` is set where it is impossible."""

    percent: float
    impossible: bool
    reason: str | None


class Counted(msgspec.Struct, frozen=True):
    """What a claimed bandwidth counts: the share of it that crosses the line, and what else is in it, in words."""

    crossing_share: float
    also: str


ALL_CROSSES = Counted(1.0, "")


def algo_counted(num_nodes: int) -> Counted:
    """RDMA algo includes the own node's share."""
    return Counted((num_nodes - 1) / num_nodes, "the local node is counted (algo); physical is")


def xgmi_counted(recv_tokens: int, recv_tokens_own: int) -> Counted:
    """XGMI/NVL includes the rank's own tokens."""
    share = (recv_tokens - recv_tokens_own) / recv_tokens if recv_tokens else 0.0
    return Counted(share, "the rank's own tokens are counted; without them it is")


def gbps(moved_bytes: float, duration_us: float) -> float:
    """10⁹ bytes a second."""
    return moved_bytes / duration_us / 1e3


def ll_scale(config: EpConfig, recv_tokens: int) -> float:
    """Mori's factor from XGMI to LL bandwidth: selections sent over tokens received."""
    return config.num_tokens * config.topk / (recv_tokens + 1)


def rdma_of_total(total_gbps: float, rdma_tokens: int, total_tokens: int) -> float:
    """RDMA bandwidth = total bandwidth × RDMA tokens ÷ total tokens."""
    return total_gbps * rdma_tokens / total_tokens if total_tokens else 0.0


def bandwidth(moved: PhaseBytes, duration_us: float, scale: float) -> PhaseBandwidth:
    """Bandwidths of a phase that moved `moved` in `duration_us`; `scale` is the rank's `ll_scale`."""
    xgmi = gbps(moved.xgmi, duration_us)
    return PhaseBandwidth(
        xgmi_gbps=xgmi,
        ll_gbps=xgmi * scale,
        rdma_algo_gbps=gbps(moved.rdma_algo, duration_us),
        rdma_physical_gbps=gbps(moved.rdma_physical, duration_us),
        wire_sent_gbps=gbps(moved.wire_sent, duration_us),
        wire_received_gbps=gbps(moved.wire_received, duration_us),
    )


def judge(claimed_gbps: float, line_gbps: float, counted: Counted = ALL_CROSSES) -> LineVerdict:
    """Hold a claimed bandwidth against its line; `counted` tells what else the claim includes."""
    percent = 100 * claimed_gbps / line_gbps
    if claimed_gbps <= line_gbps:
        return LineVerdict(percent, impossible=False, reason=None)
    reason = f"{_figure(claimed_gbps)} GB/s claimed > {line_gbps:g} GB/s line: "
    crossing = claimed_gbps * counted.crossing_share
    if counted.also:
        reason += f"{counted.also} {_figure(crossing)}"
        if crossing <= line_gbps:
            return LineVerdict(percent, impossible=True, reason=f"{reason}.")
        reason += ", still above: "
    if crossing * _DTYPE_MISCOUNT <= line_gbps:
        reason += f"is the dtype counted right? Rows of half the bytes would make {_figure(crossing * _DTYPE_MISCOUNT)}."
    else:
        reason += "is the duration that of the whole phase, and the line rate that of all its ports?"
    return LineVerdict(percent, impossible=True, reason=reason)


def _figure(value_gbps: float) -> str:
    """One decimal; for slow links three digits."""
    return f"{value_gbps:.1f}" if value_gbps >= 10 else f"{value_gbps:.3g}"
