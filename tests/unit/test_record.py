"""The record reader: half lines wait, bad ones are counted, large files come in pieces."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morimon.feeds import record as record_module
from morimon.feeds.record import RecordReader
from morimon.model.codec import encode
from morimon.model.events import Dropped, Note, RecordEvent
from tests.support.records import Plan, make_record


def read_all(reader: RecordReader) -> list[RecordEvent]:
    out: list[RecordEvent] = []
    while events := reader.read():
        out += events
    return out


def note(text: str) -> Note:
    return Note(t_ns=1, text=text)


@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.integers(0, 4000), max_size=6))
def test_any_cut_gives_the_same_events(tmp_path_factory: pytest.TempPathFactory, cuts: list[int]) -> None:
    events = make_record(Plan(ranks=2, rounds=3)).events
    data = b"".join(map(encode, events))
    path = tmp_path_factory.mktemp("record") / "events.jsonl"
    path.touch()
    reader = RecordReader(path)
    got: list[RecordEvent] = []
    bounds = sorted({0, *(c for c in cuts if c < len(data)), len(data)})
    with path.open("ab") as out:
        for a, b in pairwise(bounds):
            out.write(data[a:b])
            out.flush()
            got += read_all(reader)
    assert got == events
    assert reader.offset == len(data)


def test_pieces_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_module, "PIECE_BYTES", 200)
    events = make_record(Plan(ranks=2, rounds=2)).events
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(map(encode, events)))
    reader = RecordReader(path)
    first = reader.read()
    assert 0 < len(first) < 6
    assert first + read_all(reader) == events


def test_bad_lines_and_unknown_events_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    good = encode(note("a"))
    path.write_bytes(good + b'garbage\n{"ev":"from-2031","t_ns":3}\n\xff\xfe\n\n' + good)
    reader = RecordReader(path)
    events = read_all(reader)
    assert [e for e in events if isinstance(e, Note)] == [note("a"), note("a")]
    assert (reader.bad_lines, reader.unknown_events) == (2, 1)
    bad, unknown = (e for e in events if isinstance(e, Dropped))
    assert (bad.count, unknown.count) == (2, 1)
    assert f"byte {len(good)}" in bad.reason


def test_unknown_fields_of_known_events_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"ev":"note","t_ns":1,"text":"a","shade":"blue"}\n')
    assert read_all(RecordReader(path)) == [note("a")]


def test_an_endless_line_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_module, "PIECE_BYTES", 100)
    monkeypatch.setattr(record_module, "LONGEST_LINE_BYTES", 300)
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"x" * 2000 + b"\n" + encode(note("after")))
    reader = RecordReader(path)
    events = read_all(reader)
    assert note("after") in events
    assert reader.bad_lines == 1
