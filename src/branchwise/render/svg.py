"""The tree as an SVG picture: one file, for browsers, papers and slides.

Colours follow the reader's choice of light or dark. What is too long for its box
is truncated and has a tooltip; the description, which screen readers read, has the
tree in words.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any
from xml.sax.saxutils import escape

from branchwise.errors import counted
from branchwise.render import scene as sizes
from branchwise.render.picture import (
    CLASS_COLOURS,
    NUMBER_COLOUR,
    ON_DARK,
    Drawing,
    drawing,
    fitted,
    text_width,
)
from branchwise.render.scene import LABEL, Scene, scene
from branchwise.text import words
from branchwise.text.as_html import macros, page
from branchwise.text.label_words import Unit

_MARGIN = 20.0
#: The legend: height of a row, size of a square, whitespace, widest name.
_ROW, _SQUARE, _EMPTY, _WIDEST_NAME = 22.0, 11.0, 16.0, 200.0
_LEGEND_LEAST, _SCALE_WIDTH = 360.0, 120.0
#: How many nodes the description has in words.
_TOLD = 200
#: Characters that XML cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def svg_picture(
    view: dict[str, Any], max_depth: int | None = None, max_nodes: int | None = None
) -> str:
    """Return an SVG file with so many levels of splits and nodes."""
    picture = scene(drawing(view, max_depth, max_nodes))
    width, height = picture.size
    legend, legend_height = _legend(picture, max(width, _LEGEND_LEAST))
    width = max(width, *(right for right, _ in legend)) + 2 * _MARGIN
    height += legend_height + 2 * _MARGIN
    target = view["target"]
    told = "\n".join(_told(picture.drawing))
    written: str = _macros().picture(
        picture,
        # Pictures of different trees on one page need different names.
        f"branchwise-{zlib.crc32(told.encode('utf-8', 'replace')):08x}",
        "Decision tree" + ("" if target == words.UNNAMED else f" for {target}"),
        told,
        page(
            "render/assets/picture.css",
            classes=list(enumerate(CLASS_COLOURS)),
            on_dark=list(ON_DARK.items()),
            number=NUMBER_COLOUR,
        ).rstrip(),
        (width, height),
        _MARGIN,
        [entry for _, entry in legend],
        legend_height,
    )
    return written


@cache
def _macros() -> Any:
    return macros(
        "render/templates/tree.svg",
        n=n,
        xml=xml,
        text=_text,
        rect=_rect,
        hint=_hint,
        sizes=sizes,
    )


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{n(x)}" y="{n(y)}">{xml(text)}</text>'


def _rect(
    kind: str, x: float, y: float, width: float, height: float, r: float, more: str = ""
) -> str:
    corner = f' rx="{n(r)}"' if r else ""
    return (
        f'<rect class="{kind}" x="{n(x)}" y="{n(y)}" width="{n(width)}" '
        f'height="{n(height)}"{corner}{more}/>'
    )


def xml(text: str) -> str:
    """Write text for XML, also what XML cannot hold."""
    return escape(_NOT_XML.sub("\ufffd", text), {'"': "&quot;"})


def n(number: float) -> str:
    """Write a coordinate or a length."""
    return f"{number:.1f}".removesuffix(".0")


def _told(tree: Drawing) -> Iterator[str]:
    """Yield the tree in words, one line a drawn node, branch by branch."""
    view = tree.view
    leaves = "1 leaf" if view["n_leaves"] == 1 else f"{view['n_leaves']:,} leaves"
    yield f"{counted(view['n_nodes'], 'node')}, {leaves}, depth {view['depth']:,}."
    stack, lines = [0], 0
    while stack:
        index = stack.pop()
        first = tree.first_child[index]
        stack.extend(reversed(range(first, first + tree.n_children[index])))
        lines += 1
        if lines > _TOLD:
            yield "..."
            return
        yield _line(tree, index)


def _line(tree: Drawing, index: int) -> str:
    way = tree.get("branch", index) or "all cases"
    if tree.left_out[index]:
        return f"{way}: {tree.head[index]}"
    split_text = "" if tree.is_leaf(index) else f"; splits on {tree.head[index]}"
    return f"{way}: {tree.get('summary', index)}{split_text}"


def _hint(tree: Drawing, index: int) -> str:
    """Write the tooltip of a node."""
    if tree.left_out[index]:
        return f"{counted(tree.left_out[index], 'node')} not shown"
    lines = [tree.way(index), tree.get("summary", index)]
    if not tree.is_leaf(index):
        lines += [f"splits on {tree.head[index]}", tree.missing(index)]
    return "\n".join([*lines, *_class_lines(tree, index)])


def _class_lines(tree: Drawing, index: int) -> Iterator[str]:
    """Yield the cases of each class at a node, and what they weigh if not 1 each."""
    classes, weights = tree.view["classes"], tree.get("weights", index)
    present = [at for at, weight in enumerate(weights) if classes and weight]
    if not tree.view.get("weighted", False):
        yield from (f"{classes[at]}: {words.amount(weights[at])}" for at in present)
        return
    counted = "class_cases" in tree.view["nodes"]
    for at in present:
        cases = (
            words.cases(tree.get("class_cases", index)[at]) + ", " if counted else ""
        )
        piece = words.share(weights[at], sum(weights))
        yield f"{classes[at]}: {cases}{piece} of weight"


def _legend(picture: Scene, space: float) -> tuple[list[tuple[float, str]], float]:
    """Return the right edge and the line of each entry, and the height of all."""
    view = picture.drawing.view
    target = fitted(view["target"], _WIDEST_NAME, LABEL, bold=True)
    entries = [_entry("s h", 0.0, 12.0, target, 13.0)]
    start = entries[0][0] + _EMPTY
    if picture.scale is not None:
        low, high = map(Unit.of_fields(view).mean, picture.scale)
        return [*entries, *_scale_entries(low, high, start)], _ROW + 10
    x, y = start, 0.0
    for colour, name in picture.class_names():
        text = fitted(name, _WIDEST_NAME, LABEL)
        width = _SQUARE + 5 + text_width(text, LABEL)
        if x + width > space and x > start:
            x, y = start, y + _ROW
        square = _rect(f"c{colour}", x, y + 2, _SQUARE, _SQUARE, 2)
        right, words_ = _entry("s m", x + _SQUARE + 5, y + 12, text, LABEL)
        entries.append((right, square + words_))
        x = right + _EMPTY
    return entries, y + _ROW + 10


def _entry(kind: str, x: float, y: float, text: str, size: float) -> tuple[float, str]:
    width = text_width(text, size, bold=kind.endswith("h"))
    return x + width, _text(kind, x, y, text)


def _scale_entries(low: str, high: str, x: float) -> Iterator[tuple[float, str]]:
    """Yield the scale that the bars of numbers share, and what they show."""
    right, line = _entry("s m", x, 12.0, low, LABEL)
    start = right + 8
    band = start + _SCALE_WIDTH / 3
    yield right, line
    yield right, _rect("r", start, 6.5, _SCALE_WIDTH, 3, 1.5)
    yield right, _rect("d", band, 5.5, _SCALE_WIDTH / 3, 5, 2.5)
    yield right, _rect("i", start + _SCALE_WIDTH / 2 - 1.5, 3.5, 3, 9, 1.5)
    right, line = _entry("s m", start + _SCALE_WIDTH + 8, 12.0, high, LABEL)
    yield right, line
    yield _entry("s m", right + _EMPTY, 12.0, "(mean ± deviation)", LABEL)
