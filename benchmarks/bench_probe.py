"""256 probes at 10 samples a second into a real hub, with a reader that follows the record as a screen does.

    python benchmarks/bench_probe.py [--probes 256] [--processes 8] [--rate 10] [--seconds 20]

All probes speak at the same moments, as ranks in step do. A sample is one `done`, with the time at which the probe was
called. Its age is what has passed when the reader, five times a second, has it in its store. The hub's CPU is that of
the whole process: socket, record, output, and the CPU and memory of every process that carries probes. A call that
follows a pause runs with cold caches, as does the bare send() that is measured in its place every other turn.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import timeit
from pathlib import Path
from statistics import median

import psutil

from morimon.feeds.record import RecordReader
from morimon.hub.launch import LaunchSpec, start
from morimon.model.events import Bye, Dropped, HubStarted, PhaseDone, RunEnded
from morimon.probe import Probe
from morimon.runs.folder import RunFolder
from morimon.store.store import Store

READS_PER_SECOND = 5
LINE = b"x" * 180
"""As long as a sample's line."""
STEADY_FROM = 0.25
"""Part of the run that is left out of CPU and ages: everybody starts."""


def speak(options: argparse.Namespace) -> None:
    """One process: its share of the probes, each of which sends a sample a turn; writes what the calls cost."""
    share = options.probes // options.processes
    first = share * int(os.environ["RANK"])
    probes = [Probe(rank=rank, world_size=options.probes) for rank in range(first, first + share)]
    for probe in probes:
        probe.hello()
    print("ready", flush=True)
    begin = float(sys.stdin.readline())
    near, far = socket.socketpair()
    costs: dict[str, list[int]] = {"call": [], "first": [], "bare": []}
    for turn in range(round(options.rate * options.seconds)):
        time.sleep(max(0.0, begin + turn / options.rate - time.monotonic()))
        if turn % 2:
            started = time.perf_counter_ns()
            near.send(LINE)
            costs["bare"].append(time.perf_counter_ns() - started)
            far.recv(len(LINE))
        for number, probe in enumerate(probes):
            started = time.perf_counter_ns()
            probe.done("dispatch", turn, 1041.2, recv_tokens=26_000, rdma_tokens_algo=8166, bytes=372_736_000)
            cost = time.perf_counter_ns() - started
            costs["call"].append(cost)
            if not number and not turn % 2:
                costs["first"].append(cost)
    for probe in probes:
        probe.close()
    Path(options.costs, str(first)).write_text(json.dumps(costs))


def job(options: argparse.Namespace) -> None:
    """What the hub starts: all processes, which begin together."""
    processes = [
        subprocess.Popen(
            [sys.executable, *sys.argv],
            env={**os.environ, "RANK": str(number)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(options.processes)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    begin = time.monotonic() + 1
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(f"{begin}\n")
        process.stdin.flush()
    for process in processes:
        process.wait()


def cpu_seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def watch(folder: RunFolder, expected: int) -> dict[str, float]:
    """Follow the run to its end as a viewer does."""
    reader, store = RecordReader(folder.events_path), Store()
    ages: list[float] = []
    seen = dropped = hub = 0
    steady: tuple[float, float] | None = None
    last: tuple[float, float] = (0.0, 0.0)
    ended = False
    due = time.monotonic()
    while not ended:
        due = max(due + 1 / READS_PER_SECOND, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
        samples: list[PhaseDone] = []
        while events := reader.read():
            for event in events:
                store.apply(event)
                match event:
                    case HubStarted():
                        hub = event.pid
                    case PhaseDone():
                        samples.append(event)
                    case Bye():
                        dropped += event.dropped
                    case Dropped():
                        print(
                            f"set aside: {event.count} × {event.reason} (rank {event.rank})", file=sys.stderr
                        )
                    case RunEnded():
                        ended = True
        store.snapshot()
        now_ns = time.monotonic_ns()
        seen += len(samples)
        if STEADY_FROM * expected <= seen < expected:
            last = (now_ns / 1e9, cpu_seconds(hub))
            steady = steady or last
            ages += [(now_ns - sample.t_ns) / 1e9 for sample in samples]
    assert steady is not None, "the run was too short to be measured"
    ages.sort()
    return {
        "seen": seen,
        "dropped": dropped,
        "hub_cores": (last[1] - steady[1]) / (last[0] - steady[0]),
        "age_median_s": ages[len(ages) // 2],
        "age_p95_s": ages[int(0.95 * len(ages))],
    }


def idle_call_ns() -> float:
    """A call where MORIMON_SOCKET is not set."""
    probe = Probe()
    calls = 200_000
    return (
        min(timeit.repeat(lambda: probe.done("dispatch", 1, 1.0, recv_tokens=1), number=calls)) / calls * 1e9
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--probes", type=int, default=256)
    parser.add_argument("--processes", type=int, default=8, help="that carry the probes")
    parser.add_argument("--rate", type=float, default=10, help="samples a second of each probe")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--costs", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probes % options.processes:
        parser.error("--probes must be a multiple of --processes")
    if options.costs:
        (speak if "RANK" in os.environ else job)(options)
        return
    for name in ("MORIMON_SOCKET", "RANK"):
        os.environ.pop(name, None)
    expected = options.probes * round(options.rate * options.seconds)
    with tempfile.TemporaryDirectory(prefix="morimon-bench-") as scratch:
        folder_of_costs = Path(scratch, "costs")
        folder_of_costs.mkdir()
        folder = start(
            LaunchSpec(kind="command", argv=(sys.executable, *sys.argv, "--costs", str(folder_of_costs))),
            Path(scratch),
        )
        result = watch(folder, expected)
        costs = [json.loads(file.read_bytes()) for file in folder_of_costs.iterdir()]
    call, first, bare = (
        sorted(ns for each in costs for ns in each[kind]) for kind in ("call", "first", "bare")
    )
    print(
        f"{options.probes} probes in {options.processes} processes × {options.rate:g} samples/s × {options.seconds:g} s, "
        f"{os.cpu_count()} cores"
    )
    rows = (
        ("samples lost", f"{expected - result['seen']:.0f} of {expected}", "0"),
        ("samples dropped by probes", f"{result['dropped']:.0f}", "0"),
        ("age in the viewer, median", f"{result['age_median_s']:.3f} s", ""),
        ("age in the viewer, p95", f"{result['age_p95_s']:.3f} s", "≤ 0.5 s"),
        ("hub, part of a core", f"{100 * result['hub_cores']:.1f} %", "≤ 15 %"),
        ("probe call, median", f"{median(call) / 1e3:.1f} µs", "≤ 20 µs"),
        ("probe call, p99", f"{call[int(0.99 * len(call))] / 1e3:.1f} µs", ""),
        ("  the first after a pause, median", f"{median(first) / 1e3:.1f} µs", ""),
        ("  a bare send() instead of it", f"{median(bare) / 1e3:.1f} µs", ""),
        ("probe call where nobody listens", f"{idle_call_ns():.0f} ns", ""),
    )
    for name, value, budget in rows:
        print(f"{name:34}{value:>16}   {budget}")
    print("repeat:", shlex.join([Path(sys.executable).name, *sys.argv]))


if __name__ == "__main__":
    main()
