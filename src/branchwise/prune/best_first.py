"""At most so many leaves: the splits that take away most impurity come first.

What a node's best split is does not depend on the order in which nodes are split.
So the tree that best-first growth would give is a part of the full one.
"""

from __future__ import annotations

import heapq

import numpy as np

from branchwise.criteria import CriterionFunction
from branchwise.prune.risk import leaf_risk, left_behind
from branchwise.prune.surgery import snipped
from branchwise.tree import Tree

#: Drops of impurity this close, relative to what there is, are equal.
_SAME_DROP = 1e-12


def limited(tree: Tree, max_leaves: int, criterion: str | CriterionFunction) -> Tree:
    """Keep the best splits that leave at most so many leaves.

    A split that would make too many leaves is passed over, and so is what is below
    it; of equals the first node in order is split.
    """
    risk = leaf_risk(tree, criterion)
    drop = risk - left_behind(tree, criterion)
    np.subtract.at(drop, tree.parent[1:], risk[1:])
    # In whole steps, so that not rounding decides between equals.
    drop = np.rint(drop / (_SAME_DROP * max(float(risk[0]), 1e-300)))
    leaves = np.ones(len(tree), dtype=bool)
    room = max_leaves - 1
    heap = [(-drop[0], 0)]
    while heap:
        _, node = heapq.heappop(heap)
        extra = int(tree.n_children[node]) - 1
        if extra < 0 or extra > room:
            continue
        leaves[node] = False
        room -= extra
        for child in tree.children(node):
            heapq.heappush(heap, (-drop[child], child))
    return snipped(tree, leaves & ~tree.is_leaf).tree
