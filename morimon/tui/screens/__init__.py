"""The screens by name, imported when they are first looked at.

A new screen is a pure view in `morimon.views`, a `DataScreen` here, a line in `SCREENS`, and its keys in
`morimon.tui.keys.SCOPES` under the same name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScreenInfo:
    """Name (also its key scope), the key that opens it, its title, and where its class is."""

    name: str
    key: str
    title: str
    module: str
    class_name: str
    needs_run: bool = True
    """Whether it shows a run, and so has nothing to show where only a folder is watched."""
    short: str = ""
    """The title where there is little room, if it is shorter."""


SCREENS: tuple[ScreenInfo, ...] = (
    ScreenInfo("ranks", "1", "Ranks", "morimon.tui.screens.ranks", "RanksScreen"),
    ScreenInfo("trace", "2", "Trace", "morimon.tui.screens.trace", "TraceScreen", needs_run=False),
    ScreenInfo("bandwidth", "3", "Bandwidth", "morimon.tui.screens.bandwidth", "BandwidthScreen", short="BW"),
    ScreenInfo("traffic", "4", "Traffic", "morimon.tui.screens.traffic", "TrafficScreen", short="Traf"),
    ScreenInfo("system", "5", "System", "morimon.tui.screens.system", "SystemScreen", short="Sys"),
    ScreenInfo("log", "6", "Log", "morimon.tui.screens.log", "LogScreen"),
)
