"""Branches of splits, and the scores of the best split of each node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from branchwise.data.arrays import Floats, Ints, run_starts
from branchwise.recipe import Recipe
from branchwise.tree.splits import STOP, Splits, routes


@dataclass(frozen=True)
class Branches:
    """Branches with the codes that lead to them; that of missing values has none."""

    node: Ints
    size: Floats
    n_codes: Ints
    codes: Ints
    weights: Floats
    cases: Floats


def assembled(
    made: Sequence[Branches],
    chosen: Ints,
    threshold: Floats,
    learned: Ints,
    recipe: Recipe,
) -> Splits:
    """Join the branches of all columns in the order of their nodes."""
    nothing = [np.empty(0, dtype=np.intp)]
    node, n_codes, codes = (
        np.concatenate([getattr(b, name) for b in made] or nothing)
        for name in ("node", "n_codes", "codes")
    )
    size = np.concatenate([b.size for b in made] or [np.empty(0)])
    # Stable: a node's branches keep their order, that of missing values the last.
    order = np.argsort(node, kind="stable")
    codes = codes[np.argsort(np.repeat(node, n_codes), kind="stable")]
    node, size, n_codes = node[order], size[order], n_codes[order]
    starts = run_starts(node)
    split = node[starts]
    n_branches = np.zeros(len(chosen), dtype=np.intp)
    n_branches[split] = np.diff(starts, append=len(node))
    missing_to = np.full(len(chosen), STOP, dtype=np.intp)
    unseen_to = np.full(len(chosen), STOP, dtype=np.intp)
    if len(split):
        last = starts + n_branches[split] - 1
        has_own = n_codes[last] == 0
        missing_branch = np.where(has_own, n_branches[split] - 1, learned[split])
        missing_to[split], unseen_to[split] = routes(
            recipe.missing, recipe.unseen, size, starts, missing_branch
        )
    threshold = np.where(chosen >= 0, threshold, np.nan)
    return Splits(
        chosen, threshold, n_branches, missing_to, unseen_to, n_codes, codes, size
    )


@dataclass(frozen=True)
class Scored:
    """The best split of one column for each node; its score is -inf if there is none.

    ``missing_to`` is the branch of the missing cases, if it is learnt; ``log_ways`` the
    logarithm of how many candidates it is the best of, ``n_thresholds`` of them
    thresholds.
    """

    score: Floats
    gain: Floats
    threshold: Floats
    resolution: Floats
    missing_to: Ints
    log_ways: Floats
    n_thresholds: Ints

    @classmethod
    def nothing(cls, n_nodes: int) -> Scored:
        """Return the result of a column without any split, for so many nodes."""
        return cls(
            np.full(n_nodes, -np.inf),
            np.full(n_nodes, -np.inf),
            np.full(n_nodes, np.nan),
            np.zeros(n_nodes),
            np.full(n_nodes, STOP, dtype=np.intp),
            np.zeros(n_nodes),
            np.zeros(n_nodes, dtype=np.intp),
        )
