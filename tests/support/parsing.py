"""Shorthand for tests that read printed lines."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from morimon.logs import Causes, LogEvent, StreamParser
from morimon.model.events import Failure, LogLines

CASES = Path(__file__).parents[1] / "data" / "cases"

Kind = TypeVar("Kind", bound=LogEvent)


def parse(text: str | bytes, *, rank: int | None = None, causes: Causes | None = None) -> list[LogEvent]:
    """All events of an output file that holds `text`."""
    parser = StreamParser("console.log", stream="console", rank=rank, causes=causes)
    data = text.encode() if isinstance(text, str) else text
    return parser.feed(data, 1) + parser.close(2)


def only(kind: type[Kind], events: list[LogEvent]) -> list[Kind]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def lines_of(events: list[LogEvent]) -> list[tuple[int | None, str, int]]:
    """(rank, level, number of lines) of each group of lines."""
    return [(event.rank, event.level, event.lines) for event in only(LogLines, events)]


def root_of(text: str | bytes) -> Failure:
    """Why a run failed that printed `text`."""
    causes = Causes()
    parse(text, causes=causes)
    root = causes.root()
    assert root is not None
    return root
