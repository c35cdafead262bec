"""The Log screen as lines: whose they are, what is chosen, and foreign text on a straight grid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from morimon.draw.glyphs import ASCII
from morimon.draw.line import plain, width_of
from morimon.draw.page import Frame, Page
from morimon.feeds.log_text import LogText
from morimon.model.events import Failure, Level, LogLines
from morimon.store.snapshot import RankSnapshot, RunSnapshot
from morimon.views.log import FAILURE_LINES, LogState, build, matcher, panned_to, room_for_text
from morimon.views.log_rows import LogChoice, LogRows

CASES = Path(__file__).parent.parent / "data" / "cases"


def ref(folder: Path, file: str, *, rank: int | None = 0, level: Level = "info") -> LogLines:
    data = (folder / file).read_bytes()
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    return LogLines(
        t_ns=0, file=file, offset=0, length=len(data), lines=lines, stream="stdout", rank=rank, level=level
    )


def page_of(
    folder: Path, refs: list[LogLines], state: LogState | None = None, width: int = 80, **run: object
) -> Page:
    state = state or LogState()
    rows = LogRows(state.choice)
    rows.extend(refs)
    snapshot = replace(RunSnapshot(1, logs=tuple(refs)), **run)  # type: ignore[arg-type]
    return build(snapshot, Frame(width, 24), state, rows, LogText(folder))


def texts(page: Page) -> list[str]:
    return [plain(page.body.line(i)) for i in range(len(page.body))]


@pytest.mark.parametrize(
    "case", ["16_ansi_in_log.log", "17_brackets_are_not_markup.log", "18_carriage_returns.log"]
)
def test_foreign_text_keeps_the_gutter_straight_and_shows_no_control_codes(case: str) -> None:
    page = page_of(CASES, [ref(CASES, case, rank=3)])
    for line in texts(page):
        assert line.startswith("   3 │ ")
        assert "\x1b" not in line
        assert line.isprintable()
    assert all(width_of(page.body.line(i)) <= 80 for i in range(len(page.body)))


def test_brackets_are_shown_as_they_stand() -> None:
    raw = (CASES / "17_brackets_are_not_markup.log").read_text().splitlines()
    page = page_of(CASES, [ref(CASES, "17_brackets_are_not_markup.log")], width=400)
    assert [line.split("│  ", 1)[1] for line in texts(page)] == [line.rstrip() for line in raw]


def test_long_and_wide_lines_are_cut_with_a_mark_and_reached_by_panning(tmp_path: Path) -> None:
    (tmp_path / "o").write_text("x" * 10_000 + "END\n" + "日本語" * 40 + "\n")
    refs = [ref(tmp_path, "o")]
    page = page_of(tmp_path, refs)
    assert all(line.endswith("…") for line in texts(page))
    assert all(width_of(page.body.line(i)) <= 80 for i in range(2))
    far = page_of(tmp_path, refs, LogState(pan=9_950))
    assert texts(far)[0].endswith("xEND")
    assert "from column 9951" in plain(far.head[0])


def test_text_that_is_out_of_sight_on_the_left_is_said_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "o").write_text("0123456789abcdef\nshort\n\n")
    page = page_of(tmp_path, [ref(tmp_path, "o")], LogState(pan=8))
    assert [line.split("│  ")[1:] for line in texts(page)] == [["…9abcdef"], ["…"], []]


@pytest.mark.parametrize("text", ["x" * 5_000 + "needle" + "y" * 5_000, "日本" * 900 + "needle", "needle"])
@pytest.mark.parametrize("pan", [0, 8, 1_000, 9_000])
def test_what_is_found_is_brought_into_sight(tmp_path: Path, text: str, pan: int) -> None:
    (tmp_path / "o").write_text(text + "\n")
    span = matcher("needle")(text)[0]
    moved = panned_to(text, span, pan, room_for_text(RunSnapshot(1), 80))
    page = page_of(tmp_path, [ref(tmp_path, "o")], LogState(pan=moved, search="needle"))
    assert ("needle", "match") in page.body.line(0)
    assert panned_to(text, span, moved, 75) == moved


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (LogChoice(), " no line so far"),
        (LogChoice(rank=3), " no line of rank 3 so far"),
        (LogChoice(level="error"), " no error so far"),
    ],
)
def test_where_there_is_no_line_that_is_said(tmp_path: Path, choice: LogChoice, said: str) -> None:
    page = page_of(tmp_path, [], LogState(choice=choice))
    assert texts(page) == [said]
    assert page.cursor is None


def test_one_rank_or_one_level_can_be_chosen(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    (tmp_path / "b").write_text("bad\n")
    refs = [
        ref(tmp_path, "a", rank=1),
        ref(tmp_path, "b", rank=2, level="error"),
        ref(tmp_path, "a", rank=None),
    ]
    assert texts(page_of(tmp_path, refs)) == [
        "   1 │  one",
        "   1 │  two",
        "   2 │✗ bad",
        " job │  one",
        " job │  two",
    ]
    assert texts(page_of(tmp_path, refs, LogState(LogChoice(rank=2)))) == ["   2 │✗ bad"]
    assert texts(page_of(tmp_path, refs, LogState(LogChoice(level="warning")))) == ["   2 │✗ bad"]
    assert texts(page_of(tmp_path, refs, LogState(LogChoice(rank=1, level="error")))) == [
        " no error of rank 1 so far"
    ]


def test_rows_grow_without_being_counted_again_and_start_anew_when_the_run_is_wound_back(
    tmp_path: Path,
) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    refs = [ref(tmp_path, "a", rank=rank) for rank in range(4)]
    rows = LogRows(LogChoice())
    rows.extend(refs[:2])
    rows.extend(refs[:2])
    assert len(rows) == 4
    rows.extend(refs[1:])
    assert len(rows) == 8
    assert rows.locate(5) == (refs[2], 1)
    rows.extend([ref(tmp_path, "a", rank=9)])
    assert len(rows) == 2
    assert rows.locate(0)[0].rank == 9


def test_following_puts_the_cursor_on_the_newest_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\nthree\n")
    refs = [ref(tmp_path, "a")]
    assert page_of(tmp_path, refs).cursor == 2
    staying = page_of(tmp_path, refs, LogState(follow=False, cursor=0))
    assert staying.cursor == 0
    assert "staying at line 1" in plain(staying.head[0])
    assert page_of(tmp_path, []).cursor is None


def test_what_a_search_finds_is_marked(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("NCCL warning: nccl is slow\nnothing\n")
    page = page_of(tmp_path, [ref(tmp_path, "a")], LogState(search="nccl"))
    assert [run.text for run in page.body.line(0) if run.role == "match"] == ["NCCL", "nccl"]
    assert not any(run.role == "match" for run in page.body.line(1))
    assert matcher("NCCL")("NCCL nccl") == [(0, 4)]
    assert matcher("")("anything") == []


def test_the_first_failure_stands_on_top_in_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "err").write_text("noise\nRuntimeError: shmem heap too small\n" + "at frame\n" * 20)
    failure = Failure(rank=6, cause="shmem heap too small", file="err", offset=6)
    page = page_of(tmp_path, [ref(tmp_path, "err", rank=6, level="error")], failure=failure)
    head = [plain(line) for line in page.head]
    assert head[0].startswith("── in the words of rank 6: err ──")
    assert head[1] == " ▌ RuntimeError: shmem heap too small"
    assert len([line for line in head if line.startswith(" ▌ ")]) == FAILURE_LINES


def test_a_file_that_is_gone_is_said_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    gone = ref(tmp_path, "a")
    (tmp_path / "a").unlink()
    assert "cannot be read: No such file or directory" in texts(page_of(tmp_path, [gone], width=200))[0]


def test_older_lines_that_left_the_memory_are_said(tmp_path: Path) -> None:
    page = page_of(tmp_path, [], logs_forgotten=1200)
    assert "1\u202f200 older ones only in the files" in plain(page.head[0])


def test_the_gutter_has_room_for_the_highest_rank_and_ascii_is_ascii(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    refs = [ref(tmp_path, "a", rank=7)]
    rows = LogRows(LogChoice())
    rows.extend(refs)
    snapshot = RunSnapshot(1, ranks=tuple(RankSnapshot(rank=r, version=0) for r in (7, 10_000)))
    page = build(snapshot, Frame(80, 24, ASCII), LogState(), rows, LogText(tmp_path))
    assert texts(page) == ["     7 |  one"]
    assert all(plain(line).isascii() for line in page.lines())
