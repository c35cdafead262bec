"""What Python, C++ runtimes and torchrun print when something goes wrong: whose error it is, and in which words.

Python tells its error in the last line of a traceback, torchrun in a report at the end; torch.multiprocessing wraps the
error of a spawned process into one of its parent. Levels of lines (glog's letters, warnings) are read here, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from morimon.logs.causes import ended
from morimon.logs.dialect import Meant, Rule, Source, rule
from morimon.model.events import Failure

_LONGEST_CAUSE = 2000
_NAME = r"(?:[A-Za-z_]\w{0,80}\.){0,10}[A-Za-z_]\w{0,80}"


class Traceback:
    """Where a source stands in a Python traceback."""

    def __init__(self) -> None:
        self.is_open = False
        self.is_ignored = False
        """The interpreter reports it and goes on (an error in a destructor)."""
        self.process: int | None = None
        """Spawned process whose error is told next."""


def _opens(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    del match
    source.remember(Traceback).is_open = True
    return ()


def _ignored(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    del match
    source.remember(Traceback).is_ignored = True
    return ()


def _last_line(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    """The line that names an error: the end of a traceback, or a line that looks like one."""
    traceback = source.remember(Traceback)
    ignored, process = traceback.is_ignored, traceback.process
    traceback.is_open = traceback.is_ignored = False
    if ignored:
        return
    traceback.process = None
    rank = source.rank if process is None else _spawned(source, process)
    yield Failure(rank=rank, cause=match.string.strip()[:_LONGEST_CAUSE])


def _spawned(source: Source, process: int) -> int | None:
    """The rank of a spawned process: its number on the first node, unknown on others."""
    return process if not source.rank else None


def _process(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    source.remember(Traceback).process = int(match["process"])
    return ()


def _process_ended(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    process = int(match["process"])
    code = match["code"]
    yield Failure(
        rank=_spawned(source, process),
        cause=f"process {process} {match['how']}.",
        signal=match["signal"],
        exitcode=int(code) if code else None,
    )


def _what(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    yield Failure(rank=source.rank, cause=match["what"].strip())


class _Report:
    """The entry of torchrun's final report that is being read."""

    def __init__(self) -> None:
        self.rank: int | None = None


def _agent_failed(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    yield ended(source.first_rank + int(match["local_rank"]), int(match["code"]))


def _report_rank(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    source.remember(_Report).rank = int(match["entry"])
    return ()


def _report_code(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    rank = source.remember(_Report).rank
    if rank is not None:
        yield ended(rank, int(match["code"]))


_AFTER_NAME = r"(?=:|\s*$)"
_GLOG = tuple(f"{letter}{month}" for letter in "EFW" for month in "01")
"""glog's lines begin with a letter and the month."""

IN_TRACEBACK = rule((), rf"^{_NAME}{_AFTER_NAME}", _last_line)
"""Errors may have any name: this rule is for the lines of an open traceback alone."""

RULES: tuple[Rule, ...] = (
    rule("Traceback (most", r"Traceback \(most recent call last\):", _opens, level="error"),
    rule("Exception ignored in", r"Exception ignored in", _ignored, level="warning"),
    rule(
        ("Error", "Exception", "Interrupt"),
        rf"^{_NAME}(?:(?<=Error)|(?<=Exception)|(?<=Interrupt)){_AFTER_NAME}",
        _last_line,
    ),
    rule(
        "-- Process ",
        r"-- Process (?P<process>\d{1,6}) terminated with the following error:",
        _process,
        level="error",
    ),
    rule(
        "rocess ",
        r"[Pp]rocess (?P<process>\d{1,6}) (?P<how>terminated with (?:signal (?P<signal>SIG[A-Z]{1,9})|exit code (?P<code>\d{1,3})))",
        _process_ended,
        level="error",
    ),
    rule("what():", r"what\(\): {0,4}(?P<what>[^\n]{1,2000})", _what, level="error"),
    rule(": error: ", r"^[\w./-]{1,200}(?: \w{1,80})?: error: (?P<what>[^\n]{1,2000})", _what, level="error"),
    rule("Segmentation fault", r"(?P<what>Segmentation fault[^\n]{0,200})", _what, level="error"),
    rule("Assertion ", r"(?P<what>Assertion [`'\"][^\n]{1,1000} failed)", _what, level="error"),
    rule(
        "failed (exitcode: ",
        r"failed \(exitcode: (?P<code>-?\d{1,9})\) local_rank: (?P<local_rank>\d{1,6}) \(pid: \d{1,9}\)",
        _agent_failed,
        level="error",
    ),
    rule(
        "(local_rank: ",
        r"^ {0,8}rank {1,12}: (?P<entry>\d{1,6}) \(local_rank: \d{1,6}\)",
        _report_rank,
        level="error",
    ),
    rule(
        "exitcode",
        r"^ {0,8}exitcode {1,12}: (?P<code>-?\d{1,9}) \(pid: \d{1,9}\)",
        _report_code,
        level="error",
    ),
    rule(" closing signal ", r"Sending process \d{1,9} closing signal \w{1,12}", level="warning"),
    rule(_GLOG, r"(?:^|\[)[EF][01]\d{3} \d\d:\d\d:\d\d", level="error"),
    rule(_GLOG, r"(?:^|\[)W[01]\d{3} \d\d:\d\d:\d\d", level="warning"),
    rule("Warning:", r"Warning: ", level="warning"),
    rule("WARN", r"\bWARN(?:ING)?\b", level="warning"),
    rule("ERROR", r"\bERROR\b", level="error"),
    rule("FATAL", r"\bFATAL\b", level="error"),
)
