"""Which iteration a span belongs to, and which iterations are whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from morimon.trace.load import load
from morimon.trace.summary import summary
from tests.support.traces import Event, event, events_of, file_of, span, synth

if TYPE_CHECKING:
    from pathlib import Path

    from morimon.trace.model import Trace

PASS = [("dispatch_send_tokens", 18), ("dispatch_wait_peer_token", 2), ("combine_stage_input", 9)]
PASS += [("combine_barrier", 4), ("combine_accum_setup", 0), ("combine_dequant_accum", 5)] * 1


def launches(skew: float, count: int = 4, warps: int = 16, apart: float = 60) -> list[Event]:
    """Launches of which warp k begins k × skew later than warp 0."""
    events = []
    for n in range(count):
        for tid in range(warps):
            at = apart * n + skew * tid
            for name, length in PASS:
                events += span(name, round(at, 2), round(at + length, 2), tid)
                at += length
    return sorted(events, key=lambda e: e["ts"])


def partial(trace: Trace) -> list[str]:
    return [it.missing for it in trace.iterations]


@pytest.mark.parametrize("skew", [0, 1, 1.5, 3, 4, 10])
def test_launches_that_overlap_are_told_by_the_passes_of_each_warp(skew: float, tmp_path: Path) -> None:
    trace = load(file_of(tmp_path, launches(skew)))
    length = sum(length for _, length in PASS)
    assert [(it.start_ns, it.end_ns) for it in trace.iterations] == [
        (60_000 * n, round((60 * n + 15 * skew + length) * 1000)) for n in range(4)
    ]
    assert partial(trace) == [""] * 4


@pytest.mark.parametrize("skew", [0, 1, 1.5])
@pytest.mark.parametrize(
    "lost",
    [
        {(5, "combine_dequant_accum", 3)},
        {(5, name, 0) for name, _ in PASS},
        {(5, name, 3) for name, _ in PASS},
        {(5, name, 1) for name, _ in PASS} | {(6, "dispatch_send_tokens", 0), (7, "combine_barrier", 2)},
        {(tid, name, 0) for tid in range(5) for name, _ in PASS[:3]},
    ],
)
def test_a_few_warps_that_lost_spans_go_with_the_others(
    skew: float, lost: set[tuple[int, str, int]], tmp_path: Path
) -> None:
    seen: dict[tuple[int, str, str], int] = {}
    kept, wanted = [], []
    for e in launches(skew):
        key = (e["tid"], e["name"], e["ph"])
        n = seen[key] = seen.get(key, -1) + 1
        if (e["tid"], e["name"], n) not in lost:
            kept.append(e)
            if e["ph"] == "B":
                wanted.append((e["ts"], e["tid"], n))
    trace = load(file_of(tmp_path, kept))
    spans = trace.spans
    columns = spans.start_ns / 1000, trace.threads.tid[spans.thread], spans.iteration
    got = list(zip(*(column.tolist() for column in columns), strict=True))
    assert sorted(got) == sorted(wanted)


def test_kernels_of_foreign_name_go_with_the_pass_that_they_are_in(tmp_path: Path) -> None:
    events = []
    for e in launches(3):
        events.append(e)
        if e["name"] == "combine_barrier" and e["ph"] == "E":
            events += span("something_else", e["ts"], e["ts"], e["tid"])
    trace = load(file_of(tmp_path, events))
    assert np.bincount(trace.spans.iteration).tolist() == [16 * (len(PASS) + 1)] * 4


def test_a_file_cut_at_both_ends_is_not_told_by_counting_passes(tmp_path: Path) -> None:
    """Warps lose their first pass or their last, so that all of them made as many, but not of the same launches."""
    events = launches(0.5, count=5)
    kept = [
        e
        for e in events
        if (e["ts"] >= 60 or (e["tid"] >= 8 and e["name"] == PASS[-1][0]))
        and (e["ts"] < 240 or (e["tid"] < 8 and e["name"] == PASS[0][0]))
    ]
    trace = load(file_of(tmp_path, kept))
    assert [it.start_ns // 60_000 for it in trace.iterations] == [0, 1, 2, 3, 4]
    assert [it.whole for it in trace.iterations] == [False, True, True, True, False]


@pytest.mark.parametrize("kernel", ["v1", "v1_ll", "async_ll", "intranode", "intranode_ll"])
@pytest.mark.parametrize(("since", "until"), [(0, 0.9), (0.1, 1), (0.1, 0.9), (0.3, 0.35)])
def test_iterations_that_a_file_cuts_are_partial(
    kernel: str, since: float, until: float, tmp_path: Path
) -> None:
    path = synth(tmp_path, kernel, warps=64, iterations=4, seed=1)
    events = events_of(path)
    length = events[-1]["ts"]
    whole = load(path).iterations
    kept = [e for e in events if since * length <= e["ts"] < until * length]
    trace = load(file_of(tmp_path, kept, "cut.json"))
    for it in trace.iterations:
        same = [w for w in whole if (w.start_ns, w.end_ns) == (it.start_ns, it.end_ns)]
        assert it.whole == bool(same), (it.start_ns, it.end_ns, it.missing)
    assert len(trace.iterations) == (1 if since == 0.3 else 4)


def test_spans_that_never_end_make_their_iteration_partial(tmp_path: Path) -> None:
    events = launches(1)
    lost = next(e for e in events if (e["name"], e["ph"], e["tid"]) == ("combine_dequant_accum", "E", 3))
    trace = load(file_of(tmp_path, [e for e in events if e is not lost]))
    assert "1 span begun and never ended" in partial(trace)[0]
    assert partial(trace)[1:] == [""] * 3
    assert any("#1" in warning and "begun and never ended" in warning for warning in trace.warnings)


def test_the_first_span_of_a_launch_that_never_ended_cuts_no_launch_before(tmp_path: Path) -> None:
    events = [*launches(0), *(event("B", PASS[0][0], 240, tid) for tid in range(16))]
    trace = load(file_of(tmp_path, events))
    assert (trace.open_spans, partial(trace)) == (16, [""] * 4)


def profiled(cpu: bool, umbrella: bool, steps: str = "") -> list[Event]:
    """Four repetitions of three kernels on a stream, the host 20 µs ahead of them."""
    events = []
    at = 1000.0
    for n in range(4):
        begin = at
        for name, length in (("dispatch_kernel", 40.5), ("gemm", 100.25), ("combine_kernel", 50.125)):
            if cpu:
                events.append(event("X", f"aten::{name}", at - 20, 123, 123, dur=10))
            events.append(event("X", name, at, 7, 0, dur=length))
            at += length + 5
        if "host" in steps:
            events.append(event("X", f"ProfilerStep#{n}", begin - 22, 123, 123, dur=at - begin - 1))
        if "device" in steps:
            events.append(event("X", f"ProfilerStep#{n}", begin, 7, 0, dur=at - begin - 5))
    if umbrella:
        events.append(event("X", "PyTorch Profiler (0)", 900, "PP", "Spans", dur=at))
    return events


@pytest.mark.parametrize("cpu", [False, True])
@pytest.mark.parametrize("umbrella", [False, True])
@pytest.mark.parametrize("steps", ["", "device", "host and device"])
def test_the_stream_tells_the_iterations_of_a_profiler_file(
    cpu: bool, umbrella: bool, steps: str, tmp_path: Path
) -> None:
    events = profiled(cpu, umbrella, steps)
    trace = load(file_of(tmp_path, events, "host_1.pt.trace.json", baseTimeNanoseconds=17 * 10**17))
    if "host" not in steps:
        starts = [1000 + n * 205.875 for n in range(4)]
        assert [it.start_ns / 1000 + trace.origin_ns / 1000 for it in trace.iterations] == starts
        assert [it.duration_ns / 1000 for it in trace.iterations] == [200.875] * 4
    kernels = [
        i for i, s in enumerate(trace.slots) if s.name in ("dispatch_kernel", "gemm", "combine_kernel")
    ]
    mine = np.isin(trace.spans.slot, kernels)
    assert trace.spans.iteration[mine].tolist() == [n for n in range(4) for _ in range(3)]
    assert trace.warnings == ()
    assert not any(it.outlier for it in trace.iterations)
    assert summary(trace)["spans"] == len(trace.spans) == len(events)


def test_what_covers_several_iterations_is_in_none(tmp_path: Path) -> None:
    events = [event("X", "everything", 900, 7, 0, dur=2000), *profiled(cpu=False, umbrella=False)]
    trace = load(file_of(tmp_path, events))
    assert trace.spans.iteration.tolist() == [-1, *(n for n in range(4) for _ in range(3))]
    assert len(summary(trace)["iterations"]) == 4
    over = [event("X", "everything", 0, 99, 0, dur=400), *launches(3)]
    trace = load(file_of(tmp_path, over, "known.json"))
    assert trace.spans.iteration[trace.spans.thread == 16].tolist() == [-1]


def test_partial_iterations_of_unknown_kernels_are_warned_of(tmp_path: Path) -> None:
    events = [e for e in profiled(cpu=False, umbrella=False) if e["name"] != "gemm" or e["ts"] > 1100]
    trace = load(file_of(tmp_path, events))
    assert partial(trace) == ["no gemm", "", "", ""]
    assert len(trace.warnings) == 1
    assert "no gemm" in trace.warnings[0]


def test_a_span_without_length_closes_the_iteration_that_it_ends(tmp_path: Path) -> None:
    events = []
    for n in range(3):
        events += span("send", 30 * n, 30 * n + 10) + span("recv", 30 * n + 10, 30 * n + 30)
        events += span("sync", 30 * n + 30, 30 * n + 30)
    trace = load(file_of(tmp_path, events))
    assert trace.spans.iteration.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
