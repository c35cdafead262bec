"""What `morimon tokens` has to say, as a value, and as JSON and CSV; morimon.report.tokens_text writes it as text."""

from __future__ import annotations

import csv
import io
from typing import Any, Literal, get_args

import msgspec

from morimon.ep.bandwidth import (
    ALL_CROSSES,
    LineVerdict,
    PhaseBandwidth,
    algo_counted,
    bandwidth,
    judge,
    ll_scale,
    xgmi_counted,
)
from morimon.ep.check import Check
from morimon.ep.config import EpConfig
from morimon.ep.counts import Counts, RankCounts
from morimon.ep.expectation import expect
from morimon.ep.imbalance import imbalance
from morimon.ep.volume import PhaseBytes, phase_bytes, row_bytes
from morimon.model.events import PHASES, Phase
from morimon.report.bw_values import byte_figures

Claim = Literal["xgmi_gbps", "rdma_algo_gbps", "rdma_physical_gbps", "wire_sent_gbps", "wire_received_gbps"]
CLAIMS: tuple[Claim, ...] = get_args(Claim)


class TokenReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one invocation of `morimon tokens` has to say."""

    counts: Counts
    routing: str
    """Name of the pattern, or the file that the routing was read from."""
    seed: int | None
    duration_us: dict[Phase, float] = {}
    rdma_line_gbps: float | None = None
    xgmi_line_gbps: float | None = None
    check: Check | None = None

    @property
    def config(self) -> EpConfig:
        """Configuration of the job."""
        return self.counts.config

    def moved(self, phase: Phase) -> list[PhaseBytes]:
        """Bytes of each rank."""
        return [phase_bytes(self.config, one, phase) for one in self.counts.ranks]

    def bandwidths(self, phase: Phase) -> list[PhaseBandwidth]:
        """Bandwidths of each rank; none where the phase's duration is not given."""
        duration_us = self.duration_us.get(phase)
        if duration_us is None:
            return []
        scales = [ll_scale(self.config, one.recv_tokens) for one in self.counts.ranks]
        return [
            bandwidth(moved, duration_us, scale)
            for moved, scale in zip(self.moved(phase), scales, strict=True)
        ]

    def verdicts(self, phase: Phase) -> list[tuple[int, Claim, LineVerdict]]:
        """(rank, figure, verdict) of every bandwidth whose line rate is given."""
        found: list[tuple[int, Claim, LineVerdict]] = []
        for one, figures in zip(self.counts.ranks, self.bandwidths(phase), strict=False):
            for claim in CLAIMS:
                line = self.xgmi_line_gbps if claim == "xgmi_gbps" else self.rdma_line_gbps
                if line is not None:
                    counted = {
                        "xgmi_gbps": xgmi_counted(one.recv_tokens, one.recv_tokens_own),
                        "rdma_algo_gbps": algo_counted(self.config.num_nodes),
                    }.get(claim, ALL_CROSSES)
                    verdict = judge(getattr(figures, claim), line, counted)
                    found.append((one.rank, claim, verdict))
        return found


def as_object(report: TokenReport) -> dict[str, Any]:
    """The report as one JSON object; docs/json.md explains its keys."""
    counts, config = report.counts, report.config
    expectation = expect(config)
    settings = msgspec.to_builtins(config)
    settings["num_topk"] = settings.pop("topk")
    settings["world_size"] = config.world_size
    result: dict[str, Any] = {
        "type": "tokens",
        "config": settings,
        "routing": report.routing,
        "seed": report.seed,
        "row_bytes": {phase: row_bytes(config, phase) for phase in PHASES},
        "ranks": rank_objects(report),
        "totals": totals(counts),
        "imbalance": {name: msgspec.to_builtins(imbalance(load)) for name, load in loads(counts).items()},
        "uniform_routing": msgspec.to_builtins(expectation),
        "tokens_from_rank_to_rank": counts.to_rank.tolist(),
        "tokens_from_rank_to_node": counts.to_node.tolist(),
        "expert_tokens": counts.to_expert.tolist(),
    }
    if report.rdma_line_gbps is not None or report.xgmi_line_gbps is not None:
        result["line_rate"] = [
            {"rank": rank, "phase": phase, "figure": claim, **msgspec.to_builtins(verdict)}
            for phase in PHASES
            for rank, claim, verdict in report.verdicts(phase)
        ]
    if report.check is not None:
        result["check"] = {"ok": report.check.ok, **msgspec.to_builtins(report.check)}
    return result


def rank_objects(report: TokenReport) -> list[dict[str, Any]]:
    """One object a rank, with print_bw_values.py's byte figures beside those of the configured dtypes."""
    objects = []
    bandwidths = {phase: report.bandwidths(phase) for phase in PHASES}
    for place, one in enumerate(report.counts.ranks):
        row = msgspec.to_builtins(one)
        row["gpu"] = row.pop("local_rank")
        row |= byte_figures(report.config, one)
        for phase in PHASES:
            row[phase] = {
                f"{name}_bytes": value
                for name, value in msgspec.to_builtins(phase_bytes(report.config, one, phase)).items()
            }
            if phase in report.duration_us:
                row[phase]["duration_us"] = report.duration_us[phase]
                row[phase] |= msgspec.to_builtins(bandwidths[phase][place])
        objects.append(row)
    return objects


def as_csv(report: TokenReport) -> str:
    """A line a rank under a line of names; figures of a phase carry its name before theirs."""
    rows = []
    for row in rank_objects(report):
        phases = {f"{phase}_{name}": value for phase in PHASES for name, value in row.pop(phase).items()}
        rows.append(row | phases)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def totals(counts: Counts) -> dict[str, Any]:
    """Every token count, added over the ranks."""
    return {
        name: sum(getattr(one, name) for one in counts.ranks)
        for name in RankCounts.__struct_fields__
        if "tokens" in name
    }


def loads(counts: Counts) -> dict[str, list[int]]:
    """What ranks and experts carry, a figure for each of them."""
    return {
        "recv_tokens": [one.recv_tokens for one in counts.ranks],
        "wire_tokens_sent": [one.wire_tokens_sent for one in counts.ranks],
        "wire_tokens_received": [one.wire_tokens_received for one in counts.ranks],
        "expert_tokens": counts.to_expert.tolist(),
    }
