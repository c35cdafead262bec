"""`morimon watch`: a folder is followed, and every new trace becomes lanes and tables.

Exit codes: 0 left, or with --once every trace was shown; 1 with --once a file could not be shown or none was found;
2 bad usage; 130 ended by a signal.
"""

from __future__ import annotations

import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

import click

from morimon.cli.paper import columns, standard_output, take_any_text
from morimon.cli.screen import screen_options
from morimon.tui.options import Options

if TYPE_CHECKING:
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command("watch", short_help="Follow a folder of traces.")
@click.argument("folder", default=".", metavar="[DIR]", type=click.Path(path_type=Path, file_okay=False))
@click.option("--once", is_flag=True, help="Show what is there, wait for files that grow, and end.")
@click.option(
    "--json", "as_json", is_flag=True, help="An object a line; with --once a list as of morimon trace."
)
@click.option("--headless", is_flag=True, help="Lines instead of screens, also on a terminal.")
@click.option("--polling", is_flag=True, help="Look by the clock instead of waiting for file events.")
@click.option(
    "--settle",
    type=click.FloatRange(min=0),
    default=Options().settle_s,
    show_default=True,
    metavar="SECONDS",
    help="A file that is not whole and has not grown for so long is shown as half-written.",
)
@screen_options
@standard_output()
def command(folder: Path, once: bool, as_json: bool, headless: bool, polling: bool, settle: float) -> None:
    """Follow the traces in a folder (by default the current one)."""
    if not (once or as_json or headless) and sys.stdin.isatty() and sys.stdout.isatty():
        _open_screen(folder, polling=polling, settle_s=settle)
    _follow(folder, once=once, as_json=as_json, polling=polling, settle_s=settle)


def _open_screen(folder: Path, *, polling: bool, settle_s: float) -> NoReturn:
    """The Trace screen on the folder, until the person leaves."""
    from morimon.cli.screen import chosen_options
    from morimon.cli.settings import SettingsError
    from morimon.tui.app import show

    try:
        folder.stat()
        options = chosen_options(None)
    except (OSError, SettingsError) as error:
        raise click.UsageError(str(error)) from None
    options = replace(options, start_screen="trace", polling=polling, settle_s=settle_s)
    sys.exit(show(folder.resolve(), "watch", options))


def _follow(folder: Path, *, once: bool, as_json: bool, polling: bool, settle_s: float) -> NoReturn:
    """Lines on standard output, to the end or a signal."""
    from morimon.feeds.trace_folder import TraceFolder
    from morimon.report.trace_follow import FolderReporter

    take_any_text()
    traces = TraceFolder(folder, polling=polling, settle_s=settle_s)
    over = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        over.set()

    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, and background jobs of a plain shell
            signal.signal(number, end)
    try:
        traces.start()
    except OSError as error:
        raise click.UsageError(f"{folder} cannot be read: {error.strerror or error}.") from None
    form: Literal["text", "list", "lines"] = "text" if not as_json else "list" if once else "lines"
    reporter = FolderReporter(traces, form, sys.stdout, sys.stderr, over.is_set, columns())
    try:
        reporter.follow(once=once)
    finally:
        traces.close()
    if over.is_set():
        sys.exit(130)
    sys.exit(1 if reporter.failures or not reporter.shown else 0)
