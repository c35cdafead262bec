"""What the screens say of a picture: where it is, or why there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from morimon.cli.pictures import picture_of
from morimon.trace.load import load
from tests.support.traces import file_of, span


def test_a_picture_stands_beside_its_trace(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    trace = load(file_of(tmp_path, span("combine_barrier", 0, 5)))
    assert picture_of(trace) == f"wrote {tmp_path / 'trace_rank_0_0821_170932.png'}"
    assert (tmp_path / "trace_rank_0_0821_170932.png").read_bytes().startswith(b"\x89PNG")


def test_a_trace_without_spans_has_no_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert "no spans, so there is nothing to draw" in picture_of(load(file_of(tmp_path, [])))


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = load(file_of(tmp_path, span("combine_barrier", 0, 5)))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "pip install" in picture_of(trace)
