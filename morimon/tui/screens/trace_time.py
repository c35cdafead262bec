"""Moving about in time: zoom, pan, the next slot or span; by keys and by mouse."""

from __future__ import annotations

from dataclasses import replace

from textual import on

from morimon.tui.screens.trace_base import TraceBase
from morimon.tui.screens.trace_view import TimeDragged, TimeWheel
from morimon.views.trace import span_under
from morimon.views.trace_look import Look
from morimon.views.trace_scale import Window

PAN_SHARE = 0.125
WHEEL_FACTOR = 1.25


class TraceTime(TraceBase):
    """Actions on the window."""

    def _measured(self, look: Look) -> tuple[int, int] | None:
        """Start and end of what is chosen."""
        if self.state.below == "warps" and self.session is not None:
            span = span_under(self.session.here(self.state), look, self.state)
            return span[:2] if span is not None else None
        bar = look.bars.get(look.slot_of(self.state.slot) or 0)
        return (bar.start_ns, bar.end_ns) if bar is not None else None

    def _look_at(self, window: Window, look: Look) -> None:
        self.choose(window=None if window == look.limits else window)

    def action_zoom(self, factor: float) -> None:
        """Zoom around what is chosen where it is in sight, else around the middle."""
        look = self.look
        if look is None:
            return
        window = self.state.window or look.limits
        middle = window.start_ns + window.length_ns // 2
        measured = self._measured(look)
        if measured is not None:
            start, end = max(measured[0], window.start_ns), min(measured[1], window.end_ns)
            middle = (start + end) // 2 if start <= end else middle
        self._look_at(window.zoomed(factor, middle, look.limits), look)

    def action_pan(self, by: int) -> None:
        """Earlier or later."""
        look = self.look
        if look is not None and self.state.window is not None:
            window = self.state.window
            self._look_at(window.panned(round(by * PAN_SHARE * window.length_ns), look.limits), look)

    def action_fit(self) -> None:
        """The whole iteration."""
        self.choose(window=None)

    def action_fit_slot(self) -> None:
        """What is chosen, as large as it goes."""
        look = self.look
        measured = self._measured(look) if look is not None else None
        if look is not None and measured is not None:
            self._look_at(look.limits.around(*measured, look.limits), look)

    def action_measure(self, by: int) -> None:
        """To the next bar in time, among warps to the next span of the warp under the cursor."""
        look = self.look
        if look is None:
            return
        if self.state.below == "warps":
            self._next_span(look, by)
            return
        codes = [bar.slot for bar in look.timeline.bars]
        chosen = look.slot_of(self.state.slot)
        if chosen is None:
            return
        slot = codes[min(max(codes.index(chosen) + by, 0), len(codes) - 1)]
        bar = look.bars[slot]
        self.choose(slot=slot, row=0, window=self._seeing(look, bar.start_ns, bar.end_ns))

    def _next_span(self, look: Look, by: int) -> None:
        here = self.session.here(self.state) if self.session is not None else None
        chosen = look.slot_of(self.state.slot)
        if here is None or here.warps is None or chosen is None:
            return
        rows = here.warps.of_slot(chosen)
        if not rows.size:
            return
        row = int(rows[min(self.state.row, rows.size - 1)])
        start, end, slot = here.warps.spans_of(row)
        at = self.state.span
        if at is None:
            at = int((slot == chosen).argmax())
        at = min(max(at + by, 0), start.size - 1)
        self.choose(span=at, window=self._seeing(look, int(start[at]), int(end[at])))

    def _seeing(self, look: Look, start_ns: int, end_ns: int) -> Window | None:
        """The window moved so that a stretch is in sight, its beginning at least."""
        window = self.state.window
        if window is None or (window.start_ns <= start_ns and end_ns <= window.end_ns):
            return window
        if end_ns - start_ns > window.length_ns:
            return Window(start_ns, start_ns + window.length_ns).within(look.limits)
        middle = (start_ns + end_ns - window.length_ns) // 2
        return Window(middle, middle + window.length_ns).within(look.limits)

    @on(TimeWheel)
    def _time_wheel(self, message: TimeWheel) -> None:
        look = self.look
        if look is not None and self.state.below != "files":
            scale = self.axis(look)
            around = scale.time_ns(message.x - self.before_axis(look))
            self._look_at(scale.window.zoomed(WHEEL_FACTOR**message.turns, around, look.limits), look)

    @on(TimeDragged)
    def _time_dragged(self, message: TimeDragged) -> None:
        look = self.look
        if look is not None and self.state.window is not None and self.state.below != "files":
            scale = self.axis(look)
            by = -round(message.cells * scale.window.length_ns / scale.width)
            self._look_at(scale.window.panned(by, look.limits), look)

    def open_warps(self, look: Look, row: int = 0) -> None:
        """The warps of the chosen slot, its time filling the width unless the person has zoomed already."""
        measured = self._measured(look)
        window = self.state.window
        if window is None and measured is not None:
            window = look.limits.around(*measured, look.limits, margin=0.15)
        self.state = replace(self.state, span=None)
        self.choose(below="warps", row=row, window=None if window == look.limits else window)
