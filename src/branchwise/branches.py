"""Stage 5, the end: the branches of chosen splits, put together for a whole level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from branchwise.counts import Floats, Ints, run_starts
from branchwise.missing import STOP, routes
from branchwise.recipes import Recipe
from branchwise.splits import Splits


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
    cut: Floats,
    learned: Ints,
    recipe: Recipe,
) -> Splits:
    """Put the branches of all columns in the order of their nodes."""
    empty = np.empty(0, dtype=np.intp)
    node = np.concatenate([b.node for b in made]) if made else empty
    size = np.concatenate([b.size for b in made]) if made else np.empty(0)
    n_codes = np.concatenate([b.n_codes for b in made]) if made else empty
    codes = np.concatenate([b.codes for b in made]) if made else empty
    # Stable: a node's branches keep their order, that of missing values the last.
    order = np.argsort(node, kind="stable")
    code_order = np.argsort(np.repeat(node, n_codes), kind="stable")
    node, size, n_codes, codes = (
        node[order],
        size[order],
        n_codes[order],
        codes[code_order],
    )
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
    cut = np.where(chosen >= 0, cut, np.nan)
    return Splits(chosen, cut, n_branches, missing_to, unseen_to, n_codes, codes, size)
