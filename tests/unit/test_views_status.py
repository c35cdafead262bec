"""The state of a run in a line."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from morimon.draw.glyphs import ASCII
from morimon.draw.line import plain, width_of
from morimon.draw.page import Frame
from morimon.model.config import JobConfig
from morimon.model.events import Failure
from morimon.store.snapshot import RunSnapshot
from morimon.views.status import Viewing, failure_line, replay_line, state_lines

RUN = RunSnapshot(
    1,
    state="running",
    elapsed_s=42.0,
    progress_done=37,
    progress_total=100,
    eta_s=71.0,
    config=JobConfig(
        name="ep-bench", world_size=16, num_nodes=2, gpu_per_node=8, num_tokens=4096, hidden=7168
    ),
)


def test_one_line_where_there_is_room_and_two_where_not() -> None:
    (one,) = state_lines(RUN, Viewing(), Frame(120))
    assert plain(one).startswith(" ep-bench · 2×8 ranks · 4\u202f096 tok × 7168")
    assert plain(one).endswith("● running  37/100 ━━━━━─────────  37 %  1:11 left  0:42")
    first, second = (plain(line) for line in state_lines(RUN, Viewing(), Frame(80)))
    assert first.startswith(" ep-bench ")
    assert first.endswith("● running")
    assert second.startswith(" 2×8 ranks")
    assert second.endswith("37 %  1:11 left  0:42")


@pytest.mark.parametrize("width", [60, 80, 109, 110, 120, 150, 200])
@pytest.mark.parametrize("view", [Viewing(), Viewing(paused=True, behind_s=3.0), Viewing(loading=0.5)])
def test_what_figures_were_measured_on_is_said_at_every_width(width: int, view: Viewing) -> None:
    for backend, platform, said in (
        ("gloo", "CPU", " gloo/CPU  ● "),
        (None, "EMULATED GPU", " EMULATED GPU  ● "),
        ("a-backend-of-a-long-name" * 3, "CPU", " CPU  ● "),
    ):
        config = msgspec.structs.replace(RUN.config, backend=backend, platform=platform, dtype="bf16", topk=8)
        lines = state_lines(replace(RUN, config=config), view, Frame(width))
        assert said in plain(lines[0])
        assert all(width_of(line) <= width for line in lines)


@pytest.mark.parametrize("width", [80, 120])
def test_a_record_that_is_being_read_is_no_job_that_starts(width: int) -> None:
    lines = state_lines(RunSnapshot(0), Viewing("replay", loading=0.3), Frame(width))
    text = "\n".join(plain(line) for line in lines)
    assert "reading the record   30 %" in text
    assert "starting" not in text
    assert "starting" in plain(state_lines(RunSnapshot(0), Viewing(), Frame(width))[0])


def test_a_paused_view_says_how_far_behind_it_is() -> None:
    (line,) = state_lines(RUN, Viewing(paused=True, behind_s=3.0), Frame(120))
    assert "‖ paused, 0:03 behind" in plain(line)


def test_the_failure_is_said_on_every_screen_and_keeps_to_the_line() -> None:
    failure = Failure(rank=6, cause="shmem heap too small " * 20, exitcode=1)
    lines = state_lines(RunSnapshot(1, state="failed", exitcode=1, failure=failure), Viewing(), Frame(80))
    assert plain(lines[0]).endswith("✗ failed (1)")
    assert plain(lines[-1]).startswith(" ✗ rank 6 failed first: shmem heap too small")
    assert all(width_of(line) <= 80 for line in lines)


def test_how_a_process_ended_is_said_once() -> None:
    said = plain(failure_line(Failure(rank=5, cause="killed by SIGKILL", signal="SIGKILL"), ASCII))
    assert said.count("SIGKILL") == 1
    assert plain(failure_line(Failure(rank=None, cause="no space", exitcode=3), ASCII)).endswith(
        "no space (exit code 3)"
    )


def test_the_last_round_has_no_time_left_and_an_unknown_total_no_bar() -> None:
    done = RunSnapshot(1, state="running", progress_done=100, progress_total=100, eta_s=0.0)
    assert "left" not in plain(state_lines(done, Viewing(), Frame(120))[0])
    open_end = RunSnapshot(1, state="running", progress_done=12)
    assert "12 done" in plain(state_lines(open_end, Viewing(), Frame(120))[0])


def test_the_replay_line_spans_the_screen() -> None:
    line = replay_line(Viewing("replay", speed=2.0, position_s=30, length_s=60), Frame(100))
    assert width_of(line) == 100
    assert plain(line).startswith(" ▶ replay 2×  0:30 ━━━")
    assert plain(line).endswith("── 1:00")
    assert plain(replay_line(Viewing("replay", paused=True), Frame(60, glyphs=ASCII))).startswith(
        ' " replay 1x'
    )
