"""What a threshold decides of the cases that a raised branch gets from its siblings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from branchwise import Model, fit_tree
from branchwise.prune.error_based import _largest_child
from branchwise.recipe import ID3
from branchwise.tree.tree import rearranged


def between_values(seed: int, n: int = 150):
    """A number with wide spaces at the nodes below ``kind``, but not between them."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(list("abc"), n)
    x = rng.choice([0, 20, 40, 60], n) + 3 * (kind == "b") + 7 * (kind == "c")
    z = rng.integers(0, 4, n)
    y = (x > 35) ^ (z > 2) ^ (rng.random(n) < 0.25)
    return {"kind": kind.tolist(), "x": x.tolist(), "z": z.tolist()}, y.tolist()


def grown(X, y, threshold: str, **pruning) -> Model:
    recipe = replace(ID3, threshold=threshold, **pruning)
    return fit_tree(X, y, recipe, on_finding=lambda finding: None)


def test_only_raised_branches_depend_on_where_thresholds_lie():
    n_other = 0
    for seed in range(10, 20):
        X, y = between_values(seed)
        for raises in (False, True):
            options = {"pruning": "error-based", "raise_subtrees": raises}
            readable = grown(X, y, "readable", **options).tree
            midpoint = grown(X, y, "midpoint", **options).tree
            same = np.array_equal(readable.weights, midpoint.weights)
            assert same or raises
            n_other += not same
    assert n_other


def test_cases_that_a_branch_decides_otherwise_lie_between_its_own():
    n_other = 0
    for seed in range(4):
        X, y = between_values(seed)
        models = [grown(X, y, threshold) for threshold in ("readable", "midpoint")]
        tree = models[0].tree
        largest = _largest_child(tree)
        for node in np.flatnonzero(~tree.is_leaf):
            if tree.is_leaf[largest[node]]:
                continue
            up = np.full(len(tree), -1)
            up[node] = largest[node]
            nothing = np.zeros(len(tree), dtype=bool)
            raised = [
                Model(m.schema, rearranged(m.tree, up, nothing).tree, m.recipe)
                for m in models
            ]
            arrived = [model.apply(X) for model in raised]
            for row in np.flatnonzero(arrived[0] != arrived[1]):
                ways = [
                    _way(m.tree, at[row]) for m, at in zip(raised, arrived, strict=True)
                ]
                last = [a for a, b in zip(*ways, strict=False) if a == b][-1]
                low, high = sorted(float(m.tree.threshold[last]) for m in raised)
                name = list(X)[int(raised[0].tree.column[last])]
                assert low < X[name][row] <= high
                n_other += 1
    assert n_other


def _way(tree, node: int) -> list[int]:
    way = []
    while node >= 0:
        way.append(int(node))
        node = tree.parent[node]
    return way[::-1]
