"""How much each column contributed: the impurity it took away, as shares of 1."""

from __future__ import annotations

import numpy as np

from branchwise.counts import Floats
from branchwise.criteria import Masses64
from branchwise.tree import Tree


def column_importances(tree: Tree, n_columns: int, gini: bool = False) -> Floats:
    """Sum weight times impurity decrease over the nodes of each column.

    Cases that stop at a node are a group of their own there. All zero for a tree
    that is a single leaf or whose splits gain nothing.
    """
    weights = tree.weights
    # The root has the most, unless a tree was made by hand or by mistake.
    total = float(weights.sum(axis=1).max())
    masses = Masses64(total, bool((weights == np.rint(weights)).all()))
    impurity = masses.gini if gini else masses.entropy
    split = np.flatnonzero(tree.n_children)
    result = np.zeros(n_columns)
    if not len(split):
        return result
    starts = tree.first_child[split]
    below = np.add.reduceat(weights, starts, axis=0)
    stopped = np.maximum(weights[split] - below, 0)
    mass = impurity(weights)
    left = np.add.reduceat(mass, starts) + impurity(stopped)
    np.add.at(
        result, tree.column[split], np.maximum(mass[split] - left, 0) * masses.unit
    )
    return result / result.sum() if result.sum() > 0 else result
