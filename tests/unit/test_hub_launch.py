"""What is started for what was asked, and what is refused, in sentences."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from morimon.hub.launch import LaunchError, LaunchSpec, agent_command, infer_kind, start
from morimon.runs.folder import JobKind, RunFolder

FOLDER = RunFolder(Path("/runs/abcdef"))
TORCHRUN = ("-m", "torch.distributed.run")


def command(kind: str = "script", **fields: object) -> tuple[str, ...]:
    spec = LaunchSpec(kind=kind, **fields)  # type: ignore[arg-type] # fields of the spec, as the tests name them
    return agent_command(spec, FOLDER, os.environ)


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (["train.py", "--x"], "script"),
        (["-m", "package.module"], "script"),
        (["torchrun", "train.py"], "command"),
        (["./run.sh"], "command"),
        (["python", "train.py"], "command"),
        ([], "command"),
    ],
)
def test_a_script_is_told_from_a_command(argv: list[str], kind: str) -> None:
    assert infer_kind(argv) == kind


class TestCommandLine:
    def test_of_the_built_in_job(self) -> None:
        assert command("builtin", nproc=8, argv=("--rounds", "5")) == (
            sys.executable,
            *TORCHRUN,
            "--standalone",
            "--nproc-per-node=8",
            "--log-dir=/runs/abcdef/output",
            "--redirects=3",
            "-m",
            "morimon.bench",
            "--rounds",
            "5",
        )

    def test_of_a_script_of_one_rank_prints_on_the_terminal(self) -> None:
        made = command(nproc=1, argv=("train.py", "--lr=1"), python=sys.executable)
        assert made[3:] == (
            "--standalone",
            "--nproc-per-node=1",
            "--log-dir=/runs/abcdef/output",
            "train.py",
            "--lr=1",
        )

    def test_of_a_script_on_several_nodes_meets_where_the_user_says(self) -> None:
        options = ("--nnodes", "2", "--rdzv_endpoint=host:1234")
        made = command(nproc=2, argv=("train.py",), torchrun_options=options, python=sys.executable)
        assert "--standalone" not in made
        assert made[-4:] == (*options, "train.py")

    def test_of_a_whole_command_is_left_alone(self) -> None:
        assert command("command", argv=("mpirun", "-n", "4", "x")) == ("mpirun", "-n", "4", "x")


@pytest.mark.parametrize(("kind", "safe"), [("builtin", "1"), ("script", None), ("command", None)])
def test_what_lies_in_the_users_folder_is_no_part_of_the_built_in_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: JobKind, safe: str | None
) -> None:
    envs: list[Mapping[str, str]] = []
    monkeypatch.setattr("morimon.hub.launch.begin", lambda folder, launch, env: envs.append(env))
    nproc = None if kind == "command" else 1
    argv = () if kind == "builtin" else (__file__,) if kind == "script" else ("true",)
    spec = LaunchSpec(kind=kind, argv=argv, nproc=nproc, python=sys.executable, env={"PATH": os.defpath})
    start(spec, tmp_path)
    assert [env.get("PYTHONSAFEPATH") for env in envs] == [safe]


def test_a_full_disk_is_told_with_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: RunFolder, env: Mapping[str, str]) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("morimon.hub.launch.start_hub", full)
    with pytest.raises(LaunchError, match=r"in .* \(No space left on device\); set MORIMON_RUNS_DIR") as told:
        start(LaunchSpec(kind="command", argv=("true",)), tmp_path)
    assert str(tmp_path) in str(told.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (LaunchSpec("builtin", nproc=0), "--nproc 0"),
        (LaunchSpec("builtin", nproc=-3), "--nproc -3"),
        (LaunchSpec("script", (), nproc=1), "no script"),
        (LaunchSpec("script", ("missing.py",), nproc=1), "There is no script missing.py in"),
        (LaunchSpec("script", ("-m",), nproc=1), "-m needs"),
        (LaunchSpec("builtin", nproc=2, torchrun_options=("--log_dir=x",)), "--log-dir out"),
        (LaunchSpec("builtin", nproc=2, torchrun_options=("-r", "3")), "-r out"),
        (LaunchSpec("builtin", nproc=2, torchrun_options=("--nproc_per_node=3",)), "as --nproc"),
        (LaunchSpec("builtin", nproc=2, torchrun_options=("--tee=3",)), "twice"),
        (LaunchSpec("command", ()), "no command"),
        (LaunchSpec("command", ("no-such-program",)), "no program no-such-program"),
        (LaunchSpec("command", ("./no-such-program",)), "no program ./no-such-program"),
        (LaunchSpec("command", ("true",), nproc=2), "leave --nproc"),
        (LaunchSpec("command", ("true",), cwd=Path("/no/such")), "/no/such to start the job in"),
        (LaunchSpec("script", (__file__,), nproc=1, python="no-such-python"), "no-such-python on PATH"),
    ],
)
def test_what_cannot_be_started_is_refused_before_anything_is_made(
    tmp_path: Path, spec: LaunchSpec, says: str
) -> None:
    with pytest.raises(LaunchError, match=says.replace("(", r"\(")):
        start(spec, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_without_torch_it_says_how_to_get_it(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without site-packages
    bare.chmod(0o755)
    spec = LaunchSpec("script", (__file__,), nproc=1, python=str(bare), env={"PATH": os.environ["PATH"]})
    with pytest.raises(LaunchError, match=f"torch is not installed for {bare}.*pip install torch"):
        start(spec, tmp_path / "runs")


def test_a_runs_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "runs").touch()
    with pytest.raises(LaunchError, match=r"No run folder can be made in .*MORIMON_RUNS_DIR"):
        start(LaunchSpec("command", ("true",)), tmp_path / "runs")
