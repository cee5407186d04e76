"""Growing the trees of a forest, each from its own sample of the rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from branchwise.data.arrays import Ints
from branchwise.data.bins import Edges
from branchwise.data.weights import WeightGrid, unit_grid
from branchwise.engines.base import Plan
from branchwise.engines.chunk import Chunk
from branchwise.engines.level_engine import RemoteRows
from branchwise.engines.memory import Training
from branchwise.engines.subsamples import MOST_SAMPLES, RowSampler, sampled_rows
from branchwise.ensemble.sampling import (
    Samples,
    Subsamples,
    sample_key,
    times_drawn,
)
from branchwise.errors import ParameterError
from branchwise.grow.draws import ColumnDraws, Keys, column_order, tree_key
from branchwise.grow.grow import Progress
from branchwise.grow.native_kernel import BitForest, holds
from branchwise.native import KeptMemory
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from branchwise.threads import as_done
from branchwise.train.train import (
    completed,
    counts_times,
    finished,
    grown_from_bins,
    in_bins,
    is_native,
    is_pruned,
)
from branchwise.tree.tree import Tree

#: Called with the number of trees so far.
TreeProgress = Callable[[int], None]
#: Grows the trees with these numbers, each from its own sample.
GrowTrees = Callable[[Samples, Sequence[int], TreeProgress | None], list[Tree]]


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
    native = is_native(training, recipe.tree)
    binned, edges = in_bins(
        training, training.grid(recipe.tree), recipe.tree, native, threads
    )
    weighs = recipe.balanced_subsample
    with_times = not weighs and counts_times(training, recipe.tree)
    bits = _bits_of(samples, binned, edges) if native else None
    memory, stopping = KeptMemory(), threading.Event()

    def go_on(_: int) -> None:
        if stopping.is_set():
            raise _StoppedError

    def grow_one(tree: int) -> Tree:
        watch = None if threads == 1 else go_on
        with memory.in_use():
            if bits is not None:
                return bits.tree(tree, watch)
            rows, cells = training, binned
            if not samples.takes_all or not training.counted.all():
                some, times = (
                    samples.distinct_rows(tree)
                    if with_times
                    else (samples.rows(tree), None)
                )
                rows = training.take(some, times)
                cells = rows if binned is training else binned.take(some, times)
            weighed = samples.balanced(rows)
            cells = replace(cells, weights=weighed.weights, cache=None)
            return _grown(recipe, tree, weighed, cells, edges, watch)

    trees: list[Tree | None] = [None] * len(numbers)
    jobs = as_done(grow_one, numbers, threads, stopping.set)
    for done, (at, tree) in enumerate(jobs):
        trees[at] = tree
        if progress is not None:
            progress(done + 1)
    return [tree for tree in trees if tree is not None]


def _grown(
    recipe: EnsembleRecipe,
    tree: int,
    rows: Training,
    binned: Training,
    edges: Edges,
    watch: Progress | None,
) -> Tree:
    """Grow one tree from its sample, with its own draws of columns."""
    drawn, order = _draws_of(recipe, tree, len(rows.columns))
    grown = grown_from_bins(
        rows.in_order(order),
        binned.in_order(order),
        {at: edges[old] for at, old in enumerate(order.tolist()) if old in edges},
        recipe.tree,
        drawn,
        watch,
    )
    return grown.with_columns(order)


def _draws_of(
    recipe: EnsembleRecipe, tree: int, n_columns: int
) -> tuple[ColumnDraws | None, Ints]:
    """Return how columns are drawn in a tree, if they are, and their order there."""
    key = tree_key(recipe.random_state, tree)
    max_features = recipe.columns_drawn(n_columns)
    drawn = None
    if max_features < n_columns or recipe.splitter == "random":
        drawn = ColumnDraws(key, max_features, recipe.splitter == "random")
    # Of equal splits the first column wins. That must not be the same column in all
    # trees: in small nodes many splits are equal.
    order = np.arange(n_columns)
    if recipe.max_features is not None:
        order = column_order(key, n_columns)
    return drawn, order


@dataclass(frozen=True)
class _SharedBits:
    """Rows of a table as bits; what a tree has drawn of them is never copied out."""

    samples: Samples
    grid: WeightGrid
    forest: BitForest

    def tree(self, tree: int, watch: Progress | None) -> Tree:
        """Grow one tree from its sample."""
        training, recipe = self.samples.training, self.samples.recipe
        drawn, order = _draws_of(recipe, tree, len(training.columns))
        key = int(sample_key(recipe, tree)[0])
        draw_key = 0 if drawn is None else drawn.key
        grown = self.forest.tree(order, key, draw_key, watch)
        grown = finished(grown, None, self.grid)
        return completed(grown, {}, training, self.grid, recipe.tree)


def _bits_of(samples: Samples, binned: Training, edges: Edges) -> _SharedBits | None:
    """Return the rows as bits, if all columns are categories and no row has a weight.

    Trees that are pruned, and classes that are weighed by sample, need rows.
    """
    recipe, training = samples.recipe, samples.training
    if (
        not recipe.bootstrap
        or recipe.balanced_subsample
        or not training.n_classes
        or training.weights is not None
        or edges
        or is_pruned(recipe.tree)
        or not holds(training.columns, training.n_classes, samples.n_drawn)
    ):
        return None
    grid = unit_grid(samples.n_drawn, training.grid(recipe.tree).fractions)
    drawn, _ = _draws_of(recipe, 0, len(training.columns))
    labels = training.target.astype(np.intp)
    table = binned.columns, binned.data, labels, training.n_classes
    forest = BitForest.of(*table, samples.order, grid, recipe.tree, drawn)
    return None if forest is None else _SharedBits(samples, grid, forest)


def grow_share(
    samples: Samples, numbers: Sequence[int], recipe: EnsembleRecipe
) -> list[Tree]:
    """Grow some of the trees, on a worker."""
    return grow_trees(samples.for_recipe(recipe), numbers)


def grow_on_workers(
    rows: RemoteRows,
    samples: Samples,
    numbers: Sequence[int],
    progress: TreeProgress | None = None,
) -> list[Tree]:
    """Grow the trees with these numbers on workers, which have the same samples."""
    trees: dict[int, Tree] = {}
    if numbers:
        work = partial(grow_share, recipe=samples.recipe)
        for own, grown in rows.shares(work, numbers):
            trees.update(zip(own, grown, strict=True))
            if progress is not None:
                progress(len(trees))
    return [trees[number] for number in numbers]


def grow_from_files(
    sampler: RowSampler,
    plan: Plan,
    samples: Subsamples,
    numbers: Sequence[int],
    threads: int = 1,
    progress: TreeProgress | None = None,
) -> list[Tree]:
    """Grow the trees with these numbers, each from its own sample of files."""
    recipe = samples.recipe
    trees: list[Tree] = []

    def draw(keys: Keys, tree: int) -> Ints:
        return times_drawn(keys, recipe, tree, samples.rate)

    for first in range(0, len(numbers), MOST_SAMPLES):
        some = numbers[first : first + MOST_SAMPLES]
        collected = sampler.collected(some, draw)
        before = len(trees)
        found = _grown_from_files(plan, samples, some, collected, threads)
        grown: dict[int, Tree] = {}
        for at, tree in found:
            grown[at] = tree
            if progress is not None:
                progress(before + len(grown))
        trees += [grown[at] for at in range(len(some))]
    return trees


def _grown_from_files(
    plan: Plan,
    samples: Subsamples,
    numbers: Sequence[int],
    collected: Mapping[int, Callable[[], tuple[Chunk, Keys]]],
    threads: int,
) -> Iterator[tuple[int, Tree]]:
    """Yield trees with their positions among the numbers, as they are grown."""
    recipe, memory, stopping = samples.recipe, KeptMemory(), threading.Event()

    def go_on(_: int) -> None:
        if stopping.is_set():
            raise _StoppedError

    def grow_one(tree: int) -> Tree:
        chunk, _ = collected[tree]()
        if not chunk.n_rows:
            raise ParameterError(
                f"max_samples must be larger: the sample of tree {tree} is empty. Got "
                f"{recipe.max_samples!r}."
            )
        rows, binned = sampled_rows(chunk, plan)
        rows = samples.balanced(rows)
        binned = replace(binned, weights=rows.weights)
        watch = None if threads == 1 else go_on
        with memory.in_use():
            return _grown(recipe, tree, rows, binned, plan.edges, watch)

    return as_done(grow_one, numbers, threads, stopping.set)
