"""Trees of one schema with their recipe: their predictions together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import (
    Floats,
    Ints,
    added_in_order,
    cheapest,
    first_best_of_rows,
)
from branchwise.data.encode import encode_columns
from branchwise.data.frames import open_table
from branchwise.data.one_row import as_table
from branchwise.data.table_schema import Columns, Schema
from branchwise.ensemble.losses import link
from branchwise.ensemble.sampling import Samples
from branchwise.errors import ParameterError, counted
from branchwise.grow.criteria import column_importances, split_gains
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from branchwise.shap.products import Term
from branchwise.threads import cached_property, in_order, n_threads
from branchwise.train.described_model import DescribedModel
from branchwise.tree.apply import Walker, add_up
from branchwise.tree.tree import Tree

#: Rows that a thread predicts at a time, so that they stay in the caches.
_BLOCK = 1 << 14
_KINDS = {
    "forest": "forest",
    "boosted": "boosting",
    "gradient": "gradient boosting",
}


class FittedTrees(DescribedModel):
    """Schema, trees and recipe of an ensemble: its predictions.

    ``tree_weights`` are factors of what the trees predict, and ``initial`` is what is
    added to it, one number for each output; None where an ensemble has none.
    ``rule_cases`` are the cases of each class that the rules of an ensemble cover.
    ``samples`` has the training rows; it is not saved, and None for an ensemble from a
    file.
    """

    def __init__(
        self,
        schema: Schema,
        trees: Sequence[Tree],
        recipe: EnsembleRecipe,
        tree_weights: Floats | None = None,
        initial: Floats | None = None,
        rule_cases: Floats | None = None,
        samples: Samples | None = None,
    ) -> None:
        self.schema = schema
        self.trees = tuple(trees)
        self.recipe = recipe
        self.samples = samples
        self.tree_weights = tree_weights
        self.initial = initial
        self.rule_cases = rule_cases
        if rule_cases is not None:
            self.rule_cases = rule_cases.reshape(len(self.trees), -1)

    def __getstate__(self) -> dict[str, object]:
        # What prediction has prepared is made anew where it is needed.
        names = ("schema", "trees", "recipe", "samples", "tree_weights", "initial")
        return {name: vars(self)[name] for name in (*names, "rule_cases")}

    def _move_columns(self, position: Ints) -> None:
        self.trees = tuple(tree.with_columns(position) for tree in self.trees)
        self.samples = None  # its rows have all columns

    def __len__(self) -> int:
        return len(self.trees)

    def __repr__(self) -> str:
        n_nodes = sum(map(len, self.trees))
        n_classes = len(self.schema.classes)
        predictions = (
            "numbers" if not n_classes else counted(n_classes, "class", "classes")
        )
        if self.recipe.method == "rules":
            return (
                f"<branchwise voting rules: {counted(self.n_rules, 'rule')}, "
                f"{counted(len(self.schema.columns), 'column')}, {predictions}>"
            )
        trees = counted(len(self), f"{self.recipe.tree.algorithm} tree")
        return (
            f"<branchwise {_KINDS[self.recipe.method]} of {trees}: "
            f"{counted(n_nodes, 'node')}, "
            f"{counted(len(self.schema.columns), 'column')}, {predictions}>"
        )

    @property
    def n_rules(self) -> int:
        """The number of rules, where trees are rules: single nodes are none."""
        return sum(len(tree) > 1 for tree in self.trees)

    @property
    def is_regression(self) -> bool:
        """Whether numbers are predicted, not classes."""
        return not self.schema.classes

    @property
    def tree_schema(self) -> Schema:
        """The schema of single trees; those of gradient boosting have no classes."""
        if not self.recipe.tree.is_regression:
            return self.schema
        return replace(self.schema, classes=())

    @property
    def n_outputs(self) -> int:
        """The number of sums over trees: one for each class, or a single one."""
        return self.recipe.n_outputs(len(self.schema.classes))

    @cached_property
    def walkers(self) -> tuple[Walker, ...]:
        """What sends rows down each of the trees."""
        columns, recipe = self.schema.columns, self.recipe.tree
        return tuple(Walker(columns, tree, recipe) for tree in self.trees)

    @cached_property
    def used_columns(self) -> list[int]:
        """The columns that any tree splits on."""
        return sorted({int(c) for tree in self.trees for c in tree.used_columns})

    def encoded(self, X: object, n_jobs: int | None = None) -> Columns:
        """Encode the columns that the trees split on, unless X is encoded already.

        Parameters
        ----------
        X : table or row
            The rows to encode for all trees.
        n_jobs : int or None
            Threads; None is one, -1 all cores.

        Returns
        -------
        Columns
            The cells as codes and numbers.
        """
        if isinstance(X, Columns):
            return X
        recipe = self.recipe.tree
        return encode_columns(
            open_table(as_table(X)),
            self.schema,
            self.used_columns,
            allow_missing=recipe.missing != "error",
            allow_unseen=recipe.unseen != "error",
            threads=n_threads(n_jobs),
        )

    def predict(self, X: object, n_jobs: int | None = None) -> NDArray[np.generic]:
        """Return the class, or the expected number, of each row.

        Parameters
        ----------
        X : table or row
            The rows to predict; one row is a dict or a series, by name.
        n_jobs : int or None
            Threads; None is one, -1 all cores.

        Returns
        -------
        array
            One prediction for each row.
        """
        data = self.encoded(X, n_jobs)
        values = self.average(data, n_threads(n_jobs))
        if self.is_regression:
            return values[:, 0]
        return self.schema.class_array.take(self.class_codes(values))

    def predict_proba(self, X: object, n_jobs: int | None = None) -> Floats:
        """Return the probability of each class, in the order of ``schema.classes``.

        With hard voting, the share of trees that predict the class.

        Parameters
        ----------
        X : table or row
            Rows, as :meth:`predict` takes them.
        n_jobs : int or None
            Threads; None is one, -1 all cores.

        Returns
        -------
        array of float, of shape (rows, classes)
            The probabilities; each row adds up to 1.
        """
        if self.is_regression:
            raise ParameterError(
                "predict_proba needs an ensemble that predicts classes. Got one that "
                "predicts numbers; use predict."
            )
        return self.average(self.encoded(X, n_jobs), n_threads(n_jobs))

    def class_codes(self, probabilities: Floats) -> Ints:
        """Return the classes of the highest probabilities, or of the least cost.

        Parameters
        ----------
        probabilities : array of shape (rows, classes)
            Those that the trees predict together.

        Returns
        -------
        array of int
            The position of the class of each row in ``schema.classes``.
        """
        costs = self.recipe.tree.costs
        # With hard voting, costs have decided what each tree votes for.
        if costs is not None and self.recipe.voting == "soft":
            return cheapest(probabilities, costs)
        return first_best_of_rows(probabilities)

    def average(self, data: Columns, threads: int = 1) -> Floats:
        """Return what the trees predict together: probabilities, or a number.

        Parameters
        ----------
        data, threads : Columns and int
            Encoded rows, and the number of threads.

        Returns
        -------
        array of float
            Of shape (rows, classes), or (rows, 1) for numbers.
        """

        def predicted(block: Columns) -> Floats:
            return self.linked(self.total(block), len(self))

        return np.concatenate(in_order(predicted, blocks_of(data), threads))

    def margins(self, X: object, n_jobs: int | None = None) -> Floats:
        """Return the sums over the trees, as they are before the link.

        Parameters
        ----------
        X : table or row
            The rows whose sums are wanted.
        n_jobs : int or None
            Threads; None is one, -1 all cores.

        Returns
        -------
        array of float
            Of shape (rows, classes), or (rows, 1) for two classes and for numbers.
        """
        return self.summed(self.encoded(X, n_jobs), n_threads(n_jobs))

    def summed(self, data: Columns, threads: int = 1) -> Floats:
        """Return the sums over the trees for encoded rows.

        Parameters
        ----------
        data, threads : Columns and int
            As :meth:`average` takes them.

        Returns
        -------
        array of float
            One row for each row of the data.
        """
        return np.concatenate(in_order(self.total, blocks_of(data), threads))

    def total(self, data: Columns) -> Floats:
        """Return the weighted sum of the trees, and ``initial``.

        Parameters
        ----------
        data : Columns
            Rows that are encoded.

        Returns
        -------
        array of float
            One row for each row of the data.
        """
        if self.recipe.voting == "hard":
            # Not a sum over nodes: a case in several nodes has one vote.
            *_, total = self.totals(data)
            return total
        # A round of gradient boosting has a tree for each output.
        n_turns = self.n_outputs if self.recipe.adds_margins else 1
        sums = [
            add_up(self.walkers[turn::n_turns], data, self.node_values[turn::n_turns])
            for turn in range(n_turns)
        ]
        return self._from_start(np.concatenate(sums, axis=1))

    def totals(self, data: Columns) -> Iterator[Floats]:
        """Yield the weighted sum of the trees so far, and ``initial``, tree by tree.

        Parameters
        ----------
        data : Columns
            Encoded rows, as :meth:`encoded` returns them.

        Yields
        ------
        array of float
            The sum after each tree.
        """
        total = np.zeros((data.n_rows, self.n_outputs))
        for tree in range(len(self)):
            values = self.predicted(tree, data)
            if self.tree_weights is not None:
                values *= self.tree_weights[tree]
            if values.shape[1] == self.n_outputs:
                total += values
            else:
                total[:, tree % self.n_outputs] += values[:, 0]
            yield self._from_start(total)

    def _from_start(self, total: Floats) -> Floats:
        return total if self.initial is None else total + self.initial

    def linked(self, total: Floats, n_trees: int) -> Floats:
        """Return the predictions of the first trees from their sum.

        Parameters
        ----------
        total : array of float
            The weighted sum of the trees.
        n_trees : int
            How many trees it is of.

        Returns
        -------
        array of float
            Probabilities, or numbers.
        """
        if self.recipe.loss is not None:
            if len(self.schema.classes) == 1:
                return np.ones((len(total), 1))  # whatever the odds against nothing
            return link(self.recipe.loss, total)
        if self.tree_weights is None:
            return total / n_trees
        # In the order of the votes: all of them are exactly 1 together, never above.
        averages: Floats = total / added_in_order(self.tree_weights[:n_trees])
        return averages

    @cached_property
    def node_values(self) -> list[Floats]:
        """What the nodes of each tree predict: probabilities, or a number."""
        return [walker.node_values for walker in self.walkers]

    @property
    def terms(self) -> list[Term]:
        """The trees of gradient boosting as terms of a sum: the margins of each class.

        The first term has those before the first tree, at every node.
        """
        start = np.zeros((len(self.trees[0]), self.n_outputs))
        terms = [Term(self.trees[0], self._by_class(self._from_start(start)))]
        for at, (tree, column) in enumerate(
            zip(self.trees, self.node_values, strict=True)
        ):
            values = np.zeros((len(tree), self.n_outputs))
            values[:, at % self.n_outputs] = column[:, 0]
            terms.append(Term(tree, self._by_class(values)))
        return terms

    def sum_of_terms(self, data: Columns, threads: int = 1) -> Floats:
        """Return the averages of trees, or the margins, for encoded rows.

        Parameters
        ----------
        data, threads : Columns and int
            Rows that are encoded, and how many threads.

        Returns
        -------
        array of float
            One row for each row of the data.
        """
        if not self.recipe.adds_margins:
            return self.average(data, threads)
        return self._by_class(self.summed(data, threads))

    def _by_class(self, margins: Floats) -> Floats:
        """Return the log odds of both of two classes; margins of others as they are."""
        if len(self.schema.classes) != 2:
            return margins
        return np.concatenate([-margins, margins], axis=1)

    def predicted(self, tree: int, data: Columns) -> Floats:
        """Return what one tree contributes: probabilities, a vote, or a number.

        Parameters
        ----------
        tree, data : int and Columns
            The position of a tree, and encoded rows.

        Returns
        -------
        array of float
            One row for each row of the data.
        """
        walker = self.walkers[tree]
        if self.recipe.tree.is_regression:
            return walker.quantities(data)[:, np.newaxis]
        if self.recipe.voting == "soft":
            return walker.probabilities(data)
        votes: Floats = np.eye(len(self.schema.classes))[walker.classify(data)]
        return votes

    def apply(self, X: object, n_jobs: int | None = None) -> Ints:
        """Return the node of each tree that each row (mostly) arrives at.

        Parameters
        ----------
        X : table or row
            The rows to send down all trees.
        n_jobs : int or None
            Threads; None is one, -1 all cores.

        Returns
        -------
        array of int, of shape (rows, trees)
            The numbers of the nodes.
        """
        data = self.encoded(X, n_jobs)

        def nodes(walker: Walker) -> Ints:
            return walker.nodes(walker.walk(data))

        return np.stack(in_order(nodes, self.walkers, n_threads(n_jobs)), axis=1)

    @cached_property
    def feature_importances(self) -> Floats:
        """How much each column contributed to the trees, as shares of 1."""
        gini = self.recipe.tree.criterion == "gini"
        n_columns = len(self.schema.columns)
        total = np.zeros(n_columns)
        for at, tree in enumerate(self.trees):
            weight = 1.0 if self.tree_weights is None else self.tree_weights[at]
            if self.recipe.method == "rules":
                own = tree.column[~tree.is_leaf]
                np.add.at(total, own, _spread_removed(tree))
            elif self.recipe.method == "gradient":
                # By what they add to the margins: later trees add less.
                gains = tree.weights[:, 0] * split_gains(tree)
                np.add.at(total, tree.column[~tree.is_leaf], gains[~tree.is_leaf])
            else:
                total += weight * column_importances(tree, n_columns, gini)
        return total / total.sum() if total.sum() > 0 else total


def _spread_removed(tree: Tree) -> Floats:
    """Return, for each condition of a rule, the variance of votes it takes away."""
    if tree.deviation is None:
        raise AssertionError("rules have deviations")
    spread: Floats = tree.weights[:, 0] * tree.deviation**2
    splits = np.flatnonzero(~tree.is_leaf)
    below = np.bincount(tree.parent[1:], spread[1:], len(tree))
    removed: Floats = np.maximum(spread[splits] - below[splits], 0.0)
    return removed


def blocks_of(data: Columns, size: int = _BLOCK) -> list[Columns]:
    """Divide encoded rows into blocks."""
    starts = range(0, max(data.n_rows, 1), size)
    return [
        Columns(
            min(size, data.n_rows - start),
            tuple(cells[start : start + size] for cells in data.data),
        )
        for start in starts
    ]
