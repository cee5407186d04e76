"""Stage 7: the one level-wise loop that grows every tree.

Glossary
--------
node      a place in the tree; the root is node 0
open node a node of the current level that may still be split
level     all nodes at one depth; depth counts questions, the root is at 0
code      a value of a column as a small number
branch    a way down from a node; ``child = first_child[node] + branch``
cut       the number that a numeric column is compared with
counts    class weights of the open nodes by code: all that is known of the rows
engine    who holds the rows, adds up the counts and moves the rows

The loop: close the nodes that need no split; ask for counts; choose splits from
the counts alone; move the rows; the branches are the next level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.agreement import with_surrogates
from branchwise.counts import Ints
from branchwise.criteria import Masses64, Moments64
from branchwise.deciding import Stop, best_splits, stops
from branchwise.engines.base import Engine
from branchwise.missing import STOP
from branchwise.recipes import Recipe
from branchwise.replay import prescribed_splits
from branchwise.search import Level
from branchwise.splits import Splits, Surrogates
from branchwise.table.schema import Column
from branchwise.tree import Tree

#: Told now and then how many nodes the tree has so far.
Progress = Callable[[int], None]


def grow(
    engine: Engine,
    columns: Sequence[Column],
    recipe: Recipe,
    progress: Progress | None = None,
) -> Tree:
    """Grow a tree from the rows of an engine."""
    level = engine.totals()
    n_cases = float(level.cases[0])
    masses = masses_of(level, engine, recipe)
    parts = _Parts(len(level))
    depth = 0
    while True:
        stop = stops(level, depth, recipe, n_cases, masses)
        open_nodes = np.flatnonzero(stop == Stop.OPEN)
        engine.retain(open_nodes)
        if not len(open_nodes):
            parts.add(level, open_nodes, None)
            return parts.tree()
        opened = Level(level.weights[open_nodes], level.cases[open_nodes])
        splits = best_splits(engine, columns, opened, recipe, masses, n_cases)
        if recipe.missing == "surrogate":
            splits = with_surrogates(splits, engine, columns, recipe.cut)
        parts.add(level, open_nodes, splits)
        if not len(splits.sizes):
            return parts.tree()
        level = engine.advance(splits)
        depth += 1
        if progress is not None:
            progress(parts.n_nodes + len(level))


def recount(
    engine: Engine, columns: Sequence[Column], tree: Tree, new_values: bool
) -> tuple[Tree, Ints]:
    """Count the rows of an engine down the splits of a tree.

    With ``new_values`` a value that has rows where it had none before gets a leaf of
    its own. Returns the tree and where its nodes come from; -1 for such leaves.
    """
    level = engine.totals()
    parts = _Parts(len(level))
    nodes = np.zeros(1, dtype=np.intp)
    origins = [nodes]
    while True:
        open_nodes = np.flatnonzero((nodes >= 0) & (tree.n_children[nodes] > 0))
        engine.retain(open_nodes)
        if not len(open_nodes):
            parts.add(level, open_nodes, None)
            return parts.tree(), np.concatenate(origins)
        splits, nodes = prescribed_splits(
            engine, columns, tree, nodes[open_nodes], new_values
        )
        parts.add(level, open_nodes, splits)
        level = engine.advance(splits)
        origins.append(nodes)


def masses_of(root: Level, engine: Engine, recipe: Recipe) -> Masses64:
    """Return the masses that suit the rows of an engine."""
    if recipe.predicts_numbers:
        return Moments64(root.weights[0], float(root.cases[0]))
    return Masses64(float(root.weights.sum()), engine.whole)


class _Parts:
    """The arrays of the tree, level by level."""

    def __init__(self, n_roots: int) -> None:
        self.n_nodes = 0
        self._levels: list[dict[str, NDArray[Any]]] = []
        # Nothing leads to the root; the codes of a level come with its parents.
        self._n_codes = np.zeros(n_roots, dtype=np.intp)
        self._codes = np.empty(0, dtype=np.intp)
        #: By the first node of a level.
        self._surrogates: dict[int, Surrogates] = {}

    def add(self, level: Level, open_nodes: Ints, splits: Splits | None) -> None:
        """Record a level, and the codes that lead to the next one."""
        n = len(level)
        part = {
            "column": np.full(n, -1, dtype=np.intp),
            "cut": np.full(n, np.nan),
            "n_children": np.zeros(n, dtype=np.intp),
            "missing_to": np.full(n, STOP, dtype=np.intp),
            "unseen_to": np.full(n, STOP, dtype=np.intp),
            "n_codes": self._n_codes,
            "codes": self._codes,
            "weights": level.weights,
            "cases": level.cases,
        }
        if splits is not None:
            part["column"][open_nodes] = splits.column
            part["cut"][open_nodes] = splits.cut
            part["n_children"][open_nodes] = splits.n_branches
            part["missing_to"][open_nodes] = splits.missing_to
            part["unseen_to"][open_nodes] = splits.unseen_to
            self._n_codes = splits.n_codes
            self._codes = splits.codes
        self._levels.append(part)
        if splits is not None and splits.surrogates is not None:
            among = np.full(n, -1, dtype=np.intp)
            among[open_nodes] = np.arange(len(open_nodes))
            self._surrogates[self.n_nodes] = splits.surrogates.take(among)
        self.n_nodes += n

    def tree(self) -> Tree:
        """Put the levels together."""
        tree = Tree(
            **{
                name: np.concatenate([part[name] for part in self._levels])
                for name in self._levels[0]
            }
        )
        if not self._surrogates:
            return tree
        return tree.with_surrogates(Surrogates.joined(self._surrogates, self.n_nodes))
