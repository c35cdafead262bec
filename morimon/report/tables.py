"""A run's final tables in plain lines: best, worst and average of each phase, then a row a rank with totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from morimon.draw.glyphs import Glyphs
from morimon.draw.line import plain
from morimon.draw.table import Column, fit
from morimon.draw.text import cells
from morimon.draw.units import gbps, micros, tokens
from morimon.logs.causes import signal_name
from morimon.report.excerpt import Excerpt
from morimon.report.text import drop_lines, failure_lines, lateness_in_full, outcome_line
from morimon.store.snapshot import Extreme, RankSnapshot, RunSnapshot, Spread

Figure = Callable[[float | None, Glyphs], str]
_PAPER_WIDTH = 10_000
"""Paper is as wide as its table; no column goes."""


def final_lines(snapshot: RunSnapshot, excerpt: Excerpt | None, glyphs: Glyphs) -> list[str]:
    """The end of a run: what failed first, then the summary, then a row a rank, then what to know beside it."""
    blocks = [
        failure_lines(snapshot, excerpt, glyphs),
        [outcome_line(snapshot)],
        summary_table(snapshot, glyphs),
        rank_table(snapshot, glyphs),
        _remarks(snapshot, glyphs),
    ]
    out: list[str] = []
    for block in blocks:
        if block:
            out += ["", *block] if out else block
    return out


def summary_table(snapshot: RunSnapshot, glyphs: Glyphs) -> list[str]:
    """Best, worst and average of both phases; best and worst name the rank and the round as r3#12."""
    rows = [
        {
            "phase": summary.phase,
            "which": which,
            "rdma": _of(snapshot.across(summary.rdma_algo_gbps), which, gbps, glyphs),
            "xgmi": _of(summary.xgmi_gbps, which, gbps, glyphs),
            "latency": _of(summary.latency_us, which, micros, glyphs),
        }
        for summary in (snapshot.dispatch, snapshot.combine)
        if summary is not None
        for which in ("best", "worst", "average")
    ]
    columns = [
        Column("phase", "phase", 0, right=False),
        Column("which", "", 0, right=False),
        Column("latency", f"latency {glyphs.micro}s", 0, right=False),
        Column("xgmi", "XGMI/NVL GB/s", 0, right=False),
        Column("rdma", "RDMA algo GB/s", 0, right=False),
    ]
    return [*table_lines(columns, rows, glyphs), "r3#12 would be rank 3, round 12"] if rows else []


def rank_table(snapshot: RunSnapshot, glyphs: Glyphs) -> list[str]:
    """A row a rank: counts, averages over its rounds, how often it came last; totals below."""
    if not snapshot.ranks:
        return []
    judged = snapshot.arrivals_judged > 0
    rows = [
        _rank_row(rank, glyphs, snapshot.across(rank.rdma_tokens_algo), judged=judged)
        for rank in snapshot.ranks
    ]
    rows.append(
        {
            "rank": "all",
            "recv": tokens(snapshot.recv_tokens_total, glyphs),
            "rdma": tokens(snapshot.across(snapshot.rdma_tokens_algo_total), glyphs),
            "last": tokens(snapshot.arrivals_judged or None, glyphs),
        }
    )
    columns = [
        Column("rank", "rank", 0),
        Column("node", "node", 0),
        Column("state", "state", 0, right=False),
        Column("recv", "recv tok", 0),
        Column("rdma", "rdma tok", 0),
        Column("dispatch_us", f"dispatch {glyphs.micro}s", 0),
        Column("dispatch_gbps", "GB/s", 0),
        Column("combine_us", f"combine {glyphs.micro}s", 0),
        Column("combine_gbps", "GB/s", 0),
        Column("last", "came last", 0),
        Column("late", "", 0, right=False),
    ]
    return table_lines(columns, rows, glyphs)


def _rank_row(rank: RankSnapshot, glyphs: Glyphs, rdma_tokens: int | None, *, judged: bool) -> dict[str, str]:
    ends = [signal_name(rank.signal)] if rank.signal else []
    if rank.exitcode:
        ends.append(f"exit code {rank.exitcode}")
    row = {
        "rank": str(rank.rank),
        "node": tokens(rank.node, glyphs),
        "state": ", ".join([rank.state, *ends]),
        "recv": tokens(rank.recv_tokens, glyphs),
        "rdma": tokens(rdma_tokens, glyphs),
        "last": tokens(rank.last_to_arrive if judged else None, glyphs),
        "late": f"{glyphs.late} late" if rank.is_late else "",
    }
    for name, figures in (("dispatch", rank.dispatch), ("combine", rank.combine)):
        overall = figures.overall
        row[f"{name}_us"] = _of(overall.latency_us if overall else None, "average", micros, glyphs)
        row[f"{name}_gbps"] = _of(overall.xgmi_gbps if overall else None, "average", gbps, glyphs)
    return row


def _remarks(snapshot: RunSnapshot, glyphs: Glyphs) -> list[str]:
    out = []
    if late := lateness_in_full(snapshot, glyphs):
        out.append(late)
    elif len(snapshot.ranks) > 1 and (snapshot.dispatch or snapshot.combine):
        out.append("who is late cannot be told: the job tells durations, not arrivals")
    nodes = snapshot.config.num_nodes
    if not snapshot.crosses_nodes:
        out.append(f"RDMA bandwidth {glyphs.missing}: one node, nothing crosses")
    elif nodes and any(s and s.rdma_algo_gbps for s in (snapshot.dispatch, snapshot.combine)):
        out.append(
            f"RDMA algo counts each rank's own node too: about {nodes - 1}/{nodes} of it leaves the node"
        )
    return out + drop_lines(snapshot)


def _of(spread: Spread | None, which: str, figure: Figure, glyphs: Glyphs) -> str:
    if spread is None:
        return glyphs.missing
    extremes: Mapping[str, Extreme] = {"best": spread.best, "worst": spread.worst}
    if which not in extremes:
        return figure(spread.average, glyphs)
    one = extremes[which]
    return f"{figure(one.value, glyphs)} r{one.rank}#{one.round}"


def table_lines(columns: Sequence[Column], rows: Sequence[Mapping[str, str]], glyphs: Glyphs) -> list[str]:
    """A heading and a row each, every column as wide as it must be."""
    sized = [replace(c, width=max(cells(row.get(c.key, "")) for row in rows)) for c in columns]
    table = fit(sized, _PAPER_WIDTH, glyphs)
    heading, _ = table.heading()
    return [plain(heading), *(plain(table.row(row)) for row in rows)]
