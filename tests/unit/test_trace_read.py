"""The reader: forms of files, kinds of events, exactness, damage, cancelling; and that it raises nothing unforeseen."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from morimon.trace import layout, read
from morimon.trace.events import Events
from morimon.trace.load import load
from morimon.trace.model import LoadCancelledError, NotATraceError, Trace, TraceError
from morimon.trace.names import file_name
from morimon.trace.source import Source
from tests.support.traces import DATA, Event, event, events_of, file_of, span, spans_of, synth


def spans(trace: Trace) -> list[tuple[str, str, int, int]]:
    """(name, thread name, start, end) with absolute nanoseconds, sorted."""
    s = trace.spans
    columns = zip(s.slot.tolist(), s.thread.tolist(), s.start_ns.tolist(), s.end_ns.tolist(), strict=True)
    zero = trace.origin_ns
    return sorted((trace.slots[c].name, trace.threads.name[t], a + zero, b + zero) for c, t, a, b in columns)


def brute(events: list[Event]) -> list[tuple[str, str, int, int]]:
    return sorted((name, f"warp {thread[1]}", a, b) for name, thread, a, b in spans_of(events))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_encodings_line_ends_and_packing(encoding: str, newline: str, pack: Any, tmp_path: Path) -> None:
    events = [*span("kernel µ", 0, 1.5), *span("b", 2, 3, tid=1)]
    text = json.dumps({"traceEvents": events}, indent=2, ensure_ascii=False).replace("\n", newline)
    path = tmp_path / "t.json"
    path.write_bytes(pack(text.encode(encoding)))
    trace = load(path)
    assert spans(trace) == [("b", "warp 1", 2000, 3000), ("kernel µ", "warp 0", 0, 1500)]
    assert trace.warnings == ()


def test_kinds_are_read_or_set_aside_and_counted(tmp_path: Path) -> None:
    aside = ["M", "C", "i", "I", "s", "t", "f", "b", "n", "e", "N", "?"]
    events = [event(ph, "x", 0.5, id=1) for ph in aside] + [*span("k", 0, 1), event("X", "x", 2, dur=3)]
    trace = load(file_of(tmp_path, events))
    assert len(trace.spans) == 2
    assert trace.events == len(events)
    assert trace.set_aside == {
        "metadata": 1,
        "counter": 1,
        "instant": 2,
        "flow": 3,
        "asynchronous": 3,
        "object or other": 1,
        "unknown kind": 1,
    }


def test_ids_are_numbers_or_text(tmp_path: Path) -> None:
    events = [
        event("B", "k", 0, "3", "0"),
        event("E", "k", 1, 3, 0),
        *span("k", 0, 1, "stream 7", 0),
        *span("k", 5, 6, -1),
    ]
    trace = load(file_of(tmp_path, events))
    assert len(trace.spans) == 3
    assert sorted(zip(trace.threads.name, trace.threads.tid.tolist(), strict=True)) == [
        ("stream 7", -1),
        ("warp -1", -1),
        ("warp 3", 3),
    ]


@pytest.mark.parametrize(
    ("ts", "ns"),
    [
        ("0", 0),
        ("1.5e3", 1_500_000),
        ("-2.25", -2250),
        ('"12.125"', 12_125),
        ("1E-2", 10),
        ("1692108548132154.321", 1692108548132154321),
        ('"1692108548132154.321"', 1692108548132154321),
        ("1692108548132154321e-3", 1692108548132154321),
    ],
)
def test_ts_is_exact_in_every_form(ts: str, ns: int, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(f'[{{"name":"k","ph":"X","ts":{ts},"dur":0.007,"pid":0,"tid":0}}]')
    assert spans(load(path)) == [("k", "warp 0", ns, ns + 7)]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"ph": "B", "name": "k", "ts": None}, "no usable ts"),
        ({"ph": "B", "name": "k"}, "no usable ts"),
        ({"ph": "E", "name": "k", "ts": "soon"}, "no usable ts"),
        ({"ph": "B", "name": "k", "ts": 1e300}, "no usable ts"),
        ({"ph": "B", "name": "k", "ts": [1]}, "no usable ts"),
        ({"ph": "X", "name": "k", "ts": 1}, "a complete event (X) without a usable dur"),
        ({"ph": "X", "name": "k", "ts": 1, "dur": -1}, "a complete event (X) without a usable dur"),
        ({"name": "k", "ts": 1}, "no ph"),
        ({"ph": 7, "name": "k", "ts": 1}, "no ph"),
    ],
)
def test_events_that_cannot_be_used_are_counted(bad: Event, reason: str, tmp_path: Path) -> None:
    trace = load(file_of(tmp_path, [bad, *span("k", 2, 3)]))
    assert (trace.rejected, len(trace.spans), trace.events) == ({reason: 1}, 1, 3)
    assert [f.text for f in trace.findings if f.kind == "rejected"] == [f"1 event left out: {reason}"]


@pytest.mark.parametrize(
    ("damage", "line", "column", "left"),
    [
        ('{"name":"a","ph":"X","ts":1,"dur":2,"pid":0 "tid":0}', 3, 45, 1),
        ('{"name":"a"b","ph":"X","ts":1,"dur":2}', 3, 12, 1),
        ('{"name":"a","ph":"X","ts":1,"dur":2', 4, 1, 1),
        ('"text"', 3, 1, 1),
        ("[1, 2]", 3, 1, 1),
        ('{"name":"\\q","ph":"X","ts":1,"dur":2}', 3, 9, 2),
        ('{"name":"a","ph":"X","ts":1,"dur":2,"args":{"x":-Infinity}}', 3, 49, 1),
    ],
)
def test_damage_is_said_with_its_place_and_the_rest_is_kept(
    damage: str, line: int, column: int, left: int, tmp_path: Path
) -> None:
    path = tmp_path / "t.json"
    good = json.dumps(event("X", "good", 9, dur=1))
    path.write_text('{"x": 1,\n"traceEvents":[\n' + damage + ",\n" + good + "\n]}")
    trace = load(path)
    found = next(f for f in trace.findings if f.kind == "damaged")
    assert (found.line, found.column, len(trace.spans)) == (line, column, left)
    assert f"line {line}, column {column}" in found.text
    assert any(slot.name == "good" for slot in trace.slots)


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b'[{"name":"a\xffb","ph":"X","ts":1,"dur":2}]')
    trace = load(path)
    assert (trace.slots[0].name, trace.damaged) == ("a\ufffdb", True)


def test_a_packed_file_that_is_cut(tmp_path: Path) -> None:
    events = [e for i in range(4000) for e in span(f"k{i % 7}", i, i + 0.5, random.Random(i).randrange(99))]
    text = json.dumps({"traceEvents": events}).encode()
    for packed in (gzip.compress(text), zstandard.compress(text)):
        path = tmp_path / "t.json"
        path.write_bytes(packed[: len(packed) // 2])
        trace = load(path)
        assert any(f.kind == "half_written" and "ends before its end mark" in f.text for f in trace.findings)
        assert 0 < len(trace.spans) < 4000 or packed[:2] != b"\x1f\x8b"


@pytest.mark.parametrize(
    "text", ["[1,2,3]", '"x"', "12", '{"a":1}', "#!/bin/sh", '{"traceEvents":{}}', '{"a":{"traceEvents":[]}}']
)
def test_json_that_is_no_trace(text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(NotATraceError):
        load(path)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path, "\0"):
        with pytest.raises(TraceError):
            load(path)


def test_what_stands_beside_the_events_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(
        '{"a":{"traceEvents":[1]},"s":"\\"traceEvents\\":[", "traceEvents" : [] ,"b":[{"x":1},{"y":2}]}'
    )
    assert load(path).metadata == {
        "a": {"traceEvents": [1]},
        "s": '"traceEvents":[',
        "b": [{"x": 1}, {"y": 2}],
    }


def test_progress_and_cancelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "PIECE", 10_000)
    path = synth(tmp_path, "v1")
    size = path.stat().st_size
    said: list[tuple[int, int]] = []
    load(path, lambda done, total: said.append((done, total)))
    assert [done for done, _ in said] == sorted(done for done, _ in said)
    assert said[-1] == (size, size)
    assert len(said) > 10
    with pytest.raises(LoadCancelledError):
        load(path, cancelled=lambda: len(said) > 0)


names = st.sampled_from(["a", "dispatch_sync", "}, {", 'q"uote', "b\\", "é"])
ticks = st.integers(0, 3)


@st.composite
def threads(draw: st.DrawFn) -> list[list[Event]]:
    """Events of some threads, each in order of time: spans well nested or touching, complete ones anywhere."""
    result = []
    for tid in draw(st.lists(st.integers(0, 9), unique=True, min_size=1, max_size=4)):
        now = 0
        stack: list[str] = []
        events: list[Event] = []
        for _ in range(draw(st.integers(0, 8))):
            now += draw(ticks)
            what = draw(st.sampled_from("BBEX"))
            ts = now / 100
            args = draw(st.sampled_from([{}, {"args": {"k": [{"a": 1}, {"b": "},{"}]}}]))
            if what == "E" and stack:
                events.append(event("E", stack.pop(), ts, tid, **args))
            elif what == "X":
                events.append(event("X", draw(names), ts, tid, dur=draw(ticks) / 100))
            else:
                stack.append(draw(names))
                events.append(event("B", stack[-1], ts, tid, **args))
        now += draw(ticks)
        events += [event("E", name, now / 100, tid) for name in reversed(stack)]
        result.append(events)
    return result


@settings(deadline=None, max_examples=150)
@given(
    threads(),
    st.randoms(use_true_random=False),
    st.sampled_from([None, 2]),
    st.sampled_from([64, 333, 1 << 20]),
)
def test_any_legal_order_gives_the_spans_it_was_made_of(
    parts: list[list[Event]], order: random.Random, indent: int | None, piece: int
) -> None:
    queues = [list(part) for part in parts]
    events: list[Event] = []
    while any(queues):  # within a thread in order, between threads in any
        events.append(order.choice([queue for queue in queues if queue]).pop(0))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(read, "PIECE", piece)
        trace = load(file_of(Path(folder), events, indent=indent))
    assert spans(trace) == brute(events)
    assert (trace.open_spans, trace.orphan_ends) == (0, 0)
    assert not trace.damaged


@settings(deadline=None, max_examples=150)
@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b'{"traceEvents":[', b"[", b'[{"ph":"X","ts":1,"dur":1},', b"\x1f\x8b\x08\x00"]),
)
def test_arbitrary_bytes_raise_nothing_but_our_own_error(noise: bytes, head: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        path.write_bytes(head + noise)
        with contextlib.suppress(TraceError):
            load(path)


GOOD = json.dumps(
    {"traceEvents": span("k", 0, 1.25) + span("dispatch_sync", 2, 3, 7), "displayTimeUnit": "ms"}, indent=2
)


@settings(deadline=None, max_examples=200)
@given(st.integers(0, len(GOOD) - 1), st.binary(max_size=3), st.integers(0, 3))
def test_a_damaged_file_is_either_read_as_json_reads_it_or_said_to_be_damaged(
    at: int, noise: bytes, cut: int
) -> None:
    text = GOOD.encode()[:at] + noise + GOOD.encode()[at + cut :]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        path.write_bytes(text)
        try:
            trace = load(path)
        except TraceError:
            return
    if trace.damaged or trace.rejected or trace.set_aside or "unsorted" in {f.kind for f in trace.findings}:
        return
    # tolerated: a byte order mark, a comma behind the last event; an end whose name is empty closes what is open
    text = re.sub(rb"(?<=\})\s*,\s*\]", b"]", text)
    events = json.loads(text.decode("utf-8-sig", "replace"), strict=False)["traceEvents"]
    if all(isinstance(e.get("name"), str) and e["name"] for e in events):
        assert len(trace.spans) == len(spans_of(events))


@pytest.mark.parametrize("between", [" ", ",,", ", ,\n"])
@pytest.mark.parametrize("piece", [40, read.PIECE])
def test_events_without_one_comma_between_them_are_damage_and_kept(
    between: str, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "PIECE", piece)
    whole = [json.dumps(e) for e in span("k", 0, 1) + span("k", 2, 3)]
    path = tmp_path / "t.json"
    for seam in range(1, 4):
        path.write_text(f"[{','.join(whole[:seam])}{between}{','.join(whole[seam:])}]")
        trace = load(path)
        assert (len(trace.spans), trace.events) == (2, 4)
        (damage,) = (f for f in trace.findings if f.severity == "damage")
        assert "one comma" in damage.text
        assert (damage.count, damage.line) == (1, 1 + between.count("\n"))


@pytest.mark.parametrize("kernel", ["v1", "intranode", "async_ll"])
def test_the_quick_layout_gives_what_the_general_reader_gives(
    kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = synth(tmp_path, kernel)
    taken: list[int] = []
    quick = layout.Layout.read

    def counted(self: layout.Layout, piece: bytes) -> None:
        quick(self, piece)
        taken.append(len(piece))

    with monkeypatch.context() as patch:
        patch.setattr(layout.Layout, "read", counted)
        first = load(path)
    assert taken
    with monkeypatch.context() as patch:
        patch.setattr(read, "FIRST_EVENT", b"never")
        second = load(path)
    assert spans(first) == spans(second) == brute(events_of(path))
    assert [s.name for s in first.slots] == [s.name for s in second.slots]


LAYOUT_EVENT = '{\n      "name": "%s",\n      "cat": "gpu_kernel",\n      "ph": "%s",\n      "ts": %s,\n      "pid": %s,\n      "tid": %s\n    }'


def quickly(*events: tuple[str, str, str, str, str], mangle: tuple[str, str] = ("", "")) -> Events:
    text = ",\n    ".join(LAYOUT_EVENT % e for e in events)
    if mangle[0]:
        assert mangle[0] in text
        text = text.replace(*mangle, 1)
    found = Events()
    layout.Layout(found).read(text.encode())
    return found


@pytest.mark.parametrize(
    "ts", ["0", "0.0", "7.25", "123456789.01", "1234567890.123", "99999999", "100000000.5"]
)
@pytest.mark.parametrize("tid", ["0", "4095", "123456789012"])
def test_the_layout_reads_plain_numbers(ts: str, tid: str) -> None:
    columns = (found := quickly(("k", "B", ts, "0", tid), ("a longer name", "E", "1.5", "0", "3"))).columns()
    assert columns.ts_ns.tolist() == [round(float(ts) * 1000), 1500]
    assert [found.threads.ids[t] for t in columns.thread.tolist()] == [(0, int(tid)), (0, 3)]
    assert [found.names.table[n] for n in columns.name.tolist()] == ["k", "a longer name"]
    assert columns.kind.tolist() == [1, 2]


@pytest.mark.parametrize(
    "odd",
    [
        ("k", "B", "1e3", "0", "0"),
        ("k", "B", "-1", "0", "0"),
        ("k", "B", "1.2345", "0", "0"),
        ("k", "B", "01", "0", "0"),
        ("k", "B", ".5", "0", "0"),
        ("k", "B", "5.", "0", "0"),
        ("k", "B", "", "0", "0"),
        ("k", "B", '"1"', "0", "0"),
        ("k", "B", "NaN", "0", "0"),
        ("k", "B", "1.2.3", "0", "0"),
        ("k", "B", "1234567890123456", "0", "0"),
        ("k", "B", "1", "-1", "0"),
        ("k", "B", "1", "0", '"x"'),
        ("k", "B", "1", "0", "1.0"),
        ("k", "i", "1", "0", "0"),
        ("k", "X", "1", "0", "0"),
        ('a\\"b', "B", "1", "0", "0"),
        ('a"b', "B", "1", "0", "0"),
        ("é", "B", "1", "0", "0"),
        ("a\tb", "B", "1", "0", "0"),
    ],
)
def test_the_layout_refuses_what_is_not_plain(odd: tuple[str, str, str, str, str]) -> None:
    good = ("k", "B", "1", "0", "0")
    for events in ((odd,), (good, odd, good)):
        with pytest.raises(layout.OtherLayoutError):
            quickly(*events)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_the_layout_refuses_any_change_that_alters_an_event(data: st.DataObject) -> None:
    text = ",\n    ".join(
        LAYOUT_EVENT % (f"slot_{i}", "BE"[i % 2], f"{i}.25", "0", str(i)) for i in range(3)
    ).encode()
    at = data.draw(st.integers(0, len(text) - 1))
    changed = text[:at] + data.draw(st.binary(max_size=2)) + text[at + data.draw(st.integers(0, 2)) :]
    found = Events()
    try:
        layout.Layout(found).read(changed)
    except layout.OtherLayoutError:
        return
    columns = found.columns()
    right = json.loads(b"[" + changed + b"]")
    assert [e["name"] for e in right] == [found.names.table[n] for n in columns.name.tolist()]
    assert [round(e["ts"] * 1000) for e in right] == columns.ts_ns.tolist()
    assert [(e["pid"], e["tid"]) for e in right] == [found.threads.ids[t] for t in columns.thread.tolist()]
    assert ["BE".index(e["ph"]) + 1 for e in right] == columns.kind.tolist()
    assert all(e["cat"] == "gpu_kernel" and len(e) == 6 for e in right)


@pytest.mark.parametrize(
    ("name", "rank", "stamp", "prefix"),
    [
        ("trace_rank_0_0821_170932.json", 0, "0821_170932", "trace"),
        ("trace_intranode_rank3_0821_171401.json", 3, "0821_171401", "trace_intranode"),
        ("dispatch_rank3.json", 3, "", "dispatch"),
        ("expanded_dispatch_rank12.json.gz", 12, "", "expanded_dispatch"),
        ("trace_rank__.json", None, "", "trace"),
        ("trace_rank__0821_170932.json", None, "0821_170932", "trace"),
        ("trace_rank_0821_170932.json", None, "0821_170932", "trace"),
        ("trace_intranode_rank_.json", None, "", "trace_intranode"),
        ("trace_rank_1024_0821_170932.json.zst", 1024, "0821_170932", "trace"),
        ("host_4711.1692108548132.pt.trace.json", None, "", "host_4711.1692108548132"),
        ("RANK-7.json", 7, "", ""),
        ("frank3.json", None, "", "frank3"),
    ],
)
def test_what_file_names_tell(name: str, rank: int | None, stamp: str, prefix: str) -> None:
    found = file_name(f"some/folder/{name}")
    assert (found.rank, found.stamp, found.prefix) == (rank, stamp, prefix)


def test_rank_from_metadata_when_the_name_has_none(tmp_path: Path) -> None:
    assert load(file_of(tmp_path, span("k", 0, 1), "x.json", distributedInfo={"rank": 6})).rank == 6
    assert load(file_of(tmp_path, span("k", 0, 1), "rank2.json", distributedInfo={"rank": 6})).rank == 2
    assert load(file_of(tmp_path, span("k", 0, 1), "x.json")).rank is None


def test_reading_again_after_it_grew(tmp_path: Path) -> None:
    path = file_of(tmp_path, span("k", 0, 1))
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert load(path).damaged
    path.write_bytes(whole)
    assert not load(path).damaged


def test_the_source_says_where_a_byte_stands() -> None:
    from morimon.trace.source import lines_and_columns

    path = DATA / "cases" / "12_bad_strings.json"
    text = b"".join(Source(path).pieces())
    wanted = {text.index(b"line two"): (4, 1), text.index(b"{", 2): (2, 1), 0: (1, 1), len(text): (5, 1)}
    assert lines_and_columns(path, wanted) == wanted


def test_times_that_are_nanoseconds_are_told_from_none(tmp_path: Path) -> None:
    events = [event("X", "k", 1755770000123456789, dur=1), event("X", "k", "?", dur=1), *span("k", 0, 1)]
    trace = load(file_of(tmp_path, events))
    assert sorted(trace.rejected.values()) == [1, 1]
    assert any("nanoseconds" in reason for reason in trace.rejected)


def test_an_event_that_nests_too_deeply_is_called_so(tmp_path: Path) -> None:
    deep = '{"name":"k","ph":"X","ts":0,"dur":1,"args":' + "[" * 100_000 + "]" * 100_000 + "}"
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents":[' + deep + ',{"name":"k","ph":"X","ts":5,"dur":1}]}')
    trace = load(path)
    assert list(trace.rejected) == ["an event is nested too deeply"]
    assert len(trace.spans) == 1


def test_a_cut_stream_that_holds_nothing_is_not_called_empty(tmp_path: Path) -> None:
    path = tmp_path / "t.json.zst"
    path.write_bytes(zstandard.compress(b"[" + b" " * 5000 + b"]")[:12])
    with pytest.raises(TraceError, match="nothing can be read: the zstd stream ends"):
        load(path)
