"""The objects that `--json` prints, one a line; docs/json.md describes them for readers.

All are made from a snapshot of the record alone, so that a replay prints the bytes that the live run printed.
"""

from __future__ import annotations

from typing import Any

import msgspec

from morimon.model.config import JobConfig
from morimon.model.events import Dropped, Level, Note, Phase
from morimon.report.now import means_now
from morimon.store.snapshot import DropCount, Extreme, PhaseSummary, RankSnapshot, RunSnapshot, Spread


class Figure(msgspec.Struct, frozen=True):
    """A figure over rounds."""

    best: float
    worst: float
    average: float


class PhaseFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of one rank, over all its rounds; null where nobody told."""

    rounds: int = 0
    latency_us: Figure | None = None
    xgmi_gbps: Figure | None = None
    rdma_algo_gbps: Figure | None = None


class Placed(msgspec.Struct, frozen=True):
    """A value and where it was seen."""

    value: float
    rank: int
    round: int


class PlacedFigure(msgspec.Struct, frozen=True):
    """A figure over ranks and rounds: best and worst with the rank and round they were seen in."""

    best: Placed
    worst: Placed
    average: float


class PhaseTotals(msgspec.Struct, frozen=True, kw_only=True):
    """One phase over all ranks and rounds."""

    rounds: int = 0
    latency_us: PlacedFigure | None = None
    xgmi_gbps: PlacedFigure | None = None
    rdma_algo_gbps: PlacedFigure | None = None


class RankResult(msgspec.Struct, frozen=True, kw_only=True):
    """One rank at the end."""

    rank: int
    node: int | None
    restart: int
    state: str
    recv_tokens: int | None
    rdma_tokens_algo: int | None
    last_to_arrive: int
    late: bool
    dispatch: PhaseFigures
    combine: PhaseFigures


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums and summaries over all ranks."""

    recv_tokens: int | None
    rdma_tokens_algo: int | None
    arrivals_judged: int
    dispatch: PhaseTotals
    combine: PhaseTotals


class Last(msgspec.Struct, frozen=True, kw_only=True):
    """The rank that most often arrives last."""

    rank: int
    phase: Phase
    behind_us: float
    rounds: int
    judged: int
    late: bool


class DropResult(msgspec.Struct, frozen=True, kw_only=True):
    """Input that was set aside."""

    reason: str
    rank: int | None
    count: int


class Result(msgspec.Struct, frozen=True, kw_only=True, tag="result", tag_field="type"):
    """The last object of a run."""

    ok: bool
    run_id: str
    state: str
    exitcode: int | None
    elapsed_s: float
    ranks: list[RankResult]
    totals: Totals
    last_to_arrive: Last | None
    dropped: list[DropResult]
    failure: dict[str, Any] | None


class RunObject(msgspec.Struct, frozen=True, kw_only=True, tag="run", tag_field="type"):
    """What runs, as soon as the job has told its configuration."""

    run_id: str
    host: str
    command: tuple[str, ...]
    started_unix_ns: int | None
    config: JobConfig


class ProgressObject(msgspec.Struct, frozen=True, kw_only=True, tag="progress", tag_field="type"):
    """How far the job is; figures are means over the ranks' newest rounds."""

    elapsed_s: float
    state: str
    done: int | None
    total: int | None
    eta_s: float | None
    dispatch_us: float | None
    dispatch_gbps: float | None
    combine_us: float | None
    combine_gbps: float | None
    last_to_arrive: Last | None


class NoteObject(msgspec.Struct, frozen=True, kw_only=True, tag="note", tag_field="type"):
    """Something to know about the run."""

    level: Level
    text: str


class DroppedObject(msgspec.Struct, frozen=True, kw_only=True, tag="dropped", tag_field="type"):
    """Input that was set aside just now."""

    reason: str
    rank: int | None
    count: int


def encoded(thing: msgspec.Struct) -> str:
    """One line of JSON, without its end."""
    return msgspec.json.encode(thing).decode()


def run_object(snapshot: RunSnapshot) -> RunObject:
    """The run's name and configuration."""
    return RunObject(
        run_id=snapshot.run_id,
        host=snapshot.host,
        command=snapshot.command,
        started_unix_ns=snapshot.started_unix_ns,
        config=snapshot.config,
    )


def progress_object(snapshot: RunSnapshot) -> ProgressObject:
    """The run at this moment."""
    dispatch, combine = means_now(snapshot, "dispatch"), means_now(snapshot, "combine")
    return ProgressObject(
        elapsed_s=snapshot.elapsed_s,
        state=snapshot.state,
        done=snapshot.progress_done,
        total=snapshot.progress_total,
        eta_s=snapshot.eta_s,
        dispatch_us=dispatch.latency_us,
        dispatch_gbps=dispatch.xgmi_gbps,
        combine_us=combine.latency_us,
        combine_gbps=combine.xgmi_gbps,
        last_to_arrive=_last(snapshot),
    )


def note_object(event: Note) -> NoteObject:
    """A note of the record."""
    return NoteObject(level=event.level, text=event.text)


def dropped_object(event: Dropped) -> DroppedObject:
    """A count of the record."""
    return DroppedObject(reason=event.reason, rank=event.rank, count=event.count)


def result_object(snapshot: RunSnapshot) -> Result:
    """The run at its end."""
    return Result(
        ok=snapshot.state == "finished",
        run_id=snapshot.run_id,
        state=snapshot.state,
        exitcode=snapshot.exitcode,
        elapsed_s=snapshot.elapsed_s,
        ranks=[_rank(rank) for rank in snapshot.ranks],
        totals=Totals(
            recv_tokens=snapshot.recv_tokens_total,
            rdma_tokens_algo=snapshot.rdma_tokens_algo_total,
            arrivals_judged=snapshot.arrivals_judged,
            dispatch=_phase_totals(snapshot.dispatch),
            combine=_phase_totals(snapshot.combine),
        ),
        last_to_arrive=_last(snapshot),
        dropped=[
            DropResult(reason=drop.reason, rank=drop.rank, count=drop.count)
            for drop in sorted(snapshot.drops, key=DropCount.order)
        ],
        failure=_failure(snapshot),
    )


def _rank(rank: RankSnapshot) -> RankResult:
    return RankResult(
        rank=rank.rank,
        node=rank.node,
        restart=rank.restart,
        state=rank.state,
        recv_tokens=rank.recv_tokens,
        rdma_tokens_algo=rank.rdma_tokens_algo,
        last_to_arrive=rank.last_to_arrive,
        late=rank.is_late,
        dispatch=_phase(rank.dispatch.overall),
        combine=_phase(rank.combine.overall),
    )


def _phase(summary: PhaseSummary | None) -> PhaseFigures:
    if summary is None:
        return PhaseFigures()
    return PhaseFigures(
        rounds=summary.rounds,
        latency_us=_figure(summary.latency_us),
        xgmi_gbps=_figure(summary.xgmi_gbps),
        rdma_algo_gbps=_figure(summary.rdma_algo_gbps),
    )


def _figure(spread: Spread | None) -> Figure | None:
    return Figure(spread.best.value, spread.worst.value, spread.average) if spread else None


def _phase_totals(summary: PhaseSummary | None) -> PhaseTotals:
    if summary is None:
        return PhaseTotals()
    return PhaseTotals(
        rounds=summary.rounds,
        latency_us=_placed_figure(summary.latency_us),
        xgmi_gbps=_placed_figure(summary.xgmi_gbps),
        rdma_algo_gbps=_placed_figure(summary.rdma_algo_gbps),
    )


def _placed_figure(spread: Spread | None) -> PlacedFigure | None:
    return PlacedFigure(_placed(spread.best), _placed(spread.worst), spread.average) if spread else None


def _placed(extreme: Extreme) -> Placed:
    return Placed(extreme.value, extreme.rank, extreme.round)


def _last(snapshot: RunSnapshot) -> Last | None:
    straggler = snapshot.straggler
    if straggler is None:
        return None
    return Last(
        rank=straggler.rank,
        phase=straggler.phase,
        behind_us=straggler.behind_us,
        rounds=straggler.rounds,
        judged=straggler.judged,
        late=straggler.is_late,
    )


def _failure(snapshot: RunSnapshot) -> dict[str, Any] | None:
    failure = snapshot.failure
    if failure is not None:
        out: dict[str, Any] = {"rank": failure.rank, "cause": failure.cause}
        if failure.exitcode is not None:
            out["exitcode"] = failure.exitcode
        if failure.signal is not None:
            out["signal"] = failure.signal
        return out
    if snapshot.state == "lost":
        return {"rank": None, "cause": "Nobody saw how the job ended: its hub and its keeper are gone."}
    if snapshot.state == "failed":
        return {
            "rank": None,
            "cause": "The job failed; no rank and no output says why.",
            "exitcode": snapshot.exitcode,
        }
    return None
