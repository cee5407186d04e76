"""The tree as one HTML page that needs nothing else: no network, no library.

The page is a template (``assets/viewer.html``) with a style sheet, scripts and the
view of the tree as JSON. Scripts and styles are allowed by their hashes only, and the
network not at all, so that nothing that a name or a value holds can run or be fetched.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from branchwise.errors import plain
from branchwise.files.raw_bytes import atomic_write
from branchwise.render.picture import OTHERS, class_colours, variables
from branchwise.render.view import WEIGHTED_LISTS
from branchwise.text import as_html as html
from branchwise.text.conditions import UNNAMED
from branchwise.tree.tree import Tree

_ASSETS = "render/assets"
#: The scripts are one module, joined in this order.
SCRIPTS = (
    "dom.js",
    "tree.js",
    "words.js",
    "decide.js",
    "layout.js",
    "camera.js",
    "draw.js",
    "node_panel.js",
    "case_panel.js",
    "search.js",
    "keys.js",
    "main.js",
)
#: What a page needs of the lists of a view; it phrases branches itself.
LISTS = (
    "n_children",
    "column",
    "threshold",
    "missing_to",
    "unseen_to",
    "gain",
    "codes",
    "label",
    "weight",
    "weights",
    "probabilities",
    "mean",
    "deviation",
)
LISTS_FOR_NUMBERS = (*LISTS, "prediction")
#: Identifies pages of branchwise.
GENERATOR = '<meta name="generator" content="branchwise">'
#: Trees up to this many nodes are shown in notebooks as a whole.
NOTEBOOK_NODES = 2000
#: Digits of figures that are only shown and never decide.
_SHOWN_DIGITS = 9


def lists_for(tree: Tree) -> tuple[str, ...]:
    """Return the lists of the view that a page of this tree needs."""
    return LISTS_FOR_NUMBERS if tree.is_regression else LISTS


def page(view: dict[str, Any], text: str, title: str | None = None) -> str:
    """Return a whole HTML page.

    Parameters
    ----------
    view : dict
        What :func:`~branchwise.render.view.view` returns, with the lists needed.
    text : str
        The tree as text, for readers without scripts.
    title : str or None
        The heading; by default what is predicted.
    """
    # A title is shown as names are: nothing in it may break a line or hide.
    heading = plain(title) if title is not None else _heading(view["target"])
    style, script = style_and_script()
    return html.page(
        f"{_ASSETS}/viewer.html",
        policy=html.policy([style], [script]),
        title=heading,
        style=style,
        text=text,
        data=compact(view),
        script=script,
    )


def style_and_script() -> tuple[str, str]:
    """Return the style and the script of a page; embedding pages must allow them."""
    style = "\n".join([*variables(), html.asset(f"{_ASSETS}/viewer.css")])
    script = "\n".join(html.asset(f"{_ASSETS}/{name}") for name in SCRIPTS)
    return html.markup(style), html.markup(script)


def _heading(target: str) -> str:
    return "Decision tree" if target == UNNAMED else f"{target}: decision tree"


def save_page(path: str | os.PathLike[str], content: str) -> None:
    """Write a page, whole or not at all."""
    with atomic_write(path) as file:
        file.write(content.encode("utf-8"))


def in_frame(content: str, text: str) -> str:
    """Return a page in a frame of its own, which a notebook's style cannot touch."""
    return html.page(f"{_ASSETS}/frame.html", content=content, text=text)


def beyond_a_notebook(tree: Tree) -> list[int]:
    """Return the nodes to collapse, so that a notebook can hold what is left."""
    if len(tree) <= NOTEBOOK_NODES:
        return []
    last = sum(stop <= NOTEBOOK_NODES for _, stop in tree.levels()) - 1
    # At least the first split, however many branches it has.
    deepest = tree.depth == max(last, 1)
    nodes: list[int] = np.flatnonzero(deepest & ~tree.is_leaf).tolist()
    return nodes


def abridged(view: dict[str, Any], n_nodes: int, why: str) -> dict[str, Any]:
    """Let a view say so, and why, if it has not all nodes."""
    missing = view["n_nodes"] < n_nodes
    return view | {"abridged": {"n_nodes": n_nodes, "why": why}} if missing else view


def compact(view: dict[str, Any]) -> dict[str, Any]:
    """Return a view without what the page can work out, for small files.

    The lists of splits have entries for split nodes only; the codes of a branch are a
    number where there is one.
    """
    nodes = view["nodes"]
    splitting = [i for i, number in enumerate(nodes["n_children"]) if number]
    kept = {key: value for key, value in view.items() if key != "nodes"}
    kept["n_children"] = nodes["n_children"]
    for name in ("column", "threshold", "missing_to", "unseen_to"):
        kept[name] = [nodes[name][i] for i in splitting]
    kept["gain"] = [_shown(nodes["gain"][i]) for i in splitting]
    kept["codes"] = [c[0] if len(c) == 1 else c for c in nodes["codes"]]
    if view["predicts"] == "numbers":
        kept["weight"] = nodes["weight"]
        kept["mean"] = nodes["mean"]
        kept["prediction"] = nodes["prediction"]
        kept["deviation"] = [_shown(d) for d in nodes["deviation"]]
    else:
        kept["label"] = nodes["label"]
        kept["colours"] = class_colours(nodes["weights"][0])
        kept["shared_colour"] = OTHERS
        kept["weights"], kept["probabilities"] = _compact_weights(nodes)
    for name in WEIGHTED_LISTS:
        if name in nodes:
            kept[name] = nodes[name]
    return kept


def _shown(figure: float) -> float | int:
    """Round what is only shown; whole numbers go without a point."""
    rounded = float(f"{figure:.{_SHOWN_DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def _compact_weights(nodes: dict[str, list[Any]]) -> tuple[Any, Any]:
    """Return the weights of classes, and the probabilities unless the page can divide.

    Where most weights are 0, those of a node are pairs of class and weight.
    """
    weights = np.array(nodes["weights"], dtype=np.float64)
    total = np.zeros(len(weights))
    for column in weights.T:  # in the order in which the page adds
        total += column
    shares = weights / total[:, np.newaxis]
    same = bool((shares == np.array(nodes["probabilities"])).all())
    rows: Sequence[Any] = nodes["weights"]
    if np.count_nonzero(weights) < 0.4 * weights.size:
        rows = [[x for k, w in enumerate(row) if w for x in (k, w)] for row in rows]
        return {"pairs": rows}, None if same else nodes["probabilities"]
    return rows, None if same else nodes["probabilities"]
