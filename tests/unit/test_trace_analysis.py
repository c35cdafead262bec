"""Families, iterations, roles, lanes, statistics and findings."""

from __future__ import annotations

import statistics
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from morimon.trace import families
from morimon.trace.group import GroupFigures, distinct, means, stable_order, unions
from morimon.trace.lanes import rows, timeline, warps
from morimon.trace.load import load
from morimon.trace.model import ROLES
from morimon.trace.stats import slot_table, slow_warps, thread_table
from morimon.trace.summary import summary
from tests.support.synth_trace import RING
from tests.support.traces import DATA, Event, event, events_of, file_of, span, spans_of, synth, union

if TYPE_CHECKING:
    from pathlib import Path

    from morimon.trace.model import Finding, Trace


def found(trace: Trace, kind: str) -> list[Finding]:
    return [f for f in trace.findings if f.kind == kind]


TODAY_INTRANODE = [
    "combine_stage_input",
    "combine_copy_weights",
    "combine_barrier",
    "combine_accum_setup",
    "combine_prepare_ptrs",
    "combine_dequant_accum",
    "combine_accum_weights",
]
DISPATCH_INTRANODE = ["dispatch_send_tokens", "dispatch_notify_peer", "dispatch_wait_peer_token"]
V1 = [
    "ep_dispatch_copy_to_staging",
    "dispatch_inter_node_send",
    "dispatch_inter_node_recv",
    "dispatch_intra",
    "dispatch_sync",
    "combine_sync",
    "combine_inter_node",
    "combine_intra_node",
    "ep_combine_all",
]


@pytest.mark.parametrize(
    ("names", "family", "doubt"),
    [
        (V1, "v1", False),
        ([*V1, "ep_combine_sync_barrier"], "v1", False),
        ([*V1[:-1], "CombineAll"], "v1", False),
        ([f"internode_v1.{name}" for name in V1], "v1", False),
        ([families.LL.get(name, name) for name in V1], "v1_ll", False),
        (["dispatch_sync", "combine_sync", "ep_combine_all"], "v1", True),
        (["dispatch_async_send_copy", "combine_async_recv_copy"], "async_ll", False),
        (TODAY_INTRANODE, "intranode", False),
        ([*DISPATCH_INTRANODE, "combine_accum", "combine_barrier", "combine_copy_input"], "intranode", False),
        ([*DISPATCH_INTRANODE, *TODAY_INTRANODE], "intranode_ll", True),
        (DISPATCH_INTRANODE, "intranode_ll", False),
        (["Unknown_Slot_7", "dispatch"], "unknown", False),
        ([*V1, "Unknown_Slot_7"], "v1", False),
        ([*V1, "combine_inter_node_ll"], "v1", True),
    ],
)
def test_families_by_their_slots(names: list[str], family: str, doubt: bool, tmp_path: Path) -> None:
    events = [e for i, name in enumerate(names) for e in span(name, i, i + 1)]
    trace = load(file_of(tmp_path, events))
    assert trace.family == family
    assert bool(found(trace, "ambiguous_family")) == doubt


def test_old_names_are_read_as_todays(tmp_path: Path) -> None:
    names = [*(f"internode_v1.{name}" for name in V1[:-1]), "CombineAll"]
    trace = load(file_of(tmp_path, [e for i, name in enumerate(names) for e in span(name, i, i + 1)]))
    assert [s.canonical for s in trace.slots] == V1[:1] + sorted(
        V1[1:4], key=[V1[1], V1[3], V1[2]].index
    ) + V1[4:]
    assert {s.lane for s in trace.slots} == {"inter", "intra", "serial"}
    assert found(trace, "renamed_slots")[0].count == len(V1)


def test_lanes_and_the_concurrent_region(tmp_path: Path) -> None:
    path = synth(tmp_path, "v1")
    trace = load(path)
    line = timeline(trace, 0, 1)
    lanes = {trace.slots[bar.slot].name: trace.slots[bar.slot].lane for bar in line.bars}
    assert {name for name, lane in lanes.items() if lane == "inter"} == {V1[1], V1[2], V1[6]}
    assert {name for name, lane in lanes.items() if lane == "intra"} == {V1[3], V1[7]}
    assert line.rows == {"inter": 2, "intra": 1, "serial": 1}
    spans = [s for s in spans_of(events_of(path)) if line.iteration.start_ns <= s[2] < line.iteration.end_ns]
    for phase, region in zip(("dispatch", "combine"), line.concurrent.tolist(), strict=True):
        inter = union([s[2:] for s in spans if s[0].startswith(f"{phase}_inter")])
        intra = union([s[2:] for s in spans if s[0].startswith(f"{phase}_intra")])
        assert region == [max(inter[0][0], intra[0][0]), min(inter[-1][1], intra[-1][1])]
    for lane in line.rows:
        for row in range(line.rows[lane]):
            mine = [b for b in line.bars if trace.slots[b.slot].lane == lane and b.row == row]
            assert all(a.end_ns <= b.start_ns for a, b in pairwise(mine))


def test_a_lane_opens_into_its_warps(tmp_path: Path) -> None:
    path = synth(tmp_path, "v1")
    trace = load(path)
    it = trace.iterations[1]
    codes = [i for i, slot in enumerate(trace.slots) if slot.lane == "inter" and slot.phase == "dispatch"]
    opened = warps(trace, 0, 1, codes)
    spans = [s for s in spans_of(events_of(path)) if it.start_ns <= s[2] < it.end_ns]
    spans = [s for s in spans if s[0].startswith("dispatch_inter")]
    ends: dict[int, int] = {}
    for s in spans:
        ends[s[1][1]] = max(ends.get(s[1][1], 0), s[3])
    tids = trace.threads.tid[opened.thread].tolist()
    assert sorted(tids) == sorted(ends)
    assert [ends[tid] for tid in tids] == sorted(ends.values(), reverse=True)
    for row, tid in enumerate(tids):
        mine = opened.spans[opened.bounds[row] : opened.bounds[row + 1]]
        assert trace.spans.start_ns[mine].tolist() == [s[2] for s in spans if s[1][1] == tid]
    assert opened.bounds[-1] == opened.spans.size == len(spans)
    assert warps(trace, 0, 1, []).thread.size == 0


def test_an_unknown_iteration_is_a_key_error(tmp_path: Path) -> None:
    trace = load(file_of(tmp_path, span("k", 0, 1)))
    with pytest.raises(KeyError):
        timeline(trace, 0, 5)


def test_roles_and_idle_warps(tmp_path: Path) -> None:
    trace = load(synth(tmp_path, "v1", warps=96, iterations=4))
    assert np.bincount(trace.threads.role).tolist() == [0, 64, 32]
    table = {(trace.slots[row.slot].name, ROLES[row.role]): row for row in slot_table(trace)}
    send = table["dispatch_inter_node_send", "rdma"]
    assert send.working is not None
    assert (send.working.calls, send.idle, send.all.calls) == (8 * 4, 56 * 4, 64 * 4)
    assert send.working.min_us > 10 > send.all.p50_us
    recv = table["dispatch_inter_node_recv", "rdma"]
    assert (recv.idle, recv.working) == (0, recv.all)
    assert {role for slot, role in table if slot == "dispatch_sync"} == {"rdma", "xgmi"}
    assert {role for slot, role in table if slot == "combine_sync"} == {""}
    assert sum(row.all.share for row in table.values()) == pytest.approx(1)
    bar = next(
        b for b in timeline(trace, 0, 0).bars if trace.slots[b.slot].name == "dispatch_inter_node_send"
    )
    assert (bar.warps, bar.idle) == (64, 56)


def test_idle_warps_of_the_other_families(tmp_path: Path) -> None:
    trace = load(synth(tmp_path, "async_ll", cus=32))
    idle = {trace.slots[row.slot].name: (row.idle, row.all.calls) for row in slot_table(trace) if row.idle}
    assert idle == {
        f"{phase}_async_send_transfer": (6 * 16 * 3, 8 * 16 * 3) for phase in ("dispatch", "combine")
    }
    trace = load(synth(tmp_path, "intranode_ll"))
    idle = {trace.slots[row.slot].name: (row.idle, row.all.calls) for row in slot_table(trace) if row.idle}
    assert idle == dict.fromkeys(DISPATCH_INTRANODE[1:], (47 * 3, 48 * 3))


def test_nobody_is_idle_where_no_pattern_says_so(tmp_path: Path) -> None:
    slow = {3, 4, 10, 23, 29}
    events = [e for t in range(32) for e in span("dispatch_inter_node_send", 0, 50 if t in slow else 1, t)]
    assert not load(file_of(tmp_path, events)).spans.idle.any()


def test_figures_are_those_of_the_standard_library(tmp_path: Path) -> None:
    path = synth(tmp_path, "v1")
    trace = load(path)
    durations: dict[str, list[float]] = {}
    for name, _, start, end in spans_of(events_of(path)):
        durations.setdefault(name, []).append((end - start) / 1000)
    everything = sum(map(sum, durations.values()))
    for row in slot_table(trace):
        name, f = trace.slots[row.slot].name, row.all
        if name == "dispatch_sync":
            continue  # two roles
        mine = durations[name]
        assert (f.calls, f.min_us, f.max_us) == (len(mine), min(mine), max(mine))
        assert f.mean_us == pytest.approx(statistics.fmean(mine))
        assert f.std_us == pytest.approx(statistics.pstdev(mine))
        assert f.p50_us == pytest.approx(statistics.median(mine))
        if len(mine) > 1:
            cuts = statistics.quantiles(mine, n=100, method="inclusive")
            assert [f.p90_us, f.p99_us] == pytest.approx([cuts[89], cuts[98]])
        assert f.share == pytest.approx(sum(mine) / everything)


def test_tables_of_one_iteration_and_of_threads(tmp_path: Path) -> None:
    path = synth(tmp_path, "v1")
    trace = load(path)
    it = trace.iterations[1]
    spans = [s for s in spans_of(events_of(path)) if it.start_ns <= s[2] < it.end_ns]
    assert sum(row.all.calls for row in slot_table(trace, 0, 1)) == len(spans)
    table = thread_table(trace, 0, 1)
    for i, thread in enumerate(table.thread.tolist()):
        mine = [(s[3] - s[2]) / 1000 for s in spans if s[1] == (0, trace.threads.tid[thread])]
        assert (table.calls[i], table.min_us[i], table.max_us[i]) == (len(mine), min(mine), max(mine))
        assert table.total_us[i] == pytest.approx(sum(mine))
        assert table.by_slot_us[i].sum() == pytest.approx(sum(mine))
        assert table.std_us[i] == pytest.approx(statistics.pstdev(mine))
    kinds = [
        (trace.threads.role[t], (by > 0).tobytes())
        for t, by in zip(table.thread, table.by_slot_us, strict=True)
    ]
    for kind in kinds:
        peers = [i for i, other in enumerate(kinds) if other == kind]
        if len(peers) > 2:
            assert table.ratio[peers] == pytest.approx(
                table.total_us[peers] / np.median(table.total_us[peers])
            )


def test_a_slow_warp_is_judged_against_its_slot_and_role(tmp_path: Path) -> None:
    events = events_of(synth(tmp_path, "v1"))
    for e in events:
        if e["name"] == "combine_intra_node" and e["ph"] == "E" and e["tid"] == 40:
            e["ts"] = round(e["ts"] + 25, 2)  # well below the RDMA warps' duration
    trace = load(file_of(tmp_path, sorted(events, key=lambda e: e["ts"])))
    thread, slot, ratio = next(s for s in slow_warps(trace) if trace.slots[s[1]].name == "combine_intra_node")
    assert (trace.threads.tid[thread], trace.slots[slot].name) == (40, "combine_intra_node")
    assert ratio > 1.2
    table = thread_table(trace)
    assert table.outlier[table.thread.tolist().index(thread)]
    assert "warp 40 in combine_intra_node" in found(trace, "outlier_warp")[0].text


def test_the_clocks_grain_makes_no_warp_slow(tmp_path: Path) -> None:
    events: list[Event] = []
    for tid in range(32):
        events += span("combine_stage_input", 0, 100, tid)
        events += span("combine_accum_setup", 100, 100 + (0.04 if tid % 3 else 0.03) + (tid == 7) * 0.02, tid)
        events += span("combine_dequant_accum", 101, 106 + (tid == 5) * 0.9, tid)
    assert not found(load(file_of(tmp_path, events)), "outlier_warp")
    events += span("combine_accum", 120, 125, 32)
    events = [
        e | {"ts": e["ts"] + (e["name"][-1] == "m" and e["ph"] == "E" and e["tid"] == 5)} for e in events
    ]
    assert "warp 5 in combine_dequant_accum" in found(load(file_of(tmp_path, events)), "outlier_warp")[0].text


def test_warps_of_other_slots_are_no_measure(tmp_path: Path) -> None:
    """What a narrow grid's warps do besides is geometry, no imbalance."""
    trace = load(synth(tmp_path, "async_ll"))
    assert np.abs(thread_table(trace).ratio - 1).max() < 0.2


@pytest.mark.parametrize("warps", [12, 16])
@pytest.mark.parametrize("iterations", [1, 3])
def test_one_rdma_block_has_idle_warps_too(warps: int, iterations: int, tmp_path: Path) -> None:
    trace = load(synth(tmp_path, "v1", warps=warps, iterations=iterations, cus=1))
    send = next(row for row in slot_table(trace) if trace.slots[row.slot].name == "dispatch_inter_node_send")
    assert send.working is not None
    assert (send.working.calls, send.idle) == (iterations, 7 * iterations)
    assert not any("send" in f.text for f in found(trace, "outlier_warp"))


def test_a_slow_warp_of_several_ranks_is_told_with_its_rank(tmp_path: Path) -> None:
    events = [
        e
        for pid in (0, 1)
        for t in range(8)
        for e in span("combine_sync", 0, 50 + 30 * (t == pid + 3), t, pid)
    ]
    text = found(load(file_of(tmp_path, events, "both.json")), "outlier_warp")[0].text
    assert "rank 0 warp 3 in combine_sync" in text
    assert "rank 1 warp 4 in combine_sync" in text


def test_an_outlier_iteration(tmp_path: Path) -> None:
    events: list[Event] = []
    for i, length in enumerate([100, 101, 99, 100, 102, 160, 100]):
        for tid in range(4):
            events += span("combine_stage_input", 1000 * i, 1000 * i + 10, tid)
            events += span("combine_barrier", 1000 * i + 10, 1000 * i + length, tid)
    trace = load(file_of(tmp_path, events))
    assert [it.outlier for it in trace.iterations] == [i == 5 for i in range(7)]
    assert "#6 (160.00 µs)" in found(trace, "outlier_iteration")[0].text


def test_a_wrapped_ring(tmp_path: Path) -> None:
    path = synth(tmp_path, "v1", warps=8, iterations=1500)
    trace, events = load(path), events_of(path)
    assert max(np.bincount([e["tid"] for e in events])) == RING
    ring = found(trace, "wrapped_ring")[0]
    assert ring.window_ns is not None
    first: dict[int, float] = {}
    for e in events:
        first.setdefault(e["tid"], e["ts"])
    full = [tid for tid, n in enumerate(np.bincount([e["tid"] for e in events])) if n == RING]
    assert ring.count == len(full)
    assert ring.window_ns[0] == pytest.approx(max(first[tid] for tid in full) * 1000, abs=30_000)
    assert len(trace.iterations) > 1000
    late = [it for it in trace.iterations if it.start_ns >= ring.window_ns[0]]
    assert len(late) > 1000
    assert all(it.whole for it in late)
    assert not trace.iterations[0].whole
    lengths = [it.duration_ns for it in late]
    assert max(lengths) < 3 * min(lengths)


def test_a_ring_that_is_just_full_is_no_wrap(tmp_path: Path) -> None:
    events = [
        e
        for i in range(RING // 4)
        for e in span("combine_stage_input", 4 * i, 4 * i + 1) + span("combine_barrier", 4 * i + 1, 4 * i + 2)
    ]
    assert not found(load(file_of(tmp_path, events)), "wrapped_ring")


def test_a_warp_cap(tmp_path: Path) -> None:
    capped = [e for tid in range(4000, 4096) for e in span("combine_stage_input", 0, 1, tid)]
    assert found(load(file_of(tmp_path, capped)), "warp_cap")
    assert not found(load(file_of(tmp_path, capped[:-2])), "warp_cap")


def test_stale_events(tmp_path: Path) -> None:
    events = events_of(synth(tmp_path, "v1"))
    fresh = [e | {"ts": e["ts"] + 5e6} for e in events]
    trace = load(file_of(tmp_path, events + fresh))
    stale = found(trace, "stale_events")[0]
    assert (stale.count, len(trace.iterations)) == (len(events) // 2, 6)
    assert stale.window_ns == (5_000_000_000, 5_000_000_000 + trace.iterations[2].end_ns)
    assert not found(load(file_of(tmp_path, events)), "stale_events")
    assert [it.stale for it in trace.iterations] == [True] * 3 + [False] * 3
    alone = load(file_of(tmp_path, events, "alone.json"))
    assert [row.all for row in slot_table(trace)] == [row.all for row in slot_table(alone)]
    told, right = summary(trace)["per_thread"], summary(alone)["per_thread"]
    assert {slot: row["calls"] for slot, row in told.items()} == {
        slot: row["calls"] for slot, row in right.items()
    }


def test_events_out_of_order_within_a_thread(tmp_path: Path) -> None:
    events = [event("E", "k", 5), event("B", "k", 1), *span("k", 7, 8, 1)]
    trace = load(file_of(tmp_path, events))
    assert (len(trace.spans), found(trace, "unsorted")[0].count) == (2, 1)


def test_unknown_slots_by_repetition(tmp_path: Path) -> None:
    events: list[Event] = []
    for i in range(5):
        zero = 1000 * i
        for tid in range(3):
            for k in range(3 + (i + tid) % 3):  # the opening slot is a loop of varying length
                events += span("Unknown_Slot_1", zero + 10 * k, zero + 10 * k + 5, tid)
            events += span("Unknown_Slot_2", zero + 100, zero + 200, tid)
            events += span("Unknown_Slot_3", zero + 900, zero + 901, tid)  # the gap within is the largest
    trace = load(file_of(tmp_path, events))
    assert [(it.start_ns, it.end_ns) for it in trace.iterations] == [
        (1_000_000 * i, 1_000_000 * i + 901_000) for i in range(5)
    ]


def test_profiler_steps_are_iterations(tmp_path: Path) -> None:
    events = []
    for i in range(3):
        events.append(event("X", f"ProfilerStep#{i}", 100 * i, dur=90))
        events += [event("X", "op", 100 * i + 5 + k, dur=1) for k in range(i + 1)]
    trace = load(file_of(tmp_path, events))
    assert [it.start_ns for it in trace.iterations] == [0, 100_000, 200_000]


def test_a_kernel_alone_again_and_again(tmp_path: Path) -> None:
    events = [
        e
        for i in range(4)
        for tid in range(3)
        for e in span("combine_sync", 10 * i + tid, 10 * i + tid + 4, tid)
    ]
    assert len(load(file_of(tmp_path, events)).iterations) == 4


def test_lost_events_mislead_nobody(tmp_path: Path) -> None:
    events = events_of(synth(tmp_path, "v1", iterations=4))
    lost = {("ep_combine_all", 39), ("ep_dispatch_copy_to_staging", 39), ("combine_sync", 7)}
    kept = [e for e in events if (e["name"], e["tid"]) not in lost]
    right = load(file_of(tmp_path, events, "right.json"))
    trace = load(file_of(tmp_path, kept))
    assert [it.start_ns for it in trace.iterations] == [it.start_ns for it in right.iterations]


def test_the_file_of_a_real_gpu_has_slow_programs() -> None:
    trace = load(DATA / "traces" / "h200_ep8_emulated.json.gz")
    assert found(trace, "several_ranks")[0].text == "8 processes in one file, ranks 0 to 7"
    nested = trace.threads.process[trace.spans.thread] == 0
    nested &= trace.spans.thread == trace.spans.thread[nested.argmax()]
    depth = rows(trace.spans.start_ns[nested], trace.spans.end_ns[nested])
    names = [trace.slots[code].name for code in trace.spans.slot[nested].tolist()]
    assert dict(zip(names, depth.tolist(), strict=True)) == {
        "DispatchSlotAlloc": 0,
        "DispatchCopy": 0,
        "DispatchToken": 1,
        "CombineAccum": 0,
        "CombineToken": 1,
    }


numbers = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=40
)


@given(numbers)
def test_grouping_is_what_plain_code_does(table: list[tuple[int, int, int]]) -> None:
    table.sort(key=lambda row: row[1])
    key, start, length = (np.array(column, np.int64) for column in zip(*table, strict=True))
    order, _ = stable_order(key)
    assert order.tolist() == sorted(range(len(table)), key=lambda i: table[i][0])
    assert distinct(key).tolist() == sorted(set(key.tolist()))
    merged = [
        (k, *part)
        for k in sorted(set(key.tolist()))
        for part in union([(s, s + n) for q, s, n in table if q == k])
    ]
    assert list(zip(*(c.tolist() for c in unions(key, start, start + length)), strict=True)) == merged
    figures, (present, mean, calls) = GroupFigures(key, length), means(key, length)
    assert figures.group.tolist() == present.tolist()
    assert figures.calls.tolist() == calls.tolist()
    for i, k in enumerate(figures.group.tolist()):
        mine = [n for q, _, n in table if q == k]
        assert (figures.calls[i], figures.min[i], figures.max[i]) == (len(mine), min(mine), max(mine))
        assert figures.mean[i] == mean[i] == pytest.approx(statistics.fmean(mine))
        assert figures.percentile(90)[i] == pytest.approx(np.percentile(mine, 90))


@given(st.lists(st.integers(0, 1 << 60), max_size=30))
def test_wide_keys_are_sorted_stably_too(keys: list[int]) -> None:
    assert stable_order(np.array(keys, np.int64))[0].tolist() == sorted(
        range(len(keys)), key=keys.__getitem__
    )
    small = [k >> 30 for k in keys]
    assert stable_order(np.array(small, np.int64))[0].tolist() == sorted(
        range(len(keys)), key=small.__getitem__
    )


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), max_size=30))
def test_spans_of_a_row_never_overlap(parts: list[tuple[int, int]]) -> None:
    start = np.array([s for s, _ in parts], np.int64)
    end = start + np.array([n for _, n in parts], np.int64)
    row = rows(start, end)
    for r in set(row.tolist()):
        mine = sorted(
            (s, e) for s, e, q in zip(start.tolist(), end.tolist(), row.tolist(), strict=True) if q == r
        )
        assert all(a[1] <= b[0] for a, b in pairwise(mine))
