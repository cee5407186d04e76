"""The marks that charts are made of: text, dots, lines, and their style.

A chart is a part of a page that brings :data:`STYLE` along; colours follow the page's
choice of light or dark. Nothing reaches it unescaped.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from branchwise.render.measure import fitted, text_width
from branchwise.render.svg import xml

#: The style of charts; every selector begins with their class.
STYLE = """\
.chart { --one: #0072b2; --two: #d55e00; --three: #009e73; --four: #8a5a83;
  display: block; width: 100%; height: auto; color: var(--ink, #1b1f24);
  font: 12px "Segoe UI", "Helvetica Neue", Arial, "Liberation Sans", sans-serif; }
.chart text { fill: currentColor; }
.chart .faint { fill: var(--faint, #57606a); }
.chart .end { text-anchor: end; }
.chart .mid { text-anchor: middle; }
.chart .strong { font-weight: 600; }
.chart .grid { stroke: var(--line, #d0d7de); stroke-width: 1; }
.chart .base { stroke: var(--faint, #57606a); stroke-width: 1; }
.chart .aid { stroke: var(--faint, #57606a); stroke-dasharray: 4 4; fill: none; }
.chart .c0 { --own: var(--one); }
.chart .c1 { --own: var(--two); }
.chart .c2 { --own: var(--three); }
.chart .c3 { --own: var(--four); }
.chart .path { stroke: var(--own); stroke-width: 2; fill: none;
  stroke-linejoin: round; }
.chart .dashed { stroke-dasharray: 6 4; }
.chart .band { fill: var(--own); fill-opacity: 0.16; }
.chart .dot, .chart .bar { fill: var(--own); }
.chart .cloud { fill: var(--own); fill-opacity: 0.4; }
.chart .whisker { stroke: var(--own); stroke-width: 1.5; fill: none; }
.chart .dark { stroke: var(--ink, #1b1f24); stroke-width: 1.2; fill: none; }
.chart .cell { fill: var(--one); stroke: var(--line, #d0d7de); }
@media screen and (prefers-color-scheme: dark) { .chart { --one: #58a6e0;
  --two: #f0883e; --three: #3fb68b; --four: #c58fbd; } }
@media print { .chart * { print-color-adjust: exact;
  -webkit-print-color-adjust: exact; } }
"""
#: The width of every chart, in units of its own; the page scales it.
WIDTH = 480.0
#: The size of letters, and the room that a name gets.
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


def dot(place: tuple[float, float], size: float, kind: str = "dot") -> str:
    """Draw a dot."""
    x, y = place
    return f'<circle class="{kind}" cx="{n(x)}" cy="{n(y)}" r="{n(size)}"/>'


def label(text: str, x: float, y: float, anchor: str, room: float = WIDEST_NAME) -> str:
    """Write a name, cut short where it is too long; it shows when pointed at."""
    shown = fitted(text, room, TEXT)
    full = "" if shown == text else f"<title>{xml(text)}</title>"
    return f'<text class="{anchor}" x="{n(x)}" y="{n(y)}">{full}{xml(shown)}</text>'


def way(points: Sequence[tuple[float, float]]) -> str:
    """Write the path along some points."""
    return "M" + "L".join(f"{n(x)} {n(y)}" for x, y in points)


def n(number: float) -> str:
    """Write a coordinate."""
    return f"{number:.1f}".removesuffix(".0")


def words(kind: str, x: float, y: float, text: str) -> str:
    """Write text at a place."""
    return f'<text class="{kind}" x="{n(x)}" y="{n(y)}">{xml(text)}</text>'


def upright(y: float, text: str) -> str:
    """Write text along the left edge, from below to above."""
    place = f'transform="translate(13 {n(y)}) rotate(-90)"'
    return f'<text class="faint mid" {place}>{xml(text)}</text>'
