"""Loading in a thread and in the worker process; ends of a worker that are none of its own choosing."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from morimon.feeds import trace_loader
from morimon.feeds.trace_loader import load_trace
from morimon.trace.load import load
from morimon.trace.model import NotATraceError, TraceError

TRACES = Path(__file__).parents[1] / "data" / "traces"
V1 = TRACES / "trace_rank_0_0821_170932.json"
PACKED = TRACES / "trace_rank_5_0821_171105.json.gz"
DEADLINE_S = 30.0


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def worker(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setattr(trace_loader, "WORKER", (sys.executable, "-c", script))


@pytest.mark.parametrize("path", [V1, PACKED], ids=lambda path: path.name)
@pytest.mark.parametrize("small_bytes", [0, 1 << 40], ids=["process", "thread"])
async def test_both_ways_give_the_same_trace_and_leave_nothing(
    path: Path, small_bytes: int, scratch: Path
) -> None:
    steps: list[tuple[int, int]] = []
    trace = await load_trace(path, lambda *step: steps.append(step), small_bytes=small_bytes)
    plain = load(path)
    np.testing.assert_array_equal(trace.spans.start_ns, plain.spans.start_ns)
    np.testing.assert_array_equal(trace.spans.end_ns, plain.spans.end_ns)
    assert (trace.slots, trace.iterations, trace.findings) == (plain.slots, plain.iterations, plain.findings)
    assert list(scratch.iterdir()) == []
    if small_bytes == 0:
        assert isinstance(trace.spans.start_ns, np.memmap)
        assert steps[-1][0] == steps[-1][1] == path.stat().st_size


@pytest.mark.parametrize("small_bytes", [0, 1 << 40], ids=["process", "thread"])
async def test_what_is_no_trace_is_told_apart_from_what_is_broken(tmp_path: Path, small_bytes: int) -> None:
    other = tmp_path / "package.json"
    other.write_text('{"name": "x"}')
    with pytest.raises(NotATraceError, match=r"package\.json"):
        await load_trace(other, small_bytes=small_bytes)
    empty = tmp_path / "empty.json"
    empty.touch()
    with pytest.raises(TraceError, match="empty"):
        await load_trace(empty, small_bytes=small_bytes or -1)
    with pytest.raises(TraceError, match="No such file"):
        await load_trace(tmp_path / "missing.json", small_bytes=small_bytes)


async def test_cancelling_kills_the_worker_and_leaves_nothing(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker(
        monkeypatch,
        'import os, signal; print(\'{"bytes_done":%d,"bytes_total":0}\' % os.getpid(), flush=True); signal.pause()',
    )
    pid: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(load_trace(V1, lambda done, _: pid.set_result(done), small_bytes=0))
    started = await asyncio.wait_for(pid, DEADLINE_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(started, 0)
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import os; os.kill(os.getpid(), 9)", "want of memory"),
        ("raise MemoryError", "want of memory"),
        ("import sys; sys.exit('something else')", "code 1: something else"),
    ],
)
async def test_an_unforeseen_end_is_a_sentence(
    script: str, words: str, monkeypatch: pytest.MonkeyPatch, scratch: Path
) -> None:
    worker(monkeypatch, script)
    with pytest.raises(TraceError, match=words) as caught:
        await load_trace(V1, small_bytes=0)
    assert str(V1) in str(caught.value)
    assert list(scratch.iterdir()) == []


async def test_the_worker_is_the_first_to_go_when_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    worker(
        monkeypatch,
        "import sys, time\n"
        "while (score := open('/proc/self/oom_score_adj').read().strip()) != '1000': time.sleep(0.01)\n"
        "sys.exit('score ' + score)",
    )
    with pytest.raises(TraceError, match="score 1000"):
        await asyncio.wait_for(load_trace(V1, small_bytes=0), DEADLINE_S)
