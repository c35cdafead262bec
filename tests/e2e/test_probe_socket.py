"""The probes' socket with real processes at both ends: who gets in, what arrives, and that nobody harms the others."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import stat
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator
from pathlib import Path

import pytest

from morimon.hub import probes
from morimon.hub.probes import LINES_PER_POLL, POLLS_PER_SECOND
from morimon.model.config import JobConfig
from morimon.model.events import Bye, Configured, Counter, Dropped, Hello, PhaseDone, PhaseEntered, Progress
from morimon.probe import Probe
from tests.support.probes import serving, tell_now, until

pytestmark = pytest.mark.e2e

PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"
HELLO = b'{"ev":"hello","v":1,"rank":%d}\n'


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mm") as folder:
        yield Path(folder) / "s"


async def python(path: Path, script: str, *arguments: str, **environment: str) -> Process:
    """A Python process that may use the socket."""
    env = {**os.environ, "MORIMON_SOCKET": str(path), **environment}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, *arguments, env=env, stdin=PIPE, stdout=PIPE
    )


async def connected(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_unix_connection(str(path))


async def say(path: Path, *pieces: bytes) -> None:
    """Connect, send these pieces, hang up."""
    _, writer = await connected(path)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    writer.close()
    await writer.wait_closed()


RANK = """
from morimon.probe import Probe
with Probe() as probe:
    probe.config(num_tokens=128, hidden=64)
    for i in range(20):
        probe.enter("dispatch", i)
        probe.done("dispatch", i, 10.0 + i, recv_tokens=i, bytes=128 * i)
"""


async def test_ranks_are_heard_in_order_with_their_own_times(path: Path) -> None:
    async with serving(path) as (server, heard):
        ranks = [
            await python(path, RANK, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="3")
            for rank in range(3)
        ]
        for rank in ranks:
            await rank.communicate()
        assert await server.drain(30)
        for number, process in enumerate(ranks):
            (hello,) = heard.of(Hello, number)
            assert (hello.pid, hello.local_rank, hello.world_size) == (process.pid, number, 3)
            entered = heard.of(PhaseEntered, number)
            assert [event.round for event in entered] == list(range(20))
            assert [event.t_ns for event in entered] == sorted({event.t_ns for event in entered})
            done = heard.of(PhaseDone, number)
            assert [(event.latency_us, event.recv_tokens, event.bytes) for event in done] == [
                (10.0 + i, i, 128 * i) for i in range(20)
            ]
            assert all(a.t_ns < b.t_ns for a, b in zip(entered, done, strict=True))
            (bye,) = heard.of(Bye, number)
            assert bye.dropped == 0
        assert heard.of(Configured)[0].config == JobConfig(num_tokens=128, hidden=64)
    assert heard.of(Dropped) == []


async def test_socket_is_the_owners_alone(path: Path) -> None:
    async with serving(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


OTHER_USER = """
import os, socket, sys
os.setuid(65534)
connection = socket.socket(socket.AF_UNIX)
try:
    connection.connect(sys.argv[1])
    connection.sendall(b'{"ev":"hello","v":1,"rank":0}\\n')
    connection.sendall(b'{"ev":"stop","force":true}\\n')
    print("closed" if connection.recv(1) == b"" else "open")
except OSError as error:
    print(type(error).__name__)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_is_refused_by_the_file_and_by_the_hub(path: Path) -> None:
    async with serving(path) as (server, heard):
        path.parent.chmod(0o755)
        out, _ = await (await python(path, OTHER_USER, str(path))).communicate()
        assert out == b"PermissionError\n"
        path.chmod(0o666)
        out, _ = await (await python(path, OTHER_USER, str(path))).communicate()
        assert out.strip() in (b"closed", b"BrokenPipeError", b"ConnectionResetError")
        assert await server.drain(30)
        tell_now(server)
        assert heard.dropped() == {"a connection of another user (uid 65534), refused": 1}
        assert (heard.of(Hello), heard.stops) == ([], [])


async def test_bad_input_is_counted_and_harms_nobody(path: Path) -> None:
    async with serving(path) as (server, heard):
        good = Probe(path, rank=1)
        good.progress(1)
        await say(
            path,
            HELLO % 0,
            b"garbage\n" * 5,
            bytes(range(256)).replace(b"\n", b"") * 8 + b"\n",
            b"x" * 10_000_000 + b"\n",
            b'{"ev":"teleport"}\n',
            b'{"ev":"counter","name":"still here","value":1}\n',
            b'{"ev":"coun',
        )
        await say(path, b'{"ev":"hello","v":9,"rank":2}\n', b'{"ev":"progress","done":1}\n' * 3)
        await say(path, b'{"ev":"counter","name":"x","value":1}\n')
        good.progress(2)
        good.close()
        assert await server.drain(30)
        tell_now(server)
        assert heard.dropped(0) == {
            "not a line of JSON": 6,
            "a line longer than 64 KiB": 1,
            "not a message of protocol version 1: Invalid value 'teleport' - at `$.ev`": 1,
            "half a line at the end of a connection": 1,
        }
        assert [event.name for event in heard.of(Counter, 0)] == ["still here"]
        assert heard.dropped() == {
            "a probe of protocol version 9; only 1 is known": 4,
            "a line without a rank, on a connection whose hello named none": 1,
        }
        assert [event.done for event in heard.of(Progress)] == [1, 2]
        assert heard.dropped(1) == {}


async def test_a_line_may_come_in_pieces(path: Path) -> None:
    async with serving(path) as (server, heard):
        _, writer = await connected(path)
        line = HELLO % 0 + b'{"ev":"counter","name":"x","value":1}\n'
        for byte in line:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()
        assert await server.drain(30)
        assert len(heard.of(Counter, 0)) == 1


FLOOD = """
import os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(os.environ["MORIMON_SOCKET"])
connection.sendall(b'{"ev":"hello","v":1,"rank":0}\\n')
line = sys.argv[1].encode() + b"\\n"
while True:
    connection.sendall(line * 1000)
"""


@pytest.mark.parametrize("line", ['{"ev":"counter","name":"flood","value":1}', "garbage", "x" * 100_000])
async def test_a_flood_starves_nobody_and_fills_no_memory(path: Path, line: str) -> None:
    async with serving(path) as (server, heard):
        started = time.monotonic_ns()
        flood = await python(path, FLOOD, line)
        await until(lambda: heard.of(Hello, 0), "the flood's hello")
        rank = await python(path, RANK, RANK="1")
        await rank.communicate()
        await until(lambda: heard.of(Bye, 1), "the other rank's end")
        assert len(heard.of(PhaseDone, 1)) == 20
        flood.kill()
        await flood.wait()
        seconds = (time.monotonic_ns() - started) / 1e9
        tell_now(server)
        served = len(heard.of(Counter, 0)) + sum(heard.dropped(0).values())
        assert served <= LINES_PER_POLL * (POLLS_PER_SECOND * seconds + 2)


async def test_faults_are_told_once_a_second_at_most(path: Path) -> None:
    async with serving(path) as (_, heard):
        _, writer = await connected(path)
        writer.write(HELLO % 0)
        while len(heard.of(Dropped)) < 2:
            writer.write(b"garbage\n")
            await writer.drain()
            await asyncio.sleep(0.01)
        first, second = heard.of(Dropped)
        assert second.t_ns - first.t_ns >= 10**9
        assert first.count > 1
        writer.close()


async def test_a_foreign_clock_is_replaced_and_counted(path: Path) -> None:
    async with serving(path) as (server, heard):
        before = time.monotonic_ns()
        await say(path, HELLO % 0, b'{"ev":"phase","phase":"combine","round":1,"t_ns":5}\n')
        assert await server.drain(30)
        tell_now(server)
        (phase,) = heard.of(PhaseEntered, 0)
        if before > 600 * 10**9:  # a machine that has just started may mean it
            assert before <= phase.t_ns <= time.monotonic_ns()
            assert list(heard.dropped(0).values()) == [1]


async def test_a_viewer_asks_for_the_end_of_the_job(path: Path) -> None:
    async with serving(path) as (server, heard):
        await say(path, b'{"ev":"stop"}\n{"ev":"stop","force":true}\n')
        assert await server.drain(30)
        assert heard.stops == [False, True]


async def test_a_probe_comes_back_when_its_listener_does(path: Path) -> None:
    probe = Probe(path, rank=0)
    async with serving(path) as (_, heard):
        probe.progress(1)
        await until(lambda: heard.of(Progress), "the first message")

    def lost() -> int:
        probe.progress(2)
        return probe.dropped

    await until(lambda: lost() > 5, "the probe to notice")
    async with serving(path) as (server, heard):

        def heard_again() -> bool:
            probe.progress(3)
            return bool(heard.of(Progress))

        await until(heard_again, "a message after the restart")
        probe.close()
        assert await server.drain(30)
        tell_now(server)
        assert len(heard.of(Hello, 0)) == 1
        assert heard.dropped(0) == {"nobody listened on the probe's socket": probe.dropped}
        assert heard.of(Bye)[-1].dropped == probe.dropped > 5


async def test_a_killed_rank_says_bye_too(path: Path) -> None:
    script = "from morimon.probe import Probe; p = Probe(); p.hello(); p.progress(1); input()"
    async with serving(path) as (_, heard):
        rank = await python(path, script, RANK="4")
        await until(lambda: heard.of(Progress), "the rank's message")
        rank.kill()
        await rank.wait()
        await until(lambda: heard.of(Bye, 4), "the rank's bye")


async def test_a_forked_child_speaks_for_itself(path: Path) -> None:
    script = """
import os
from morimon.probe import Probe
probe = Probe(rank=0)
probe.progress(1)
child = os.fork()
probe.counter("pid", os.getpid())
if child:
    os.waitpid(child, 0)
"""
    async with serving(path) as (server, heard):
        parent = await python(path, script)
        await parent.communicate()
        assert await server.drain(30)
        assert {event.pid for event in heard.of(Hello)} == {int(event.value) for event in heard.of(Counter)}
        assert len(heard.of(Hello)) == 2


async def test_stale_socket_is_replaced_but_no_other_file(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    async with serving(path) as (server, heard):
        await say(path, HELLO % 0)
        assert await server.drain(30)
        assert heard.of(Hello)
    path.write_text("precious")
    with pytest.raises(OSError, match="in use"):
        async with serving(path):
            pass
    assert path.read_text() == "precious"


async def test_connections_are_limited(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "MAX_CONNECTIONS", 2)
    async with serving(path) as (server, heard):
        held = [await connected(path) for _ in range(3)]
        reader, _ = held[2]
        assert await reader.read() == b""
        tell_now(server)
        assert heard.dropped() == {"a connection beyond 2, refused": 1}
        assert server.connections == 2
        for _, writer in held:
            writer.close()


async def test_drain_says_when_somebody_holds_on(path: Path) -> None:
    async with serving(path) as (server, _):
        _, writer = await connected(path)
        assert not await server.drain(0.05)
        writer.close()
        assert await server.drain(30)


async def test_a_hub_without_a_socket_has_nobody_to_wait_for(path: Path) -> None:
    server = probes.ProbeServer(lambda event: None, lambda force: None)
    with pytest.raises(OSError, match="No such file"):
        await server.start(path.parent / "nowhere" / "s")
    assert await server.drain(30)
    server.close()


async def test_close_keeps_what_was_received(path: Path) -> None:
    async with serving(path) as (server, heard):
        _, writer = await connected(path)
        writer.write(HELLO % 0 + b'{"ev":"counter","name":"x","value":1}\n' * 500)
        await writer.drain()
        await until(lambda: heard.of(Counter), "the first lines")
        server.close()
        assert len(heard.of(Counter)) == 500
        assert len(heard.of(Bye)) == 1
        writer.close()


def example(language: str) -> str:
    """The documentation's example in a language."""
    (code,) = re.findall(rf"```{language}\n(.*?)```", PROTOCOL.read_text(), re.DOTALL)
    return str(code)


async def test_documented_shell_script_is_understood(path: Path) -> None:
    async with serving(path) as (server, heard):
        shell = await asyncio.create_subprocess_exec(
            "bash", "-c", example("sh"), env={**os.environ, "MORIMON_SOCKET": str(path)}
        )
        assert await shell.wait() == 0
        await until(lambda: heard.of(Bye), "the script's end")
        assert [type(event) for event in heard.events] == [Hello, PhaseEntered, PhaseDone, Counter, Bye]
        assert heard.of(PhaseDone)[0].recv_tokens == 1024
        tell_now(server)
        assert heard.of(Dropped) == []


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
async def test_documented_c_program_is_understood(path: Path) -> None:
    source = path.with_name("probe.c")
    source.write_text(example("c"))
    program = source.with_suffix("")
    compiler = await asyncio.create_subprocess_exec(
        "cc", "-Wall", "-Wextra", "-Werror", "-o", program, source
    )
    assert await compiler.wait() == 0
    async with serving(path) as (server, heard):
        process = await asyncio.create_subprocess_exec(
            program, env={**os.environ, "MORIMON_SOCKET": str(path), "RANK": "6"}
        )
        assert await process.wait() == 0
        assert await server.drain(30)
        assert [event.round for event in heard.of(PhaseEntered, 6)] == [0, 1, 2]
        tell_now(server)
        assert heard.of(Dropped) == []
    process = await asyncio.create_subprocess_exec(program, env={"PATH": os.environ["PATH"]})
    assert await process.wait() == 0


def test_documented_fields_are_the_protocols() -> None:
    text = PROTOCOL.read_text()
    for field in JobConfig.__struct_fields__:
        assert f"`{field}`" in text
    for line in re.findall(r"`(\{\"ev\".*?\})`", text):
        json.loads(line)
