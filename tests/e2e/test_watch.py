"""The watcher against real folders and real writers: slow, killed, renaming, overwriting, deleting, many at once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from morimon.feeds.trace_folder import TraceFolder
from morimon.feeds.traces import TraceFile
from morimon.trace.load import load
from tests.support.trace_writer import TraceWriter

pytestmark = pytest.mark.e2e

DEADLINE_S = 30.0
SETTLE_S = 0.6
DATA = Path(__file__).parents[1] / "data"
V1 = (DATA / "traces" / "trace_rank_0_0821_170932.json").read_bytes()
LL = (DATA / "traces" / "trace_rank_1_0821_171105.json").read_bytes()
SYNTH = Path(__file__).parents[1] / "support" / "synth_trace.py"
NAME = "trace_rank_3_0821_180000.json"
MORIMON = (sys.executable, "-m", "morimon")


@pytest.fixture(params=["inotify", "polling"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TraceFolder]:
    polling = request.param == "polling"
    with TraceFolder(tmp_path, polling=polling, poll_s=0.05, settle_s=SETTLE_S) as following:
        until(following, lambda: following.mode.startswith(request.param))
        yield following


def until(folder: TraceFolder, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        version = folder.version
        if holds():
            return
        left = deadline - time.monotonic()
        assert left > 0, f"not within {DEADLINE_S} s; the folder is {folder.traces()}"
        folder.wait(version, min(left, 1.0))


def the_file(folder: TraceFolder) -> TraceFile | None:
    return next(iter(folder.traces().files), None)


def state(folder: TraceFolder) -> str:
    file = the_file(folder)
    return file.state if file else "none"


def revision(folder: TraceFolder) -> int:
    file = the_file(folder)
    return file.revision if file else 0


def has_seen(folder: TraceFolder, size: int) -> bool:
    file = the_file(folder)
    return file is not None and file.seen.size_bytes == size


def test_a_slow_writer_is_shown_when_whole_and_not_before(folder: TraceFolder) -> None:
    with TraceWriter(folder.path / NAME, V1) as writer:
        sizes = [1, 100, 5_000, 200_000]
        for step, size in enumerate(sizes):
            writer.write(size)
            until(folder, lambda step=step: has_seen(folder, sum(sizes[: step + 1])))  # type: ignore[misc]
            assert state(folder) in ("growing", "half-written")
        writer.write()
        until(folder, lambda: state(folder) == "whole")
        assert len(load(folder.path / NAME).spans) == 891
        writer.end()


def test_a_writer_killed_half_way_leaves_what_it_wrote(folder: TraceFolder) -> None:
    with TraceWriter(folder.path / NAME, V1) as writer:
        writer.write(len(V1) // 2)
        writer.kill()
    until(folder, lambda: state(folder) == "half-written")
    trace = load(folder.path / NAME)
    assert len(trace.spans) > 0
    assert "half_written" in {finding.kind for finding in trace.findings}


def test_what_was_given_up_as_half_written_is_whole_when_it_is_finished_after_all(
    folder: TraceFolder,
) -> None:
    with TraceWriter(folder.path / NAME, V1) as writer:
        writer.write(len(V1) // 2)
        until(folder, lambda: state(folder) == "half-written")
        writer.write()
        until(folder, lambda: state(folder) == "whole")
        assert revision(folder) == 2


def test_a_file_that_comes_by_rename_is_shown_at_once(folder: TraceFolder) -> None:
    draft = folder.path / f".{NAME}.part"
    draft.write_bytes(V1)
    draft.rename(folder.path / NAME)
    until(folder, lambda: state(folder) == "whole")
    assert revision(folder) == 1


def test_an_overwritten_file_is_shown_again(folder: TraceFolder) -> None:
    path = folder.path / NAME
    path.write_bytes(V1)
    until(folder, lambda: state(folder) == "whole")
    before = revision(folder)
    with TraceWriter(path, LL) as writer:
        writer.write(1000)
        until(folder, lambda: state(folder) == "growing")
        writer.write()
        writer.end()
    until(folder, lambda: state(folder) == "whole" and revision(folder) > before)
    assert len(load(path).spans) == 594


def test_a_deleted_file_goes_also_while_it_grows(folder: TraceFolder) -> None:
    with TraceWriter(folder.path / NAME, V1) as writer:
        writer.write(1000)
        until(folder, lambda: state(folder) == "growing")
        (folder.path / NAME).unlink()
        until(folder, lambda: the_file(folder) is None)
        writer.write()
    (folder.path / NAME).write_bytes(V1)
    until(folder, lambda: state(folder) == "whole")
    (folder.path / NAME).unlink()
    until(folder, lambda: the_file(folder) is None)


def test_two_hundred_files_at_once_none_is_lost(folder: TraceFolder) -> None:
    packed = (DATA / "traces" / "trace_rank_5_0821_171105.json.gz").read_bytes()
    names = [f"trace_rank_{rank}_0821_18{minute:02}00.json.gz" for minute in range(25) for rank in range(8)]
    for name in names:
        (folder.path / name).write_bytes(packed)
    (folder.path / "notes.json").write_text('{"no": "trace"}')
    until(
        folder,
        lambda: (
            folder.is_settled
            and len(folder.traces().files) == len(names)
            and all(file.state == "whole" for file in folder.traces().files)
            and folder.traces().aside == ("notes.json",)
        ),
    )
    groups = folder.traces().groups
    assert [group.text for group in groups] == ["8 ranks"] * 25
    assert groups[0].stamp == "0821_182400", "newest first"


def test_files_that_were_there_before_are_shown(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(V1)
    (tmp_path / "broken.json").write_bytes(b"[1, 2")
    with TraceFolder(tmp_path) as folder:
        until(folder, lambda: state(folder) == "whole" and folder.traces().aside == ("broken.json",))


def test_a_folder_that_is_made_anew_is_followed_again(folder: TraceFolder) -> None:
    folder.path.rmdir()
    until(folder, lambda: "cannot be read" in folder.mode)
    folder.path.mkdir()
    (folder.path / NAME).write_bytes(V1)
    until(folder, lambda: state(folder) == "whole" and folder.mode.startswith(("inotify", "polling")))


@pytest.fixture
def quick_sleep(tmp_path: Path) -> dict[str, str]:
    """An environment in which shell scripts sleep for a tenth of what they ask for."""
    real = shutil.which("sleep")
    fake = tmp_path / "bin" / "sleep"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\nexec {real} 0.1\n")
    fake.chmod(0o755)
    return os.environ | {"PATH": f"{fake.parent}:{os.environ['PATH']}"}


def lines_of(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    return map(json.loads, process.stdout)


def test_the_command_shows_a_file_written_in_pieces_once_and_whole(
    tmp_path: Path, quick_sleep: dict[str, str]
) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    watch = [*MORIMON, "watch", str(traces), "--json"]
    with subprocess.Popen(watch, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        subprocess.run(["sh", DATA / "cases" / "14_partial_write.sh", traces], env=quick_sleep, check=True)
        first = next(lines_of(process))
        (traces / "trace_rank_0_0821_171000.json").unlink()
        last = next(lines_of(process))
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert (first["type"], first["state"], first["spans"], first["warnings"]) == ("trace", "whole", 4, [])
    assert last["type"] == "removed"
    assert process.returncode == 130
    assert errors.splitlines() == [f"morimon: following {traces}: inotify"]


def test_once_waits_for_what_grows_and_ends(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(V1)
    (tmp_path / "half_rank1.json").write_bytes(LL[: len(LL) // 2])
    once = subprocess.run(
        [*MORIMON, "watch", tmp_path, "--once", "--json", "--settle", "0.2"],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert once.returncode == 0, once.stderr
    assert {file["rank"] for file in json.loads(once.stdout)} == {3, 1}


def test_without_a_watch_to_be_had_it_polls_and_says_so(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(V1)
    limited = ["unshare", "--user", "--map-root-user", "sh", "-c"]
    forbid = "echo 0 > /proc/sys/user/max_inotify_instances"
    if shutil.which("unshare") is None or subprocess.run([*limited, forbid], check=False).returncode:
        pytest.skip("this machine does not let a process limit its own inotify instances")
    once = subprocess.run(
        [*limited, f'{forbid}; exec "$@"', "sh", *MORIMON, "watch", tmp_path, "--once"],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert once.returncode == 0, once.stderr
    assert "polling every 1 s (inotify instance limit reached)" in once.stderr
    assert "iteration 2" in once.stdout


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [*MORIMON, "watch", tmp_path / "missing"],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 2
    assert "missing cannot be read: No such file or directory." in done.stderr
    assert "Traceback" not in done.stderr


def test_a_signal_ends_it_also_while_a_trace_is_being_read(tmp_path: Path) -> None:
    slow = tmp_path / NAME
    subprocess.run([sys.executable, SYNTH, "--kernel", "intranode", "--warps", "200", slow], check=True)
    watch = [*MORIMON, "watch", str(tmp_path)]
    with subprocess.Popen(watch, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
