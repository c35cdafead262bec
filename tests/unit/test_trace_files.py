"""Writing, merging, handing over; and telling whether a file may be shown yet."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import zstandard

from morimon.trace.handover import open_saved, save
from morimon.trace.load import load
from morimon.trace.merge import align, write_merged
from morimon.trace.model import Clock, Trace, TraceError
from morimon.trace.summary import summary
from morimon.trace.whole import wholeness
from morimon.trace.write import TraceWriter
from tests.support.traces import DATA, Event, event, events_of, file_of, span, spans_of, synth

if TYPE_CHECKING:
    from pathlib import Path

# Writing


def test_names_of_any_kind_can_be_written_again(tmp_path: Path) -> None:
    lone, pair, escaped = r'"\ud800x"', r'"\ud83d\ude00"', r'"\\ud800"'
    events = ",".join(
        f'{{"name":{name},"ph":"X","ts":{9 * i},"dur":2,"pid":0,"tid":{name}}}'
        for i, name in enumerate((lone, pair, escaped))
    )
    path = tmp_path / os.fsdecode(b"rank_1_\xff.json")
    path.write_text(f'{{"traceEvents":[{events}],"beside":{lone}}}')
    trace = load(path)
    assert {slot.name for slot in trace.slots} == {"\ufffdx", "\U0001f600", "\\ud800"}
    assert trace.damaged
    assert json.loads(msgspec.json.encode(summary(trace)))["file"].endswith("rank_1_\ufffd.json")
    write_merged([trace, trace], tmp_path / "merged.json")
    merged = load(tmp_path / "merged.json")
    assert {slot.name for slot in merged.slots} == {slot.name for slot in trace.slots}
    assert merged.metadata["morimon"]["merged"] == ["rank_1_\ufffd.json"] * 2


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "trace_rank3.json"
    clock = Clock("morimon", 123456789012345678, "boot-1", 1700000000000000001)
    with TraceWriter(path, rank=3, config={"topk": 8}, clock=clock) as writer:
        writer.process(3, 'rank 3 "µ"')
        writer.thread(3, 0, "main")
        writer.spans([("dispatch", 0, 1001, 0)], pid=3)
        writer.spans([("combine", 2000, 2000, 0), ("barrier", -5, 7, 0)], pid=3)
        assert not path.exists()
    trace = load(path)
    spans = spans_of([e for e in events_of(path) if e["ph"] == "X"])
    assert [(n, s, e) for n, _, s, e in spans] == [
        ("barrier", -5, 7),
        ("dispatch", 0, 1001),
        ("combine", 2000, 2000),
    ]
    assert (trace.rank, trace.clock, trace.threads.name) == (3, clock, ("main",))
    assert trace.processes[0].label == 'rank 3 "µ"'
    assert trace.metadata["morimon"]["config"] == {"topk": 8}
    assert trace.warnings == ()


def test_an_error_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail() -> None:
        with TraceWriter(tmp_path / "t.json") as writer:
            writer.spans([("k", 0, 1, 0)])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TraceError, match="cannot be written"):
        TraceWriter(tmp_path / "no" / "t.json")


# Merging


def shifted(path: Path, by_us: float, rank: int) -> Path:
    """Another rank's file: the same job's events, on an axis of its own."""
    events = [e | {"ts": round(e["ts"] + by_us, 2)} for e in events_of(path)]
    return file_of(path.parent, events, f"trace_rank_{rank}_0821_170932.json")


@pytest.mark.parametrize(
    ("kernel", "ranks", "slot"),
    [
        ("v1", (0, 1), "ep_combine_sync_barrier"),
        ("v1", (0, 8), "combine_inter_node"),
        ("v1_ll", (0, 8), "combine_inter_node_ll"),
        ("intranode", (0, 5), "combine_barrier"),
        ("async_ll", (0, 13), "combine_async_recv_transfer"),
    ],
)
def test_barrier_ends_align_ranks(kernel: str, ranks: tuple[int, int], slot: str, tmp_path: Path) -> None:
    path = synth(tmp_path, kernel)
    traces = [load(shifted(path, by, rank)) for by, rank in zip((0, 1234.5), ranks, strict=True)]
    found = align(traces)
    assert found.offsets_ns == (0, -1_234_500)
    assert (found.clock, found.residual_us) == (f"the ends of {slot}", 0)


def test_the_residual_is_the_largest_disagreement(tmp_path: Path) -> None:
    path = synth(tmp_path, "intranode")
    other = [e | {"ts": round(e["ts"] + 50 + (3.5 if e["ts"] > 1e2 * 6 else 0), 2)} for e in events_of(path)]
    later = file_of(tmp_path, other, "trace_rank_1_0821_170932.json")
    traces = [load(shifted(path, 0, 0)), load(later)]
    found = align(traces)
    assert found.residual_us == pytest.approx(3.5)
    assert "residual 3.50 µs" in found.text


def irregular(folder: Path, rank: int, skip: int, until: int = 9, pauses: tuple[float, ...] = ()) -> Path:
    """A rank's file of a job with launches at uneven times, without those before `skip` and from `until` on."""
    path = synth(folder, "v1", iterations=6)
    starts = [it.start_ns / 1000 for it in load(path).iterations]
    events = []
    for e in events_of(path):
        number = sum(e["ts"] >= start for start in starts) - 1
        if skip <= number < until:
            events.append(e | {"ts": e["ts"] + sum(pauses[: number + 1])})
    zero = min(e["ts"] for e in events)
    return file_of(
        folder, [e | {"ts": round(e["ts"] - zero, 2)} for e in events], f"trace_rank_{rank}_0821_170932.json"
    )


PAUSES = (0.0, 31.7, 4.1, 55.5, 12.3, 29.9)


@pytest.mark.parametrize(
    ("first", "second", "places"),
    [
        ((0, 9), (1, 9), (2, 1)),
        ((1, 9), (0, 9), (1, 2)),
        ((0, 9), (0, 4), (1, 1)),
        ((0, 9), (2, 9), (3, 1)),
        ((0, 9), (1, 5), (2, 1)),
        ((0, 5), (1, 6), (2, 1)),
    ],
)
def test_iterations_that_a_rank_lost_are_found_by_the_fit_of_the_barriers(
    first: tuple[int, int], second: tuple[int, int], places: tuple[int, int], tmp_path: Path
) -> None:
    traces = [load(irregular(tmp_path, rank, *cut, PAUSES)) for rank, cut in enumerate((first, second))]
    found = align(traces)
    starts = [
        [it.start_ns + offset for it in trace.iterations]
        for trace, offset in zip(traces, found.offsets_ns, strict=True)
    ]
    assert starts[0][places[0] - 1] == starts[1][places[1] - 1]
    assert found.residual_us == 0
    assert f"its iteration {places[1]} was taken for the other's {places[0]}" in found.text
    assert "other pairing" not in found.text


def test_pairings_that_fit_alike_are_said_to(tmp_path: Path) -> None:
    events = [
        e
        for n in range(5)
        for e in span("combine_stage_input", 100 * n, 100 * n + 9)
        + span("combine_barrier", 100 * n + 9, 100 * n + 30)
    ]
    whole = load(file_of(tmp_path, events, "rank0.json"))
    short = load(file_of(tmp_path, events[4:], "rank1.json"))
    assert "other pairings fit about as well" in align([whole, short]).text
    one = load(file_of(tmp_path, events[:4], "rank2.json"))
    assert align([whole, one]).clock == ""


def test_clocks_decide_which_iterations_are_the_same(tmp_path: Path) -> None:
    path = synth(tmp_path, "v1", iterations=5)
    events, period = events_of(path), load(path).iterations[1].start_ns
    late = [e for e in events if e["ts"] * 1000 >= period]
    traces = [
        load(file_of(tmp_path, kept, f"rank{rank}.json", baseTimeNanoseconds=10**18))
        for rank, kept in enumerate((events, late))
    ]
    assert (align(traces).offsets_ns, align(traces).residual_us) == ((0, 0), 0)


def test_a_chain_over_two_nodes(tmp_path: Path) -> None:
    path = synth(tmp_path, "v1")
    offsets = {0: 0.0, 1: 10.0, 9: 300.25, 8: 70.0}
    found = align([load(shifted(path, by, rank)) for rank, by in offsets.items()])
    assert found.offsets_ns == tuple(round(-by * 1000) for by in offsets.values())


def test_clocks_that_the_files_name(tmp_path: Path) -> None:
    traces = []
    for rank, base in enumerate((1_700_000_000_000_000_000, 1_700_000_000_000_004_500)):
        traces.append(load(file_of(tmp_path, span("k", 1, 2), f"rank{rank}.json", baseTimeNanoseconds=base)))
    found = align(traces)
    assert (found.offsets_ns, found.clock, found.residual_us) == ((0, 4500), "Kineto's base time", None)
    own = [
        {"morimon": {"clock": {"source": "morimon", "zero_ns": z, "domain": d, "unix_ns": u}}}
        for z, d, u in ((5, "a", 100), (9, "a", 130), (7, "b", 160))
    ]
    files = [
        load(file_of(tmp_path, span("k", 1, 2), f"rank{i}.json", **beside)) for i, beside in enumerate(own)
    ]
    assert align(files[:2]).offsets_ns == (0, 4)
    assert align(files).offsets_ns == (0, 30, 60)
    assert "Unix time" in align(files).clock


def test_ranks_without_any_clock_stay_unaligned_and_it_says_so(tmp_path: Path) -> None:
    traces = [load(file_of(tmp_path, span("k", 10 * r, 10 * r + 1), f"rank{r}.json")) for r in (1, 2)]
    found = align(traces)
    assert (found.offsets_ns, found.clock, found.residual_us) == ((-10_000, -20_000), "", None)
    assert "not aligned" in found.text
    path = synth(tmp_path, "v1")
    apart = align([load(shifted(path, 0, 0)), load(shifted(path, 5, 9))])  # other node, other local rank
    assert apart.clock == ""


def test_the_merged_file(tmp_path: Path) -> None:
    path = synth(tmp_path, "v1", warps=16)
    files = [shifted(path, by, rank) for rank, by in ((0, 0.0), (1, 777.5))]
    out = tmp_path / "merged.json"
    found = write_merged([load(f) for f in files], out)
    trace = load(out)
    assert [(p.rank, p.family) for p in trace.processes] == [(0, "v1"), (1, "v1")]
    got = summary(trace)["processes"]
    assert got[0]["iterations"] == got[1]["iterations"]
    assert trace.metadata["morimon"]["residual_us"] == found.residual_us == 0
    assert trace.metadata["morimon"]["aligned_by"] == found.clock
    names = {
        (e["name"], e["pid"], e["tid"]): e["args"]["name"]
        for e in events_of(out)
        if e["ph"] == "M" and "name" in e["args"]
    }
    assert names["process_name", 1, 0] == "rank 1 · v1 · trace_rank_1_0821_170932.json"
    assert names["thread_name", 1, 7] == "warp 7"
    assert len([e for e in events_of(out) if e["ph"] == "X"]) == 2 * len(spans_of(events_of(path)))


def test_ranks_that_are_unknown_or_double_get_a_process_each(tmp_path: Path) -> None:
    names = ("rank3_a.json", "rank3_b.json", "x.json")
    traces = [
        load(file_of(tmp_path, [*span("k", 0, 1, "text"), *span("k", 0, 1, 4)], name)) for name in names
    ]
    write_merged(traces, tmp_path / "m.json")
    events = [e for e in events_of(tmp_path / "m.json") if e["ph"] == "X"]
    assert len({(e["pid"], e["tid"]) for e in events}) == 6
    assert {e["pid"] for e in events} == {3, 4, 5}


def test_the_eight_rank_file_can_be_merged(tmp_path: Path) -> None:
    trace = load(DATA / "traces" / "h200_ep8_emulated.json.gz")
    found = write_merged([trace], tmp_path / "m.json")
    again = load(tmp_path / "m.json")
    assert (found.clock, found.residual_us) == ("the file's own axis", 0)
    assert [p.rank for p in again.processes] == list(range(8))
    assert [it["kernels"] for it in summary(again)["iterations"]] == [
        it["kernels"] for it in summary(trace)["iterations"]
    ]


# Handing over


@pytest.mark.parametrize("name", ["h200_ep8_emulated.json.gz", "trace_rank_0_0821_170932.json"])
def test_a_hand_over_is_the_same_trace(name: str, tmp_path: Path) -> None:
    trace = load(DATA / "traces" / name)
    save(trace, tmp_path / "out")
    again = open_saved(tmp_path / "out")
    assert summary(again) == summary(trace)
    assert (again.processes, again.slots, again.threads.name) == (
        trace.processes,
        trace.slots,
        trace.threads.name,
    )
    assert not again.spans.start_ns.flags.writeable
    assert again.spans.start_ns.base is not None  # mapped, not copied


def test_a_hand_over_of_nothing(tmp_path: Path) -> None:
    save(load(file_of(tmp_path, [])), tmp_path / "out")
    assert len(open_saved(tmp_path / "out").spans) == 0


def test_a_hand_over_that_is_not_finished_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = load(DATA / "traces" / "trace_rank_0_0821_170932.json")
    out = tmp_path / "out"
    with pytest.raises(TraceError, match="no loaded trace there"):
        open_saved(out)
    save(trace, out)

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("morimon.trace.handover.np.save", die)
    with pytest.raises(KeyboardInterrupt):
        save(trace, out)
    with pytest.raises(TraceError, match="no loaded trace there"):
        open_saved(out)


def test_a_hand_over_that_is_broken_says_so(tmp_path: Path) -> None:
    out = tmp_path / "out"
    save(load(file_of(tmp_path, span("k", 0, 1))), out)
    (out / "trace.json").write_text("{")
    with pytest.raises(TraceError, match="cannot be read"):
        open_saved(out)


def work(*arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    """Run the worker; its exit code, its messages, its standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "morimon.trace", *arguments], capture_output=True, check=False
    )
    return (
        done.returncode,
        [msgspec.json.decode(line) for line in done.stdout.splitlines()],
        done.stderr.decode(),
    )


def test_the_worker_reads_and_says_how_far_it_is(tmp_path: Path) -> None:
    path = synth(tmp_path, "intranode", warps=128)
    size = path.stat().st_size
    code, said, err = work(str(path), str(tmp_path / "out"))
    assert (code, err, said[-1]) == (0, "", {"ready": str(tmp_path / "out")})
    assert {"bytes_done": size, "bytes_total": size} in said
    assert summary(open_saved(tmp_path / "out")) == summary(load(path))


def test_the_worker_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[1]")
    code, said, err = work(str(tmp_path / "x.json"), str(tmp_path / "out"))
    assert (code, err, said[-1]["not_a_trace"]) == (1, "", True)
    code, said, _ = work(str(tmp_path / "none.json"), str(tmp_path / "out"))
    assert (code, said[-1]["not_a_trace"]) == (1, False)
    assert "No such file" in said[-1]["error"]
    assert work()[0] == 2


def test_importing_the_loader_is_lean() -> None:
    code = "import sys, morimon.trace.load, morimon.trace.summary; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    ).stdout.split()
    heavy = {"scipy", "pandas", "matplotlib", "zstandard", "gzip", "json", "asyncio", "textual"}
    assert "numpy" in modules
    assert not heavy & set(modules)


# Wholeness

PARTS = (  # what a slow writer has on disk after each of its writes
    '{"traceEvents":[',
    '{"name":"a","ph":"B","ts":0,"pid":0,"tid":0},{"name":"a","ph":"E","ts":4,"pid":0,"tid":0},',
    '{"name":"b","ph":"B","ts":5,"pid":0,"tid":0},{"name":"b","ph":"E"',
    ',"ts":6,"pid":0,"tid":0},{"name":"c","ph":"B","ts":7,"pid":0,"tid":0},',
    '{"name":"c","ph":"E","ts":8,"pid":0,"tid":0},{"name":"d","ph":"B","ts":9,"pid":0,"tid":0},{"name":"d","ph":"E",',
    '"ts":11,"pid":0,"tid":0}',
    '],"displayTimeUnit":"ms"}',
)


def test_14_a_growing_file_is_whole_at_its_end_only(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("")
    assert wholeness(path) == "empty"
    for n in range(1, len(PARTS)):
        path.write_text("".join(PARTS[:n]))
        assert wholeness(path) == "growing"
    path.write_text("".join(PARTS))
    assert wholeness(path) == "whole"
    trace: Trace = load(path)
    assert (len(trace.spans), trace.warnings) == (4, ())


@pytest.mark.parametrize("indent", [None, 2])
def test_no_prefix_is_taken_for_whole(indent: int | None, tmp_path: Path) -> None:
    events: list[Event] = [
        event("X", '}],"', 0, dur=1, args={"k": [{"a": [1]}, {"b": "],}"}]}),
        *span("k", 2, 3),
    ]
    text = json.dumps({"schemaVersion": 1, "traceEvents": events, "x": [{"y": 1}]}, indent=indent)
    path = tmp_path / "t.json"
    for size in range(1, len(text)):
        path.write_text(text[:size])
        assert wholeness(path) == "growing", text[:size]
    path.write_text(text + "\n")
    assert wholeness(path) == "whole"


def test_large_files_by_head_and_tail(tmp_path: Path) -> None:
    path = synth(tmp_path, "v1", warps=96)
    size = path.stat().st_size
    assert size > 300_000
    assert wholeness(path) == "whole"
    to_array_end = len(b',\n  "displayTimeUnit": "ms"\n}')
    for cut in (1, 2, to_array_end, to_array_end + 1, to_array_end + 4, 150, 200, 5000):
        os.truncate(path, size - cut)
        assert wholeness(path) == "growing", cut


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_packed_files_must_end_properly(pack: Any, tmp_path: Path) -> None:
    packed = pack("".join(PARTS).encode())
    path = tmp_path / "t.json.gz"
    path.write_bytes(packed)
    assert wholeness(path) == "whole"
    for size in range(1, len(packed)):
        path.write_bytes(packed[:size])
        assert wholeness(path) in ("growing", "not a trace" if size < 5 else "growing")
    path.write_bytes(pack("".join(PARTS[:4]).encode()))
    assert wholeness(path) == "growing"


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (" \n", "empty"),
        ("hello", "not a trace"),
        ("[1,2]", "not a trace"),
        ('{"a":1}', "not a trace"),
        ('{"a":1', "growing"),
        ("[]", "whole"),
        ("[", "growing"),
        ('[{"ph":"X"}', "growing"),
        ('[{"ph":"X"}]', "whole"),
        ('{"traceEvents":[{"name":"k","ts":nan}]}', "whole"),
    ],
)
def test_what_files_look_like(text: str, state: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        path.write_text(text, encoding=encoding)
        assert wholeness(path) == state
    with pytest.raises(TraceError):
        wholeness(tmp_path / "none.json")
