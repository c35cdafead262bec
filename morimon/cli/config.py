"""`morimon config`: the settings in force and where each comes from; where the file is."""

from __future__ import annotations

import os
import textwrap

import click
import msgspec

from morimon.cli.settings import Loaded, SettingsError, config_path, load, manual


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show the settings in force (`show`, the default), or where they live (`path`)."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(show)


@command.command()
def show() -> None:
    """Print all settings as a TOML file, each with what it does and where its value comes from."""
    try:
        loaded = load(os.environ)
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    click.echo(as_toml(loaded), nl=False)


@command.command()
def path() -> None:
    """Print where the settings file is, or would be."""
    click.echo(config_path(os.environ))


def as_toml(loaded: Loaded) -> str:
    """The settings as a file that `load` reads back to the same settings."""
    texts = manual()
    lines = [
        f"# {loaded.path}"
        if loaded.path.exists()
        else f"# {loaded.path} does not exist: all settings are defaults"
    ]
    for name in loaded.settings.__struct_fields__:
        value = getattr(loaded.settings, name)
        lines += ["", *(f"# {line}" for line in textwrap.wrap(texts[name], 100))]
        if (origin := loaded.origins[name]) != "default":
            lines.append(f"# from {origin}")
        if isinstance(value, dict):
            lines.append(f"[{name}]")
            lines += [f"{_toml(key)} = {_toml(keys)}" for key, keys in value.items()]
        else:
            lines.append(f"{name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: str | float | bool) -> str:
    """A value as TOML writes it; for these types that is JSON."""
    return msgspec.json.encode(value).decode()
