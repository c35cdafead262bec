"""Axes that stand still: round limits, and a scale that changes at most once a second."""

from __future__ import annotations

import math
from dataclasses import dataclass

RESCALE_S = 1.0


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from `low` to `high`, both round figures `step` apart an even number of times, chosen at `set_s`."""

    low: float
    high: float
    step: float
    set_s: float = -math.inf

    @property
    def decimals(self) -> int:
        """Digits after the point that tell the ticks apart."""
        least = max(0, -math.floor(math.log10(self.step) + 1e-9))
        return least if math.isclose(self.step, round(self.step, least)) else least + 1

    def position(self, value: float, size: int) -> int:
        """Where the value stands among `size` places, 0 at `low`; what is outside stands at the end."""
        share = (value - self.low) / (self.high - self.low)
        return min(max(round(share * (size - 1)), 0), size - 1)


def round_axis(low: float, high: float, now_s: float = -math.inf, ticks: int = 4) -> Axis:
    """The tightest axis with round limits (1, 2, 2.5 or 5 times a power of ten apart) around low…high."""
    if not (math.isfinite(low) and math.isfinite(high)) or high < low:
        low, high = 0.0, 1.0
    if high - low < 1e-9 * max(abs(high), 1.0):
        pad = max(abs(high) * 0.05, 0.5)
        low, high = low - pad if low - pad >= 0 or low < 0 else 0.0, high + pad
    raw = (high - low) / ticks
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= raw * (1 - 1e-9))
    return Axis(math.floor(low / step) * step, math.ceil(high / step - 1e-9) * step, step, now_s)


def settled(axis: Axis | None, low: float, high: float, now_s: float) -> Axis:
    """The axis to use now for values between low and high.

    The old one stays while it is younger than a second, and longer while it holds the values and they fill at least
    half of it.
    """
    if axis is not None:
        if now_s - axis.set_s < RESCALE_S:
            return axis
        holds = axis.low <= low and high <= axis.high
        if holds and (high - low) * 2 >= axis.high - axis.low:
            return axis
        if holds and round_axis(low, high).step >= axis.step:
            return axis
    return round_axis(low, high, now_s)
