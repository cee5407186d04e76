"""Training rows counted by a recipe: the cases of nodes, and trees grown from them.

Trees are counted in the units of the grid of weights (``data/weights.py``); regression
trees hold moments. :meth:`RowCounts.finished` turns them into trees of a model. The
cases of a node are found from those of its parent and kept, so that an edit counts the
rows of its node only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.bins import Edges, numbers_of_thresholds
from branchwise.data.encode import check_missing
from branchwise.data.table_schema import Column
from branchwise.data.target import Classes, Quantities, check_rates
from branchwise.engines.memory import Training, with_number_kinds
from branchwise.engines.memory_engine import Cases, MemoryEngine, countable_column
from branchwise.grow.criteria import ImpuritySums64
from branchwise.grow.grow import grow, recount, references
from branchwise.grow.protocol import Level, Levels, prescribed_splits
from branchwise.prune.error_based import Recount
from branchwise.recipe import Recipe, unpruned
from branchwise.studio.nodes.node_paths import branches_of, number_of
from branchwise.threads import cached_property, n_threads
from branchwise.train.cross_validation import settled
from branchwise.train.engine_growth import at_table_values
from branchwise.train.post_pruning import pruned, trimmed
from branchwise.train.train import (
    finished,
    in_bins,
    in_numbers,
    is_native,
    is_pruned,
    native_holds,
    natively,
    with_class_cases,
    with_thresholds,
)
from branchwise.tree.apply import with_costs, with_predictions
from branchwise.tree.tree import Tree

#: The cases and the weight that limits refer to, and impurities of levels.
References = tuple[float, float, Callable[[Level], ImpuritySums64]]
#: Cases are kept up to this many times the bytes of those of the root.
_KEPT = 16
#: Cells of a node that are searched in two threads, for classes and for numbers, whose
#: moments take longer. With fewer, what Python does for each column is as much as what
#: the kernel does, and threads wait for each other.
_WORTH_SHARING = 1 << 23, 1 << 20


class RowCounts:
    """Encoded rows, counted as a recipe demands."""

    def __init__(self, rows: Training, recipe: Recipe, threads: int = 1) -> None:
        self.grid = rows.grid(recipe)
        columns = rows.columns
        if recipe.threshold == "readable":
            columns = with_number_kinds(columns, rows.data, self.grid)
        self.rows = replace(rows, columns=columns, cache=None)
        self.recipe = recipe
        self.threads = threads
        if recipe.missing == "error":
            check_missing(enumerate(columns), rows.data)
        if recipe.criterion == "poisson":
            counted = rows.target[rows.counted]
            check_rates(float(counted.min()), float(counted.max()))
        self._kept: OrderedDict[tuple[bytes, int], Cases] = OrderedDict()
        self._bytes = 0
        self._references: dict[Any, References] = {}

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, with what a recipe needs to know of their numbers."""
        return self.rows.columns

    @cached_property
    def engine(self) -> MemoryEngine:
        """Counts and moves the rows."""
        return self.rows.engine(self.grid)

    @cached_property
    def labels(self) -> NDArray[np.uint32]:
        """The codes of the classes, as the compiled kernel counts them."""
        if not self.rows.n_classes:
            return np.zeros(len(self.rows.target), dtype=np.uint32)
        return self.rows.target.astype(np.uint32)

    def search_threads(self, cases: Cases) -> int:
        """Return the threads to search for candidates in: two for many rows."""
        least = _WORTH_SHARING[self.recipe.is_regression]
        if len(cases.row) * len(self.columns) < least:
            return 1
        return max(self.threads, min(2, n_threads(-1)))

    def references(self, recipe: Recipe) -> References:
        """Return what limits of a recipe refer to, and a function of impurities."""
        key = recipe.weights_are_cases, recipe.criterion
        if key not in self._references:
            root = self.start()
            level = Level(root.weights, root.cases)
            given = level, self.engine, recipe, self.grid
            self._references[key] = references(*given)
        return self._references[key]

    @cached_property
    def _binned(self) -> tuple[Training, Edges]:
        return in_bins(self.rows, self.grid, self.recipe, threads=self.threads)

    @property
    def edges(self) -> Edges:
        """The edges of bins, where the recipe has ``max_bins``."""
        return self._binned[1]

    @property
    def searched_columns(self) -> tuple[Column, ...]:
        """The columns as splits are searched for in them."""
        return self._binned[0].columns

    @cached_property
    def search_engine(self) -> MemoryEngine:
        """Counts rows by bin, if there are any, and moves them by number."""
        if not self.edges:
            return self.engine
        binned = self._binned[0]
        counted = None if self.grid.weights is None else self.grid.weights > 0
        countable = [
            countable_column(column, cells, counted)
            for column, cells in zip(binned.columns, binned.data.data, strict=True)
        ]
        target = self.rows.prepared(self.grid)
        return MemoryEngine(self.columns, self.rows.data, target, self.grid, countable)

    def start(self) -> Tree:
        """Return the tree of one leaf."""
        pieces = Levels(1)
        pieces.add(self.engine.totals(), np.empty(0, dtype=np.intp), None)
        return pieces.tree()

    def cases(self, tree: Tree, path: str) -> Cases:
        """Return the cases of a node."""
        keys = _keys(tree, path)
        known = len(keys)
        while known and keys[known - 1] not in self._kept:
            known -= 1
        if not known:
            self._keep(keys[0], self.engine.root)
            known = 1
        taken = branches_of(path)
        node = number_of(tree, "/" + "/".join(map(str, taken[: known - 1])))
        for depth in range(known, len(keys)):
            engine = self.engine.below(self._found(keys[depth - 1]))
            splits, _ = prescribed_splits(
                engine, self.columns, tree, np.array([node]), new_values=False
            )
            engine.advance(splits)
            for branch in range(int(tree.n_children[node])):
                self._keep((keys[depth][0], branch), engine.cases(branch))
            node = int(tree.first_child[node]) + taken[depth - 1]
        return self._found(keys[-1])

    def _keep(self, key: tuple[bytes, int], cases: Cases) -> None:
        if key not in self._kept:
            self._kept[key] = cases
            self._bytes += cases.nbytes

    def _found(self, key: tuple[bytes, int]) -> Cases:
        """Return kept cases, and forget those that were used long ago."""
        cases = self._kept[key]
        self._kept.move_to_end(key)
        most = _KEPT * self.engine.root.nbytes
        while self._bytes > most and next(iter(self._kept)) != key:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return cases

    def counted(self, tree: Tree, cases: Cases) -> Tree:
        """Count cases down the splits of a tree, whose root has them."""
        return recount(self.engine.below(cases), self.columns, tree, False)[0]

    def finished(self, tree: Tree, recipe: Recipe) -> Tree:
        """Return a counted tree as that of a model, with all that it predicts."""
        tree = finished(tree, self.engine.scale, self.grid)
        tree = with_predictions(tree, recipe)
        return with_class_cases(tree, self.rows, self.grid)

    def grown(
        self, cases: Cases, recipe: Recipe, depth: int, levels: int | None
    ) -> Tree:
        """Grow from the cases of a node at a depth, and prune.

        With ``levels`` as many are grown, and nothing is pruned. Limits refer to all
        rows.
        """
        limit = None if recipe.max_depth is None else recipe.max_depth - depth
        if levels is not None:
            limit = levels if limit is None else min(levels, limit)
            recipe = replace(unpruned(recipe), max_leaf_nodes=None)
        recipe = replace(recipe, max_depth=limit)
        tree = self._unpruned(cases, recipe)
        if not is_pruned(recipe):
            return tree
        small = self._pruned(tree, cases, recipe)
        if small.is_regression:
            return self.counted(small, cases)
        # Back in the units of the grid, which is a power of two.
        weights = small.weights / self.grid.unit
        return replace(small, weights=weights, prediction=None, class_cases=None)

    def _unpruned(self, cases: Cases, recipe: Recipe) -> Tree:
        at_values = recipe.threshold == "value"
        # Thresholds at values are at those of the whole table.
        midway = replace(recipe, threshold="midpoint") if at_values else recipe
        tree = None
        own = None if cases.case is not None else _taken(self._native_rows, cases)
        if own is not None and is_native(own, recipe):
            grid = replace(self.grid, weights=cases.weight)
            given = own.columns, own.data, self._target(cases.row), grid, midway
            tree = natively(*given, self.threads)
        if tree is None:
            engine = self._reference.below(cases)
            tree = grow(engine, self.searched_columns, midway, whole=self.grid)
        if at_values:
            tree = with_thresholds(tree, self._values, at_table_values)
        return in_numbers(tree, self.edges) if self.edges else tree

    @cached_property
    def _native_rows(self) -> Training:
        """The rows as the compiled kernel takes them, bins as codes."""
        if self.recipe.max_bins is None or not is_native(self.rows, self.recipe):
            return self.rows
        return in_bins(self.rows, self.grid, self.recipe, True, self.threads)[0]

    @cached_property
    def _reference(self) -> MemoryEngine:
        """The engine of the reference, which moves rows by bin."""
        return self._binned[0].engine(self.grid) if self.edges else self.engine

    @cached_property
    def _prepared(self) -> Classes | Quantities:
        return self.rows.prepared(self.grid)

    def _target(self, row: Ints) -> Classes | Quantities:
        target = self._prepared
        if isinstance(target, Classes):
            return Classes(target.labels[row], target.n_classes)
        return Quantities(target.values[row], target.scale)

    @cached_property
    def _values(self) -> Edges:
        """The distinct numbers of numeric columns; positions of bins."""
        return {
            index: self.search_engine.values(index)
            for index, column in enumerate(self.columns)
            if column.is_numeric
        }

    def _pruned(self, tree: Tree, cases: Cases, recipe: Recipe) -> Tree:
        grid = self.grid
        tree = with_costs(finished(tree, self.engine.scale, grid), recipe)
        if recipe.pruning == "cost-complexity":
            recipe = replace(recipe, ccp_alpha=self._alpha(tree, recipe))
        if cases.case is None and native_holds(self.rows):
            rows = _taken(self.rows, cases)
            own = replace(grid, weights=cases.weight)
            return pruned(tree, rows, own, recipe, None, is_native=True)
        return trimmed(tree, recipe, self._recounter(cases, recipe))

    def _recounter(self, cases: Cases, recipe: Recipe) -> Recount:
        """Return a function that counts the cases down other trees."""
        new_values = recipe.branching == "values"

        def count(tree: Tree) -> tuple[Tree, Ints]:
            engine = self.engine.below(cases)
            again, origin = recount(engine, self.columns, tree, new_values)
            return with_costs(finished(again, None, self.grid), recipe), origin

        return count

    def _alpha(self, tree: Tree, recipe: Recipe) -> float:
        """Return ``ccp_alpha``, which refers to all rows, for the rows of a node."""
        own = float(tree.weights[0].sum())
        return float(recipe.ccp_alpha) * (self.grid.total * self.grid.unit / own)

    def settled(self, recipe: Recipe) -> Recipe:
        """Return a recipe with what cross-validation chooses by all rows."""
        return settled(self.rows, recipe, self.threads)

    def thresholds_in_numbers(self, threshold: Floats, column: Ints) -> Floats:
        """Convert thresholds between bins into thresholds between numbers."""
        return numbers_of_thresholds(threshold, column, self.edges)


def _taken(rows: Training, cases: Cases) -> Training:
    """Return the rows of cases that are not fractions."""
    return rows if len(cases.row) == rows.data.n_rows else rows.take(cases.row)


def _keys(tree: Tree, path: str) -> list[tuple[bytes, int]]:
    """Return what the cases of a node, and of those above it, depend on.

    That is the splits above them, not where in which tree these are.
    """
    keys, node = [(b"", 0)], 0
    for branch in branches_of(path):
        above = f"{keys[-1]} {_split_key(tree, node)}"
        keys.append((blake2b(above.encode(), digest_size=16).digest(), branch))
        node = int(tree.first_child[node]) + branch
    return keys


def _split_key(tree: Tree, node: int) -> tuple[Any, ...]:
    children = tree.children(node)
    codes = tuple(tuple(tree.codes_of(child)) for child in children)
    surrogates: list[NDArray[Any]] = []
    if tree.surrogates is not None:
        own = tree.surrogates.take(np.array([node]))
        split = own.splits
        surrogates = [split.column, split.threshold, split.n_codes, split.codes]
    return (
        int(tree.column[node]),
        tree.threshold[node].tobytes(),
        int(tree.missing_to[node]),
        int(tree.unseen_to[node]),
        codes,
        tuple(array.tobytes() for array in surrogates),
    )
