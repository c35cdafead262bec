"""Standard output as commands that print reports treat it: how wide it is, and what it can take."""

from __future__ import annotations

import shutil
import sys

PAPER_COLUMNS = 80


def columns(least: int = PAPER_COLUMNS) -> int:
    """Width of a report: the terminal's, at least `least`; that of paper where there is no terminal."""
    if not sys.stdout.isatty():
        return PAPER_COLUMNS
    return max(shutil.get_terminal_size((PAPER_COLUMNS, 24)).columns, least)


def take_any_text() -> None:
    """Let characters that standard output's encoding lacks become "?" instead of an error."""
    if hasattr(sys.stdout, "reconfigure"):  # a stream that a caller put there may have none
        sys.stdout.reconfigure(errors="replace")
