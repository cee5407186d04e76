"""The state of a session after an action: a tree, and what is known of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from branchwise.recipe import Recipe
from branchwise.tree.tree import Tree


@dataclass(frozen=True)
class State:
    """A tree, and what a session knows of its nodes, by path.

    ``hand`` are the splits made by hand, ``predictions`` the codes of classes, or the
    numbers, that are set by hand.
    """

    tree: Tree
    recipe: Recipe
    hand: frozenset[str] = frozenset()
    locks: frozenset[str] = frozenset()
    notes: Mapping[str, str] = field(default_factory=dict)
    predictions: Mapping[str, float] = field(default_factory=dict)
