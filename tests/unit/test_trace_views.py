"""The Trace screen's pages of real shapes of traces: what must be readable, and what a frame may cost."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import numpy as np
import pytest

from morimon.draw.glyphs import ASCII, UNICODE, Glyphs
from morimon.draw.line import Line, halves, plain, width_of
from morimon.draw.page import Frame, Page, body_lines
from morimon.trace.load import load
from morimon.trace.model import Trace
from morimon.trace.stats import thread_table
from morimon.views.trace import LEGEND, build, by_threads, scale_of
from morimon.views.trace_figures import FigureFilterError, thread_figures
from morimon.views.trace_files import FileRow, GroupRow, age
from morimon.views.trace_lanes import GUTTER
from morimon.views.trace_look import Here, Loading, Look, Sorting, TraceState, carried, look_at
from morimon.views.trace_scale import PARTS, Window
from morimon.views.trace_warps import Warps
from tests.support.goldens import compare, snapshot_lines
from tests.support.traces import DATA, event, file_of, span, synth

FAMILIES = ["v1", "v1_ll", "async_ll", "intranode", "intranode_ll"]
SIZES = [(60, 15), (80, 24), (120, 40), (200, 50)]
LATE_WARP_US = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@pytest.fixture(scope="module")
def loaded(folder: Path) -> Callable[..., Trace]:
    @lru_cache
    def make(kernel: str, warps: int = 48) -> Trace:
        place = folder / f"{kernel}-{warps}"
        place.mkdir()
        return load(synth(place, kernel, warps))

    return make


def here_of(trace: Trace, process: int = 0, number: int = 0) -> Here:
    table = thread_table(trace, process, number)
    return Here(
        file=FileRow(trace.path.rpartition("/")[2], "0", "whole", trace.size_bytes, 0.0),
        ranks="8 ranks",
        look=look_at(trace, process, number),
        warps=Warps(trace, process, number),
        threads=thread_figures(trace, table),
    )


def look_of(here: Here) -> Look:
    assert here.look is not None
    return here.look


def in_sight(page: Page, frame: Frame) -> list[Line]:
    assert frame.height is not None
    room = frame.height - len(page.head) - len(page.foot)
    rows = [page.body.line(at) for at in range(min(len(page.body), room))]
    return [*page.head, *rows, *page.foot]


def code_of(look: Look, name: str) -> int:
    return next(code for code, slot in enumerate(look.trace.slots) if slot.short == name)


def extent(line: Line, role: str) -> tuple[int, int] | None:
    """First and last+1 eighth of a cell that is painted in a role's colour, labels included."""
    parts = []
    at = 0
    for run in line:
        left, right = halves(run.role) or (run.role, run.role)
        for char in run.text:
            filled = (
                UNICODE.eighths.index(char) + 1 if char in UNICODE.eighths and halves(run.role) else PARTS
            )
            if left == role:
                parts += [at * PARTS, at * PARTS + filled]
            elif right == role:
                parts += [at * PARTS + filled, (at + 1) * PARTS]
            at += 1
    return (min(parts), max(parts)) if parts else None


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kernel", FAMILIES)
def test_every_page_fits_its_terminal(
    loaded: Callable[..., Trace], kernel: str, size: tuple[int, int], glyphs: Glyphs
) -> None:
    here = here_of(loaded(kernel))
    limits = look_of(here).limits
    frame = Frame(*size, glyphs)
    for below in ("slots", "threads", "warps", "files"):
        for window in (None, limits.zoomed(7, limits.start_ns, limits)):
            page = build(here, TraceState(below=below, window=window), frame)
            lines = snapshot_lines(size, in_sight(page, frame))
            assert all(run.text.isascii() for line in lines for run in line) or glyphs is UNICODE


@pytest.mark.parametrize("kernel", FAMILIES)
def test_every_slot_is_seen_in_the_lanes_and_bars_stand_where_their_times_are(
    loaded: Callable[..., Trace], kernel: str
) -> None:
    here = here_of(loaded(kernel))
    look = look_of(here)
    frame = Frame(200, 50)
    for code, bar in look.bars.items():
        window = look.limits.around(bar.start_ns, bar.end_ns, look.limits)
        state = TraceState(slot=code, window=window)
        page = build(here, state, frame)
        scale = scale_of(look, state, frame)
        found = [extent(line, look.palette[code]) for line in page.head]
        starts = [one[0] - GUTTER * PARTS for one in found if one is not None]
        ends = [one[1] - GUTTER * PARTS for one in found if one is not None]
        if sum(role == look.palette[code] for role in look.palette) > 1:
            assert starts, look.trace.slots[code].name
            continue
        wanted = scale.parts((bar.start_ns, bar.end_ns)).tolist()
        assert min(abs(start - wanted[0]) for start in starts) <= PARTS, look.trace.slots[code].name
        assert min(abs(end - max(wanted[1], wanted[0] + 1)) for end in ends) <= PARTS


def test_an_internode_iteration_reads_like_the_picture_that_people_know(loaded: Callable[..., Trace]) -> None:
    here = here_of(loaded("v1"))
    page = build(here, TraceState(), Frame(160, 40))
    text = "\n".join(plain(line) for line in page.head)
    for word in ("inter", "intra", "concurrent", "serial", "comb_inter", "disp_recv", "comb_intra", "µs"):
        assert word in text
    lanes = [line for line in page.head if any("slot-" in run.role for run in line)]
    standing = [line for line in lanes if extent(line, "slot-copy")]
    assert len(standing) == 9 + 1, (
        "copy_to_staging stands over three rows of three lines, and is measured below"
    )


def test_concurrent_regions_and_serial_kernels_are_named_at_their_times(loaded: Callable[..., Trace]) -> None:
    here = here_of(loaded("v1"))
    look = look_of(here)
    frame = Frame(160, 40)
    page = build(here, TraceState(), frame)
    line = next(line for line in page.head if any(run.role == "concurrent" for run in line))
    regions, at = [], 0
    for run in line:
        if run.role == "concurrent":
            regions.append((at - GUTTER, at - GUTTER + run.width))
        at += run.width
    scale = scale_of(look, TraceState(), frame)
    wanted = scale.parts(look.timeline.concurrent) / PARTS
    assert np.allclose(np.array(regions), wanted, atol=1.0)


def test_a_row_of_a_warp_shows_its_spans_to_the_eighth(loaded: Callable[..., Trace]) -> None:
    here = here_of(loaded("v1"))
    look, warps = look_of(here), here.warps
    assert warps is not None
    code = code_of(look, "comb_inter")
    frame = Frame(120, 40)
    state = TraceState(below="warps", slot=code)
    page = build(here, state, frame)
    scale = scale_of(look, state, frame)
    gutter = width_of(page.body.line(0)) - scale.width - 9
    for at, row in enumerate(warps.of_slot(code)[:20].tolist()):
        start, end, _ = warps.spans_of(row, code)
        found = extent(page.body.line(at), look.palette[code])
        assert found is not None
        first, last = scale.parts((start[0], end[-1])).tolist()
        assert (found[0] - gutter * PARTS, found[1] - gutter * PARTS) == (first, last)


@pytest.mark.parametrize("kernel", FAMILIES)
def test_warps_are_a_staircase_the_last_to_leave_on_top(loaded: Callable[..., Trace], kernel: str) -> None:
    here = here_of(loaded(kernel))
    look, warps = look_of(here), here.warps
    assert warps is not None
    for code, bar in look.bars.items():
        rows = warps.of_slot(code).tolist()
        ends = [int(warps.spans_of(row, code)[1].max()) for row in rows]
        assert ends == sorted(ends, reverse=True)
        assert len(rows) == bar.warps
        assert ends[0] == int(bar.intervals[-1, 1])


def test_a_warp_with_more_spans_than_cells_is_drawn_as_density(tmp_path: Path) -> None:
    slot = "combine_dequant_accum"
    first = [e for tid in (0, 1) for e in span("combine_stage_input", 0, 1, tid)]
    busy = [e for i in range(1, 2000) for e in span(slot, i * 10, i * 10 + 9, tid=0)]
    lazy = [e for i in range(1, 2000) for e in span(slot, i * 10, i * 10 + 3, tid=1)]
    rest = span("combine_accum_weights", 20_000, 40_000, tid=0)
    here = here_of(load(file_of(tmp_path, [*first, *busy, *lazy, *rest])))
    look, warps = look_of(here), here.warps
    assert warps is not None
    scale = scale_of(look, TraceState(below="warps"), Frame(120, 40))
    for row, share in ((0, 0.9), (1, 0.3)):
        covered, code = warps._coverage(row, scale)
        half = covered[1 : scale.width // 2 - 1]
        assert np.allclose(half, share, atol=0.04)
        assert set(code[1 : scale.width // 2 - 1].tolist()) == {code_of(look, "accum")}
    assert covered.sum() * scale.window.length_ns / scale.width == pytest.approx(1999 * 3000 + 1000, rel=1e-6)
    line = plain(build(here, TraceState(below="warps"), Frame(120, 40)).body.line(1))
    assert set(line) & set("░▒▓")


def calls_of(work: Callable[[], object]) -> int:
    """Python and C functions that are called."""
    count = 0

    def counted(frame: FrameType, kind: str, argument: Any) -> None:
        nonlocal count
        count += kind in ("call", "c_call")

    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def warps_of(tmp_path: Path, warps: int, spans: int) -> Here:
    """A trace of two slots in turn."""
    events = [
        e
        for tid in range(warps)
        for i in range(spans)
        for e in span(f"slot{i % 2}", i * 10 + tid % 7, i * 10 + 9, tid)
    ]
    place = tmp_path / f"{warps}-{spans}"
    place.mkdir()
    return here_of(load(file_of(place, events)))


@pytest.mark.parametrize("below", ["slots", "threads", "warps"])
def test_a_frame_costs_what_is_in_sight_not_what_is_in_the_trace(tmp_path: Path, below: str) -> None:
    frame = Frame(120, 40)
    state = TraceState(below=below)  # type: ignore[arg-type]
    small, many, long = warps_of(tmp_path, 64, 8), warps_of(tmp_path, 4096, 8), warps_of(tmp_path, 64, 2000)
    costs = []
    for here in (small, many, long):
        build(here, state, frame)  # what is worked out once
        assert here.warps is not None
        here.warps.drawn(None)
        costs.append(calls_of(lambda here=here: in_sight(build(here, state, frame), frame)))  # type: ignore[misc]
    assert costs[1] <= 1.3 * costs[0] + 200, "4096 warps instead of 64"
    assert costs[2] <= 1.3 * costs[0] + 3000, "2000 spans a warp instead of 8"


def test_rows_of_warps_are_drawn_once(loaded: Callable[..., Trace]) -> None:
    here = here_of(loaded("v1"))
    frame, state = Frame(120, 40), TraceState(below="warps")
    first = calls_of(lambda: in_sight(build(here, state, frame), frame))
    again = calls_of(lambda: in_sight(build(here, replace(state, row=1), frame), frame))
    assert again < first / 3


def test_the_chosen_slot_is_measured_on_the_axis_and_below(loaded: Callable[..., Trace]) -> None:
    here = here_of(loaded("v1"))
    look = look_of(here)
    code = code_of(look, "comb_inter")
    bar = look.bars[code]
    page = build(here, TraceState(slot=code), Frame(120, 40))
    ruler = next(line for line in page.head if any("━" in run.text for run in line))
    at = 0
    for run in ruler:
        if run.role == "key":
            break
        at += run.width
    scale = scale_of(look, TraceState(), Frame(120, 40))
    assert at - GUTTER == int(scale.parts(bar.start_ns)) // PARTS
    zero = look.iteration.start_ns
    figures = [
        f"{(bar.start_ns - zero) / 1000:.2f} to {(bar.end_ns - zero) / 1000:.2f}",
        "combine_inter_node",
    ]
    text = "\n".join(plain(line) for line in page.head)
    assert all(figure in text for figure in figures)
    assert f"{(bar.end_ns - bar.start_ns) / 1000:.2f} µs" in text
    assert page.cursor is not None
    assert "combine_inter_node" in plain(page.body.line(page.cursor))


def test_tables_are_sorted_and_filtered_by_their_figures(loaded: Callable[..., Trace]) -> None:
    here = here_of(loaded("v1"))
    look = look_of(here)
    page = build(here, TraceState(sort_slots=Sorting("mean", descending=True)), Frame(200, 50))
    order = look.slots.chosen("mean", look.slots.parse(""), descending=True).tolist()
    means = [look.slots.value(row, "mean") for row in order]
    known = [mean for mean in means if mean is not None]
    assert known == sorted(known, reverse=True)
    assert means[: len(known)] == known, "slots without a figure come last"
    names = [plain(line) for line in body_lines(page.body)]
    assert all(look.slots.name[row] in text for row, text in zip(order, names, strict=True))
    chosen = look.slots.parse("rdma mean>1")
    rows = look.slots.chosen("start", chosen, descending=False).tolist()
    assert rows
    assert all(look.slots.role[row] == "rdma" and (look.slots.value(row, "mean") or 0) > 1 for row in rows)
    with pytest.raises(FigureFilterError, match="'speed' is no figure of this table: start, wall"):
        look.slots.parse("speed>1")


def test_warps_can_be_chosen_by_number_role_and_share(loaded: Callable[..., Trace]) -> None:
    here = here_of(loaded("v1"))
    figures = here.threads
    assert figures is not None
    assert figures.number is not None
    numbers = figures.number[figures.chosen("name", figures.parse("0-3,9 rdma"), descending=False)]
    assert sorted(numbers.tolist()) == [0, 1, 2, 3, 9]
    assert not figures.mask(figures.parse("0-3 xgmi")).any()
    slow = figures.chosen("total", figures.parse("comb_inter>1"), descending=True)
    totals = figures.columns["total"][slow]
    assert totals.size
    assert all(a >= b for a, b in pairwise(totals.tolist()))


def test_a_slow_warp_is_marked_in_its_table(tmp_path: Path) -> None:
    events = [
        e for tid in range(32) for e in span("work", 0, LATE_WARP_US if tid == 7 else 10 + tid / 50, tid)
    ]
    page = build(here_of(load(file_of(tmp_path, events))), TraceState(below="threads"), Frame(120, 40))
    assert plain(page.body.line(0)).startswith(" !")
    assert not any(plain(line).startswith(" !") for line in list(body_lines(page.body))[1:])


def test_idle_passes_are_counted_apart(loaded: Callable[..., Trace]) -> None:
    look = look_of(here_of(loaded("v1")))
    row = look.slots.name.index("dispatch_inter_node_send")
    bar = look.bars[int(look.slots.code[row])]
    assert look.slots.value(row, "idle") == bar.idle > 0
    assert look.slots.value(row, "working") == bar.warps - bar.idle


def test_what_was_found_wrong_stands_on_top(tmp_path: Path) -> None:
    events = [*span("ep_dispatch_copy_to_staging", 0, 5), event("B", "dispatch_intra", 6, 3)]
    path = tmp_path / "trace_rank_0_0821_170932.json"
    path.write_text(__import__("json").dumps({"traceEvents": events})[:-2])
    here = here_of(load(path))
    text = "\n".join(plain(line) for line in build(here, TraceState(), Frame(120, 40)).head)
    assert "✗ half written" in text
    assert "! 1 span was begun and never ended" in text
    narrow = [plain(line) for line in build(here, TraceState(), Frame(80, 24)).head]
    assert sum(line.startswith((" ✗", " !")) for line in narrow) == 1
    assert any("more" in line for line in narrow)


def test_slots_of_an_unknown_trace_become_threads_when_they_are_many(tmp_path: Path) -> None:
    events = [event("X", f"aten::op{i % 40}", i * 10, tid, dur=8) for i in range(200) for tid in (7, 20)]
    here = here_of(load(file_of(tmp_path, events, "node.pt.trace.json")))
    assert by_threads(look_of(here))
    page = build(here, TraceState(), Frame(120, 40))
    text = "\n".join(plain(line) for line in page.head)
    assert "\n warp 7 " in text
    assert "\n warp 20 " in text
    few = here_of(load(file_of(tmp_path, [*span("pack", 0, 5), *span("rows", 5, 9)], "own.json")))
    assert not by_threads(look_of(few))


def test_ranks_of_one_file_have_their_own_iterations() -> None:
    trace = load(DATA / "traces" / "h200_ep8_emulated.json.gz")
    texts = []
    for process in (0, 5):
        here = here_of(trace, process, 1)
        texts.append(plain(build(here, TraceState(), Frame(120, 40)).head[0]))
        assert look_of(here).iteration.process == process
    assert "rank 0" in texts[0]
    assert "rank 5" in texts[1]


def test_choices_are_carried_to_another_iteration(loaded: Callable[..., Trace]) -> None:
    trace = loaded("v1")
    one, two = look_at(trace, 0, 0), look_at(trace, 0, 1)
    code = code_of(one, "comb_inter")
    window = Window(one.limits.start_ns + 1000, one.limits.start_ns + 9000)
    state = carried(one, two, TraceState(slot=code, window=window, span=3))
    assert (state.slot, state.span) == (code, None)
    assert state.window == Window(two.limits.start_ns + 1000, two.limits.start_ns + 9000)
    other = look_at(loaded("intranode"), 0, 0)
    assert carried(one, other, TraceState(slot=code)).slot is None


FILES = (
    GroupRow(
        "trace 0821_171105",
        "5 of 8 ranks, missing 3, 6, 7",
        (
            FileRow("trace_rank_0_0821_171105.json", "0", "whole", 5_000_000, 1000.0, 1),
            FileRow("trace_rank_1_0821_171105.json", "1", "growing", 5_000, 1000.0, is_ready=False),
            FileRow("trace_rank_2.json", "2", "failed", 0, 999.0, text="empty", is_ready=False),
        ),
    ),
)


def test_the_list_of_files_says_what_is_missing_and_what_is_wrong() -> None:
    here = Here(groups=FILES, aside=2, folder="/job", mode="polling every 1 s (nfs4)", now_s=1002.0)
    page = build(here, TraceState(below="files"), Frame(120, 30))
    text = "\n".join(plain(line) for line in page.lines())
    assert "3 traces in 1 run · 2 JSON files set aside: no traces" in text
    assert "polling every 1 s (nfs4)" in text
    assert "trace 0821_171105  5 of 8 ranks, missing 3, 6, 7  · 2 s ago" in text
    assert "being written" in text
    assert "failed: empty" in text


def test_news_and_loading_are_told_without_moving_the_lanes(loaded: Callable[..., Trace]) -> None:
    here = replace(here_of(loaded("v1")), news=FILES[0].files[1], now_s=1002.0, ranks="2 of 16 ranks")
    page = build(here, TraceState(), Frame(120, 40))
    assert plain(page.head[0]).endswith("▲ new: rank 1 (2 s ago)  2 of 16 ranks")
    named = FileRow("merged_trace_0821_171105.json", "", "whole", 100, 995.0)
    narrow = plain(build(replace(here, news=named), TraceState(), Frame(80, 22)).head[0])
    assert here.file is not None
    assert here.file.name in narrow, "news leave room for what is shown"
    assert narrow.endswith("▲ new  2 of 16 ranks")
    both = replace(here, news=replace(named, rank="1, 5"))
    assert "▲ new: ranks 1, 5 (7 s ago)" in plain(build(both, TraceState(), Frame(120, 40)).head[0])
    busy = replace(here, loading=Loading("trace_rank_1.json", 45 << 20, 90 << 20))
    line = plain(build(busy, TraceState(), Frame(120, 40)).head[2])
    assert "loading trace_rank_1.json" in line
    assert "50 %  45.0 MiB of 90.0 MiB  x cancel" in line


def test_an_empty_folder_says_what_will_happen() -> None:
    text = "\n".join(plain(line) for line in build(Here(folder="/job"), TraceState(), Frame(80, 24)).lines())
    assert "A trace appears as soon as its file is whole" in text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s ago"), (59, "59 s ago"), (150, "2 min ago"), (7300, "2 h ago")]
)
def test_ages_are_coarse(seconds: float, text: str) -> None:
    assert age(seconds) == text


def test_the_legend_explains_the_columns() -> None:
    assert {"serial", "concurrent", "start, wall", "working, idle"} <= {word for word, _ in LEGEND}


@pytest.mark.parametrize(
    ("name", "kernel", "frame", "state"),
    [
        ("trace_v1_120x40", "v1", Frame(120, 38), TraceState()),
        ("trace_v1_ascii_80x24", "v1", Frame(80, 22, ASCII), TraceState(slot=0)),
        ("trace_intranode_warps_100x20", "intranode", Frame(100, 18), TraceState(below="warps")),
    ],
)
def test_pages_look_as_they_did(
    loaded: Callable[..., Trace], name: str, kernel: str, frame: Frame, state: TraceState
) -> None:
    trace = msgspec.structs.replace(loaded(kernel), findings=())
    compare(name, in_sight(build(here_of(trace), state, frame), frame))
