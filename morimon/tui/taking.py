"""Taking things out of the screen: to the clipboard, or to files in the folder for exports."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from textual.app import App

from morimon.draw.sheet import SUFFIX, Form
from morimon.tui.options import Options
from morimon.tui.owner import Severity
from morimon.tui.picture import straightened
from morimon.tui.screens.base import DataScreen
from morimon.tui.screens.dialogs import Choice, ChoiceDialog
from morimon.tui.themes import Palette

CLIPBOARD_BYTES = 74_994
"""Largest text for OSC 52: with base64 and its frame it stays below 100 000 bytes, the limit of xterm and tmux."""
TMUX_S = 1.0
_FORMS: Mapping[str, Form] = {"csv": "csv", "json": "json", "markdown": "markdown"}


def osc52(text: str, *, in_tmux: bool) -> str | None:
    """The sequence that puts the text on the clipboard of the terminal; None where it is too large for that.

    Inside tmux the plain sequence is understood by tmux itself (`set -g set-clipboard on`), and one wrapped for the
    outer terminal follows for those who allow passthrough.
    """
    raw = text.encode()
    if len(raw) > CLIPBOARD_BYTES:
        return None
    plain = f"\x1b]52;c;{base64.b64encode(raw).decode()}\x07"
    return plain + f"\x1bPtmux;{plain.replace(chr(27), chr(27) * 2)}\x1b\\" if in_tmux else plain


def into_tmux(text: str) -> bool:
    """Give the text to tmux, which passes it on to its own terminal where that may be; False where tmux does not take it.

    Unlike a sequence among the output this works with tmux's default of `set-clipboard external`.
    """
    try:
        done = subprocess.run(
            ["tmux", "load-buffer", "-w", "-"],
            input=text.encode(),
            timeout=TMUX_S,
            capture_output=True,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def write_new(folder: Path, stem: str, suffix: str, text: str) -> Path:
    """Write a file of a name that is not taken: `stem-20261201-121530.csv`, then with -2, -3, … Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    for attempt in range(1, 100):
        more = f"-{attempt}" if attempt > 1 else ""
        path = folder / f"{stem}-{stamp}{more}{suffix}"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        return path
    raise FileExistsError(f"{folder} holds a hundred files {stem}-{stamp}… already")


class TakingActions(App[int], inherit_bindings=False):
    """Copy, export, screenshot."""

    options: Options
    palette: Palette

    def say(self, text: str, severity: Severity = "information") -> None:
        """Tell the person something, in a corner, for a few seconds."""
        self.notify(text, severity=severity, markup=False, timeout=4 if severity == "information" else 8)

    def action_copy(self) -> None:
        """Copy the selection, or the row under the cursor."""
        if not isinstance(self.screen, DataScreen):
            return
        page, view = self.screen.view.page, self.screen.view
        text = self.screen.get_selected_text()
        if not text and page.cursor is not None:
            text = view.row_text(page.cursor)
        if text:
            self.copy(text)
        if self.screen.selections:
            self.screen.action_back()

    def copy(self, text: str) -> None:
        """Put a text on the clipboard, or into a file where it is too large for that."""
        in_tmux = "TMUX" in os.environ
        if in_tmux and into_tmux(text):
            self.say(f"copied {len(text)} characters into tmux's buffer, and on to its terminal's clipboard")
            return
        sequence = osc52(text, in_tmux=in_tmux)
        if sequence is None:
            self.write_file("copy", ".txt", text, "too large for the clipboard: ")
        elif self._driver is not None:
            self._driver.write(sequence)
            hint = "; tmux passes it on after `set -g set-clipboard on`" if in_tmux else ""
            self.say(f"sent {len(text)} characters to the terminal's clipboard{hint}")

    def action_export(self) -> None:
        """Ask for the form, then write the visible table."""
        if isinstance(self.screen, DataScreen) and self.screen.sheet() is not None:
            choices = [
                Choice("c", "CSV", "csv"),
                Choice("j", "JSON", "json"),
                Choice("m", "Markdown", "markdown"),
            ]
            self.push_screen(ChoiceDialog("Write the visible table as", choices, self.palette), self._export)

    def _export(self, answer: str | None) -> None:
        form = _FORMS.get(answer or "")
        if (
            form is not None
            and isinstance(self.screen, DataScreen)
            and (sheet := self.screen.sheet()) is not None
        ):
            self.write_file(f"morimon-{self.screen.NAME}", SUFFIX[form], sheet.text(form))

    def action_capture(self) -> None:
        """Write the screen as SVG and as text."""
        if isinstance(self.screen, DataScreen):
            picture = straightened(self.export_screenshot(title="morimon"))
            self.write_file(f"morimon-{self.screen.NAME}", ".svg", picture)
            self.write_file(f"morimon-{self.screen.NAME}", ".txt", self.screen.view.text() + "\n")

    def write_file(self, stem: str, suffix: str, text: str, why: str = "") -> None:
        """Write a new file into the folder for exports, and say where it is."""
        try:
            path = write_new(self.options.export_dir or Path.cwd(), stem, suffix, text)
        except OSError as error:
            self.say(f"could not write: {error}", "error")
        else:
            self.say(f"{why}wrote {path}")
