"""Feature importances: weight times the impurity that the splits on a column remove."""

from __future__ import annotations

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.grow.criteria import ImpuritySums64
from branchwise.tree.tree import Tree

#: A smaller share of a node's weight is a rounding error, not a case that stopped.
_STOPPED = 1e-9


_SMALLEST = 1e-290


def column_importances(tree: Tree, n_columns: int, gini: bool = False) -> Floats:
    """Sum weight times impurity decrease over the nodes of each column.

    Impurity is entropy, Gini impurity or, where numbers are predicted, variance.
    Cases that stop at a node are a group of their own there. All zero for a tree
    that is a single leaf or whose splits gain nothing.
    """
    split = np.flatnonzero(tree.n_children)
    result = np.zeros(n_columns)
    if not len(split):
        return result
    if tree.mean is None:
        drop = _class_drop(tree, split, gini)
    else:
        drop = _variance_drop(tree, tree.mean, split)[0]
    np.add.at(result, tree.column[split], drop)
    return result / result.sum() if result.sum() > 0 else result


def split_gains(tree: Tree, gini: bool = False) -> Floats:
    """Return the impurity decrease of each node's split; 0 for leaves.

    In bits, in Gini impurity or, where numbers are predicted, in their units squared.
    """
    split = np.flatnonzero(tree.n_children)
    gains = np.zeros(len(tree))
    if not len(split):
        return gains
    if tree.mean is None:
        drop = _class_drop(tree, split, gini)
        gains[split] = drop / tree.weights[split].sum(axis=1)
    else:
        drop, scale = _variance_drop(tree, tree.mean, split)
        weight = tree.weights[split, 0] / tree.weights[:, 0].max()
        # A node of almost no weight, as files may have it, has almost no decrease.
        gain = np.divide(drop, weight, out=np.zeros_like(drop), where=weight > 0)
        gains[split] = gain * scale * scale
    return gains


def _class_drop(tree: Tree, split: Ints, gini: bool) -> Floats:
    """Return the weight times the impurity decrease of each split."""
    weights = tree.weights
    # The root has the largest weight, unless a tree was made by hand or is wrong.
    total = float(weights.sum(axis=1).max())
    impurity_sums = ImpuritySums64(total, bool((weights == np.rint(weights)).all()))
    impurity = impurity_sums.gini if gini else impurity_sums.entropy
    starts = tree.first_child[split]
    below = np.add.reduceat(weights, starts, axis=0)
    stopped = np.maximum(weights[split] - below, 0)
    weighted_impurity = impurity(weights)
    left = np.add.reduceat(weighted_impurity, starts) + impurity(stopped)
    drop: Floats = np.maximum(weighted_impurity[split] - left, 0) * impurity_sums.unit
    return drop


def _variance_drop(tree: Tree, mean: Floats, split: Ints) -> tuple[Floats, float]:
    """Return the weight times the variance decrease of each split.

    That is the squared distances of the groups' means from the mean of the node.
    Weights are shares of the root's; distances are in a unit, which is returned, too.
    """
    starts = tree.first_child[split]
    weight = tree.weights[:, 0] / tree.weights[:, 0].max()
    away = np.concatenate([[0.0], mean[1:] - mean[tree.parent[1:]]])
    unit = max(float(np.abs(away).max()), _SMALLEST)
    away /= unit  # squares that do not overflow
    drop: Floats = np.add.reduceat(weight * away * away, starts)
    stopped = weight[split] - np.add.reduceat(weight, starts)
    # The deviations of all groups sum to 0: those that stopped have the rest.
    balance = np.add.reduceat(weight * away, starts)
    some = stopped > _STOPPED * weight[split]
    drop[some] += balance[some] ** 2 / stopped[some]
    return drop, unit
