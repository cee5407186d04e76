"""Nodes as the page shows them: plain dictionaries, named by paths from the root."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from branchwise.model import Model
from branchwise.render.picture import OTHERS, class_colours
from branchwise.render.view import view
from branchwise.text.conditions import branch, condition_of, edge, phrase
from branchwise.text.predictions import deviation_of, label_of, outcome, tally
from branchwise.tree.splits import EVERY_BRANCH, STOP

#: How many values of a condition are shown; the rest is counted.
_SHOWN_VALUES = 8


def paths_below(model: Model, node: int, path: str) -> dict[int, str]:
    """Return the paths of a node and of all below it by their numbers, top down."""
    tree = model.tree
    first, count = tree.first_child.tolist(), tree.n_children.tolist()
    found, waiting = {node: path}, [node]
    for parent in waiting:
        stem = "" if found[parent] == "/" else found[parent]
        for at in range(count[parent]):
            child = first[parent] + at
            found[child] = f"{stem}/{at}"
            waiting.append(child)
    return found


def nodes_below(
    model: Model,
    node: int,
    path: str,
    locks: Collection[str],
    notes: Mapping[str, str],
    by_hand: Collection[str],
) -> list[dict[str, Any]]:
    """Return the node at a path and all nodes below it, parents before children."""
    return [
        {
            **described(model, number, at),
            "locked": at in locks,
            "note": notes.get(at),
            "origin": _origin(model, number, at, by_hand),
        }
        for number, at in paths_below(model, node, path).items()
    ]


def _origin(model: Model, node: int, path: str, by_hand: Collection[str]) -> str:
    if model.tree.is_leaf[node]:
        return "leaf"
    return "hand" if path in by_hand else "grown"


def described(model: Model, node: int, path: str) -> dict[str, Any]:
    """Return what the tree itself tells of a node."""
    schema, tree = model.schema, model.tree
    leaf = bool(tree.is_leaf[node])
    found: dict[str, Any] = {
        "path": path,
        "depth": 0 if path == "/" else path.count("/"),
        "column": None if leaf else schema.columns[int(tree.column[node])].name,
        "condition": _branch(model, node, branch),
        "edge": _branch(model, node, edge),
        "cases": float(tree.case_counts[node]),
        "prediction": outcome(schema, tree, node),
        "tally": tally(schema, tree, node, model.reasons),
        "n_children": int(tree.n_children[node]),
        "missing": None if leaf else missing_words(model, node),
        "missing_to": None if leaf else missing_route(model, node),
        "weight": float(tree.weights[node].sum()),
    }
    if tree.is_regression:
        mean = float(label_of(schema, tree, node))
        return found | {"mean": mean, "deviation": deviation_of(tree, node)}
    weights, counts = tree.weights[node], tree.class_counts
    total, label = float(weights.sum()), int(tree.label[node])
    return found | {
        "weights": weights.tolist(),
        "class_cases": None if counts is None else counts[node].tolist(),
        "label": label,
        "probability": float(weights[label]) / total if total else None,
    }


def _branch(model: Model, node: int, write: Callable[..., str]) -> str | None:
    """Write the branch to a node, with or without its column; the root has none."""
    if not node:
        return None
    return write(model.schema, model.tree, node, _SHOWN_VALUES, typeset=True)


def missing_route(model: Model, node: int) -> str | int:
    """Return where missing values go: "stop", "every" or the position of a branch."""
    route = int(model.tree.missing_to[node])
    return {STOP: "stop", EVERY_BRANCH: "every"}.get(route, route)


def tree_description(model: Model) -> dict[str, Any]:
    """Return what the page needs beside the nodes: classes, columns, colours, units."""
    seen = view(model.shown_schema, model.tree, model.recipe, lists=())
    for name in ("format", "version", "nodes", "surrogates", "shortened", "costs"):
        del seen[name]
    for described, column in zip(seen["columns"], model.schema.columns, strict=True):
        described["name"] = column.name
    if not model.tree.is_regression:
        seen["class_values"] = list(model.schema.classes)
        seen["colours"] = class_colours(model.tree.weights[0].tolist())
        seen["shared_colour"] = OTHERS
    return seen


def missing_words(model: Model, node: int) -> str:
    """Say where missing values go at a split."""
    tree = model.tree
    route = int(tree.missing_to[node])
    if route == STOP:
        return "stop here, with the prediction of this node"
    if route == EVERY_BRANCH:
        return "go down every branch, by the shares of the branches"
    child = tree.children(node)[route]
    if tree.is_missing_branch(child):
        return "have a branch of their own"
    if tree.n_surrogates is not None and tree.n_surrogates[node]:
        return "go where surrogate splits send them"
    words = phrase(condition_of(model.schema, tree, child), _SHOWN_VALUES)
    return f"go the way of {words}"
