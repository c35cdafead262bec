"""Counts that a job printed, held against the counts that its routing gives.

Where the routing is known the counts must be equal. Where only its kind is known (uniform, drawn by a generator that
is not at hand) they must lie within four standard deviations of the mean, which is a statistical statement.
Counts that no routing can give are impossible whatever the routing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from morimon.ep.config import EpConfig
from morimon.ep.counts import Counts
from morimon.ep.expectation import Expected, expect

Field = Literal["recv_tokens", "rdma_tokens_algo"]
Verdict = Literal["equal", "within", "different", "outside", "impossible", "no such rank"]

SIGMAS = 4.0


class Observed(msgspec.Struct, frozen=True):
    """One printed line of token counts."""

    rank: int
    recv_tokens: int
    rdma_tokens_algo: int | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One printed count; what may stand is from `low` to `high`."""

    rank: int
    field: Field
    observed: int
    low: float
    high: float
    verdict: Verdict

    @property
    def ok(self) -> bool:
        """Whether the count may stand."""
        return self.verdict in ("equal", "within")


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """All findings on a log; `missing` are the ranks that it does not tell of."""

    statistical: bool
    findings: tuple[Finding, ...]
    missing: tuple[int, ...]

    @property
    def ok(self) -> bool:
        """Whether every printed count may stand."""
        return all(finding.ok for finding in self.findings)


def check_exactly(counts: Counts, observed: Iterable[Observed]) -> Check:
    """Hold printed counts against the counts of the very routing."""

    def due(rank: int, field: Field) -> tuple[float, float]:
        value: int = getattr(counts.ranks[rank], field)
        return value, value

    return _check(counts.config, observed, due, statistical=False)


def check_statistically(config: EpConfig, observed: Iterable[Observed]) -> Check:
    """Hold printed counts against what uniform routing gives on average."""
    expectation = expect(config)

    def due(rank: int, field: Field) -> tuple[float, float]:
        del rank
        value: Expected = getattr(expectation, field)
        return value.mean - SIGMAS * value.sigma, value.mean + SIGMAS * value.sigma

    return _check(config, observed, due, statistical=True)


def _check(
    config: EpConfig,
    observed: Iterable[Observed],
    due: Callable[[int, Field], tuple[float, float]],
    *,
    statistical: bool,
) -> Check:
    lines = list(dict.fromkeys(observed))
    findings = []
    for line in lines:
        printed: list[tuple[Field, int | None]] = [
            ("recv_tokens", line.recv_tokens),
            ("rdma_tokens_algo", line.rdma_tokens_algo),
        ]
        for field, value in printed:
            if value is None:
                continue
            known = 0 <= line.rank < config.world_size
            low, high = due(line.rank, field) if known else (0.0, 0.0)
            most = most_possible(config, field)
            verdict: Verdict
            if not known:
                verdict = "no such rank"
            elif not 0 <= value <= most:
                verdict, low, high = "impossible", 0, most
            elif low <= value <= high:
                verdict = "within" if statistical else "equal"
            else:
                verdict = "outside" if statistical else "different"
            findings.append(
                Finding(rank=line.rank, field=field, observed=value, low=low, high=high, verdict=verdict)
            )
    missing = set(range(config.world_size)) - {line.rank for line in lines}
    return Check(statistical=statistical, findings=tuple(findings), missing=tuple(sorted(missing)))


def most_possible(config: EpConfig, field: Field) -> int:
    """The most that a count can be, whatever the routing."""
    if field == "recv_tokens":
        return config.num_tokens * config.world_size
    return config.num_tokens * config.num_nodes
