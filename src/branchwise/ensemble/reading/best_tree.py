"""The single tree that is nearest to its forest, out of bag."""

from __future__ import annotations

import math

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.ensemble.out_of_bag import (
    OutOfBag,
    average,
    combined,
    losses,
    row_weights,
    samples_of,
    score_of,
)
from branchwise.model import Model
from branchwise.text.words import rounded, share
from branchwise.threads import in_order, n_threads

_DIGITS = 4


class BestTree(Model):
    """The model of the tree that is nearest to its forest, with all views of a model.

    Attributes
    ----------
    number : int
        The number of the tree in the forest.
    agreement : float
        The share of rows, by weight, for which it predicts what the forest does; of
        regression trees R squared, with the forest's predictions as targets. Only rows
        that the tree was grown without count, and for the forest only such trees.
    oob_score : float
        Its accuracy, or R squared, on the rows that it was grown without.
    """

    number: int
    agreement: float
    oob_score: float

    def __getstate__(self) -> dict[str, object]:
        own = {name: vars(self)[name] for name in ("number", "agreement", "oob_score")}
        return super().__getstate__() | own

    @property
    def summary(self) -> str:
        """Its number, its agreement with the forest and its score, in a sentence."""
        if math.isnan(self.oob_score):
            return f"Tree {self.number}, of which no row is out of bag."
        if self.tree.is_regression:
            agreement = f"R squared {rounded(self.agreement, _DIGITS)} with the forest"
            score = f"R squared {rounded(self.oob_score, _DIGITS)}"
        else:
            agreement = f"agrees with the forest in {share(self.agreement, 1)} of rows"
            score = f"accuracy {share(self.oob_score, 1)}"
        return f"Tree {self.number}, out of bag: {agreement}; {score}."

    def __repr__(self) -> str:
        return f"{super().__repr__().removesuffix('>')}; {self.summary}>"


def best_tree(ensemble: FittedTrees, n_jobs: int | None = None) -> BestTree:
    """Return the tree that agrees most with the forest, the first of equals."""
    out = OutOfBag.of(ensemble, n_jobs)
    forest = np.zeros(len(out.n_trees))
    forest[out.known] = combined(ensemble, out.values[out.known])

    def agreement(tree: int) -> float:
        rows, predicted = _out_of_bag(ensemble, tree)
        weight = row_weights(out.training)[rows]
        away = average(losses(ensemble, forest[rows], predicted), weight)
        if not ensemble.is_regression:
            return 1.0 - away
        mean = np.full(len(rows), average(forest[rows], weight))
        whole = average(losses(ensemble, forest[rows], mean), weight)
        return 1.0 - away / whole if whole else float(away == 0)

    every = in_order(agreement, range(len(ensemble)), n_threads(n_jobs))
    # A tree without rows out of bag agrees with nothing.
    number = int(np.argmax(np.nan_to_num(np.array(every), nan=-np.inf)))
    best = BestTree(ensemble.schema, ensemble.trees[number], ensemble.recipe.tree)
    best.number, best.agreement = number, every[number]
    best.oob_score = score_of(ensemble, *_out_of_bag(ensemble, number))
    return best


def _out_of_bag(ensemble: FittedTrees, tree: int) -> tuple[Ints, Floats]:
    """Return the rows that a tree was grown without, by contents, and predictions."""
    samples = samples_of(ensemble)
    rows = samples.order[samples.out_of_bag(tree)[samples.order]]
    data, walker = samples.training.data.take(rows), ensemble.walkers[tree]
    if ensemble.is_regression:
        return rows, walker.quantities(data)
    return rows, walker.classify(data).astype(np.float64)
