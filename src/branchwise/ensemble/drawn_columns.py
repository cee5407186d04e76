"""The number of columns that the nodes of a forest draw, chosen out of bag."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from branchwise.data.arrays import Floats
from branchwise.data.table_schema import Schema
from branchwise.ensemble.ensemble import Ensemble
from branchwise.ensemble.forest import GrowTrees
from branchwise.ensemble.out_of_bag import (
    OutOfBag,
    combined,
    losses,
    row_weights,
    validate_out_of_bag,
)
from branchwise.ensemble.sampling import Samples
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from branchwise.train.cross_validation import is_clear
from branchwise.tree.tree import Tree

#: Numbers of columns are compared by so many trees each.
_TREES = 50


@dataclass(frozen=True)
class _Trial:
    """The first trees of a forest, and the losses of the rows out of bag."""

    samples: Samples
    trees: list[Tree]
    losses: Floats
    weights: Floats

    @classmethod
    def of(
        cls, samples: Samples, schema: Schema, threads: int, grow: GrowTrees
    ) -> _Trial:
        """Grow the trees and predict the rows that they were grown without."""
        numbers = range(min(_TREES, samples.recipe.n_estimators))
        trees = grow(samples, numbers, None)
        forest = Ensemble(schema, tuple(trees), samples.recipe, samples=samples)
        found = OutOfBag.of(forest, threads)
        known = found.known
        target = samples.training.target[known]
        lost = losses(forest, target, combined(forest, found.values[known]))
        return cls(samples, trees, lost, row_weights(samples.training)[known])

    def is_clearly_better(self, other: _Trial) -> bool:
        """Whether it loses less, by more than a standard error of the difference.

        Equal samples leave out equal rows, so the losses are of the same ones.
        """
        if not len(self.weights):
            return False
        share = self.weights / self.weights.max()
        return is_clear(other.losses - self.losses, share)


def choose_columns(
    samples: Samples, schema: Schema, threads: int, grow: GrowTrees
) -> tuple[Samples, list[Tree]]:
    """Choose ``max_features``; return the samples with it, and the first trees.

    ``grow`` grows trees wherever the rows are, and ``threads`` predict those out of
    bag here. It goes from one number of columns to the next as long as that is clearly
    better than the one before.
    """
    validate_out_of_bag(samples)
    numbers = _numbers(samples.recipe, len(samples.training.columns))
    best = _Trial.of(_drawing(samples, next(numbers)), schema, threads, grow)
    for number in numbers:
        trial = _Trial.of(_drawing(samples, number), schema, threads, grow)
        if not trial.is_clearly_better(best):
            break
        best = trial
    return best.samples, best.trees


def _drawing(samples: Samples, number: int) -> Samples:
    """Return the same samples for trees whose nodes draw so many columns."""
    return samples.for_recipe(replace(samples.recipe, max_features=number))


def _numbers(recipe: EnsembleRecipe, n_columns: int) -> Iterator[int]:
    """Yield the numbers of columns to try.

    For classes the square root, rounded down, and its doubles, up to all columns; for
    numbers all columns, then half as many, and so on.
    """
    if recipe.tree.is_regression:
        number = n_columns
        while number >= 1:
            yield number
            number //= 2
        return
    number = replace(recipe, max_features="sqrt").columns_drawn(n_columns)
    while number < n_columns:
        yield number
        number *= 2
    yield n_columns
