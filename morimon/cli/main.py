"""The `morimon` command: a group whose commands are imported when they are called, so that `--help` stays quick."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from morimon import __version__

# name -> one line of help; the command itself is `command` in morimon.cli.<name>
COMMANDS = {
    "run": "Start a torchrun job and show it live.",
    "attach": "Show a job that already runs.",
    "replay": "Show a recorded run again.",
    "runs": "List recorded and running jobs, or prune them.",
    "watch": "Follow a folder: every new trace becomes lanes and tables.",
    "trace": "Analyse trace files once: text, JSON, CSV, picture, merged Perfetto file.",
    "tokens": "Predict who receives how much for a routing configuration.",
    "config": "Show the settings in force, or where they live.",
}


USAGE, INTERRUPTED = 2, 130
"""Exit codes, as in morimon.report.exits, which is not imported for `--help`."""


class LazyGroup(click.Group):
    """A group that knows its commands' names and summaries without importing them."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and end the process; what cannot be used is told in one line."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            os.getcwd()  # noqa: PTH109 - pathlib takes longer to import than `--help` should
        except OSError:
            click.echo(
                "morimon: The folder that this was started in is gone; change to another one.", err=True
            )
            sys.exit(USAGE)
        try:
            super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except NoArgsIsHelpError as error:
            error.show()
            sys.exit(USAGE)
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx else "morimon"
            message = " ".join(error.format_message().split())
            click.echo(f"morimon: {message} `{command} --help` tells more.", err=True)
            sys.exit(USAGE)
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(INTERRUPTED)
        sys.exit(0)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"morimon.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table above."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="morimon")
def cli() -> None:
    """Watch expert-parallel dispatch/combine jobs and their kernel traces in a terminal."""
