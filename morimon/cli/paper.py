"""Standard output as commands that print reports treat it: how wide it is, and what it can take."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

import click

PAPER_COLUMNS = 80
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
_FORMS = {"--json": "json", "--csv": "csv", "--markdown": "markdown", "--text": "text"}


class OutputError(click.ClickException):
    """Standard output took no more: one line on standard error, exit code 1."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        """One line."""
        click.echo(f"morimon: {self.message}", err=True)


@contextmanager
def standard_output() -> Iterator[None]:
    """Let a full disk below standard output be told in a line. (A reader that is gone is click's to handle.)"""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        with suppress(OSError, ValueError):  # what is still buffered would be tried again at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputError(f"standard output cannot be written: {error.strerror}.") from None


class OneForm(click.Command):
    """A command that prints in one form at a time."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse two forms, of which click would take the last."""
        asked: dict[str, str] = {}
        rest = iter(args)
        for arg in rest:
            if arg == "--":
                break
            if arg == "--format":
                asked[next(rest, "")] = arg
            elif arg.startswith("--format="):
                asked[arg.removeprefix("--format=")] = arg
            elif arg in _FORMS:
                asked[_FORMS[arg]] = arg
        if len(asked) > 1:
            raise click.UsageError(f"{' and '.join(asked.values())} exclude each other.", ctx=ctx)
        return super().parse_args(ctx, args)


def columns(least: int = PAPER_COLUMNS) -> int:
    """Width of a report: the terminal's, at least `least`; that of paper where there is no terminal."""
    if not sys.stdout.isatty():
        return PAPER_COLUMNS
    return max(shutil.get_terminal_size((PAPER_COLUMNS, 24)).columns, least)


def take_any_text() -> None:
    """Let characters that standard output's encoding lacks become "?" instead of an error."""
    if hasattr(sys.stdout, "reconfigure"):  # a stream that a caller put there may have none
        sys.stdout.reconfigure(errors="replace")
