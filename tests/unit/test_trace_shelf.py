from __future__ import annotations

from pathlib import Path

import pytest

from morimon.feeds.folder import remote_file_system
from morimon.feeds.traces import (
    FolderTraces,
    Seen,
    TraceFile,
    TraceShelf,
    group_by_run,
    is_candidate,
    spelled,
)
from morimon.trace.names import file_name

SETTLE_S = 5.0


def content(size: int, at: int = 0) -> Seen:
    return Seen(inode=1, size_bytes=size, modified_ns=at, changed_ns=at)


def the_file(shelf: TraceShelf) -> TraceFile:
    (file,) = shelf.traces().files
    return file


def test_a_file_is_ready_when_whole_and_not_before() -> None:
    shelf = TraceShelf(SETTLE_S)
    assert shelf.listed({"a.json": content(10)}, 0) == ("a.json",)
    shelf.judged("a.json", content(10), "growing")
    assert not the_file(shelf).is_ready
    assert shelf.listed({"a.json": content(10)}, 1) == (), "nothing new to ask"
    assert shelf.listed({"a.json": content(20, at=2)}, 2) == ("a.json",)
    shelf.judged("a.json", content(20, at=2), "whole")
    assert the_file(shelf).state == "whole"
    assert the_file(shelf).revision == 1
    assert shelf.is_settled


def test_an_answer_about_other_contents_is_not_taken() -> None:
    shelf = TraceShelf(SETTLE_S)
    shelf.listed({"a.json": content(10)}, 0)
    shelf.judged("a.json", content(12), "whole")
    assert the_file(shelf).state == "growing"
    assert shelf.listed({"a.json": content(12)}, 0.1) == ("a.json",), "asked again, with what it is now"


def test_a_killed_writer_leaves_a_half_written_trace_which_a_later_one_replaces() -> None:
    shelf = TraceShelf(SETTLE_S)
    shelf.listed({"a.json": content(10)}, 0)
    shelf.judged("a.json", content(10), "growing")
    assert shelf.due_s() == SETTLE_S
    shelf.listed({"a.json": content(10)}, SETTLE_S - 0.1)
    assert the_file(shelf).state == "growing"
    shelf.listed({"a.json": content(10)}, SETTLE_S)
    assert the_file(shelf).state == "half-written"
    assert the_file(shelf).revision == 1
    assert shelf.due_s() is None
    assert shelf.listed({"a.json": content(30, at=9)}, 9) == ("a.json",)
    assert the_file(shelf).state == "growing"
    shelf.judged("a.json", content(30, at=9), "whole")
    assert (the_file(shelf).state, the_file(shelf).revision) == ("whole", 2)


def test_growing_starts_the_clock_anew() -> None:
    shelf = TraceShelf(SETTLE_S)
    for step in range(10):
        now = 4.0 * step
        for name in shelf.listed({"a.json": content(step + 1, at=step)}, now):
            shelf.judged(name, content(step + 1, at=step), "growing")
        assert the_file(shelf).state == "growing"


def test_an_empty_file_fails_once_it_has_settled_and_recovers() -> None:
    shelf = TraceShelf(SETTLE_S)
    shelf.listed({"a.json": content(0)}, 0)
    shelf.judged("a.json", content(0), "empty")
    assert not shelf.is_settled
    shelf.listed({"a.json": content(0)}, SETTLE_S)
    assert the_file(shelf).state == "failed"
    assert "empty" in the_file(shelf).text
    shelf.listed({"a.json": content(9, at=7)}, 7)
    shelf.judged("a.json", content(9, at=7), "whole")
    assert (the_file(shelf).state, the_file(shelf).text) == ("whole", "")


def test_what_is_no_trace_is_set_aside_until_it_changes() -> None:
    shelf = TraceShelf(SETTLE_S)
    shelf.listed({"a.json": content(10), "package.json": content(5)}, 0)
    shelf.judged("package.json", content(5), "not a trace")
    assert shelf.traces().aside == ("package.json",)
    assert [file.name for file in shelf.traces().files] == ["a.json"]
    shelf.listed({"package.json": content(6, at=1)}, 1)
    shelf.judged("package.json", content(6, at=1), "whole")
    assert shelf.traces().aside == ()
    assert [file.name for file in shelf.traces().files] == ["package.json"]


def test_loading_tells_ranks_or_why_not_of_the_contents_it_read() -> None:
    shelf = TraceShelf(SETTLE_S)
    shelf.listed({"all.json": content(10)}, 0)
    shelf.judged("all.json", content(10), "whole")
    shelf.loaded("all.json", 1, [3, 1, 0], world_size=4)
    (group,) = shelf.traces().groups
    assert group.text == "3 of 4 ranks, missing 2"
    shelf.listed({"all.json": content(11, at=1)}, 1)
    shelf.failed("all.json", 1, "an answer that comes too late")
    assert the_file(shelf).state == "growing"
    shelf.judged("all.json", content(11, at=1), "whole")
    shelf.failed("all.json", 2, "all.json: broken")
    assert (the_file(shelf).state, the_file(shelf).text) == ("failed", "all.json: broken")


def test_removed_files_go_and_every_change_has_a_version() -> None:
    shelf = TraceShelf(SETTLE_S)
    versions = [shelf.version]
    for listing in ({"a.json": content(1)}, {"a.json": content(2)}, {}):
        shelf.listed(listing, 0)
        versions.append(shelf.version)
    assert versions == sorted(set(versions))
    shelf.listed({}, 1)
    assert shelf.version == versions[-1], "nothing new, nothing to paint"
    assert shelf.traces() == FolderTraces()


def grouped(*names: str) -> list[tuple[str, list[str]]]:
    files = [TraceFile(name, content(1, at=place), file_name(name)) for place, name in enumerate(names)]
    return [(group.text, [file.name for file in group.files]) for group in group_by_run(files)]


def test_a_run_is_ranks_of_one_name_and_about_one_time() -> None:
    ranks = [f"trace_rank_{rank}_0821_17110{rank}.json" for rank in (7, 4, 2, 1, 0)]
    later = ["trace_rank_0_0821_171500.json", "trace_rank_1_0821_171501.json"]
    other = ["trace_intranode_rank0_0821_171100.json"]
    assert grouped(*ranks, *later, *other) == [
        ("1 rank", other),
        ("2 ranks", later),
        ("5 of 8 ranks, missing 3, 5, 6", sorted(ranks)),
    ]


def test_a_rank_that_comes_twice_belongs_to_another_run() -> None:
    names = [
        f"trace_rank_{rank}_0821_1711{second:02}.json" for second, rank in ((1, 0), (2, 1), (4, 0), (5, 1))
    ]
    assert [files for _, files in grouped(*names)] == [names[2:], names[:2]]


def test_names_without_stamp_or_rank_are_grouped_too_and_ranks_are_numbers() -> None:
    assert grouped("trace_rank__.json") == [("1 file, no rank in the name", ["trace_rank__.json"])]
    names = [f"dispatch_rank{rank}.json.gz" for rank in (10, 2, 0)]
    assert grouped(*names) == [
        (
            "3 of 11 ranks, missing 1, 3-9",
            ["dispatch_rank0.json.gz", "dispatch_rank2.json.gz", "dispatch_rank10.json.gz"],
        )
    ]


def test_candidates_are_json_that_is_not_hidden() -> None:
    assert all(map(is_candidate, ["a.json", "A.JSON", "a.json.gz", "a.pt.trace.json", "a.json.zst"]))
    assert not any(map(is_candidate, [".a.json", "a.json.part", "a.png", "json", "a.gz"]))


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "3"), ([1, 2], "1, 2"), ([0, 2, 3, 4, 5, 7], "0, 2-5, 7")],
)
def test_spelled(numbers: list[int], text: str) -> None:
    assert spelled(numbers) == text


MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/scratch xfs rw 0 0
user@host: /mnt/with\\040blank fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/traces", ""),
        ("/home/me/traces", "nfs4"),
        ("/home/scratch/traces", ""),
        ("/homes", ""),
        ("/mnt/with blank/deep", "fuse.sshfs"),
    ],
)
def test_the_longest_mount_point_tells_the_file_system(folder: str, kind: str) -> None:
    assert remote_file_system(Path(folder), MOUNTS) == kind
