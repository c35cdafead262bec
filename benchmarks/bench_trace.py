"""Figures of the trace analysis: python benchmarks/bench_trace.py [--large] [--runs 5]

Every run is a process of its own, ours and the yardstick by turns, so that a busy machine slows both; the table gives
medians of processor seconds (user + system) and the ratio of neighbouring runs. Peak memory is the process' own.
Bytecode is cached, as in an installation: one run of each is not counted.
--large makes a trace of about 1 GB (7 M events) on the fly and reads it through the loader's worker.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
SYNTH = ROOT / "tests" / "support" / "synth_trace.py"
ANALYSE = "import sys; from morimon.trace.load import load; from morimon.trace.summary import summary; "
ANALYSE += "import msgspec; sys.stdout.buffer.write(msgspec.json.encode(summary(load(sys.argv[1]))))"
JSON = "import json, sys; json.load(open(sys.argv[1]))"


class Run:
    """What one process took."""

    def __init__(self, *command: str) -> None:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        self.wall_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{command[:2]} failed with exit code {process.returncode}")
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.peak_mb = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def make(path: Path, *options: str) -> Path:
    """A synthetic trace."""
    subprocess.run([sys.executable, SYNTH, *options, path], check=True, stdout=subprocess.DEVNULL)
    return path


def side_by_side(
    runs: int, ours: Callable[[], Run], yardstick: Callable[[], Run]
) -> tuple[list[Run], list[Run]]:
    """Both by turns, after one that warms the caches."""
    ours(), yardstick()
    pairs = [(ours(), yardstick()) for _ in range(runs)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def row(what: str, ours: list[Run], others: list[Run], less: float, budget: float, size: int) -> None:
    """One line of the table; `less`: processor seconds of an empty process, to be taken off both (0: whole process)."""
    ratio = statistics.median((a.cpu_s - less) / (b.cpu_s - less) for a, b in zip(ours, others, strict=True))
    mine, theirs = (statistics.median(r.cpu_s for r in runs) for runs in (ours, others))
    peak = max(r.peak_mb for r in ours)
    mark = "" if ratio <= budget else "  ABOVE"
    print(
        f"{what:<44}{mine:>8.3f}{theirs:>10.3f}{ratio:>8.2f}{budget:>8.2f}{peak:>9.0f}{peak / size * 1e6:>8.1f}{mark}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--large", action="store_true", help="a trace of about 1 GB as well")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        big = make(
            folder / "trace_intranode_rank0_0821_170932.json", "--kernel", "intranode", "--warps", "1280"
        )
        small = make(folder / "trace_rank_0_0821_170932.json", "--kernel", "v1", "--warps", "768")
        empty = statistics.median(Run("-c", "pass").cpu_s for _ in range(options.runs))
        print(f"{'':<44}{'ours s':>8}{'other s':>10}{'ratio':>8}{'budget':>8}{'peak MB':>9}{'÷ file':>8}")
        numpy = statistics.median(Run("-c", "import numpy, msgspec").cpu_s for _ in range(options.runs))
        a, b = side_by_side(
            options.runs, lambda: Run("-c", ANALYSE, str(big)), lambda: Run("-c", JSON, str(big))
        )
        row(
            f"analysis of {big.stat().st_size / 1e6:.0f} MB vs json.load",
            a,
            b,
            empty,
            0.75,
            big.stat().st_size,
        )
        print(f"{'  (of which starting python, numpy, msgspec)':<44}{numpy:>8.3f}")
        a, b = side_by_side(
            options.runs,
            lambda: Run("-m", "morimon", "trace", str(small)),
            lambda: Run("-c", "import numpy"),
        )
        row(
            f"morimon trace on {small.stat().st_size / 1e6:.0f} MB vs import numpy",
            a,
            b,
            0,
            2.5,
            small.stat().st_size,
        )
        if options.large:
            large(folder)
    print("repeat:", shlex.join([Path(sys.executable).name, *sys.argv]))


def large(folder: Path) -> None:
    """A long run's trace through the worker."""
    path = folder / "trace_rank_1_0821_170932.json"
    # made in a process of its own: a child's peak memory counts what its parent held when it was started
    maker = multiprocessing.get_context("spawn").Process(target=repeated, args=(path,))
    maker.start()
    maker.join()
    size = path.stat().st_size
    run = Run("-m", "morimon.trace", str(path), str(folder / "out"))
    out = sum(f.stat().st_size for f in (folder / "out").iterdir())
    print(
        f"worker on {size / 1e9:.2f} GB: {run.wall_s:.1f} s wall, {run.cpu_s:.1f} s processor, "
        f"peak {run.peak_mb:.0f} MB ({run.peak_mb * 1e6 / size:.2f} × the file), hands over {out / 1e6:.0f} MB"
    )


def repeated(path: Path) -> None:
    """Write a trace of 7.6 M events: four times the same iterations, each time later."""
    part = make(path.with_name("part.json"), "--kernel", "intranode", "--warps", "4000", "--iterations", "3")
    text = part.read_text()
    part.unlink()
    head, tail = text.index("[\n") + 2, text.rindex("\n  ]")
    body = text[head:tail].split("\n")
    with path.open("w") as file:
        file.write(text[:head])
        for i in range(4):
            file.write(",\n" if i else "")
            later = (
                f'      "ts": {round(float(line[12:-1]) + 100_000 * i, 2)},'
                if line.startswith('      "ts"')
                else line
                for line in body
            )
            file.write("\n".join(later))
        file.write(text[tail:])


if __name__ == "__main__":
    main()
