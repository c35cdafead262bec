"""Output files: which there are, whose they are, and that every byte of them is told once."""

from __future__ import annotations

import os
from pathlib import Path

from morimon.hub.job import Job
from morimon.hub.outcome import Attempts
from morimon.hub.output_files import OutputFile, files_held_open, files_of_run
from morimon.hub.tails import LAST_BYTES, Tails
from morimon.model.events import LogLines, RankProcess, Tokens
from morimon.runs.folder import Launch, RunFolder


def write(folder: RunFolder, name: str, text: str) -> Path:
    path = folder.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(text)
    return path


def spans(events: list[object]) -> list[tuple[str, int, int, int | None]]:
    return [(one.file, one.offset, one.length, one.rank) for one in events if isinstance(one, LogLines)]


def rank_folder(restart: int, local_rank: int) -> str:
    return f"output/job_x1/attempt_{restart}/{local_rank}"


def test_files_are_followed_as_they_appear_and_grow(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    tails = Tails(folder.path, files_of_run(folder, lambda restart, local_rank: local_rank), Attempts())
    tails.look()
    assert len(tails) == 0
    write(folder, "console.log", "hello\n")
    out = f"{rank_folder(0, 1)}/stdout.log"
    write(folder, out, "one\ntwo")
    tails.look()
    assert spans([*tails.read(1)]) == [("console.log", 0, 6, None), (out, 0, 4, 1)]
    write(folder, out, " and a half\n")
    err = f"{rank_folder(1, 0)}/stderr.log"
    write(folder, err, "late")
    tails.look()
    assert spans([*tails.read(2)]) == [(out, 4, 15, 1)]
    assert tails.read(3) == []
    last = [one for one in tails.close(4) if isinstance(one, LogLines)]
    assert [(one.file, one.offset, one.length, one.rank, one.restart) for one in last] == [(err, 0, 4, 0, 1)]


def test_what_an_earlier_hub_recorded_is_not_told_again(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    write(folder, "console.log", "old\nnew\n")
    files = files_of_run(folder, lambda restart, local_rank: None)
    tails = Tails(folder.path, files, Attempts(), {"console.log": 4})
    tails.look()
    assert spans([*tails.read(1)]) == [("console.log", 4, 4, None)]


def test_a_file_whose_rank_is_unknown_waits_for_it_until_the_job_has_ended(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    known: dict[tuple[int, int], int] = {}
    files = files_of_run(folder, lambda restart, local_rank: known.get((restart, local_rank)))
    for local_rank in range(2):
        write(folder, f"{rank_folder(0, local_rank)}/stdout.log", "x\n")
    (folder.output_path / "job_x1" / "attempt_0" / "notes").mkdir()
    assert list(files(False)) == []
    known[0, 1] = 9
    stdout = str(tmp_path / rank_folder(0, 1) / "stdout.log")
    assert OutputFile(stdout, "stdout", 9, 0) in list(files(False))
    assert {one.rank for one in files(False)} == {9}
    assert {one.rank for one in files(True)} == {9, None}


def test_a_flood_is_read_in_turns(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    write(folder, "console.log", ("x" * 99 + "\n") * 30_000)
    tails = Tails(folder.path, files_of_run(folder, lambda restart, local_rank: None), Attempts())
    tails.look()
    first = spans([*tails.read(1)])
    assert tails.is_behind
    rest = spans([*tails.close(2)])
    assert 0 < sum(length for _, _, length, _ in first) < 3_000_000
    assert sum(length for _, _, length, _ in first + rest) == 3_000_000


def test_what_there_is_no_time_to_read_is_told_as_lines_but_for_the_last_words(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    flood = "rank 0 recv 7 tokens\n" * 200_000
    write(folder, "console.log", flood + "rank 1 recv 8 tokens\n")
    tails = Tails(folder.path, files_of_run(folder, lambda restart, local_rank: None), Attempts())
    tails.look()
    lines, skimmed_bytes = tails.skim(1)
    assert skimmed_bytes == len(flood) + 21 - LAST_BYTES
    assert {type(one) for one in lines} == {LogLines}
    last = tails.close(2)
    assert [one.rank for one in last if isinstance(one, Tokens)] == [0, 1]
    told = [one for one in lines + last if isinstance(one, LogLines)]
    assert sum(one.length for one in told) == len(flood) + 21
    assert sum(one.lines for one in told) == 200_001


def test_files_that_processes_hold_open(tmp_path: Path) -> None:
    own = tmp_path / "own.log"
    process = RankProcess(t_ns=1, rank=5, restart=0, local_rank=5, node=0, pid=os.getpid(), started_s=0.0)
    saved = os.dup(1), os.dup(2)
    try:
        with own.open("w") as file:
            os.dup2(file.fileno(), 1)
        os.dup2(os.open("/dev/null", os.O_WRONLY), 2)
        alone = list(files_held_open(2**22 - 1, lambda: [process])(False))
        shared = list(files_held_open(os.getpid(), lambda: [process])(False))
        own.unlink()
        deleted = list(files_held_open(os.getpid(), lambda: [process])(False))
    finally:
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
    assert alone == [OutputFile(str(own), "stdout", 5, 0)]
    assert shared == [OutputFile(str(own), "console")]
    assert deleted == []


def test_a_keeper_that_cannot_be_started_is_a_run_that_has_ended(tmp_path: Path) -> None:
    launch = Launch(kind="command", command=("true",), cwd=str(tmp_path / "gone"), socket="s")
    job = Job(RunFolder(tmp_path), launch)
    job.start()
    assert job.look() == "over"
    assert job.exit
    assert job.exit.error == f"The keeper cannot be started in {tmp_path / 'gone'}: No such file or directory"
