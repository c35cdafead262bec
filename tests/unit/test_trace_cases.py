"""Small inputs that break tools of this kind, and the faults of the reference analyzer, each with its right outcome."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest
import zstandard

from morimon.trace.lanes import rows, timeline
from morimon.trace.load import load
from morimon.trace.model import TraceError
from morimon.trace.stats import slot_table, thread_table
from morimon.trace.summary import summary
from tests.support.traces import DATA, FIRST, Event, event, events_of, file_of, plain_summary, span, synth

if TYPE_CHECKING:
    from pathlib import Path

    from morimon.trace.model import Trace

CASES = DATA / "cases"


def shown(trace: Trace) -> list[tuple[str, float, float]]:
    """(name, start, end) of all spans, microseconds."""
    spans = trace.spans
    names = [trace.slots[code].name for code in spans.slot.tolist()]
    return [
        (n, s / 1000, e / 1000)
        for n, s, e in zip(names, spans.start_ns.tolist(), spans.end_ns.tolist(), strict=True)
    ]


def kinds(trace: Trace) -> list[str]:
    """Kinds of the findings that are more than notes."""
    return [f.kind for f in trace.findings if f.severity != "note"]


# The cases


def test_01_a_lost_inner_end() -> None:
    trace = load(CASES / "01_lost_inner_end.json")
    assert shown(trace) == [("ep_dispatch", 0, 9), ("copy", 1, 5), ("ep_dispatch", 20, 29)]
    assert (trace.open_spans, len(trace.warnings)) == (1, 1)
    assert "'lost' in warp 0" in trace.warnings[0]


def test_02_touching_spans() -> None:
    trace = load(CASES / "02_touching_spans_same_ts.json")
    assert shown(trace) == [
        ("send", 0, 0.01),
        ("recv", 0.01, 0.02),
        ("sync", 0.02, 0.02),
        ("send", 0.02, 0.05),
    ]
    assert rows(trace.spans.start_ns, trace.spans.end_ns).tolist() == [0, 0, 0, 0]
    assert trace.warnings == ()


def test_03_complete_and_paired_events_in_one_window() -> None:
    trace = load(CASES / "03_x_and_be_same_window.json")
    assert shown(trace) == [("outer", 0, 10), ("inner", 0, 10), ("outer", 10, 20), ("inner", 10, 15)]
    assert rows(trace.spans.start_ns, trace.spans.end_ns).tolist() == [0, 1, 0, 1]
    assert trace.warnings == ()


def test_05_overlapping_complete_events() -> None:
    trace = load(CASES / "05_overlapping_x.json")
    assert shown(trace) == [("k1", 100, 200), ("k2", 150, 250), ("k3", 260, 270)]
    assert rows(trace.spans.start_ns, trace.spans.end_ns).tolist() == [0, 1, 0]


def test_09_scientific_and_epoch_sized_ts() -> None:
    trace = load(CASES / "09_scientific_ts.json")
    assert shown(trace) == [("a", 0, 4.75), ("b", 6.0, 10.5)]
    assert trace.origin_ns == 1692108548132154500


def test_10_the_display_unit_changes_nothing() -> None:
    assert shown(load(CASES / "10_display_unit_ns.json")) == [("ep_dispatch", 1236.0, 2081.5)]


def test_11_bare_nan_and_inf() -> None:
    trace = load(CASES / "11_nan_inf.json")
    assert shown(trace) == [("k2", 5, 8)]
    assert (trace.damaged, sum(trace.rejected.values()), trace.events) == (True, 2, 3)
    damage = trace.findings[0]
    assert (damage.kind, damage.count, damage.line, damage.column) == ("damaged", 2, 2, 53)


def test_12_broken_strings() -> None:
    trace = load(CASES / "12_bad_strings.json")
    assert [name for name, *_ in shown(trace)] == ["C:\\work\\ep\\kernel.cu", "line one\nline two"]
    assert [(f.line, f.column) for f in trace.findings if f.kind == "damaged"] == [(2, 9), (3, 9)]


# The faults of the reference analyzer, by their rows


def test_row_1_dispatch_sync_is_its_last_fragment_everywhere(tmp_path: Path) -> None:
    trace = load(synth(tmp_path, "v1"))
    gate = next(i for i, slot in enumerate(trace.slots) if slot.name == "dispatch_sync")
    for it in trace.iterations:
        bar = next(bar for bar in timeline(trace, 0, it.number).bars if bar.slot == gate)
        parts = summary(trace)["iterations"][it.number]["kernels"]["dispatch_sync"]
        assert bar.fragments == len(parts) > 1
        assert [bar.start_ns - it.start_ns, bar.end_ns - it.start_ns] == [round(x * 1000) for x in parts[-1]]
        assert bar.first_ns - it.start_ns == round(parts[0][0] * 1000)


@pytest.mark.parametrize("kernel", FIRST)
def test_rows_2_5_and_6_every_family(kernel: str, tmp_path: Path) -> None:
    trace = load(synth(tmp_path, kernel))
    assert (trace.family, len(trace.iterations)) == (kernel, 3)


@pytest.mark.parametrize("lose", [1, 40, 200])
def test_row_3_a_cut_iteration_is_partial(lose: int, tmp_path: Path) -> None:
    events = events_of(synth(tmp_path, "v1"))
    trace = load(file_of(tmp_path, events[:-lose]))
    assert [it.whole for it in trace.iterations] == [True, True, False]
    assert "partial_iteration" in kinds(trace)
    assert trace.iterations[2].missing in " ".join(trace.warnings)


def test_row_4_only_combine_events(tmp_path: Path) -> None:
    events = [e for e in events_of(synth(tmp_path, "v1")) if "combine" in e["name"]]
    trace = load(file_of(tmp_path, events))
    assert [(it.whole, it.missing) for it in trace.iterations] == [(False, "no dispatch")] * 3


def test_row_7_complete_events(tmp_path: Path) -> None:
    trace = load(
        file_of(tmp_path, [event("X", "k", 1.5, dur=2.25), event("i", "mark", 2), event("C", "bw", 2)])
    )
    assert shown(trace) == [("k", 1.5, 3.75)]
    assert trace.set_aside == {"instant": 1, "counter": 1}


def test_row_8_nested_spans_of_different_names(tmp_path: Path) -> None:
    events = [event("B", "outer", 0), *span("inner", 10, 20), event("E", "outer", 100)]
    assert shown(load(file_of(tmp_path, events))) == [("outer", 0, 100), ("inner", 10, 20)]


def test_row_9_nested_spans_of_one_name(tmp_path: Path) -> None:
    events = [event("B", "k", 0), *span("k", 10, 20), event("E", "k", 100)]
    assert shown(load(file_of(tmp_path, events))) == [("k", 0, 100), ("k", 10, 20)]


def test_row_10_an_orphan_end(tmp_path: Path) -> None:
    trace = load(file_of(tmp_path, [event("E", "k", 1), *span("k", 2, 3)]))
    assert shown(trace) == [("k", 2, 3)]
    assert (trace.orphan_ends, kinds(trace)) == (1, ["orphan_ends"])


def test_row_11_an_orphan_begin(tmp_path: Path) -> None:
    trace = load(file_of(tmp_path, [*span("k", 2, 3), event("B", "k", 4)]))
    assert (len(trace.spans), trace.open_spans, kinds(trace)) == (1, 1, ["open_spans"])


def test_row_12_an_end_without_a_name(tmp_path: Path) -> None:
    events = [
        event("B", "a", 0),
        event("B", "b", 1),
        event("E", None, 2),
        event("E", None, 3),
        *span("a", 4, 5),
    ]
    assert shown(load(file_of(tmp_path, events))) == [("a", 0, 3), ("b", 1, 2), ("a", 4, 5)]


def test_row_13_metadata_without_tid(tmp_path: Path) -> None:
    meta = {"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "rank 5"}}
    trace = load(file_of(tmp_path, [meta, *span("k", 0, 1)], name="x.json"))
    assert (trace.rank, trace.set_aside) == (5, {"metadata": 1})


@pytest.mark.parametrize("text", ["[%s]", "[%s", "[%s,\n", "[%s,]", " [ %s ]\n"])
def test_row_14_a_bare_array_closed_or_not(text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(text % ",".join(map(json.dumps, span("k", 0, 1))))
    trace = load(path)
    assert (shown(trace), trace.warnings) == ([("k", 0, 1)], ())


@pytest.mark.parametrize("indent", [None, 2])
def test_row_15_a_file_cut_anywhere_keeps_all_whole_events(indent: int | None, tmp_path: Path) -> None:
    events = [e for i in range(3) for e in span(f"k{i}", i, i + 0.5)]
    text = json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, indent=indent).encode()
    path = tmp_path / "t.json"
    ends = [i for i in range(len(text)) if text[: i + 1].endswith(b"}")][: len(events)]
    for size in range(text.index(b"[") + 1, len(text)):
        path.write_bytes(text[:size])
        trace = load(path)
        assert trace.events - sum(trace.rejected.values()) == sum(size > end for end in ends)
        assert "half_written" in kinds(trace)
        assert not any(it.whole for it in trace.iterations[-1:])
        assert ("damaged" in kinds(trace)) == (trace.rejected != {})


def test_row_15_byte_order_mark_and_emptiness(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"traceEvents": span("k", 0, 1)}).encode())
    assert shown(load(path)) == [("k", 0, 1)]
    path.write_bytes(b"")
    with pytest.raises(TraceError, match="the file is empty"):
        load(path)


def test_row_16_packed_files_by_their_magic_bytes(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": span("k", 0, 1)}).encode()
    for packed in (
        gzip.compress(text),
        zstandard.compress(text),
        gzip.compress(text[:30]) + gzip.compress(text[30:]),
    ):
        path = tmp_path / "t.json"
        path.write_bytes(packed)
        trace = load(path)
        assert (shown(trace), trace.warnings) == ([("k", 0, 1)], ())


def test_row_17_no_events(tmp_path: Path) -> None:
    trace = load(file_of(tmp_path, []))
    assert (len(trace.spans), trace.iterations, kinds(trace)) == (0, (), ["empty"])
    assert "no events" in trace.warnings[0]
    assert summary(trace)["iterations"] == []
    assert thread_table(trace).by_slot_us.shape == (0, 0)
    assert slot_table(trace) == ()


def test_row_18_a_span_without_length(tmp_path: Path) -> None:
    trace = load(file_of(tmp_path, [*span("z", 5, 5), *span("z", 5, 5)]))
    assert shown(trace) == [("z", 5, 5), ("z", 5, 5)]
    timeline(trace, 0, 0)


def test_row_19_nan_ts(tmp_path: Path) -> None:
    trace = load(
        file_of(tmp_path, [event("B", "k", float("nan")), event("i", "k", float("inf")), *span("k", 2, 3)])
    )
    assert (shown(trace), sum(trace.rejected.values()), trace.damaged) == ([("k", 2, 3)], 2, True)


def test_row_20_ts_as_text(tmp_path: Path) -> None:
    events = [
        event("B", "k", "9.5"),
        event("E", "k", "10.25"),
        event("B", "k", "100"),
        event("E", "k", "1.0125e2"),
    ]
    assert shown(load(file_of(tmp_path, events))) == [("k", 9.5, 10.25), ("k", 100, 101.25)]


def test_row_21_a_launch_whose_grid_runs_in_waves(tmp_path: Path) -> None:
    events: list[Event] = []
    for zero in (0, 1000):
        for tid in range(16):
            wave = zero + (0 if tid < 8 else 200)
            events += span("ep_dispatch_copy_to_staging", wave, wave + 50, tid)
            events += span(
                "dispatch_inter_node_send" if tid < 4 else "dispatch_intra", zero + 400, zero + 420, tid
            )
            events += span(
                "combine_inter_node" if tid < 4 else "combine_intra_node", zero + 600, zero + 700, tid
            )
            events += span("ep_combine_all", zero + 710, zero + 720, tid)
    events.sort(key=lambda e: e["ts"])
    trace = load(file_of(tmp_path, events))
    assert [(it.start_ns, it.end_ns, it.whole) for it in trace.iterations] == [
        (0, 720_000, True),
        (1_000_000, 1_720_000, True),
    ]
    assert summary(trace)["iterations"][0]["kernels"]["ep_dispatch_copy_to_staging"] == [[0, 50], [200, 250]]


def test_row_22_two_ranks_in_one_file(tmp_path: Path) -> None:
    a, b = events_of(synth(tmp_path, "v1", 16)), events_of(synth(tmp_path, "v1", 16, seed=1))
    merged = sorted(a + [e | {"pid": 1} for e in b], key=lambda e: e["ts"])
    trace = load(file_of(tmp_path, merged, name="merged.json"))
    assert [(p.rank, p.family) for p in trace.processes] == [(0, "v1"), (1, "v1")]
    for process, events in enumerate((a, b)):
        right = plain_summary(events, FIRST["v1"])
        got = summary(trace)["processes"][process]
        assert (got["spans"], got["threads"]) == (right["spans"], right["threads"])
        assert [it["kernels"] for it in got["iterations"]] == [it["kernels"] for it in right["iterations"]]


def test_row_23_a_thousand_iterations_are_looked_at_one_by_one(tmp_path: Path) -> None:
    events = [
        e
        for i in range(1000)
        for e in span("combine_stage_input", 10 * i, 10 * i + 2)
        + span("combine_barrier", 10 * i + 2, 10 * i + 3)
    ]
    trace = load(file_of(tmp_path, events))
    assert len(trace.iterations) == 1000
    line = timeline(trace, 0, 777)
    assert (line.iteration.start_ns, len(line.bars)) == (7_770_000, 2)


def test_row_24_file_names_need_not_be_those_of_one_developer(tmp_path: Path) -> None:
    path = file_of(tmp_path, span("k", 0, 1), name="trace_rank__.json")
    assert load(path).rank is None
