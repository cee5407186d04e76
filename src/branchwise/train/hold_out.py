"""Hold-out rows: their assignment, reduced-error pruning, errors of nested trees.

Row order does not matter here, either: rows are assigned by a hash of their contents,
not by their position. Equal rows are interchangeable, so the result does not depend
on which of them is in which group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import TIE, Floats, Ints, distinct
from branchwise.data.bins import Edges
from branchwise.data.encode import encode_columns
from branchwise.data.frames import open_table
from branchwise.data.table_schema import Schema
from branchwise.data.target import learn_numbers, learn_target
from branchwise.engines.base import Plan, Source
from branchwise.engines.memory import Training
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.grow.grow import count_down
from branchwise.prune import subtrees
from branchwise.recipe import Recipe
from branchwise.recipe.parameters import PARAMETERS
from branchwise.train.train import between_bins
from branchwise.tree.apply import Walker
from branchwise.tree.tree import Tree, at_label, stopped_weights

_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
#: Far apart, so that hashes of other repeats are not those of other rows.
_REPEAT_STEP = 0x9E3779B97F4A7C15


def assigned(training: Training, n_groups: int, repeat: int = 0) -> Ints:
    """Assign the rows to stratified groups, by a hash of their contents.

    Another ``repeat`` has other groups.
    """
    order = content_order(training, repeat)
    hand = np.empty(len(order), dtype=np.intp)
    hand[order] = np.arange(len(order)) % n_groups
    return hand


def content_order(training: Training, repeat: int = 0) -> Ints:
    """Order the rows by class and contents, rows that do not count at the end."""
    absent = ~training.counted
    fingerprint = _fingerprint(training, repeat)
    order: Ints = np.lexsort((fingerprint, training.target, absent))
    if _collides(training, fingerprint, order):
        order = np.lexsort((*_contents(training), training.target, absent))
    return order


def _collides(training: Training, fingerprint: NDArray[np.uint64], order: Ints) -> bool:
    """Tell whether two rows with the same fingerprint differ."""
    one, other = order[:-1], order[1:]
    equal = np.flatnonzero(fingerprint[one] == fingerprint[other])
    one, other = one[equal], other[equal]
    return any(
        not np.array_equal(cells[one], cells[other]) for cells in _contents(training)
    )


def _contents(training: Training) -> Iterator[NDArray[np.uint64]]:
    """Yield the bits of the cells of each column, and of the weights.

    Of weights only their proportions matter, so that a factor of two changes nothing.
    """
    weights: tuple[Floats, ...] = ()
    if training.weights is not None:
        weights = (training.weights / power_of_two(total_weight(training)),)
    for cells in (*training.data.data, *weights):
        if cells.dtype.kind == "f":
            # One zero and one NaN, whatever their bits.
            plain = np.where(np.isnan(cells), np.inf, cells + 0.0)
            yield plain.astype(np.float64).view(np.uint64)
        else:
            yield cells.astype(np.uint64)


def _fingerprint(training: Training, repeat: int) -> NDArray[np.uint64]:
    """Return a number for each row that depends on its contents alone."""
    start = repeat * _REPEAT_STEP % 2**64
    mixed = np.full(training.data.n_rows, start, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for bits in _contents(training):
            mixed = (mixed ^ bits) * _MIX[0]
            mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX[1]
            mixed ^= mixed >> np.uint64(32)
    return mixed


def held_out(training: Training, fraction: float) -> tuple[Training, Training]:
    """Split the rows into those to grow from and those to validate with."""
    PARAMETERS["validation_fraction"].check(fraction)
    aside = set_aside(training, float(fraction))
    chunks = training.take(np.flatnonzero(~aside)), training.take(np.flatnonzero(aside))
    if not all(total_weight(chunk) > 0 for chunk in chunks):
        raise DataError(
            f"validation_fraction={fraction} leaves no rows to grow from or none to "
            f"validate with, of {training.data.n_rows:,}. Pass a validation set."
        )
    return chunks


def set_aside(training: Training, fraction: float) -> NDArray[np.bool_]:
    """Tell which rows are held out: the same share of every class."""
    order = content_order(training)
    passed = np.floor(np.arange(len(order) + 1) * fraction + 0.5)
    aside = np.empty(len(order), dtype=bool)
    aside[order] = np.diff(passed) > 0
    return aside


def encode_validation(schema: Schema, recipe: Recipe, validation: object) -> Training:
    """Encode the validation set of a fit: a pair of table and target."""
    if not isinstance(validation, (tuple, list)) or len(validation) != 2:
        raise ParameterError(
            "validation must be a pair: a table with the columns of X, and its target. "
            f"Got {type(validation).__name__} instead."
        )
    table, target = validation
    every = range(len(schema.columns))
    try:
        return encode_rows(schema, recipe, table, target, every)
    except DataError as error:
        raise DataError(f"In the validation set: {error}") from None


def encode_rows(
    schema: Schema, recipe: Recipe, table: object, target: object, used: Sequence[int]
) -> Training:
    """Encode a table and its target by the schema of a tree."""
    frame = open_table(table)
    if not frame.n_rows:
        raise DataError("X has no rows. Pass rows to prune with.")
    data = encode_columns(
        frame,
        schema,
        used,
        allow_missing=recipe.missing != "error",
        allow_unseen=recipe.unseen != "error",
    )
    if recipe.is_regression:
        wanted: Any = learn_numbers(target, frame.n_rows, recipe.criterion)
    else:
        wanted = _known_classes(target, frame.n_rows, schema)
    return Training(schema.columns, data, wanted, len(schema.classes))


def _known_classes(target: object, n_rows: int, schema: Schema) -> Ints:
    """Return class codes; raise for classes that the tree does not have."""
    found, codes = learn_target(target, n_rows)
    unseen_labels = [label for label in found if label not in schema.classes]
    if unseen_labels:
        raise DataError(
            f"y has {quoted(unseen_labels)}, but the classes of the tree are "
            f"{quoted(schema.classes)}. Leave those rows out."
        )
    position = np.array([schema.classes.index(label) for label in found], dtype=np.intp)
    return position[codes]


@dataclass(frozen=True)
class Units:
    """Powers of two as units in which squares of errors and weights do not overflow."""

    weight: float
    error: float

    @classmethod
    def of(cls, rows: Training, recipe: Recipe, tree: Tree | None = None) -> Units:
        """Choose units that suit rows, and a tree that was grown from others."""
        largest = 1.0
        if recipe.is_regression:
            largest = float(np.abs(rows.target).max(initial=0.0))
            if tree is not None and tree.mean is not None:
                largest = max(largest, float(np.abs(tree.mean).max()))
            largest **= 2
        elif recipe.costs is not None:
            largest = float(np.max(recipe.costs))
        weight = 1.0 if rows.weights is None else power_of_two(total_weight(rows))
        return cls(weight, power_of_two(largest))


def power_of_two(amount: float) -> float:
    """Return the power of two that is not above an amount; 1 if that is 0."""
    return math.ldexp(1.0, math.frexp(amount)[1] - 1) if amount else 1.0


@dataclass(frozen=True)
class NodeErrors:
    """Errors of rows by node of a tree, in units, and sums of their squares.

    ``passing`` are those of all rows that reach the node, if it were a leaf,
    ``stopping`` those of rows that stop there.
    """

    passing: Floats
    stopping: Floats
    n_rows: int


def errors_by_node(
    tree: Tree, rows: Training, recipe: Recipe, units: Units
) -> NodeErrors:
    """Send rows down a tree and add up errors, or the costs of predictions.

    Regression has squared errors. A row that is divided counts at each of its nodes by
    its share.
    """
    arrivals = Walker(rows.columns, tree).walk(rows.data)
    row, node, share = arrivals.row, arrivals.node, arrivals.share
    passing = stopping = np.zeros((2, len(tree)))
    while len(node):
        error = _errors(tree, rows, recipe, row, node, units)
        _add(passing[0], node, error * share)
        _add(passing[1], node, error * error * share)
        if stopping is passing:
            stopping = passing.copy()
        up = tree.parent[node]
        left = up >= 0
        row, node, share = row[left], up[left], share[left]
    return NodeErrors(passing, stopping, rows.data.n_rows)


def _add(sums: Floats, node: Ints, amounts: Floats) -> None:
    """Add amounts by node in an order that is not that of the rows."""
    order = np.lexsort((amounts, node))
    np.add.at(sums, node[order], amounts[order])


def _errors(
    tree: Tree, rows: Training, recipe: Recipe, row: Ints, node: Ints, units: Units
) -> Floats:
    """Return the weighted error of rows predicted by nodes, in units."""
    wanted = rows.target[row]
    if tree.mean is not None:
        wrong: Floats = (wanted - tree.mean[node]) ** 2
    elif recipe.costs is not None:
        wrong = np.array(recipe.costs)[wanted.astype(np.intp), tree.label[node]]
    else:
        wrong = (wanted != tree.label[node]).astype(np.float64)
    wrong = wrong / units.error
    return wrong if rows.weights is None else wrong * (rows.weights[row] / units.weight)


def prune_by_validation(tree: Tree, validation: Training, recipe: Recipe) -> Tree:
    """Prune by the errors on rows that the tree was not grown from."""
    units = Units.of(validation, recipe, tree)
    errors = errors_by_node(tree, validation, recipe, units)
    slack = recipe.tolerance * (total_weight(validation) / units.weight) / units.error
    return subtrees.by_validation(tree, errors.passing[0], errors.stopping[0], slack)


def plan_for(others: Source, plan: Plan, tree: Tree) -> Plan:
    """Return the plan of validation rows: the learnt schema, without weights. They
    may have unseen categories; their numbers are binned by the thresholds of the
    tree.
    """  # noqa: D205
    task = replace(
        plan.task,
        weight=None,
        ignored=(*plan.task.ignored, *filter(None, [plan.task.weight])),
        class_weight=None,
        priors=None,
        divides=plan.grid.fractions,
        max_bins=None,
    )
    if plan.schema.merge_case and hasattr(others, "merge_into"):
        others.merge_into(plan)
    found = others.learn(task)
    known = plan.schema.classes
    unseen = [label for label in found.schema.classes if label not in known]
    if unseen:
        raise DataError(
            f"In the validation set: y has {quoted(unseen)}, but the classes of the "
            f"tree are {quoted(known)}. Leave those rows out."
        )
    edges = _thresholds_of(tree, plan)
    values = {
        index: np.arange(len(thresholds) + 1.0) for index, thresholds in edges.items()
    }
    return replace(
        found, schema=plan.schema, edges=edges, values=values, unseen_values=True
    )


def _thresholds_of(tree: Tree, plan: Plan) -> Edges:
    """Return the thresholds of every numeric column, in order."""
    column, threshold = tree.column, tree.threshold
    if tree.surrogate_column is not None and tree.surrogate_threshold is not None:
        column = np.concatenate([column, tree.surrogate_column])
        threshold = np.concatenate([threshold, tree.surrogate_threshold])
    made = ~np.isnan(threshold)
    return {
        index: distinct(threshold[made & (column == index)]) for index in plan.values
    }


def prune_by_engine(
    tree: Tree, data_source: Source, plan: Plan, recipe: Recipe
) -> Tree:
    """Prune by the errors on validation rows; ``plan`` is that of training rows."""
    plan = plan_for(data_source, plan, tree)
    engine = data_source.engine(plan)
    counted = count_down(engine, between_bins(tree, plan.edges))
    stopped = np.where(
        tree.is_leaf[:, np.newaxis], counted.weights, stopped_weights(counted)
    )
    passing, stopping = (
        _errors_by_weight(weights, tree, plan, recipe)
        for weights in (counted.weights, stopped)
    )
    slack = recipe.tolerance * plan.grid.total
    return subtrees.by_validation(tree, passing, stopping, slack)


def _errors_by_weight(
    weights: Floats, tree: Tree, plan: Plan, recipe: Recipe
) -> Floats:
    """Return the errors of nodes as predictors of rows with these class weights."""
    if plan.scale is not None and tree.mean is not None:
        return plan.scale.distances(weights, tree.mean)
    if recipe.costs is not None:
        costs = np.array(recipe.costs)[:, tree.label].T
        priced: Floats = (weights * costs).sum(axis=1)
        return priced
    wrong: Floats = weights.sum(axis=1) - at_label(tree, weights)
    return wrong


def total_weight(training: Training) -> float:
    """Return the weight of all rows."""
    if training.weights is None:
        return float(training.data.n_rows)
    return math.fsum(training.weights.tolist())


@dataclass
class PathErrors:
    """The errors of nested trees on rows, added up, and sums of their squares."""

    sums: Floats
    n_rows: int = 0

    @classmethod
    def along(
        cls, path: subtrees.PruningPath, tree: Tree, by_node: NodeErrors
    ) -> PathErrors:
        """Add up the errors of the trees of a path."""
        pairs = zip(by_node.passing, by_node.stopping, strict=True)
        return cls(
            np.array([path.totals(tree, *pair) for pair in pairs]), by_node.n_rows
        )

    def choice(self, rule: str) -> int:
        """Return the tree with the least error, of equals the smallest ("best"), or
        the smallest within one standard error of it ("1-se").
        """  # noqa: D205
        mean, squares = self.sums / self.n_rows
        best = int(np.flatnonzero(mean <= mean.min() * (1 + TIE))[-1])
        if rule == "best":
            return best
        variance = max(float(squares[best]) - mean[best] ** 2, 0.0)
        bar = mean[best] + np.sqrt(variance / self.n_rows)
        return int(np.flatnonzero(mean <= bar * (1 + TIE))[-1])
