"""The Trace screen: where inside the kernels the time went, of one iteration of one rank.

`build` is pure: what there is (`Here`), what the person chose (`TraceState`) and the room in; a page out. On top the
file and the iteration, what was found wrong, the axis and the lanes; below them a table of slots or of warps, or the
warps of the chosen slot instead of the lanes, or the files of the folder.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morimon.draw.line import Line, Run, merged, split
from morimon.draw.page import Body, Frame, Lines, Page, Spot, fitted
from morimon.draw.text import clipped, sanitised
from morimon.draw.units import number
from morimon.trace.model import ROLES
from morimon.views.trace_axis import axis
from morimon.views.trace_files import file_rows
from morimon.views.trace_head import banners, ends, titles, waiting
from morimon.views.trace_lanes import GUTTER, lanes, layout, regions
from morimon.views.trace_look import Here, Look, TraceState
from morimon.views.trace_scale import Scale
from morimon.views.trace_tables import (
    FigureRows,
    heading,
    slot_columns,
    slot_marks,
    table_rows,
    thread_columns,
)
from morimon.views.trace_warps import FIGURE, WarpRows

LEGEND = (
    (
        "inter, intra",
        "lanes: slots that talk to other nodes, and those that stay on this one; a row each where they overlap",
    ),
    (
        "serial",
        "kernels that run alone stand over all lanes; of dispatch_sync the last part, the one that gates",
    ),
    ("concurrent", "from the first to the last moment of a phase in which inter and intra run at once"),
    ("thin line", "between parts of a slot: no warp is in it"),
    ("start, wall", "of the slot's bar: from its first warp's start to its last warp's end"),
    (
        "working, idle",
        "passes of warps with work, and of those that only pass through; statistics are of the first",
    ),
    ("in barriers", "the last part of dispatch_sync and the barrier slots, as a share of the iteration"),
    (
        "× median",
        "a warp's time by that of the median warp of its role; ! marks one far above it in some slot",
    ),
    (
        "shades",
        "of a warp with more spans than cells: how much of a cell's time is covered, in the largest slot's colour",
    ),
)
"""Words on the screen and what they mean."""
MANY_SLOTS, MANY_ROWS = 16, 6
"""A trace of unknown kernels with more slots, or more rows of them, is drawn thread by thread."""
NAME_CELLS = 18


def build(here: Here, state: TraceState, frame: Frame) -> Page:
    """The page."""
    look = here.look
    if look is None or state.below == "files":
        return _files(here, state, frame)
    head = [*titles(here, look, state, frame), *waiting(here, frame), *banners(look, frame)]
    return (
        _warps(here, look, state, frame, head)
        if state.below == "warps"
        else _lanes(here, look, state, frame, head)
    )


def by_threads(look: Look) -> bool:
    """Whether the lanes are drawn thread by thread."""
    if look.trace.processes[look.process].family != "unknown":
        return False
    return len(look.bars) > MANY_SLOTS or len(layout(look).rows) > MANY_ROWS


def scale_of(look: Look, state: TraceState, frame: Frame) -> Scale:
    """The axis of the lanes, or of the warps, in this room."""
    window = state.window or look.limits
    if state.below == "warps":
        return Scale(window, max(frame.width - _gutter(look) - (FIGURE if _has_figure(frame) else 0), 8))
    gutter = _gutter(look) if by_threads(look) else GUTTER
    return Scale(window, max(frame.width - gutter - 1, 8))


def gutter_of(look: Look, state: TraceState) -> int:
    """Cells before the first one of the axis."""
    return _gutter(look) if state.below == "warps" or by_threads(look) else GUTTER


def _gutter(look: Look) -> int:
    return min(max(look.name_cells, 6), NAME_CELLS) + 2


def _has_figure(frame: Frame) -> bool:
    return frame.width >= 100


# The lanes and a table below them.


def _lanes(here: Here, look: Look, state: TraceState, frame: Frame, head: list[Line]) -> Page:
    chosen, scale = look.slot_of(state.slot), scale_of(look, state, frame)
    bar = look.bars.get(chosen) if chosen is not None else None
    found = table_rows(look, here.threads, state)
    height = frame.height or 60
    fixed = len(head) + 2 + 1 + 1 + 2
    rows = len(layout(look).rows)
    count = len(found[1]) if found is not None else 5
    room = max(height - fixed - min(count, max(height // 3, 5)), min(rows, 4), 2)
    gutter = gutter_of(look, state)
    head += axis(look.iteration.start_ns, scale, gutter, (bar.start_ns, bar.end_ns) if bar else None, frame)
    spots: list[Spot] = []
    if by_threads(look):
        head += _threads_lanes(here, look, scale, frame, gutter, room)
    else:
        picture = lanes(look, scale, frame, chosen, room)
        spots += [spot._replace(line=spot.line + len(head)) for spot in picture.spots]
        head += picture.lines
        if look.timeline.concurrent.size or "serial" in look.timeline.rows:
            head.append(regions(look, scale, frame))
    if bar is not None and chosen is not None:
        slot = look.trace.slots[chosen]
        word = "warp" if look.trace.processes[look.process].family != "unknown" else "thread"
        figures = [f"{bar.warps} {word}{'s' * (bar.warps != 1)}"]
        if bar.idle:
            figures.append(f"{bar.idle} only pass through")
        if slot.sync and bar.fragments > 1:
            first = (bar.first_ns - look.iteration.start_ns) / 1000
            figures.append(f"the last of {bar.fragments} parts; the first warp came at {first:.2f}")
        elif bar.fragments > 1:
            figures.append(f"{bar.fragments} parts")
        head.append(_measure(look, chosen, slot.name, (bar.start_ns, bar.end_ns), figures, frame))
    return _with_table(here, look, state, frame, head, spots)


def _with_table(
    here: Here, look: Look, state: TraceState, frame: Frame, head: list[Line], spots: list[Spot]
) -> Page:
    found = table_rows(look, here.threads, state)
    if found is None:
        head.append((Run(" adding up the threads", "dim"),))
        return Page(tuple(head), spots=tuple(spots))
    figures, rows = found
    of = "all iterations" if state.every and state.below == "slots" else "this iteration"
    title = f"{'warps' if state.below == 'threads' else 'slots'} {frame.glyphs.dot} {frame.glyphs.micro}s {frame.glyphs.dot} {of}"
    note = f"{len(rows)} of {len(figures)}: {state.filter.text}" if state.filter.text else ""
    columns = thread_columns if state.below == "threads" else slot_columns
    table = columns(figures, frame)
    lines, more = heading(table, state.sorting, len(head), title, note, frame)
    marks = {} if state.below == "threads" else slot_marks(look, frame.glyphs)
    body = FigureRows(figures, rows, table, marks)
    return Page((*head, *lines), body, cursor=cursor_row(look, state, rows.tolist()), spots=(*spots, *more))


def cursor_row(look: Look, state: TraceState, rows: Sequence[int]) -> int | None:
    """The row under the cursor: that of the chosen slot, or the one that was chosen among warps."""
    if not rows:
        return None
    if state.below == "threads":
        return min(state.row, len(rows) - 1)
    codes = (look.of_all if state.every else look.slots).code
    chosen = look.slot_of(state.slot)
    if state.row < len(rows) and int(codes[rows[state.row]]) == chosen:
        return state.row
    return next((at for at, row in enumerate(rows) if int(codes[row]) == chosen), 0)


def _measure(
    look: Look, code: int, name: str, span: tuple[int, int], figures: Sequence[str], frame: Frame
) -> Line:
    """Exact start, end and duration of what is chosen."""
    zero, glyphs = look.iteration.start_ns, frame.glyphs
    start, end = ((at - zero) / 1000 for at in span)
    dot = f" {glyphs.dot} "
    line = merged(
        [
            Run(" "),
            Run(glyphs.lane[0] * 2, split(look.palette[code])),
            Run(f" {clipped(sanitised(name), 40, glyphs.ellipsis)}  ", "title"),
            Run(f"{number(start, 2, glyphs)} ", "text"),
            Run("to ", "dim"),
            Run(f"{number(end, 2, glyphs)}  ", "text"),
            Run(f"{number(end - start, 2, glyphs)} {glyphs.micro}s", "title"),
            Run(f"  {dot.join(figures)}" if figures else "", "dim"),
        ]
    )
    return fitted(line, frame.width)


def _threads_lanes(here: Here, look: Look, scale: Scale, frame: Frame, gutter: int, room: int) -> list[Line]:
    """The busiest threads of a trace whose slots are too many for lanes, in the order of the file."""
    warps = here.warps
    if warps is None:
        return [(Run(" sorting the threads", "dim"),)]
    rows = np.sort(warps.busiest()[: max(room, 1)])
    shown = WarpRows(
        warps, rows, None, scale, look.palette, gutter, frame.glyphs, has_figure=False, has_names=True
    )
    thick = min(max(room // max(len(rows), 1), 1), 3)
    lines = [line for at in range(len(shown)) for line in shown.band(at, thick)]
    if len(warps) > len(rows):
        text = f" the busiest {len(rows)} of {len(warps)} threads"
        lines.append((Run(text, "dim"),))
    return lines


# The warps of a slot.


def _warps(here: Here, look: Look, state: TraceState, frame: Frame, head: list[Line]) -> Page:
    chosen, warps, scale = look.slot_of(state.slot), here.warps, scale_of(look, state, frame)
    if chosen is None or warps is None:
        return Page((*head, (Run(" sorting the warps", "dim"),)))
    rows = warps.of_slot(chosen)
    row = min(state.row, max(len(rows) - 1, 0))
    name = look.trace.slots[chosen].name
    title = f" warps of {sanitised(name)} "
    order = f" {number(len(rows), 0, frame.glyphs)}, the last to leave it on top "
    used = len(title) + len(order) + 4
    figure = f"{'in it ' + frame.glyphs.micro + 's':>{FIGURE}}" if _has_figure(frame) else ""
    head.append(
        fitted(
            merged(
                [
                    Run(frame.glyphs.rule * 2, "border"),
                    Run(frame.glyphs.lane[0] * 2, split(look.palette[chosen])),
                    Run(title, "heading"),
                    Run(order, "dim"),
                    Run(frame.glyphs.rule * max(frame.width - used - len(figure), 0), "border"),
                    Run(figure, "heading"),
                ]
            ),
            frame.width,
        )
    )
    span = span_under(here, look, state)
    gutter = _gutter(look)
    head += axis(look.iteration.start_ns, scale, gutter, (span[0], span[1]) if span else None, frame)
    body = WarpRows(
        warps, rows, chosen, scale, look.palette, gutter, frame.glyphs, has_figure=_has_figure(frame)
    )
    foot: tuple[Line, ...] = ()
    if span is not None and len(rows):
        thread = int(warps.thread[int(rows[row])])
        trace = look.trace
        last = int(warps.spans_of(int(rows[0]), chosen)[1].max())
        own = int(warps.spans_of(int(rows[row]), chosen)[1].max())
        role = ROLES[int(trace.threads.role[thread])]
        figures = [f"leaves {(last - own) / 1000:.2f} before the last warp" if row else "the last to leave"]
        if warps.is_idle(int(rows[row]), chosen):
            figures.append("only passes through")
        who = " ".join(part for part in (trace.threads.name[thread], role, trace.slots[span[2]].name) if part)
        foot = (_measure(look, span[2], who, (span[0], span[1]), figures, frame),)
    return Page(tuple(head), body, foot, cursor=row if len(rows) else None)


def span_under(here: Here, look: Look, state: TraceState) -> tuple[int, int, int] | None:
    """start_ns, end_ns and slot of what the cursor measures among the warps."""
    chosen, warps = look.slot_of(state.slot), here.warps
    if chosen is None or warps is None:
        return None
    rows = warps.of_slot(chosen)
    if not rows.size:
        return None
    row = int(rows[min(state.row, rows.size - 1)])
    if state.span is not None:
        start, end, slot = warps.spans_of(row)
        at = min(max(state.span, 0), start.size - 1)
        return int(start[at]), int(end[at]), int(slot[at])
    start, end, _ = warps.spans_of(row, chosen)
    return int(start[0]), int(end.max()), chosen


# The files.


def _files(here: Here, state: TraceState, frame: Frame) -> Page:
    glyphs = frame.glyphs
    dot = f" {glyphs.dot} "
    count = sum(len(group.files) for group in here.groups)
    words = [f"{count} trace{'s' * (count != 1)} in {len(here.groups)} run{'s' * (len(here.groups) != 1)}"]
    if here.aside:
        words.append(f"{here.aside} JSON file{'s' * (here.aside != 1)} set aside: no traces")
    head: list[Line] = [
        ends(
            [Run(f" {dot.join(words)}", "title"), Run(f"{dot}{sanitised(here.folder)}", "dim")],
            [Run(sanitised(here.mode), "dim")],
            frame,
        ),
        *waiting(here, frame),
    ]
    body: Body = Lines()
    cursor = None
    if here.groups:
        headings, rows = file_rows(here.groups, here.file.name if here.file else "", here.now_s, frame)
        head += headings
        body, cursor = rows, min(state.row, len(rows) - 1)
    elif here.folder:
        body = Lines(
            [
                (),
                (Run(" No traces here yet. A trace appears as soon as its file is whole.", "text"),),
                (
                    Run(
                        " The profiler writes them when it is enabled (ENABLE_PROFILER=1), `--cmd profile` does too.",
                        "dim",
                    ),
                ),
            ]
        )
    else:
        body = Lines([(), (Run(" This run names no folder whose traces could be followed.", "dim"),)])
    return Page(tuple(head), body, cursor=cursor)
