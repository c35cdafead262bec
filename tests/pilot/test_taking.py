"""Clipboard and files."""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from morimon.tui.options import Options
from morimon.tui.taking import CLIPBOARD_BYTES, into_tmux, osc52, write_new
from tests.support.records import Plan, make_record
from tests.support.viewer import FedSource, viewer


def test_a_text_goes_to_the_clipboard_by_osc_52() -> None:
    sequence = osc52("rank 3\t+112.6 µs", in_tmux=False)
    assert sequence is not None
    assert sequence.startswith("\x1b]52;c;")
    assert sequence.endswith("\x07")
    assert base64.b64decode(sequence[7:-1]).decode() == "rank 3\t+112.6 µs"


def test_inside_tmux_the_outer_terminal_is_told_too() -> None:
    plain, both = osc52("x", in_tmux=False), osc52("x", in_tmux=True)
    assert plain is not None
    assert both is not None
    assert both == plain + "\x1bPtmux;\x1b" + plain + "\x1b\\"


@pytest.fixture
def tmux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A tmux server of its own, as it is without settings."""
    if shutil.which("tmux") is None:
        pytest.skip("there is no tmux")
    socket = tmp_path / "socket"
    server = ["tmux", "-S", str(socket), "-f", "/dev/null"]
    subprocess.run([*server, "new-session", "-d", "-s", "one", "sleep 60"], check=True)
    monkeypatch.setenv("TMUX", f"{socket},0,0")
    yield socket
    subprocess.run([*server, "kill-server"], check=True)


def test_tmux_as_it_comes_takes_the_text(tmux: Path) -> None:
    assert into_tmux("rank 3\t+112.6 µs")
    shown = subprocess.run(
        ["tmux", "-S", str(tmux), "show-buffer"], check=True, capture_output=True, text=True
    )
    assert shown.stdout == "rank 3\t+112.6 µs"


def test_a_tmux_that_is_gone_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", f"{tmp_path / 'gone'},0,0")
    assert not into_tmux("x")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not into_tmux("x")


@pytest.mark.parametrize("takes", [True, False])
async def test_only_what_was_done_is_said(takes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "/nowhere,0,0")
    monkeypatch.setattr("morimon.tui.taking.into_tmux", lambda _: takes)
    async with viewer(FedSource(make_record(Plan(rounds=2)).events)) as (app, pilot):
        await pilot.press("y")
        (notice,) = app._notifications
    assert notice.message.startswith("copied " if takes else "sent ")
    assert ("set-clipboard on" in notice.message) != takes


def test_a_text_that_is_too_large_does_not() -> None:
    at_the_limit = osc52("x" * CLIPBOARD_BYTES, in_tmux=False)
    assert at_the_limit is not None
    assert len(at_the_limit) <= 100_000
    assert osc52("x" * (CLIPBOARD_BYTES + 1), in_tmux=False) is None
    assert osc52("µ" * (CLIPBOARD_BYTES // 2 + 1), in_tmux=False) is None


async def test_it_goes_to_a_file_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    options = Options(theme="dark", refresh_hz=0.01, export_dir=tmp_path)
    async with viewer(FedSource(make_record(Plan(rounds=2)).events), options=options) as (app, pilot):
        app.copy("x" * (CLIPBOARD_BYTES + 1))
        await pilot.pause()
    (written,) = tmp_path.iterdir()
    assert written.stat().st_size == CLIPBOARD_BYTES + 1


def test_no_file_is_ever_written_over(tmp_path: Path) -> None:
    paths = {write_new(tmp_path / "new", "stem", ".txt", str(number)) for number in range(5)}
    assert len(paths) == 5
    assert sorted(path.read_text() for path in paths) == ["0", "1", "2", "3", "4"]
    with pytest.raises(OSError, match="holds a hundred files"):
        write_until_full(tmp_path / "new")


def write_until_full(folder: Path) -> None:
    for _ in range(1000):
        write_new(folder, "stem", ".txt", "")
