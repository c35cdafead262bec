"""`morimon tokens` as text.

Tables never lose a column: what does not fit beside the rank is continued in a block below.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from morimon.ep.check import SIGMAS, Check, Finding
from morimon.ep.config import DTYPES, EpConfig
from morimon.ep.counts import Counts
from morimon.ep.expectation import expect
from morimon.ep.imbalance import imbalance
from morimon.ep.volume import DEEPEP_FP8_FACTOR, element_bytes, phase_bytes, row_bytes, scale_bytes
from morimon.model.events import PHASES, Phase
from morimon.report.tokens import CLAIMS, TokenReport, loads, totals

_TOKEN_COLUMNS = {
    "recv_tokens": "recv",
    "recv_tokens_own": "own",
    "recv_tokens_same_node": "same",
    "recv_tokens_forwarded": "fwd",
    "rdma_tokens_algo": "algo",
    "rdma_tokens_unique": "unique",
    "rdma_tokens_physical": "phys",
    "wire_tokens_sent": "sent",
    "wire_tokens_received": "rcvd",
}
_CROSSING = ("rdma_tokens_algo", "rdma_tokens_physical", "wire_tokens_sent", "wire_tokens_received")
_BYTE_COLUMNS = {
    "xgmi": "xgmi",
    "rdma_algo": "algo",
    "rdma_physical": "phys",
    "wire_sent": "sent",
    "wire_received": "rcvd",
}
_GBPS_COLUMNS = {
    "xgmi_gbps": "xgmi",
    "ll_gbps": "ll",
    "rdma_algo_gbps": "algo",
    "rdma_physical_gbps": "phys",
    "wire_sent_gbps": "sent",
    "wire_received_gbps": "rcvd",
}


def as_text(report: TokenReport, width: int, *, matrix: bool = False) -> str:
    """Tables for people, at most `width` columns wide wherever their figures allow it."""
    config = report.config
    parts = [_headline(report), _token_table(report, width)]
    for phase in PHASES:
        parts.append(_byte_table(report, phase, width))
        if phase in report.duration_us:
            parts.append(_bandwidth_table(report, phase, width))
    parts += [_dtype_table(report, width), _spread(report, width)]
    if matrix:
        parts.append(_matrix(report.counts, width))
    if report.check is not None:
        parts.append(check_text(report.check, config))
    return "\n\n".join(parts) + "\n"


def _headline(report: TokenReport) -> str:
    config = report.config
    nodes = "1 node" if config.num_nodes == 1 else f"{config.num_nodes} nodes"
    seed = "" if report.seed is None else f", seed {report.seed}"
    return (
        f"{nodes} × {config.gpu_per_node} GPUs = {config.world_size} ranks, kernel type {config.kernel_type}\n"
        f"{config.num_tokens} tokens a rank × {config.hidden} {config.dtype}, top-{config.topk} of "
        f"{config.num_experts} experts\n"
        f"routing {report.routing}{seed}"
    )


def _token_table(report: TokenReport, width: int) -> str:
    counts, config = report.counts, report.config
    columns = dict(_TOKEN_COLUMNS)
    if config.kernel_type != "v1_ll":
        del columns["rdma_tokens_unique"]
    crossing = config.num_nodes > 1
    hidden = () if crossing else _CROSSING

    def cells(figures: Mapping[str, int]) -> list[str]:
        return ["–" if name in hidden else str(figures[name]) for name in columns]

    world = totals(counts)
    rows = [[str(one.rank), str(one.node), *cells(msgspec.structs.asdict(one))] for one in counts.ranks]
    rows.append(["all", "", *cells(world)])
    by_rule, exact = world["rdma_tokens_physical_rule"], world["rdma_tokens_physical"]
    return _block(
        "tokens: received (own, from the same node, forwarded from other nodes), sent over RDMA (algo counts the own "
        "node, phys does not), rows on the wire",
        _table(["rank", "node", *columns.values()], rows, width, keys=2, total=True),
        f"physical by the (n−1)/n rule: {by_rule:.1f}, exact: {exact}"
        if crossing
        else "one node: nothing crosses",
        width=width,
    )


def _byte_table(report: TokenReport, phase: Phase, width: int) -> str:
    config = report.config
    dtype = config.dtype if phase == "dispatch" else config.combine_dtype
    payload, row = element_bytes(config.hidden, dtype), row_bytes(config, phase)
    verb = "received" if phase == "dispatch" else "sent"
    moved = report.moved(phase)
    unit, divisor = _unit(max(max(of.xgmi, of.rdma_algo, of.wire_sent) for of in moved))
    rows = [
        _figures(one.rank, of, _BYTE_COLUMNS, divisor, 1)
        for one, of in zip(report.counts.ranks, moved, strict=True)
    ]
    sums = {name: sum(getattr(of, name) for of in moved) / divisor for name in _BYTE_COLUMNS}
    rows.append(["all", *(f"{value:.1f}" for value in sums.values())])
    return _block(
        f"{phase}, {unit}, xgmi {verb}; a row is {payload} bytes ({dtype}), on the wire {row - payload} more",
        _table(["rank", *_BYTE_COLUMNS.values()], rows, width, keys=1, total=True),
        width=width,
    )


def _bandwidth_table(report: TokenReport, phase: Phase, width: int) -> str:
    figures = report.bandwidths(phase)
    rows = [
        _figures(one.rank, of, _GBPS_COLUMNS, 1, 2)
        for one, of in zip(report.counts.ranks, figures, strict=True)
    ]
    means = {name: float(np.mean([getattr(of, name) for of in figures])) for name in _GBPS_COLUMNS}
    rows.append(["mean", *(f"{value:.2f}" for value in means.values())])
    return _block(
        f"{phase} in {report.duration_us[phase]:g} µs, GB/s (10⁹ bytes/s)",
        _table(["rank", *_GBPS_COLUMNS.values()], rows, width, keys=1, total=True),
        *_line_rate(report, phase),
        width=width,
    )


def _line_rate(report: TokenReport, phase: Phase) -> list[str]:
    """A line a figure: its highest share of the line, and why that cannot be, where it cannot."""
    lines = []
    for claim in CLAIMS:
        verdicts = [(verdict, rank) for rank, name, verdict in report.verdicts(phase) if name == claim]
        if verdicts:
            verdict, rank = max(verdicts, key=lambda found: found[0].percent)
            mark = f" ! impossible: {verdict.reason}" if verdict.impossible else ""
            lines.append(
                f"{_GBPS_COLUMNS[claim]}: at most {verdict.percent:.1f} % of the line (rank {rank}){mark}"
            )
    return lines


def _unit(most_bytes: float) -> tuple[str, float]:
    """The decimal unit that shows such an amount with a digit or more before the point, and its bytes."""
    for unit, divisor in (("GB (10⁹ bytes)", 1e9), ("MB (10⁶ bytes)", 1e6)):
        if most_bytes >= divisor:
            return unit, divisor
    return "kB (10³ bytes)", 1e3


def _figures(rank: int, of: object, columns: dict[str, str], unit: float, decimals: int) -> list[str]:
    return [str(rank), *(f"{getattr(of, name) / unit:.{decimals}f}" for name in columns)]


def _dtype_table(report: TokenReport, width: int) -> str:
    """World sums for every dtype, so that the effect of a smaller one is seen at once."""
    received, algo = (
        sum(getattr(one, name) for one in report.counts.ranks) * report.config.hidden * 2 * DEEPEP_FP8_FACTOR
        for name in ("recv_tokens", "rdma_tokens_algo")
    )
    unit, divisor = _unit(received)
    rows = []
    for dtype in DTYPES:
        config = msgspec.structs.replace(report.config, dtype=dtype, combine_dtype=dtype)
        row = [dtype, str(element_bytes(config.hidden, dtype)), str(scale_bytes(config))]
        dispatch, combine = (
            [phase_bytes(config, one, phase) for one in report.counts.ranks] for phase in PHASES
        )
        sums = [
            sum(getattr(of, name) for of in dispatch)
            for name in ("xgmi", "rdma_algo", "rdma_physical", "wire_sent")
        ]
        sums.append(sum(of.wire_sent for of in combine))
        rows.append([*row, *(f"{value / divisor:.3f}" for value in sums)])
    headings = ["dtype", "row B", "scales B", "xgmi", "algo", "phys", "wire", "combine wire"]
    return _block(
        f"all ranks, {unit}, of one dispatch, and of combine what goes over the wire",
        _table(headings, rows, width, keys=1),
        f"fp8 as DeepEP counts it (bf16 × {DEEPEP_FP8_FACTOR}): xgmi {received / divisor:.3f}, algo {algo / divisor:.3f}",
        width=width,
    )


_LOAD_NAMES = {
    "recv_tokens": "tokens received",
    "wire_tokens_sent": "wire rows sent",
    "wire_tokens_received": "wire rows received",
    "expert_tokens": "tokens of an expert",
}


def _spread(report: TokenReport, width: int) -> str:
    rows = []
    for name, load in loads(report.counts).items():
        if any(load):
            spread = imbalance(load)
            rows.append(
                [
                    _LOAD_NAMES[name],
                    str(min(load)),
                    f"{np.mean(load):.1f}",
                    str(max(load)),
                    f"{spread.max_over_mean:.3f}",
                    f"{spread.jain:.4f}",
                ]
            )
    expectation = expect(report.config)
    recv, algo = expectation.recv_tokens, expectation.rdma_tokens_algo
    return _block(
        "how evenly",
        _table(["", "min", "mean", "max", "max/mean", "Jain"], rows, width, keys=1),
        f"uniform routing gives a rank {recv.mean:.1f} ± {recv.sigma:.1f} tokens received and "
        f"{algo.mean:.1f} ± {algo.sigma:.1f} RDMA tokens (algo)",
        width=width,
    )


def _matrix(counts: Counts, width: int) -> str:
    world = range(counts.config.world_size)
    rows = [[str(rank), *map(str, counts.to_rank[rank])] for rank in world]
    rows.append(["all", *map(str, counts.to_rank.sum(axis=0))])
    return _block(
        "tokens from rank (down) to rank (across)",
        _table(["", *map(str, world)], rows, width, keys=1, total=True),
        width=width,
    )


def check_text(check: Check, config: EpConfig) -> str:
    """The findings in words: one line where all is well, else a line for each count that is not."""
    told = len({finding.rank for finding in check.findings})
    band = f"within {SIGMAS:g}σ of uniform routing (statistical)"
    means = band if check.statistical else "equal to what the routing gives"
    lines = [_finding_text(finding) for finding in check.findings if not finding.ok]
    good = sum(finding.ok for finding in check.findings)
    lines.append(f"check: {good} of {len(check.findings)} counts of {told} ranks are {means}")
    if check.missing:
        lines.append(f"no counts of {len(check.missing)} of {config.world_size} ranks")
    if not check.ok and not check.statistical:
        lines.append(
            "(a job that drew random numbers elsewhere, as mori does, can be checked with --routing random)"
        )
    return "\n".join(lines)


def _finding_text(finding: Finding) -> str:
    what = f"rank {finding.rank} {finding.field} {finding.observed}"
    match finding.verdict:
        case "no such rank":
            return f"{what}: there is no such rank"
        case "impossible":
            return f"{what}: impossible, no routing gives more than {finding.high:.0f}"
        case "outside":
            return f"{what}: outside {finding.low:.1f}…{finding.high:.1f} (statistical)"
        case _:
            return f"{what}: the routing gives {finding.low:.0f}"


def _block(title: str, table: list[str], *notes: str, width: int) -> str:
    """A table under its title, and what is to be said of it below, wrapped."""
    lines = textwrap.wrap(title, width)
    lines += table
    for note in notes:
        lines += textwrap.wrap(note, width, subsequent_indent="  ")
    return "\n".join(lines)


def _table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, keys: int, total: bool = False
) -> list[str]:
    """Right-aligned columns two blanks apart, in as many blocks as `width` asks for, each with the first `keys` columns.

    `total` sets the last row apart by a rule.
    """
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    lead = list(range(keys))
    blocks: list[list[int]] = []
    for column in range(keys, len(headings)):
        if blocks and sum(widths[i] + 2 for i in [*blocks[-1], column]) - 2 <= width:
            blocks[-1].append(column)
        else:
            blocks.append([*lead, column])
    lines: list[str] = []
    for block in blocks:
        block_lines = ["  ".join(row[i].rjust(widths[i]) for i in block) for row in [headings, *rows]]
        if total:
            block_lines.insert(-1, "─" * len(block_lines[0]))
        lines += [*([""] if lines else []), *(line.rstrip() for line in block_lines)]
    return lines
