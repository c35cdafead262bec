"""`morimon trace FILE` on a 4 MB v1 trace against `python -c 'import numpy'`, whole processes, in turns.

    python benchmarks/bench_trace_cli.py [--pairs 15]

Prints medians of wall and CPU time and their ratios; the budget is 2.5 × of the wall time. Bytecode is cached, as in an
installation: one run of each is not counted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUDGET = 2.5
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
SYNTH = Path(__file__).parents[1] / "tests" / "support" / "synth_trace.py"


def seconds(command: list[str]) -> tuple[float, float]:
    """Wall and CPU time of one process."""
    before = os.times()
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    wall = time.perf_counter() - start
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--pairs", type=int, default=15)
    pairs = options.parse_args().pairs
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace_rank_0_1201_093000.json"
        subprocess.run([sys.executable, SYNTH, "--warps", "768", path], check=True, stdout=subprocess.DEVNULL)
        numpy = [sys.executable, "-c", "import numpy"]
        commands = {
            "import numpy": numpy,
            "morimon trace (text)": [sys.executable, "-m", "morimon", "trace", str(path)],
            "morimon trace --json": [sys.executable, "-m", "morimon", "trace", "--json", str(path)],
        }
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for command in commands.values():
            seconds(command)
        for _ in range(pairs):
            for name, command in commands.items():
                taken[name].append(seconds(command))
        size_mb = path.stat().st_size / 1e6
    wall, cpu = (
        {name: statistics.median(run[kind] for run in runs) for name, runs in taken.items()}
        for kind in (0, 1)
    )
    print(f"{size_mb:.1f} MB v1 trace, medians of {pairs} runs in turns")
    print(f"{'':22} {'wall ms':>8} {'× numpy':>8} {'CPU ms':>8} {'× numpy':>8}")
    base_wall, base_cpu = wall["import numpy"], cpu["import numpy"]
    for name in commands:
        print(
            f"{name:22} {wall[name] * 1e3:8.0f} {wall[name] / base_wall:8.2f}"
            f" {cpu[name] * 1e3:8.0f} {cpu[name] / base_cpu:8.2f}"
        )
    ratio = wall["morimon trace (text)"] / base_wall
    print(f"budget {BUDGET} × wall: {'kept' if ratio <= BUDGET else 'MISSED'}")


if __name__ == "__main__":
    main()
