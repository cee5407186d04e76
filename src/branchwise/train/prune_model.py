"""Pruning a finished model, without growing it again.

From the schema, tree and recipe of a model, and rows where a method needs them, to a
smaller tree and the recipe with the method and its parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.one_row import Framed
from branchwise.data.table_schema import Schema
from branchwise.data.target import check_together
from branchwise.data.weights import check_weights
from branchwise.engines.memory import Training
from branchwise.errors import DataError, ParameterError, counted
from branchwise.prune import error_based, subtrees
from branchwise.prune.estimates import cost_estimate
from branchwise.prune.risk import Errors, measure_of
from branchwise.recipe import Recipe
from branchwise.recipe.parameters import ALPHA_RULES, PRUNINGS, Pruning, Risk
from branchwise.text.blocks import Block, Table
from branchwise.text.document import Document, as_text
from branchwise.train.hold_out import (
    PathErrors,
    Units,
    encode_rows,
    errors_by_node,
    power_of_two,
    prune_by_validation,
    total_weight,
)
from branchwise.train.post_pruning import recounter
from branchwise.train.train import with_class_cases
from branchwise.tree.apply import chosen_classes, probabilities_at, with_costs
from branchwise.tree.tree import Tree, stopped_weights, with_collapsed

#: ``str`` of a longer table leaves out its middle.
_SHOWN_ROWS = 40
#: Class weights this close are equal.
_SAME_WEIGHT = 1e-9


@dataclass(frozen=True)
class Rows:
    """Rows to prune with, as a user gives them."""

    X: object
    y: object
    sample_weight: object = None

    @classmethod
    def of(cls, X: object, y: object, sample_weight: object = None) -> Rows | None:
        """Return the rows; None where none are given."""
        return cls(X, y, sample_weight) if check_together(X, y, sample_weight) else None

    def encoded(self, schema: Schema, tree: Tree, recipe: Recipe) -> Training:
        """Encode the columns that the tree splits on."""
        coded = encode_rows(schema, recipe, self.X, self.y, tree.used_columns)
        if self.sample_weight is None:
            return coded
        weights = check_weights(self.sample_weight, coded.data.n_rows)
        return replace(coded, weights=weights)


def pruned(
    schema: Schema, tree: Tree, recipe: Recipe, rows: Rows | None, before: Recipe
) -> tuple[Tree, Recipe]:
    """Prune a tree as set in a recipe; return both, with the chosen ccp_alpha.

    ``before`` is the recipe that the tree was pruned with before.
    """
    if recipe.pruning == "reduced-error":
        if rows is None:
            raise ParameterError(
                "method 'reduced-error' needs rows to prune with that the tree was not "
                "grown from. Pass X and y."
            )
        coded = rows.encoded(schema, tree, recipe)
        return prune_by_validation(tree, coded, recipe), recipe
    if recipe.pruning == "error-based":
        tree = _error_based(schema, tree, recipe, rows)
        return _without_predictions(tree, recipe), recipe
    tree, alpha = _cost_complexity(schema, tree, recipe, rows)
    tree = _without_predictions(tree, recipe)
    same = before.counts_errors == recipe.counts_errors
    if before.pruning == "cost-complexity" and same:
        # The trees are nested: subtrees pruned at a higher alpha stay pruned.
        alpha = max(alpha, float(before.ccp_alpha))
    # With a number, auto is impurity.
    risk: Risk = "errors" if recipe.counts_errors else "auto"
    return tree, replace(recipe, ccp_alpha=alpha, risk=risk)


def _without_predictions(tree: Tree, recipe: Recipe) -> Tree:
    """Leave out predictions that follow from the weights; a model sets them again."""
    return tree if recipe.costs is not None else replace(tree, prediction=None)


def pruning_recipe(
    recipe: Recipe,
    method: Pruning,
    confidence: float,
    raise_subtrees: bool | None,
    tolerance: float,
    ccp_alpha: float | str,
    risk: Risk,
    rows: Rows | None,
) -> Recipe:
    """Return the recipe with another pruning method."""
    if not isinstance(method, str) or method not in PRUNINGS:
        allowed = " or ".join(repr(name) for name in PRUNINGS)
        raise ParameterError(f"method must be {allowed}. Got {method!r} instead.")
    if raise_subtrees is None:
        raise_subtrees = rows is not None or method != "error-based"
    elif raise_subtrees is True and rows is None:
        raise ParameterError(
            "raise_subtrees=True needs the rows that the tree was grown from, to count "
            "them again. Pass X and y."
        )
    if risk == "auto" and method == "cost-complexity":
        # As pruning_path lists them.
        risk = "errors" if recipe.counts_errors else "impurity"
    return replace(
        recipe,
        pruning=method,
        confidence=confidence,
        raise_subtrees=raise_subtrees,
        tolerance=tolerance,
        ccp_alpha=ccp_alpha,
        risk=risk,
    )


def _error_based(schema: Schema, tree: Tree, recipe: Recipe, rows: Rows | None) -> Tree:
    estimate = None
    if recipe.costs is not None and recipe.costs_in == "growth":
        estimate = cost_estimate(recipe, tree.weights[0], recipe.costs, by_costs=False)
    if rows is None or not recipe.raise_subtrees:
        return error_based.pruned(tree, recipe.confidence, None, estimate)
    coded = _filled(rows.encoded(schema, tree, recipe), tree)
    grid = coded.grid(recipe).natural
    count = recounter(coded, grid, recipe)
    if not _known_values(coded) or not _same_counts(count(tree)[0], tree):
        by_costs = ""
        if recipe.costs_in == "growth":
            by_costs = (
                "So do its own rows if some have missing values, because growth "
                "divided them by costs (costs_in='growth'). "
            )
        raise DataError(
            "X and y must be the rows that the tree was grown from, with their "
            "sample_weight: a branch that is raised gets the cases of its siblings, so "
            f"all are counted again. These rows give other counts. {by_costs}Without X "
            "and y branches are not raised."
        )
    # Cases of classes are counted again below, and predictions follow from the weights
    # unless there are costs.
    priced = None if recipe.costs is None else tree.prediction
    bare = replace(tree, class_cases=None, prediction=priced)
    if error_based.prunes(bare):
        smaller = error_based.prune_native(
            coded.columns,
            coded.data,
            coded.target.astype(np.intp, copy=False),
            grid,
            bare,
            replace(recipe, collapse=False),
            estimate,
        )
        smaller = with_costs(smaller, recipe)
    else:
        smaller = error_based.pruned(bare, recipe.confidence, count, estimate)
    return with_class_cases(smaller, coded, grid)


def _filled(coded: Training, tree: Tree) -> Training:
    """Fill the columns that the tree does not use.

    They are not read, but every column must have as many cells as there are rows.
    """
    used = set(tree.used_columns)
    number = np.zeros(coded.data.n_rows)
    code = np.zeros(coded.data.n_rows, dtype=np.uint8)
    cells = tuple(
        cells if index in used else number if column.is_numeric else code
        for index, (column, cells) in enumerate(
            zip(coded.columns, coded.data.data, strict=True)
        )
    )
    return replace(coded, data=replace(coded.data, data=cells))


def _known_values(coded: Training) -> bool:
    """Whether all values of rows are in the schema."""
    pairs = zip(coded.columns, coded.data.data, strict=True)
    return not any(
        (cells == column.unseen_code).any()
        for column, cells in pairs
        if not column.is_numeric
    )


def _same_counts(counted: Tree, tree: Tree) -> bool:
    if len(counted) != len(tree):
        return False
    return np.allclose(counted.weights, tree.weights, _SAME_WEIGHT, atol=0.0)


def _cost_complexity(
    schema: Schema, tree: Tree, recipe: Recipe, rows: Rows | None
) -> tuple[Tree, float]:
    """Return the best tree for a complexity parameter, and that parameter."""
    path = subtrees.pruning_path(tree, measure_of(recipe))
    if recipe.ccp_alpha not in ALPHA_RULES:
        if rows is not None:
            raise ParameterError(
                "X and y have no effect where ccp_alpha is a number. Leave them out, "
                "or let them choose it: ccp_alpha='best' or '1-se'."
            )
        alpha = float(recipe.ccp_alpha)
        return subtrees.at_alpha(tree, path, alpha), alpha
    if rows is None:
        raise ParameterError(
            f"ccp_alpha={recipe.ccp_alpha!r} needs rows to choose by that the tree was "
            "not grown from. Pass X and y."
        )
    coded = rows.encoded(schema, tree, recipe)
    by_node = errors_by_node(tree, coded, recipe, Units.of(coded, recipe, tree))
    choice = PathErrors.along(path, tree, by_node).choice(str(recipe.ccp_alpha))
    alpha = float(path.alphas[choice])
    return subtrees.at_alpha(tree, path, alpha), alpha


def collapse_nodes(tree: Tree, nodes: Sequence[Any]) -> Tree:
    """Collapse nodes that were chosen by hand into leaves."""
    if not nodes:
        raise ParameterError(
            "collapse_nodes needs the numbers of nodes that become leaves."
        )
    leaves = np.zeros(len(tree), dtype=bool)
    for node in nodes:
        _check_node(tree, node)
        leaves[node] = True
    chosen = np.flatnonzero(leaves).tolist()
    for node in chosen:
        above = int(tree.parent[node])
        while above >= 0:
            if leaves[above]:
                raise ParameterError(
                    f"Node {node} cannot be pruned: it is below node {above}, which is "
                    "to be pruned, too. Name one of them."
                )
            above = int(tree.parent[above])
    return with_collapsed(tree, leaves).tree


def _check_node(tree: Tree, node: Any) -> None:
    whole = isinstance(node, Integral) and not isinstance(node, bool)
    if not whole or not 0 <= node < len(tree):
        raise ParameterError(
            "collapse_nodes takes numbers of nodes, from 0, the root, to "
            f"{len(tree) - 1}. Got {node!r}; apply() and rules() return the numbers."
        )
    if tree.n_children[node] == 0:
        raise ParameterError(
            f"Node {node} cannot be pruned: it is a leaf already. Nodes are "
            "renumbered whenever a tree is pruned."
        )


def merged(tree: Tree, recipe: Recipe, change_probabilities: bool) -> Tree:
    """Merge leaves with the same prediction."""

    def probabilities(tree: Tree, weights: Floats, node: Ints) -> Floats:
        return probabilities_at(tree, weights, node, recipe)

    def predicted(tree: Tree, weights: Floats, node: Ints) -> Ints:
        amounts = probabilities_at(tree, weights, node, recipe)
        return chosen_classes(amounts, recipe)

    return subtrees.merged(
        tree,
        None if change_probabilities else probabilities,
        # With frequencies, leaves that predict a class predict it merged, too.
        None if recipe.probabilities == "frequencies" else predicted,
    )


@dataclass(frozen=True)
class PruningTable(Framed, Document):
    """The nested trees of cost-complexity pruning: sizes against errors.

    Attributes
    ----------
    alpha : array
        The least complexity parameter for which each tree is the best.
    n_leaves : array
        Its size.
    train_error, validation_error : array
        The share of wrong predictions (their mean cost, with costs; the mean squared
        error of a regression tree) on the training rows, and on others; the latter is
        None where none were given. A row that is divided among several leaves counts
        at each by its share.
    """

    alpha: Floats
    n_leaves: Ints
    train_error: Floats
    validation_error: Floats | None = None

    def __len__(self) -> int:
        return len(self.alpha)

    def __repr__(self) -> str:
        most, least = int(self.n_leaves[0]), int(self.n_leaves[-1])
        trees = counted(len(self), "tree")
        return f"<pruning table: {trees} of {most:,} to {least:,} leaves>"

    def to_dict(self) -> dict[str, list[float] | list[int] | None]:
        """Return the columns as lists; None for errors that are not known."""
        columns = vars(self).items()
        return {name: None if c is None else c.tolist() for name, c in columns}

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the columns that are known as lists."""
        return {name: col for name, col in self.to_dict().items() if col is not None}

    def blocks(self) -> Iterator[Block]:
        """Yield the whole table."""
        columns = self.to_columns()
        rows = [[_cell(n) for n in row] for row in zip(*columns.values(), strict=True)]
        yield Table(list(columns), rows, words=(), row_heads=False)

    def to_text(self) -> str:
        """Return the table as text; of many rows the first and the last."""
        lines = as_text(self.blocks()).split("\n")
        extra = len(self) - _SHOWN_ROWS
        if extra > 0:
            half = _SHOWN_ROWS // 2
            note = f"... ({extra:,} more rows; to_dict() has all of them)"
            lines[1 + half : 1 + half + extra] = [note]
        return "\n".join(lines)


def _cell(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:.6g}"


def pruning_table(
    schema: Schema, tree: Tree, recipe: Recipe, rows: Rows | None
) -> PruningTable:
    """Compute sizes and errors of the trees of cost-complexity pruning."""
    path = subtrees.pruning_path(tree, measure_of(recipe))
    weight = float(tree.weights[0].sum())
    # In a unit near the total, weights times errors neither overflow nor underflow.
    unit = power_of_two(weight)
    as_leaf = _training_errors(tree, tree.weights / unit, recipe)
    stopping = _training_errors(tree, stopped_weights(tree) / unit, recipe)
    train = path.totals(tree, as_leaf, np.where(tree.is_leaf, 0.0, stopping))
    validation = None
    if rows is not None:
        coded = rows.encoded(schema, tree, recipe)
        units = Units.of(coded, recipe, tree)
        errors = errors_by_node(tree, coded, recipe, units)
        total = path.totals(tree, errors.passing[0], errors.stopping[0])
        validation = total / (total_weight(coded) / units.weight) * units.error
    return PruningTable(path.alphas, path.n_leaves, train / (weight / unit), validation)


def _training_errors(tree: Tree, weights: Floats, recipe: Recipe) -> Floats:
    """Return the errors that nodes make with these weights of training cases."""
    total: Floats = weights.sum(axis=1)
    if tree.deviation is not None:
        return total * tree.deviation**2
    return Errors(recipe.costs).of(tree, weights)
