r"""The tree in DOT, the language of Graphviz.

Labels are plain quoted strings, never HTML-like ones. Graphviz reads backslashes
(``\N`` is the name of a node) and entities (``&lt;``) in them; both are written so
that a name shows as it is.
"""

from __future__ import annotations

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
_THICKEST = 6.0


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
        yield f"  n{index} [{_attributes(tree, index, colours)}]"
        if index:
            yield f"  n{tree.parent[index]} -> n{index} [{_branch(tree, index)}]"
    yield "}"


def quoted_dot(*lines: str) -> str:
    """Write lines as one DOT string, every character standing for itself."""
    return '"' + r"\n".join(_escaped(line) for line in lines) + '"'


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("\\", r"\\").replace('"', r"\"")


def _attributes(tree: Drawing, index: int, colours: list[int]) -> str:
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


def _branch(tree: Drawing, index: int) -> str:
    if tree.left_out[index]:
        return "style=dashed"
    width = 1.0 + (_THICKEST - 1.0) * tree.share(index)
    return f"label={quoted_dot(tree.label[index])} penwidth={width:.2f}"
