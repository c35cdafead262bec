"""Taking things out of the screen: to the clipboard, or to files beside where morimon was started."""

from __future__ import annotations

import base64
import os
from datetime import datetime
from pathlib import Path

CLIPBOARD_BYTES = 74_994
"""Largest text for OSC 52: with base64 and its frame it stays below 100 000 bytes, the limit of xterm and tmux."""


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
