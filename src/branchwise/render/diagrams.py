r"""The tree as a diagram for other programs: DOT for Graphviz, and Mermaid.

DOT: labels are plain quoted strings, never HTML-like ones. Graphviz reads backslashes
(``\N`` is the name of a node) and entities (``&lt;``) in them; both are written so
that a name shows as it is.

Mermaid, which GitHub, GitLab and many wikis draw, has no escape character but knows
entities, ``#35;`` for ``#``. Everything that could mean something to it, or to Markdown
or HTML in its labels, is one. What it looks for after entities have become characters
again (line breaks written ``\n``, icons, formulas) is broken up by a mark of no width.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from branchwise.render.picture import (
    CLASS_COLOURS,
    NUMBER_COLOUR,
    Drawing,
    class_colours,
    drawing,
    mixed,
)

_WHITE = "#ffffff"
_TINT = 0.2
_INK = "#1b2430"
_THICKEST = 6.0
#: Letters, digits, and marks that mean nothing inside the quotes of a label; a point
#: only between digits, because "1. " begins a list.
_HARMLESS = re.compile(r"[^\W_]|[ ,()/=±…]|(?<=\d)\.(?=\d)")
#: What is broken up after its first character; the last two are Mermaid's own marks
#: around entities.
_READ_LATER = re.compile(r"\\n|:(?=\w)|\$(?=\$)|\ufb02(?=\xb0)|\xb6(?=\xdf)")
_NO_WIDTH = "\u200c"


def _width(tree: Drawing, index: int) -> float:
    """Return how thick the branch to a node is drawn."""
    share = 0.0 if tree.left_out[index] else tree.share(index)
    return 1.0 + (_THICKEST - 1.0) * share


def dot_lines(
    view: dict[str, Any], max_depth: int | None = None, max_nodes: int | None = None
) -> Iterator[str]:
    """Yield the lines of a DOT file; the parameters are those of ``svg_lines``."""
    tree = drawing(view, max_depth, max_nodes)
    colours = class_colours(view["nodes"]["weights"][0])
    yield "digraph tree {"
    yield f"  label={quoted_dot(view['target'])} labelloc=t fontname=Helvetica"
    yield '  node [shape=box style="rounded,filled" fillcolor="#f4f6f8"'
    yield '        color="#8a94a0" fontname=Helvetica fontsize=12]'
    yield '  edge [arrowhead=none color="#8a94a0" fontname=Helvetica fontsize=11]'
    for index in range(len(tree)):
        yield f"  n{index} [{_dot_attributes(tree, index, colours)}]"
        if index:
            yield f"  n{tree.parent[index]} -> n{index} [{_dot_branch(tree, index)}]"
    yield "}"


def quoted_dot(*lines: str) -> str:
    """Write lines as one DOT string, every character standing for itself."""
    return '"' + r"\n".join(_escaped_dot(line) for line in lines) + '"'


def _escaped_dot(text: str) -> str:
    return text.replace("&", "&amp;").replace("\\", r"\\").replace('"', r"\"")


def _dot_attributes(tree: Drawing, index: int, colours: list[int]) -> str:
    if tree.left_out[index]:
        return f'label={quoted_dot(tree.head[index])} style="rounded,dashed"'
    label = quoted_dot(tree.head[index], tree.note[index])
    hint = quoted_dot(tree.way(index), tree.get("summary", index))
    if not tree.is_leaf(index):
        return f"label={label} tooltip={hint}"
    if tree.view["predicts"] == "numbers":
        colour = NUMBER_COLOUR
    else:
        colour = CLASS_COLOURS[colours[tree.get("label", index)]]
    fill = mixed(colour, _WHITE, _TINT)
    return f'label={label} color="{colour}" fillcolor="{fill}" tooltip={hint}'


def _dot_branch(tree: Drawing, index: int) -> str:
    if tree.left_out[index]:
        return "style=dashed"
    return f"label={quoted_dot(tree.label[index])} penwidth={_width(tree, index):.2f}"


def mermaid_lines(
    view: dict[str, Any], max_depth: int | None = None, max_nodes: int | None = None
) -> Iterator[str]:
    """Yield the lines of a flowchart; the parameters are those of ``svg_lines``."""
    tree = drawing(view, max_depth, max_nodes)
    colours = class_colours(view["nodes"]["weights"][0])
    yield "flowchart TD"
    used: set[str] = set()
    for index in range(len(tree)):
        style = _style(tree, index, colours)
        used.add(style)
        yield f"  n{index}{_mermaid_node(tree, index)}:::{style}"
    for index in range(1, len(tree)):
        yield f"  n{tree.parent[index]} {_mermaid_branch(tree, index)} n{index}"
    for width, links in _widths(tree).items():
        yield f"  linkStyle {','.join(links)} stroke-width:{width}px"
    yield from (_defined(style) for style in sorted(used))


def quoted_mermaid(*lines: str) -> str:
    """Write lines as a label, every character standing for itself."""
    return '"' + "<br/>".join(_escaped_mermaid(line) for line in lines) + '"'


def _escaped_mermaid(text: str) -> str:
    text = _READ_LATER.sub(lambda found: found[0][0] + _NO_WIDTH + found[0][1:], text)
    return "".join(
        char if _HARMLESS.match(text, at) else f"#{ord(char)};"
        for at, char in enumerate(text)
    )


def _mermaid_node(tree: Drawing, index: int) -> str:
    if tree.left_out[index]:
        return f"([{quoted_mermaid(tree.head[index])}])"
    label = quoted_mermaid(tree.head[index], tree.note[index])
    return f"({label})" if tree.is_leaf(index) else f"[{label}]"


def _mermaid_branch(tree: Drawing, index: int) -> str:
    if tree.left_out[index]:
        return "-.-"
    return f"---|{quoted_mermaid(tree.label[index])}|"


def _widths(tree: Drawing) -> dict[str, list[str]]:
    """Return the widths that branches are drawn with, each with the branches."""
    links: dict[str, list[str]] = {}
    for index in range(1, len(tree)):
        width = f"{_width(tree, index):.1f}"
        links.setdefault(width, []).append(str(index - 1))
    return links


def _style(tree: Drawing, index: int, colours: list[int]) -> str:
    if tree.left_out[index]:
        return "more"
    if not tree.is_leaf(index):
        return "split"
    if tree.view["predicts"] == "numbers":
        return "number"
    return f"class{colours[tree.get('label', index)]}"


def _defined(style: str) -> str:
    """Define a style; colours of letters, too, because grounds stay light."""
    if style in ("split", "more"):
        fill, stroke = "#f4f6f8", "#8a94a0"
    else:
        number = style == "number"
        stroke = NUMBER_COLOUR if number else CLASS_COLOURS[int(style[5:])]
        fill = mixed(stroke, _WHITE, _TINT)
    dashes = ",stroke-dasharray:4 3" if style == "more" else ""
    return f"  classDef {style} fill:{fill},stroke:{stroke},color:{_INK}{dashes}"
