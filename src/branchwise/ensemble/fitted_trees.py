"""Trees of one schema with their recipe: their predictions together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, cheapest, first_best_of_rows
from branchwise.data.encode import encode_columns
from branchwise.data.frames import open_table
from branchwise.data.one_row import as_table
from branchwise.data.table_schema import Columns, Schema
from branchwise.ensemble.sampling import Samples
from branchwise.errors import ParameterError, counted
from branchwise.grow.criteria import column_importances
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from branchwise.threads import cached_property, in_order, n_threads
from branchwise.tree.apply import Walker, add_up
from branchwise.tree.tree import Tree

#: Rows that a thread predicts at a time, so that they stay in the caches.
_BLOCK = 1 << 14


class FittedTrees:
    """Schema, trees and recipe of an ensemble: its predictions.

    ``samples`` has the training rows; it is not saved, and None for an ensemble from a
    file.
    """

    def __init__(
        self,
        schema: Schema,
        trees: Sequence[Tree],
        recipe: EnsembleRecipe,
        samples: Samples | None = None,
    ) -> None:
        self.schema = schema
        self.trees = tuple(trees)
        self.recipe = recipe
        self.samples = samples

    def __getstate__(self) -> dict[str, object]:
        # What prediction has prepared is made anew where it is needed.
        names = ("schema", "trees", "recipe", "samples")
        return {name: vars(self)[name] for name in names}

    def __len__(self) -> int:
        return len(self.trees)

    def __repr__(self) -> str:
        n_nodes = sum(map(len, self.trees))
        n_classes = len(self.schema.classes)
        predictions = (
            "numbers" if not n_classes else counted(n_classes, "class", "classes")
        )
        trees = counted(len(self), f"{self.recipe.tree.algorithm} tree")
        return (
            f"<branchwise forest of {trees}: "
            f"{counted(n_nodes, 'node')}, "
            f"{counted(len(self.schema.columns), 'column')}, {predictions}>"
        )

    @property
    def is_regression(self) -> bool:
        """Whether numbers are predicted, not classes."""
        return self.recipe.tree.is_regression

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
        """Encode the columns that the trees split on."""
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
        """Return the class, or the expected number, of each row."""
        data = self.encoded(X, n_jobs)
        values = self.average(data, n_threads(n_jobs))
        if self.is_regression:
            return values[:, 0]
        return self.schema.class_array.take(self.class_codes(values))

    def predict_proba(self, X: object, n_jobs: int | None = None) -> Floats:
        """Return the probability of each class, in the order of ``schema.classes``.

        With hard voting, the share of trees that predict the class.
        """
        if self.is_regression:
            raise ParameterError(
                "predict_proba needs an ensemble that predicts classes. Got one that "
                "predicts numbers; use predict."
            )
        return self.average(self.encoded(X, n_jobs), n_threads(n_jobs))

    def class_codes(self, probabilities: Floats) -> Ints:
        """Return the classes of the highest probabilities, or of the least cost."""
        costs = self.recipe.tree.costs
        # With hard voting, costs have decided what each tree votes for.
        if costs is not None and self.recipe.voting == "soft":
            return cheapest(probabilities, costs)
        return first_best_of_rows(probabilities)

    def average(self, data: Columns, threads: int = 1) -> Floats:
        """Return the averages of what the trees predict for encoded rows."""

        def predicted(block: Columns) -> Floats:
            if self.recipe.voting == "soft":
                return add_up(self.walkers, block, self.node_values) / len(self)
            # Not a sum over nodes: a case in several nodes has one vote.
            total = self.predicted(0, block)
            for tree in range(1, len(self)):
                total += self.predicted(tree, block)
            return total / len(self)

        return np.concatenate(in_order(predicted, blocks_of(data), threads))

    @cached_property
    def node_values(self) -> list[Floats]:
        """What the nodes of each tree predict: probabilities, or a number."""
        return [walker.node_values for walker in self.walkers]

    def predicted(self, tree: int, data: Columns) -> Floats:
        """Return what one tree contributes: probabilities, a vote, or a number."""
        walker = self.walkers[tree]
        if self.is_regression:
            return walker.quantities(data)[:, np.newaxis]
        if self.recipe.voting == "soft":
            return walker.probabilities(data)
        votes: Floats = np.eye(len(self.schema.classes))[walker.classify(data)]
        return votes

    def apply(self, X: object, n_jobs: int | None = None) -> Ints:
        """Return the node of each tree that each row (mostly) arrives at."""
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
        for tree in self.trees:
            total += column_importances(tree, n_columns, gini)
        return total / total.sum() if total.sum() > 0 else total


def blocks_of(data: Columns) -> list[Columns]:
    """Divide encoded rows into blocks."""
    starts = range(0, max(data.n_rows, 1), _BLOCK)
    return [
        Columns(
            min(_BLOCK, data.n_rows - start),
            tuple(cells[start : start + _BLOCK] for cells in data.data),
        )
        for start in starts
    ]
