"""Cost-complexity pruning by its definition, with fractions: slow and plain."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from branchwise.prune.risk import leaf_risk, left_behind
from branchwise.prune.subtrees import PruningPath
from branchwise.tree.tree import Tree


class Links:
    """A tree whose weakest links are cut: all is added up anew after each cut."""

    def __init__(self, tree: Tree, criterion: str) -> None:
        self.tree = tree
        self.own = [Fraction(risk) for risk in leaf_risk(tree, criterion).tolist()]
        self.stay = [Fraction(r) for r in left_behind(tree, criterion).tolist()]
        self.threshold: set[int] = set()

    def inner(self) -> dict[int, tuple[Fraction, int]]:
        """Return what cutting each inner node costs, and the leaves that it saves."""
        found = {}
        sums: dict[int, tuple[Fraction, int]] = {}
        for node in reversed(range(len(self.tree))):
            below = [sums[child] for child in self.tree.children(node)]
            sums[node] = (self.own[node], 1)
            if below and node not in self.threshold:
                risk = self.stay[node] + sum(r for r, _ in below)
                leaves = sum(n for _, n in below)
                sums[node] = (risk, leaves)
                found[node] = (self.own[node] - risk, leaves - 1)
        self.risk, self.leaves = sums[0]
        gone = set(self.threshold)
        for node in range(1, len(self.tree)):
            if self.tree.parent[node] in gone:
                gone.add(node)
        return {node: pair for node, pair in found.items() if node not in gone}


def price(gain: Fraction, fewer: int) -> Fraction | float:
    if gain <= 0:
        return Fraction(0)
    return gain / fewer if fewer else math.inf


def pruning_path(tree: Tree, criterion: str) -> PruningPath:
    """Cut the weakest link, of equals that nearest to the root, again and again."""
    links = Links(tree, criterion)
    same = 1e-12 * max(float(links.own[0]), 1e-300)
    step = np.full(len(tree), -1)
    alphas, risks, sizes, pruned_alphas, pruned_risks = [0.0], [], [], [0.0], []
    while True:
        prices = [(price(*pair), node) for node, pair in links.inner().items()]
        lowest, node = min(prices, default=(math.inf, -1))
        pruned_risks.append(float(links.risk))
        if float(lowest) > alphas[-1] + same:
            risks.append(pruned_risks[-1])
            sizes.append(links.leaves)
            if links.leaves == 1:
                break
            alphas.append(float(lowest))
        pruned_alphas.append(alphas[-1])
        links.threshold.add(node)
        step[node] = len(alphas) - 1
    step[step < 0] = len(alphas)
    return PruningPath(
        *(np.array(v) for v in (alphas, risks, sizes)),
        step,
        np.array(pruned_alphas),
        np.array(pruned_risks),
    )
