"""Bars over one axis from 0, with the line rate as a vertical rule through all of them."""

from __future__ import annotations

from dataclasses import dataclass

from morimon.draw.axis import Axis
from morimon.draw.charts import bar
from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run, merged
from morimon.draw.units import number

_TICK_GAP = 2


@dataclass(frozen=True, slots=True)
class Scale:
    """Room for bars: an axis from 0, the cells across, and where the rule stands, if anywhere."""

    axis: Axis
    width: int
    line_gbps: float | None
    glyphs: Glyphs

    @property
    def rule_at(self) -> int | None:
        """The cell of the rule; None where there is no line rate or no room for it on the axis."""
        if self.line_gbps is None or self.line_gbps > self.axis.high:
            return None
        return min(round(self.line_gbps / self.axis.high * self.width), self.width - 1)

    def bar(self, value: float | None, role: Role) -> Line:
        """A bar with the rule drawn over it; what passes the rule lies on both of its sides."""
        text, at = bar(value, self.axis.high, self.width, self.glyphs), self.rule_at
        if at is None:
            return (Run(text, role),)
        return merged([Run(text[:at], role), Run(self.glyphs.bar, "title"), Run(text[at + 1 :], role)])

    def ticks(self) -> Line:
        """The axis' figures over the bars, as many as have room; the rule's own first."""
        cells = [" "] * self.width
        roles: list[Role] = ["dim"] * self.width
        if self.rule_at is not None and self.line_gbps is not None:
            self._place(cells, roles, f"{self.line_gbps:g}", self.rule_at, "title")
        steps = round(self.axis.high / self.axis.step)
        for step in range(steps + 1):
            value = step * self.axis.step
            at = round(value / self.axis.high * self.width)
            self._place(cells, roles, number(value, self.axis.decimals, self.glyphs), at, "dim")
        return merged([Run(cell, role) for cell, role in zip(cells, roles, strict=True)])

    def _place(self, cells: list[str], roles: list[Role], text: str, at: int, role: Role) -> None:
        start = min(max(at - len(text) // 2, 0), self.width - len(text))
        around = cells[max(start - _TICK_GAP, 0) : start + len(text) + _TICK_GAP]
        if start < 0 or any(cell != " " for cell in around):
            return
        for offset, char in enumerate(text):
            cells[start + offset], roles[start + offset] = char, role
