"""What DeepEP's tests print: tuning, low latency and elastic figures, and the timeouts of its kernels.

Sweeps are told as progress, since each line is another configuration; the best of a sweep is told as the figures of the
rank that prints it. NVL counts as XGMI, RDMA is the algo figure (the local node's tokens included).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from morimon.logs.dialect import NUMBER, WHOLE, Meant, Rule, Source, nothing, rule
from morimon.model.events import Failure, Phase, PhaseDone

_DTYPES = {"FP8": "fp8", "BF16": "bf16"}

_TUNED = r"SMs \d{1,6}(?:, (?:NVL|RDMA) chunk \w{1,12}){1,2}"
_RDMA = rf"(?P<rdma>{NUMBER}) GB/s \(RDMA\)"
_NVL = rf"(?P<nvl>{NUMBER}) GB/s \(NVL\)"


class _Counters:
    """How many figures a source has told: sweeps tried, and rounds of each phase."""

    def __init__(self) -> None:
        self.tried = 0
        self.rounds: dict[tuple[int, Phase], int] = {}

    def next_round(self, rank: int, phase: Phase) -> int:
        """The next number of a rank's phase, which the lines themselves do not tell."""
        number = self.rounds.get((rank, phase), 0)
        self.rounds[rank, phase] = number + 1
        return number


def _done(
    source: Source,
    rank: int,
    phase: Phase,
    latency_us: str,
    nvl: str | None,
    rdma: str | None = None,
    moved_bytes: str | None = None,
) -> PhaseDone:
    return PhaseDone(
        t_ns=source.t_ns,
        restart=source.restart,
        rank=rank,
        round=source.remember(_Counters).next_round(rank, phase),
        phase=phase,
        latency_us=float(latency_us),
        xgmi_gbps=float(nvl) if nvl else None,
        rdma_algo_gbps=float(rdma) if rdma else None,
        bytes=int(moved_bytes) if moved_bytes else None,
        source="log",
    )


def _config(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    yield source.configured(
        num_tokens=int(match["tokens"]), hidden=int(match["hidden"]), topk=int(match["topk"])
    )


def _ranks(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    nodes, gpus = int(match["nodes"]), int(match["gpus"])
    yield source.configured(num_nodes=nodes, gpu_per_node=gpus, world_size=nodes * gpus)


def _experts(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    yield source.configured(topk=int(match["topk"]), num_experts=int(match["experts"]))


def _sizes(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    yield source.configured(num_tokens=int(match["most"]), hidden=int(match["hidden"]))


def _tried(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    counters = source.remember(_Counters)
    counters.tried += 1
    yield source.progress(counters.tried, None, f"tuning {match['what']}")


def _best(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    """Best of a sweep; where notify and transmit times stand apart, their sum is the phase's."""
    fields = match.groupdict()
    phase: Phase = "dispatch" if fields["phase"] == "dispatch" else "combine"
    latency = str(float(fields.get("notify") or 0) + float(fields["us"]))
    if phase == "dispatch" and fields.get("dtype"):
        yield source.configured(dtype=_DTYPES[fields["dtype"]])
    yield _done(source, source.rank or 0, phase, latency, fields["nvl"], fields.get("rdma"))


def _low_latency(source: Source, match: re.Match[str]) -> Iterator[PhaseDone]:
    rank = int(match["rank"])
    yield _done(source, rank, "dispatch", match["dispatch_us"], match["dispatch"])
    yield _done(source, rank, "combine", match["combine_us"], match["combine"])


def _elastic(source: Source, match: re.Match[str]) -> Iterator[PhaseDone]:
    phase: Phase = "dispatch" if match["phase"] == "dispatch" else "combine"
    yield _done(source, int(match["rank"]), phase, match["us"], match["nvl"], match["rdma"], match["bytes"])


def _timeout(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    rank = match.groupdict().get("rank")
    yield Failure(rank=source.rank if rank is None else int(rank), cause=match[0])


def _timeout_of_peer(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    del source
    yield Failure(rank=int(match["node"]) * 8 + int(match["local"]), cause=match[0])


RULES: tuple[Rule, ...] = (
    rule(
        "[config]",
        rf"\[config\] num_tokens=(?P<tokens>{WHOLE}), hidden=(?P<hidden>{WHOLE})"
        rf"(?:, num_topk_groups={WHOLE})?, num_topk=(?P<topk>{WHOLE})",
        _config,
    ),
    rule("[tuning] SMs ", rf"\[tuning\] (?P<what>{_TUNED})", _tried, since="2025-02-24"),
    rule(
        "Best ",
        rf"Best (?P<phase>dispatch) \((?P<dtype>FP8|BF16)\): {_TUNED}[:,] "
        rf"(?P<notify>{NUMBER}) \+ (?P<us>{NUMBER}) us, {_RDMA}, {_NVL}",
        _best,
        since="2025-09-16",
    ),
    rule(
        "Best ",
        rf"Best (?P<phase>combine): {_TUNED}[:,] (?P<notify>{NUMBER}) \+ (?P<us>{NUMBER}) us, {_RDMA}, {_NVL}",
        _best,
        since="2025-09-16",
    ),
    rule(
        "Best ",
        rf"Best (?P<phase>dispatch) \((?P<dtype>FP8|BF16)\): {_TUNED}[:,] {_NVL}, t: (?P<us>{NUMBER}) us",
        _best,
        since="2025-06-24",
    ),
    rule(
        "Best ",
        rf"Best (?P<phase>combine): {_TUNED}[:,] {_NVL}, t: (?P<us>{NUMBER}) us",
        _best,
        since="2025-06-24",
    ),
    rule(
        "Dispatch bandwidth:",
        rf"\[rank (?P<rank>\d{{1,6}})\] Dispatch bandwidth: (?P<dispatch>{NUMBER}) GB/s, "
        rf"avg_t=(?P<dispatch_us>{NUMBER}) us \| "
        rf"Combine bandwidth: (?P<combine>{NUMBER}) GB/s, avg_t=(?P<combine_us>{NUMBER}) us",
        _low_latency,
    ),
    rule("[rank ", r"\[rank (?P<rank>\d{1,6})\] "),
    rule(
        " EP: ",
        rf"[*@] EP: {{1,6}}(?P<rank>\d{{1,6}})/\d{{1,6}} \| (?P<phase>dispatch|combine): "
        rf"(?P<rdma>{NUMBER}) GB/s \(SO\), (?P<nvl>{NUMBER}) GB/s \(SU\), (?P<us>{NUMBER}) us, (?P<bytes>{WHOLE}) bytes",
        _elastic,
        since="2026-04-30",
    ),
    rule(" EP: ", r"[-#+] EP: {1,6}(?P<rank>\d{1,6})/\d{1,6} \| "),
    rule("> Ranks:", r"> Ranks: (?P<nodes>\d{1,6}) x (?P<gpus>\d{1,6})", _ranks, since="2026-04-30"),
    rule("> Experts:", r"> Experts: (?P<topk>\d{1,6})/(?P<experts>\d{1,9})", _experts, since="2026-04-30"),
    rule(
        "> Tokens:",
        rf"> Tokens: {WHOLE} \(max: (?P<most>{WHOLE})\), hidden: (?P<hidden>{WHOLE})",
        _sizes,
        since="2026-04-30",
    ),
    # kernels that waited too long: the rank that says so, and in its words whom it waits for
    rule(
        "timeout",
        r"DeepEP [^\n,]{1,80}timeout[^\n,]{0,20}, channel: \d{1,9}, (?:RDMA|IB): (?P<node>\d{1,6}), "
        r"nvl:? (?P<local>\d)\b[^\n]{0,200}",
        _timeout_of_peer,
        level="error",
    ),
    rule(
        "timeout",
        r"DeepEP [^\n]{0,80}timeout[^\n]{0,80}?[,:] rank(?: =|:)? (?P<rank>\d{1,6})\b[^\n]{0,200}",
        _timeout,
        level="error",
    ),
    rule("timeout", r"DeepEP [^\n]{0,80}timeout[^\n]{0,200}", _timeout, level="error"),
    rule(
        "failed when first calling",
        r"Rank (?P<rank>\d{1,6}) failed when first calling [^\n]{0,200}",
        _timeout,
        level="error",
    ),
    rule("Global rank:", r"Global rank: (?P<rank>\d{1,6}), num_recv_tokens: -1", nothing, level="error"),
)
