"""A run in plain lines: its header, its progress, its failure. Pure: snapshots in, lines out, no markup, no codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from morimon.draw.glyphs import ASCII, UNICODE, Glyphs
from morimon.draw.text import sanitised
from morimon.draw.units import duration, gbps, micros
from morimon.logs.causes import signal_name
from morimon.report.excerpt import Excerpt
from morimon.report.now import means_now
from morimon.runs.command import short_command
from morimon.store.arrivals import LATE_MINIMUM
from morimon.store.snapshot import DropCount, RunSnapshot
from morimon.views.status import configuration, measured_on

PLAIN_UNICODE = replace(UNICODE, thousands="")
PLAIN_ASCII = replace(ASCII, thousands="")


def glyphs_for(encoding: str | None) -> Glyphs:
    """The glyphs that a stream of this encoding can carry; figures are printed without thousands marks."""
    try:
        "µ–·×✗◀│…".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return PLAIN_ASCII
    return PLAIN_UNICODE


def header_line(snapshot: RunSnapshot, glyphs: Glyphs) -> str:
    """Which job this is."""
    phrases = configuration(snapshot.config, glyphs) or [sanitised(short_command(snapshot.command))]
    where = f"run {snapshot.run_id} on {sanitised(snapshot.host)}"
    return ", ".join(phrase for phrase in (*phrases, measured_on(snapshot.config), where) if phrase)


def progress_line(snapshot: RunSnapshot, glyphs: Glyphs) -> str:
    """How far the job is, how its phases go, and who is late."""
    parts = [f"{duration(snapshot.elapsed_s):>5}", _progress(snapshot)]
    for phase in ("dispatch", "combine"):
        latency_us, xgmi_gbps = means_now(snapshot, phase)
        if latency_us is not None:
            parts.append(f"{phase} {_us(latency_us, glyphs)} {gbps(xgmi_gbps, glyphs)} GB/s")
    if late := lateness(snapshot, glyphs):
        parts.append(late)
    return "  ".join(parts)


def lateness(snapshot: RunSnapshot, glyphs: Glyphs) -> str:
    """Who keeps the others waiting, and by how much; empty while that cannot be told."""
    s = snapshot.straggler
    if s is None or (not s.is_late and s.judged < LATE_MINIMUM):
        return ""
    if not s.is_late:
        return "no rank is late"
    behind = f"+{_us(s.behind_us, glyphs)} at {s.phase}"
    return f"last to arrive: rank {s.rank} ({behind}, {s.rounds} of {s.judged} rounds) {glyphs.late} late"


def lateness_in_full(snapshot: RunSnapshot, glyphs: Glyphs) -> str:
    """The same at the end: where no rank is late, with the rank that chance made the last one most often."""
    s = snapshot.straggler
    if s is None or s.is_late:
        return lateness(snapshot, glyphs)
    verdict = lateness(snapshot, glyphs) or f"{s.judged} rounds are too few to tell who is late"
    return (
        f"{verdict}: most often rank {s.rank} came last, in {s.rounds} of {s.judged} rounds of {s.phase}, "
        f"+{_us(s.behind_us, glyphs)}"
    )


def failure_lines(snapshot: RunSnapshot, excerpt: Excerpt | None, glyphs: Glyphs) -> list[str]:
    """The first cause: rank, reason, how its process ended, and its own last lines."""
    failure = snapshot.failure
    if failure is None:
        return []
    who = "the job failed" if failure.rank is None else f"rank {failure.rank} failed first"
    cause = sanitised(failure.cause)
    ends = [failure.signal] if failure.signal else []
    if failure.exitcode is not None:
        ends.append(f"exit code {failure.exitcode}")
    how = ", ".join(end for end in ends if end not in cause)
    out = [f"{glyphs.failed} {who}: {cause}" + (f" ({how})" if how else "")]
    if excerpt is not None:
        out.append(f"  {sanitised(excerpt.file)}:")
        out += [f"  {glyphs.bar} {sanitised(line)}" for line in excerpt.lines]
        if excerpt.more:
            out.append(f"  {glyphs.bar} {glyphs.ellipsis}")
    return out


def outcome_line(snapshot: RunSnapshot) -> str:
    """How the run ended, or how far it is, after how long."""
    rounds = max((s.rounds for s in (snapshot.dispatch, snapshot.combine) if s), default=0)
    running = snapshot.state in ("starting", "running", "stopping")
    state = f"still {snapshot.state}" if running else snapshot.state
    code = snapshot.exitcode or 0
    how = f" by {signal_name(-code)}" if code < 0 else f" with exit code {code}" if code else ""
    counted = f"{_counted(len(snapshot.ranks), 'rank')}, {_counted(rounds, 'round')} counted"
    return f"{state}{how} after {duration(snapshot.elapsed_s)}: {counted}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def drop_lines(snapshot: RunSnapshot) -> list[str]:
    """What was set aside: a line a reason, with the rank or the number of ranks it concerns."""
    by_reason: dict[str, list[DropCount]] = {}
    for drop in snapshot.drops:
        by_reason.setdefault(drop.reason, []).append(drop)
    return [
        f"{sum(drop.count for drop in drops)} set aside: {sanitised(reason)}{_whose(drops)}"
        for reason, drops in sorted(by_reason.items())
    ]


def _whose(drops: Sequence[DropCount]) -> str:
    ranks = {drop.rank for drop in drops if drop.rank is not None}
    if not ranks:
        return ""
    return f" (rank {ranks.pop()})" if len(ranks) == 1 else f" ({len(ranks)} ranks)"


def _progress(snapshot: RunSnapshot) -> str:
    done, total = snapshot.progress_done, snapshot.progress_total
    if done is None:
        return snapshot.state
    if total is None:
        return f"round {done}"
    left = f", {duration(snapshot.eta_s)} left" if snapshot.eta_s else ""
    return f"round {done:>{len(str(total))}}/{total}{left}"


def _us(value_us: float, glyphs: Glyphs) -> str:
    return f"{micros(value_us, glyphs)} {glyphs.micro}s"
