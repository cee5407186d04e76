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

import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, narrowed
from branchwise.data.schema import Column
from branchwise.errors import DataError
from branchwise.grow.choose import Stop, best_splits, stops
from branchwise.grow.criteria import Masses64
from branchwise.grow.moments import Moments64
from branchwise.grow.protocol import Engine, Level, Levels
from branchwise.grow.recount import finished_splits, prescribed_splits
from branchwise.grow.surrogates import with_surrogates
from branchwise.recipe import Recipe
from branchwise.tree.splits import Splits, ragged
from branchwise.tree.tree import ARRAYS, Tree

#: Bytes of one kind of array that wait in memory.
_IN_MEMORY = 2**20
#: What a node asks, and how it is answered.
_QUESTION = ("column", "cut", "n_children", "missing_to", "unseen_to")


class Grafts:
    """Trees for leaves of a tree that is still being grown."""

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
        """Keep what is below a leaf."""
        if not self._arrays:
            self._arrays = {spec.name: _Waiting(self._files) for spec in ARRAYS}
        self._leaves.append(leaf)
        self._sizes.append(len(tree))
        self.n_nodes += len(tree)
        for name, arrays in self._arrays.items():
            arrays.append(getattr(tree, name))

    def onto(self, tree: Tree) -> Tree:
        """Put all of them in their places, and forget them."""
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
        for name in list(self._arrays):
            joined = self._joined(name, tree, leaves, roots)
            new[name] = joined[order].astype(getattr(tree, name).dtype)
        return Tree(**new)

    def _joined(self, name: str, tree: Tree, leaves: Ints, roots: Ints) -> NDArray[Any]:
        """Put the arrays of one name together, and let go of them."""
        joined = self._arrays.pop(name).after(getattr(tree, name))
        if name in _QUESTION:
            # A leaf asks what the root of its tree asks; nothing leads to that root.
            joined[leaves] = joined[roots]
        return joined


class _Waiting:
    """Arrays that wait to be joined: bytes, and of each array its type and length."""

    def __init__(self, files: ExitStack) -> None:
        self._file = files.enter_context(
            tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        )
        self._pieces: list[tuple[np.dtype[Any], int]] = []

    def append(self, array: NDArray[Any]) -> None:
        narrow = narrowed(array)
        self._pieces.append((narrow.dtype, len(narrow)))
        try:
            self._file.write(narrow.tobytes())
        except OSError as error:
            raise DataError(
                "The tree is large, and the folder for temporary files has no room for "
                f"its pieces: {error.strerror}. Name another with TMPDIR, or let the "
                "tree be smaller (max_depth, min_samples_leaf)."
            ) from None

    def after(self, first: NDArray[Any]) -> NDArray[Any]:
        """Return one array and all that wait behind it, and forget these."""
        width = first.shape[1:]
        narrow = narrowed(first)
        kind = np.result_type(narrow.dtype, *{dtype for dtype, _ in self._pieces})
        total = len(first) + sum(n for _, n in self._pieces)
        joined = np.empty((total, *width), dtype=kind)
        joined[: len(first)] = narrow
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
    narrow = np.min_scalar_type(len(n_children))
    return np.concatenate(levels, dtype=narrow, casting="unsafe")


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
