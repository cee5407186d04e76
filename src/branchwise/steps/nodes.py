"""Steps of chosen nodes: the search is repeated, and its figures are collected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.bins import numbers_of_thresholds
from branchwise.data.weights import check_weights
from branchwise.engines.memory import Training
from branchwise.errors import DataError, ParameterError
from branchwise.grow.choose import Stop, few_values
from branchwise.recipe import Recipe
from branchwise.steps.candidates import Worked, ending, worked
from branchwise.steps.numbers import (
    Bars,
    Child,
    Ending,
    Group,
    NodeSteps,
    Rows,
    Visit,
    visits,
)
from branchwise.text.conditions import Condition, absent_values, condition_of
from branchwise.text.predictions import prediction
from branchwise.text.words import word
from branchwise.train.fitted_tree import FittedTree
from branchwise.train.hold_out import encode_rows
from branchwise.tree.splits import EVERY_BRANCH, STOP
from branchwise.tree.tree import Tree

#: Stands for every node of a tree.
ALL = "all"


#: Of a longer path only the end is given: trees may be 100,000 levels deep.
_LONGEST_PATH = 100
#: Nodes whose candidates a page shows.
_WORKED_NODES = 200


def bars_of(recipe: Recipe, training: Training, n_cases: float) -> Bars:
    """Return the requirements of a recipe for splits, in cases."""
    bars = (recipe.cases_to_split, recipe.cases_in_leaf, recipe.cases_in_branch)
    # As they were before they were lowered a little.
    to_split, in_leaf, in_branch = (float(round(bar(n_cases))) for bar in bars)
    weights = training.weights
    weighted = training.grid(recipe).fractions or (
        weights is not None and not bool(((weights == 0) | (weights == 1)).all())
    )
    return Bars(recipe, to_split, in_leaf, in_branch, weighted)


def encoded(model: FittedTree, X: object, y: object, sample_weight: object) -> Training:
    """Encode all columns of the rows that a tree was grown from."""
    for name, given in (("X", X), ("y", y)):
        if given is None:
            raise ParameterError(
                f"steps needs the rows that the tree was grown from, X and y, to count "
                f"them again. Got None for {name}."
            )
    if model.recipe.costs_in == "growth":
        raise ParameterError(
            "steps counts cases or their weights, and this tree was grown from rows "
            "that weigh by costs (costs_in='growth'). Fit one with "
            "costs_in='prediction' to work it out."
        )
    training = encode_rows(
        model.schema, model.recipe, X, y, range(len(model.schema.columns))
    )
    for column, cells in zip(training.columns, training.data.data, strict=True):
        if column.is_numeric or not (cells == column.unseen_code).any():
            continue
        row = int(np.argmax(cells == column.unseen_code))
        raise DataError(
            f"Column {column.name!r} has a value in row {row} that the tree was not "
            "grown from. X and y must be the rows that it was grown from.",
            row=row,
            column=column.name,
        )
    if sample_weight is None:
        return training
    return replace(training, weights=check_weights(sample_weight, training.data.n_rows))


def wanted_nodes(tree: Tree, node: object) -> NDArray[np.bool_]:
    """Read which nodes are to be worked out: a number, several, or "all"."""
    wanted = np.zeros(len(tree), dtype=bool)
    if isinstance(node, str) and node == ALL:
        return ~wanted
    listed = isinstance(node, Sequence) and not isinstance(node, str)
    for each in node if listed else [node]:  # type: ignore[attr-defined]
        whole = isinstance(each, Integral) and not isinstance(each, bool)
        if not whole or not 0 <= each < len(tree):
            raise ParameterError(
                f"node must be the number of a node, from 0, the root, to "
                f"{len(tree) - 1}, a list of them or 'all'. Got {each!r}; rules() "
                "and apply() give the numbers."
            )
        wanted[each] = True
    if not wanted.any():
        raise ParameterError("node must name one node at least. Got an empty list.")
    return wanted


def node_steps(
    model: FittedTree, training: Training, wanted: NDArray[np.bool_]
) -> list[NodeSteps]:
    """Work out the wanted nodes, in the order of their numbers."""
    tree, recipe = model.tree, model.recipe
    rows = Rows.of(training, tree, recipe)
    # Of leaves below them one wants to know why they are leaves.
    below = wanted.copy()
    below[1:] |= wanted[tree.parent[1:]] & tree.is_leaf[1:]
    endings: dict[int, Ending] = {}
    done: dict[int, NodeSteps] = {}
    for visit in visits(rows, training, recipe, below):
        for at, node in enumerate(visit.nodes.tolist()):
            if tree.is_leaf[node]:
                endings[node] = ending(visit, at)
        if wanted[visit.nodes].any():
            pieces = worked(visit, rows, recipe)
            for at, node in enumerate(visit.nodes.tolist()):
                if wanted[node]:
                    done[node] = _steps(model, rows, visit, pieces, at)
    return [
        replace(
            done[node] if node in done else _without_cases(model, node),
            children=tuple(_children(model, node, endings)),
            missing_goes=_missing_goes(model, node),
        )
        for node in np.flatnonzero(wanted).tolist()
    ]


def in_labels(model: FittedTree, rows: Training) -> tuple[FittedTree, Training]:
    """Return a model and its rows with the titles and words of labels."""
    schema = model.shown_schema
    if schema is model.schema:
        return model, rows
    shown = FittedTree(schema, model.tree, model.recipe)
    return shown, replace(rows, columns=schema.columns)


def candidate_scores(
    model: FittedTree, X: object, y: object, sample_weight: object
) -> dict[str, list[dict[str, Any]]]:
    """Return, by node, what every column would have gained there, for a page."""
    splitting = np.flatnonzero(model.tree.n_children)[:_WORKED_NODES].tolist()
    if not splitting:
        return {}
    training = encoded(model, X, y, sample_weight)
    model, training = in_labels(model, training)
    nodes = node_steps(model, training, wanted_nodes(model.tree, splitting))
    return {
        str(node.node): [
            {
                "column": word(candidate.column),
                "score": candidate.score,
                "chosen": candidate.column == node.column,
                "note": "" if candidate.out is None else "out",
            }
            for candidate in node.candidates
            if candidate.score is not None
        ]
        for node in nodes
    }


def _without_cases(model: FittedTree, node: int) -> NodeSteps:
    """Return the steps of a node that no row reaches."""
    tree = model.tree
    n_classes = 0 if tree.is_regression else len(model.schema.classes)
    return NodeSteps(
        node,
        int(tree.depth[node]),
        _path(model, node),
        Group(None, (0.0,) * n_classes, 0.0, 0.0, None),
        _said(model, node),
        column=_split_column(model, node),
        ending="no cases" if tree.is_leaf[node] else None,
    )


def _steps(
    model: FittedTree, rows: Rows, visit: Visit, pieces: Worked, at: int
) -> NodeSteps:
    tree, node = model.tree, int(visit.nodes[at])
    leaf = bool(tree.is_leaf[node])
    steps = replace(
        _without_cases(model, node),
        whole=pieces.whole[at],
        as_chosen=leaf,
        ending=ending(visit, at) if leaf else None,
        absent=() if leaf else absent_values(model.schema, tree, node),
    )
    if visit.stop[at] != Stop.OPEN:
        return steps
    chosen = int(visit.found.chosen[at])
    average = float(visit.found.average[at])
    return replace(
        steps,
        candidates=tuple(pieces.candidates[at]),
        average=average if np.isfinite(average) else None,
        averaged=_averaged(visit, at) if np.isfinite(average) else (),
        p_value=pieces.p_value[at],
        chosen=model.schema.columns[chosen].name if chosen >= 0 else None,
        as_chosen=_as_chosen(tree, rows, visit, at),
    )


def _said(model: FittedTree, node: int) -> str:
    """Write the prediction and the cases of a node."""
    return prediction(model.schema, model.tree, node, model.reasons)


def _split_column(model: FittedTree, node: int) -> str | None:
    if model.tree.is_leaf[node]:
        return None
    return model.schema.columns[int(model.tree.column[node])].name


def _averaged(visit: Visit, at: int) -> tuple[str, ...]:
    """Return the columns that make up the average gain of a node."""
    columns = visit.search.columns
    few = few_values(columns, visit.search.n_training_cases)
    some = few & (visit.found.gains[at] > -np.inf)
    return tuple(columns[index].name for index in np.flatnonzero(some).tolist())


def _path(model: FittedTree, node: int) -> tuple[Condition, ...]:
    conditions: list[Condition] = []
    while node > 0 and len(conditions) < _LONGEST_PATH:
        conditions.append(condition_of(model.schema, model.tree, node))
        node = int(model.tree.parent[node])
    return tuple(reversed(conditions))


def _as_chosen(tree: Tree, rows: Rows, visit: Visit, at: int) -> bool:
    """Whether the tree does at a node what the search would do."""
    node, splits = int(visit.nodes[at]), visit.splits
    if int(splits.column[at]) != int(tree.column[node]):
        return False
    column = splits.column[[at]]
    threshold = numbers_of_thresholds(splits.threshold[[at]], column, rows.edges)[0]
    if column[0] >= 0 and not np.array_equal(
        threshold, tree.threshold[node], equal_nan=True
    ):
        return False
    theirs = [tree.codes_of(child) for child in tree.children(node)]
    return theirs == visit.codes_of_branches(at)


def _children(
    model: FittedTree, node: int, endings: dict[int, Ending]
) -> Iterator[Child]:
    tree = model.tree
    for child in tree.children(node):
        yield Child(
            child,
            condition_of(model.schema, tree, child),
            _said(model, child),
            float(tree.cases[child]),
            _split_column(model, child),
            endings.get(child, "no cases") if tree.is_leaf[child] else None,
        )


def _missing_goes(model: FittedTree, node: int) -> str | None:
    """Write where missing values go that have no branch of their own."""
    tree, columns = model.tree, model.schema.columns
    if tree.is_leaf[node] or not columns[int(tree.column[node])].has_missing:
        return None
    route = int(tree.missing_to[node])
    if route == STOP:
        return "they stop here and get this node's prediction"
    if route == EVERY_BRANCH:
        return "they go down every branch, divided by the weights of the branches"
    child = tree.children(node)[route]
    if tree.is_missing_branch(child):
        return None
    if tree.n_surrogates is not None and tree.n_surrogates[node]:
        return f"surrogate splits send them down a branch, else they go to node {child}"
    return f"they go to node {child}"
