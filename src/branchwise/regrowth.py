"""Trees that need not be grown: they are the upper part of one that was.

Growth decides node by node, so a limit on depth or on the cases of a node to be split
takes nodes away and changes nothing else. Of trees from the same rows that differ in
these limits alone, the one with the widest limits has all others in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from branchwise.counts import Floats
from branchwise.forks import cached_property
from branchwise.prune.surgery import snipped
from branchwise.recipes import Recipe, unpruned
from branchwise.table.memory import Shelf
from branchwise.tree import Tree

#: What is decided after growth: it may differ where the grown tree is the same.
_AFTER_GROWTH = ("max_leaf_nodes", "costs", "probabilities", "m")


@dataclass(frozen=True)
class _Kept:
    """A tree, and the limits of depth and of cases that it was grown with."""

    tree: Tree
    recipe: Recipe

    @cached_property
    def cases(self) -> Floats:
        """The cases of every node, as the recipe counts them."""
        if self.recipe.weights_are_cases:
            weights: Floats = self.tree.weights.sum(axis=1)
            return weights
        return self.tree.cases

    @cached_property
    def fewest_cases(self) -> float:
        """The fewest cases of a node that was split."""
        return float(self.cases[~self.tree.is_leaf].min(initial=np.inf))


def cut_from_larger(
    shelf: Shelf, recipe: Recipe, n_cases: float, grow: Callable[[Recipe], Tree]
) -> Tree:
    """Return what ``grow(recipe)`` returns, if possible without calling it.

    Parameters
    ----------
    shelf : Shelf
        Where trees of the same rows, targets and weights are kept.
    recipe : Recipe
        How the tree is to be grown.
    n_cases : float
        The number of cases that shares are taken of.
    grow : callable
        Grows a tree.
    """
    name = ("tree", without_limits(recipe))
    kept = shelf.get(name)
    if not isinstance(kept, _Kept) or not _covers(kept.recipe, recipe, n_cases):
        wider = recipe
        if isinstance(kept, _Kept):
            # Who asks for a second size will ask for more of them.
            wider = _wider(kept.recipe, recipe, n_cases)
        kept = _Kept(_read_only(grow(wider)), wider)
        shelf.put(name, kept, _bytes(kept.tree))
    return _cut(kept, recipe.max_depth, recipe.cases_to_split(n_cases))


@lru_cache(maxsize=256)
def without_limits(recipe: Recipe) -> Recipe:
    """Return what the recipe says of growth: all but limits that cut and pruning."""
    usual: dict[str, Any] = {
        name: Recipe.__dataclass_fields__[name].default for name in _AFTER_GROWTH
    }
    return replace(unpruned(recipe), max_depth=None, min_samples_split=2, **usual)


def _covers(wide: Recipe, narrow: Recipe, n_cases: float) -> bool:
    deep = wide.max_depth is None or (
        narrow.max_depth is not None and narrow.max_depth <= wide.max_depth
    )
    return deep and wide.cases_to_split(n_cases) <= narrow.cases_to_split(n_cases)


def _wider(one: Recipe, other: Recipe, n_cases: float) -> Recipe:
    fewest = min(one, other, key=lambda recipe: recipe.cases_to_split(n_cases))
    depth = None if one.max_depth != other.max_depth else one.max_depth
    return replace(other, max_depth=depth, min_samples_split=fewest.min_samples_split)


def _cut(kept: _Kept, max_depth: int | None, cases_to_split: float) -> Tree:
    tree = kept.tree
    if max_depth is not None and max_depth >= tree.max_depth:
        max_depth = None
    if max_depth is None and cases_to_split <= kept.fewest_cases:
        return tree
    leaves = kept.cases < cases_to_split
    if max_depth is not None:
        leaves |= tree.depth >= max_depth
    return snipped(tree, leaves).tree


def _read_only(tree: Tree) -> Tree:
    """Let nobody change the arrays of a tree that others will get, too."""
    for array in vars(tree).values():
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return tree


def _bytes(tree: Tree) -> int:
    return sum(
        array.nbytes for array in vars(tree).values() if isinstance(array, np.ndarray)
    )
