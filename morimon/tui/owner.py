"""What a screen may ask of the app that owns it: the run, the person's choices, and a few things to do for it.

Screens know this protocol and not the app, so that the app may know the screens.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from morimon.draw.glyphs import Glyphs
from morimon.store.snapshot import RunSnapshot
from morimon.tui.keys import Key
from morimon.tui.options import Options
from morimon.tui.screens import ScreenInfo
from morimon.tui.themes import Palette
from morimon.views.status import Viewing

Severity: TypeAlias = Literal["information", "warning", "error"]


class Owner(Protocol):
    """The app as its screens see it."""

    folder: Path
    """The run's folder, or the folder of traces that is watched."""
    options: Options
    glyphs: Glyphs
    palette: Palette
    screens: tuple[ScreenInfo, ...]
    """Those that have something to show."""

    @property
    def snapshot(self) -> RunSnapshot:
        """The run as the person sees it."""
        ...

    @property
    def viewing(self) -> Viewing:
        """How the person looks at the run."""
        ...

    def scopes_of(self, screen: str) -> Sequence[str]:
        """The scopes whose keys mean something on this screen now."""
        ...

    def keys_of(self, *scopes: str) -> list[Key]:
        """The keys of these scopes that can be used here, the person's own in place of the built-in ones."""
        ...

    def say(self, text: str, severity: Severity = "information") -> None:
        """Tell the person something, for a few seconds."""
        ...

    def entered(self, purpose: str, text: str) -> str | None:
        """Take what was typed into a prompt that is not the screen's own; a sentence where it means nothing."""
        ...

    async def open_log(self, rank: int | None) -> None:
        """Show the log of one rank, or of all."""
        ...
