"""Trees that are put in the places of leaves of another, once all of them are grown.

A table of ten million rows may have a tree of millions of nodes, grown in thousands
of pieces. So the pieces wait as narrow numbers, in temporary files once they are
many, and the whole is put together array by array.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Ints
from branchwise.errors import DataError
from branchwise.narrow import narrowed
from branchwise.splits import ragged
from branchwise.tree import ARRAYS, Tree

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
