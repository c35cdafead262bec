"""A run of the built-in job shows the counts that `morimon tokens` predicts for the same seed and routing."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import pytest
from click.testing import CliRunner

from morimon.cli.main import cli
from morimon.draw.glyphs import ASCII, UNICODE
from morimon.hub.launch import LaunchSpec
from morimon.model.codec import encode
from morimon.model.events import RecordEvent, Tokens
from tests.support.jobs import Bench, Job, bench

pytestmark = [pytest.mark.e2e, pytest.mark.torch]

RANKS = 4
SHAPE = {"num-tokens": 48, "hidden": 64, "num-experts": 16, "num-topk": 3}
ROUTING = ["--routing", "skewed", "--seed", "11"]
JOB = (
    *("--max-tokens", "48", "--hidden-dim", "64", "--num-experts", "16", "--num-experts-per-token", "3"),
    *("--rounds", "3", *ROUTING),
)


@pytest.fixture(scope="module")
def place() -> Iterator[Bench]:
    with pytest.MonkeyPatch.context() as patch, bench(patch.setenv) as made:
        patch.setenv("MORIMON_RUNS_DIR", str(made.runs_dir))
        patch.setenv("COLUMNS", "120")
        yield made


@pytest.fixture(scope="module")
def ended(place: Bench) -> Job:
    job = place.launch(LaunchSpec(kind="builtin", argv=JOB, nproc=RANKS))
    assert job.end().outcome == "finished", job.output("**/*.log")
    return job


def morimon(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, args, prog_name="morimon")
    return result.exit_code, result.stdout


def figures(line: str) -> list[int]:
    """The whole numbers of a line, whatever parts them."""
    for mark in (UNICODE.bar, ASCII.bar, UNICODE.play, ASCII.play):
        line = line.replace(mark, " ")
    words = line.replace(UNICODE.thousands, "").split()
    return [int(word) for word in words if word.isdecimal()]


def test_the_screens_show_what_was_predicted(ended: Job) -> None:
    shape = [part for name, value in SHAPE.items() for part in (f"--{name}", str(value))]
    code, text = morimon("tokens", "--gpu-per-node", str(RANKS), *shape, *ROUTING, "--json")
    assert code == 0
    predicted = json.loads(text)
    run = ended.folder.run_id

    code, screen = morimon("attach", run, "--once", "--screen", "traffic")
    assert code == 0
    rows = [line for line in screen.splitlines() if line.split()[:1] in ([str(r)] for r in range(RANKS))]
    matrix = rows[:RANKS]  # bars of each rank follow
    assert [figures(line)[1 : 1 + RANKS] for line in matrix] == predicted["tokens_from_rank_to_rank"]
    (received,) = [figures(line) for line in screen.splitlines() if line.split()[:1] == ["recv"]]
    assert received[:RANKS] == [rank["recv_tokens"] for rank in predicted["ranks"]]
    load = max(predicted["expert_tokens"])
    assert f"hottest expert {predicted['expert_tokens'].index(load)} (rank 0): {load} = " in screen

    code, screen = morimon("attach", run, "--once", "--screen", "ranks")
    assert code == 0
    for rank in predicted["ranks"]:
        (row,) = [line for line in screen.splitlines() if line.split()[:1] == [str(rank["rank"])]]
        assert rank["recv_tokens"] in figures(row)

    code, screen = morimon("attach", run, "--once", "--screen", "bandwidth")
    assert code == 0
    assert "XGMI/NVL GB/s of dispatch" in screen
    assert sum("received" in line.split()[:2] for line in screen.splitlines()) >= 2 * RANKS


def test_the_run_is_held_against_the_prediction(ended: Job) -> None:
    code, text = morimon("tokens", "--check", ended.folder.run_id)
    assert code == 0
    assert f"counts of {RANKS} ranks are equal to what the routing gives" in text
    assert morimon("tokens", "--check", ended.folder.run_id, "--seed", "12")[0] == 1


def test_a_wrong_count_in_a_run_is_found(ended: Job, place: Bench) -> None:
    folder = place.path / "tampered"
    folder.mkdir()
    (folder / "events.jsonl").write_bytes(b"".join(encode(_off_by_one(event)) for event in ended.events()))
    code, text = morimon("tokens", "--check", str(folder))
    assert code == 1, text
    assert "rank 2" in text


def _off_by_one(event: RecordEvent) -> RecordEvent:
    if isinstance(event, Tokens) and event.rank == 2:
        return msgspec.structs.replace(event, recv_tokens=event.recv_tokens + 1)
    return event
