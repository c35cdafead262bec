"""`morimon run`: start a job of the built-in benchmark, of a script or of a whole command, and show it."""

from __future__ import annotations

import sys

import click

from morimon.cli.headless import Refused, leave, open_screens, report, wants_screen
from morimon.cli.screen import screen_options
from morimon.hub.launch import LaunchError, LaunchSpec, infer_kind, start
from morimon.report.follow import living
from morimon.report.reporters import say
from morimon.report.stopping import StopOnSignals
from morimon.runs.folder import RunFolder, default_runs_dir

_AFTER = "morimon.after_dashes"
DEFAULT_NPROC = 8


class RunCommand(click.Command):
    """A command that keeps what stands after `--` apart: there begins the user's own script or command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split at the first `--`."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[_AFTER] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The built-in job's own options."""
        from morimon.bench.options import help_text

        super().format_epilog(ctx, formatter)
        formatter.write(f"\n{help_text()}\n")


@click.command(
    cls=RunCommand,
    context_settings={"ignore_unknown_options": True},
    epilog="Without -- the built-in job runs; its options are:",
)
@click.option("--nproc", type=int, help="Ranks on this node: 8 of the built-in job, 1 of a script.")
@click.option("--headless", is_flag=True, help="Lines instead of screens, also on a terminal.")
@click.option("--json", "as_json", is_flag=True, help="One object a line instead of text; see docs/json.md.")
@click.option("--python", metavar="PATH", help="Interpreter of a script; by default the `python` on PATH.")
@screen_options
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF THE JOB] [-- SCRIPT ARGS…]")
@click.pass_context
def command(
    ctx: click.Context,
    nproc: int | None,
    headless: bool,
    as_json: bool,
    python: str | None,
    options: tuple[str, ...],
) -> None:
    """Start a torchrun job and show it live.

    \b
    morimon run --nproc 8 --rounds 100               the built-in job
    morimon run --nproc 8 -- train.py --steps 10     your script, started by torchrun
    morimon run --nnodes 2 --rdzv-endpoint h:1 -- train.py     torchrun's options go before --
    morimon run -- torchrun --nproc-per-node 8 train.py        a whole command, as it stands
    """
    spec = launch_spec(ctx.meta.get(_AFTER), nproc, python, options)
    on_screen = wants_screen(headless=headless, as_json=as_json)
    with StopOnSignals() as stopping:
        folder = _start(spec)
        stopping.owns(folder)
        if not on_screen:
            say(sys.stderr, f"run {folder.run_id} is recorded in {folder.path}; Ctrl+C stops the job.")
            try:
                snapshot = report(living(folder), folder.path, as_json=as_json)
            except BrokenPipeError:
                stopping.stop("Nobody reads the output any more")
                raise
            leave(snapshot, interrupted=stopping.count > 0)
    open_screens(folder, "live")


def launch_spec(
    after: tuple[str, ...] | None, nproc: int | None, python: str | None, options: tuple[str, ...]
) -> LaunchSpec:
    """What to start; Refused where that is known to fail."""
    if nproc is not None and nproc < 1:
        raise Refused(f"A job needs at least one rank; --nproc {nproc} asks for none.")
    if after is None:
        from morimon.bench.options import OptionsError, parse

        ranks = DEFAULT_NPROC if nproc is None else nproc
        try:
            parse(options, ranks)
        except OptionsError as error:
            raise Refused(str(error)) from None
        if python is not None:
            raise Refused(
                "The built-in job runs in morimon's own interpreter: --python is for scripts after --."
            )
        return LaunchSpec(kind="builtin", argv=options, nproc=ranks)
    if not after:
        raise Refused("There is no script or command after --.")
    if infer_kind(after) == "command":
        return LaunchSpec(kind="command", argv=after, nproc=nproc, torchrun_options=options, python=python)
    return LaunchSpec(kind="script", argv=after, nproc=nproc or 1, torchrun_options=options, python=python)


def _start(spec: LaunchSpec) -> RunFolder:
    try:
        return start(spec, default_runs_dir())
    except LaunchError as error:
        raise Refused(str(error)) from None
