"""Cross-validation of the training rows: it chooses ``ccp_alpha`` and how to split.

Folds are assigned by the contents of rows, so row order does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.encoded_table import CACHE_SIZE, CacheStore, LRUCache
from branchwise.engines.memory import Training
from branchwise.prune import subtrees
from branchwise.prune.risk import measure_of
from branchwise.recipe import Recipe, unpruned
from branchwise.train.hold_out import (
    PathErrors,
    Units,
    assigned,
    errors_by_node,
    total_weight,
)
from branchwise.train.train import grown
from branchwise.tree.apply import Walker
from branchwise.tree.tree import Tree

#: So many folds.
_FOLDS = 10
#: Rows are assigned to folds so often to compare recipes
REPEATS = 3
#: where there are no more rows than this: their trees take little time.
FEW_ROWS = 2000


def settled(
    training: Training,
    recipe: Recipe,
    threads: int = 1,
    trees: CacheStore | None = None,
) -> Recipe:
    """Return a recipe with all that cross-validation is to choose.

    ``trees`` keeps those of the folds for other recipes of the same rows.
    """
    if recipe.cross_validate:
        recipe = choose_recipe(training, recipe, threads)
    if isinstance(recipe.ccp_alpha, str):
        alpha = choose_alpha(training, recipe, recipe.ccp_alpha, threads, trees)
        risk = "errors" if recipe.counts_errors else recipe.risk
        recipe = replace(recipe, ccp_alpha=alpha, risk=risk)
    return recipe


def _counted(training: Training) -> Training:
    """Return the rows that count."""
    counted = training.counted
    return training if counted.all() else training.take(np.flatnonzero(counted))


def _folds(
    training: Training, trees: CacheStore | None, repeat: int = 0
) -> Iterator[tuple[Training, Ints]]:
    """Yield what to grow from, and the numbers of the rows to test with."""
    hand = assigned(training, _FOLDS, repeat)
    for fold in range(_FOLDS):
        aside = np.flatnonzero(hand == fold)
        rest = training.take(np.flatnonzero(hand != fold))
        if trees is not None:
            rest = replace(rest, cache=LRUCache(trees, repeat * _FOLDS + fold))
        if len(aside) and total_weight(rest) > 0:
            yield rest, aside


def candidates(recipe: Recipe) -> list[Recipe]:
    """Return the recipes that cross-validation chooses among, the usual one first.

    Values in groups, by the criterion of the recipe, or in two groups, without C4.5's
    corrections for thresholds; each pruned by estimated errors and by the complexity
    parameter with the fewest errors. Other pruning than by estimated errors is kept.
    """
    groups = replace(recipe, cross_validate=False)
    two_way = replace(
        groups,
        branching="two-way",
        criterion="gain",
        quinlan_thresholds=False,
        average_gain=False,
    )
    if recipe.pruning != "error-based":
        return [groups, two_way]
    cart = replace(two_way, criterion="gini")
    if cart.missing == "split":
        cart = replace(cart, missing="learned")
    return [groups, two_way, _by_complexity(groups), _by_complexity(cart)]


def _by_complexity(recipe: Recipe) -> Recipe:
    return replace(
        unpruned(recipe),
        collapse=recipe.collapse,
        pruning="cost-complexity",
        ccp_alpha="best",
    )


def choose_recipe(training: Training, recipe: Recipe, threads: int = 1) -> Recipe:
    """Choose a recipe of :func:`candidates` by its errors, or costs, in folds.

    Of those that err as little as the best one, within a standard error of the
    difference, it is that with the fewest leaves. Few rows are assigned to folds
    several times, so that one assignment does not decide.
    """
    training = _counted(training)
    n_rows = training.data.n_rows
    # A tree that is pruned in several ways is grown only once.
    trees = CacheStore(CACHE_SIZE)
    recipes = [settled(training, one, threads, trees) for one in candidates(recipe)]
    losses = np.zeros((len(recipes), n_rows))
    leaves = [0] * len(recipes)
    for repeat in range(REPEATS if n_rows <= FEW_ROWS else 1):
        for rest, rows in _folds(training, trees, repeat):
            aside = training.take(rows)
            for at, candidate in enumerate(recipes):
                tree = grown(rest, candidate, threads)
                losses[at, rows] += _losses(tree, aside, candidate)
                leaves[at] += tree.n_leaves
    weight = _case_weights(training)
    share = weight / weight.max()
    totals = [math.fsum((share * loss).tolist()) for loss in losses]
    best = losses[totals.index(min(totals))]
    close = [at for at, loss in enumerate(losses) if not is_clear(loss - best, share)]
    return recipes[min(close, key=leaves.__getitem__)]


def _losses(tree: Tree, aside: Training, recipe: Recipe) -> Floats:
    """Return the error, or cost, of every row that the tree was not grown from."""
    predicted = Walker(aside.columns, tree, recipe).classify(aside.data)
    wanted = aside.target.astype(np.intp)
    costs = 1.0 - np.eye(aside.n_classes)
    if recipe.costs is not None:
        # Relative to the largest, so that squares stay finite.
        costs = np.array(recipe.costs) / max(np.max(recipe.costs), 1.0)
    loss: Floats = costs[wanted, predicted]
    return loss


def _case_weights(rows: Training) -> Floats:
    return np.ones(rows.data.n_rows) if rows.weights is None else rows.weights


def is_clear(difference: Floats, share: Floats) -> bool:
    """Return whether a sum of differences exceeds its standard error.

    ``share`` are the weights of the rows, relative to the largest one. Sums are exact,
    so that the order of rows does not matter.
    """
    total = math.fsum((share * difference).tolist())
    squares = math.fsum((share * difference**2).tolist())
    variance = max(squares - total**2 / math.fsum(share.tolist()), 0.0)
    return total > math.sqrt(variance)


def choose_alpha(
    training: Training,
    recipe: Recipe,
    rule: str,
    threads: int = 1,
    trees: CacheStore | None = None,
) -> float:
    """Choose the complexity parameter by cross-validation.

    ``rule`` is "best", the alpha with the least error, or "1-se", the largest alpha
    whose error is within one standard error of that (Breiman et al. 1984, 3.4.3).
    ``trees`` is as in :func:`settled`.
    """
    training = _counted(training)
    full = replace(recipe, pruning=None, ccp_alpha=0.0, risk="auto")
    measure = measure_of(recipe)
    path = subtrees.pruning_path(grown(training, full, threads), measure)
    # The interval between two alphas is represented by their geometric mean.
    alphas_above = np.append(
        np.sqrt(path.alphas[:-1]) * np.sqrt(path.alphas[1:]), 2 * path.alphas[-1] + 1
    )
    total = PathErrors(np.zeros((2, len(alphas_above))))
    units = Units.of(training, recipe)
    for rest, rows in _folds(training, trees):
        aside = training.take(rows)
        tree = grown(rest, full, threads)
        path_there = subtrees.pruning_path(tree, measure)
        by_node = errors_by_node(tree, aside, recipe, units)
        there = PathErrors.along(path_there, tree, by_node)
        step = np.searchsorted(path_there.alphas, alphas_above, side="right") - 1
        total.sums += there.sums[:, step]
        total.n_rows += there.n_rows
    return float(path.alphas[total.choice(rule)]) if total.n_rows else 0.0
