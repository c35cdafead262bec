"""`morimon tokens` from its command line to its output."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from morimon.cli import tokens
from morimon.cli.tokens import command
from morimon.ep.config import EpConfig
from morimon.ep.predict import routes
from morimon.model.codec import encode
from morimon.model.config import JobConfig
from morimon.model.events import Configured, RecordEvent, RunHeader, Tokens

DATA = Path(__file__).parents[1] / "data"
SMALL = [
    "--num-nodes",
    "2",
    "--gpu-per-node",
    "4",
    "--num-tokens",
    "1024",
    "--hidden",
    "2048",
    "--num-experts",
    "32",
    "--num-topk",
    "4",
]
TINY = [
    "--num-nodes",
    "2",
    "--gpu-per-node",
    "2",
    "--num-tokens",
    "64",
    "--hidden",
    "128",
    "--num-experts",
    "16",
    "--num-topk",
    "4",
]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def data_of(*arguments: str) -> dict[str, Any]:
    result = run("--json", *arguments)
    assert result.exit_code == 0, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


def refusal(*arguments: str) -> str:
    """The one line that a refused command leaves on standard error."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    return result.stderr.strip()


def test_bw_values_are_the_recorded_output_byte_for_byte() -> None:
    expected = (DATA / "bw_values_2x4_1024_2048_32_4.txt").read_bytes()
    assert run(*SMALL, "--format", "bw-values").stdout_bytes == expected


def test_bw_values_do_not_depend_on_the_kernel_type() -> None:
    assert (
        run(*TINY, "--format", "bw-values").stdout
        == run(*TINY, "--format=bw-values", "--kernel-type=v1_ll").stdout
    )


def test_json_holds_every_key_and_integer_of_the_recorded_counts() -> None:
    recorded = json.loads((DATA / "token_counts.json").read_text())[1]
    told = data_of(*SMALL)
    assert told["config"].items() >= recorded["config"].items()
    for ours, theirs in zip(told["ranks"], recorded["ranks"], strict=True):
        assert ours.items() >= theirs.items()


def test_json_adds_up() -> None:
    told = data_of(*TINY, "--kernel-type", "async_ll")
    ranks = told["ranks"]
    matrix = np.array(told["tokens_from_rank_to_rank"])
    assert [one["recv_tokens"] for one in ranks] == matrix.sum(axis=0).tolist()
    assert [one["recv_tokens_own"] for one in ranks] == matrix.diagonal().tolist()
    assert told["totals"]["recv_tokens"] == matrix.sum()
    assert told["totals"]["wire_tokens_sent"] == told["totals"]["wire_tokens_received"] > 0
    assert sum(told["expert_tokens"]) == 4 * 64 * 4
    assert sum(one["dispatch"]["wire_sent_bytes"] for one in ranks) == sum(
        one["combine"]["wire_received_bytes"] for one in ranks
    ) + told["totals"]["wire_tokens_sent"] * (told["row_bytes"]["dispatch"] - told["row_bytes"]["combine"])
    assert told["imbalance"]["recv_tokens"]["max_over_mean"] >= 1


def test_csv_has_a_line_a_rank_with_the_same_figures() -> None:
    rows = list(csv.DictReader(io.StringIO(run("--csv", *TINY, "--dispatch-us", "50").stdout)))
    told = data_of(*TINY, "--dispatch-us", "50")["ranks"]
    assert [row["rank"] for row in rows] == ["0", "1", "2", "3"]
    for row, one in zip(rows, told, strict=True):
        assert int(row["recv_tokens"]) == one["recv_tokens"]
        assert int(row["dispatch_wire_sent_bytes"]) == one["dispatch"]["wire_sent_bytes"]
        assert float(row["dispatch_xgmi_gbps"]) == one["dispatch"]["xgmi_gbps"]
        assert row.keys() == rows[0].keys()


def test_durations_give_bandwidths() -> None:
    told = data_of(*TINY, "--dispatch-us", "40", "--combine-us", "80", "--combine-dtype", "fp32")["ranks"][1]
    assert told["dispatch"]["xgmi_gbps"] == pytest.approx(told["recv_tokens"] * 128 * 2 / 40e3)
    assert told["combine"]["rdma_algo_gbps"] == pytest.approx(told["rdma_tokens_algo"] * 128 * 4 / 80e3)
    assert "xgmi_gbps" not in data_of(*TINY)["ranks"][1]["dispatch"]


def test_more_than_the_line_carries_is_called_impossible() -> None:
    arguments = [*TINY, "--dispatch-us", "0.5", "--rdma-line-gbps", "50"]
    text = run(*arguments).stdout
    assert "! impossible:" in text
    assert "the local node is counted (algo); physical is" in text
    verdicts = data_of(*arguments)["line_rate"]
    assert {one["figure"] for one in verdicts if one["impossible"]} >= {"rdma_algo_gbps"}
    assert "impossible" not in run(*TINY, "--dispatch-us", "500", "--rdma-line-gbps", "50").stdout


@pytest.mark.parametrize(
    "extra", [[], ["--kernel-type", "v1_ll"], ["--dispatch-us", "3", "--rdma-line-gbps", "9"]]
)
def test_text_stays_within_80_columns(extra: list[str]) -> None:
    arguments = [
        "--num-nodes",
        "4",
        "--gpu-per-node",
        "8",
        "--num-tokens",
        "4096",
        "--hidden",
        "4096",
        "--routing",
        "random",
        "--matrix",
    ]
    text = run(*arguments, *extra).stdout
    assert max(map(len, text.splitlines())) <= 80
    matrix = text[text.index("tokens from rank") :]
    for rank in range(32):
        assert any(f" {rank} " in f"{line} " for line in matrix.splitlines() if not line.startswith("all"))


def test_text_tells_the_counts_and_their_sum() -> None:
    lines = [line.split() for line in run(*SMALL).stdout.splitlines()]
    first, whole = lines[7], lines[16]
    assert lines[6] == ["rank", "node", "recv", "own", "same", "fwd", "algo", "phys", "sent", "rcvd"]
    assert [*first[:3], *first[6:9]] == ["0", "0", "3465", "1938", "969", "969"]
    assert [*whole[:2], *whole[5:]] == ["all", "28186", "15530", "7793", "7793", "7793"]
    assert sum(map(int, whole[2:5])) == int(whole[1]), "own, same node and forwarded are all that is received"


@pytest.mark.parametrize(
    ("hidden", "unit", "bytes_"), [("64", "kB (10³ bytes)", 1e3), ("65536", "MB (10⁶ bytes)", 1e6)]
)
def test_amounts_are_shown_in_a_unit_that_leaves_digits(hidden: str, unit: str, bytes_: float) -> None:
    arguments = ["--num-tokens", "32", "--hidden", hidden, "--num-experts", "16", "--num-topk", "2"]
    text = run(*arguments).stdout
    lines = [line.split() for line in text[text.index(f"dispatch, {unit}") :].splitlines()]
    shown = next(line for line in lines if line[:1] == ["5"])[1]
    assert shown == f"{data_of(*arguments)['ranks'][5]['dispatch']['xgmi_bytes'] / bytes_:.1f}"


def test_one_node_shows_no_rdma_but_json_keeps_the_numbers() -> None:
    arguments = ["--num-tokens", "32", "--hidden", "64", "--num-experts", "16", "--num-topk", "2"]
    text = run(*arguments).stdout
    assert "one node: nothing crosses" in text
    assert next(line for line in text.splitlines() if line.split()[:1] == ["3"]).split()[-4:] == ["–"] * 4
    told = data_of(*arguments)["ranks"][3]
    assert (told["rdma_tokens_algo"], told["rdma_tokens_physical"], told["wire_tokens_sent"]) == (32, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--num-tokens", "-5"], "The number of tokens per rank must be at least 1, not -5."),
        (
            ["--num-experts", "250"],
            "250 experts cannot be divided among 8 ranks (1 × 8): choose a multiple of 8.",
        ),
        (["--num-topk", "300"], "top-k of 300 is more than there are experts (256)."),
        (
            ["--routing", "spread", "--num-topk", "2"],
            "Routing spread needs a top-k equal to the number of ranks (8), not 2.",
        ),
        (["--dispatch-us", "0"], "--dispatch-us must be above 0, not 0."),
        (["--combine-us", "nan"], "--combine-us must be above 0, not nan."),
        (["--topk-file", "/nowhere/a.npy"], "/nowhere/a.npy: No such file or directory."),
        (["--check", "/nowhere/a.log"], "/nowhere/a.log holds no record of a run"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments: list[str], sentence: str) -> None:
    assert sentence in refusal(*arguments)


# --- real routing ---------------------------------------------------------------------------------------------------


def routing_file(path: Path, tokens_: int = 64) -> Path:
    config = EpConfig(
        num_nodes=2, gpu_per_node=2, num_tokens=tokens_, hidden=128, num_experts=16, topk=4, kernel_type="v1"
    )
    np.save(path, np.concatenate(list(routes(config, "deepep", 0))))
    return path


def test_a_file_of_the_same_routing_gives_the_same_counts(tmp_path: Path) -> None:
    path = routing_file(tmp_path / "topk.npy")
    drawn, read = data_of(*TINY), data_of(*TINY, "--topk-file", str(path))
    assert read["ranks"] == drawn["ranks"]
    assert (read["routing"], read["seed"]) == (str(path), None)


def test_tokens_and_topk_are_the_files_unless_given(tmp_path: Path) -> None:
    path = routing_file(tmp_path / "topk.npy", tokens_=10)
    sizes = ["--num-nodes", "2", "--gpu-per-node", "2", "--num-experts", "16"]
    config = data_of(*sizes, "--topk-file", str(path))["config"]
    assert (config["num_tokens"], config["num_topk"]) == (10, 4)
    assert "--num-tokens is 64, but the top-k file has 10." in refusal(*TINY, "--topk-file", str(path))


def test_a_file_of_another_shape_or_other_experts_is_refused(tmp_path: Path) -> None:
    path = routing_file(tmp_path / "topk.npy", tokens_=10)
    assert "not [40, 4]" in refusal("--gpu-per-node", "3", "--num-experts", "15", "--topk-file", str(path))
    assert "allowed are 0 to 7" in refusal(
        "--gpu-per-node", "4", "--num-experts", "8", "--topk-file", str(path)
    )


# --- checks ---------------------------------------------------------------------------------------------------------


def log_of(path: Path, *arguments: str, wrong: Callable[[int], int] = lambda rank: 0) -> Path:
    ranks = data_of(*TINY, *arguments)["ranks"]
    path.write_text(
        "Round 0 begin\n"
        + "".join(
            f"rank {one['rank']} recv {one['recv_tokens'] + wrong(one['rank'])} tokens "
            f"{one['rdma_tokens_algo']} rdma tokens\n"
            for one in ranks
        )
    )
    return path


def test_a_log_of_the_same_routing_passes(tmp_path: Path) -> None:
    log = log_of(tmp_path / "job.log")
    result = run(*TINY, "--check", str(log))
    assert result.exit_code == 0
    assert "check: 8 of 8 counts of 4 ranks are equal to what the routing gives" in result.stdout


def test_one_wrong_token_fails_and_is_named(tmp_path: Path) -> None:
    log = log_of(tmp_path / "job.log", wrong=lambda rank: int(rank == 2))
    result = run(*TINY, "--check", str(log))
    due = data_of(*TINY)["ranks"][2]["recv_tokens"]
    assert result.exit_code == 1
    assert f"rank 2 recv_tokens {due + 1}: the routing gives {due}" in result.stdout
    told = json.loads(run(*TINY, "--check", str(log), "--json").stdout)["check"]
    assert (told["ok"], told["statistical"]) == (False, False)
    data = run(*TINY, "--check", str(log), "--csv")
    assert data.exit_code == 1
    assert "check:" not in data.stdout
    assert "check: 7 of 8" in data.stderr


def test_a_file_of_routing_is_exact(tmp_path: Path) -> None:
    topk = routing_file(tmp_path / "topk.npy")
    good, bad = log_of(tmp_path / "good.log"), log_of(tmp_path / "bad.log", wrong=lambda rank: 1)
    assert run(*TINY, "--topk-file", str(topk), "--check", str(good)).exit_code == 0
    assert run(*TINY, "--topk-file", str(topk), "--check", str(bad)).exit_code == 1


def test_random_routing_of_another_generator_is_checked_statistically(tmp_path: Path) -> None:
    log = log_of(tmp_path / "job.log", "--routing", "random", "--seed", "77")
    drawn_here = run(*TINY, "--routing", "random", "--seed", "77", "--check", str(log))
    assert "are equal to what the routing gives" in drawn_here.stdout
    other = run(*TINY, "--routing", "random", "--check", str(log))
    assert other.exit_code == 0
    assert "within 4σ of uniform routing (statistical)" in other.stdout
    assert run(*TINY, "--routing", "random", "--exact", "--check", str(log)).exit_code == 1
    assert run(*TINY, "--check", str(log)).exit_code == 1, "DeepEP's routing is known"
    skewed = log_of(tmp_path / "skewed.log", "--routing", "skewed")
    assert run(*TINY, "--routing", "random", "--check", str(skewed)).exit_code == 1


def test_impossible_counts_fail_whatever_the_routing(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("rank 0 recv 200 tokens 129 rdma tokens\n")
    result = run(*TINY, "--routing", "random", "--check", str(log))
    assert result.exit_code == 1
    assert "rank 0 rdma_tokens_algo 129: impossible, no routing gives more than 128" in result.stdout
    assert "no counts of 3 of 4 ranks" in result.stdout


def test_a_log_without_counts_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("hello\n")
    assert "no token counts in it" in refusal("--check", str(log))


def recorded_run(folder: Path, job: JobConfig, counts: list[tuple[int, int, int]]) -> Path:
    folder.mkdir()
    header = RunHeader(
        t_ns=0,
        version=1,
        run_id=folder.name,
        host="here",
        boot_id="",
        unix_ns=0,
        command=("x",),
        cwd="/",
        kind="builtin",
    )
    events: list[RecordEvent] = [header, Configured(t_ns=1, config=job)]
    events += [
        Tokens(t_ns=2, rank=rank, recv_tokens=recv, rdma_tokens_algo=algo) for rank, recv, algo in counts
    ]
    (folder / "events.jsonl").write_bytes(b"".join(map(encode, events)))
    return folder


def test_a_run_says_by_itself_what_it_is_checked_against(tmp_path: Path) -> None:
    job = JobConfig(
        kernel_type="v1", num_nodes=2, gpu_per_node=2, num_tokens=64, hidden=128, topk=4, num_experts=16,
        dtype="bf16", combine_dtype="fp32", routing="random", seed=9,
    )  # fmt: skip
    ranks = data_of(*TINY, "--routing", "random", "--seed", "9")["ranks"]
    counts = [(one["rank"], one["recv_tokens"], one["rdma_tokens_algo"]) for one in ranks]
    good = recorded_run(tmp_path / "good", job, counts)
    told = data_of("--check", str(good))
    assert told["check"]["ok"]
    assert not told["check"]["statistical"]
    assert told["config"]["combine_dtype"] == "fp32"
    bad = recorded_run(tmp_path / "bad", job, [(rank, recv + 1, algo) for rank, recv, algo in counts])
    assert run("--check", str(bad)).exit_code == 1, "the job's own draw is known: no statistics"
    assert "within 4σ" in run("--check", str(bad), "--statistical").stdout
    assert run("--check", str(good), "--seed", "10").exit_code == 1, (
        "the job says that it drew with another seed"
    )
    other = json.loads(run("--check", str(good), "--num-tokens", "32", "--json").stdout)
    assert other["config"]["num_tokens"] == 32, "the command line has the last word"


def test_a_stress_run_is_refused(tmp_path: Path) -> None:
    folder = recorded_run(tmp_path / "run", JobConfig(cmd="stress", num_tokens=64), [(0, 1, 1)])
    refused = run("--check", str(folder))
    assert refused.exit_code == 2
    assert "a stress run sends another number of tokens in every round" in refused.stderr


def test_words_of_a_job_that_are_not_ours_are_left_aside(tmp_path: Path) -> None:
    job = JobConfig(kernel_type="InterNodeV1", dtype="float8_e4m3fnuz", routing="their own", topk=8)
    folder = recorded_run(tmp_path / "run", job, [(0, 1, 1)])
    config = json.loads(run("--check", str(folder), "--json").stdout)["config"]
    assert (config["kernel_type"], config["dtype"]) == ("intranode", "bf16")


# --- manners --------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("seconds", "shown"), [(0.01, False), (0.4, True)])
def test_a_progress_bar_comes_when_it_takes_long(
    monkeypatch: pytest.MonkeyPatch, seconds: float, shown: bool
) -> None:
    clock = {"now": 0.0}

    def slow() -> Iterator[int]:
        for item in range(10):
            clock["now"] += seconds
            yield item

    monkeypatch.setattr(time, "monotonic", lambda: clock["now"])
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    assert list(tokens._with_progress(slow(), 10)) == list(range(10))
    assert ("routing ranks" in stderr.getvalue()) is shown


def test_no_progress_bar_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks) * 10.0)
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    assert list(tokens._with_progress(iter("abc"), 3)) == ["a", "b", "c"]
    assert stderr.getvalue() == ""


def test_torch_is_never_imported() -> None:
    program = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from morimon.cli.tokens import command\n"
        f"result = CliRunner().invoke(command, {TINY!r})\n"
        "assert result.exit_code == 0, result.output\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "'numpy'" in done.stdout
    for heavy in ("torch", "textual", "rich", "psutil", "watchdog", "matplotlib"):
        assert f"'{heavy}'" not in done.stdout
