"""What stands on top of the Trace screen: the file, the iteration, what is being loaded, and what was found wrong."""

from __future__ import annotations

from collections.abc import Sequence

from morimon.draw.charts import progress, spark
from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run, merged, width_of
from morimon.draw.page import Frame, fitted
from morimon.draw.text import cells, clipped, sanitised
from morimon.draw.units import number, size
from morimon.trace.model import Finding
from morimon.views.trace_files import FileRow, age
from morimon.views.trace_look import Here, Look, TraceState

SPARK_FROM = 4
"""Iterations from which on their durations are worth a picture."""
_MARKS: dict[str, Role] = {"damage": "failed", "warning": "warning", "note": "dim"}


def titles(here: Here, look: Look, state: TraceState, frame: Frame) -> list[Line]:
    """The file, and the iteration."""
    trace, glyphs = look.trace, frame.glyphs
    process = trace.processes[look.process]
    name = here.file.name if here.file is not None else trace.path.rpartition("/")[2]
    threads = int((trace.threads.process == look.process).sum())
    warps = "warps" if process.family != "unknown" else "threads"
    phrases = [
        process.title,
        process.family if process.family != "unknown" else "unknown kernels",
        f"{number(threads, 0, glyphs)} {warps}",
        f"{number(len(trace.spans), 0, glyphs)} spans",
    ]
    if here.file is not None and here.file.state == "half-written":
        phrases.append("half-written")
    dot = f" {glyphs.dot} "
    right = [Run(here.ranks, "warning" if " of " in here.ranks else "dim")]
    if here.mode not in ("", "inotify", "starting"):
        right.insert(0, Run(f"{sanitised(here.mode)}  ", "warning"))
    if here.news is not None:
        taken = sum(run.width for run in right) + cells(dot.join(phrases[:2])) + min(cells(name), 24) + 7
        right.insert(0, Run(_news(here.news, here.now_s, frame.width - taken, glyphs), "ok"))
    free = frame.width - sum(run.width for run in right) - 7
    while len(phrases) > 2 and free - cells(dot.join(phrases)) < min(cells(name), 24):
        phrases.pop()
    room = max(free - cells(dot.join(phrases)), 12)
    left = [
        Run(f" {clipped(sanitised(name), room, glyphs.ellipsis)}", "title"),
        Run(f"{dot}{dot.join(phrases)}"),
    ]
    return [ends(left, right, frame), _iteration(look, state, frame)]


def _news(file: FileRow, now_s: float, room: int, glyphs: Glyphs) -> str:
    """That there is a newer file: with as much of what and when as there is room for."""
    several = "s" * ("," in file.rank or "-" in file.rank)
    what = f"rank{several} {file.rank}" if file.rank else clipped(sanitised(file.name), 24, glyphs.ellipsis)
    new = f"{glyphs.ascending} new"
    forms = (f"{new}: {what} ({age(now_s - file.modified_s)})  ", f"{new}: {what}  ", f"{new}  ")
    return next((text for text in forms if cells(text) <= room), forms[-1])


def _iteration(look: Look, state: TraceState, frame: Frame) -> Line:
    it, siblings, glyphs = look.iteration, look.siblings, frame.glyphs
    place = next((at for at, one in enumerate(siblings) if one.number == it.number), 0)
    durations = [one.duration_ns / 1000 for one in siblings]
    left = [
        Run(" [", "key"),
        Run(f" iteration {place + 1}/{len(siblings)} ", "title"),
        Run("]", "key"),
        Run(f"  {number(it.duration_ns / 1000, 2, glyphs)} {glyphs.micro}s", "title"),
    ]
    if not it.whole:
        left.append(Run(f"  partial: {sanitised(it.missing)}" if it.missing else "  partial", "warning"))
    if it.outlier:
        left.append(Run("  outlier", "late"))
    if len(siblings) >= SPARK_FROM and frame.width >= 100:
        width = min(len(siblings), 16)
        begin = min(max(place - width // 2, 0), len(siblings) - width)
        shown = durations[begin : begin + width]
        left.append(
            Run(f"  {spark(shown, width, 0.8 * min(durations), max(durations), glyphs)}", "concurrent")
        )
    if it.overlap is not None:
        words = "overlap" if frame.is_narrow else "inter and intra at once"
        left += [Run(f"   {words} ", "dim"), Run(f"{it.overlap * 100:.0f} %")]
    if it.barrier_ns is not None:
        share = it.barrier_ns / max(it.duration_ns, 1)
        left += [Run("   in barriers ", "dim"), Run(f"{share * 100:.0f} %")]
    right = []
    if state.window is not None:
        zoom = look.limits.length_ns / state.window.length_ns
        right = [Run(f"zoom {zoom:.{0 if zoom >= 10 else 1}f}{glyphs.times}", "key")]
    return ends(left, right, frame)


def waiting(here: Here, frame: Frame) -> list[Line]:
    """The file that is on its way in, and why one could not be shown."""
    lines: list[Line] = []
    if here.loading is not None:
        done, total = here.loading.bytes_done, here.loading.bytes_total
        share = done / total if total else 0.0
        of = f"{size(done)} of {size(total)}" if total else "starting"
        lines.append(
            fitted(
                merged(
                    [
                        Run(f" loading {sanitised(here.loading.name)} ", "title"),
                        *progress(share, 20, frame.glyphs),
                        Run(f" {share * 100:3.0f} %  {of}  ", "text"),
                        Run("x", "key"),
                        Run(" cancel", "dim"),
                    ]
                ),
                frame.width,
            )
        )
    if here.trouble:
        text = clipped(sanitised(here.trouble), frame.width - 4, frame.glyphs.ellipsis)
        lines.append((Run(f" {frame.glyphs.failed} {text}", "failed"),))
    return lines


def banners(look: Look, frame: Frame) -> list[Line]:
    """What was found wrong, the gravest first; as many lines as the screen can spare."""
    grave = [
        finding
        for severity in ("damage", "warning", "note")
        for finding in look.trace.findings
        if finding.severity == severity and _concerns(finding, look)
    ]
    most = 1 if (frame.height or 99) < 30 else 3
    lines: list[Line] = []
    for at, finding in enumerate(grave[:most]):
        mark = {"damage": frame.glyphs.failed, "warning": frame.glyphs.warning}.get(
            finding.severity, frame.glyphs.dot
        )
        left = len(grave) - most
        more = f"  and {left} more" if left > 0 and at == most - 1 else ""
        words = finding.text.replace("×", frame.glyphs.times).replace("µ", frame.glyphs.micro)
        text = clipped(sanitised(words), frame.width - 4 - len(more), frame.glyphs.ellipsis)
        lines.append((Run(f" {mark} {text}", _MARKS[finding.severity]), Run(more, "dim")))
    return lines


def _concerns(finding: Finding, look: Look) -> bool:
    quiet = ("several_ranks", "no_ep_slots", "renamed_slots")
    return finding.process in (None, look.process) and finding.kind not in quiet


def ends(left: Sequence[Run], right: Sequence[Run], frame: Frame) -> Line:
    """One line with a left and a right end; the left one gives way."""
    right = [run for run in right if run.text]
    taken = sum(run.width for run in right) + 1
    kept = fitted(tuple(left), max(frame.width - taken - 1, 0))
    return merged([*kept, Run(" " * max(frame.width - width_of(kept) - taken, 1)), *right])
