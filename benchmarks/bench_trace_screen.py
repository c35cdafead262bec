"""How quickly the Trace screen answers keys, on a real pty: `python -m benchmarks.bench_trace_screen [TRACE]`.

A small trace is shown; then a large one (by default a synthetic one of 90 MB, 607 000 events) is opened under five names
one after the other, and keys are pressed while the worker process reads it, while its figures are added up, and once it
is there. A key has been answered
when what it brings is written to the terminal in full. Figures move with the machine.
"""

from __future__ import annotations

import os
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.synth_trace import Grid, write
from tests.support.terminal import Terminal

SIZE = (120, 40)
BUDGET_S = 0.1
PAUSE_S = 0.06
SMALL, LARGE = "trace_rank_0_1201_093000.json", "trace_intranode_rank{}_1201_080000.json"
RANKS = range(1, 6)
FILES, SLOTS = b"written", b"this iteration"
"""Written when the file list, and when the table of slots, comes into sight."""


def pressed(terminal: Terminal, key: str, mark: bytes) -> float:
    """Seconds from a key to the last byte of the paint that holds `mark`."""
    terminal.read()
    terminal.raw.clear()
    begin = time.monotonic()
    terminal.send(key)
    while mark not in terminal.raw:
        if time.monotonic() - begin > 30:
            raise TimeoutError(f"{key!r} brought no {mark!r}:\n{terminal.text()}")
        terminal.read(0.001, draws=False)
    while terminal.read(0.002, draws=False):
        pass
    return time.monotonic() - begin - 0.002


def toggled(terminal: Terminal, count: int, until: str = "") -> list[float]:
    """Latencies of opening and closing the file list, `count` times or until a text is in sight."""
    found: list[float] = []
    while len(found) < count and not (until and until in terminal.text()):
        found.append(pressed(terminal, "f", FILES))
        terminal.read(PAUSE_S)
        found.append(pressed(terminal, "f", SLOTS))
        terminal.read(PAUSE_S)
    return found


def moved(terminal: Terminal, keys: Sequence[str]) -> list[float]:
    """Latencies of keys that repaint lanes or warps: to the last byte of what follows."""
    found = []
    for key in keys:
        terminal.read()
        begin = time.monotonic()
        terminal.send(key)
        while not terminal.read(0.001, draws=False):
            if time.monotonic() - begin > 5:
                raise TimeoutError(f"{key!r} painted nothing:\n{terminal.text()}")
        while terminal.read(0.004, draws=False):
            pass
        found.append(time.monotonic() - begin - 0.004)
        terminal.read(PAUSE_S)
    return found


def report(what: str, seconds: Sequence[float]) -> None:
    ordered = sorted(seconds)
    p95 = ordered[min(int(len(ordered) * 0.95), len(ordered) - 1)]
    verdict = "ok" if p95 <= BUDGET_S else "OVER"
    print(
        f"{what:<52} {len(ordered):>4} keys   median {statistics.median(ordered) * 1000:6.1f} ms   "
        f"p95 {p95 * 1000:6.1f} ms   longest {ordered[-1] * 1000:6.1f} ms   budget {BUDGET_S * 1000:.0f} ms  {verdict}"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, large = Path(name) / "watched", Path(name) / "large.json"
        folder.mkdir()
        write(str(folder / SMALL), "v1", Grid(768, 80), 3, 0)
        if len(sys.argv) > 1:
            large = Path(sys.argv[1]).resolve()
        else:
            write(str(large), "intranode", Grid(1280, 133), 3, 0)
            os.utime(large, (1, 1))
        for rank in RANKS:
            (folder / LARGE.format(rank)).symlink_to(large)
        command: list[str | Path] = [sys.executable, "-m", "morimon", "watch", folder, "--settle", "1"]
        with Terminal(command, SIZE, {"COLORTERM": "truecolor"}) as terminal:
            terminal.wait_for("rank 0")
            report("file list, small trace shown", toggled(terminal, 30))
            pressed(terminal, "f", FILES)
            waits: list[float] = []
            shown_s = []
            for rank in RANKS:
                terminal.send("r" if rank > 1 else "Gkkkk\r")
                terminal.wait_for("loading")
                begin = time.monotonic()
                waits += toggled(terminal, 1000, f"rank {rank} ·")
                terminal.wait_for(f"rank {rank} ·")
                shown_s.append(time.monotonic() - begin)
            report(f"file list while {large.stat().st_size / 1e6:.0f} MB load", waits)
            print(f"{'':<52} shown {statistics.median(shown_s):.1f} s after it was chosen")
            report("zoom and pan in its lanes", moved(terminal, "++lhlhll--++hhll--"))
            terminal.send("0jjjjj\r")
            terminal.wait_for("the last to leave it on top")
            report("a row of its warps down", moved(terminal, "jkjjjkjjjjkkjjjj"))
            report("zoom and pan of its warps", moved(terminal, "+++lhlhll-+-+hhll-+"))
            terminal.send("q")
            terminal.wait_for_end()
    print("repeat:", shlex.join([Path(sys.executable).name, *sys.argv]))


if __name__ == "__main__":
    main()
