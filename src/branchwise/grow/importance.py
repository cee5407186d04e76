"""Feature importances: weight times the impurity that the splits on a column remove."""

from __future__ import annotations

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.grow.criteria import Masses64
from branchwise.tree.tree import Tree

#: Less than this share of a node's weight is no case that stopped, but rounding.
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
    """Return the impurity that each node's split takes away; 0 for leaves.

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
        # A node of next to no weight, as files may have it, takes next to none away.
        gain = np.divide(drop, weight, out=np.zeros_like(drop), where=weight > 0)
        gains[split] = gain * scale * scale
    return gains


def _class_drop(tree: Tree, split: Ints, gini: bool) -> Floats:
    """Return the weight times the impurity that each split takes away."""
    weights = tree.weights
    # The root has the most, unless a tree was made by hand or by mistake.
    total = float(weights.sum(axis=1).max())
    masses = Masses64(total, bool((weights == np.rint(weights)).all()))
    impurity = masses.gini if gini else masses.entropy
    starts = tree.first_child[split]
    below = np.add.reduceat(weights, starts, axis=0)
    stopped = np.maximum(weights[split] - below, 0)
    mass = impurity(weights)
    left = np.add.reduceat(mass, starts) + impurity(stopped)
    drop: Floats = np.maximum(mass[split] - left, 0) * masses.unit
    return drop


def _variance_drop(tree: Tree, mean: Floats, split: Ints) -> tuple[Floats, float]:
    """Return the weight times the variance that each split takes away.

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
    # All together are at the mean, so those that stopped balance the others.
    balance = np.add.reduceat(weight * away, starts)
    some = stopped > _STOPPED * weight[split]
    drop[some] += balance[some] ** 2 / stopped[some]
    return drop, unit
