"""Gradient boosting: regression trees of the gradients of a loss.

Friedman, "Greedy function approximation: a gradient boosting machine", 2001, and
"Stochastic gradient boosting", 2002. In each round, a tree of each output is grown from
the negative gradients of the rows. The ``mean`` of each of its nodes is then replaced
by one Newton step from the rows of the node, times the learning rate, so that margins
are plain sums over trees. Sums over the rows of a node are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.bins import Edges
from branchwise.engines.memory import Training
from branchwise.ensemble.early_stop import EarlyStop, OnRound
from branchwise.ensemble.forest import TreeProgress
from branchwise.ensemble.losses import (
    gradients,
    initial_margins,
    limbs_of,
    mean_loss,
    newton_factor,
    whole_sums,
)
from branchwise.ensemble.sampling import Samples
from branchwise.grow.draws import ColumnDraws, tree_key
from branchwise.recipe.ensemble_recipe import EnsembleRecipe, Loss
from branchwise.threads import in_order
from branchwise.train.train import grown_from_bins, in_bins, is_native
from branchwise.tree.apply import Arrivals, Walker
from branchwise.tree.tree import Tree, subtree_sums

#: Second derivatives that add up to less than this allow no step.
_FLAT = 1e-150


@dataclass(frozen=True)
class Gradient:
    """Trees, round by round, and the margins they start from."""

    trees: list[Tree]
    initial: Floats


def gradient_trees(
    samples: Samples,
    threads: int = 1,
    progress: TreeProgress | None = None,
    on_round: OnRound | None = None,
    earlier: Sequence[Tree] = (),
) -> Gradient:
    """Grow trees round by round, until the loss of held-out rows improves no more.

    The first rounds take the earlier trees in place of growing them again.
    """
    training, stop = EarlyStop.of(samples)
    rounds = _Rounds.of(replace(samples, training=training), threads)
    margins = np.tile(rounds.initial, (training.data.n_rows, 1))
    aside = None
    if stop.validation is not None:
        aside = _Aside.of(stop.validation, rounds.initial)
    trees: list[Tree] = []
    for number in range(samples.recipe.n_estimators):
        own = slice(number * margins.shape[1], (number + 1) * margins.shape[1])
        grown, chosen = rounds.grow(number, margins, earlier[own])
        trees += grown
        held_out = None if aside is None else aside.loss(grown, samples.recipe)
        if on_round is not None:
            on_round(rounds.train_loss(margins, chosen), held_out)
        if progress is not None:
            progress(len(trees))
        if held_out is not None and stop.now(held_out):
            break
    return Gradient(trees, rounds.initial)


@dataclass(frozen=True)
class _Aside:
    """Held-out rows, and their margins so far."""

    rows: Training
    margins: Floats

    @classmethod
    def of(cls, rows: Training, initial: Floats) -> _Aside:
        return cls(rows, np.tile(initial, (rows.data.n_rows, 1)))

    def loss(self, trees: Sequence[Tree], recipe: EnsembleRecipe) -> float:
        """Add the trees of a round to the margins, and return the loss."""
        for output, tree in enumerate(trees):
            walker = Walker(self.rows.columns, tree, recipe.tree)
            self.margins[:, output] += walker.quantities(self.rows.data)
        target, weights = _numbers(self.rows)
        return mean_loss(_loss_of(recipe), target, self.margins, weights)


@dataclass(frozen=True)
class _Rounds:
    """What all rounds have in common: the rows, their bins, targets and weights."""

    samples: Samples
    binned: Training
    edges: Edges
    target: Floats
    weights: Floats
    initial: Floats
    loss: Loss
    max_features: int
    threads: int

    @classmethod
    def of(cls, samples: Samples, threads: int) -> _Rounds:
        """Prepare the rows of all rounds."""
        training, recipe = samples.training, samples.recipe
        loss = _loss_of(recipe)
        target, weights = _numbers(training)
        initial = initial_margins(loss, target, weights, training.n_classes)
        n_columns = len(training.columns)
        max_features = recipe.columns_drawn(n_columns)
        rows = replace(training, target=target, n_classes=0, cache=None)
        native = is_native(rows, recipe.tree)
        grid = rows.grid(recipe.tree)
        binned, edges = in_bins(rows, grid, recipe.tree, native, threads)
        return cls(
            replace(samples, training=rows),
            binned,
            edges,
            target,
            weights,
            initial,
            loss,
            max_features,
            threads,
        )

    @property
    def recipe(self) -> EnsembleRecipe:
        """The recipe of the ensemble."""
        return self.samples.recipe

    def grow(
        self, number: int, margins: Floats, earlier: Sequence[Tree] = ()
    ) -> tuple[list[Tree], Ints | None]:
        """Grow the trees of a round, and add them to the margins of all rows.

        Also return the rows that the trees are grown from; None for all. Trees that are
        given are not grown.
        """
        chosen = None if self.samples.takes_all else self.samples.rows(number)
        away, curvature = gradients(self.loss, self.target, margins)

        def grow_one(output: int) -> tuple[Tree, Floats]:
            if earlier:
                tree = earlier[output]
            else:
                tree = self._tree(
                    number, output, np.ascontiguousarray(away[:, output]), chosen
                )
            walker = Walker(self.binned.columns, tree, self.recipe.tree)
            arrivals = walker.walk(self.samples.training.data)
            if not earlier:
                tree = self._with_steps(
                    tree, arrivals, away[:, output], curvature[:, output], chosen
                )
            if arrivals.undivided and tree.mean is not None:
                return tree, tree.mean[arrivals.node]
            walker = Walker(self.binned.columns, tree, self.recipe.tree)
            return tree, walker.quantities(self.samples.training.data)

        grown = in_order(grow_one, range(margins.shape[1]), self.threads)
        for output, (_, values) in enumerate(grown):
            margins[:, output] += values
        return [tree for tree, _ in grown], chosen

    def train_loss(self, margins: Floats, chosen: Ints | None) -> float:
        """Return the loss of the rows that a round was grown from."""
        rows: Any = slice(None) if chosen is None else chosen
        given = self.target[rows], margins[rows], self.weights[rows]
        return mean_loss(self.loss, *given)

    def _tree(
        self, number: int, output: int, target: Floats, chosen: Ints | None
    ) -> Tree:
        rows = replace(self.samples.training, target=target)
        cells = replace(self.binned, target=target)
        if chosen is not None:
            rows, cells = rows.take(chosen), cells.take(chosen)
        drawn = None
        if self.max_features < len(rows.columns):
            tree = number * len(self.initial) + output
            key = tree_key(self.recipe.random_state, tree)
            drawn = ColumnDraws(key, self.max_features)
        # Threads grow the trees of several outputs, or else share one tree.
        threads = self.threads if len(self.initial) == 1 else 1
        return grown_from_bins(
            rows, cells, self.edges, self.recipe.tree, drawn, threads=threads
        )

    def _with_steps(
        self,
        tree: Tree,
        arrivals: Arrivals,
        away: Floats,
        curvature: Floats,
        chosen: Ints | None,
    ) -> Tree:
        """Replace the means of nodes by Newton steps, times the learning rate."""
        steps = tree.mean
        if self.loss != "squared_error":  # where the mean is the step
            row, node, weights = arrivals.row, arrivals.node, self.weights
            if chosen is not None:
                weights = np.zeros(len(weights))
                weights[chosen] = self.weights[chosen]
            weight = weights[row] * arrivals.share
            top = _node_sums(tree, node, weight * away[row])
            bottom = _node_sums(tree, node, weight * curvature[row])
            steep = np.abs(bottom) >= _FLAT
            steps = np.divide(top, bottom, out=np.zeros(len(tree)), where=steep)
            steps *= newton_factor(len(self.initial))
        rate = float(self.recipe.learning_rate)
        # Adding 0 turns -0.0 into 0.0.
        return replace(tree, mean=None if steps is None else steps * rate + 0.0)


def _loss_of(recipe: EnsembleRecipe) -> Loss:
    if recipe.loss is None:
        raise AssertionError("gradient boosting has a loss")
    return recipe.loss


def _numbers(training: Training) -> tuple[Floats, Floats]:
    """Return target and weights as numbers."""
    target = training.target.astype(np.float64)
    weights = training.weights
    return target, np.ones(len(target)) if weights is None else weights


def _node_sums(tree: Tree, node: Ints, terms: Floats) -> Floats:
    """Return the sums of terms over the rows of each node, in any order of rows."""
    limbs, split = limbs_of(terms)
    own = [
        np.bincount(node, weights=split[:, at], minlength=len(tree))
        for at in range(len(limbs))
    ]
    return whole_sums(limbs, subtree_sums(tree, np.stack(own, axis=1)))
