"""`morimon trace`: kernel traces on paper, as text, JSON, CSV, Markdown, pictures, or one merged Perfetto file.

Exit codes: 0 every file was shown (what is damaged in one is said on top of it); 1 a file could not be, or none was
found; 2 bad usage.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from morimon.cli.paper import OneForm, columns, standard_output, take_any_text
from morimon.trace.load import load
from morimon.trace.model import NotATraceError, TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from morimon.report.trace_sheets import Table
    from morimon.trace.model import Trace

_QUIET_S = 0.5
_PICTURES = (".png", ".pdf", ".svg")


class TraceCommand(OneForm):
    """A command whose --png may stand alone: what follows it is its name only if it is called like a picture."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give --png its value, or an empty one."""
        out: list[str] = []
        rest = iter(args)
        for arg in rest:
            if arg == "--png":
                name = next(rest, None)
                is_name = name is not None and name.lower().endswith(_PICTURES)
                out.append(f"--png={name}" if is_name else "--png=")
                if name is None or is_name:
                    continue
                arg = name
            out.append(arg)
            if arg == "--":
                out += rest
        return super().parse_args(ctx, out)


@click.command("trace", cls=TraceCommand, short_help="Analyse trace files once.")
@click.argument("files", nargs=-1, required=True, metavar="FILE|FOLDER…")
@click.option("--json", "form", flag_value="json", help="A list of files as JSON.")
@click.option("--csv", "form", flag_value="csv", help="The table of --table as CSV.")
@click.option("--markdown", "form", flag_value="markdown", help="The report as Markdown.")
@click.option("--text", "form", flag_value="text", help="The report as text; the default without --merge.")
@click.option(
    "--table",
    type=click.Choice(["slots", "kernels", "iterations", "threads"]),
    default="slots",
    show_default=True,
    help="Which table --csv writes.",
)
@click.option("--every", is_flag=True, help="All iterations in full, however many there are.")
@click.option(
    "--png",
    metavar="[NAME]",
    help="A picture of the iterations: NAME (.png, .pdf, .svg), else <stem>.png, beside the trace.",
)
@click.option(
    "--merge", metavar="OUT.json", type=click.Path(path_type=Path), help="All ranks in one Perfetto file."
)
@click.option(
    "--gpu-per-node",
    type=click.IntRange(1),
    default=8,
    show_default=True,
    help="For --merge: ranks of a node.",
)
@standard_output()
def command(files: tuple[str, ...], **options: Any) -> None:
    """Analyse kernel traces: iterations, kernels, slots by role, threads, and what is wrong with a file.

    A folder stands for the traces in it, the newest run first.
    """
    take_any_text()
    form: str | None = options["form"]
    merge: Path | None = options["merge"]
    if form is None and merge is None:
        form = "text"
    paths = _paths(files)
    output = _Output(form, options["table"], every=options["every"], png=options["png"])
    if options["png"]:
        _refuse_one_name_for_two(paths, options["png"])
    if merge is not None and any(merge.resolve() == path.resolve() for path, _ in paths):
        raise click.UsageError(f"--merge {merge} would overwrite one of the traces.")
    kept: list[Trace] = []
    failed, aside = not paths, 0
    for path, from_folder in paths:
        try:
            trace = _load(path)
        except NotATraceError as error:
            if from_folder:
                aside += 1
            else:
                failed = True
                _say(str(error))
            continue
        except TraceError as error:
            failed = True
            _say(str(error))
            continue
        failed |= not output.show(trace)
        if merge is not None:
            kept.append(trace)
    output.close()
    if aside:
        _say(f"{aside} JSON {'files are no traces' if aside > 1 else 'file is no trace'}, set aside.")
    if not paths:
        _say(f"no traces in {', '.join(files)}.")
    if merge is not None:
        failed |= not _merge(kept, merge, options["gpu_per_node"])
    sys.exit(1 if failed else 0)


class _Output:
    """What is printed and drawn of each trace, one after the other, so that none has to be kept."""

    def __init__(self, form: str | None, table: Table, *, every: bool, png: str | None) -> None:
        self._form, self._table, self._every, self._png = form, table, every, png
        self._shown = 0
        self._sheets: list[Any] = []

    def show(self, trace: Trace) -> bool:
        """Print one trace; False if its picture could not be made."""
        match self._form:
            case "text":
                from morimon.report.trace_text import as_text

                _write("\n" * bool(self._shown) + as_text(trace, columns(), every=self._every))
            case "json":
                import msgspec

                from morimon.trace.summary import summary

                _write(("," if self._shown else "[") + "\n" + msgspec.json.encode(summary(trace)).decode())
            case "markdown":
                from morimon.report.trace_markdown import as_markdown

                _write("\n" * bool(self._shown) + as_markdown(trace))
            case "csv":
                from morimon.report.trace_sheets import sheet

                self._sheets.append(sheet(trace, self._table))
        self._shown += 1
        return self._png is None or self._draw(trace, self._png)

    def close(self) -> None:
        """Print what ends a document."""
        if self._form == "json":
            _write("\n]\n" if self._shown else "[]\n")
        elif self._form == "csv" and self._sheets:
            from morimon.report.trace_sheets import joined

            _write(joined(self._sheets).csv())

    def _draw(self, trace: Trace, name: str) -> bool:
        """Draw, and say where: on standard output unless that is a document for programs."""
        from morimon.report.trace_picture import PictureError, draw, target

        try:
            pages = draw(trace, target(trace.path, name), every=self._every)
        except PictureError as error:
            _say(str(error))
            return False
        for page in pages:
            click.echo(str(page), err=self._form not in ("text", None))
        return True


def _paths(names: Sequence[str]) -> list[tuple[Path, bool]]:
    """The files, each with whether a folder was named instead of it."""
    paths: list[tuple[Path, bool]] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            paths += [(file, True) for file in _in_folder(path)]
        else:
            paths.append((path, False))
    return list(dict.fromkeys(paths))


def _in_folder(folder: Path) -> Iterator[Path]:
    from morimon.feeds.listing import list_folder
    from morimon.feeds.traces import TraceFile, group_by_run
    from morimon.trace.names import file_name

    try:
        found = list_folder(folder)
    except OSError as error:
        raise click.UsageError(f"{folder} cannot be read: {error.strerror}.") from None
    for group in group_by_run(TraceFile(name, seen, file_name(name)) for name, seen in found.items()):
        for file in group.files:
            yield folder / file.name


def _load(path: Path) -> Trace:
    """The trace, with a progress bar on standard error when that takes long and is a terminal."""
    bar = _Bar(path.name)
    try:
        return load(path, bar.moved)
    except MemoryError:
        raise TraceError(f"{path}: there is not enough memory to load it.") from None
    finally:
        bar.close()


class _Bar:
    def __init__(self, name: str) -> None:
        self._name = name
        self._started = time.monotonic()
        self._bar: Any = None
        self._wanted = sys.stderr.isatty()

    def moved(self, done: int, total: int) -> None:
        if self._bar is None:
            if not self._wanted or time.monotonic() - self._started < _QUIET_S:
                return
            self._bar = click.progressbar(length=total, label=f"reading {self._name}", file=sys.stderr)
            self._bar.__enter__()
        self._bar.update(done - self._bar.pos)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)


def _refuse_one_name_for_two(paths: Sequence[tuple[Path, bool]], name: str) -> None:
    from morimon.report.trace_picture import target

    places = [target(str(path), name) for path, _ in paths]
    twice = next((place for place in places if places.count(place) > 1), None)
    if twice is not None:
        raise click.UsageError(
            f"--png {name}: several traces would be drawn into {twice}; leave the name out."
        )


def _merge(traces: Sequence[Trace], out: Path, gpu_per_node: int) -> bool:
    from morimon.trace.merge import write_merged

    if not traces:
        return False
    try:
        alignment = write_merged(traces, out, gpu_per_node)
    except TraceError as error:
        _say(str(error))
        return False
    ranks = len(alignment.processes)
    click.echo(f"{out}: {ranks} rank{'s' * (ranks != 1)}, {alignment.text}")
    return True


def _write(text: str) -> None:
    click.echo(text, nl=False)


def _say(text: str) -> None:
    click.echo(f"morimon: {text}", err=True)
