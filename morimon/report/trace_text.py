"""A trace as text: what the kernel analyzers print of an iteration and a slot, and what they leave out.

Times are microseconds, those of kernels from their iteration's start. Lines keep to `width` from 80 columns on;
figures are plain digits, so that they can be found again.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from morimon.trace.lanes import timeline
from morimon.trace.model import ROLES
from morimon.trace.stats import slot_table, thread_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from morimon.trace.model import Bar, Iteration, SlotRow, Trace

DETAILED = 40
"""Iterations that are shown kernel by kernel; of more, only the slowest, the partial and the first are."""
LISTED = 200
"""Iterations that have a line each."""
ROWS = 60
"""Kernels of an iteration and slots of a table that are listed: unknown traces may hold thousands of names."""
PARTS = 32
"""Union intervals of a serial kernel that are listed one by one: its gaps are warps that wait, or waves of blocks."""
_MARKS = {"damage": "✗", "warning": "!", "note": "·"}


def as_text(trace: Trace, width: int = 80, *, every: bool = False) -> str:
    """The whole report; `every` shows all iterations kernel by kernel, however many there are."""
    parts = [_head(trace, width)]
    if trace.iterations:
        chosen = detailed(trace.iterations, every=every)
        left = len(trace.iterations) - len(chosen)
        parts.append(
            _iterations(trace, chosen if len(trace.iterations) > LISTED else trace.iterations, width)
        )
        parts += [_kernels(trace, iteration, width) for iteration in chosen]
        if left:
            parts.append(f"{left} more iterations are not shown kernel by kernel; --every shows them.\n")
    if len(trace.spans):
        rows = slot_table(trace)
        parts += [_slots(trace, rows), _roles(trace, rows, width), _threads(trace)]
    return "\n".join(parts)


def heading(trace: Trace) -> str:
    """The file's name and what it holds, on one line."""
    ranks = [process.rank for process in trace.processes]
    known = sorted(rank for rank in ranks if rank is not None)
    if len(ranks) > 1:
        rank = f"{len(ranks)} ranks ({known[0]} to {known[-1]})" if known else f"{len(ranks)} processes"
    else:
        rank = trace.processes[0].title if trace.processes else "no rank"
    partial = sum(not iteration.whole for iteration in trace.iterations)
    iterations = _count(len(trace.iterations), "iteration") + (f" ({partial} partial)" if partial else "")
    name = safe(trace.path.rpartition("/")[2])
    counts = f"{_count(len(trace.spans), 'span')}, {_count(len(trace.threads), 'thread')}, {iterations}"
    return f"{name}: {trace.family}, {rank}, {counts}"


def banners(trace: Trace, width: int) -> list[str]:
    """What was found, the gravest first, and what was set aside or left out; each told by its mark."""
    order = list(_MARKS)
    found = sorted(trace.findings, key=lambda finding: order.index(finding.severity))
    texts = [f"{_MARKS[finding.severity]} {safe(finding.text)}" for finding in found]
    if trace.set_aside:
        kinds = ", ".join(f"{count} {safe(kind)}" for kind, count in trace.set_aside.items())
        texts.append(f"· events that are no spans, set aside: {kinds}")
    return [line for text in texts for line in textwrap.wrap(text, width, subsequent_indent="  ")]


def safe(text: str) -> str:
    """Text from a file as it may be printed: no control codes, nothing that changes what stands around it."""
    if text.isascii() and text.isprintable():
        return text
    from morimon.draw.text import sanitised  # its width tables are not needed for ASCII

    return sanitised(text)


def _head(trace: Trace, width: int) -> str:
    lines = textwrap.wrap(heading(trace), width, subsequent_indent="  ")
    if trace.origin_ns:
        lines.append(f"times count from ts {trace.origin_ns / 1000:.3f} µs")
    return "\n".join([*lines, *banners(trace, width)]) + "\n"


def _iterations(trace: Trace, chosen: Sequence[Iteration], width: int) -> str:
    several = len(trace.processes) > 1
    lines = [
        "ITERATIONS (wall clock, µs)",
        f"{'rank' if several else '':>4} {'#':>5} {'start':>12} {'end':>12} {'duration':>10} {'overlap':>8} {'barriers':>9}",
    ]
    for iteration in chosen:
        rank = trace.processes[iteration.process].rank
        overlap = "–" if iteration.overlap is None else f"{100 * iteration.overlap:.0f} %"
        barriers = "–" if iteration.barrier_ns is None else f"{iteration.barrier_ns / 1000:.2f}"
        who = ("?" if rank is None else str(rank)) if several else ""
        line = (
            f"{who:>4} {iteration.ordinal:>5} {iteration.start_ns / 1000:>12.2f} {iteration.end_ns / 1000:>12.2f}"
            f" {iteration.duration_ns / 1000:>10.2f} {overlap:>8} {barriers:>9}{' ◀ outlier' if iteration.outlier else ' stale' if iteration.stale else ''}"
        )
        lines.append(line)
        if not iteration.whole:
            lines += textwrap.wrap(
                f"partial: {safe(iteration.missing)}",
                width,
                initial_indent=" " * 11,
                subsequent_indent=" " * 13,
            )
    return "\n".join(lines) + "\n"


def detailed(iterations: Sequence[Iteration], *, every: bool = False) -> list[Iteration]:
    """Iterations to show in full: all of them, or of too many the first two, the slowest, the median and the partial."""
    if every or len(iterations) <= DETAILED:
        return list(iterations)
    whole = sorted((it for it in iterations if it.whole), key=lambda it: it.duration_ns)
    picked = [*iterations[:2], *whole[-3:], *whole[len(whole) // 2 :][:1]]
    partial = [it for it in iterations if not it.whole][:3]
    keys = {(it.process, it.number) for it in [*picked, *partial]}
    return [it for it in iterations if (it.process, it.number) in keys]


def _kernels(trace: Trace, iteration: Iteration, width: int) -> str:
    bars = timeline(trace, iteration.process, iteration.number)
    start, end = iteration.start_ns / 1000, iteration.end_ns / 1000
    process = trace.processes[iteration.process]
    rank = f"{process.title}, " if len(trace.processes) > 1 else ""
    partial = "" if iteration.whole else ", partial"
    lines = [
        f"{rank}iteration {iteration.ordinal}{partial}  [{start:.2f} – {end:.2f} µs]  total {iteration.duration_ns / 1000:.2f} µs",
        f"  {'kernel':<36} {'start':>8} {'end':>8} {'duration':>8} {'parts':>4} {'idle':>8}",
    ]
    shown = sorted(bars.bars, key=lambda bar: bar.start_ns)
    for bar in shown[:ROWS]:
        lines += _kernel(trace, bar, iteration.start_ns, width)
    if len(shown) > ROWS:
        lines.append(f"  and {len(shown) - ROWS} more kernels; --json holds them all")
    return "\n".join(lines) + "\n"


def _kernel(trace: Trace, bar: Bar, zero_ns: int, width: int) -> Iterator[str]:
    """The bar's row; below it the parts that it is made of, where there are several."""
    slot = trace.slots[bar.slot]
    start, end = (bar.start_ns - zero_ns) / 1000, (bar.end_ns - zero_ns) / 1000
    idle = f"{bar.idle}/{bar.warps}" if bar.idle else ""
    parts = str(bar.fragments) if bar.fragments > 1 else ""
    name = _cell(slot.name, 36)
    yield f"  {name} {start:8.2f} {end:8.2f} {(bar.end_ns - bar.start_ns) / 1000:8.2f} {parts:>4} {idle:>9}".rstrip()
    if bar.fragments == 1:
        return
    if slot.sync:
        yield f"    the last part, which gates; the first warp came at {(bar.first_ns - zero_ns) / 1000:.2f}"
    if slot.lane == "serial" and bar.fragments <= PARTS:
        pieces = ((bar.intervals - zero_ns) / 1000).tolist()
        listed = ", ".join(f"{a:.2f}–{b:.2f}\u00a0({b - a:.2f})" for a, b in pieces)
        for line in textwrap.wrap(listed, width - 4, break_on_hyphens=False):
            yield "    " + line.replace("\u00a0", " ")


def _slots(trace: Trace, rows: Sequence[SlotRow]) -> str:
    """Every span of a slot whatever its role, in order of mean."""
    slots: dict[str, list[SlotRow]] = {}
    for row in rows:
        slots.setdefault(trace.slots[row.slot].name, []).append(row)
    lines = [
        "PER SLOT, durations of all threads and iterations (µs), idle passes included",
        f"  {'slot':<36} {'calls':>7} {'mean':>8} {'min':>8} {'max':>8} {'share':>6}",
    ]
    table = []
    for name, of_slot in slots.items():
        calls = sum(row.all.calls for row in of_slot)
        mean = sum(row.all.total_us for row in of_slot) / calls
        least, most = min(row.all.min_us for row in of_slot), max(row.all.max_us for row in of_slot)
        share = 100 * sum(row.all.share for row in of_slot)
        line = f"  {_cell(name, 36)} {calls:>7} {mean:>8.2f} {least:>8.2f} {most:>8.2f} {share:>5.1f}%"
        table.append((mean, line))
    lines += [line for _, line in sorted(table, key=lambda entry: -entry[0])[:ROWS]]
    if len(table) > ROWS:
        lines.append(f"  and {len(table) - ROWS} more slots; --json holds them all")
    return "\n".join(lines) + "\n"


def _roles(trace: Trace, rows: Sequence[SlotRow], width: int) -> str:
    """Working passes of a slot by role, idle ones counted apart."""
    has_role, has_idle = any(row.role for row in rows), any(row.idle for row in rows)
    room = 12 + 5 * (not has_role) + 7 * (not has_idle)  # names of foreign kernels are long
    wide = width >= 98
    heads = ["mean", *(["min"] * wide), "p50", "p90", "p99", "max", *(["std"] * wide)]
    lines = [
        f"PER SLOT{' AND ROLE' if has_role else ''}, passes that had work (µs)",
        f"  {'slot':<{room}}{' role' * has_role} {'working':>7}{'   idle' * has_idle}"
        + "".join(f" {head:>8}" for head in heads),
    ]
    for row in rows[:ROWS]:
        slot = trace.slots[row.slot]
        line = f"  {_cell(slot.short if slot.order >= 0 else slot.name, room)}"
        line += f" {ROLES[row.role]:<4}" * has_role
        line += f" {row.working.calls if row.working else 0:>7}" + f" {row.idle or '':>6}" * has_idle
        if row.working:
            line += "".join(f" {getattr(row.working, head + '_us'):>8.2f}" for head in heads)
        lines.append(line)
    if len(rows) > ROWS:
        lines.append(f"  and {len(rows) - ROWS} more; --json holds them all")
    return "\n".join(lines) + "\n"


def _threads(trace: Trace) -> str:
    """The threads with most time in spans, against others of their role."""
    table = thread_table(trace)
    order = sorted(range(len(table.thread)), key=lambda i: -float(table.ratio[i]))[:5]
    several = len(trace.processes) > 1
    lines = [
        f"THREADS, the {len(order)} with most time against those of their role and slots (µs)",
        f"  {'thread':<16} {'role':<4} {'calls':>6} {'total':>10} {'× median':>8} {'mean':>8} {'p99':>8} {'max':>8}",
    ]
    for i in order:
        thread = int(table.thread[i])
        name = trace.threads.name[thread]
        if several:
            name = f"{trace.processes[int(trace.threads.process[thread])].label}, {name}"
        role = ROLES[int(trace.threads.role[thread])]
        lines.append(
            f"  {_cell(name, 16)} {role:<4} {table.calls[i]:>6} {table.total_us[i]:>10.2f}"
            f" {table.ratio[i]:>8.3f} {table.mean_us[i]:>8.2f} {table.p99_us[i]:>8.2f} {table.max_us[i]:>8.2f}"
            f"{' ◀' if table.outlier[i] else ''}"
        )
    return "\n".join(lines) + "\n"


def _cell(name: str, width: int) -> str:
    """A name in exactly `width` columns."""
    if name.isascii() and name.isprintable():
        return f"{name:<{width}}" if len(name) <= width else name[: width - 1] + "…"
    from morimon.draw.text import padded

    return padded(safe(name), width)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
