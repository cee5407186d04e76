"""Samples of the training rows, one for each tree.

Rows are drawn by their rank when sorted by contents. Rows of equal contents are
interchangeable, so the trees do not depend on the order of the rows. Where the rows are
too many to sort, each is drawn for itself, by a key that is made of its contents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.weights import with_class_weights
from branchwise.engines.memory import Training
from branchwise.grow.draws import Keys, draws, tree_key, uniform
from branchwise.native import available, extension
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from branchwise.threads import cached_property
from branchwise.train.hold_out import content_order

#: Keys of samples must differ from those of the nodes of a tree.
_SAMPLE = 0xA0761D6478BD642F


@dataclass(frozen=True)
class Samples:
    """The samples of training rows that the trees of an ensemble are grown from."""

    training: Training
    recipe: EnsembleRecipe

    @cached_property
    def order(self) -> Ints:
        """The rows that count, sorted by their contents."""
        n_counted = int(np.count_nonzero(self.training.counted))
        return content_order(self.training)[:n_counted]

    def for_recipe(self, recipe: EnsembleRecipe) -> Self:
        """Return the same samples for other trees; rows are not sorted again."""
        same = replace(self, recipe=recipe)
        vars(same)["order"] = self.order
        return same

    def has_same_rows(self, other: Samples) -> bool:
        """Whether other samples are of the same rows, in any order."""
        one = self.training.take(self.order)
        two = other.training.take(other.order)
        if (one.weights is None) != (two.weights is None):
            return False
        pairs = [*zip(one.data.data, two.data.data, strict=True)]
        pairs.append((one.target, two.target))
        if one.weights is not None and two.weights is not None:
            pairs.append((one.weights, two.weights))
        return all(np.array_equal(*pair, equal_nan=True) for pair in pairs)

    @property
    def takes_all(self) -> bool:
        """Whether every tree is grown from all rows."""
        return not self.recipe.bootstrap and self.n_drawn == len(self.order)

    @cached_property
    def n_drawn(self) -> int:
        """The number of rows of each sample."""
        return self.recipe.rows_drawn(len(self.order))

    def times(self, tree: int) -> Ints:
        """Return how often each row is in the sample of a tree."""
        n_rows = self.training.data.n_rows
        if self.recipe.bootstrap and available():
            key = int(sample_key(self.recipe, tree)[0])
            drawn: Ints = extension().bootstrap_times(
                key, self.n_drawn, self.order, n_rows
            )
            return drawn
        times = np.zeros(n_rows, dtype=np.intp)
        times[self.order] = self._times_by_rank(tree)
        return times

    def _times_by_rank(self, tree: int) -> Ints:
        n_rows = len(self.order)
        if self.takes_all:
            return np.ones(n_rows, dtype=np.intp)
        key = sample_key(self.recipe, tree)
        if not self.recipe.bootstrap:
            # Those with the smallest numbers, the first of equals.
            order = np.argsort(draws(key, np.arange(n_rows)), kind="stable")
            times = np.zeros(n_rows, dtype=np.intp)
            times[order[: self.n_drawn]] = 1
            return times
        # The product is below n_rows, as numbers are at most 1 - 2**-53.
        drawn = uniform(draws(key, np.arange(self.n_drawn))) * n_rows
        return np.bincount(drawn.astype(np.intp), minlength=n_rows)

    def rows(self, tree: int) -> Ints:
        """Return the rows of a sample in order, repeated as often as they are in it."""
        times = self.times(tree)
        return np.repeat(np.arange(len(times)), times)

    def distinct_rows(self, tree: int) -> tuple[Ints, NDArray[np.uint8] | None]:
        """Return the rows of a sample in order, and how often each is in it.

        Where each is there once, or one too often, all count once; rows are repeated.
        """
        times = self.times(tree)
        if not 1 < times.max() <= np.iinfo(np.uint8).max:
            return np.repeat(np.arange(len(times)), times), None
        rows = np.flatnonzero(times)
        return rows, times[rows].astype(np.uint8)

    def out_of_bag(self, tree: int) -> NDArray[np.bool_]:
        """Tell which rows that count are not in the sample of a tree."""
        result = np.zeros(self.training.data.n_rows, dtype=bool)
        result[self.order] = self.times(tree)[self.order] == 0
        return result

    def balanced(self, training: Training) -> Training:
        """Weigh the classes of a sample so that all have the same total weight."""
        if not self.recipe.balanced_subsample:
            return training
        classes = tuple(range(training.n_classes))
        weights = with_class_weights(
            training.weights, "balanced", None, classes, training.target.astype(np.intp)
        )
        return replace(training, weights=weights)


def sample_key(recipe: EnsembleRecipe, tree: int) -> Keys:
    """Return the key of the sample of a tree."""
    seed = tree_key(recipe.random_state, tree) ^ _SAMPLE
    return np.array([seed], dtype=np.uint64)


@dataclass(frozen=True)
class Subsamples(Samples):
    """Samples of a table that is larger than memory.

    ``training`` has some of its rows, drawn at random, and ``keys`` their random keys.
    Each row of the table is drawn for itself: ``rate`` is how often on average.
    """

    keys: Keys
    rate: float

    @property
    def takes_all(self) -> bool:
        """Whether every tree is grown from all rows: none is."""
        return False

    def times(self, tree: int) -> Ints:
        """Return how often each row is in the sample of a tree."""
        return times_drawn(self.keys, self.recipe, tree, self.rate)

    def _times_by_rank(self, tree: int) -> Ints:
        return self.times(tree)[self.order]


def times_drawn(keys: Keys, recipe: EnsembleRecipe, tree: int, rate: float) -> Ints:
    """Return how often rows with these keys are in the sample of a tree.

    Of many rows each is in a bootstrap sample as often as a Poisson variable says
    (Oza and Russell, "Online bagging and boosting", 2001).
    """
    return _times(keys, sample_key(recipe, tree), rate, recipe.bootstrap)


def rows_kept(keys: Keys, recipe: EnsembleRecipe, share: float) -> Ints:
    """Return which rows with these keys are kept: 1, or else 0."""
    return _times(keys, ~sample_key(recipe, 0), share, bootstrap=False)


def _times(keys: Keys, key: Keys, rate: float, bootstrap: bool) -> Ints:
    numbers = uniform(draws(keys ^ key, np.zeros(1, dtype=np.uint64)))
    if not bootstrap:
        return (numbers < rate).astype(np.intp)
    tails = _poisson_tails(rate)
    times = np.zeros(len(numbers), dtype=np.intp)
    drawn = np.flatnonzero(numbers < tails[-1])
    times[drawn] = len(tails) - np.searchsorted(tails, numbers[drawn], side="right")
    return times


@lru_cache(maxsize=16)
def _poisson_tails(mean: float) -> Floats:
    """Return the probabilities of k or more, k from the largest down to 1."""
    tails: list[float] = []
    term = below = math.exp(-mean)
    while (tail := 1.0 - below) > 2.0**-50:
        tails.append(tail)
        term *= mean / len(tails)
        below += term
    return np.array(tails[::-1])
