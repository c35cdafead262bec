"""The options that all commands with screens share, and what they and the settings file come to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from morimon.cli.pictures import picture_of
from morimon.cli.settings import load
from morimon.tui.options import Options
from morimon.views.line_rates import LineRates

_META = "morimon.screen"
AnyCallable = TypeVar("AnyCallable", bound=Callable[..., Any])

_ABOVE_0 = click.FloatRange(min=0, min_open=True)
_OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("--theme",), {"metavar": "NAME", "help": "Theme of the screens."}),
    (
        ("--color",),
        {"type": click.Choice(["auto", "16", "256", "true", "never"]), "help": "Colours of the screens."},
    ),
    (("--ascii/--unicode", "plain"), {"default": None, "help": "Characters to draw with."}),
    (("--mouse/--no-mouse",), {"default": None, "help": "Use the mouse, or leave it to the terminal."}),
    (
        ("--rdma-line-gbps",),
        {"type": _ABOVE_0, "help": "Line rate of a rank's network port in GB/s (10⁹ bytes/s)."},
    ),
    (("--xgmi-line-gbps",), {"type": _ABOVE_0, "help": "The same for XGMI or NVLink."}),
)


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value is not None and param.name is not None:
        ctx.meta.setdefault(_META, {})[param.name] = value


def screen_options(command: AnyCallable) -> AnyCallable:
    """Decorator: --theme, --color, --ascii, --mouse, --rdma-line-gbps, --xgmi-line-gbps; their values go to `chosen_options`, not to the command."""
    for name, more in reversed(_OPTIONS):
        command = click.option(*name, expose_value=False, callback=_remember, **more)(command)
    return command


def chosen_options(
    on_stop: Callable[[bool], object] | None = None, look_after: Callable[[], str | None] | None = None
) -> Options:
    """The options in force: settings file, environment, command line. SettingsError where they cannot be used."""
    context = click.get_current_context(silent=True)
    given = context.meta.get(_META, {}) if context is not None else {}
    loaded = load(os.environ)
    settings = loaded.settings
    plain = given.get("plain", {"auto": None, "ascii": True, "unicode": False}[settings.glyphs])
    return Options(
        theme=given.get("theme", settings.theme),
        color=given.get("color", settings.color),
        ascii=plain,
        mouse=given.get("mouse", settings.mouse),
        refresh_hz=settings.refresh_hz,
        keys=settings.keys,
        themes_dir=loaded.themes_dir,
        export_dir=Path(settings.export_dir).expanduser() if settings.export_dir else None,
        on_stop=on_stop,
        draw_trace=picture_of,
        look_after=look_after,
        line_rates=LineRates(
            given.get("rdma_line_gbps", settings.rdma_line_gbps) or None,
            given.get("xgmi_line_gbps", settings.xgmi_line_gbps) or None,
        ),
    )
