"""Boosting by weights of rows: SAMME, in the manner of Quinlan's boosted C4.5.

Every tree is grown from all rows. Rows that it gets wrong weigh more for the next one,
and it has the more votes the fewer these are (Freund and Schapire 1997; for several
classes Zhu, Zou, Rosset and Hastie, "Multi-class AdaBoost", 2009; for trees of C4.5
Quinlan, "Bagging, boosting, and C4.5", 1996). Nothing is drawn at random.

Trees of C4.5 take weights for numbers of cases, so weights are rescaled after each
round: their sum stays what it was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, first_best_of_rows
from branchwise.engines.memory import Training
from branchwise.ensemble.early_stop import EarlyStop, OnRound
from branchwise.ensemble.forest import TreeProgress
from branchwise.ensemble.sampling import Samples
from branchwise.train.train import grown_from_bins, in_bins, is_native
from branchwise.tree.apply import Walker
from branchwise.tree.tree import Tree


@dataclass(frozen=True)
class Boosted:
    """Trees, and the weights of their votes."""

    trees: list[Tree]
    weights: Floats


def boosted_trees(
    samples: Samples,
    threads: int = 1,
    progress: TreeProgress | None = None,
    on_round: OnRound | None = None,
    earlier: Sequence[Tree] = (),
) -> Boosted:
    """Grow trees until one is perfect, one is no better than guessing, or enough.

    The first rounds take the earlier trees in place of growing them again.
    """
    recipe = samples.recipe.tree
    training, stop = EarlyStop.of(samples)
    n_classes = training.n_classes
    native = is_native(training, recipe)
    binned, edges = in_bins(training, training.grid(recipe), recipe, native, threads)
    weights = _given_weights(training)
    total = math.fsum(weights.tolist())
    rows = replace(training, cache=None)
    aside = None if stop.validation is None else _Aside.of(stop.validation)
    trees: list[Tree] = []
    tree_weights: list[float] = []
    for number in range(samples.recipe.n_estimators):
        if number < len(earlier):
            tree = earlier[number]
        else:
            cells = replace(binned, weights=rows.weights, cache=None)
            tree = grown_from_bins(rows, cells, edges, recipe, None, threads=threads)
        walker = Walker(training.columns, tree, recipe)
        wrong = walker.classify(training.data) != training.target
        error = _share(weights, wrong)
        if trees and error >= 1 - 1 / n_classes:
            break
        trees.append(tree)
        tree_weights.append(_vote(error, n_classes, total, alone=len(trees) == 1))
        missed = None if aside is None else aside.error(walker, tree_weights[-1])
        if on_round is not None:
            on_round(error, missed)
        if progress is not None:
            progress(len(trees))
        if error == 0 or error >= 1 - 1 / n_classes:
            break
        if missed is not None and stop.now(missed):
            break
        # Wrong rows get the same total weight as right ones, for two classes.
        weights = np.where(wrong, weights * (_odds(error) * (n_classes - 1)), weights)
        weights *= total / math.fsum(weights.tolist())
        rows = replace(rows, weights=weights)
    if len(trees) == 1:
        tree_weights = [1.0]  # whatever its error, it decides alone
    return Boosted(trees, np.array(tree_weights))


@dataclass(frozen=True)
class _Aside:
    """Held-out rows, and the votes for their classes so far."""

    rows: Training
    votes: Floats

    @classmethod
    def of(cls, rows: Training) -> _Aside:
        return cls(rows, np.zeros((rows.data.n_rows, rows.n_classes)))

    def error(self, walker: Walker, weight: float) -> float:
        """Add the votes of a tree, and return the share of wrong classes."""
        codes = walker.classify(self.rows.data)
        self.votes[np.arange(len(codes)), codes] += weight
        wrong = first_best_of_rows(self.votes) != self.rows.target
        return _share(_given_weights(self.rows), wrong)


def _given_weights(training: Training) -> Floats:
    if training.weights is None:
        return np.ones(training.data.n_rows)
    return training.weights


def _share(weights: Floats, chosen: NDArray[np.bool_]) -> float:
    """Return the share of the weight that some rows have, in any order of rows."""
    return math.fsum(weights[chosen].tolist()) / math.fsum(weights.tolist())


def _odds(error: float) -> float:
    return (1.0 - error) / error


def _vote(error: float, n_classes: int, total: float, alone: bool) -> float:
    """Return the weight of the vote of a tree.

    That of a perfect tree would be infinite: it is as if half a case were wrong.
    """
    if alone and (error == 0 or error >= 1 - 1 / n_classes):
        return 1.0
    least = 0.5 / (total + 1.0)
    return math.log(_odds(max(error, least))) + math.log(n_classes - 1)
