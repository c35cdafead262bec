"""The probe alone: what it imports, what it sends, and that it never harms the job it sits in."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import morimon.probe
from morimon.probe import Probe
from tests.support.probes import Listener, objects

TORCHRUN = {
    "RANK": "5",
    "LOCAL_RANK": "1",
    "GROUP_RANK": "2",
    "WORLD_SIZE": "8",
    "LOCAL_WORLD_SIZE": "4",
    "TORCHELASTIC_RESTART_COUNT": "3",
}


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*TORCHRUN, "MORIMON_SOCKET", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def listener() -> Iterator[Listener]:
    with tempfile.TemporaryDirectory(prefix="mm") as folder:
        listener = Listener(Path(folder) / "s")
        yield listener
        listener.close()


def told(listener: Listener, probe: Probe) -> list[dict[str, object]]:
    """All that the probe said, with the probe closed."""
    probe.close()
    return list(objects(listener.accept()))


def say_everything(probe: Probe) -> None:
    probe.hello()
    probe.config(hidden=7168)
    probe.enter("dispatch", 0)
    probe.done("dispatch", 0, 1.5)
    probe.tokens(3)
    probe.traffic([1, 2])
    probe.progress(1)
    probe.counter("loss", 0.5)
    probe.close()


def test_probe_imports_the_standard_library_alone(tmp_path: Path) -> None:
    copy = Path(shutil.copy(morimon.probe.__file__, tmp_path / "my_probe.py"))
    script = (
        "import sys; before = set(sys.modules); sys.path.insert(0, sys.argv[1]); import my_probe;"
        "my_probe.Probe().enter('dispatch', 0); print(*(set(sys.modules) - before - {'my_probe'}))"
    )
    modules = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(copy.parent)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert "socket" in modules
    assert {name.partition(".")[0] for name in modules} <= sys.stdlib_module_names


def test_importing_the_probe_brings_nothing_else_of_the_package() -> None:
    script = "import sys, morimon.probe; print(*(name for name in sys.modules if name.startswith('morimon')))"
    printed = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout
    assert set(printed.split()) == {"morimon", "morimon.probe"}


def test_without_a_socket_nothing_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_socket(*_: object) -> socket.socket:
        raise AssertionError("a socket was made")

    monkeypatch.setattr("morimon.probe.socket.socket", no_socket)
    probe = Probe()
    say_everything(probe)
    assert probe.dropped == 0


def test_hello_tells_what_torchrun_told(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORIMON_SOCKET", str(listener.path))
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    with Probe() as probe:
        pass
    assert told(listener, probe) == [
        {
            "ev": "hello",
            "v": 1,
            "rank": 5,
            "local_rank": 1,
            "node": 2,
            "world_size": 8,
            "local_world_size": 4,
            "restart": 3,
        }
    ]


def test_arguments_override_the_environment(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORIMON_SOCKET", "/nowhere")
    monkeypatch.setenv("RANK", "5")
    with Probe(listener.path, rank=2, world_size=4, restart=1) as probe:
        pass
    (hello,) = told(listener, probe)
    assert (hello["rank"], hello["world_size"], hello["restart"]) == (2, 4, 1)


@pytest.mark.parametrize("nonsense", ["", "x", "-1", "1.5", "9" * 5000, "٣x"])
def test_nonsense_in_the_environment_is_no_rank(
    listener: Listener, monkeypatch: pytest.MonkeyPatch, nonsense: str
) -> None:
    monkeypatch.setenv("RANK", nonsense)
    with Probe(listener.path) as probe:
        pass
    assert told(listener, probe)[0]["rank"] is None


def test_rank_of_a_job_that_mpirun_started(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    with Probe(listener.path) as probe:
        pass
    assert told(listener, probe)[0]["rank"] == 3


def test_numpy_figures_are_plain_figures(listener: Listener) -> None:
    probe = Probe(listener.path, rank=0)
    probe.enter("combine", np.int64(3))
    probe.done("combine", np.int32(3), np.float32(1.5), recv_tokens=np.int64(7))
    probe.traffic(np.array([1, 2]), range(3))
    _, phase, done, traffic = told(listener, probe)
    assert (phase["round"], done["round"], done["latency_us"], done["recv_tokens"]) == (3, 3, 1.5, 7)
    assert (traffic["to_ranks"], traffic["to_experts"]) == ([1, 2], [0, 1, 2])


def test_control_codes_stay_inside_their_line(listener: Listener) -> None:
    probe = Probe(listener.path, rank=0)
    probe.counter("a\n\x1b[31m\x00", 1.0, "\r\n")
    probe.enter('dispatch"\n', 0)
    _, counter, phase = told(listener, probe)
    assert (counter["name"], counter["unit"], phase["phase"]) == ("a\n\x1b[31m\x00", "\r\n", 'dispatch"\n')


class Hostile:
    """A value whose every method fails, like a tensor of a lost device."""

    def __iter__(self) -> Iterator[int]:
        raise RuntimeError

    def __str__(self) -> str:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("value", [object(), Hostile(), {1, object()}, 1j, {"a": Hostile()}])
def test_values_that_are_no_figures_are_counted_not_raised(listener: Listener, value: object) -> None:
    probe = Probe(listener.path, rank=0)
    probe.enter("dispatch", value)  # type: ignore[arg-type]
    probe.done(value, 0, 1.0)  # type: ignore[arg-type]
    probe.counter("x", value)  # type: ignore[arg-type]
    probe.config(anything=value)
    probe.counter("good", 1.0)
    _, *rest = told(listener, probe)
    assert rest.pop() == {"ev": "counter", "name": "good", "value": 1.0, "unit": ""}
    assert {line["ev"] for line in rest} == {"dropped"}
    assert sum(int(str(line["count"])) for line in rest) == 4
    assert probe.dropped == 4


def test_not_a_number_does_not_raise(listener: Listener) -> None:
    probe = Probe(listener.path, rank=0)
    probe.counter("loss", math.nan)
    probe.close()
    assert b"NaN" in listener.accept().recv(65536)


@pytest.mark.parametrize("path", ["/nowhere/at/all", "x" * 500, "a\0b", "/dev/null"])
def test_a_path_where_nobody_listens_is_counted_not_raised(path: str) -> None:
    probe = Probe(path, rank=0)
    say_everything(probe)
    assert probe.dropped == 7


def test_attempts_to_connect_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = 10**15
    attempts = []
    monkeypatch.setattr("morimon.probe.time.monotonic_ns", lambda: now_ns)
    real = socket.socket

    def counted(*arguments: int) -> socket.socket:
        attempts.append(now_ns)
        return real(*arguments)

    monkeypatch.setattr("morimon.probe.socket.socket", counted)
    probe = Probe("/nowhere", rank=0)
    for _ in range(60_000):
        probe.progress(1)
        now_ns += 10**6
    pauses = [(b - a) / 1e9 for a, b in itertools.pairwise(attempts)]
    assert pauses == sorted(pauses)
    assert pauses[0] >= 0.1
    assert pauses[-1] == pytest.approx(5)
    assert probe.dropped == 60_000


def test_a_listener_that_does_not_read_blocks_nobody_and_every_message_is_accounted_for(
    listener: Listener,
) -> None:
    probe = Probe(listener.path, rank=0)
    for number in range(20_000):
        probe.progress(number, label="x" * 100)
    assert 0 < probe.dropped < 20_000
    connection = listener.accept()
    lines = objects(connection)
    received = [next(lines) for _ in range(20_001 - probe.dropped)]
    assert [line["done"] for line in received[1:]] == list(range(20_000 - probe.dropped))
    lost = probe.dropped
    probe.progress(-1)
    assert next(lines) == {"ev": "dropped", "count": lost, "reason": "the probe's socket was full"}
    assert next(lines)["done"] == -1
    connection.close()


def test_a_line_larger_than_the_socket_is_finished_later(listener: Listener) -> None:
    probe = Probe(listener.path, rank=0)
    probe.progress(0, label="x" * 20_000_000)
    probe.progress(1)
    connection = listener.accept()
    lines = objects(connection)
    assert next(lines)["ev"] == "hello"
    reader = threading.Thread(target=lambda: long.append(next(lines)))
    long: list[dict[str, object]] = []
    reader.start()
    while reader.is_alive():
        probe.hello()
        reader.join(0.001)
    assert len(str(long[0]["label"])) == 20_000_000
    assert next(lines)["count"] == 1
    connection.close()


def test_a_full_backlog_is_nobody_listening() -> None:
    with tempfile.TemporaryDirectory(prefix="mm") as folder:
        listener = Listener(Path(folder) / "s", backlog=0)
        probes = [Probe(listener.path, rank=rank) for rank in range(8)]
        for probe in probes:
            probe.progress(1)
        assert 0 < sum(probe.dropped for probe in probes) < 8
        listener.close()


def test_threads_share_a_probe(listener: Listener) -> None:
    probe = Probe(listener.path, rank=0)
    probe.hello()
    connection = listener.accept()
    lines: list[dict[str, object]] = []
    reader = threading.Thread(target=lambda: lines.extend(objects(connection)))
    reader.start()
    start = threading.Barrier(4)

    def speak(name: int) -> None:
        start.wait()
        for number in range(300):
            probe.progress(number, label=str(name))

    threads = [threading.Thread(target=speak, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    probe.close()
    reader.join()
    assert lines[0]["ev"] == "hello"
    assert len([line for line in lines if "done" in line]) + probe.dropped == 1200
    for name in range(4):
        numbers = [int(str(line["done"])) for line in lines if line.get("label") == str(name)]
        assert numbers == sorted(set(numbers))


SIGNALLED = """
import signal, sys
from morimon.probe import Probe
probe = Probe(sys.argv[1], rank=0)
probe.hello()  # what is told while a connection is being made is dropped and counted
fired = 0
def on_alarm(*_):
    global fired
    if fired < 100:
        fired += 1
        probe.progress(fired, label="signal")
signal.signal(signal.SIGALRM, on_alarm)
signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
for call in range(100):
    probe.progress(call, label="main")
while not fired:
    signal.pause()
signal.setitimer(signal.ITIMER_REAL, 0)
probe.close()
print(fired)
"""


def test_a_signal_handler_may_use_the_probe_that_it_interrupts(listener: Listener) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SIGNALLED, str(listener.path)], stdout=subprocess.PIPE, text=True
    ) as process:
        lines = list(objects(listener.accept()))
        fired, _ = process.communicate()
    assert process.returncode == 0
    for label, numbers in (("main", range(100)), ("signal", range(1, int(fired) + 1))):
        assert sorted(line["done"] for line in lines if line.get("label") == label) == list(numbers)


@pytest.mark.parametrize("step", ["setblocking", "setsockopt", "connect"])
def test_a_signal_handler_may_use_the_probe_while_it_connects(
    listener: Listener, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    probe = Probe(listener.path, rank=0)
    whole = getattr(socket.socket, step)
    interrupted: list[str] = []

    class Interrupted(socket.socket):
        pass

    def interrupt(self: socket.socket, *arguments: object) -> object:
        if not interrupted:
            interrupted.append(step)
            probe.progress(1, label="signal")
        return whole(self, *arguments)

    setattr(Interrupted, step, interrupt)
    monkeypatch.setattr("morimon.probe.socket.socket", Interrupted)
    probe.progress(0, label="main")
    probe.close()
    monkeypatch.undo()
    assert interrupted == [step]
    lines = list(objects(listener.accept()))
    assert lines[0]["ev"] == "hello"
    assert [line["done"] for line in lines if line["ev"] == "progress"] == [0]
    assert [line["count"] for line in lines if line["ev"] == "dropped"] == [probe.dropped] == [1]


FORKED = """
import os, sys
from morimon.probe import Probe
probe = Probe(sys.argv[1], rank=0)
probe.progress(1, label="parent")
child = os.fork()
if child == 0:
    probe.progress(2, label="child")
    os._exit(0)
os.waitpid(child, 0)
probe.progress(3, label="parent")
"""


def test_a_forked_child_has_its_own_connection(listener: Listener) -> None:
    process = subprocess.run([sys.executable, "-c", FORKED, str(listener.path)], check=True)
    assert process.returncode == 0
    first, second = list(objects(listener.accept())), list(objects(listener.accept()))
    assert [line.get("label") for line in first] == [None, "parent", "parent"]
    assert [line.get("label") for line in second] == [None, "child"]


LEFT_BEHIND = """
import os, sys
from morimon.probe import Probe
probe = Probe(sys.argv[1], rank=0)
probe.hello()
if os.fork() == 0:
    sys.stdin.read()
"""


def test_a_forked_child_does_not_hold_its_parents_connection(listener: Listener) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LEFT_BEHIND, str(listener.path)], stdin=subprocess.PIPE
    ) as parent:
        assert [line["ev"] for line in objects(listener.accept())] == ["hello"]
        parent.wait()


NO_SIGPIPE = """
import signal, sys
from morimon.probe import Probe
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
probe = Probe(sys.argv[1], rank=0)
probe.hello()
print("ready", flush=True)
sys.stdin.readline()
probe.progress(1)
print(probe.dropped, flush=True)
"""


def test_a_listener_that_goes_away_does_not_end_a_job_without_signal_handling(listener: Listener) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", NO_SIGPIPE, str(listener.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        listener.accept().close()
        listener.close()
        out, _ = process.communicate("\n")
    assert (process.returncode, out) == (0, "1\n")


def test_lines_are_ascii_json(listener: Listener) -> None:
    probe = Probe(listener.path, rank=0)
    probe.counter("µ 温", 1.0)
    probe.close()
    data = listener.accept().recv(65536)
    assert data.isascii()
    assert json.loads(data.splitlines()[1])["name"] == "µ 温"
