"""A trace as Markdown, to be pasted into a pull request: heading, findings, iterations, kernels, slots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morimon.draw.sheet import Scalar, Sheet
from morimon.report.trace_sheets import Table, sheet
from morimon.report.trace_text import heading, safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from morimon.trace.model import Trace

_SECTIONS: tuple[tuple[str, Table, tuple[str, ...]], ...] = (
    (
        "Iterations",
        "iterations",
        ("rank", "iteration", "start_us", "end_us", "duration_us", "overlap", "barrier_us", "missing"),
    ),
    ("Kernels", "kernels", ("rank", "iteration", "slot", "start_us", "end_us", "duration_us", "parts", "idle_warps")),
    (
        "Slots, passes that had work",
        "slots",
        ("rank", "slot", "role", "calls", "idle_passes", "mean_us", "min_us", "p50_us", "p90_us", "p99_us", "max_us"),
    ),
)  # fmt: skip


def as_markdown(trace: Trace) -> str:
    """The report as GitHub renders it; times are microseconds, rounded to two decimals."""
    parts = [f"## {_escaped(heading(trace))}\n"]
    found = [f"- **{finding.severity}**: {_escaped(safe(finding.text))}\n" for finding in trace.findings]
    if found:
        parts.append("".join(found))
    for title, table, columns in _SECTIONS:
        whole = sheet(trace, table)
        if whole.rows:
            parts.append(
                f"### {title}\n\n{_chosen(whole, columns, one_rank=len(trace.processes) == 1).markdown()}"
            )
    return "\n".join(parts)


def _chosen(whole: Sheet, columns: Sequence[str], *, one_rank: bool) -> Sheet:
    names = [name for name in columns if not (name == "rank" and one_rank)]
    places = [list(whole.columns).index(name) for name in names]
    rows = [
        [_cell(row[place], name) for name, place in zip(names, places, strict=True)] for row in whole.rows
    ]
    titles = [name.removesuffix("_us") + (" µs" if name.endswith("_us") else "") for name in names]
    return Sheet([title.replace("_", " ") for title in titles], rows)


def _cell(value: Scalar, column: str) -> Scalar:
    if isinstance(value, float):
        return round(value, 2)
    if not isinstance(value, str):
        return value
    text = safe(value)
    return "`" + text.replace("`", "'") + "`" if column == "slot" else _escaped(text)


def _escaped(text: str) -> str:
    """Text from a file is data: what would be markup is shown as it stands."""
    return "".join("\\" + char if char in "\\`*[]<>#" else char for char in text)
