"""For terminals without UTF-8: whatever is painted, other people's text included, leaves morimon as ASCII."""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from morimon.draw.text import in_ascii


class AsciiFilter(LineFilter):
    """Puts lookalikes, or question marks, in the place of what such a terminal cannot show; cells stay where they are."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same segments in ASCII."""
        return [Segment(in_ascii(text), style, control) for text, style, control in segments]
