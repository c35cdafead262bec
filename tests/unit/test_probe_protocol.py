"""Lines of the probe's protocol: what becomes of good ones, and that bad ones are told apart and cost nothing else."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morimon.hub.probes import LineSplitter
from morimon.hub.protocol import (
    MAX_LINE_BYTES,
    NEWEST_NS,
    OLDEST_NS,
    DroppedMessage,
    HelloMessage,
    ProtocolError,
    Sender,
    StopMessage,
    VersionError,
    parse,
    plausible,
)
from morimon.model import codec
from morimon.model.config import JobConfig
from morimon.model.events import (
    Configured,
    Counter,
    Hello,
    PhaseDone,
    PhaseEntered,
    Progress,
    RecordEvent,
    Tokens,
    Traffic,
)

NOW_NS = 10**15


def heard(*lines: dict[str, Any]) -> RecordEvent:
    """The event of the last of these lines on one connection."""
    sender = Sender(peer_pid=77)
    for line in lines:
        message = parse(json.dumps(line).encode())
        assert not isinstance(message, DroppedMessage | StopMessage)
        if isinstance(message, HelloMessage):
            sender.greet(message)
        event = sender.event(message, NOW_NS if message.t_ns is None else message.t_ns)
    return event


HELLO = {"ev": "hello", "v": 1, "rank": 3, "world_size": 8, "restart": 2}


def test_rank_and_restart_are_those_of_the_hello_unless_the_line_says_otherwise() -> None:
    phase = {"ev": "phase", "phase": "combine", "round": -1}
    expected = PhaseEntered(t_ns=NOW_NS, rank=3, restart=2, round=-1, phase="combine")
    assert heard(HELLO, phase) == expected
    assert heard(HELLO, {**phase, "rank": 7, "restart": 0, "t_ns": 5}) == PhaseEntered(
        t_ns=5, rank=7, round=-1, phase="combine"
    )


def test_pid_is_the_peers_unless_the_hello_tells_one() -> None:
    assert heard(HELLO) == Hello(t_ns=NOW_NS, rank=3, restart=2, world_size=8, pid=77)
    assert heard({**HELLO, "pid": 5}) == Hello(t_ns=NOW_NS, rank=3, restart=2, world_size=8, pid=5)


def test_configuration_and_progress_need_no_rank() -> None:
    assert heard({"ev": "config", "config": {"topk": 8, "dtype": "bf16", "seed": None}}) == Configured(
        t_ns=NOW_NS, config=JobConfig(topk=8, dtype="bf16")
    )
    assert heard({"ev": "progress", "done": 3}) == Progress(t_ns=NOW_NS, done=3)


FAULTS = {
    b"": "not a line of JSON",
    b"hello": "not a line of JSON",
    b'{"ev":"counter","name":"x","value":NaN}': "not a line of JSON",
    b'{"ev":"counter","name":"\xff","value":1}': "not a line of JSON",
    b"[]": "not a message of protocol version 1: Expected `object`, got `array`",
    b"{}": "not a message of protocol version 1: Object missing required field `ev`",
    b'{"ev":"run"}': "not a message of protocol version 1: Invalid value 'run' - at `$.ev`",
    b'{"ev":"end","outcome":"finished"}': "not a message of protocol version 1: Invalid value 'end' - at `$.ev`",
    b'{"ev":"hello","rank":0}': "not a message of protocol version 1: Object missing required field `v`",
    b'{"ev":"tokens","recv_token":1}': "not a message of protocol version 1: Object contains unknown field `recv_token`",
}


@pytest.mark.parametrize(("line", "reason"), FAULTS.items())
def test_faults_are_told_apart(line: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError) as raised:
        parse(line)
    assert str(raised.value) == reason


COUNTER = {"ev": "counter", "name": "x", "value": 1.0, "unit": "u"}
ROUND = {"ev": "round", "phase": "dispatch", "round": 0, "latency_us": 1.0}


@pytest.mark.parametrize(
    "line",
    [
        {**COUNTER, "name": "x" * 65},
        {**COUNTER, "name": ""},
        {**COUNTER, "unit": "x" * 17},
        {**COUNTER, "value": "1"},
        {**COUNTER, "rank": -1},
        {**COUNTER, "rank": 4096},
        {**COUNTER, "restart": -1},
        {**COUNTER, "t_ns": -1},
        {**COUNTER, "t_ns": 2**64},
        {**ROUND, "latency_us": -1.0},
        {**ROUND, "latency_us": True},
        {**ROUND, "recv_tokens": 1.5},
        {**ROUND, "round": 2**31},
        {**ROUND, "phase": "gather"},
        {**ROUND, "source": "log"},
        {"ev": "config", "config": {"topk": 1.5}},
        {"ev": "config", "config": {"name": "x" * 201}},
        {"ev": "config", "config": [1]},
        {"ev": "hello", "v": 1, "world_size": 4097},
        {"ev": "hello", "v": "1"},
        {"ev": "stop", "force": 1},
        {"ev": "traffic", "to_ranks": [-1]},
    ],
)
def test_figures_out_of_bounds_are_set_aside(line: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        parse(json.dumps(line).encode())


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([COUNTER], "a line without a rank, on a connection whose hello named none"),
        ([{**HELLO, "rank": None}], "a hello without a rank: RANK is not set and the probe was given none"),
        ([{**HELLO, "rank": 8}], "rank 8 in a world of 8"),
        ([{**HELLO, "local_rank": 4, "local_world_size": 4}], "local rank 4 in a world of 4"),
        ([HELLO, {**COUNTER, "rank": 8}], "rank 8 in a world of 8"),
        (
            [HELLO, {"ev": "traffic", "to_ranks": [1]}],
            "a traffic line whose to_ranks is not of length world_size",
        ),
        ([{"ev": "config", "config": {"tpk": 8}}], "a configuration with an unknown field: tpk"),
        (
            [{"ev": "config", "config": {"topk": "8"}}],
            "a configuration that makes no sense: Expected `int | null`, got `str` - at `$.topk`",
        ),
    ],
)
def test_what_makes_no_sense_is_said(lines: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(ProtocolError) as raised:
        heard(*lines)
    assert str(raised.value) == reason


def test_another_version_is_no_line_fault() -> None:
    with pytest.raises(VersionError, match="version 2; only 1 is known"):
        heard({**HELLO, "v": 2})


def test_faults_name_at_most_so_much_of_the_input() -> None:
    for line in (
        {"ev": "x" * 1000},
        {"ev": "tokens", "y" * 1000: 1},
        {"ev": "config", "config": {"z" * 1000: 1}},
    ):
        with pytest.raises(ProtocolError) as raised:
            heard(line)
        assert len(str(raised.value)) <= 160


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5), st.lists, max_leaves=5
)
names = st.sampled_from(
    ["v", "rank", "t_ns", "config", "phase", "round", "latency_us", "to_ranks", "name", "value", "x"]
)
kinds = st.sampled_from(["hello", "config", "phase", "round", "traffic", "counter", "stop", "end"])
almost_messages = st.builds(lambda ev, fields: {"ev": ev, **fields}, kinds, st.dictionaries(names, values))


@settings(deadline=None)
@given(st.binary(max_size=300) | almost_messages.map(lambda fields: json.dumps(fields).encode()))
def test_any_bytes_are_a_message_or_a_fault(line: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        parse(line)


def test_deep_nesting_is_a_fault_like_any_other() -> None:
    for line in (b"[" * 60_000, b'{"ev":"config","config":{"x":' + b'{"x":' * 10_000):
        with pytest.raises(ProtocolError):
            parse(line)


def test_a_time_is_believed_within_its_window() -> None:
    assert plausible(NOW_NS, NOW_NS)
    assert plausible(NOW_NS - OLDEST_NS, NOW_NS)
    assert not plausible(NOW_NS - OLDEST_NS - 1, NOW_NS)
    assert plausible(NOW_NS + NEWEST_NS, NOW_NS)
    assert not plausible(NOW_NS + NEWEST_NS + 1, NOW_NS)


count = st.integers(0, 2**63 - 1)
maybe_count = st.none() | count
ranks = st.integers(0, 4095)
rounds = st.integers(-(2**31), 2**31 - 1)
phases = st.sampled_from(("dispatch", "combine"))
text = st.text(st.characters(exclude_categories=["Cs"]))
number = st.floats(allow_nan=False, allow_infinity=False)
stamp = {"t_ns": count, "rank": ranks, "restart": st.integers(0, 2**31 - 1)}

events = st.one_of(
    st.builds(PhaseEntered, **stamp, round=rounds, phase=phases),
    st.builds(
        PhaseDone,
        **stamp,
        round=rounds,
        phase=phases,
        latency_us=st.floats(0, 1e12),
        recv_tokens=maybe_count,
        rdma_tokens_algo=maybe_count,
        bytes=maybe_count,
        rdma_bytes=maybe_count,
        source=st.just("probe"),
        xgmi_gbps=st.none(),
        rdma_algo_gbps=st.none(),
    ),
    st.builds(Tokens, **stamp, recv_tokens=count, rdma_tokens_algo=maybe_count, source=st.just("probe")),
    st.builds(Traffic, **stamp, to_ranks=st.lists(count).map(tuple), to_experts=st.lists(count).map(tuple)),
    st.builds(Progress, **stamp, done=count, total=maybe_count, label=text.map(lambda t: t[:200])),
    st.builds(
        Counter,
        **stamp,
        name=text.filter(bool).map(lambda t: t[:64]),
        value=number,
        unit=text.map(lambda t: t[:16]),
    ),
)


@settings(deadline=None)
@given(events)
def test_record_lines_of_ranks_are_lines_of_the_protocol(event: RecordEvent) -> None:
    line = codec.encode(event)
    fields = json.loads(line)
    fields.pop("source", None)
    message = parse(json.dumps(fields).encode())
    assert not isinstance(message, DroppedMessage | StopMessage)
    assert message.t_ns is not None
    again = Sender().event(message, message.t_ns)
    assert again == event
    assert codec.decode(codec.encode(again)) == event


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=20), st.data())
def test_lines_survive_any_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    got: list[bytes] = []
    at = 0
    while at < len(stream):
        step = data.draw(st.integers(1, 50))
        got += splitter.feed(stream[at : at + step])
        at += step
    assert got == lines
    assert not splitter.unfinished


@pytest.mark.parametrize("step", [1000, MAX_LINE_BYTES, 10**6])
def test_lines_too_long_come_cut_and_once(step: int) -> None:
    stream = (
        b"a\n"
        + b"x" * 300_000
        + b"\nb\n"
        + b"y" * MAX_LINE_BYTES
        + b"\n"
        + b"z" * (MAX_LINE_BYTES + 1)
        + b"\nc\n"
    )
    splitter = LineSplitter()
    got: list[bytes] = []
    for at in range(0, len(stream), step):
        got += splitter.feed(stream[at : at + step])
    assert [line for line in got if len(line) <= MAX_LINE_BYTES] == [b"a", b"b", b"y" * MAX_LINE_BYTES, b"c"]
    assert [chr(line[0]) for line in got] == ["a", "x", "b", "y", "z", "c"]
    assert not splitter.unfinished


def test_infinite_figures_are_faults() -> None:
    with pytest.raises(ProtocolError):
        parse(json.dumps({**COUNTER, "value": math.inf}).encode())
    with pytest.raises(ProtocolError):
        parse(b'{"ev":"counter","name":"x","value":1e999}')
