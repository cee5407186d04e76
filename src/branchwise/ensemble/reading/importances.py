"""How much the columns matter to a forest: by permutation out of bag, and by impurity.

A column is permuted among the rows that a tree was grown without, and the tree
predicts them again. Its importance is how much the error rises, averaged over trees
(Breiman, "Random Forests", 2001).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.one_row import Framed
from branchwise.data.table_schema import Columns, Schema
from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.ensemble.out_of_bag import (
    average,
    losses,
    row_weights,
    samples_of,
    validate_out_of_bag,
)
from branchwise.ensemble.sampling import Samples
from branchwise.errors import counted
from branchwise.grow.draws import draws, tree_key
from branchwise.stats import check_level, mean_interval
from branchwise.text.blocks import Block, Paragraph, Table
from branchwise.text.document import Document
from branchwise.text.labels import titles_of
from branchwise.text.words import rounded, share
from branchwise.threads import in_order, n_threads

#: Keys of permutations must differ from those of samples and of nodes.
_PERMUTATION = 0xE7037ED1A0B428DB
_DIGITS = 3


@dataclass(frozen=True, eq=False, repr=False)
class Importances(Framed, Document):
    """How much each column matters, the most important one first.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns.
    permutation : array
        How much the error of a tree rises out of bag if the column is permuted, on
        average over the trees: the share of wrong classes, or the mean squared error.
    low, high : array
        The ends of Student's interval of that mean; NaN for a single tree. Trees share
        their rows, so it tells what further trees would change, not further rows.
    impurity : array
        How much the column lowers impurity in the trees, as shares of 1.
    by_tree : array of shape (trees, columns)
        How much the error of each tree rises; NaN for trees without rows out of bag.
    level : float
        The confidence level of the intervals.
    target : str or None
        The name of what is predicted.
    schema : Schema or None
        The schema of the forest, whose labels are the titles of columns in views.
    """

    columns: tuple[str, ...]
    permutation: Floats
    low: Floats
    high: Floats
    impurity: Floats
    by_tree: Floats
    level: float
    is_regression: bool
    target: str | None = None
    schema: Schema | None = None

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return (
            f"<importances of {counted(len(self), 'column')} in "
            f"{counted(len(self.by_tree), 'tree')}>"
        )

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the table as lists, a column each."""
        names = ("permutation", "low", "high", "impurity")
        numbers = {name: getattr(self, name).tolist() for name in names}
        return {"column": list(self.columns), **numbers}

    def to_dict(self) -> dict[str, Any]:
        """Return the table in plain values; None where there is no interval."""
        columns = self.to_columns()
        lines = [
            dict(zip(columns, map(_plain, line), strict=True))
            for line in zip(*columns.values(), strict=True)
        ]
        return {"target": self.target, "level": self.level, "columns": lines}

    def blocks(self) -> Iterator[Block]:
        """Yield the table, and what its numbers are."""
        yield Table(
            ["column", "permutation", f"{share(self.level, 1)} interval", "impurity"],
            [
                [
                    title,
                    "" if np.isnan(rise) else self._words(rise),
                    ""
                    if np.isnan(low)
                    else f"{self._words(low)} to {self._words(high)}",
                    share(impurity, 1),
                ]
                for title, (_, rise, low, high, impurity) in zip(
                    self.titles(),
                    zip(*self.to_columns().values(), strict=True),
                    strict=True,
                )
            ],
        )
        error = "mean squared error" if self.is_regression else "share of wrong classes"
        yield Paragraph(
            f"Permutation: how much the {error} of a tree rises out of bag if the "
            "column is permuted, on average over trees; the interval is over trees. "
            "Impurity: how much the column lowers it in the trees, as shares."
        )

    def titles(self) -> list[str]:
        """Write what the columns are called."""
        return titles_of(self.schema, self.columns)

    def _words(self, rise: float) -> str:
        if self.is_regression:
            return rounded(rise, _DIGITS)
        return f"{100 * rise + 0.0:.2f} %"


def _plain(cell: Any) -> Any:
    return None if isinstance(cell, float) and np.isnan(cell) else cell


def importances_of(
    ensemble: FittedTrees, level: float = 0.95, n_jobs: int | None = None
) -> Importances:
    """Return the importances of the columns by permutation and by impurity."""
    level = check_level(level)
    samples = samples_of(ensemble)
    validate_out_of_bag(samples)
    rises = np.array(
        in_order(
            lambda tree: _rises(ensemble, samples, tree),
            range(len(ensemble)),
            n_threads(n_jobs),
        )
    )
    known = rises[~np.isnan(rises[:, 0])] if rises.shape[1] else rises
    means = known.mean(axis=0) if len(known) else np.full(rises.shape[1], np.nan)
    order = np.argsort(-means, kind="stable")
    ends = [_interval(known[:, at], level) for at in order.tolist()]
    low, high = np.array(ends).reshape(-1, 2).T
    return Importances(
        tuple(ensemble.schema.columns[at].name for at in order.tolist()),
        means[order],
        low,
        high,
        ensemble.feature_importances[order],
        rises[:, order],
        level,
        ensemble.is_regression,
        ensemble.schema.target,
        ensemble.schema,
    )


def _interval(rises: Floats, level: float) -> tuple[float, float]:
    ends = None
    if len(rises):
        mean, deviation = float(rises.mean()), float(rises.std())
        ends = mean_interval(mean, deviation, len(rises), level)
    return (float("nan"), float("nan")) if ends is None else ends


def _rises(ensemble: FittedTrees, samples: Samples, tree: int) -> Floats:
    """Return how much the error of a tree rises if each column is permuted."""
    # In the order of contents, by which they are permuted.
    rows = samples.order[samples.out_of_bag(tree)[samples.order]]
    rises = np.zeros(len(ensemble.schema.columns))
    if not len(rows):
        return rises + np.nan
    target = samples.training.target[rows]
    weight = row_weights(samples.training)[rows]
    data = samples.training.data.take(rows)

    def error(cells: Columns) -> float:
        walker = ensemble.walkers[tree]
        predicted: Any = (
            walker.quantities(cells)
            if ensemble.is_regression
            else walker.classify(cells)
        )
        return average(losses(ensemble, target, predicted), weight)

    before = error(data)
    for column in ensemble.trees[tree].used_columns:
        order = permutation(samples.recipe.random_state, tree, column, len(rows))
        rises[column] = error(_permuted(data, column, order)) - before
    return rises


def permutation(seed: int, tree: int, column: int, n_rows: int) -> Ints:
    """Return a random order of rows, by a key of the seed, the tree and the column."""
    key = np.array([tree_key(seed, tree) ^ _PERMUTATION], dtype=np.uint64)
    own = draws(key, np.array([column]))
    return np.argsort(draws(own, np.arange(n_rows)), kind="stable")


def _permuted(data: Columns, column: int, order: Ints) -> Columns:
    cells: Sequence[Any] = [
        each[order] if at == column else each for at, each in enumerate(data.data)
    ]
    return Columns(data.n_rows, tuple(cells))
