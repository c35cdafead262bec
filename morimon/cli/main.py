"""The `morimon` command: a group whose commands are imported when they are called, so that `--help` stays quick."""

from __future__ import annotations

from importlib import import_module

import click

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


class LazyGroup(click.Group):
    """A group that knows its commands' names and summaries without importing them."""

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
