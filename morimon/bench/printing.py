"""The lines that mori's internode benchmark prints, from figures; no torch, no state.

Lists hold one whole number (cut off, not rounded) for each rank, averages are exact; GB/s are 10⁹ bytes a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from morimon.ep.bandwidth import gbps, ll_scale
from morimon.ep.config import EpConfig
from morimon.ep.volume import element_bytes
from morimon.model.events import Phase

_TORCH_NAMES = {"bf16": "bfloat16", "fp32": "float32", "fp8": "float8_e4m3fn"}


@dataclass(frozen=True)
class PhaseRound:
    """One phase of one round, all ranks."""

    latencies_us: list[float]
    rdma_gbps: list[float]
    xgmi_gbps: list[float]
    ll_gbps: list[float]


def phase_round(
    config: EpConfig,
    phase: Phase,
    latencies_us: list[float],
    recv_tokens: list[int],
    rdma_tokens_algo: list[int],
) -> PhaseRound:
    """Bandwidths of a phase from every rank's latency and counts; LL takes rank 0's factor for all, as mori does."""
    row = element_bytes(config.hidden, config.dtype if phase == "dispatch" else config.combine_dtype)
    xgmi = [gbps(tokens * row, us) for tokens, us in zip(recv_tokens, latencies_us, strict=True)]
    scale = ll_scale(config, recv_tokens[0])
    return PhaseRound(
        latencies_us=latencies_us,
        rdma_gbps=[gbps(tokens * row, us) for tokens, us in zip(rdma_tokens_algo, latencies_us, strict=True)],
        xgmi_gbps=xgmi,
        ll_gbps=[value * scale for value in xgmi],
    )


def token_line(rank: int, recv_tokens: int, rdma_tokens_algo: int) -> str:
    """What every rank prints once a configuration."""
    return f"rank {rank} recv {recv_tokens} tokens {rdma_tokens_algo} rdma tokens"


def round_lines(phase: Phase, figures: PhaseRound) -> list[str]:
    """The three lines of a phase; a header with the round's number precedes those of dispatch alone."""
    return [
        f"  {phase} duration {_whole(figures.latencies_us)} avg {fmean(figures.latencies_us):.2f} µs",
        f"  {phase} rdma bandwidth {_whole(figures.rdma_gbps)} avg {fmean(figures.rdma_gbps):.2f} GB/s",
        f"  {phase} bandwidth {_whole(figures.xgmi_gbps)} avg {fmean(figures.xgmi_gbps):.2f} GB/s",
    ]


def summary(config: EpConfig, phase: Phase, rounds: Sequence[PhaseRound]) -> str:
    """The table at the end: best single rank in the best single round, worst likewise, mean of the rounds' means."""
    dtype = config.dtype if phase == "dispatch" else config.combine_dtype
    title = f"{phase.capitalize()} Performance ({_TORCH_NAMES[dtype]})"
    if config.dtype != config.combine_dtype:
        moved = config.num_tokens * element_bytes(config.hidden, dtype)
        title += f" ~{moved / 2**20:.1f} MB/rank"
    rdma = [one.rdma_gbps for one in rounds]
    xgmi = [one.xgmi_gbps for one in rounds]
    scaled = [one.ll_gbps for one in rounds]
    latency = [one.latencies_us for one in rounds]
    bandwidths = (rdma, xgmi, scaled)
    return table(
        title,
        ["Metrics", "RDMA Bandwidth (GB/s)", "XGMI Bandwidth (GB/s)", "LL Bandwidth (GB/s)", "Latency (us)"],
        [
            ["Best", *(f"{max(map(max, one)):.2f}" for one in bandwidths), f"{min(map(min, latency)):.2f}"],
            ["Worst", *(f"{min(map(min, one)):.2f}" for one in bandwidths), f"{max(map(max, latency)):.2f}"],
            ["Average", *(f"{fmean(map(fmean, one)):.2f}" for one in (*bandwidths, latency))],
        ],
    )


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Centred cells in ruled columns under a title."""
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [
        "+" + "-" * (len(rule) - 2) + "+",
        "|" + title.center(len(rule) - 2) + "|",
        rule,
        _row(header, widths),
        rule,
        *(_row(row, widths) for row in rows),
        rule,
    ]
    return "\n".join(lines)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "|" + "|".join(f" {cell.center(width)} " for cell, width in zip(cells, widths, strict=True)) + "|"


def _whole(values: Sequence[float]) -> list[int]:
    return [int(value) for value in values]
