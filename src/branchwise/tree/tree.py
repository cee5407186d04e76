"""The tree as named parallel arrays with one entry per node, and edits of trees.

:data:`ARRAYS` documents them and is the layout of model files. Nodes are numbered
level by level, the children of a node one after the other, so that the numbers of
children alone give the shape, and cycles cannot be represented. Nothing here recurses
or needs rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, distinct, first_best_of_rows
from branchwise.threads import cached_property
from branchwise.tree.splits import STOP, Splits, Surrogates, ragged


class ArraySpec(NamedTuple):
    """Name, type and meaning of one array of the tree."""

    name: str
    dtype: type
    meaning: str
    #: The name in model files, where it differs: names in files do not change.
    file_name: str | None = None

    @property
    def key(self) -> str:
        """The name in model files."""
        return self.file_name or self.name


ARRAYS = (
    ArraySpec("column", np.int64, "column that the node splits on; -1: a leaf"),
    ArraySpec(
        "threshold", np.float64, "numbers up to it are code 0, above it code 1", "cut"
    ),
    ArraySpec("n_children", np.int64, "number of branches; 0: a leaf"),
    ArraySpec("missing_to", np.int64, "branch of a missing value; -1 stop, -2 every"),
    ArraySpec("unseen_to", np.int64, "branch of an unseen value; -1 stop, -2 every"),
    ArraySpec("n_codes", np.int64, "how many codes of the parent's column lead here"),
    ArraySpec("codes", np.int64, "those codes, node after node"),
    ArraySpec("weights", np.float64, "training weight of each class at the node"),
    ArraySpec("cases", np.float64, "number of training cases at the node"),
)


#: Further arrays of regression trees, whose only class weight is the weight.
NUMBER_ARRAYS = (
    ArraySpec("mean", np.float64, "mean of the training numbers at the node"),
    ArraySpec("deviation", np.float64, "their standard deviation"),
)
#: Further arrays of trees with surrogate splits.
SURROGATE_ARRAYS = (
    ArraySpec("n_surrogates", np.int64, "number of surrogate splits of the node"),
    ArraySpec("surrogate_column", np.int64, "column of each, as they are tried"),
    ArraySpec(
        "surrogate_threshold",
        np.float64,
        "threshold of each, as in threshold",
        "surrogate_cut",
    ),
    ArraySpec("surrogate_n_codes", np.int64, "how many codes lead to each branch"),
    ArraySpec("surrogate_codes", np.int64, "those codes, branch after branch"),
)
#: Further arrays of trees that do not always predict the most frequent class.
PREDICTION_ARRAYS = (
    ArraySpec("prediction", np.int64, "class that the node predicts", "answer"),
)
#: What a tree of classes has besides that was grown from weighted cases.
CASE_ARRAYS = (
    ArraySpec("class_cases", np.float64, "number of training cases of each class"),
)
#: What a tree has all or nothing of.
OPTIONAL_ARRAYS = (NUMBER_ARRAYS, PREDICTION_ARRAYS, CASE_ARRAYS, SURROGATE_ARRAYS)
#: Amounts this close, relative to the larger, are equal: cases of weight 1.
_SAME_AMOUNT = 1e-9


@dataclass(frozen=True, eq=False)
class Tree:
    """A decision tree; :data:`ARRAYS` and :data:`OPTIONAL_ARRAYS` document it."""

    column: Ints
    threshold: Floats
    n_children: Ints
    missing_to: Ints
    unseen_to: Ints
    n_codes: Ints
    codes: Ints
    weights: Floats
    cases: Floats
    mean: Floats | None = None
    deviation: Floats | None = None
    prediction: Ints | None = None
    class_cases: Floats | None = None
    n_surrogates: Ints | None = None
    surrogate_column: Ints | None = None
    surrogate_threshold: Floats | None = None
    surrogate_n_codes: Ints | None = None
    surrogate_codes: Ints | None = None

    def __len__(self) -> int:
        return len(self.column)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return self.arrays == other.arrays and all(
            np.array_equal(
                getattr(self, spec.name),
                getattr(other, spec.name),
                equal_nan=spec.dtype is np.float64,
            )
            for spec in self.arrays
        )

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, object]:
        # What was prepared from the arrays is made anew where it is needed.
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def is_regression(self) -> bool:
        """Whether nodes predict numbers, not classes."""
        return self.mean is not None

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """The arrays that this tree has."""
        present = (g for g in OPTIONAL_ARRAYS if getattr(self, g[0].name) is not None)
        return ARRAYS + tuple(spec for group in present for spec in group)

    def with_columns(self, columns: Ints) -> Tree:
        """Return the tree of a table in which its columns have these positions."""
        position = np.append(columns, -1).astype(np.int64)
        surrogate = self.surrogate_column
        return replace(
            self,
            column=position[self.column],
            surrogate_column=None if surrogate is None else position[surrogate],
        )

    @cached_property
    def first_child(self) -> Ints:
        """Child of a branch: ``first_child[node] + branch``."""
        return (np.cumsum(self.n_children) - self.n_children + 1).astype(np.intp)

    @cached_property
    def parent(self) -> Ints:
        """The parent of every node; -1 for the root."""
        parents = np.repeat(np.arange(len(self)), self.n_children)
        return np.concatenate([[-1], parents]).astype(np.intp)

    @cached_property
    def code_starts(self) -> Ints:
        """Where the ``codes`` of each node begin, and where the last ones end."""
        return np.concatenate([[0], np.cumsum(self.n_codes)]).astype(np.intp)

    @cached_property
    def depth(self) -> Ints:
        """Number of splits from the root to each node."""
        depth = np.zeros(len(self), dtype=np.intp)
        for start, stop in self.levels():
            depth[start:stop] = depth[self.parent[start]] + 1 if start else 0
        return depth

    def levels(self) -> Iterator[tuple[int, int]]:
        """Yield the range of nodes of each level, from the root down."""
        start, stop = 0, 1
        while start < stop:
            yield start, stop
            last = stop - 1
            start, stop = stop, int(self.first_child[last] + self.n_children[last])

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        leaf: NDArray[np.bool_] = self.n_children == 0
        return leaf

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return int(np.count_nonzero(self.is_leaf))

    @property
    def max_depth(self) -> int:
        """The largest number of splits on any path."""
        return int(self.depth[-1])

    @cached_property
    def label(self) -> Ints:
        """The class of each node: most weight, of equals the first in class order,
        unless the node has another prediction.
        """  # noqa: D205
        return self.heaviest if self.prediction is None else self.prediction

    @cached_property
    def heaviest(self) -> Ints:
        """The class of most weight at each node, of equals the first."""
        return first_best_of_rows(self.weights)

    @cached_property
    def is_weighted(self) -> bool:
        """Whether training cases had weights other than 1."""
        if self.class_cases is not None:
            return True
        return not _same_amounts(self.weights.sum(axis=1), self.cases)

    @cached_property
    def case_counts(self) -> Floats:
        """The number of cases at each node, whatever they weigh."""
        if self.is_weighted and self.class_cases is None:
            return self.cases
        counts = self.weights if self.class_cases is None else self.class_cases
        total: Floats = counts.sum(axis=1)
        return total

    @property
    def n_cases(self) -> float:
        """The number of cases that the tree was grown from, whatever they weigh."""
        if self.class_cases is None:
            return float(self.cases[0])
        return float(self.class_cases[0].sum())

    @property
    def class_counts(self) -> Floats | None:
        """The number of cases of each class; None if only their weight is known."""
        if self.class_cases is not None:
            return self.class_cases
        return None if self.is_weighted else self.weights

    def with_class_cases(self, class_cases: Floats) -> Tree:
        """Return the tree with cases by class, or without if they equal weights."""
        new = None if _same_amounts(class_cases, self.weights) else class_cases
        return replace(self, class_cases=new)

    def children(self, node: int) -> range:
        """Return the children of a node in branch order."""
        first = int(self.first_child[node])
        return range(first, first + int(self.n_children[node]))

    def codes_of(self, node: int) -> list[int]:
        """Return the codes of the parent's column that lead to a node."""
        start, stop = self.code_starts[node], self.code_starts[node + 1]
        codes: list[int] = self.codes[start:stop].tolist()
        return codes

    def is_missing_branch(self, node: int) -> bool:
        """Whether a node is where its parent sends missing values, and only those."""
        return node > 0 and int(self.n_codes[node]) == 0

    def preorder(self) -> Iterator[int]:
        """Yield the nodes parent first, then branch by branch."""
        stack = [0]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(self.children(node)))

    @cached_property
    def splits(self) -> Splits:
        """All splits of the tree at once, for a ``tree.splits.Router``."""
        return Splits(
            self.column,
            self.threshold,
            self.n_children,
            self.missing_to,
            self.unseen_to,
            self.n_codes[1:],
            self.codes,
            self.weights[1:].sum(axis=1),
            self.surrogates,
        )

    @cached_property
    def surrogates(self) -> Surrogates | None:
        """The surrogate splits of all nodes; None for a tree without any."""
        n, column, threshold, n_codes, codes = (
            getattr(self, spec.name) for spec in SURROGATE_ARRAYS
        )
        return (
            None if n is None else Surrogates.of(n, column, threshold, n_codes, codes)
        )

    def with_surrogates(self, surrogates: Surrogates) -> Tree:
        """Return the tree with other surrogate splits; with none, without arrays."""
        some, splits = bool(surrogates.number.any()), surrogates.splits
        arrays = (splits.column, splits.threshold, splits.n_codes, splits.codes)
        names = [spec.name for spec in SURROGATE_ARRAYS]
        new = dict(zip(names, (surrogates.number, *arrays), strict=True))
        return replace(self, **(new if some else dict.fromkeys(names)))

    @cached_property
    def used_columns(self) -> list[int]:
        """The columns that the tree splits on, in order."""
        used = self.column[self.column >= 0]
        if self.surrogate_column is not None:
            used = np.concatenate([used, self.surrogate_column])
        columns: list[int] = distinct(used).tolist()
        return columns


def _same_amounts(one: Floats, other: Floats) -> bool:
    return bool(np.allclose(one, other, rtol=_SAME_AMOUNT, atol=0.0))


Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Rearranged:
    """A tree that was built from the nodes of another one.

    ``source`` is the old node whose split and weights each node has, ``position`` the
    one whose position it takes.
    """

    tree: Tree
    source: Ints
    position: Ints


def with_collapsed(tree: Tree, leaves: Mask) -> Rearranged:
    """Turn some nodes into leaves."""
    kept = np.ones(len(tree), dtype=bool)
    below = leaves[tree.parent[1:]]
    if leaves[1:][below].all():  # as limits of depth and of cases have it
        kept[1:] = ~below
    else:
        for start, stop in tree.levels():
            if start:
                parent = tree.parent[start:stop]
                kept[start:stop] = kept[parent] & ~leaves[parent]
    node = np.flatnonzero(kept)
    return _assembled(tree, node, node, leaves)


def rearranged(tree: Tree, raised: Ints, leaves: Mask) -> Rearranged:
    """Put ``raised`` children (-1: none) in place of nodes; collapse ``leaves``."""
    return _assembled(tree, *_positions(tree, raised, leaves), leaves)


def _assembled(tree: Tree, source: Ints, position: Ints, leaves: Mask) -> Rearranged:
    """Build a tree from nodes, level by level, at their positions."""
    n_codes = tree.n_codes[position]
    leaf = leaves[source]
    new = replace(
        tree,
        column=np.where(leaf, -1, tree.column[source]),
        threshold=np.where(leaf, np.nan, tree.threshold[source]),
        n_children=np.where(leaf, 0, tree.n_children[source]),
        missing_to=np.where(leaf, STOP, tree.missing_to[source]),
        unseen_to=np.where(leaf, STOP, tree.unseen_to[source]),
        n_codes=n_codes,
        codes=tree.codes[ragged(tree.code_starts[position], n_codes)],
        weights=tree.weights[source],
        cases=tree.cases[source],
        **{
            name: None if (array := getattr(tree, name)) is None else array[source]
            for name in ("mean", "deviation", "prediction", "class_cases")
        },
    )
    if tree.surrogates is not None:
        kept = tree.surrogates.take(np.where(leaf, -1, source))
        new = new.with_surrogates(kept)
    if not tree.is_regression:  # which is faster than to find them again
        vars(new)["heaviest"] = tree.heaviest[source]
    return Rearranged(new, source, position)


def _positions(tree: Tree, raised: Ints, leaves: Mask) -> tuple[Ints, Ints]:
    """Return, level by level, the nodes of the new tree and their positions."""
    position = np.zeros(1, dtype=np.intp)
    sources, positions = [], []
    while len(position):
        source = position.copy()
        while (up := raised[source] >= 0).any():
            source[up] = raised[source[up]]
        sources.append(source)
        positions.append(position)
        width = np.where(leaves[source], 0, tree.n_children[source])
        first = np.repeat(tree.first_child[source], width)
        offset = np.repeat(np.cumsum(width) - width, width)
        position = first + np.arange(len(first)) - offset
    return np.concatenate(sources), np.concatenate(positions)


def subtree_sums(tree: Tree, own: NDArray[Any]) -> NDArray[Any]:
    """Add up the amounts of each subtree, from the leaves up."""
    total = own.copy()
    for start, stop in reversed(list(tree.levels())):
        add_to_parents(tree, total, start, stop)
    return total


def add_to_parents(tree: Tree, total: NDArray[Any], start: int, stop: int) -> None:
    """Add the amounts of the nodes of one level to those of their parents."""
    if start:
        # A copy of these: NumPy would copy all of an array that overlaps them.
        amounts = total[start:stop].copy()
        np.add.at(total, tree.parent[start:stop], amounts)


def at_label(tree: Tree, amounts: Floats) -> Floats:
    """Return the amount of the class of each node, given one for every class."""
    picked: Floats = np.take_along_axis(amounts, tree.label[:, np.newaxis], axis=1)
    return picked[:, 0]


def stopped_weights(tree: Tree) -> NDArray[np.float64]:
    """Return the class weights of the cases that go no further than each node."""
    below = np.zeros_like(tree.weights)
    np.add.at(below, tree.parent[1:], tree.weights[1:])
    return np.maximum(tree.weights - below, 0.0)
