"""The view dictionary: a tree in plain values, from which pictures are drawn.

A view holds words that are ready to be shown (names and values as
``text/conditions.py`` writes them, not yet escaped for HTML or any other language) and
the numbers behind them. ``json.dumps`` takes it as it is. ``docs/views.md`` says what
each list of the nodes is. Branches of more values than are shown are in
``view["shortened"]`` in full, by the number of the node. ``view["reasons"]`` is there
where costs or smoothed probabilities decided for another class than the usual one: by
node, why.

Optional ``"candidates"``: by node (as text) a list of ``{"column", "score", "chosen",
"note"}``, the candidate columns of the split.

:func:`page` puts a view into one HTML page with a style sheet and scripts. These are
allowed by their hashes only, and the network not at all, so that nothing that a name or
a value holds can run or be fetched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.data.table_schema import Column, Schema
from branchwise.errors import check_limit, plain
from branchwise.files.raw_bytes import atomic_write
from branchwise.grow.criteria import split_gains
from branchwise.recipe import Recipe
from branchwise.render.picture import OTHERS, class_colours, variables
from branchwise.text import SHOWN_VALUES, conditions, words
from branchwise.text import as_html as html
from branchwise.text.conditions import surrogates_of
from branchwise.text.label_words import target_unit, unit_of
from branchwise.text.predictions import (
    Reasons,
    deviation_of,
    outcome,
    prediction,
    reasons_of,
    tally,
)
from branchwise.tree.apply import node_probabilities
from branchwise.tree.tree import Tree

#: Additional lists where training cases had weights.
_WEIGHTED_LISTS = ("cases", "class_cases")


def view(
    schema: Schema,
    tree: Tree,
    recipe: Recipe,
    max_values: int = SHOWN_VALUES,
    lists: Collection[str] | None = None,
) -> dict[str, Any]:
    """Return the dictionary that views are drawn from.

    Of a list, ``max_values`` are named before the rest is only counted. Only ``lists``
    of the nodes are made, if given, because words take time where nodes are many.
    """
    check_limit("max_values", max_values, 1, optional=False)
    numbers = tree.is_regression
    reasons = reasons_of(schema.classes, tree, recipe)
    makers = _makers(schema, tree, recipe, max_values, reasons)
    wanted = makers if lists is None else lists
    seen: dict[str, Any] = {
        "format": "branchwise-view",
        "version": 1,
        "target": words.target(schema),
        "predicts": "numbers" if numbers else "classes",
        "classes": [words.word(label) for label in schema.classes],
        "algorithm": recipe.algorithm,
        "impurity": _impurity_name(tree, recipe),
        "missing": recipe.missing,
        "unseen": recipe.unseen,
        "n_nodes": len(tree),
        "n_leaves": tree.n_leaves,
        "depth": tree.max_depth,
        "columns": [
            _column(c, i in tree.used_columns) for i, c in enumerate(schema.columns)
        ],
        "costs": None if recipe.costs is None else [list(row) for row in recipe.costs],
        "nodes": {name: make() for name, make in makers.items() if name in wanted},
        "surrogates": _surrogates(schema, tree),
        "shortened": _shortened(schema, tree, max_values) if "branch" in wanted else {},
    }
    seen |= target_unit(schema).fields
    if tree.is_weighted:
        seen["weighted"] = True
        seen["nodes"] |= _weighted_lists(tree)
    if reasons:
        seen["reasons"] = {str(node): words for node, words in reasons.items()}
    return seen


def _weighted_lists(tree: Tree) -> dict[str, list[Any]]:
    lists = {"cases": _plain(tree.case_counts)}
    if tree.class_cases is not None:
        lists["class_cases"] = _plain(tree.class_cases)
    return lists


def _impurity_name(tree: Tree, recipe: Recipe) -> str:
    if tree.is_regression:
        return "variance"
    return "Gini impurity" if recipe.criterion == "gini" else "entropy"


def _column(column: Column, used: bool) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": words.word(column.name),
        "kind": column.kind,
        "used": used,
        "values": [words.word(value) for value in column.categories],
    }
    described |= unit_of(column).fields
    if column.is_whole:
        described["number_kind"] = column.number_kind
    if column.date is not None:
        described["number_kind"] = "whole"
        described["date"] = column.date.fields
    if column.date_feature is not None:
        described["number_kind"] = "whole"
        described["feature"] = column.date_feature.feature
    return described


def _makers(
    schema: Schema,
    tree: Tree,
    recipe: Recipe,
    max_values: int,
    reasons: Reasons,
) -> dict[str, Callable[[], list[Any]]]:
    """Return the functions that make the lists of the nodes."""
    every = range(len(tree))
    none: list[None] = [None] * len(tree)
    numbers = tree.is_regression
    return {
        "parent": tree.parent.tolist,
        "depth": tree.depth.tolist,
        "n_children": tree.n_children.tolist,
        "first_child": tree.first_child.tolist,
        "column": tree.column.tolist,
        "threshold": lambda: [
            None if t != t else t + 0.0 for t in tree.threshold.tolist()
        ],
        "branch": lambda: [
            "",
            *(
                conditions.branch(schema, tree, i, max_values, typeset=True)
                for i in every[1:]
            ),
        ],
        "edge": lambda: [
            "",
            *(
                conditions.edge(schema, tree, i, max_values, typeset=True)
                for i in every[1:]
            ),
        ],
        "prediction": lambda: [outcome(schema, tree, i) for i in every],
        "label": lambda: none if numbers else tree.label.tolist(),
        "summary": lambda: [prediction(schema, tree, i, reasons) for i in every],
        "tally": lambda: [tally(schema, tree, i, reasons) for i in every],
        "weight": lambda: _plain(tree.weights.sum(axis=1)),
        "weights": lambda: _plain(tree.weights),
        "probabilities": lambda: _probabilities(tree, recipe),
        "mean": lambda: none if tree.mean is None else tree.mean.tolist(),
        "deviation": lambda: [deviation_of(tree, i) for i in every],
        "impurity": lambda: _impurities(tree, recipe).tolist(),
        "gain": lambda: split_gains(tree, recipe.criterion == "gini").tolist(),
        "codes": lambda: _codes(tree),
        "missing_to": tree.missing_to.tolist,
        "unseen_to": tree.unseen_to.tolist,
    }


def _probabilities(tree: Tree, recipe: Recipe) -> list[Any]:
    if tree.is_regression:
        return [[]] * len(tree)
    probabilities: list[Any] = node_probabilities(tree, recipe).tolist()
    return probabilities


def _codes(tree: Tree) -> list[list[int]]:
    codes, ends = tree.codes.tolist(), tree.code_starts.tolist()
    return [codes[start:stop] for start, stop in pairwise(ends)]


def _plain(weights: Floats) -> list[Any]:
    """Return weights as a list: whole ones, where all are, without a point."""
    whole = bool((weights == np.rint(weights)).all() and weights.max() < 2**53)
    plain: list[Any] = weights.astype(np.int64 if whole else np.float64).tolist()
    return plain


def _impurities(tree: Tree, recipe: Recipe) -> Floats:
    """Return the impurity of every node, from its class shares."""
    if tree.deviation is not None:
        return tree.deviation**2
    share = tree.weights / tree.weights.sum(axis=1, keepdims=True)
    if recipe.criterion == "gini":
        gini: Floats = 1.0 - (share * share).sum(axis=1)
        return gini
    logs = np.log2(share, out=np.zeros_like(share), where=share > 0)
    entropy: Floats = -(share * logs).sum(axis=1) + 0.0
    return entropy


def _surrogates(schema: Schema, tree: Tree) -> dict[str, Any]:
    """Return, by node, its surrogates in order."""
    if tree.surrogates is None:
        return {}
    position = {name: index for index, name in enumerate(schema.names)}
    return {
        str(node): [
            {
                "column": position[surrogate.first.column],
                "words": str(surrogate),
                "branches": [_met(schema, c) for c in surrogate],
            }
            for surrogate in surrogates_of(schema, tree, node)
        ]
        for node in np.flatnonzero(tree.surrogates.number).tolist()
    }


def _shortened(schema: Schema, tree: Tree, max_values: int) -> dict[str, str]:
    """Return, by node, the branches that name only some of their values, in full."""
    long = np.flatnonzero(tree.n_codes > max_values).tolist()
    full = ((i, conditions.condition_of(schema, tree, i)) for i in long)
    # A number has no list: all that can be said of both sides is that it is known.
    return {
        str(node): conditions.phrase(condition, len(condition.value))
        for node, condition in full
        if isinstance(condition.value, tuple)
    }


def _met(schema: Schema, condition: conditions.Condition) -> dict[str, Any]:
    """Return a condition as a bound of numbers or as codes of values."""
    if condition.op in ("<=", ">"):
        return {"op": condition.op, "threshold": condition.value}
    column = next(c for c in schema.columns if c.name == condition.column)
    values = condition.value
    several = values if isinstance(values, tuple) else (values,)
    return {"op": "in", "codes": [column.code_of[v] for v in several]}  # type: ignore[index]


_ASSETS = "render/assets"
#: The scripts are one module, joined in this order.
SCRIPTS = (
    "dom.js",
    "walk.js",
    "tree.js",
    "dates.js",
    "numbers.js",
    "words.js",
    "predictions.js",
    "decide.js",
    "shapley.js",
    "measure.js",
    "layout.js",
    "camera.js",
    "draw.js",
    "snapshot.js",
    "node_panel.js",
    "case_panel.js",
    "search.js",
    "selection.js",
    "legend.js",
    "arrows.js",
    "keys.js",
    "main.js",
)
#: The style sheets, joined in this order.
STYLES = ("viewer.css", "panel.css", "media.css")
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
    """Return a whole HTML page; ``text`` is for readers without scripts."""
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
    style = "\n".join(
        [*variables(), *(html.asset(f"{_ASSETS}/{name}") for name in STYLES)]
    )
    script = "\n".join(html.asset(f"{_ASSETS}/{name}") for name in SCRIPTS)
    return html.markup(style), html.markup(script)


def _heading(target: str) -> str:
    return "Decision tree" if target == words.UNNAMED else f"{target}: decision tree"


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
    for name in _WEIGHTED_LISTS:
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
