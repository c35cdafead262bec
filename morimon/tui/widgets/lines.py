"""The one widget that shows pages: styled lines by Textual's Line API, repainted only where they differ.

`show` compares the page's lines in sight with those that were painted last and asks Textual to paint the cells that
differ; an equal page paints nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from morimon.draw.line import Line, halves, last_difference, plain
from morimon.draw.page import Page, fitted
from morimon.tui.messages import RoomChanged, RowClicked, SpotClicked, Wheel
from morimon.tui.themes import Palette

WHEEL_ROWS = 3


@dataclass(frozen=True, slots=True)
class _Row:
    """What stands in one row of the screen."""

    line: Line = ()
    on_cursor: bool = False


class LinesView(Widget):
    """Shows a page: its head on top, its foot at the bottom, and as much of its body as fits between them."""

    DEFAULT_CSS = "LinesView { width: 1fr; height: 1fr; background: $background; color: $foreground; }"

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette
        self._styles: tuple[_Styles, _Styles] | None = None
        self._page = Page()
        self._rows: list[_Row] = []
        self._strips: dict[int, Strip] = {}
        self._top = 0

    @property
    def page(self) -> Page:
        """What is shown."""
        return self._page

    @property
    def body_height(self) -> int:
        """Rows of the body that are in sight."""
        return max(self.size.height - len(self._page.head) - len(self._page.foot), 0)

    @property
    def top(self) -> int:
        """The first row of the body that is in sight."""
        return self._top

    def use(self, palette: Palette) -> None:
        """Take other styles."""
        self._palette = palette
        self._forget_styles()
        self.refresh()

    def show(self, page: Page) -> int:
        """Show this page; returns how many rows are painted for it."""
        self._page = page
        self._scroll_to_cursor()
        rows = self._visible()
        regions: list[Region] = []
        for y, row in enumerate(rows):
            before = self._rows[y] if y < len(self._rows) else None
            if before != row:
                self._strips.pop(y, None)
                regions.append(_changed(before, row, y, self.size.width))
        if len(rows) != len(self._rows):
            regions = [Region(0, 0, self.size.width, self.size.height)]
            self._strips.clear()
        self._rows = rows
        if regions:
            if self.text_selection is not None:
                self.screen.clear_selection()
            self.refresh(*regions)
        return len(regions)

    def scroll_rows(self, rows: int) -> None:
        """Move the body without a cursor by so many rows."""
        self._top = min(max(self._top + rows, 0), max(len(self._page.body) - self.body_height, 0))
        self.show(self._page)

    def row_text(self, row: int) -> str:
        """The text of one row of the body."""
        return plain(self._page.body.line(row))

    def text(self) -> str:
        """All that is in sight, as plain text."""
        return "\n".join(plain(row.line) for row in self._rows)

    def _scroll_to_cursor(self) -> None:
        height, count, cursor = self.body_height, len(self._page.body), self._page.cursor
        if cursor is not None:
            self._top = min(self._top, cursor)
            self._top = max(self._top, cursor - height + 1)
        self._top = max(min(self._top, count - height), 0)

    def _visible(self) -> list[_Row]:
        page, size = self._page, self.size
        head = [_Row(line) for line in page.head[: size.height]]
        foot = [_Row(line) for line in page.foot[max(len(page.foot) - (size.height - len(head)), 0) :]]
        room = size.height - len(head) - len(foot)
        rows = range(self._top, min(self._top + room, len(page.body)))
        body = [_Row(page.body.line(row), row == page.cursor) for row in rows]
        return [*head, *body, *[_Row()] * (room - len(body)), *foot]

    def render_line(self, y: int) -> Strip:
        """One row, from the cache where nothing changed."""
        strip = self._strips.get(y)
        if strip is None:
            strip = self._strips[y] = self._strip(y)
        return strip

    def _strip(self, y: int) -> Strip:
        width = self.size.width
        row = self._rows[y] if y < len(self._rows) else _Row()
        if self._styles is None:
            ground = self.rich_style
            colours = self._palette.styles
            self._styles = (
                _Styles(ground, colours, colours),
                _Styles(ground, self._palette.on_cursor, colours),
            )
        styles = self._styles[row.on_cursor]
        strip = Strip(_segments(fitted(row.line, width), styles)).adjust_cell_length(width, styles["text"])
        if (selection := self.text_selection) is not None and (span := selection.get_span(y)) is not None:
            strip = _highlighted(strip, span, width, self._palette.styles["selected"])
        return strip.apply_offsets(0, y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that the mouse selected."""
        return selection.extract("\n".join("".join(run.text for run in row.line) for row in self._rows)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Paint the selection."""
        self._strips.clear()
        self.refresh()

    def notify_style_update(self) -> None:
        """Forget strips of the old styles."""
        super().notify_style_update()
        self._forget_styles()

    def _forget_styles(self) -> None:
        self._styles = None
        self._strips.clear()

    def on_resize(self) -> None:
        """Ask for a page of the new size."""
        self._rows = []
        self._strips.clear()
        self.post_message(RoomChanged())

    def on_click(self, event: events.Click) -> None:
        """Say which row or spot was clicked."""
        x, y = event.x, event.y
        head, foot = len(self._page.head), len(self._page.foot)
        line = y - self.size.height if y >= self.size.height - foot else y
        for spot in self._page.spots:
            if spot.line == line and spot.start <= x < spot.end:
                self.post_message(SpotClicked(spot.action))
                return
        row = y - head + self._top
        if head <= y < self.size.height - foot and row < len(self._page.body):
            self.post_message(RowClicked(row))

    def on_mouse_scroll_down(self) -> None:
        """Say that the wheel went down."""
        self.post_message(Wheel(WHEEL_ROWS))

    def on_mouse_scroll_up(self) -> None:
        """Say that the wheel went up."""
        self.post_message(Wheel(-WHEEL_ROWS))


class _Styles(dict[str, Style]):
    """Styles by role on a ground; those of split cells are made from `colours` when they are first met."""

    def __init__(self, ground: Style, styles: Mapping[str, Style], colours: Mapping[str, Style]) -> None:
        super().__init__((role, ground + style) for role, style in styles.items())
        self._colours = colours

    def __missing__(self, role: str) -> Style:
        parts = halves(role)
        if parts is None:
            raise KeyError(role)
        left, right = (self._colours[part].bgcolor if part != "text" else None for part in parts)
        if left is None:  # the ground may be the terminal's own: its colour cannot be named, only left over
            style = self["text"] + Style(color=right, reverse=True)
        else:
            style = self["text"] + Style(color=left, bgcolor=right, reverse=False)
        self[role] = style
        return style


def _changed(before: _Row | None, after: _Row, y: int, width: int) -> Region:
    """The cells of a row to paint: up to the last one that differs.

    Textual paints a row from its beginning wherever the first difference is, so that nothing is gained on the left.
    """
    if before is None or before.on_cursor != after.on_cursor:
        return Region(0, y, width, 1)
    return Region(0, y, min(max(last_difference(before.line, after.line), 1), width), 1)


def _segments(line: Line, styles: Mapping[str, Style]) -> list[Segment]:
    """Segments of as few styles as look the same: blanks take the style beside them where nothing shows on them."""
    out: list[tuple[str, Style]] = []
    for text, role in line:
        style = styles[role]
        if not out:
            out.append((text, style))
            continue
        before, style_before = out[-1]
        if style == style_before or _takes(style_before, text, style):
            out[-1] = (before + text, style_before)
        elif _takes(style, before, style_before):
            out[-1] = (before + text, style)
        else:
            out.append((text, style))
    return [Segment(text, style) for text, style in out]


def _takes(style: Style, text: str, own: Style) -> bool:
    """Whether text looks the same in `style` as in its own style: blanks on the same background."""
    shows = style.underline or style.reverse or style.strike or own.underline or own.reverse or own.strike
    return not text.strip(" ") and not shows and style.bgcolor == own.bgcolor


def _highlighted(strip: Strip, span: tuple[int, int], width: int, style: Style) -> Strip:
    """The strip with its cells from span[0] to span[1] (-1: the end) in another style."""
    start, end = span
    end = width if end == -1 else min(end, width)
    before, inside, after = strip.divide([start, end, width])
    segments = [Segment(segment.text, (segment.style or Style.null()) + style) for segment in inside]
    return Strip.join([before, Strip(segments), after])
