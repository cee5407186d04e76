"""Nodes as the page shows them: plain dictionaries, named by paths from the root."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from branchwise.model import Model
from branchwise.render.picture import OTHERS, class_colours
from branchwise.render.view import view
from branchwise.text.conditions import condition_of, phrase, without_column
from branchwise.text.predictions import deviation_of, label_of, outcome
from branchwise.tree.splits import EVERY_BRANCH, STOP

#: How many values of a condition are shown; the rest is counted.
_SHOWN_VALUES = 8


class NodeViews:
    """Makes dictionaries of the nodes of a model.

    ``locks``, ``notes`` and ``by_hand`` are what a session knows of nodes by path.
    """

    def __init__(
        self,
        model: Model,
        locks: Collection[str],
        notes: Mapping[str, str],
        by_hand: Collection[str],
    ) -> None:
        self.model, self.tree = model, model.tree
        self.schema = model.shown_schema
        self._session = locks, notes, by_hand
        self._weighted = model.tree.is_weighted

    def below(self, node: int, path: str) -> list[dict[str, Any]]:
        """Return the node at a path and all nodes below it, parents before children."""
        return [self._seen(*each) for each in self._paths(node, path).items()]

    def _paths(self, node: int, path: str) -> dict[int, str]:
        """Return the paths of a node and of all below it by their numbers, top down."""
        tree = self.tree
        first, count = tree.first_child.tolist(), tree.n_children.tolist()
        found, waiting = {node: path}, [node]
        for parent in waiting:
            stem = "" if found[parent] == "/" else found[parent]
            for at in range(count[parent]):
                child = first[parent] + at
                found[child] = f"{stem}/{at}"
                waiting.append(child)
        return found

    def _seen(self, node: int, path: str) -> dict[str, Any]:
        tree, (locks, notes, by_hand) = self.tree, self._session
        found: dict[str, Any] = {
            "path": path,
            "depth": 0 if path == "/" else path.count("/"),
            "column": None,
            "cases": float(tree.case_counts[node]),
            "weight": float(tree.weights[node].sum()),
            "prediction": outcome(self.schema, tree, node),
            "n_children": int(tree.n_children[node]),
            "locked": path in locks,
            "note": notes.get(path),
            "origin": "leaf",
            **self._branch(node),
            **self._target(node),
        }
        if found["n_children"]:
            column = self.model.schema.columns[int(tree.column[node])]
            found |= {
                "column": column.name,
                "origin": "hand" if path in by_hand else "grown",
                "missing": self._missing_words(node),
                "missing_to": self._missing_route(node),
            }
        return found

    def _branch(self, node: int) -> dict[str, Any]:
        """Write the branch to a node, with and without its column."""
        if not node:
            return {"condition": None, "edge": None}
        condition = condition_of(self.schema, self.tree, node)
        return {
            "condition": phrase(condition, _SHOWN_VALUES, typeset=True),
            "edge": without_column(condition.worded, _SHOWN_VALUES, typeset=True),
        }

    def _target(self, node: int) -> dict[str, Any]:
        """Return the mean of the cases of a node, or their weights by class."""
        tree = self.tree
        if tree.is_regression:
            mean = float(label_of(self.schema, tree, node))
            return {"mean": mean, "deviation": deviation_of(tree, node)}
        weights: list[float] = tree.weights[node].tolist()
        total, label = sum(weights), int(tree.label[node])
        found: dict[str, Any] = {
            "weights": weights,
            "label": label,
            "probability": weights[label] / total if total else None,
        }
        if self._weighted and tree.class_counts is not None:
            found["class_cases"] = tree.class_counts[node].tolist()
        return found

    def _missing_route(self, node: int) -> str | int:
        """Return where missing values go: "stop", "every" or the branch's position."""
        route = int(self.tree.missing_to[node])
        return {STOP: "stop", EVERY_BRANCH: "every"}.get(route, route)

    def _missing_words(self, node: int) -> str:
        """Say where missing values go at a split."""
        tree = self.tree
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
        words = phrase(condition_of(self.schema, tree, child), _SHOWN_VALUES)
        return f"go the way of {words}"


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
