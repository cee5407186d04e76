"""Training rows passed down a finished tree, with the search repeated at its nodes.

The search is the one that grows trees; nothing here scores anything. The rows go
down the tree's own branches, so a node that pruning has moved, or a user has made,
is searched with the cases that it has now.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Ints
from branchwise.data.bins import Edges
from branchwise.engines.memory import Training
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.errors import DataError
from branchwise.grow.choose import Verdicts, carried_out, stops, verdicts
from branchwise.grow.grow import cases_of, impurity_sums_of, weight_of
from branchwise.grow.protocol import Level
from branchwise.grow.recount import prescribed_splits
from branchwise.grow.search import Search
from branchwise.recipe import Recipe
from branchwise.threads import cached_property
from branchwise.train.train import between_bins, in_bins
from branchwise.tree.splits import Splits
from branchwise.tree.tree import Tree

#: Weights this close, relative to the larger, are equal.
_SAME_WEIGHT = 1e-9


@dataclass(frozen=True)
class Rows:
    """The rows of a tree, ready to be counted down, and the tree in their terms."""

    engine: MemoryEngine
    #: How much the engine's unit of weight is.
    unit: float
    edges: Edges
    #: The tree of the model, with thresholds of binned columns as numbers of bins.
    tree: Tree

    @classmethod
    def of(cls, training: Training, tree: Tree, recipe: Recipe) -> Rows:
        """Make encoded rows ready as growing does."""
        grid = training.grid(recipe)
        training, edges = in_bins(training, grid, recipe)
        return cls(training.engine(grid), grid.unit, edges, between_bins(tree, edges))


@dataclass(frozen=True)
class Visit:
    """Nodes of one level, and what the search says of them, row by row.

    ``splits`` is what it would do with those that may be split, ``unit`` the unit of
    weights.
    """

    nodes: Ints
    level: Level
    stop: Ints
    search: Search
    found: Verdicts
    splits: Splits
    unit: float

    @property
    def weight_in_leaf(self) -> float:
        """The least weight of a branch, as the user's weights are."""
        return self.search.weight_in_leaf * self.unit

    @cached_property
    def _first(self) -> tuple[list[int], list[int]]:
        """The first branch of each node, and the first code of each branch."""
        branch = np.concatenate([[0], np.cumsum(self.splits.n_branches)])
        code = np.concatenate([[0], np.cumsum(self.splits.n_codes)])
        return branch.tolist(), code.tolist()

    def codes_of_branches(self, at: int) -> list[list[int]]:
        """Return the codes that lead down each branch of the split of a row."""
        branch, code = self._first
        return [
            self.splits.codes[code[b] : code[b + 1]].tolist()
            for b in range(branch[at], branch[at + 1])
        ]


def visits(
    rows: Rows, training: Training, recipe: Recipe, wanted: NDArray[np.bool_]
) -> Iterator[Visit]:
    """Walk the rows to the wanted nodes, and yield these level by level."""
    tree, engine = rows.tree, rows.engine
    on_way = _on_the_way(tree, wanted)
    # How many nodes before each are on the path: more than none among its children?
    upto = np.concatenate([[0], np.cumsum(on_way)])
    level = engine.totals()
    n_cases = cases_of(level, recipe)
    impurity_sums_at = impurity_sums_of(level, engine, recipe)
    weight = weight_of(level, impurity_sums_at)
    nodes = np.zeros(1, dtype=np.intp)
    depth = 0
    while True:
        _check_other_rows(level, tree, nodes, rows)
        kept = np.flatnonzero(on_way[nodes] & (level.cases > 0))
        engine.retain(kept)
        nodes = nodes[kept]
        level = Level(level.weights[kept], level.cases[kept])
        impurity_sums = impurity_sums_at(level)
        if wanted[nodes].any():
            stop = stops(level, depth, recipe, n_cases, impurity_sums)
            columns = training.columns
            search = Search(
                engine, columns, level, recipe, impurity_sums, n_cases, weight
            )
            found = verdicts(search)
            splits = carried_out(search, found)
            yield Visit(nodes, level, stop, search, found, splits, rows.unit)
        first = tree.first_child[nodes]
        open_nodes = np.flatnonzero(upto[first + tree.n_children[nodes]] > upto[first])
        engine.retain(open_nodes)
        if not len(open_nodes):
            return
        splits, nodes = prescribed_splits(
            engine, training.columns, tree, nodes[open_nodes], new_values=False
        )
        level = engine.advance(splits)
        depth += 1


def _on_the_way(tree: Tree, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which nodes are wanted or lead to a wanted one."""
    marked = wanted.copy()
    front = np.flatnonzero(wanted)
    while len(front):
        above = np.unique(tree.parent[front])
        front = above[(above >= 0) & ~marked[above]]
        marked[front] = True
    return marked


def _check_other_rows(level: Level, tree: Tree, nodes: Ints, rows: Rows) -> None:
    scale = rows.engine.scale
    counted = level.weights if scale is None else level.weights[:, :1]
    wanted = tree.weights[nodes]
    same = np.allclose(counted * rows.unit, wanted, rtol=_SAME_WEIGHT, atol=0.0)
    if same and tree.mean is not None and scale is not None:
        off = np.abs(scale.means(level.weights) - tree.mean[nodes])
        close = math.ldexp(_SAME_WEIGHT, scale.unit)
        same = bool((off[counted[:, 0] > 0] <= close).all())
    if not same:
        raise DataError(
            "X and y must be the rows that the tree was grown from, with their "
            "sample_weight (class weights and priors multiply it), for the worked "
            "solution shows what decided. These rows give other counts; leave out rows "
            "that were set aside for pruning."
        )
