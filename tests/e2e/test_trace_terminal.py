"""`morimon watch DIR` on a real terminal: the screen comes up on what is there, and leaves no trace of itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.terminal import Terminal
from tests.support.traces import synth

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("option", ["--unicode", "--ascii"])
def test_the_screen_opens_on_a_folder_and_the_terminal_is_clean_afterwards(
    tmp_path: Path, option: str
) -> None:
    synth(tmp_path, "v1")
    with Terminal([sys.executable, "-m", "morimon", "watch", tmp_path, option]) as terminal:
        text = terminal.wait_for("combine_inter_node")
        assert ("█" in text) == (option == "--unicode")
        terminal.send("G\r")
        terminal.wait_for("the last to leave it on top")
        terminal.send("q")
        assert terminal.wait_for_end() == 0
        terminal.assert_clean()


def test_a_folder_that_is_not_there_is_refused_before_the_screen_opens(tmp_path: Path) -> None:
    with Terminal([sys.executable, "-m", "morimon", "watch", tmp_path / "gone"]) as terminal:
        assert terminal.wait_for_end() == 2
        assert "gone" in terminal.text()
        assert b"1049h" not in terminal.raw
