"""How a run goes at this moment, in a few figures."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import NamedTuple

from morimon.model.events import Phase
from morimon.store.snapshot import RunSnapshot


class Means(NamedTuple):
    """Means over the ranks' newest rounds of a phase; None where none has told."""

    latency_us: float | None
    xgmi_gbps: float | None


def means_now(snapshot: RunSnapshot, phase: Phase) -> Means:
    """How a phase goes at this moment."""
    figures = [rank.dispatch if phase == "dispatch" else rank.combine for rank in snapshot.ranks]
    return Means(_mean(f.latency_us for f in figures), _mean(f.xgmi_gbps for f in figures))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return fmean(known) if known else None
