"""The headless twin: progress by the record's clock, tables, objects, excerpts, nothing of a job's text as code."""

from __future__ import annotations

import io
import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from wcwidth import wcswidth

from morimon.hub.launch import LaunchError
from morimon.model.config import JobConfig
from morimon.model.events import (
    Configured,
    Dropped,
    Failure,
    HubStarted,
    JobFailed,
    Note,
    PhaseDone,
    PhaseEntered,
    Progress,
    RecordEvent,
    RunEnded,
    RunHeader,
)
from morimon.report.exits import ExitCode, exit_code
from morimon.report.follow import Pace, follow, recorded
from morimon.report.reporters import JsonReporter, TextReporter
from morimon.report.succession import Succession
from morimon.runs.folder import RunFolder
from morimon.runs.lock import HubLock
from tests.support.records import Plan, Record, make_record


def text_of(record: Record, folder: Path = Path("/nonexistent"), encoding: str = "utf-8") -> tuple[str, str]:
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="") for _ in range(2))
    follow(iter(record.events), TextReporter(out, err, folder))
    return tuple(s.buffer.getvalue().decode(encoding) for s in (out, err))  # type: ignore[return-value]  # two streams, two texts


def json_of(events: list[RecordEvent]) -> list[dict[str, Any]]:
    out = io.StringIO()
    follow(iter(events), JsonReporter(out))
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_result_names_ranks_totals_and_no_failure() -> None:
    plan = Plan(ranks=4, nodes=2, rounds=12, late_rank=2)
    result = json_of(make_record(plan).events)[-1]
    assert result["type"] == "result"
    assert result["ok"] is True
    assert result["failure"] is None
    assert [(r["rank"], r["node"]) for r in result["ranks"]] == [(0, 0), (1, 0), (2, 1), (3, 1)]
    assert result["totals"]["recv_tokens"] == sum(r["recv_tokens"] for r in result["ranks"])
    assert result["totals"]["rdma_tokens_algo"] == sum(r["rdma_tokens_algo"] for r in result["ranks"])
    for rank in result["ranks"]:
        for phase in ("dispatch", "combine"):
            figures = rank[phase]
            assert figures["rounds"] == 12
            latency, xgmi = figures["latency_us"], figures["xgmi_gbps"]
            assert latency["best"] <= latency["average"] <= latency["worst"]
            assert xgmi["best"] >= xgmi["average"] >= xgmi["worst"]
            assert figures["rdma_algo_gbps"]["best"] > 0
    best = result["totals"]["dispatch"]["latency_us"]["best"]
    assert best["value"] == min(r["dispatch"]["latency_us"]["best"] for r in result["ranks"])
    assert best["value"] == result["ranks"][best["rank"]]["dispatch"]["latency_us"]["best"]
    assert result["last_to_arrive"]["rank"] == 2
    assert result["last_to_arrive"]["late"] is True


def test_one_node_shows_no_rdma_bandwidth_and_keeps_the_numbers_in_json() -> None:
    record = make_record(Plan(ranks=2))
    result = json_of(record.events)[-1]
    assert result["totals"]["dispatch"]["rdma_algo_gbps"]["average"] > 0
    assert result["totals"]["rdma_tokens_algo"] > 0
    assert "one node, nothing crosses" in text_of(record)[0]
    assert "nothing crosses" not in text_of(make_record(Plan(ranks=4, nodes=2)))[0]


def test_replay_prints_what_the_live_run_printed(tmp_path: Path) -> None:
    record = make_record(Plan(rounds=60))
    record.write(tmp_path)
    live, again = io.StringIO(), io.StringIO()
    follow(iter(record.events), JsonReporter(live))
    follow(recorded(tmp_path / "events.jsonl", RunFolder(tmp_path)), JsonReporter(again))
    assert live.getvalue() == again.getvalue()
    assert live.getvalue().count('"type":"progress"') >= 3


def test_a_record_without_an_end_is_lost(tmp_path: Path) -> None:
    folder = make_record(Plan(ends=False, host=socket.gethostname())).write(tmp_path)
    out = io.StringIO()
    snapshot = follow(recorded(folder / "events.jsonl", RunFolder(folder)), JsonReporter(out))
    result = json.loads(out.getvalue().splitlines()[-1])
    assert snapshot.state == "lost"
    assert result["ok"] is False
    assert "ended" in result["failure"]["cause"]
    assert exit_code(snapshot.state) is ExitCode.FAILED


def test_hubs_that_die_at_once_are_not_started_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(make_record(Plan(ends=False, host="elsewhere")).write(tmp_path))
    started: list[RunFolder] = []

    def dies_at_once(of: RunFolder) -> bool:
        started.append(of)
        return True

    monkeypatch.setattr("morimon.report.succession.ensure_hub", dies_at_once)
    succession = Succession(folder)
    assert [succession.nobody_writes() for _ in range(3)] == [False] * 3
    with pytest.raises(LaunchError, match=r"3 new ones died within 60 s\. .*hub\.log tells why"):
        succession.nobody_writes()
    assert started == [folder] * 3
    lock = HubLock.take(folder.lock_path)
    assert lock
    monkeypatch.setattr("morimon.report.succession.ensure_hub", lambda _: False)
    assert succession.nobody_writes() is False, "another viewer's hub lives"
    lock.release()


def test_nothing_after_the_end_counts(tmp_path: Path) -> None:
    record = make_record(Plan(ranks=2, rounds=3))
    before = json_of(record.events)[-1]
    record.events.append(Note(t_ns=9, text="late"))
    record.write(tmp_path)
    out = io.StringIO()
    follow(recorded(tmp_path / "events.jsonl", RunFolder(tmp_path)), JsonReporter(out))
    assert json.loads(out.getvalue().splitlines()[-1]) == before


def test_without_arrivals_no_verdict_is_made_up() -> None:
    record = make_record(Plan(ranks=2))
    record.events = [e for e in record.events if not isinstance(e, PhaseEntered)]
    assert json_of(record.events)[-1]["last_to_arrive"] is None
    out, _ = text_of(record)
    assert "late cannot be told" in out
    assert "last to arrive" not in out
    assert "no rank is late" not in out


def test_who_came_last_by_chance_is_not_accused() -> None:
    out, _ = text_of(make_record(Plan(ranks=4, rounds=20, late_rank=None)))
    progress = [line for line in out.splitlines() if "round" in line and " GB/s  " in line]
    assert progress
    assert all(line.endswith("  no rank is late") for line in progress[1:])
    assert "last to arrive" not in out
    assert re.search(
        r"^no rank is late: most often rank \d came last, in \d+ of 20 rounds of \w+, \+", out, re.MULTILINE
    )
    late, _ = text_of(make_record(Plan(ranks=4, rounds=20, late_rank=2)))
    assert re.search(r"^last to arrive: rank 2 \(\+.* of 20 rounds\) ◀ late$", late, re.MULTILINE)
    assert "no rank is late" not in late.splitlines()[-1]
    few, _ = text_of(make_record(Plan(ranks=4, rounds=3, late_rank=None)))
    assert "3 rounds are too few to tell who is late: most often rank" in few


def test_the_header_waits_for_the_configuration() -> None:
    events = make_record(Plan(ranks=2, rounds=5)).events
    told = next(event for event in events if isinstance(event, Configured))
    first = next(at for at, event in enumerate(events) if isinstance(event, PhaseDone))
    events.remove(told)
    events.insert(0, Configured(t_ns=0, config=JobConfig(world_size=2)))
    events[0], events[1] = events[1], events[0]
    events.insert(first + 1, told)
    out, _ = text_of(Record(events))
    assert out.splitlines()[0].startswith("ep-bench intranode, 2 ranks, 512 tok")
    assert out.count("ep-bench intranode") == 1
    events.remove(told)
    out, _ = text_of(Record(events))
    assert out.splitlines()[0].startswith("2 ranks, run "), "a job that never tells"


# the killed rank


def test_the_first_cause_comes_first(tmp_path: Path) -> None:
    record = make_record(Plan(killed=(2, 5)))
    folder = record.write(tmp_path)
    result = json_of(record.events)[-1]
    assert result["failure"] == {"rank": 2, "cause": "killed by SIGKILL", "signal": "SIGKILL"}
    assert result["ok"] is False
    out, _ = text_of(record, folder)
    lines = out[out.index("✗") :].splitlines()
    assert lines[0] == "✗ rank 2 failed first: killed by SIGKILL"
    assert "rank 2 recv" in lines[2]
    assert "Connection closed by peer" not in out
    assert "failed, SIGKILL" in out


def test_the_ranks_own_error_lines_are_shown(tmp_path: Path) -> None:
    record = Record()
    record.print(1, 1, "all well")
    begin = record.print(
        2, 1, "Traceback (most recent call last):\nValueError: \x1b[31mno [red]\x1b[0m", "stderr"
    )
    name = next(n for n in record.files if n.endswith("stderr.log"))
    failure = Failure(rank=1, cause="ValueError: no", exitcode=1, file=name, offset=begin)
    record.events.append(RunEnded(t_ns=3, outcome="failed", exitcode=1, failure=failure))
    out, _ = text_of(record, record.write(tmp_path))
    assert "✗ rank 1 failed first: ValueError: no (exit code 1)" in out
    assert "│ ValueError: no [red]" in out
    assert "\x1b" not in out


def test_the_traceback_stands_above_its_error(tmp_path: Path) -> None:
    frames = [f'  File "deep.py", line {n}, in f' for n in range(30)]
    record = Record()
    record.print(1, 0, "step 1", "stderr")
    for line in ("Traceback (most recent call last):", *frames):
        record.print(2, 0, f"[rank0]: {line}", "stderr")
    begin = record.print(3, 0, "[rank0]: ValueError: no", "stderr")
    for n in range(30):
        record.print(4, 0, f"after {n}", "stderr")
    name = next(n for n in record.files if n.endswith("stderr.log"))
    failure = Failure(rank=0, cause="ValueError: no", file=name, offset=begin)
    record.events.append(RunEnded(t_ns=5, outcome="failed", exitcode=1, failure=failure))
    out, _ = text_of(record, record.write(tmp_path))
    shown = [line.strip(" │") for line in out.splitlines() if "│" in line]
    assert shown[:12] == [f"[rank0]: {line}" for line in frames[-12:]]
    assert shown[12] == "[rank0]: ValueError: no"
    assert shown[13:] == [*(f"after {n}" for n in range(7)), "…"]


def test_what_comes_before_an_error_without_a_traceback_is_not_its_own(tmp_path: Path) -> None:
    record = Record()
    record.print(1, 0, "step 1", "stderr")
    record.print(1, 0, "  indented", "stderr")
    begin = record.print(3, 0, "ValueError: no", "stderr")
    name = next(n for n in record.files if n.endswith("stderr.log"))
    failure = Failure(rank=0, cause="ValueError: no", file=name, offset=begin)
    record.events.append(RunEnded(t_ns=5, outcome="failed", exitcode=1, failure=failure))
    out, _ = text_of(record, record.write(tmp_path))
    assert "│ ValueError: no" in out
    assert "indented" not in out


@pytest.mark.parametrize(
    ("end", "line"),
    [
        (RunEnded(t_ns=9, outcome="failed", exitcode=3), "failed with exit code 3 after 0:"),
        (RunEnded(t_ns=9, outcome="failed", exitcode=-11), "failed by SIGSEGV after 0:"),
        (RunEnded(t_ns=9, outcome="stopped", exitcode=-15), "stopped by SIGTERM after 0:"),
        (RunEnded(t_ns=9, outcome="finished", exitcode=0), "finished after 0:"),
    ],
)
def test_the_end_in_words(end: RunEnded, line: str) -> None:
    record = make_record(Plan(ranks=1, rounds=1))
    record.events[-1] = end
    out, _ = text_of(record)
    assert f"\n{line}" in out
    assert ": 1 rank, 1 round counted\n" in out
    assert "is late" not in out, "of one rank"


def test_a_job_that_failed_as_a_whole_has_no_first_rank() -> None:
    end = RunEnded(t_ns=9, outcome="failed", failure=Failure(rank=None, cause="no"))
    record = make_record(Plan(ranks=2, rounds=1))
    record.events[-1] = end
    assert "✗ the job failed: no\n" in text_of(record)[0]


def test_first_figures_have_a_line_though_the_job_tells_no_progress() -> None:
    record = make_record(Plan(ranks=2, rounds=4))
    record.events = [event for event in record.events if not isinstance(event, Progress)]
    out, _ = text_of(record)
    lines = [line for line in out.splitlines() if line.startswith(" 0:")]
    assert len(lines) == 1
    assert json_of(record.events)[1]["type"] == "progress"
    assert json_of(record.events)[1]["dispatch_us"] is not None


def test_a_record_cannot_point_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n")
    folder = tmp_path / "run"
    failure = Failure(rank=0, cause="x", file="../secret", offset=0)
    record = Record([RunEnded(t_ns=1, outcome="failed", failure=failure)])
    out, _ = text_of(record, record.write(folder))
    assert "failed first" in out
    assert "secret" not in out


# when lines come


def test_pace_is_the_records_own() -> None:
    def at(s: float, done: int) -> Progress:
        return Progress(t_ns=int(s * 1e9), done=done, total=100)

    pace = Pace()
    assert not pace.is_due(at(0, 0))
    assert not pace.is_due(at(0.5, 30))
    assert pace.is_due(at(1.1, 31))
    assert not pace.is_due(at(2.5, 35))
    assert pace.is_due(Note(t_ns=int(11.2e9), text="time alone"))
    assert pace.is_due(at(11.3, 100))


def test_a_silent_job_is_introduced_all_the_same() -> None:
    events: list[RecordEvent] = [
        RunHeader(
            t_ns=0,
            version=1,
            run_id="ab12",
            host="h",
            boot_id="b",
            unix_ns=0,
            command=("sleep", "1"),
            cwd="/",
            kind="command",
        ),
        RunEnded(t_ns=int(1e9), outcome="finished", exitcode=0),
    ]
    assert [o["type"] for o in json_of(events)] == ["run", "result"]
    out, _ = text_of(Record(events))
    assert out.startswith("sleep 1, run ab12 on h\n")
    assert "finished after 0:01" in out


def test_notes_and_drops_are_told() -> None:
    record = make_record(Plan(ranks=2, rounds=2))
    record.events.insert(3, HubStarted(t_ns=1, pid=1, resumed=True))
    out, err = text_of(record)
    assert "died" in err
    assert "died" not in out
    assert [o["level"] for o in json_of(record.events) if o["type"] == "note"] == ["warning"]


# text is data


def test_a_jobs_words_cannot_move_the_cursor() -> None:
    events: list[RecordEvent] = [
        Configured(t_ns=0, config=JobConfig(name="a\x1b[2Jb\r\nc", routing="[bold]x")),
        Note(t_ns=0, text="n\x07\n\x1b]0;t\x07m"),
        JobFailed(t_ns=0, failure=Failure(rank=0, cause="c\x1b[1Ad")),
        RunEnded(t_ns=1, outcome="failed"),
    ]
    out, err = text_of(Record(events))
    assert not {c for c in out + err if ord(c) < 32 and c != "\n"}
    assert "[bold]x" in out
    assert err.count("\n") == 1


def test_columns_stay_straight() -> None:
    out, _ = text_of(make_record(Plan(ranks=12, rounds=3)))
    lines = out.splitlines()
    at = next(i for i, line in enumerate(lines) if "recv tok" in line)
    edge = wcswidth(lines[at][: lines[at].index("recv tok")]) + len("recv tok")
    for line in lines[at + 1 : at + 14]:
        assert line[edge - 1].isdigit()
        assert line[edge] == " "


def test_without_unicode_all_is_ascii() -> None:
    out, _ = text_of(make_record(Plan(killed=(1, 2))), encoding="ascii")
    assert out.isascii()
    assert "x rank 1 failed first" in out
    assert "?" not in out


@pytest.mark.parametrize(
    ("state", "code"),
    [("finished", 0), ("running", 0), ("failed", 1), ("lost", 1), ("stopped", 1)],
)
def test_exit_codes(state: Any, code: int) -> None:
    assert exit_code(state) == code
    assert exit_code(state, interrupted=True) == 130


def test_documented_keys_are_the_printed_ones() -> None:
    """Every object in docs/json.md has the keys of its printed counterpart."""
    text = (Path(__file__).parents[2] / "docs" / "json.md").read_text()
    blocks = [block.split("```")[0] for block in text.split("```json\n")[1:]]
    documented: dict[str, set[str]] = {}
    for block in blocks:
        decoder = json.JSONDecoder()
        while block.strip():
            thing, end = decoder.raw_decode(block.strip())
            documented[thing["type"]] = set(thing)
            block = block.strip()[end:]
    record = make_record(Plan(rounds=40))
    record.events.insert(3, HubStarted(t_ns=1, pid=1, resumed=True))
    record.events.insert(4, Dropped(t_ns=1, count=2, reason="noise"))
    printed = json_of(record.events)
    assert {thing["type"] for thing in printed} == {"run", "progress", "note", "dropped", "result"}
    for thing in printed:
        assert documented[thing["type"]] == set(thing)
