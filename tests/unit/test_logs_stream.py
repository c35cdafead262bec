"""One output file, followed."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morimon.logs import Causes, StreamParser
from morimon.logs.dialect import LONGEST_MATCHED
from morimon.logs.sieve import Sieve
from morimon.logs.stream import RULES
from morimon.model.codec import decode, encode
from morimon.model.events import LogLines, PhaseDone, Progress, Tokens
from tests.support.parsing import CASES, lines_of, only, parse, root_of
from tests.unit.test_logs_mori import TODAY

LOG = TODAY.encode() + b"".join(path.read_bytes() for path in sorted(CASES.glob("*.log")))


@given(st.lists(st.integers(0, len(LOG)), max_size=20))
def test_any_pieces_mean_the_same(cuts: list[int]) -> None:
    parser = StreamParser("console.log", stream="console")
    bounds = [0, *sorted(cuts), len(LOG)]
    events = [e for a, b in pairwise(bounds) for e in parser.feed(LOG[a:b], 1)]
    events += parser.close(1)
    whole = parse(LOG)
    assert only(Tokens, events) == only(Tokens, whole)
    assert only(PhaseDone, events) == only(PhaseDone, whole)
    covered = [(e.offset, e.offset + e.length) for e in only(LogLines, events)]
    assert [b for _, b in covered] == [a for a, _ in covered[1:]] + [len(LOG)]


def test_every_event_is_of_the_record() -> None:
    for event in parse(LOG):
        assert decode(encode(event)) == event


@pytest.mark.parametrize("recorded", [TODAY.index("  combine"), TODAY.index("Round 1"), 0])
def test_a_successor_counts_on_where_the_hub_died(recorded: int) -> None:
    data = TODAY.encode()
    recorded = len(TODAY[:recorded].encode())
    first = StreamParser("a", stream="stdout")
    told = first.feed(data[:recorded], 1)
    second = StreamParser("a", stream="stdout", recorded=recorded)
    told += second.feed(data[: recorded + 7], 1) + second.feed(data[recorded + 7 :], 1) + second.close(1)
    whole = StreamParser("a", stream="stdout")
    expected = whole.feed(data, 1) + whole.close(1)
    assert only(PhaseDone, told) == only(PhaseDone, expected)
    assert sum(e.length for e in only(LogLines, told)) == len(data)


def test_plain_lines_are_one_event_however_many() -> None:
    events = parse(b"step 3, loss 0.25\n" * 1000 + b"rank 3 recv 7 tokens\n" + b"\xc2\xb5 no line end")
    assert [(e.lines, e.rank, e.level) for e in only(LogLines, events)] == [
        (1000, None, "info"),
        (1, 3, "info"),
        (1, None, "info"),
    ]


def test_counts_are_told_when_they_change() -> None:
    events = parse("rank 3 recv 7 tokens\n" * 3 + "rank 4 recv 7 tokens\n" + "rank 3 recv 8 tokens\n" * 2)
    assert [(e.rank, e.recv_tokens) for e in only(Tokens, events)] == [(3, 7), (4, 7), (3, 8)]
    assert [(e.rank, e.lines) for e in only(LogLines, events)] == [(3, 1), (3, 2), (4, 1), (3, 1), (3, 1)]


@pytest.mark.parametrize("recorded", [0, 3, 4, 5, 100])
def test_plain_lines_that_are_recorded_are_not_told_again(recorded: int) -> None:
    parser = StreamParser("a", stream="stdout", recorded=recorded)
    told = only(LogLines, parser.feed(b"one\ntwo\nthree\n", 1))
    expected = {0: [(0, 14, 3)], 3: [(4, 10, 2)], 4: [(4, 10, 2)], 5: [(8, 6, 1)], 100: []}
    assert [(e.offset, e.length, e.lines) for e in told] == expected[recorded]


@given(st.data())
@settings(max_examples=200)
def test_the_sieve_lets_every_line_through_that_a_rule_matches(data: st.DataObject) -> None:
    one = data.draw(st.sampled_from(RULES))
    text = data.draw(st.from_regex(one.pattern)).replace("\n", " ")
    if one.pattern.search(text):
        assert one in Sieve(RULES).rules_for(text)
        assert one in (Sieve(RULES).sift(b"plain\n" + text.encode() + b"\nplain\n")[6] or RULES)


def test_lines_of_a_traceback_count_though_they_look_plain() -> None:
    text = "plain\nTraceback (most recent call last):\n  File x\nkeep.Out\nplain\n"
    assert lines_of(parse(text)) == [(None, "info", 1), (None, "error", 3), (None, "info", 1)]
    assert root_of(text).cause == "keep.Out"


def test_colours_leave_every_line_where_it_is() -> None:
    lines = [
        b"\x1b[2mplain\x1b[0m",
        b"\x1b[1mrank 3\x1b[0m recv \x1b[36m7\x1b[0m tokens",
        b"\x1b[0m",
        b"",
        b"ERROR x",
    ]
    data = b"\n".join(lines) + b"\n"
    events = parse(data)
    assert [(e.rank, e.recv_tokens) for e in only(Tokens, events)] == [(3, 7)]
    assert lines_of(events) == [(None, "info", 1), (3, "info", 1), (None, "info", 2), (None, "error", 1)]
    last = only(LogLines, events)[-1]
    assert data[last.offset :] == b"ERROR x\n"


def test_a_literal_is_found_through_colours() -> None:
    assert lines_of(parse(b"plain\n\x1b[31mERR\x1b[0mOR\nplain\n")) == [
        (None, "info", 1),
        (None, "error", 1),
        (None, "info", 1),
    ]


def test_a_bar_moves_before_its_line_ends() -> None:
    parser = StreamParser("console.log", stream="console")
    assert only(Progress, parser.feed(b"warm-up:  25%|##  | 1/4", 1)) == []
    seen = only(Progress, parser.feed(b"\rwarm-up:  50%|#### | 2/4", 2))
    assert [(e.done, e.total) for e in seen] == [(2, 4)]
    assert only(Progress, parser.feed(b" ", 3)) == []
    done = parser.feed(b"\rwarm-up: 100%|#####| 4/4\nrank 0 recv 1 tokens\n", 4)
    assert [(e.done, e.total) for e in only(Progress, done)] == [(4, 4)]
    assert [e.lines for e in only(LogLines, done)] == [1, 1]


def test_a_group_without_its_other_lines_is_told_when_overdue() -> None:
    parser = StreamParser("console.log", stream="console")
    second = 1_000_000_000
    assert (
        only(PhaseDone, parser.feed(b"Round 3\n  dispatch duration [7] avg 7.00 \xc2\xb5s\n", second)) == []
    )
    assert only(PhaseDone, parser.feed(b"", second + second // 10)) == []
    (late,) = only(PhaseDone, parser.feed(b"", 2 * second))
    assert (late.round, late.latency_us, late.xgmi_gbps) == (3, 7, None)


def test_local_ranks_of_a_later_node() -> None:
    parser = StreamParser("console.log", stream="console", first_rank=8)
    events = parser.feed(b"[default3]:hello\n[rank3]: hello\n[default1]:[rank9]: hello\n", 1)
    assert [e.rank for e in only(LogLines, events)] == [11, 3, 9]


def test_the_file_says_whose_lines_are_that_say_nothing() -> None:
    parser = StreamParser("output/2/stdout.log", stream="stdout", rank=2, restart=1)
    (lines,) = parser.feed(b"a\nb\n", 5)
    assert lines == LogLines(
        t_ns=5, file="output/2/stdout.log", offset=0, length=4, lines=2, stream="stdout", rank=2, restart=1
    )


@given(st.data())
@settings(max_examples=300)
def test_no_line_breaks_the_parser(data: st.DataObject) -> None:
    """Texts made to fit the rules, in any order, with debris between them."""
    parts = st.one_of(
        st.sampled_from(RULES).flatmap(lambda rule: st.from_regex(rule.pattern)),
        st.text(max_size=20),
        st.sampled_from(["[default3]:", "[rank7]: ", "\n", "\r", "  "]),
    )
    causes = Causes()
    for event in parse("".join(data.draw(st.lists(parts, max_size=6))), causes=causes):
        assert decode(encode(event)) == event
    causes.root()


HOSTILE = [
    "rank 1 recv ",
    "dispatch duration [",
    "dispatch duration [1, ",
    "dispatch rdma bandwidth [1",
    "Round ",
    "Round 3 duration(us) [",
    "Best dispatch (FP8): SMs 24, NVL chunk 4, ",
    "[tuning] SMs 1, NVL chunk 1, ",
    "DeepEP timeout ",
    "DeepEP a timeout, rank",
    "a.",
    "a",
    " ",
    "[default",
    "[default0]:",
    "1",
    "99%|",
    "99%|   ",
    "\x1b[",
    "\x1b]",
    "\r",
    "what(): ",
    "Assertion '",
    "Running bench with max_tokens_per_rank: ",
    "[rank 1] Dispatch bandwidth: 1 GB/s, ",
    "(local_rank: ",
    "x: error: ",
    "Warning: ",
    "# A",
    "CHECK FAIL (",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_long_lines_take_linear_time(unit: str) -> None:
    """Four times the text takes about four times as long; a quadratic scan would take sixteen times."""

    def seconds(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            parse(text)
            best = min(best, time.process_time() - start)
        return best

    small, large = seconds(LONGEST_MATCHED // 4), seconds(LONGEST_MATCHED)
    assert large < 10 * small + 0.02
