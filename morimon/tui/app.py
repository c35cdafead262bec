"""The way into the terminal app: `show`. Textual is imported here and not before its environment is set."""

from __future__ import annotations

import os
from pathlib import Path

from morimon.draw.glyphs import ASCII, UNICODE, glyphs_for
from morimon.tui.keys import check_keymap
from morimon.tui.options import Mode, Options
from morimon.tui.terminal import prepare, tolerate_foreign_bytes

RECORD = "events.jsonl"


def show(run: Path, mode: Mode = "live", options: Options | None = None) -> int:
    """Show a run folder (or its record file), or watch a folder of traces, until the person leaves; returns the exit code.

    0: left by the person; 128 + n: ended by signal n or because the terminal went away; 1: the record could not be
    read, or morimon itself failed (its traceback is then on stderr). Raises KeymapError and OSError before the screen
    is touched.
    """
    options = options or Options()
    check_keymap(options.keys)
    prepare(os.environ, options.color)
    glyphs = {None: glyphs_for(os.environ), True: ASCII, False: UNICODE}[options.ascii]
    from morimon.tui.shell import MorimonApp
    from morimon.tui.source import LiveSource, NoRun, ReplaySource, Source

    source: Source
    if mode == "watch":
        source, folder = NoRun(), run
    else:
        record = run / RECORD if run.is_dir() else run
        source, folder = ReplaySource(record) if mode == "replay" else LiveSource(record), record.parent
    tolerate_foreign_bytes()
    app = MorimonApp(source, folder, mode, options, glyphs)
    result = app.run(mouse=options.mouse)
    return result if result is not None else app.return_code or 0
