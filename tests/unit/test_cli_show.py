"""run, attach, replay and runs on the command line: what is refused, and how; lists; pruning; replay."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from morimon.cli.headless import Refused, open_screens
from morimon.cli.main import cli
from morimon.cli.run import launch_spec
from morimon.hub.foreign import ForeignJob
from morimon.model.events import LogLines
from morimon.runs.command import short_command
from morimon.runs.folder import Owners, RunFolder
from morimon.runs.identity import ProcessIdentity
from morimon.runs.lock import HubLock
from tests.support.records import Plan, make_record


@pytest.fixture(autouse=True)
def runs_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "runs"
    monkeypatch.setenv("MORIMON_RUNS_DIR", str(path))
    return path


def call(*args: str) -> Result:
    return CliRunner().invoke(cli, args)


def record(runs_dir: Path, run_id: str, plan: Plan | None = None) -> Path:
    return make_record(plan or Plan(rounds=5, run_id=run_id)).write(runs_dir / run_id)


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["run", "--nproc", "0"], "--nproc 0"),
        (["run", "--nproc", "-3", "--", "x.py"], "--nproc -3"),
        (["run", "--num-experts", "30"], "30 experts"),
        (["run", "--num-experts-per-token", "300"], "300"),
        (["run", "--backend", "smoke-signals"], "smoke-signals"),
        (["run", "--routing", "tarot"], "tarot"),
        (["run", "--rounds", "many"], "many"),
        (["run", "--no-such-option"], "--no-such-option"),
        (["run", "--python", "python3"], "--python"),
        (["run", "--"], "after --"),
        (["run", "--", "no-such-script.py"], "no-such-script.py"),
        (["run", "--", "no-such-program", "-x"], "no-such-program"),
        (["run", "--log-dir", "/tmp", "--python", sys.executable, "--", __file__], "--log-dir"),
        (["attach", "beef"], "beef"),
        (["attach", "4194305"], "4194305"),
        (["attach", "9" * 30], "9" * 30),
        (["replay", "beef"], "beef"),
        (["replay", "nothing.jsonl"], "nothing.jsonl"),
        (["replay", "/proc/self/mem"], "/proc/self/mem"),
        (["replay", ".."], ".."),
        (["replay", __file__], "no record"),
        (["replay", "/dev/null"], "/dev/null"),
        (["runs", "--keep", "3"], "--prune"),
        (["runs", "--prune", "--older-than", "soon"], "soon"),
        (["runs", "--prune", "--keep", "-1"], "-1"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(args: list[str], word: str) -> None:
    result = call(*args)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("morimon: ")
    assert word in result.stderr


def test_nothing_is_left_of_a_refused_run(runs_dir: Path) -> None:
    call("run", "--", "no-such-script.py")
    assert not runs_dir.exists() or not list(runs_dir.iterdir())


def test_what_stands_after_the_dashes_decides_what_starts() -> None:
    builtin = launch_spec(None, None, None, ("--rounds", "5"))
    assert (builtin.kind, builtin.nproc, builtin.argv) == ("builtin", 8, ("--rounds", "5"))
    script = launch_spec(("train.py", "--nproc", "3"), 4, "py", ("--nnodes", "2"))
    assert (script.kind, script.nproc, script.python) == ("script", 4, "py")
    assert (script.argv, script.torchrun_options) == (("train.py", "--nproc", "3"), ("--nnodes", "2"))
    whole = launch_spec(("torchrun", "x.py"), None, None, ())
    assert (whole.kind, whole.nproc, whole.argv) == ("command", None, ("torchrun", "x.py"))
    assert launch_spec(("-m", "train"), None, None, ()).nproc == 1
    with pytest.raises(Refused):
        launch_spec((), None, None, ())


def test_help_lists_the_jobs_own_options() -> None:
    result = call("run", "--help")
    assert result.exit_code == 0
    for option in ("--nproc", "--headless", "--json", "--python", "--routing", "--slow-rank"):
        assert option in result.stdout


def test_replay_by_id_prefix_folder_and_file(runs_dir: Path, tmp_path: Path) -> None:
    folder = record(runs_dir, "4f2a")
    loose = tmp_path / "kept.record"
    loose.write_bytes((folder / "events.jsonl").read_bytes())
    outputs = {
        call("replay", name, "--json").stdout
        for name in ("4f2a", "4f", str(folder), str(folder / "events.jsonl"), str(loose))
    }
    assert len(outputs) == 1
    assert json.loads(outputs.pop().splitlines()[-1])["ok"] is True
    text = call("replay", "4f2a")
    assert text.exit_code == 0
    assert "finished after" in text.stdout


def test_replay_of_a_failed_run_fails(runs_dir: Path) -> None:
    record(runs_dir, "dead", Plan(killed=(1, 3), run_id="dead"))
    result = call("replay", "dead")
    assert result.exit_code == 1
    assert "rank 1 failed first: killed by SIGKILL" in result.stdout


def test_a_run_that_nobody_saw_end_is_lost(runs_dir: Path) -> None:
    record(runs_dir, "gone", Plan(ends=False, host=socket.gethostname(), run_id="gone"))
    result = call("replay", "gone", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout.splitlines()[-1])["state"] == "lost"
    attached = call("attach", "gone", "--json")
    assert attached.stdout == result.stdout


def test_one_screen_on_paper(runs_dir: Path) -> None:
    record(runs_dir, "4f2a")
    result = call("attach", "4f2a", "--once", "--screen", "ranks")
    assert result.exit_code == 0
    rows = [
        line.split()[0].strip("!") or line.split()[1] for line in result.stdout.splitlines() if line.strip()
    ]
    assert [row for row in rows if row.isdecimal()][:8] == [str(r) for r in range(8)]
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("screen", "sign"),
    [("bandwidth", "GB/s"), ("traffic", "tokens"), ("system", "CPU %"), ("log", "all ranks · all levels")],
)
def test_every_screen_stands_on_paper(runs_dir: Path, screen: str, sign: str) -> None:
    record(runs_dir, "4f2a")
    result = call("attach", "4f2a", "--once", "--screen", screen)
    assert result.exit_code == 0
    assert sign in result.stdout


def test_the_log_on_paper_is_whole(runs_dir: Path) -> None:
    made = make_record(Plan(rounds=30, run_id="4f2a"))
    made.print(made.events[-1].t_ns, 5, "x" * 10_000 + " END")
    made.events.insert(-1, made.events.pop())  # before the end of the run
    made.write(runs_dir / "4f2a")
    result = call("attach", "4f2a", "--once", "--screen", "log")
    assert result.exit_code == 0
    lines = [line for line in result.stdout.splitlines() if "│" in line]
    assert len(lines) == sum(event.lines for event in made.events if isinstance(event, LogLines))
    assert lines[-1].startswith("   5 │  xxx")
    assert lines[-1].endswith("x END")
    assert "following" not in result.stdout


@pytest.mark.parametrize(
    "args", [["runs"], ["attach"], ["attach", "12"], ["attach", "ab"], ["replay", "ab"], ["runs", "--prune"]]
)
def test_a_runs_folder_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, args: list[str]) -> None:
    monkeypatch.setenv("MORIMON_RUNS_DIR", __file__)
    result = call(*args)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"morimon: The runs folder {__file__} cannot be read (Not a directory)")
    assert result.stderr.count("\n") == 1


def test_a_number_that_is_a_process_and_begins_a_run_id(runs_dir: Path, tmp_path: Path) -> None:
    me, other = os.getpid(), os.getppid()
    folder = record(runs_dir, "abcdef")
    record(runs_dir, f"{me}f")
    record(runs_dir, f"{other}f")
    identity = ProcessIdentity.of(me)
    assert identity
    (folder / "keeper.json").write_bytes(msgspec.json.encode(Owners(identity, identity)))
    lock = HubLock.take(folder / "hub.lock")
    assert lock
    taken = call("attach", str(me), "--json")
    said = f"morimon: {me} is taken for a process, of run abcdef; run {me}f is meant by more of its id.\n"
    assert taken.stderr == f"{said}morimon: attached to run abcdef; Ctrl+C leaves the job as it is.\n"
    whole = record(runs_dir, str(me))
    assert f"attached to run {me};" in call("attach", str(me), "--json").stderr, "a whole id comes first"
    shutil.rmtree(whole)
    begun = call("attach", str(other), "--json")
    assert begun.stderr == f"morimon: attached to run {other}f; Ctrl+C leaves the job as it is.\n"
    lock.release()


@pytest.mark.parametrize("name", ["replay", "attach"])
def test_a_reader_that_leaves_is_no_failure(runs_dir: Path, name: str) -> None:
    record(runs_dir, "4f2a", Plan(rounds=5, run_id="4f2a", killed=(1, 3)))
    with subprocess.Popen(
        [sys.executable, "-m", "morimon", name, "4f2a", "--json"], stdout=-1, stderr=-1
    ) as run:
        assert run.stdout
        assert run.stderr
        run.stdout.close()
        assert b"Traceback" not in run.stderr.read()
    assert run.returncode == 0


@pytest.mark.parametrize(
    ("killed", "said", "code"),
    [(None, "has finished", 0), ((1, 3), "has failed", 1)],
    ids=["finished", "failed"],
)
def test_leaving_a_run_that_is_over_says_how_to_see_it_again(
    runs_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    killed: tuple[int, int] | None,
    said: str,
    code: int,
) -> None:
    monkeypatch.setattr("morimon.tui.app.show", lambda *_: 0)
    folder = RunFolder(record(runs_dir, "4f2a", Plan(rounds=5, run_id="4f2a", killed=killed)))
    with pytest.raises(SystemExit) as left:
        open_screens(folder, "attach")
    assert left.value.code == code
    assert capsys.readouterr().err == (
        f"morimon: run 4f2a {said}; its record is in {folder.path}, `morimon replay 4f2a` shows it again.\n"
    )


def test_list_and_prune(runs_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("morimon.hub.foreign.foreign_jobs", list)
    assert "no runs" in call("runs").stderr
    for run_id in ("aa01", "aa02", "aa03"):
        record(runs_dir, run_id)
    assert "no job runs" in call("attach").stderr
    listed = [json.loads(line) for line in call("runs", "--json").stdout.splitlines()]
    assert {run["id"] for run in listed} == {"aa01", "aa02", "aa03"}
    assert {run["type"] for run in listed} == {"listed"}
    assert all(run["state"] == "finished" and run["ranks"] == 8 for run in listed)
    lines = call("runs").stdout.splitlines()
    assert lines[0].split() == ["id", "state", "started", "ranks", "size", "host", "command"]
    assert len(lines) == 4
    assert call("runs", "--prune").exit_code == 0
    assert len(list(runs_dir.iterdir())) == 3
    pruned = call("runs", "--prune", "--keep", "1")
    assert len(list(runs_dir.iterdir())) == 1
    assert "removed 2 runs" in pruned.stderr


def test_jobs_that_others_started_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    job = ForeignJob(pid=4711, command=("/bin/mpirun", "a\x1b[1mb"), cwd="/", started_unix_ns=5, ranks=16)
    monkeypatch.setattr("morimon.hub.foreign.foreign_jobs", lambda: [job])
    assert call("attach").stdout.splitlines()[1].split() == ["4711", "16", "mpirun", "ab"]
    (listed,) = (json.loads(line) for line in call("attach", "--json").stdout.splitlines())
    assert (listed["type"], listed["pid"], listed["ranks"]) == ("foreign", 4711, 16)


def test_commands_are_shown_as_people_know_them() -> None:
    options = (
        "--standalone",
        "--nproc-per-node=8",
        "--log-dir=/r/4f2a/output",
        "--redirects=3",
        "--max-restarts=1",
    )
    command = ("/opt/python3", "-m", "torch.distributed.run", *options, "train.py", "--steps", "9")
    assert short_command(command) == "torchrun --nproc-per-node=8 --max-restarts=1 train.py --steps 9"
    assert short_command(("/usr/bin/python", "-m", "torch")) == "python -m torch"
    assert short_command(()) == ""


def test_without_torch_run_says_how_to_get_it_and_replay_works(runs_dir: Path, tmp_path: Path) -> None:
    record(runs_dir, "4f2a")
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['torch'] = None\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def morimon(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "morimon", *args], env=env, capture_output=True, text=True, check=False
        )

    refused = morimon("run", "--headless")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "pip install torch" in refused.stderr
    assert morimon("replay", "4f2a").returncode == 0
    assert morimon("attach", "4f2a", "--once").returncode == 0
