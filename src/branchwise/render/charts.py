"""Charts as inline SVG: axes, lines with bands, bars, points, confusion matrices.

A chart is a part of a page that has the style sheet ``assets/charts.css``. Every chart
has a title and a description that screen readers read.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from branchwise.render.picture import fitted, text_width
from branchwise.render.svg import n, xml
from branchwise.text.as_html import macros

#: A step between ticks is one of these, times a power of ten.
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
#: From this ratio on an axis is logarithmic.
_ENOUGH_POWERS = 30.0
#: Values that differ by less, relative to the largest, are shown as one.
_SAME = 1e-12


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
    """A scale: its words, its ends and its ticks; if ``log``, steps are ratios."""

    label: str
    low: float
    high: float
    ticks: tuple[float, ...]
    tick_format: Callable[[float], str] = plain_figure
    log: bool = False

    def position(self, value: float) -> float:
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
    tick_format: Callable[[float], str] = plain_figure,
    log: bool = False,
    least: float | None = None,
    most: float | None = None,
) -> Axis:
    """Choose an axis that has room for all values and goes not beyond the bounds.

    With ``log`` powers are marked if values, all above 0, span enough.
    """
    known = [float(value) for value in values if math.isfinite(value)] or [0.0]
    low, high = min(known), max(known)
    if log and low > 0 and high / low >= _ENOUGH_POWERS:
        return Axis(label, low, high, _powers(low, high), tick_format, log=True)
    # A range of a few last digits is too small for ticks.
    if high - low <= _SAME * max(abs(low), abs(high)):
        space = abs(low) / 2 or 0.5
        low, high = low - space, high + space
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
    return Axis(label, low, high, ticks, tick_format)


def _step(low: float, high: float, about: int = 5) -> float:
    rough = high / about - low / about
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in _STEPS if step * power >= rough * 0.999)


def _powers(low: float, high: float) -> tuple[float, ...]:
    """Return 1, 2, 5, 10, ... between two numbers; powers of ten if those are many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    pieces = (1, 2, 5) if last - first <= 3 else (1,)
    found = [
        piece * 10.0**power for power in range(first, last + 1) for piece in pieces
    ]
    return tuple(value for value in found if low <= value <= high)


#: The width of every chart, in units of its own; the page scales it.
WIDTH = 480.0
#: The font size, and the widest space of a name.
TEXT = 12.0
WIDEST_NAME = 150.0


_RIGHT, _TOP, _BOTTOM = 22.0, 30.0, 44.0
_HEIGHT = 270.0
_BAR, _SPACING = 16.0, 8.0
#: A matrix is drawn up to this many classes.
MOST_CELLS = 12


@cache
def _charts() -> Any:
    return macros(
        "render/templates/charts.svg",
        n=n,
        xml=xml,
        fitted=fitted,
        text_width=text_width,
        size=TEXT,
        widest_name=WIDEST_NAME,
    )


def _drawing(title: str, description: str, height: float, body: str) -> str:
    """Put a drawing into its element; names differ between charts of a page."""
    inside = body.strip()
    told = f"{title}{description}{inside}"
    name = f"chart-{zlib.crc32(told.encode('utf-8', 'replace')):08x}"
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {n(WIDTH)} {n(height)}" '
        f'aria-labelledby="{name}-title" aria-describedby="{name}-desc">'
        f'<title id="{name}-title">{xml(title)}</title>'
        f'<desc id="{name}-desc">{xml(description)}</desc>\n{inside}\n</svg>'
    )


@dataclass(frozen=True)
class Series:
    """A line, or points, with what is known of their spread.

    ``low`` and ``high`` bound a band around a line, or the whiskers of points. Bars
    of classes have ``colours``, positions in :data:`CLASS_COLOURS`: one for each bar,
    or one for all.
    """

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    dashed: bool = False
    colours: Sequence[int] = ()


@dataclass(frozen=True)
class Plot:
    """The area between the axes."""

    x: Axis
    y: Axis
    left: float
    width: float
    top: float = _TOP
    height: float = _HEIGHT - _TOP - _BOTTOM

    @classmethod
    def of(cls, x: Axis, y: Axis) -> Plot:
        """Leave as much space at the left as the ticks of the y axis take."""
        ticks = (text_width(y.tick_format(tick), TEXT) for tick in y.ticks)
        left = 30 + max(ticks, default=0)
        return cls(x, y, left, WIDTH - left - _RIGHT)

    @property
    def whole_height(self) -> float:
        """The height with what is above and below."""
        return self.top + self.height + _BOTTOM

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the coordinates of a point."""
        return (
            self.left + self.x.position(x) * self.width,
            _TOP + (1 - self.y.position(y)) * self.height,
        )

    def points(
        self, xs: Sequence[float], ys: Sequence[float]
    ) -> list[tuple[float, float]]:
        """Return the coordinates of several points."""
        return [self.at(x, y) for x, y in zip(xs, ys, strict=True)]

    def ticks_apart(self) -> Iterator[float]:
        """Yield the ticks of the x axis that do not run into the one before them."""
        free = -1e9
        for tick in self.x.ticks:
            middle = self.left + self.x.position(tick) * self.width
            half = text_width(self.x.tick_format(tick), TEXT) / 2 + 3
            if middle - half >= free:
                free = middle + half
                yield tick


def line_chart(
    title: str,
    description: str,
    x: Axis,
    y: Axis,
    lines: Sequence[Series],
    mark: tuple[float, str] | None = None,
) -> str:
    """Draw lines with bands; ``mark`` is a place on the x axis and what is there."""
    plot = Plot.of(x, y)
    body = _charts().lines(plot, lines, mark)
    return _drawing(title, description, plot.whole_height, body)


def point_chart(
    title: str,
    description: str,
    x: Axis,
    y: Axis,
    points: Series,
    aid: Sequence[tuple[float, float]] = (),
    sizes: Sequence[float] = (),
) -> str:
    """Draw points; ``aid`` is a dashed line, such as where x is y."""
    plot = Plot.of(x, y)
    body = _charts().points(plot, points, [plot.at(*p) for p in aid], sizes)
    return _drawing(title, description, plot.whole_height, body)


def bar_chart(
    title: str,
    description: str,
    names: Sequence[str],
    axis: Axis,
    bars: Sequence[Series],
    written: Sequence[str] = (),
) -> str:
    """Draw horizontal bars: for each name one of every series (its ``ys``).

    ``written`` stands at the end of the bars of a single series.
    """
    left = 12 + min(max((text_width(n, TEXT) for n in names), default=0), WIDEST_NAME)
    space = 70.0 if written else _RIGHT
    top = _TOP if len(bars) > 1 else 8.0
    each = len(bars) * _BAR * (1 if len(bars) == 1 else 0.7)
    height = len(names) * (each + _SPACING)
    plot = Plot(axis, axis, left, WIDTH - left - space, top, height)
    body = _charts().bars(plot, names, bars, written, each, _SPACING)
    return _drawing(title, description, plot.whole_height, body)


def waterfall_chart(
    title: str,
    description: str,
    names: Sequence[str],
    axis: Axis,
    steps: Sequence[tuple[float, float]],
    written: Sequence[str],
) -> str:
    """Draw bars that begin where those before them end: ``steps`` from and to.

    ``written`` stands beside the bars, which have one colour up and another down.
    """
    left = 12 + min(max((text_width(n, TEXT) for n in names), default=0), WIDEST_NAME)
    height = len(names) * (_BAR + _SPACING)
    plot = Plot(axis, axis, left, WIDTH - left - 70.0, 8.0, height)
    body = _charts().waterfall(plot, names, steps, written, _BAR, _SPACING)
    return _drawing(title, description, plot.whole_height, body)


def standalone(chart: str, style: str) -> str:
    """Return a chart as a document of its own, with the style sheet in it."""
    head, _, rest = chart.partition(">")
    head = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return f"{head}>\n<style>\n{style}</style>{rest}\n"


def histogram(
    title: str,
    description: str,
    x: Axis,
    y: Axis,
    edges: Sequence[float],
    counts: Sequence[int],
) -> str:
    """Draw upright bars that touch each other."""
    plot = Plot.of(x, y)
    body = _charts().histogram(plot, edges, counts)
    return _drawing(title, description, plot.whole_height, body)


def matrix_chart(
    title: str, description: str, names: Sequence[str], counts: Sequence[Sequence[int]]
) -> str:
    """Draw a confusion matrix: true classes down, predicted classes across."""
    widest = max((text_width(name, TEXT) for name in names), default=0)
    left, top = 34 + min(widest, 120.0), 44.0
    width = (WIDTH - left - _RIGHT) / len(names)
    height = min(width, 64.0)
    body = _charts().matrix(names, counts, left, top, width, height)
    return _drawing(title, description, top + height * len(names) + 8, body)
