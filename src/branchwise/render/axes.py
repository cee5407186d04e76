"""Where figures lie on a chart: scales with round ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

#: A step between ticks is one of these, times a power of ten.
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
#: A scale from here on counts in powers.
_ENOUGH_POWERS = 30.0


def plain_figure(value: float) -> str:
    """Write a tick: whole numbers with commas, others as short as they are exact."""
    if value and not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3g}"
    written = f"{value:,.6f}".rstrip("0").rstrip(".")
    return "0" if written == "-0" else written


def percent_figure(value: float) -> str:
    """Write a share as percent."""
    return f"{plain_figure(round(100 * value, 6))} %"


@dataclass(frozen=True)
class Axis:
    """A scale: its words, its ends and its ticks.

    Parameters
    ----------
    label : str
        What is measured.
    low, high : float
        The ends; high is above low.
    ticks : tuple of float
        Where the scale is marked.
    form : callable
        How a tick is written.
    log : bool
        Whether equal steps are equal ratios.
    """

    label: str
    low: float
    high: float
    ticks: tuple[float, ...]
    form: Callable[[float], str] = plain_figure
    log: bool = False

    def place(self, value: float) -> float:
        """Return where a value lies: 0 at the low end, 1 at the high one."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        # Divided first: the ends may be too far apart for a float.
        scale = max(abs(self.low), abs(self.high))
        low, high = self.low / scale, self.high / scale
        return (value / scale - low) / (high - low)


def axis(
    label: str,
    values: Iterable[float],
    form: Callable[[float], str] = plain_figure,
    log: bool = False,
    least: float | None = None,
    most: float | None = None,
) -> Axis:
    """Choose an axis that has room for all values.

    Parameters
    ----------
    label : str
        What is measured.
    values : iterable of float
        What is to be shown; at least one.
    form : callable
        How a tick is written.
    log : bool
        Whether powers are wanted; they are used if values, all above 0, span enough.
    least, most : float or None
        Bounds that the axis does not go beyond, such as 0 and 1 for shares.
    """
    known = [float(value) for value in values if math.isfinite(value)] or [0.0]
    low, high = min(known), max(known)
    if log and low > 0 and high / low >= _ENOUGH_POWERS:
        return Axis(label, low, high, _powers(low, high), form, log=True)
    if low == high:
        room = abs(low) / 2 or 0.5
        low, high = low - room, high + room
    step = _step(low, high)
    low, high = (
        math.floor(low / step + 1e-9) * step,
        math.ceil(high / step - 1e-9) * step,
    )
    low = low if least is None else max(low, least)
    high = high if most is None else min(high, most)
    if not low < high:  # bounds have met
        low, high = low - step, high + step
    first = math.ceil(low / step - 1e-9)
    count = int(math.floor(high / step + 1e-9) - first) + 1
    ticks = tuple(round((first + at) * step, 12) for at in range(count))
    return Axis(label, low, high, ticks, form)


def _step(low: float, high: float, about: int = 5) -> float:
    rough = high / about - low / about
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in _STEPS if step * power >= rough * 0.999)


def _powers(low: float, high: float) -> tuple[float, ...]:
    """Return 1, 2, 5, 10, ... between two numbers; powers of ten if those are many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    parts = (1, 2, 5) if last - first <= 3 else (1,)
    found = [part * 10.0**power for power in range(first, last + 1) for part in parts]
    return tuple(value for value in found if low <= value <= high)
