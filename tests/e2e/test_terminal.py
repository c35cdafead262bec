"""The app on a real pty: it starts in every terminal, survives what terminals do, and leaves them clean."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.records import Plan, make_record
from tests.support.terminal import Terminal

pytestmark = pytest.mark.e2e

SHOW = """
import sys
from pathlib import Path
from morimon.tui.app import show
from morimon.tui.options import Options
sys.exit(show(Path(sys.argv[1]), "attach", Options(mouse="no-mouse" not in sys.argv)))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_record(Plan(rounds=20, ends=False)).write(tmp_path_factory.mktemp("run"))


def viewer(folder: Path, *more: str, size: tuple[int, int] = (120, 40), **environ: str) -> Terminal:
    return Terminal([sys.executable, "-c", SHOW, folder, *more], size, environ)


def test_quitting_leaves_the_terminal_clean(folder: Path) -> None:
    with viewer(folder) as terminal:
        terminal.wait_for("rank 3 is late")
        terminal.send("q")
        terminal.wait_for("Leave it?")
        terminal.send("d")
        assert terminal.wait_for_end() == 0
        terminal.assert_clean()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_detaches_and_leaves_the_terminal_clean(folder: Path, number: signal.Signals) -> None:
    with viewer(folder) as terminal:
        terminal.wait_for("rank 3 is late")
        terminal.process.send_signal(number)
        assert terminal.wait_for_end() == 128 + number
        terminal.assert_clean()


def test_a_terminal_that_goes_away_ends_the_viewer(folder: Path) -> None:
    with viewer(folder) as terminal:
        terminal.wait_for("rank 3 is late")
        terminal.hang_up()
        terminal.process.wait(timeout=20)


@pytest.mark.parametrize("mouse", [(), ("no-mouse",)])
def test_old_mouse_reports_past_column_95_are_survived(folder: Path, mouse: tuple[str, ...]) -> None:
    with viewer(folder, *mouse) as terminal:
        terminal.wait_for("rank 3 is late")
        terminal.send(b"\x1b[M " + bytes([32 + 100, 32 + 10]) + b"\x1b[M#" + bytes([32 + 110, 255]))
        terminal.send("5")
        terminal.wait_for("CPU %")
        terminal.send("1")
        terminal.wait_for("rank 3 is late")
        terminal.process.terminate()
        terminal.wait_for_end()
        terminal.assert_clean()


def test_a_storm_of_sizes(folder: Path) -> None:
    with viewer(folder) as terminal:
        terminal.wait_for("rank 3 is late")
        for columns, lines in ((100, 30), (80, 24), (60, 15), (40, 10), (20, 5), (1, 1), (200, 50), (20, 5)):
            terminal.resize(columns, lines)
            terminal.read(0.01)
        terminal.wait_for("morimon needs")
        terminal.resize(120, 40)
        terminal.wait_for("rank 3 is late")
        terminal.wait_for("? help")
        terminal.process.terminate()
        terminal.wait_for_end()
        terminal.assert_clean()


def test_putting_aside_and_coming_back(folder: Path) -> None:
    with viewer(folder) as terminal:
        terminal.wait_for("rank 3 is late")
        terminal.send("\x1a")
        pid, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
        assert pid == terminal.process.pid
        assert os.WIFSTOPPED(status)
        terminal.read(0.1)
        terminal.assert_clean()
        terminal.raw.clear()
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_for_bytes(b"\x1b[?1049h")
        terminal.wait_for_bytes(b"rank 3 is late")
        terminal.send("5")
        terminal.wait_for("CPU %")


@pytest.mark.parametrize(
    ("environ", "mark"),
    [
        ({"TERM": "linux", "LC_ALL": "C"}, "< late"),
        ({"TERM": "screen", "LC_ALL": "C"}, "< late"),
        ({"TERM": "vt100", "LC_ALL": "POSIX"}, "< late"),
        ({"TERM": "dumb"}, "< late"),
        ({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}, "◀ late"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "◀ late"),
    ],
)
def test_every_terminal_gets_what_it_can_show(folder: Path, environ: dict[str, str], mark: str) -> None:
    with viewer(folder, size=(80, 24), **environ) as terminal:
        text = terminal.wait_for(mark)
        assert text.isascii() == (mark == "< late")
        terminal.send("q")
        terminal.wait_for("Leave it?")
        terminal.send("d")
        assert terminal.wait_for_end() == 0
        terminal.assert_clean()
        if "NO_COLOR" in environ:
            assert b"38;" not in bytes(terminal.raw).replace(b"\x1b[38;1H", b"")


def test_a_failure_of_our_own_shows_its_traceback_on_a_clean_terminal(folder: Path) -> None:
    broken = SHOW.replace(
        "sys.exit(show", "import morimon.tui.screens.ranks as r\nr.build = lambda *a: 1 / 0\nsys.exit(show"
    )
    with Terminal([sys.executable, "-c", broken, folder]) as terminal:
        assert terminal.wait_for_end() == 1
        assert "ZeroDivisionError" in terminal.text()
        terminal.assert_clean()
