"""The command line as a whole: one-line refusals, exit codes, a quick --help."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from morimon.cli.main import COMMANDS, cli


@pytest.mark.parametrize(
    ("arguments", "mentions"),
    [
        (["run", "--nproc", "x"], "'x' is not a valid integer"),
        (["run", "--nproc", "0"], "--nproc 0"),
        (["nothing"], "No such command 'nothing'"),
        (["replay"], "Name one run"),
        (["tokens", "--num-tokens", "many"], "'many' is not a valid integer"),
        (["--wrong"], "No such option"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_code_2(arguments: list[str], mentions: str) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert mentions in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_without_a_command_the_help_is_shown() -> None:
    result = CliRunner().invoke(cli, [])
    assert result.exit_code == 2
    for name in COMMANDS:
        assert name in result.output


def test_every_command_can_be_imported_and_has_its_help() -> None:
    for name in COMMANDS:
        result = CliRunner().invoke(cli, [name, "--help"])
        assert result.exit_code == 0, result.output
        assert result.output.startswith("Usage:")


@pytest.mark.parametrize(
    "arguments", [["run", "--headless", "--", "true"], ["watch", "--once"], ["replay", "a/b"]]
)
def test_a_folder_that_is_gone_is_told(tmp_path: Path, arguments: list[str]) -> None:
    gone = tmp_path / "gone"
    code = (
        f"import os; os.mkdir({str(gone)!r}); os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})\n"
        f"from morimon.cli.main import cli; cli({arguments!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "morimon: The folder that this was started in is gone; change to another one.\n"


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys; sys.argv = ['morimon', '--help']\n"
        "try:\n    from morimon.__main__ import main; main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'msgspec', 'psutil', 'textual', 'rich', 'torch', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
