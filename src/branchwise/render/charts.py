"""Charts as inline SVG: axes, lines with bands, bars, points, confusion matrices.

A chart is a part of a page that has the style sheet ``assets/charts.css``. Every chart
has a title and a description that screen readers read.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from branchwise.render.picture import fitted, text_width
from branchwise.render.svg import n, xml

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


def drawing(title: str, description: str, height: float, body: Sequence[str]) -> str:
    """Put a drawing into its element; names differ between charts of a page."""
    inside = "\n".join(body)
    told = f"{title}{description}{inside}"
    name = f"chart-{zlib.crc32(told.encode('utf-8', 'replace')):08x}"
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {n(WIDTH)} {n(height)}" '
        f'aria-labelledby="{name}-title" aria-describedby="{name}-desc">'
        f'<title id="{name}-title">{xml(title)}</title>'
        f'<desc id="{name}-desc">{xml(description)}</desc>\n{inside}\n</svg>'
    )


def legend(names: Sequence[str], left: float) -> Iterator[str]:
    """Name the colours, from left to right."""
    x = left
    for code, name in enumerate(names):
        shown = fitted(name, 170.0, TEXT)
        yield (
            f'<g class="c{code}"><rect class="bar" x="{n(x)}" y="8" width="12" '
            f'height="12" rx="2"/></g><text x="{n(x + 17)}" y="18">{xml(shown)}</text>'
        )
        x += 17 + text_width(shown, TEXT) + 18


def dot(position: tuple[float, float], size: float, kind: str = "dot") -> str:
    """Draw a dot."""
    x, y = position
    return f'<circle class="{kind}" cx="{n(x)}" cy="{n(y)}" r="{n(size)}"/>'


def label(
    text: str, x: float, y: float, anchor: str, space: float = WIDEST_NAME
) -> str:
    """Write a name, truncated where it is too long, with the full name as tooltip."""
    shown = fitted(text, space, TEXT)
    full = "" if shown == text else f"<title>{xml(text)}</title>"
    return f'<text class="{anchor}" x="{n(x)}" y="{n(y)}">{full}{xml(shown)}</text>'


def way(points: Sequence[tuple[float, float]]) -> str:
    """Write the path along some points."""
    return "M" + "L".join(f"{n(x)} {n(y)}" for x, y in points)


def words(kind: str, x: float, y: float, text: str) -> str:
    """Write text at a place."""
    return f'<text class="{kind}" x="{n(x)}" y="{n(y)}">{xml(text)}</text>'


def upright(y: float, text: str) -> str:
    """Write text along the left edge, from below to above."""
    position = f'transform="translate(13 {n(y)}) rotate(-90)"'
    return f'<text class="faint mid" {position}>{xml(text)}</text>'


_RIGHT, _TOP, _BOTTOM = 22.0, 30.0, 44.0
_HEIGHT = 270.0
_BAR, _SPACING = 16.0, 8.0
#: A matrix is drawn up to this many classes.
MOST_CELLS = 12


@dataclass(frozen=True)
class Series:
    """A line, or points, with what is known of their spread.

    ``low`` and ``high`` bound a band around a line, or the whiskers of points.
    """

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    dashed: bool = False


@dataclass(frozen=True)
class _Plot:
    """The area between the axes."""

    x: Axis
    y: Axis
    left: float
    width: float
    height: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        return (
            self.left + self.x.position(x) * self.width,
            _TOP + (1 - self.y.position(y)) * self.height,
        )


def line_chart(
    title: str,
    description: str,
    x: Axis,
    y: Axis,
    lines: Sequence[Series],
    mark: tuple[float, str] | None = None,
) -> str:
    """Draw lines with bands; ``mark`` is a place on the x axis and what is there."""
    plot = _plot(x, y)
    body = [*_axes(plot), *_mark(plot, mark)]
    for code, line in enumerate(lines):
        body.append(f'<g class="c{code}">')
        if len(line.low):
            body.append(_band(plot, line))
        points = [plot.at(*pair) for pair in zip(line.xs, line.ys, strict=True)]
        dashed = " dashed" if line.dashed else ""
        body.append(f'<path class="path{dashed}" d="{way(points)}"/>')
        if len(points) <= 60:
            body.extend(dot(point, 2.6) for point in points)
        body.append("</g>")
    body.extend(legend([line.name for line in lines], plot.left))
    return drawing(title, description, _TOP + plot.height + _BOTTOM, body)


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
    plot = _plot(x, y)
    body = _axes(plot)
    if aid:
        body.append(f'<path class="aid" d="{way([plot.at(*p) for p in aid])}"/>')
    body.append('<g class="c0">')
    for at, (px, py) in enumerate(zip(points.xs, points.ys, strict=True)):
        position = plot.at(px, py)
        if len(points.low):
            (_, bottom), (_, top) = (
                plot.at(px, points.low[at]),
                plot.at(px, points.high[at]),
            )
            body.append(
                f'<path class="whisker" d="M{n(position[0])} {n(bottom)}V{n(top)}"/>'
            )
        size = sizes[at] if sizes else 2.2
        body.append(dot(position, size, "dot" if sizes else "cloud"))
    body.append("</g>")
    return drawing(title, description, _TOP + plot.height + _BOTTOM, body)


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
    plot = _Plot(axis, axis, left, WIDTH - left - space, height)
    body = [_tick_x(plot, tick, top, height) for tick in axis.ticks]
    thick = each / len(bars)
    for row, name in enumerate(names):
        y = top + row * (each + _SPACING) + _SPACING / 2
        middle = y + each / 2 + 4
        body.append(label(name, left - 8, middle, "end"))
        for code, series in enumerate(bars):
            body.extend(_bar(plot, series, row, y + code * thick, thick, code))
        if written:
            end = plot.at(max(bars[0].ys[row], axis.low), axis.low)[0]
            body.append(words("faint", end + 6, middle, written[row]))
    body.append(_axis_title(plot, axis.label, top + height + 34))
    if len(bars) > 1:
        body.extend(legend([series.name for series in bars], left))
    return drawing(title, description, top + height + _BOTTOM, body)


def histogram(
    title: str,
    description: str,
    x: Axis,
    y: Axis,
    edges: Sequence[float],
    counts: Sequence[int],
) -> str:
    """Draw upright bars that touch each other."""
    plot = _plot(x, y)
    body = [*_axes(plot), '<g class="c0">']
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        left, top = plot.at(low, count)
        right, bottom = plot.at(high, 0)
        body.append(
            f'<rect class="bar" x="{n(left)}" y="{n(top)}" '
            f'width="{n(max(right - left - 1, 0.5))}" height="{n(bottom - top)}"/>'
        )
    body.append("</g>")
    return drawing(title, description, _TOP + plot.height + _BOTTOM, body)


def matrix_chart(
    title: str, description: str, names: Sequence[str], counts: Sequence[Sequence[int]]
) -> str:
    """Draw a confusion matrix: true classes down, predicted classes across.

    A cell is the stronger the larger its share of its row.
    """
    widest = max((text_width(name, TEXT) for name in names), default=0)
    left = 34 + min(widest, 120.0)
    side = (WIDTH - left - _RIGHT) / len(names)
    tall = min(side, 64.0)
    top = 44.0
    body = [
        words("faint mid", left + side * len(names) / 2, 14, "predicted class"),
        upright(top + tall * len(names) / 2, "true class"),
    ]
    for at, name in enumerate(names):
        body.append(label(name, left + (at + 0.5) * side, top - 10, "mid", side - 6))
        body.append(label(name, left - 8, top + (at + 0.5) * tall + 4, "end", 120.0))
    for row, line in enumerate(counts):
        whole = max(sum(line), 1)
        for at, count in enumerate(line):
            body.extend(
                _cell(
                    left + at * side, top + row * tall, side, tall, count, count / whole
                )
            )
    return drawing(title, description, top + tall * len(names) + 8, body)


def _cell(
    x: float, y: float, width: float, height: float, count: int, share: float
) -> Iterator[str]:
    # Never so strong that the ink on it could not be read.
    yield (
        f'<rect class="cell" x="{n(x)}" y="{n(y)}" width="{n(width)}" '
        f'height="{n(height)}" fill-opacity="{0.04 + 0.5 * share:.3f}"/>'
    )
    middle = x + width / 2
    two = height >= 40 and width >= 50
    line = y + height / 2 + (-3 if two else 4)
    yield words("mid strong", middle, line, f"{count:,}")
    if two:
        yield words("mid", middle, line + 17, f"{100 * share:.1f} %")


def _plot(x: Axis, y: Axis) -> _Plot:
    widest = max((text_width(y.tick_format(tick), TEXT) for tick in y.ticks), default=0)
    left = 30 + widest
    return _Plot(x, y, left, WIDTH - left - _RIGHT, _HEIGHT - _TOP - _BOTTOM)


def _axes(plot: _Plot) -> list[str]:
    body = []
    for tick in plot.y.ticks:
        _, y = plot.at(plot.x.low, tick)
        line = f'<path class="grid" d="M{n(plot.left)} {n(y)}h{n(plot.width)}"/>'
        written = words("faint end", plot.left - 6, y + 4, plot.y.tick_format(tick))
        body.extend([line, written])
    bottom = _TOP + plot.height
    body.extend(_tick_x(plot, tick, bottom, 0) for tick in _apart(plot))
    body.append(f'<path class="base" d="M{n(plot.left)} {n(bottom)}h{n(plot.width)}"/>')
    body.append(_axis_title(plot, plot.x.label, bottom + 36))
    middle = _TOP + plot.height / 2
    body.append(upright(middle, fitted(plot.y.label, plot.height + 30, TEXT)))
    return body


def _apart(plot: _Plot) -> Iterator[float]:
    """Yield the ticks of the x axis that do not run into the one before them."""
    free = -1e9
    for tick in plot.x.ticks:
        middle = plot.left + plot.x.position(tick) * plot.width
        half = text_width(plot.x.tick_format(tick), TEXT) / 2 + 3
        if middle - half >= free:
            free = middle + half
            yield tick


def _tick_x(plot: _Plot, tick: float, top: float, height: float) -> str:
    x = plot.left + plot.x.position(tick) * plot.width
    line = f'<path class="grid" d="M{n(x)} {n(top)}v{n(height or 4)}"/>'
    return line + words("faint mid", x, top + height + 17, plot.x.tick_format(tick))


def _axis_title(plot: _Plot, text: str, y: float) -> str:
    return words("faint mid", plot.left + plot.width / 2, y, text)


def _bar(
    plot: _Plot, series: Series, row: int, y: float, height: float, code: int
) -> Iterator[str]:
    zero = plot.at(min(max(0.0, plot.x.low), plot.x.high), plot.y.low)[0]
    end = plot.at(series.ys[row], plot.y.low)[0]
    left, right = min(zero, end), max(zero, end)
    yield (
        f'<g class="c{code}"><rect class="bar" x="{n(left)}" y="{n(y)}" '
        f'width="{n(right - left)}" height="{n(height - 1)}"/></g>'
    )
    if len(series.low):
        low = plot.at(series.low[row], plot.y.low)[0]
        high = plot.at(series.high[row], plot.y.low)[0]
        middle = y + height / 2
        yield f'<path class="dark" d="M{n(low)} {n(middle)}H{n(high)}"/>'


def _mark(plot: _Plot, mark: tuple[float, str] | None) -> Iterator[str]:
    if mark is None:
        return
    x, _ = plot.at(mark[0], plot.y.low)
    late = x > plot.left + plot.width * 0.6
    yield f'<path class="aid" d="M{n(x)} {n(_TOP)}v{n(plot.height)}"/>'
    kind, away = ("faint end", -5) if late else ("faint", 5)
    yield words(kind, x + away, _TOP + 11, mark[1])


def _band(plot: _Plot, line: Series) -> str:
    over = [plot.at(*pair) for pair in zip(line.xs, line.high, strict=True)]
    under = [plot.at(*pair) for pair in zip(line.xs, line.low, strict=True)]
    return f'<path class="band" d="{way([*over, *reversed(under)])}Z"/>'
