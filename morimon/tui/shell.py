"""The Textual app: one timer that looks at the run, the screens over it, and the actions that all screens share."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.filter import LineFilter
from textual.screen import Screen
from textual.widgets import Static

from morimon.draw.glyphs import ASCII, Glyphs
from morimon.draw.text import sanitised
from morimon.store.snapshot import RunSnapshot
from morimon.tui.bindings import bindings_of
from morimon.tui.keys import Key, keys_of, own_keys
from morimon.tui.options import Mode, Options
from morimon.tui.plain import AsciiFilter
from morimon.tui.replaying import ReplayActions
from morimon.tui.screens import SCREENS, ScreenInfo
from morimon.tui.screens.base import DataScreen
from morimon.tui.screens.dialogs import Choice, ChoiceDialog
from morimon.tui.screens.help import HelpScreen
from morimon.tui.source import LiveSource, ReplaySource, Source
from morimon.tui.taking import TakingActions
from morimon.tui.terminal import is_gone, renew_mouse
from morimon.tui.themes import DEFAULT, DEFAULT_ANSI, Palette, changed, load_themes
from morimon.tui.widgets.lines import LinesView
from morimon.views.status import Viewing

TERMINAL_CHECK_S = 2.0
THEME_CHECK_S = 1.0
RUN_CHECK_S = 1.0
HURRY_S = 0.02
"""Pause for keys between two pieces of a record that there is much of."""


class MorimonApp(TakingActions, ReplayActions, inherit_bindings=False):
    """Shows one run. `snapshot` is what screens read: the newest, or the one that pausing froze."""

    TITLE = "morimon"
    CSS = """
    SearchIcon { display: none; }
    ToastRack { margin-bottom: 2; }
    Toast { max-height: 8; }
    .-ascii Container, .-ascii #--container, .-ascii #--input, .-ascii Toast { border: ascii $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("app", "screens", "replay")
    COMMAND_PALETTE_BINDING = "ctrl+p"

    def __init__(self, source: Source, folder: Path, mode: Mode, options: Options, glyphs: Glyphs) -> None:
        no_color = "NO_COLOR" in os.environ
        super().__init__(ansi_color=True if no_color else None)
        self.source = source
        self.folder = folder
        self.options = options
        self.glyphs = glyphs
        self._ascii_only = (AsciiFilter(),) if glyphs.name == ASCII.name else ()
        self._mode = mode
        self._frozen: RunSnapshot | None = None
        self._hurries = False
        self._themes = load_themes(options.themes_dir)
        few_colors = no_color or self.console.color_system in (None, "standard")
        wanted = options.theme if options.theme != "auto" else DEFAULT_ANSI if few_colors else DEFAULT
        self.palette: Palette = self._themes.palettes.get(wanted) or self._themes.palettes[DEFAULT]
        self.register_theme(self.palette.textual)
        # Now, as long as there are no rules: whatever changes the theme later has all of them parsed again.
        self.theme = self.palette.textual.name
        self._unknown_theme = wanted if wanted not in self._themes.palettes else None
        self.screens = tuple(screen for screen in SCREENS if mode != "watch" or not screen.needs_run)
        for screen in self.screens:
            self.add_mode(screen.name, partial(_make_screen, screen))
        self.set_keymap(own_keys(options.keys))

    # What screens read.

    @property
    def snapshot(self) -> RunSnapshot:
        """The run as the person sees it."""
        return self._frozen if self._frozen is not None else self.source.snapshot

    @property
    def viewing(self) -> Viewing:
        """How the person looks at the run."""
        source, loading = self.source, self.source.loading
        if isinstance(source, ReplaySource):
            return Viewing(
                "replay",
                source.paused,
                0.0,
                source.speed,
                round(source.position_s, 1),
                source.length_s,
                loading,
            )
        newest = source.snapshot
        if self._frozen is not None:
            behind_s = float(int(newest.elapsed_s - self._frozen.elapsed_s))
            return Viewing(self._mode, paused=True, behind_s=behind_s, loading=loading)
        elapsed_s = None
        if self._is_going and newest.started_unix_ns is not None:
            elapsed_s = float((time.time_ns() - newest.started_unix_ns) // 1_000_000_000)
        return Viewing(self._mode, loading=loading, elapsed_s=elapsed_s)

    def scopes_of(self, screen: str) -> tuple[str, ...]:
        """The scopes whose keys mean something on this screen now."""
        replay = ("replay",) if isinstance(self.source, ReplaySource) else ()
        return (screen, *replay, "view", "app", "screens")

    def keys_of(self, *scopes: str) -> list[Key]:
        """The keys of these scopes that can be used here, the person's own in place of the built-in ones."""
        there = {f"screen.{screen.name}" for screen in self.screens}
        keys = keys_of(scopes, self.options.keys)
        return [key for key in keys if key.id in there or not key.id.startswith("screen.")]

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What every line goes through before it is written."""
        return [*super().get_line_filters(), *self._ascii_only]

    # Life.

    def compose(self) -> ComposeResult:
        """A line to look at while the first screen is being imported: that of a watched folder needs numpy."""
        if self._mode == "watch":
            yield Static(f" watching {sanitised(str(self.folder))}", markup=False)

    async def on_mount(self) -> None:
        """Take the theme, the signals and the first screen."""
        self.set_class(self.glyphs.name == ASCII.name, "-ascii")
        self._report_themes()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.exit, 128 + number)
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        self.source.poll(time.monotonic())
        if self._mode == "watch":
            self.call_after_refresh(self.switch_mode, self.options.start_screen)
        else:
            await self.switch_mode(self.options.start_screen)
        self.set_interval(1 / self.options.refresh_hz, self.tick)
        self.call_later(self.tick)
        self.set_interval(THEME_CHECK_S, self._look_at_themes)
        self.set_interval(RUN_CHECK_S, self._look_after_run)
        if not self.is_headless:
            self.set_interval(TERMINAL_CHECK_S, self._look_at_terminal)

    def on_app_focus(self) -> None:
        """A terminal that was away (tmux, SSH) may have forgotten how to report the mouse."""
        if self._driver is not None:
            renew_mouse(self._driver)

    def on_unmount(self) -> None:
        """Give files back."""
        self.source.close()

    def tick(self) -> None:
        """Look at the run; the screen in sight repaints where it changed, the others do nothing."""
        try:
            self.source.poll(time.monotonic())
        except OSError as error:
            self.exit(1, message=f"morimon: the record cannot be read any more: {error}")
            return
        if self.screen_stack and isinstance(self.screen, DataScreen):
            self.screen.tick()
        if self.source.is_behind and not self._hurries:
            self._hurries = True
            self.set_timer(HURRY_S, self._hurry)

    def _hurry(self) -> None:
        self._hurries = False
        self.tick()

    async def _look_after_run(self) -> None:
        """Ask whoever opened the screens whether the record is still written."""
        look, source = self.options.look_after, self.source
        if look is None or not isinstance(source, LiveSource) or not self._is_going:
            return
        why = await asyncio.to_thread(look)
        if why is not None and self._is_going:
            source.lose(why)
            self.say(why, "error")

    @property
    def _is_going(self) -> bool:
        return self.source.snapshot.state in ("starting", "running", "stopping")

    def _look_at_terminal(self) -> None:
        if is_gone():
            self.exit(128 + signal.SIGHUP)

    # Themes.

    def _take_theme(self, palette: Palette) -> None:
        self.palette = palette
        self.register_theme(palette.textual)
        if self.theme == palette.textual.name:  # its file has changed: Textual sees new names only
            self.mutate_reactive(MorimonApp.theme)
        else:
            self.theme = palette.textual.name
        for stack in self._screen_stacks.values():
            for screen in stack:
                for view in screen.query(LinesView):
                    view.use(palette)

    def _report_themes(self) -> None:
        if self._unknown_theme is not None:
            names = ", ".join(self._themes.palettes)
            self.say(f"There is no theme {self._unknown_theme}; there are {names}.", "warning")
            self._unknown_theme = None
        for error in self._themes.errors:
            self.say(error, "warning")

    def _look_at_themes(self) -> None:
        if changed(self._themes, self.options.themes_dir):
            self._themes = load_themes(self.options.themes_dir)
            self._report_themes()
            self._take_theme(self._themes.palettes.get(self.palette.name, self.palette))

    def action_next_theme(self) -> None:
        """Take the next theme."""
        names = list(self._themes.palettes)
        at = names.index(self.palette.name) if self.palette.name in names else -1
        self.action_use_theme(names[(at + 1) % len(names)])

    def action_use_theme(self, name: str) -> None:
        """Take this theme."""
        self._take_theme(self._themes.palettes[name])
        self.say(f"theme {name}")

    # Screens.

    async def action_open_screen(self, name: str) -> None:
        """Go to a screen."""
        known = any(screen.name == name for screen in self.screens)
        if isinstance(self.screen, DataScreen) and known and name != self.current_mode:
            await self.switch_mode(name)

    async def action_next_screen(self, by: int) -> None:
        """Go to a neighbour of the screen in sight."""
        names = [screen.name for screen in self.screens]
        if self.current_mode in names:
            await self.action_open_screen(names[(names.index(self.current_mode) + by) % len(names)])

    async def open_log(self, rank: int | None) -> None:
        """Show the log of one rank."""
        from morimon.tui.screens.log import LogScreen

        await self.action_open_screen("log")
        if isinstance(self.screen, LogScreen):
            self.screen.choose_rank(rank)

    def action_help(self) -> None:
        """Explain the screen in sight: its columns, and all keys that mean something on it."""
        if isinstance(self.screen, DataScreen):
            self.push_screen(HelpScreen(self.screen, self))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette's commands: whatever has a key, and the themes."""
        for key in self.keys_of(*self.scopes_of(self.current_mode)):
            if key.id != "palette":
                yield SystemCommand(key.help, f"key {key.keys}", partial(screen.run_action, key.action))
        for name in self._themes.palettes:
            yield SystemCommand(f"Theme: {name}", "Use this theme", partial(self.action_use_theme, name))

    # Leaving.

    def action_quit_viewer(self) -> None:
        """Leave at once where there is nothing to stop, else ask."""
        if self._mode in ("replay", "watch") or not self._is_going:
            self.exit(0)
            return
        choices = [Choice("d", "detach: the job goes on, `morimon attach` shows it again", "detach")]
        if self.options.on_stop is not None:
            stopping = self.source.snapshot.state == "stopping"
            choices.append(
                Choice(
                    "s",
                    "kill what is left of it" if stopping else "stop the job",
                    "force" if stopping else "stop",
                )
            )
        self.push_screen(ChoiceDialog("The job is running. Leave it?", choices, self.palette), self._leave)

    def _leave(self, answer: str | None) -> None:
        if answer == "detach":
            self.exit(0)
        elif answer in ("stop", "force") and self.options.on_stop is not None:
            self.options.on_stop(answer == "force")
            self.say("Stopping the job: it has 30 s to end by itself; q again for more.")

    # Pausing and replay.

    def action_pause(self) -> None:
        """Freeze or go on."""
        if isinstance(self.source, ReplaySource):
            self.toggle_replay(self.source)
        else:
            self._frozen = None if self._frozen is not None else self.source.snapshot
        self.tick()

    def action_redraw(self) -> None:
        """Paint everything anew."""
        for view in self.screen.query(LinesView):
            view.refresh()


def _make_screen(info: ScreenInfo) -> Screen[None]:
    screen: Screen[None] = getattr(import_module(info.module), info.class_name)()
    return screen
