"""What `morimon run` costs: the job's wall time with and without it, CPU of hub and keeper, first figures, start-up.

    python benchmarks/bench_run.py [--pairs 7] [--nproc 8] [--rounds 20]

Each pair runs, one after the other, the built-in job under `morimon run --json`, the same torchrun command by itself,
and an empty gloo script with as many ranks; every other pair runs them the other way round. Of n pairs' ratios the
median is printed with their range, which holds the true median with a probability of 1 − 2 · 0.5ⁿ.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from morimon.feeds.record import RecordReader
from morimon.model.events import HubStarted
from morimon.runs.folder import RunFolder

EMPTY = """
import torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
dist.destroy_process_group()
"""
SAMPLE_S = 1.0


@dataclass
class CpuUse:
    """CPU seconds of a run's processes, read from outside once a second until they end."""

    runs: Path
    hub: dict[int, float] = field(default_factory=dict)
    keeper: dict[int, float] = field(default_factory=dict)
    job: dict[int, float] = field(default_factory=dict)

    def follow(self, over: threading.Event) -> None:
        """Until `over` is set."""
        while not over.wait(SAMPLE_S):
            for path in self.runs.iterdir():
                self._look(RunFolder(path))

    @property
    def share(self) -> float:
        """CPU seconds of hub and keeper over those of the job."""
        return (sum(self.hub.values()) + sum(self.keeper.values())) / sum(self.job.values())

    def _look(self, folder: RunFolder) -> None:
        owners = folder.owners()
        if owners is None:
            return
        reader = RecordReader(folder.events_path)
        hubs = [event.pid for event in reader.read() if isinstance(event, HubStarted)]
        reader.close()
        with suppress(psutil.NoSuchProcess):  # the run has just ended
            keeper = psutil.Process(owners.keeper.pid)
            note_seconds(self.hub, map(psutil.Process, hubs))
            note_seconds(self.keeper, [keeper])
            note_seconds(self.job, keeper.children(recursive=True))


def note_seconds(used: dict[int, float], processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            used[process.pid] = times.user + times.system


def wall_s(command: Sequence[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def watched(command: Sequence[str]) -> tuple[float, float, CpuUse]:
    """Wall time of `morimon run --json`, the time until it prints the first figures, and what its processes used."""
    with tempfile.TemporaryDirectory(prefix="morimon-bench-", ignore_cleanup_errors=True) as runs:
        use, over = CpuUse(Path(runs)), threading.Event()
        follower = threading.Thread(target=use.follow, args=(over,))
        follower.start()
        first_s = None
        begin = time.perf_counter()
        with subprocess.Popen(
            command,
            env={**os.environ, "MORIMON_RUNS_DIR": runs},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                printed = json.loads(line)
                if first_s is None and printed["type"] == "progress" and printed["dispatch_us"] is not None:
                    first_s = time.perf_counter() - begin
        total_s = time.perf_counter() - begin
        over.set()
        follower.join()
    if process.returncode or first_s is None:
        sys.exit(f"{shlex.join(command)} ended with {process.returncode}")
    return total_s, first_s, use


def told(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.3f}  ({min(ratios):.3f} – {max(ratios):.3f})"


def startup(pairs: int) -> list[float]:
    """`morimon --help` over `python -c pass`, in turns."""
    python = sys.executable
    return [
        wall_s([python, "-m", "morimon", "--help"]) / wall_s([python, "-c", "pass"]) for _ in range(pairs * 3)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--nproc", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()

    job = ["--rounds", str(options.rounds)]
    ours = [sys.executable, "-m", "morimon", "run", "--json", "--nproc", str(options.nproc), *job]
    walls, firsts, shares = [], [], []
    with tempfile.TemporaryDirectory(prefix="morimon-bench-") as scratch:
        empty = Path(scratch, "empty.py")
        empty.write_text(EMPTY)
        torchrun = [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *(f"--nproc-per-node={options.nproc}", f"--log-dir={scratch}", "--redirects=3"),
        ]
        alone = [*torchrun, "-m", "morimon.bench", *job]
        for pair in range(options.pairs):
            if pair % 2:
                empty_s, alone_s = wall_s([*torchrun, str(empty)]), wall_s(alone)
                with_s, first_s, use = watched(ours)
            else:
                with_s, first_s, use = watched(ours)
                alone_s, empty_s = wall_s(alone), wall_s([*torchrun, str(empty)])
            walls.append(with_s / alone_s)
            firsts.append(first_s / empty_s)
            shares.append(use.share)
            print(
                f"pair {pair + 1}: with {with_s:.1f} s, without {alone_s:.1f} s; first figures {first_s:.1f} s, "
                f"empty script {empty_s:.1f} s; hub and keeper {100 * use.share:.2f} % of the job's CPU",
                file=sys.stderr,
            )
    chance = 100 * (1 - 2 * 0.5**options.pairs)
    print(f"{options.pairs} pairs, {options.nproc} ranks, {options.rounds} rounds, {os.cpu_count()} cores;")
    print(f"medians of ratios, with the range that holds them with {chance:.0f} %")
    rows = (
        ("job with morimon / without", told(walls), ""),
        ("first figures / empty gloo script", told(firsts), "≤ 1.3"),
        ("CPU of hub and keeper / job", told(shares), "≤ 0.02"),
        ("morimon --help / python -c pass", told(startup(options.pairs)), "≤ 6"),
    )
    for name, value, budget in rows:
        print(f"{name:36}{value:>28}   {budget}")
    print("repeat:", shlex.join([Path(sys.executable).name, *sys.argv]))


if __name__ == "__main__":
    main()
