"""The sections of a page about the tree: the tree itself, its rules, its root."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from html import escape
from typing import Any

from branchwise.errors import counted
from branchwise.model import Model
from branchwise.plain_text import plain
from branchwise.render import html
from branchwise.render.svg import svg_lines
from branchwise.report.blocks import (
    Raw,
    folded,
    paragraph,
    percent,
    score,
    table,
    text,
)
from branchwise.report.table_parts import target_name
from branchwise.steps.result import Steps
from branchwise.view import view
from branchwise.words import word

#: A picture for paper has this room, in its own units: letters stay readable.
_PAPER = (1700.0, 1000.0)
_MOST_DEPTH, _MOST_NODES = 12, 150
#: Pictures that are this narrow need no page of their own.
_UPRIGHT = 900.0
#: So many rules are not folded away.
_OPEN_RULES = 12
#: So many columns are compared at the root.
_COMPARED = 40
#: So many lines of the tree in text.
_LINES = 300
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')
#: What criteria are called.
_CRITERIA = {
    "gain": "information gain",
    "gain_ratio": "gain ratio",
    "gini": "decrease of Gini impurity",
    "variance": "decrease of variance",
    "poisson": "decrease of Poisson deviance",
}
#: Why not all of a large tree is on the page.
_WHY_LESS = "so that this page stays small: branchwise view writes all of it"
#: Why a column is out, where the reason's name is not words.
_OUT = {"average": "gains less than the average", "min_gain": "gains too little"}
#: Parameters of pruning, for where nothing is pruned.
_WITHOUT_EFFECT = ("m", "confidence", "raise_subtrees", "ccp_alpha", "tolerance")


def tree_part(sections: dict[str, Any], model: Model) -> Iterator[Raw]:
    """Show the tree: to try on screen, as a picture on paper, in words."""
    small = shown_model(model)
    whole = len(small.tree) == len(model.tree)
    trying = ", try a case of your own in the panel" if whole else ""
    yield paragraph(
        f"Click a node to read it, type to search{trying}; the ? in the corner lists "
        "all keys.",
        "on-screen faint",
    )
    seen = view(
        small.schema, small.tree, small.recipe, lists=html.lists_for(small.tree)
    )
    words = str(model)
    page = html.page(html.abridged(seen, len(model.tree), _WHY_LESS), words)
    name = text(f"Decision tree for {target_name(sections)}")
    yield Raw(
        f'<iframe class="viewer" sandbox="allow-scripts" title="{name}" '
        f'srcdoc="{escape(page)}"></iframe>'
    )
    yield _paper(small, len(model.tree), name)
    yield folded("The tree as text", _lines(words))
    yield folded("How it was grown: every parameter", *_parameters(sections))


def shown_model(model: Model) -> Model:
    """Return the model, or its upper levels if it is too large for a page."""
    cut = html.beyond_a_notebook(model.tree)
    return model.snip(*cut) if cut else model


def _paper(model: Model, n_nodes: int, name: Raw) -> Raw:
    """Draw as many levels as can be read on paper."""
    seen = view(model.schema, model.tree, model.recipe)
    picture, depth = _fitting(seen)
    size = _SIZE.search(picture)
    wide = size is None or float(size[1]) > _UPRIGHT
    data = base64.b64encode(picture.encode("utf-8")).decode("ascii")
    note = ""
    if depth < seen["depth"] or len(model.tree) < n_nodes:
        note = str(
            paragraph(
                f"The upper {counted(depth, 'level')} of the tree, as far as a page "
                "has room. The rules below, the text, and the page on screen have the "
                "rest.",
                "faint",
            )
        )
    return Raw(
        f'<div class="on-paper{" across" if wide else ""}">'
        f'<img alt="{name}" src="data:image/svg+xml;base64,{data}">{note}</div>'
    )


def _fitting(seen: dict[str, Any]) -> tuple[str, int]:
    """Return the picture of the most levels that fit, and how many they are."""
    best, found = "\n".join(svg_lines(seen, 0, _MOST_NODES)), 0
    for depth in range(1, min(seen["depth"], _MOST_DEPTH) + 1):
        picture = "\n".join(svg_lines(seen, depth, _MOST_NODES))
        size = _SIZE.search(picture)
        if size is None or float(size[1]) > _PAPER[0] or float(size[2]) > _PAPER[1]:
            break
        best, found = picture, depth
    # A first question of many branches is drawn all the same.
    if not found and seen["depth"]:
        return "\n".join(svg_lines(seen, 1, _MOST_NODES)), 1
    return best, found


def _lines(words: str) -> Raw:
    lines = words.split("\n")
    more = len(lines) - _LINES
    shown = lines[:_LINES] + ([f"... ({more:,} more lines)"] if more > 0 else [])
    return Raw(f"<pre>{text(chr(10).join(shown))}</pre>")


def _parameters(sections: dict[str, Any]) -> Iterator[Raw]:
    model = sections["model"]
    own = model["chosen"]
    if own:
        yield paragraph("Chosen for this tree; all others are the algorithm's own:")
        yield table(["parameter", "value"], own.items(), words=(0, 1))
    pruned = model["parameters"]["pruning"]
    rows = [
        [name, _value(value)]
        for name, value in model["parameters"].items()
        if pruned is not None or name not in _WITHOUT_EFFECT
    ]
    caption = f"{model['algorithm']}: the recipe in full"
    yield table(["parameter", "value"], rows, words=(0, 1), caption=caption)
    if model["costs"] is not None:
        classes = [word(one["class"]) for one in sections["data"]["target"]["classes"]]
        yield table(
            ["true class", *classes],
            [
                [name, *(f"{cost:g}" for cost in row)]
                for name, row in zip(classes, model["costs"], strict=True)
            ],
            caption="What each answer costs",
        )


def _value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def rules_part(sections: dict[str, Any]) -> Iterator[Raw]:
    """Say the tree in sentences."""
    found = sections["rules"]
    shown, total = len(found["rules"]), found["of"]
    if shown < total:
        yield paragraph(
            f"The {shown:,} rules that cover most, of {total:,}; together they cover "
            f"{percent(found['covered'])} of the training rows."
        )
    else:
        yield paragraph(
            "One rule for each leaf, those that cover most first. Exactly one applies "
            "to a row whose values are known."
        )
    sentences = [rule["sentence"] for rule in found["rules"]]
    yield _listed(sentences[:_OPEN_RULES], 1)
    if sentences[_OPEN_RULES:]:
        more = f"{len(sentences) - _OPEN_RULES:,} more rules"
        yield folded(more, _listed(sentences[_OPEN_RULES:], _OPEN_RULES + 1))
    yield paragraph(found["note"], "faint")


def _listed(sentences: list[str], first: int) -> Raw:
    items = "\n".join(f"<li>{text(sentence)}</li>" for sentence in sentences)
    return Raw(f'<ol class="rules" start="{first}">{items}</ol>')


def root_part(sections: dict[str, Any], steps: Steps | None) -> Iterator[Raw]:
    """Show how the first question was found, as one writes it by hand."""
    if steps is None:
        yield paragraph(sections["root_split"]["left_out"])
        return
    root = sections["root_split"]
    asked = root["column"]
    yield paragraph(
        f"Of all columns, {word(asked)} is asked first. Each had its best split; the "
        f"score is the {_CRITERIA.get(root['criterion'], 'criterion')} of that split."
        + ("" if root["as_chosen"] else " Pruning has changed the root since.")
    )
    rows = [
        [
            word(one["column"]),
            score(one["score"]),
            score(one["gain"]),
            "asked"
            if one["column"] == asked
            else _OUT.get(one["out"], one["out"] or ""),
        ]
        for one in root["candidates"][:_COMPARED]
    ]
    yield table(["column", "score", "gain", ""], rows, words=(0, 3))
    yield folded("The whole computation", Raw(steps.to_html_fragment(heading=3)))


def heading_of(sections: dict[str, Any]) -> str:
    """Return the heading of the page."""
    given = sections["title"]
    if given is not None:
        return plain(given)
    return f"{target_name(sections)}: report on a decision tree"
