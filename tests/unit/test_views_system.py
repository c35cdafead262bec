"""The System screen as lines."""

from __future__ import annotations

import pytest

from morimon.draw.line import plain, width_of
from morimon.draw.page import Frame
from morimon.model.events import Note
from morimon.store.snapshot import DropCount, RankSnapshot, RunSnapshot
from morimon.views.rank_filter import parse_filter
from morimon.views.system import SystemState, build, sheet
from tests.support.goldens import compare

RANKS = tuple(
    RankSnapshot(
        rank=rank,
        version=1,
        node=0,
        pid=4100 + rank,
        state="running",
        phase="combine",
        cpu_percent=20.0 + rank,
        cpu_series_percent=tuple(float(i * 10) for i in range(rank + 2)),
        rss_bytes=410_000_000 * (rank + 1),
        threads=9,
        counters=(("loss", 1.5 / (rank + 1), ""), ("tokens", 1e6 * rank, "1/s")),
    )
    for rank in range(4)
)
RUN = RunSnapshot(
    1,
    host="node0",
    ranks=RANKS,
    drops=(DropCount("half lines", 3, 12),),
    notes=(Note(t_ns=0, text="No GPU was found: nvidia-ml-py is not installed.", level="info"),),
)


def test_the_screen_looks_as_accepted() -> None:
    compare("system_100x30", build(RUN, Frame(100, 30)).lines())


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("height", [12, 24, None])
def test_every_line_fits(width: int, height: int | None) -> None:
    for snapshot in (RUN, RunSnapshot(0)):
        page = build(snapshot, Frame(width, height))
        assert all(width_of(line) <= width for line in page.lines())
        if height is not None:
            assert len(page.head) + len(page.foot) < height


def test_totals_are_sums_of_what_is_known() -> None:
    total = plain(build(RUN, Frame(120)).body.line(len(RANKS)))
    assert "86.0" in total
    assert "3.8 GiB" in total
    assert "36" in total
    unknown = RunSnapshot(1, ranks=(RankSnapshot(rank=0, version=0),))
    assert plain(build(unknown, Frame(120)).body.line(1)).count("–") == 3


def test_what_was_dropped_is_counted_and_what_the_machine_lacks_is_said_once() -> None:
    text = "\n".join(plain(line) for line in build(RUN, Frame(120)).foot)
    assert "! 12 half lines (rank 3)" in text
    assert text.count("GPU") == 1
    silent = "\n".join(plain(line) for line in build(RunSnapshot(0), Frame(120)).foot)
    assert "no figures of GPUs or network ports in this record" in silent


def test_counters_name_their_unit_and_the_ranks_at_both_ends() -> None:
    text = [plain(line) for line in build(RUN, Frame(120)).foot]
    line = next(line for line in text if line.startswith(" tokens (1/s)"))
    assert "0 rank 0" in line
    assert "median 1.5e+06" in line
    assert "3e+06 rank 3" in line


def test_sorting_and_filtering() -> None:
    state = SystemState(sort="cpu", descending=True, filter=parse_filter("1-3"))
    assert [row[0] for row in sheet(RUN, state).rows] == [3, 2, 1]
    page = build(RUN, Frame(120), state)
    assert "3 of 4: 1-3" in plain(page.head[0])
