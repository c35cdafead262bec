"""The figures of a rank by name: what the Ranks table sorts by, filters by and exports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from morimon.store.snapshot import RankSnapshot

Value: TypeAlias = float | str | None


@dataclass(frozen=True, slots=True)
class Field:
    """A figure: its name in filters and exports (unit included), and how to read it."""

    name: str
    read: Callable[[RankSnapshot], Value]


def doing(rank: RankSnapshot) -> str:
    """What a rank does now, in one word: its phase while it runs, else its state."""
    return rank.phase if rank.state == "running" and rank.phase else rank.state


FIELDS: dict[str, Field] = {
    "rank": Field("rank", lambda r: r.rank),
    "node": Field("node", lambda r: r.node),
    "pid": Field("pid", lambda r: r.pid),
    "phase": Field("phase", doing),
    "round": Field("round", lambda r: r.round),
    "recv": Field("recv_tokens", lambda r: r.recv_tokens),
    "rdma": Field("rdma_tokens_algo", lambda r: r.rdma_tokens_algo),
    "arrived": Field("dispatch_arrival_us", lambda r: r.dispatch.arrival_us),
    "arrived_combine": Field("combine_arrival_us", lambda r: r.combine.arrival_us),
    "last": Field("last_to_arrive", lambda r: r.last_to_arrive),
    "dispatch": Field("dispatch_us", lambda r: r.dispatch.latency_us),
    "dispatch_gbps": Field("dispatch_gbps", lambda r: r.dispatch.xgmi_gbps),
    "dispatch_rdma": Field("dispatch_rdma_algo_gbps", lambda r: r.dispatch.rdma_algo_gbps),
    "combine": Field("combine_us", lambda r: r.combine.latency_us),
    "combine_gbps": Field("combine_gbps", lambda r: r.combine.xgmi_gbps),
    "combine_rdma": Field("combine_rdma_algo_gbps", lambda r: r.combine.rdma_algo_gbps),
    "cpu": Field("cpu_percent", lambda r: r.cpu_percent),
    "rss": Field("rss_bytes", lambda r: r.rss_bytes),
    "threads": Field("threads", lambda r: r.threads),
}
"""Column key -> figure, in the order of the table."""


def ordered(ranks: list[RankSnapshot], key: str, *, descending: bool) -> list[RankSnapshot]:
    """The ranks sorted by a figure; who lacks it comes last either way, equals stay in the order of ranks."""
    read = FIELDS[key].read
    known = [(value, rank) for rank in ranks if (value := read(rank)) is not None]
    unknown = [rank for rank in ranks if read(rank) is None]
    known.sort(key=lambda pair: pair[0], reverse=descending)
    return [rank for _, rank in known] + unknown
