"""The level-wise loop that grows every tree, and recounting of finished trees.

Each level: close the nodes that need no split; get the counts from the engine; choose
splits from the counts alone; move the rows; the branches are the next level. A tree
that is grown below a single node in one go is attached afterwards (:class:`Grafts`).
The glossary is in ``docs/how_it_works.md``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, downcast
from branchwise.data.table_schema import Column
from branchwise.data.weights import WeightGrid
from branchwise.errors import DataError
from branchwise.grow.choose import Stop, carried_out, splits_by_rank, stops, verdicts
from branchwise.grow.criteria import ImpuritySums64
from branchwise.grow.moments import Moments64
from branchwise.grow.protocol import (
    BranchSource,
    Engine,
    Level,
    Levels,
    finished_splits,
    prescribed_splits,
)
from branchwise.grow.search import Search
from branchwise.grow.thresholds import with_surrogates
from branchwise.recipe import Recipe
from branchwise.tree.splits import Splits, Surrogates, ragged
from branchwise.tree.tree import ARRAYS, SURROGATE_ARRAYS, Tree

if TYPE_CHECKING:
    from branchwise.grow.draws import ColumnDraws

#: Bytes of each array of subtrees that are kept in memory.
_IN_MEMORY = 2**20
#: The arrays of the split of a node.
_SPLIT = ("column", "threshold", "n_children", "missing_to", "unseen_to")


class Grafts:
    """Subtrees to be attached to leaves of a tree that is still being grown."""

    def __init__(self) -> None:
        self.n_nodes = 0
        self._leaves: list[int] = []
        self._sizes: list[int] = []
        self._arrays: dict[str, _Waiting] = {}
        self._files = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def add(self, leaf: int, tree: Tree) -> None:
        """Store the subtree of a leaf."""
        if not self._arrays:
            specs = (*ARRAYS, *SURROGATE_ARRAYS)
            self._arrays = {spec.name: _Waiting(self._files) for spec in specs}
        self._leaves.append(leaf)
        self._sizes.append(len(tree))
        self.n_nodes += len(tree)
        for name, arrays in self._arrays.items():
            arrays.append(_array_of(tree, name))

    def onto(self, tree: Tree) -> Tree:
        """Attach all subtrees, and release them."""
        if not self._leaves:
            return tree
        leaves = np.array(self._leaves, dtype=np.intp)
        roots = np.cumsum([len(tree), *self._sizes])[:-1]
        n_children = self._joined("n_children", tree, leaves, roots)
        first = _first_children(n_children, tree, leaves, roots)
        order = _by_level(first, n_children)
        del first
        n_codes = self._joined("n_codes", tree, leaves, roots)
        taken = n_codes[order].astype(np.intp)
        first_code = (np.cumsum(n_codes, dtype=np.intp) - n_codes)[order]
        new: dict[str, Any] = {"n_codes": taken}
        new["n_children"] = n_children[order].astype(np.intp)
        codes = self._joined("codes", tree, leaves, roots)
        new["codes"] = codes[ragged(first_code, taken)].astype(np.intp)
        del first_code
        surrogates = Surrogates.of(
            *(
                self._joined(spec.name, tree, leaves, roots).astype(spec.dtype)
                for spec in SURROGATE_ARRAYS
            )
        )
        for name in list(self._arrays):
            joined = self._joined(name, tree, leaves, roots)
            new[name] = joined[order].astype(getattr(tree, name).dtype)
        source = np.arange(roots[-1] + self._sizes[-1])
        source[leaves] = roots
        return Tree(**new).with_surrogates(surrogates.take(source[order]))

    def _joined(self, name: str, tree: Tree, leaves: Ints, roots: Ints) -> NDArray[Any]:
        """Join the arrays of one name, and release them."""
        joined = self._arrays.pop(name).after(_array_of(tree, name))
        if name in _SPLIT:
            # A leaf gets the split of its subtree's root; no codes lead to that root.
            joined[leaves] = joined[roots]
        return joined


def _array_of(tree: Tree, name: str) -> NDArray[Any]:
    """Return an array of a tree; without surrogates, no node has any."""
    array: NDArray[Any] | None = getattr(tree, name)
    if array is not None:
        return array
    return np.zeros(len(tree) if name == "n_surrogates" else 0)


class _Waiting:
    """Arrays to be joined later: their bytes, types and lengths."""

    def __init__(self, files: ExitStack) -> None:
        self._file = files.enter_context(
            tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        )
        self._pieces: list[tuple[np.dtype[Any], int]] = []

    def append(self, array: NDArray[Any]) -> None:
        narrower = downcast(array)
        self._pieces.append((narrower.dtype, len(narrower)))
        try:
            self._file.write(narrower.tobytes())
        except OSError as error:
            raise DataError(
                "The tree is large, and the folder for temporary files has no space "
                f"for its pieces: {error.strerror}. Set TMPDIR to another folder, "
                "or grow a smaller tree (max_depth, min_samples_leaf)."
            ) from None

    def after(self, first: NDArray[Any]) -> NDArray[Any]:
        """Return one array joined with the stored ones, and release these."""
        width = first.shape[1:]
        narrower = downcast(first)
        kind = np.result_type(narrower.dtype, *{dtype for dtype, _ in self._pieces})
        total = len(first) + sum(n for _, n in self._pieces)
        joined = np.empty((total, *width), dtype=kind)
        joined[: len(first)] = narrower
        at = len(first)
        with self._file as file:
            file.seek(0)
            for dtype, n in self._pieces:
                data = file.read(n * dtype.itemsize * int(np.prod(width)))
                joined[at : at + n] = np.frombuffer(data, dtype).reshape(n, *width)
                at += n
        return joined


def _first_children(n_children: Ints, tree: Tree, leaves: Ints, roots: Ints) -> Ints:
    """Return the first child of every node; leaves have those of their trees' roots."""
    own = n_children.astype(np.intp)
    own[leaves] = tree.n_children[leaves]
    first = np.empty(len(own), dtype=np.intp)
    bounds = [0, *roots.tolist(), len(own)]
    for begin, end in pairwise(bounds):
        within = own[begin:end]
        first[begin:end] = np.cumsum(within) - within + 1 + begin
    first[leaves] = first[roots]
    return first


def _by_level(first_child: Ints, n_children: Ints) -> Ints:
    """Return the nodes below the first one level by level, itself included."""
    level = np.zeros(1, dtype=np.intp)
    levels = []
    while len(level):
        levels.append(level)
        level = ragged(first_child[level], n_children[level].astype(np.intp))
    narrower = np.min_scalar_type(len(n_children))
    return np.concatenate(levels, dtype=narrower, casting="unsafe")


#: Called from time to time with the number of nodes of the tree so far.
Progress = Callable[[int], None]
#: Called with the cases of the open nodes and their depth; may grow the subtrees of
#: some of them at once, and returns these open nodes and their trees.
Finish = Callable[[Floats, int], Iterable[tuple[int, Tree]]]


def grow(
    engine: Engine,
    columns: Sequence[Column],
    recipe: Recipe,
    progress: Progress | None = None,
    finish: Finish | None = None,
    drawn: ColumnDraws | None = None,
    whole: WeightGrid | None = None,
) -> Tree:
    """Grow a tree from the rows of an engine; ``finish`` may grow some subtrees.

    With ``drawn`` only random columns may split a node. Limits refer to the rows, or
    to all cases of ``whole`` where these are the rows of a single node.
    """
    if drawn is not None:
        drawn.check(recipe.branching)
    with Grafts() as grafts:
        tree = _by_levels(
            engine, columns, recipe, progress, finish, drawn, whole, grafts
        )
        return grafts.onto(tree)


def _by_levels(
    engine: Engine,
    columns: Sequence[Column],
    recipe: Recipe,
    progress: Progress | None,
    finish: Finish | None,
    drawn: ColumnDraws | None,
    whole: WeightGrid | None,
    grafts: Grafts,
) -> Tree:
    """Grow level by level; nodes whose subtrees are grown separately are leaves."""
    level = engine.totals()
    n_cases, weight, impurity_sums_at = references(level, engine, recipe, whole)
    pieces = Levels(len(level))
    source, searched = searched_in(engine, columns, recipe)
    keys, batches = None if drawn is None else drawn.root_keys, None
    depth = 0
    while True:
        impurity_sums = impurity_sums_at(level)
        stop = stops(level, depth, recipe, n_cases, impurity_sums)
        open_nodes = np.flatnonzero(stop == Stop.OPEN)
        engine.retain(open_nodes)
        if finish is not None:
            left = np.ones(len(open_nodes), dtype=bool)
            for node, tree in finish(level.cases[open_nodes], depth):
                grafts.add(pieces.n_nodes + int(open_nodes[node]), tree)
                left[node] = False
            engine.retain(np.flatnonzero(left))
            open_nodes = open_nodes[left]
        if not len(open_nodes):
            pieces.add(level, open_nodes, None)
            break
        opened = Level(level.weights[open_nodes], level.cases[open_nodes])
        impurities = impurity_sums.at(open_nodes)
        search = Search(source, searched, opened, recipe, impurities, n_cases, weight)
        if drawn is not None and keys is not None:
            keys = keys[open_nodes]
            batches = drawn.batches(keys, len(columns))
            if drawn.random_splits:
                search = search.at_random(keys)
        splits = carried_out(search, verdicts(search, batches))
        splits = completed(splits, source, columns, searched, recipe)
        pieces.add(level, open_nodes, splits)
        if not len(splits.sizes):
            break
        level = engine.advance(splits)
        if keys is not None:
            from branchwise.grow.draws import child_keys  # noqa: PLC0415

            keys = child_keys(keys, splits.n_branches)
        depth += 1
        if progress is not None:
            progress(pieces.n_nodes + len(level) + grafts.n_nodes)
    return pieces.tree()


def references(
    root: Level, engine: Engine, recipe: Recipe, whole: WeightGrid | None
) -> tuple[float, float, Callable[[Level], ImpuritySums64]]:
    """Return the cases and the weight that limits refer to, and impurities in terms of
    these: those of the root, or of all cases of ``whole``.
    """  # noqa: D205
    if whole is None:
        impurity_sums_at = impurity_sums_of(root, engine, recipe)
        weight = weight_of(root, impurity_sums_at)
        return cases_of(root, weight, recipe), weight, impurity_sums_at
    everything = Level(np.array([[whole.total]]), np.array([whole.n_cases]))
    n_cases = whole.total if recipe.weights_are_cases else whole.n_cases
    return n_cases, whole.total, impurity_sums_of(everything, engine, recipe)


def searched_in(
    engine: Engine, columns: Sequence[Column], recipe: Recipe
) -> tuple[BranchSource, Sequence[Column]]:
    """Return the source and the columns that splits are searched for in."""
    if not splits_by_rank(columns, recipe):
        return engine, columns
    from branchwise.grow import ranks  # noqa: PLC0415  (loaded when needed)

    return ranks.ranked(engine, columns, recipe)


def completed(
    splits: Splits,
    source: BranchSource,
    columns: Sequence[Column],
    searched: Sequence[Column],
    recipe: Recipe,
) -> Splits:
    """Return splits in the codes of the columns, with surrogates if there are any."""
    if searched is not columns:
        from branchwise.grow import ranks  # noqa: PLC0415  (loaded when needed)

        splits = ranks.splits_in_codes(splits, columns)
    return surrogates_added(splits, source, columns, searched, recipe)


def surrogates_added(
    splits: Splits,
    source: BranchSource,
    columns: Sequence[Column],
    searched: Sequence[Column],
    recipe: Recipe,
) -> Splits:
    """Return splits that have codes with the surrogates that the recipe demands."""
    if recipe.missing != "surrogate":
        return splits
    splits = with_surrogates(splits, source, searched, recipe.threshold)
    if searched is columns:
        return splits
    from branchwise.grow import ranks  # noqa: PLC0415  (loaded when needed)

    return ranks.with_surrogates_in_codes(splits, columns)


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
    """Count rows down given splits, whose branches lead to given nodes."""
    level = engine.totals()
    pieces = Levels(len(level))
    nodes = np.zeros(1, dtype=np.intp)
    origins = [nodes]
    while True:
        open_nodes = np.flatnonzero((nodes >= 0) & (tree.n_children[nodes] > 0))
        engine.retain(open_nodes)
        if not len(open_nodes):
            pieces.add(level, open_nodes, None)
            return pieces.tree(), np.concatenate(origins)
        splits, nodes = splits_of(nodes[open_nodes])
        pieces.add(level, open_nodes, splits)
        level = engine.advance(splits)
        origins.append(nodes)


def cases_of(root: Level, weight: float, recipe: Recipe) -> float:
    """Return the number of cases that fractional limits refer to."""
    return weight if recipe.weights_are_cases else float(root.cases.sum())


def weight_of(
    root: Level, impurity_sums_at: Callable[[Level], ImpuritySums64]
) -> float:
    """Return the weight of all cases, which fractional weights refer to."""
    return float(impurity_sums_at(root).weight(root.weights).sum())


def impurity_sums_of(
    root: Level, engine: Engine, recipe: Recipe
) -> Callable[[Level], ImpuritySums64]:
    """Return a function that computes the weighted impurities of each level."""
    scale = engine.scale
    if scale is not None:
        poisson = recipe.criterion == "poisson"
        return lambda level: Moments64(scale, level.weights, poisson)
    impurity_sums = ImpuritySums64(float(root.weights.sum()), engine.whole)
    return lambda _: impurity_sums
