"""Growing the trees of a forest, each from its own sample of the rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from branchwise.ensemble.sampling import Samples
from branchwise.grow.draws import ColumnDraws, tree_key
from branchwise.threads import as_done
from branchwise.train.train import (
    grown_from_bins,
    in_bins,
    is_native,
)
from branchwise.tree.tree import Tree

#: Called with the number of trees so far.
TreeProgress = Callable[[int], None]


class _StoppedError(Exception):
    """Raised in threads whose trees are not needed any more."""


def grow_trees(
    samples: Samples,
    numbers: Sequence[int],
    threads: int = 1,
    progress: TreeProgress | None = None,
) -> list[Tree]:
    """Grow the trees with these numbers, each from its own sample."""
    training, recipe = samples.training, samples.recipe
    n_columns = len(training.columns)
    max_features = min(recipe.columns_drawn(n_columns), n_columns)
    random_splits = recipe.splitter == "random"
    native = is_native(training, recipe.tree)
    binned, edges = in_bins(
        training, training.grid(recipe.tree), recipe.tree, native, threads
    )
    stopping = threading.Event()

    def go_on(_: int) -> None:
        if stopping.is_set():
            raise _StoppedError

    def grow_one(tree: int) -> Tree:
        drawn = None
        if max_features < n_columns or random_splits:
            key = tree_key(recipe.random_state, tree)
            drawn = ColumnDraws(key, max_features, random_splits)
        rows, cells = training, binned
        if not samples.takes_all or not training.counted.all():
            chosen = samples.rows(tree)
            rows = training.take(chosen)
            cells = rows if binned is training else binned.take(chosen)
        weighed = samples.balanced(rows)
        cells = replace(cells, weights=weighed.weights, cache=None)
        watch = None if threads == 1 else go_on
        return grown_from_bins(weighed, cells, edges, recipe.tree, drawn, watch)

    trees: list[Tree | None] = [None] * len(numbers)
    jobs = as_done(grow_one, numbers, threads, stopping.set)
    for done, (at, tree) in enumerate(jobs):
        trees[at] = tree
        if progress is not None:
            progress(done + 1)
    return [tree for tree in trees if tree is not None]
