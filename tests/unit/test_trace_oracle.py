"""The right values of data/trace_summaries.json, and a plain summary for every family."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from morimon.trace.load import load
from morimon.trace.summary import summary
from tests.support.traces import (
    DATA,
    FIRST,
    event,
    events_of,
    open_together,
    plain_summary,
    spans_of,
    synth,
    union,
)

if TYPE_CHECKING:
    from pathlib import Path

RIGHT = json.loads((DATA / "trace_summaries.json").read_text())


@pytest.mark.parametrize("name", RIGHT)
def test_every_value_of_the_right_summaries(name: str) -> None:
    got, right = summary(load(DATA / "traces" / name)), RIGHT[name]
    assert (got["spans"], got["threads"]) == (right["spans"], right["threads"])
    assert [{k: it[k] for k in right["iterations"][0]} for it in got["iterations"]] == right["iterations"]
    assert {
        slot: {k: row[k] for k in ("mean_us", "min_us", "max_us", "calls")}
        for slot, row in got["per_thread"].items()
    } == right["per_thread"]


def same(got: dict[str, Any], right: dict[str, Any]) -> None:
    assert (got["spans"], got["threads"]) == (right["spans"], right["threads"])
    assert [{k: it[k] for k in ("start_us", "end_us", "kernels")} for it in got["iterations"]] == right[
        "iterations"
    ]
    assert got["per_thread"].keys() == right["per_thread"].keys()
    for slot, row in right["per_thread"].items():
        assert got["per_thread"][slot]["mean_us"] == pytest.approx(row["mean_us"], abs=1e-4)
        assert {k: got["per_thread"][slot][k] for k in ("min_us", "max_us", "calls")} == {
            k: row[k] for k in ("min_us", "max_us", "calls")
        }


@pytest.mark.parametrize("kernel", FIRST)
@pytest.mark.parametrize("seed", [1, 2])
def test_all_families_against_the_plain_summary(kernel: str, seed: int, tmp_path: Path) -> None:
    path = synth(tmp_path, kernel, seed=seed)
    trace = load(path)
    assert trace.family == kernel
    assert trace.rank == 0
    same(summary(trace), plain_summary(events_of(path), FIRST[kernel]))
    assert all(it.whole for it in trace.iterations)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("trace_rank_2_0821_171230.json", "async_ll"),
        ("trace_intranode_rank3_0821_171401.json", "intranode"),
        ("trace_intranode_rank4_0821_171520.json", "intranode_ll"),
        ("trace_rank_5_0821_171105.json.gz", "v1_ll"),
    ],
)
def test_other_files_against_the_plain_summary(name: str, family: str) -> None:
    trace = load(DATA / "traces" / name)
    assert trace.family == family
    same(summary(trace), plain_summary(events_of(DATA / "traces" / name), FIRST[family]))


def kineto(
    folder: Path, rank: int | None = 3, base: int = 1692108548132154321, name: str = "host_77.pt.trace.json"
) -> Path:
    """What the PyTorch profiler writes: complete events with arguments, names of processes, a base time."""
    events = [
        event("M", "process_name", 0, pid=0, args={"name": "python"}),
        event("M", "thread_name", 0, 7, args={"name": "stream 7"}),
    ]
    for i in range(4):
        zero = 5839129810.123 + i * 900.5
        for k, (slot, dur) in enumerate(
            [("ep_main_dispatch", 210.25), ("ep_copy", 40.001), ("ep_main_combine", 310.0)]
        ):
            args = {"stream": 7, "grid": [24, 1, 1], "nested": [{"a": 1}, {"b": "},{"}]}
            events.append(event("X", slot, round(zero + 250 * k, 3), 7, 0, cat="kernel", dur=dur, args=args))
        events.append(event("X", "cudaLaunchKernel", round(zero - 20, 3), "9001", 4711, dur=5.5))
        events.append(event("s", "ac2g", zero, 7, id=i))
        events.append(event("f", "ac2g", zero, 7, id=i, bp="e"))
    beside = {"baseTimeNanoseconds": base, "displayTimeUnit": "ms", "traceName": "t.json", "schemaVersion": 1}
    path = folder / name
    head = {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 8}}
    path.write_text(json.dumps({**head, "traceEvents": events, **beside}, indent=1))
    return path


def test_a_profiler_file_against_the_plain_summary(tmp_path: Path) -> None:
    path = kineto(tmp_path)
    trace = load(path)
    assert (trace.rank, trace.family, len(trace.processes)) == (3, "unknown", 1)
    assert trace.set_aside == {"metadata": 2, "flow": 8}
    assert "stream 7" in trace.threads.name
    spans = [e for e in events_of(path) if e["ph"] == "X"]
    right = plain_summary(spans, "") | {
        "iterations": plain_summary([e for e in spans if e["pid"] == 0], "ep_main_dispatch")["iterations"]
    }
    same(summary(trace), right)
    assert len(right["iterations"]) == 4


@pytest.mark.parametrize("kernel", ["v1", "v1_ll"])
def test_overlap_and_time_in_barriers(kernel: str, tmp_path: Path) -> None:
    path = synth(tmp_path, kernel, seed=5)
    trace = load(path)
    spans = spans_of(events_of(path))
    for it in trace.iterations:
        mine = [s for s in spans if it.start_ns <= s[2] < it.end_ns]
        inter = union([s[2:] for s in mine if "inter_node" in s[0]])
        intra = union([s[2:] for s in mine if "intra" in s[0]])
        assert it.overlap == pytest.approx(open_together(inter, intra))
        gate = union([s[2:] for s in mine if s[0] == "dispatch_sync"])[-1]
        barrier = union([s[2:] for s in mine if s[0] == "ep_combine_sync_barrier"])
        assert it.barrier_ns == gate[1] - gate[0] + sum(e - s for s, e in barrier)


@pytest.mark.parametrize(
    ("kernel", "waits"), [("intranode", "combine_barrier"), ("async_ll", "recv_transfer")]
)
def test_time_in_barriers_of_the_others(kernel: str, waits: str, tmp_path: Path) -> None:
    path = synth(tmp_path, kernel)
    trace = load(path)
    for it in trace.iterations:
        mine = [
            s for s in spans_of(events_of(path)) if it.start_ns <= s[2] < it.end_ns and s[0].endswith(waits)
        ]
        parts = [union([s[2:] for s in mine if s[0] == slot]) for slot in {s[0] for s in mine}]
        assert it.barrier_ns == sum(e - s for part in parts for s, e in part)
        assert it.overlap == (None if kernel == "intranode" else 0.0)


def test_eight_ranks_in_one_file() -> None:
    path = DATA / "traces" / "h200_ep8_emulated.json.gz"
    trace = load(path)
    assert (len(trace.spans), len(trace.threads), trace.set_aside) == (43008, 2048, {"metadata": 8})
    assert [p.rank for p in trace.processes] == list(range(8))
    assert (trace.rank, trace.family) == (None, "unknown")
    assert [(it.process, it.number) for it in trace.iterations] == [
        (p, k) for p in range(8) for k in range(3)
    ]
    events = events_of(path)
    got = summary(trace)
    for process in got["processes"]:
        right = plain_summary([e for e in events if e["pid"] == process["rank"]], "DispatchSlotAlloc")
        assert (process["spans"], process["threads"]) == (right["spans"], right["threads"])
        kernels = [{k: it[k] for k in ("start_us", "end_us", "kernels")} for it in process["iterations"]]
        assert kernels == right["iterations"]
    assert [it["number"] for it in got["iterations"]] == [1, 2, 3]
    assert got["warnings"] == []
