"""Line rates: from the settings, the environment and the command line to the Bandwidth screen on paper."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from morimon.cli.main import cli
from morimon.draw.axis import Axis
from tests.support.records import Plan, make_record


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run of two nodes; settings that name a line rate."""
    config = tmp_path / "config.toml"
    config.write_text("rdma_line_gbps = 70.0\n")
    monkeypatch.setenv("MORIMON_CONFIG", str(config))
    monkeypatch.setenv("MORIMON_RUNS_DIR", str(tmp_path / "runs"))
    plan = Plan(ranks=16, nodes=2, rounds=3, tokens=4096, hidden=7168)
    return make_record(plan).write(tmp_path / "runs" / plan.run_id)


def bandwidth(run: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["attach", run.name, "--once", "--screen", "bandwidth", *options])


def test_the_command_line_goes_over_the_environment_and_that_over_the_file(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "line rate 70" in bandwidth(run).stdout
    assert "line rate unknown: --xgmi-line-gbps tells it" in bandwidth(run).stdout
    monkeypatch.setenv("MORIMON_RDMA_LINE_GBPS", "60")
    assert "line rate 60" in bandwidth(run).stdout
    said = bandwidth(run, "--rdma-line-gbps", "50", "--xgmi-line-gbps", "450").stdout
    assert "line rate 50" in said
    assert "line rate 450" in said
    assert "unknown" not in said


@pytest.mark.parametrize("rate", ["0", "-1", "fast"])
def test_a_line_rate_that_cannot_be_is_refused(run: Path, rate: str) -> None:
    result = bandwidth(run, "--rdma-line-gbps", rate)
    assert result.exit_code == 2
    assert "--rdma-line-gbps" in result.stderr


def test_a_setting_that_cannot_be_is_refused_in_one_line(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORIMON_RDMA_LINE_GBPS", "-3")
    result = bandwidth(run)
    assert result.exit_code == 2
    assert "$MORIMON_RDMA_LINE_GBPS" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("step", "decimals"), [(50.0, 0), (2.5, 1), (2.0, 0), (0.25, 2), (0.5, 1), (25.0, 0), (0.01, 2)]
)
def test_ticks_have_the_digits_that_tell_them_apart(step: float, decimals: int) -> None:
    assert Axis(0.0, 4 * step, step).decimals == decimals
