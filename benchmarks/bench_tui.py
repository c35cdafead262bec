"""What the terminal app costs, on a real pty: `python benchmarks/bench_tui.py`.

CPU is percent of one core and bytes are what the terminal was sent; the live runs are written by this process as a hub
would, ten times a second. Figures move with the machine: look at the ratios, and at the medians of several runs.
"""

from __future__ import annotations

import re
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from morimon.model.codec import encode
from morimon.model.events import RecordEvent
from tests.support.records import Plan, make_record
from tests.support.terminal import Terminal

SHOW = """
import sys
from pathlib import Path
from morimon.tui.app import show
from morimon.tui.options import Options
sys.exit(show(Path(sys.argv[1]), "attach", Options(theme="dark", refresh_hz=float(sys.argv[2]))))
"""
EMPTY = """
from textual.app import App
from textual.widgets import Static
class Empty(App[None]):
    def compose(self):
        yield Static("first paint")
Empty().run()
"""
FLUSH_S = 0.1
SETTLE_S = 3.0


def viewer(folder: Path, hz: float = 4.0, size: tuple[int, int] = (120, 40)) -> Terminal:
    return Terminal([sys.executable, "-c", SHOW, folder, str(hz)], size, {"COLORTERM": "truecolor"})


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def cpu_seconds(terminal: Terminal) -> float:
    times = psutil.Process(terminal.process.pid).cpu_times()
    return times.user + times.system


def measured(
    terminal: Terminal, seconds: float, work: Callable[[], None] = lambda: None
) -> tuple[float, float]:
    """(CPU percent, bytes/s) over so many seconds, `work` being called ten times a second."""
    terminal.read()
    cpu, begin, taken = cpu_seconds(terminal), time.monotonic(), 0
    while time.monotonic() - begin < seconds:
        work()
        taken += terminal.read(FLUSH_S)
    spent = time.monotonic() - begin
    return (cpu_seconds(terminal) - cpu) / spent * 100, taken / spent


def by_round(events: list[RecordEvent]) -> tuple[list[RecordEvent], Iterator[list[RecordEvent]]]:
    """What comes before round 1, and then the events of each round."""
    rounds: list[list[RecordEvent]] = [[]]
    newest = 0
    for event in events:
        number = getattr(event, "round", None)
        if number is not None and number > newest:
            newest = number
            rounds.append([])
        rounds[-1].append(event)
    return rounds[0], iter(rounds[1:])


class Job:
    """Writes a record round by round, `rounds_s` of them a second, in flushes of a tenth of a second."""

    def __init__(self, folder: Path, plan: Plan, rounds_s: float) -> None:
        past, self._future = by_round(make_record(plan).events)
        folder.mkdir(parents=True)
        self._file = (folder / "events.jsonl").open("wb")
        self._rounds_s = rounds_s
        self._begin = time.monotonic()
        self._written = 0
        self.write_times: dict[int, float] = {}
        self._write(past)

    def _write(self, events: list[RecordEvent]) -> None:
        self._file.write(b"".join(map(encode, events)))
        self._file.flush()

    def start(self) -> None:
        """The clock starts now."""
        self._begin = time.monotonic()

    def work(self) -> None:
        """Write what is due."""
        while self._written < (time.monotonic() - self._begin) * self._rounds_s:
            events = next(self._future, None)
            if events is None:
                return
            self._write(events)
            self._written += 1
            self.write_times[self._written] = time.monotonic()


def bench_idle(folder: Path) -> None:
    make_record(Plan(rounds=100)).write(folder)
    with viewer(folder) as terminal:
        terminal.wait_for("rank 3 is late")
        terminal.read(SETTLE_S)
        cpu, rate = measured(terminal, 10.0)
    report("idle, 8 ranks, 120x40", f"{cpu:.2f} % CPU, {rate:.0f} bytes/s", "<= 1 %, 0 bytes")


def bench_live(folder: Path) -> None:
    job = Job(folder, Plan(rounds=400, ends=False, tokens=4096, hidden=7168), rounds_s=5)
    with viewer(folder, hz=5) as terminal:
        terminal.wait_for("ep-bench")
        terminal.read(SETTLE_S)
        job.start()
        cpu, rate = measured(terminal, 15.0, job.work)
    report(
        "live, 8 ranks, 5 rounds/s, 5 Hz, 120x40",
        f"{cpu:.1f} % CPU, {rate / 1000:.1f} KB/s",
        "<= 8 %, 35 KB/s",
    )


def bench_many(folder: Path) -> None:
    job = Job(folder, Plan(ranks=256, nodes=32, rounds=400, ends=False, sample_every=0), rounds_s=5)
    with viewer(folder, hz=4) as terminal:
        terminal.wait_for("ep-bench")
        terminal.read(SETTLE_S)
        job.start()
        seen: dict[int, float] = {}

        def work() -> None:
            job.work()
            if done := re.search(r" (\d+)/400 ", terminal.text()):
                for number in range(int(done[1])):
                    seen.setdefault(number, time.monotonic())

        cpu, rate = measured(terminal, 15.0, work)
        ages = [seen[number] - written for number, written in job.write_times.items() if number in seen]
        keys = key_latencies(terminal, 40, job.work)
    events_s = 256 * 4 * 5
    report(
        f"live, 256 ranks, {events_s} events/s, 4 Hz, 120x40", f"{cpu:.1f} % CPU, {rate / 1000:.1f} KB/s", ""
    )
    report(
        "  age of a round on screen",
        f"p50 {statistics.median(ages):.2f} s, p95 {percentile(ages, 0.95):.2f} s",
        "p95 <= 0.5 s",
    )
    report("  keys", f"p50 {statistics.median(keys):.0f} ms, p95 {percentile(keys, 0.95):.0f} ms", "fluent")


def key_latencies(terminal: Terminal, count: int, work: Callable[[], None] = lambda: None) -> list[float]:
    """Milliseconds from a key to the row of the cursor being painted."""
    out = []
    terminal.send("g")
    terminal.read(0.5)
    for _ in range(count):
        work()
        terminal.read(0.05)
        mark = len(terminal.raw)
        begin = time.monotonic()
        terminal.send("j")
        while CURSOR_GROUND not in terminal.raw[mark:] and time.monotonic() - begin < 5:
            terminal.read(0.001)
        out.append((time.monotonic() - begin) * 1000)
    return out


CURSOR_GROUND = b"48;2;35;46;66"
"""The ground of the row under the cursor in the dark theme."""


def bench_keys(folder: Path) -> None:
    make_record(Plan(rounds=100, ranks=64)).write(folder)
    with viewer(folder) as terminal:
        terminal.wait_for("rank 3 is late")
        terminal.read(SETTLE_S)
        keys = key_latencies(terminal, 50)
    report(
        "keys, 64 ranks, nothing else going on",
        f"p50 {statistics.median(keys):.0f} ms, p95 {percentile(keys, 0.95):.0f} ms",
        "p95 <= 100 ms",
    )


def bench_first_paint(folder: Path) -> None:
    make_record(Plan(rounds=20)).write(folder)
    ours: list[float] = []
    empty: list[float] = []
    for _ in range(5):
        for times, arguments, text in (
            (empty, [EMPTY], "first paint"),
            (ours, [SHOW, str(folder), "4"], "rank 3 is late"),
        ):
            begin = time.monotonic()
            with Terminal([sys.executable, "-c", *arguments]) as terminal:
                while text not in terminal.text():
                    terminal.read(0.005)
                times.append(time.monotonic() - begin)
    mine, base = statistics.median(ours), statistics.median(empty)
    report(
        "first paint against an empty Textual app", f"{mine:.2f} s / {base:.2f} s = {mine / base:.2f}", "<= 2"
    )


def report(what: str, figure: str, budget: str) -> None:
    print(f"{what:<52} {figure:<44} {budget}", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        for number, bench in enumerate((bench_idle, bench_live, bench_keys, bench_first_paint, bench_many)):
            bench(Path(scratch) / str(number))
    print("repeat:", shlex.join([Path(sys.executable).name, *sys.argv]))


if __name__ == "__main__":
    main()
