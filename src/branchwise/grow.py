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

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from branchwise.agreement import with_surrogates
from branchwise.counts import Floats, Ints
from branchwise.criteria import Masses64
from branchwise.deciding import Stop, best_splits, stops
from branchwise.engines.base import Engine
from branchwise.grafts import Grafts
from branchwise.levels import Levels
from branchwise.moments import Moments64
from branchwise.recipes import Recipe
from branchwise.replay import finished_splits, prescribed_splits
from branchwise.search import Level
from branchwise.splits import Splits
from branchwise.table.schema import Column
from branchwise.tree import Tree

#: Told now and then how many nodes the tree has so far.
Progress = Callable[[int], None]
#: Given the cases of the open nodes and their depth, may grow what is below some of
#: them all at once: open nodes and their trees.
Finish = Callable[[Floats, int], Iterable[tuple[int, Tree]]]


def grow(
    engine: Engine,
    columns: Sequence[Column],
    recipe: Recipe,
    progress: Progress | None = None,
    finish: Finish | None = None,
) -> Tree:
    """Grow a tree from the rows of an engine; some nodes may be finished elsewhere."""
    with Grafts() as grafts:
        tree = _by_levels(engine, columns, recipe, progress, finish, grafts)
        return grafts.onto(tree)


def _by_levels(
    engine: Engine,
    columns: Sequence[Column],
    recipe: Recipe,
    progress: Progress | None,
    finish: Finish | None,
    grafts: Grafts,
) -> Tree:
    """Grow level by level; the places of what is finished elsewhere are leaves."""
    level = engine.totals()
    n_cases = cases_of(level, recipe)
    masses_at = masses_of(level, engine, recipe)
    parts = Levels(len(level))
    depth = 0
    while True:
        masses = masses_at(level)
        stop = stops(level, depth, recipe, n_cases, masses)
        open_nodes = np.flatnonzero(stop == Stop.OPEN)
        engine.retain(open_nodes)
        if finish is not None:
            left = np.ones(len(open_nodes), dtype=bool)
            for node, tree in finish(level.cases[open_nodes], depth):
                grafts.add(parts.n_nodes + int(open_nodes[node]), tree)
                left[node] = False
            engine.retain(np.flatnonzero(left))
            open_nodes = open_nodes[left]
        if not len(open_nodes):
            parts.add(level, open_nodes, None)
            break
        opened = Level(level.weights[open_nodes], level.cases[open_nodes])
        splits = best_splits(
            engine, columns, opened, recipe, masses.at(open_nodes), n_cases
        )
        if recipe.missing == "surrogate":
            splits = with_surrogates(splits, engine, columns, recipe.cut)
        parts.add(level, open_nodes, splits)
        if not len(splits.sizes):
            break
        level = engine.advance(splits)
        depth += 1
        if progress is not None:
            progress(parts.n_nodes + len(level) + grafts.n_nodes)
    return parts.tree()


def recount(
    engine: Engine, columns: Sequence[Column], tree: Tree, new_values: bool
) -> tuple[Tree, Ints]:
    """Count the rows of an engine down the splits of a tree.

    With ``new_values`` a value that has rows where it had none before gets a leaf of
    its own. Returns the tree and where its nodes come from; -1 for such leaves.
    """

    def splits_of(nodes: Ints) -> tuple[Splits, Ints]:
        return prescribed_splits(engine, columns, tree, nodes, new_values)

    return _counted_down(engine, tree, splits_of)


def count_down(engine: Engine, tree: Tree) -> Tree:
    """Count the rows of an engine down a tree that is finished, as it predicts."""
    return _counted_down(engine, tree, lambda nodes: finished_splits(tree, nodes))[0]


def _counted_down(
    engine: Engine, tree: Tree, splits_of: Callable[[Ints], tuple[Splits, Ints]]
) -> tuple[Tree, Ints]:
    """Count rows down splits, which also tell the nodes that their branches lead to."""
    level = engine.totals()
    parts = Levels(len(level))
    nodes = np.zeros(1, dtype=np.intp)
    origins = [nodes]
    while True:
        open_nodes = np.flatnonzero((nodes >= 0) & (tree.n_children[nodes] > 0))
        engine.retain(open_nodes)
        if not len(open_nodes):
            parts.add(level, open_nodes, None)
            return parts.tree(), np.concatenate(origins)
        splits, nodes = splits_of(nodes[open_nodes])
        parts.add(level, open_nodes, splits)
        level = engine.advance(splits)
        origins.append(nodes)


def cases_of(root: Level, recipe: Recipe) -> float:
    """Return how many cases there are that shares are taken of."""
    cases = root.weights if recipe.weights_are_cases else root.cases
    return float(cases.sum())


def masses_of(
    root: Level, engine: Engine, recipe: Recipe
) -> Callable[[Level], Masses64]:
    """Return what makes the masses of each level from the rows of an engine."""
    scale = engine.scale
    if scale is not None:
        poisson = recipe.criterion == "poisson"
        return lambda level: Moments64(scale, level.weights, poisson)
    masses = Masses64(float(root.weights.sum()), engine.whole)
    return lambda _: masses
