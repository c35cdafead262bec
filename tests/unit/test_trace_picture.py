from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from morimon.cli.trace import command
from morimon.report.trace_colours import ink_on
from morimon.report.trace_picture import target

TRACES = Path(__file__).parents[1] / "data" / "traces"
V1 = "trace_rank_0_0821_170932.json"
PNG = b"\x89PNG\r\n\x1a\n"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return Path(shutil.copy(TRACES / V1, tmp_path))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["--png", "FILE"], "trace_rank_0_0821_170932.png"),
        (["FILE", "--png"], "trace_rank_0_0821_170932.png"),
        (["--png", "gantt.png", "FILE"], "gantt.png"),
        (["--png=gantt.png", "FILE"], "gantt.png"),
    ],
)
def test_the_picture_lies_beside_the_trace_and_its_path_is_printed(
    trace: Path, arguments: list[str], name: str
) -> None:
    done = run(*(trace if argument == "FILE" else argument for argument in arguments))
    assert done.exit_code == 0, done.output
    picture = trace.parent / name
    assert picture.read_bytes().startswith(PNG)
    assert done.stdout.splitlines()[-1] == str(picture)


def test_many_iterations_take_pages(tmp_path: Path) -> None:
    path = Path(shutil.copy(TRACES / "h200_ep8_emulated.json.gz", tmp_path))
    done = run("--png", path)
    pages = [line for line in done.stdout.splitlines() if line.endswith(".png")]
    assert [Path(page).name for page in pages] == [
        "h200_ep8_emulated.png",
        "h200_ep8_emulated-2.png",
        "h200_ep8_emulated-3.png",
    ]
    assert all(Path(page).read_bytes().startswith(PNG) for page in pages)


def test_json_stays_json(trace: Path) -> None:
    done = run("--json", "--png", trace)
    assert done.stdout.startswith("[")
    assert done.stdout.endswith("]\n")
    assert str(trace.with_suffix(".png")) in done.stderr


def test_without_matplotlib_a_sentence_tells_how_to_get_it(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = run("--png", trace)
    assert done.exit_code == 1
    assert "pip install 'morimon[plot]'" in done.stderr
    assert "iteration 1 " in done.stdout, "the rest is shown all the same"


def test_one_name_for_two_traces_of_a_folder_is_refused(trace: Path) -> None:
    other = Path(shutil.copy(trace, trace.parent / "trace_rank_1_0821_170932.json"))
    done = run("--png=one.png", trace, other)
    assert done.exit_code == 2
    assert "one.png" in done.stderr
    assert not (trace.parent / "one.png").exists()


def test_a_folder_that_cannot_be_written_is_a_sentence(trace: Path) -> None:
    done = run("--png=missing/one.png", trace)
    assert done.exit_code == 1
    assert "missing/one.png" in done.stderr


@pytest.mark.parametrize(
    ("trace_name", "name", "place"),
    [
        ("/a/t.json", "", "/a/t.png"),
        ("/a/t.json.gz", "", "/a/t.png"),
        ("/a/t.pt.trace.json", "", "/a/t.png"),
        ("/a/t", "", "/a/t.png"),
        ("/a/t.json", "sub/x.png", "/a/sub/x.png"),
        ("/a/t.json", "/b/x.png", "/b/x.png"),
    ],
)
def test_target(trace_name: str, name: str, place: str) -> None:
    assert target(trace_name, name) == Path(place)


def test_ink_is_read_on_its_ground() -> None:
    assert (ink_on("#ffffff"), ink_on("#000000")) == ("black", "white")
