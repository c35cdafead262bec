"""What `morimon trace` prints: every figure of the reference, in every form, whatever the file."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from morimon.cli.trace import command
from morimon.draw.text import cells
from morimon.report.trace_text import DETAILED, as_text
from morimon.trace.load import load

DATA = Path(__file__).parents[1] / "data"
TRACES = sorted((DATA / "traces").glob("*.json*"))
CASES = sorted((DATA / "cases").glob("*.json"))
SUMMARIES: dict[str, Any] = json.loads((DATA / "trace_summaries.json").read_text())


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


@pytest.mark.parametrize("name", SUMMARIES)
def test_text_holds_every_figure_of_the_reference(name: str) -> None:
    lines = [
        re.sub(r"[–\[\],()%]", " ", line).split() for line in run(DATA / "traces" / name).stdout.splitlines()
    ]
    wanted = SUMMARIES[name]

    def line_with(*figures: float, label: str = "") -> bool:
        texts = {f"{figure:.2f}" for figure in figures}
        return any(texts <= set(line) and (not label or label in line) for line in lines)

    for iteration in wanted["iterations"]:
        start, end = iteration["start_us"], iteration["end_us"]
        assert line_with(start, end, end - start)
        for kernel, parts in iteration["kernels"].items():
            begin, finish = parts[-1]
            assert line_with(begin, finish, finish - begin, label=kernel)
            for begin, finish in parts:
                assert line_with(begin, finish, finish - begin)
    for slot, figures in wanted["per_thread"].items():
        row = next(line for line in lines if line[0:1] == [slot] and str(figures["calls"]) in line)
        assert [float(cell) for cell in row[2:5]] == [
            pytest.approx(figures[key], abs=0.00501) for key in ("mean_us", "min_us", "max_us")
        ]


@pytest.mark.parametrize("path", [*TRACES, *CASES], ids=lambda path: path.name)
def test_text_keeps_to_its_width(path: Path) -> None:
    trace = load(path)
    for width in (80, 120, 200):
        text = as_text(trace, width)
        assert max(map(len, text.splitlines())) <= width
        assert "\x1b" not in text


def test_json_is_a_list_of_files_with_the_keys_and_meanings_of_the_oracle() -> None:
    names = list(SUMMARIES)
    files = json.loads(run("--json", *(DATA / "traces" / name for name in names)).stdout)
    assert [Path(file["file"]).name for file in files] == names
    for file, name in zip(files, names, strict=True):
        wanted = SUMMARIES[name]
        assert (file["spans"], file["threads"]) == (wanted["spans"], wanted["threads"])
        for mine, theirs in zip(file["iterations"], wanted["iterations"], strict=True):
            assert {key: mine[key] for key in theirs} == theirs
        for slot, figures in wanted["per_thread"].items():
            assert {key: file["per_thread"][slot][key] for key in figures} == figures
        assert {"family", "rank", "warnings"} <= file.keys()


def test_findings_stand_on_top_of_the_text(tmp_path: Path) -> None:
    text = (DATA / "traces" / "trace_rank_0_0821_170932.json").read_text()
    half = tmp_path / "trace_rank_0_0821_170932.json"
    half.write_text(text[: len(text) * 6 // 10])
    done = run(half)
    assert done.exit_code == 0
    head, rest = done.stdout.split("\n\n", 1)
    assert "✗ half written" in head
    assert "(1 partial)" in head.replace("\n  ", " ")
    assert rest.startswith("ITERATIONS")
    assert re.search(r"^ +partial: ", rest, re.MULTILINE)


def test_bad_files_have_a_line_each_and_the_others_are_shown(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "text.json").write_text("no json at all")
    good = TRACES[-1]
    done = run("--json", tmp_path / "missing.json", good, tmp_path / "empty.json", tmp_path / "text.json")
    assert done.exit_code == 1
    assert [Path(file["file"]).name for file in json.loads(done.stdout)] == [good.name]
    errors = done.stderr.splitlines()
    assert len(errors) == 3
    for error, name in zip(errors, ["missing.json", "empty.json", "text.json"], strict=True):
        assert error.startswith("morimon: ")
        assert name in error


def test_a_folder_stands_for_its_traces_and_other_json_is_counted(tmp_path: Path) -> None:
    for rank in (10, 2):
        (tmp_path / f"dispatch_rank{rank}.json").write_bytes(TRACES[-1].read_bytes())
    (tmp_path / "package.json").write_text('{"name": "x"}')
    done = run("--json", tmp_path)
    assert done.exit_code == 0
    assert [file["rank"] for file in json.loads(done.stdout)] == [2, 10]
    assert "1 JSON file is no trace" in done.stderr


def test_a_folder_without_traces_says_so(tmp_path: Path) -> None:
    done = run("--json", tmp_path)
    assert (done.exit_code, json.loads(done.stdout)) == (1, [])
    assert "no traces in" in done.stderr


@pytest.mark.parametrize("table", ["slots", "kernels", "iterations", "threads"])
def test_csv_puts_the_files_below_one_another(table: str) -> None:
    paths = [path for path in TRACES if "intranode" in path.name]
    rows = list(csv.DictReader(io.StringIO(run("--csv", "--table", table, *paths).stdout)))
    assert {row["file"] for row in rows} == {str(path) for path in paths}
    assert {row["rank"] for row in rows} == {"3", "4"}
    if table == "threads":
        lacking = next(row for row in rows if row["rank"] == "3")
        assert lacking["dispatch_send_tokens_us"] == "", "a slot that only the other file has"
        parts = sum(float(value) for key, value in lacking.items() if key not in _NO_PARTS and value)
        assert parts == pytest.approx(float(lacking["total_us"]), abs=0.001)


_NO_PARTS = {
    "file", "rank", "thread", "role", "calls", "total_us", "mean_us", "min_us", "p50_us", "p90_us", "p99_us", "max_us",
    "std_us", "share", "ratio", "outlier",
}  # fmt: skip


def test_markdown_shows_names_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "trace<b>.json"
    events = [{"name": "a|`b`*c*", "ph": "X", "ts": 0, "dur": 1.5, "pid": 0, "tid": 0}]
    path.write_text(json.dumps(events))
    text = run("--markdown", path).stdout
    assert "trace\\<b\\>" in text
    assert "| `a\\|'b'*c*` |" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in tables)


def test_of_very_many_iterations_the_telling_ones_are_detailed(tmp_path: Path) -> None:
    count = DETAILED + 20
    events = []
    for number in range(count):
        length = 90 if number == 33 else 10 + number / 100
        for name, begin, duration in (("EpDispatch", 0, 4), ("EpCombine", 5, length)):
            events.append(
                {"name": name, "ph": "X", "ts": number * 200 + begin, "dur": duration, "pid": 0, "tid": 0}
            )
    path = tmp_path / "many.json"
    path.write_text(json.dumps(events))
    trace = load(path)
    assert len(trace.iterations) == count
    text = as_text(trace)
    shown = re.findall(r"^iteration (\d+) ", text, re.MULTILINE)
    assert {"1", "2", "34"} <= set(shown)
    assert f"{count - len(shown)} more iterations" in text
    assert len(re.findall(r"^iteration (\d+) ", as_text(trace, every=True), re.MULTILINE)) == count


def test_a_merge_says_its_clock_and_leaves_the_traces_alone(tmp_path: Path) -> None:
    ranks = [path for path in TRACES if "171105" in path.name]
    out = tmp_path / "merged.json"
    done = run(*ranks, "--merge", out)
    assert done.exit_code == 0
    assert str(out) in done.stdout
    assert "ep_combine_sync_barrier" in done.stdout
    assert "residual" in done.stdout
    assert {process.rank for process in load(out).processes} == {1, 5}
    refused = run(*ranks, "--merge", ranks[0])
    assert refused.exit_code == 2
    assert "overwrite" in refused.stderr


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_no_case_gives_a_traceback(path: Path) -> None:
    done = run(path, "--json")
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)) == 1


def test_wide_and_odd_names_keep_columns_straight(tmp_path: Path) -> None:
    names = ["plain", "調度カーネル", "tab\there", "esc\x1b[31mred"]
    events = [
        {"name": name, "ph": "X", "ts": 10 * place, "dur": 1, "pid": 0, "tid": 0}
        for place, name in enumerate(names)
    ]
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(events))
    text = run(path).stdout
    assert "\x1b" not in text
    rows = text.split("parts     idle\n")[1].split("\n\n")[0].splitlines()
    assert len(rows) == len(names)
    assert {cells(row) for row in rows} == {cells(rows[0])}


def test_long_names_of_foreign_kernels_can_be_told_apart(tmp_path: Path) -> None:
    names = ("ncclDevKernel_AllGather_RING_LL", "ncclDevKernel_AllReduce_Sum_f32")
    events = [{"name": n, "ph": "X", "ts": 9 * i, "dur": 3} for i, n in enumerate(names)]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(events))
    table = as_text(load(path)).partition("passes that had work")[2]
    assert "ncclDevKernel_AllGather…" in table
    assert "ncclDevKernel_AllReduce…" in table


def test_two_forms_exclude_each_other(tmp_path: Path) -> None:
    done = run(TRACES[0], "--json", "--csv")
    assert done.exit_code == 2
    assert "--json and --csv exclude each other" in done.output


@pytest.mark.parametrize("arguments", [["trace", str(TRACES[0])], ["tokens"], ["watch", "--once", "."]])
def test_a_full_disk_below_standard_output_is_told_in_a_line(arguments: list[str], tmp_path: Path) -> None:
    shutil.copy(TRACES[0], tmp_path)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "morimon", *arguments],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    lines = [line for line in done.stderr.splitlines() if "following" not in line]
    assert (done.returncode, lines) == (
        1,
        ["morimon: standard output cannot be written: No space left on device."],
    )
