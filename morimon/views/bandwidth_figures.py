"""Every bandwidth of one rank in one phase: what the job claims, what its tokens and time say, what the link carries.

RDMA: claimed (printed), algo (all (token, node) pairs), physical (those that leave the node, by the rule
algo × (nodes − 1) ÷ nodes), wire (the rows of the rank's own tokens that the kernel type moves over the network, with
all that travels beside the elements: sent in dispatch, coming back in combine).
XGMI/NVL: claimed, received (all tokens), others' (its own left out), LL (received, scaled to one row a selection).
All figures are of the rank's newest round; what cannot be told is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import cast, get_args

from morimon.ep.bandwidth import (
    ALL_CROSSES,
    Counted,
    LineVerdict,
    algo_counted,
    gbps,
    judge,
    ll_scale,
    rdma_of_total,
    xgmi_counted,
)
from morimon.ep.config import ConfigError, Dtype, EpConfig
from morimon.ep.volume import element_bytes, row_bytes
from morimon.model.config import JobConfig
from morimon.model.events import Phase
from morimon.store.snapshot import PhaseFigures, RankSnapshot
from morimon.views.line_rates import LineRates, Link

NAMES: dict[Link, tuple[str, ...]] = {
    "rdma": ("claimed", "algo", "physical", "wire"),
    "xgmi": ("claimed", "received", "others'", "LL"),
}
LABELS: dict[Link, str] = {"rdma": "RDMA", "xgmi": "XGMI/NVL"}


@dataclass(frozen=True, slots=True)
class Figure:
    """One bandwidth: how it comes about in words, and the verdict where the line rate is known."""

    name: str
    gbps: float | None = None
    how: str = ""
    verdict: LineVerdict | None = None

    @property
    def is_impossible(self) -> bool:
        """Whether the line cannot carry it."""
        return self.verdict is not None and self.verdict.impossible

    @property
    def reason(self) -> str:
        """Why it is impossible, without the comparison that goes before."""
        text = self.verdict.reason if self.verdict is not None else None
        return text.partition(": ")[2] if text else ""


@dataclass(frozen=True, slots=True)
class Job:
    """What the arithmetic needs of a job's configuration; None where the job has not told enough."""

    told: JobConfig
    ep: EpConfig | None
    num_nodes: int | None

    @staticmethod
    def of(told: JobConfig) -> Job:
        """The configuration as far as it can be used."""
        nodes = told.num_nodes
        if nodes is None and told.world_size and told.gpu_per_node:
            nodes = -(-told.world_size // told.gpu_per_node)
        return Job(told, _ep_config(told, nodes), nodes)

    def row_payload_bytes(self, phase: Phase) -> int | None:
        """Bytes of one token's elements."""
        dtype = self.told.dtype if phase == "dispatch" else self.told.combine_dtype
        if self.told.hidden is None or dtype not in get_args(Dtype):
            return None
        return element_bytes(self.told.hidden, cast("Dtype", dtype))


def _ep_config(told: JobConfig, num_nodes: int | None) -> EpConfig | None:
    wanted = (
        "gpu_per_node",
        "num_tokens",
        "hidden",
        "num_experts",
        "topk",
        "dtype",
        "combine_dtype",
        "kernel_type",
    )
    fields = {name: getattr(told, name) for name in wanted} | {"num_nodes": num_nodes}
    if None in fields.values():
        return None
    try:
        return EpConfig(**fields)
    except ConfigError:
        return None


def seen_of(rank: RankSnapshot, phase: Phase) -> PhaseFigures:
    """What is known of a rank in a phase."""
    return rank.dispatch if phase == "dispatch" else rank.combine


def figures_of(
    rank: RankSnapshot, phase: Phase, link: Link, job: Job, rates: LineRates
) -> tuple[Figure, ...]:
    """The figures of NAMES[link], in that order."""
    seen = seen_of(rank, phase)
    line = rates.of(link)
    if link == "rdma":
        return _judged(_rdma(rank, seen, phase, job), line, _rdma_counted(job))
    return _judged(_xgmi(rank, seen, phase, job), line, _xgmi_counted([rank]))


def mean_of(
    ranks: Sequence[RankSnapshot],
    figures: Sequence[tuple[Figure, ...]],
    link: Link,
    job: Job,
    rates: LineRates,
) -> tuple[Figure, ...]:
    """The mean over the ranks that know a figure (`figures` are theirs), and in words the sum over them."""
    out = []
    for name, column in zip(NAMES[link], zip(*figures, strict=True), strict=True):
        known = [figure.gbps for figure in column if figure.gbps is not None]
        if not known:
            out.append(Figure(name))
            continue
        count = f"{len(known)}" if len(known) == len(figures) else f"{len(known)} of {len(figures)}"
        out.append(Figure(name, fmean(known), f"mean of {count} ranks; together {sum(known):.1f} GB/s"))
    counted = _rdma_counted(job) if link == "rdma" else _xgmi_counted(ranks)
    return _judged(tuple(out), rates.of(link), counted)


def _judged(
    figures: tuple[Figure, ...], line_gbps: float | None, counted: dict[str, Counted]
) -> tuple[Figure, ...]:
    if line_gbps is None:
        return figures
    return tuple(
        figure
        if figure.gbps is None or figure.name not in counted
        else Figure(figure.name, figure.gbps, figure.how, judge(figure.gbps, line_gbps, counted[figure.name]))
        for figure in figures
    )


def _rdma_counted(job: Job) -> dict[str, Counted]:
    nodes = job.num_nodes
    if nodes is None:
        algo = Counted(1 / 2, "the local node is counted (algo); on two nodes physical is")
    else:
        algo = algo_counted(nodes)
    return {"claimed": algo, "algo": algo, "physical": ALL_CROSSES, "wire": ALL_CROSSES}


def _xgmi_counted(ranks: Sequence[RankSnapshot]) -> dict[str, Counted]:
    """LL is no figure of a link: nothing is held against it."""
    told = [
        (rank.recv_tokens, own)
        for rank in ranks
        if rank.recv_tokens is not None and (own := own_tokens(rank)) is not None
    ]
    received = xgmi_counted(*map(sum, zip(*told, strict=True))) if len(told) == len(ranks) else ALL_CROSSES
    return {"claimed": received, "received": received, "others'": ALL_CROSSES}


def own_tokens(rank: RankSnapshot) -> int | None:
    """Tokens that the rank sends to itself."""
    return rank.to_ranks[rank.rank] if rank.rank < len(rank.to_ranks) else None


def _claim(value: float | None, seen: PhaseFigures) -> Figure:
    if value is None or seen.claimed is None:
        return Figure("claimed")
    return Figure("claimed", value, f"printed by the job in round {seen.claimed.round}")


def _counted(
    name: str, tokens: int | None, told_gbps: float | None, seen: PhaseFigures, payload: int | None
) -> Figure:
    """A bandwidth of payload: from the bytes that a probe told, or from the tokens of a log and their size."""
    if seen.latency_us is None:
        return Figure(name)
    size = f" × {payload} B" if payload else "' bytes"
    how = f"{tokens} tokens{size} in {seen.latency_us:.1f} µs" if tokens is not None else ""
    if not seen.is_printed:
        return Figure(name, told_gbps, how if told_gbps is not None else "")
    if payload is None or tokens is None or seen.latency_us <= 0:
        return Figure(name)
    return Figure(name, gbps(tokens * payload, seen.latency_us), how)


def _rdma(rank: RankSnapshot, seen: PhaseFigures, phase: Phase, job: Job) -> tuple[Figure, ...]:
    claim = seen.claimed
    claimed = _claim(claim.rdma_algo_gbps if claim else None, seen)
    tokens, nodes = rank.rdma_tokens_algo, job.num_nodes
    algo = _counted("algo", tokens, seen.rdma_algo_gbps, seen, job.row_payload_bytes(phase))
    if (
        algo.gbps is None
        and claim
        and claim.xgmi_gbps is not None
        and tokens is not None
        and rank.recv_tokens
    ):
        value = rdma_of_total(claim.xgmi_gbps, tokens, rank.recv_tokens)
        how = f"{claim.xgmi_gbps:.1f} GB/s of all tokens × {tokens} RDMA tokens / {rank.recv_tokens}"
        algo = Figure("algo", value, how)
    physical = Figure("physical")
    base = algo if algo.gbps is not None else claimed
    if base.gbps is not None and nodes:
        physical = Figure("physical", base.gbps * (nodes - 1) / nodes, f"{base.name} × {nodes - 1}/{nodes}")
    return claimed, algo, physical, _wire(rank, seen, phase, job)


def _wire(rank: RankSnapshot, seen: PhaseFigures, phase: Phase, job: Job) -> Figure:
    ep = job.ep
    rows = _wire_rows(rank, ep) if ep is not None else None
    if ep is None or rows is None or not seen.latency_us:
        return Figure("wire")
    row = row_bytes(ep, phase)
    how = f"{_count(rows)} rows × {row} B ({ep.kernel_type}) in {seen.latency_us:.1f} µs"
    return Figure("wire", gbps(rows * row, seen.latency_us), how)


def _count(rows: float) -> str:
    return f"{rows:.1f}".removesuffix(".0")


def _wire_rows(rank: RankSnapshot, ep: EpConfig) -> float | None:
    """Rows of the rank's own tokens that cross the network once; v1's by the rule."""
    match ep.kernel_type:
        case "intranode":
            return 0
        case "v1":
            algo = rank.rdma_tokens_algo
            return None if algo is None else algo * (ep.num_nodes - 1) / ep.num_nodes
        case "v1_ll":
            return ep.num_tokens * (ep.num_nodes - 1)
        case "async_ll":
            if len(rank.to_ranks) != ep.world_size:
                return None
            first = ep.node_of(rank.rank) * ep.gpu_per_node
            return sum(rank.to_ranks) - sum(rank.to_ranks[first : first + ep.gpu_per_node])


def _xgmi(rank: RankSnapshot, seen: PhaseFigures, phase: Phase, job: Job) -> tuple[Figure, ...]:
    claim, tokens, own = seen.claimed, rank.recv_tokens, own_tokens(rank)
    claimed = _claim(claim.xgmi_gbps if claim else None, seen)
    received = _counted("received", tokens, seen.xgmi_gbps, seen, job.row_payload_bytes(phase))
    others, scaled = Figure("others'"), Figure("LL")
    base = received if received.gbps is not None else claimed
    if base.gbps is not None and tokens and own is not None:
        how = f"{base.name} × {tokens - own}/{tokens}: its own {own} tokens left out"
        others = Figure("others'", base.gbps * (tokens - own) / tokens, how)
    if base.gbps is not None and tokens is not None and job.ep is not None:
        scale = ll_scale(job.ep, tokens)
        how = f"{base.name} × {scale:.3f}: {job.ep.num_tokens} tokens × top-{job.ep.topk} / ({tokens} + 1)"
        scaled = Figure("LL", base.gbps * scale, how)
    return claimed, received, others, scaled
