"""Reduced-error pruning: a subtree must show its worth on cases it has not seen.

Bottom up, a subtree becomes a leaf where the errors on a validation set do not grow
by more than is tolerated (Quinlan, "Simplifying decision trees", 1987).
"""

from __future__ import annotations

import numpy as np

from branchwise.counts import Floats
from branchwise.prune.surgery import add_to_parents, snipped
from branchwise.ties import TIE
from branchwise.tree import Tree


def pruned(tree: Tree, as_leaf: Floats, stopping: Floats, slack: float) -> Tree:
    """Prune a tree by its errors on a validation set.

    Parameters
    ----------
    tree : Tree
        What to prune.
    as_leaf : array
        For each node the errors on all validation cases that come by, if it were a
        leaf.
    stopping : array
        The errors on the cases that come no further than the node.
    slack : float
        By how much the errors may grow with each subtree that goes.
    """
    below = np.where(tree.is_leaf, as_leaf, stopping)
    leaf = np.zeros(len(tree), dtype=bool)
    for start, stop in reversed(list(tree.levels())):
        here = slice(start, stop)
        inner = tree.n_children[here] > 0
        # Sums of fractions may differ in their last bits.
        leaf[here] = inner & (as_leaf[here] <= (below[here] + slack) * (1 + TIE))
        below[here] = np.where(leaf[here], as_leaf[here], below[here])
        add_to_parents(tree, below, start, stop)
    return snipped(tree, leaf).tree
