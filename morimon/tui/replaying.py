"""The replay's controls: what the keys of a replay do to its source."""

from __future__ import annotations

from morimon.tui.source import ReplaySource, parse_position

SLOWEST, FASTEST = 1 / 16, 256.0


def change_speed(source: ReplaySource, factor: float) -> None:
    """Multiply the speed, within bounds."""
    source.speed = min(max(source.speed * factor, SLOWEST), FASTEST)


def toggle(source: ReplaySource) -> None:
    """Play or pause; playing at the end begins anew."""
    if source.paused and source.position_s >= source.length_s:
        source.seek(0.0)
    source.paused = not source.paused


def go_to(source: ReplaySource, text: str) -> str | None:
    """Go where the person typed; a sentence where that is no place."""
    position = parse_position(text, source)
    if position is None:
        return f"“{text}” is no place in this recording: a time (1:30), a share (45%) or a round (#12)"
    source.seek(position)
    return None
