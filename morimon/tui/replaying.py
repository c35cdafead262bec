"""The actions of a replay: play and pause, speed, steps, going to a place."""

from __future__ import annotations

from textual.app import App

from morimon.tui.screens.base import DataScreen
from morimon.tui.source import ReplaySource, Source, parse_position

SLOWEST, FASTEST = 1 / 16, 256.0


class ReplayActions(App[int], inherit_bindings=False):
    """What the keys of the scope "replay" do; they do nothing where the source is no replay."""

    source: Source

    def tick(self) -> None:
        """Look at the source and repaint."""
        raise NotImplementedError

    def toggle_replay(self, source: ReplaySource) -> None:
        """Play or pause; playing at the end begins anew."""
        if source.paused and source.position_s >= source.length_s:
            source.seek(0.0)
        source.paused = not source.paused

    def action_replay_speed(self, factor: float) -> None:
        """Faster or slower."""
        if isinstance(self.source, ReplaySource):
            self.source.speed = min(max(self.source.speed * factor, SLOWEST), FASTEST)
            self.tick()

    def action_replay_step(self, rounds: int) -> None:
        """A round on or back."""
        if isinstance(self.source, ReplaySource):
            self.source.step(rounds)
            self.tick()

    def action_replay_seek(self, seconds: float) -> None:
        """Seconds on or back."""
        if isinstance(self.source, ReplaySource):
            self.source.seek(self.source.position_s + seconds)
            self.tick()

    async def action_replay_goto(self) -> None:
        """Ask where to go."""
        if isinstance(self.source, ReplaySource) and isinstance(self.screen, DataScreen):
            await self.screen.ask("goto", "", "1:30   45%   #12 (a round)")

    def entered(self, purpose: str, text: str) -> str | None:
        """What was typed into a prompt that is not a screen's own; a sentence where it means nothing."""
        if purpose != "goto" or not isinstance(self.source, ReplaySource):
            return None
        position = parse_position(text, self.source)
        if position is None:
            return f"'{text}' is no place in this recording: a time (1:30), a share (45%) or a round (#12)"
        self.source.seek(position)
        return None
