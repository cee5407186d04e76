"""Stage 6: the tree as named parallel arrays, one row a node.

:data:`ARRAYS` is both the documentation and the model file's layout. Nodes are
numbered level by level, the children of a node one after the other, so numbers
of children alone give the shape: a cycle cannot even be written down. Nothing
here recurses, and nothing here knows data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Floats, Ints
from branchwise.errors import DataError
from branchwise.missing import EVERY_BRANCH, STOP, Policy, routes
from branchwise.splits import ABOVE, AT_MOST, Splits
from branchwise.table.schema import Schema, Value
from branchwise.ties import first_best


class ArraySpec(NamedTuple):
    """Name, type and meaning of one array of the tree."""

    name: str
    dtype: type
    meaning: str


ARRAYS = (
    ArraySpec("column", np.int64, "column that the node asks about; -1: a leaf"),
    ArraySpec("cut", np.float64, "numbers up to the cut are code 0, above it code 1"),
    ArraySpec("n_children", np.int64, "number of branches; 0: a leaf"),
    ArraySpec("missing_to", np.int64, "branch of a missing value; -1 stop, -2 every"),
    ArraySpec("unseen_to", np.int64, "branch of an unseen value; -1 stop, -2 every"),
    ArraySpec("n_codes", np.int64, "how many codes of the parent's column lead here"),
    ArraySpec("codes", np.int64, "those codes, node after node"),
    ArraySpec("weights", np.float64, "training weight of each class at the node"),
    ArraySpec("cases", np.float64, "number of training cases at the node"),
)


@dataclass(frozen=True, eq=False)
class Tree:
    """A decision tree: see :data:`ARRAYS` for the meaning of each array."""

    column: Ints
    cut: Floats
    n_children: Ints
    missing_to: Ints
    unseen_to: Ints
    n_codes: Ints
    codes: Ints
    weights: Floats
    cases: Floats

    def __len__(self) -> int:
        return len(self.column)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return all(
            np.array_equal(
                getattr(self, spec.name),
                getattr(other, spec.name),
                equal_nan=spec.dtype is np.float64,
            )
            for spec in ARRAYS
        )

    __hash__ = None  # type: ignore[assignment]

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
        """Where each node's part of ``codes`` begins, and where the last one ends."""
        return np.concatenate([[0], np.cumsum(self.n_codes)]).astype(np.intp)

    @cached_property
    def depth(self) -> Ints:
        """Questions from the root to each node."""
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
        """The largest number of questions on any path."""
        return int(self.depth[-1])

    @cached_property
    def label(self) -> Ints:
        """The class of each node: most weight, of equals the first in class order."""
        starts = np.arange(len(self)) * self.weights.shape[1]
        best = first_best(self.weights.ravel(), starts, np.zeros(len(self)))
        label: Ints = best - starts
        return label

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
        """All splits of the tree at once, for a :class:`~branchwise.splits.Router`."""
        return Splits(
            self.column,
            self.cut,
            self.n_children,
            self.missing_to,
            self.unseen_to,
            self.n_codes[1:],
            self.codes,
            self.weights[1:].sum(axis=1),
        )

    @cached_property
    def used_columns(self) -> list[int]:
        """The columns that the tree asks about, in order."""
        columns: list[int] = np.unique(self.column[self.column >= 0]).tolist()
        return columns


@dataclass
class _Draft:
    column: int | None
    cut: float
    codes: list[int]
    weights: Floats
    cases: float
    children: list[int]


class TreeBuilder:
    """Build a tree by hand, child by child.

    Examples
    --------
    >>> from branchwise.table.schema import Column, Schema
    >>> schema = Schema(
    ...     (Column("wind", "categorical", ("strong", "weak")),), ("no", "yes")
    ... )
    >>> builder = TreeBuilder(schema, weights=[5, 9])
    >>> _ = builder.child(0, "wind", values=["strong"], weights=[3, 3])
    >>> _ = builder.child(0, "wind", values=["weak"], weights=[2, 6])
    >>> tree = builder.build()
    >>> len(tree), tree.n_leaves, tree.max_depth
    (3, 2, 1)
    """

    def __init__(
        self, schema: Schema, weights: Sequence[float], cases: float | None = None
    ) -> None:
        self.schema = schema
        self._columns = {name: index for index, name in enumerate(schema.names)}
        self._drafts = [self._draft([], weights, cases)]

    def child(
        self,
        parent: int,
        column: str,
        *,
        weights: Sequence[float],
        values: Sequence[Value] | None = None,
        at_most: float | None = None,
        above: float | None = None,
        missing: bool = False,
        cases: float | None = None,
    ) -> int:
        """Add a child where ``column`` has one of ``values``, or a number up to or
        above a cut, or is missing; return its number.
        """  # noqa: D205
        index = self._index(column)
        given = [values is not None, at_most is not None, above is not None, missing]
        if sum(given) != 1:
            raise DataError(
                f"A child on {column!r} needs exactly one of values, at_most, above "
                f"and missing. Got {sum(given)}."
            )
        if not 0 <= parent < len(self._drafts):
            raise DataError(f"There is no node {parent} to give a child.")
        draft = self._drafts[parent]
        codes = self._codes(index, values, at_most is not None, missing)
        child = self._draft(codes, weights, cases)
        numbers = [number for number in (at_most, above) if number is not None]
        cut = float(numbers[0]) if numbers else np.nan
        self._agree(draft, parent, index, cut)
        self._drafts.append(child)
        draft.children.append(len(self._drafts) - 1)
        return len(self._drafts) - 1

    def build(self, missing: Policy = "branch", unseen: Policy = "node") -> Tree:
        """Return the tree, its nodes numbered level by level, after checking it."""
        order = [0]
        for node in order:  # grows while it is walked: breadth first
            order.extend(self._drafts[node].children)
        drafts = [self._drafts[node] for node in order]
        n_children = np.array([len(d.children) for d in drafts], dtype=np.intp)
        n_codes = np.array([len(d.codes) for d in drafts], dtype=np.intp)
        weights = np.array([d.weights for d in drafts])
        missing_to = np.full(len(drafts), STOP, dtype=np.intp)
        unseen_to = np.full(len(drafts), STOP, dtype=np.intp)
        split = np.flatnonzero(n_children)
        if len(split):
            starts = (np.cumsum(n_children) - n_children)[split]
            last = starts + n_children[split] - 1
            own = np.where(n_codes[1:][last] == 0, n_children[split] - 1, STOP)
            sizes = weights[1:].sum(axis=1)
            missing_to[split], unseen_to[split] = routes(
                missing, unseen, sizes, starts, own
            )
        tree = Tree(
            np.array([-1 if d.column is None else d.column for d in drafts], np.intp),
            np.array([d.cut for d in drafts]),
            n_children,
            missing_to,
            unseen_to,
            n_codes,
            np.array([code for d in drafts for code in d.codes], dtype=np.intp),
            weights,
            np.array([d.cases for d in drafts]),
        )
        validate(tree, self.schema)
        return tree

    def _draft(
        self, codes: list[int], weights: Sequence[float], cases: float | None
    ) -> _Draft:
        given = np.asarray(weights, dtype=np.float64)
        if given.shape != (len(self.schema.classes),):
            raise DataError(
                f"weights must have one entry for each of the "
                f"{len(self.schema.classes)} classes. Got shape {given.shape}."
            )
        return _Draft(
            None,
            np.nan,
            codes,
            given,
            float(given.sum() if cases is None else cases),
            [],
        )

    def _index(self, column: str) -> int:
        if column not in self._columns:
            raise DataError(f"{column!r} is not a column of the schema.")
        return self._columns[column]

    def _agree(self, draft: _Draft, node: int, index: int, cut: float) -> None:
        """All children of a node test the same column at the same cut."""
        if draft.column not in (None, index):
            raise DataError(f"Node {node} has children on another column already.")
        if not np.isnan(cut) and not np.isnan(draft.cut) and draft.cut != cut:
            raise DataError(f"Node {node} is cut at {draft.cut} already.")
        draft.column = index
        draft.cut = draft.cut if np.isnan(cut) else cut

    def _codes(
        self, index: int, values: Sequence[Value] | None, at_most: bool, missing: bool
    ) -> list[int]:
        column = self.schema.columns[index]
        if missing:
            return []
        if (values is None) != column.is_numeric:
            needs = "at_most or above" if column.is_numeric else "values"
            raise DataError(f"Column {column.name!r} is {column.kind}: give {needs}.")
        if values is None:
            return [AT_MOST if at_most else ABOVE]
        if not values:
            raise DataError(f"A child on {column.name!r} needs at least one value.")
        for value in values:
            if value not in column.code_of:
                raise DataError(f"{value!r} is not a category of {column.name!r}.")
        return sorted(column.code_of[value] for value in values)


def validate(tree: Tree, schema: Schema) -> None:
    """Refuse arrays that are not one whole and sane tree over the schema."""
    n = len(tree.column)
    _require(n >= 1, "a tree has at least one node")
    for spec in ARRAYS:
        array = getattr(tree, spec.name)
        shape = {"weights": (n, len(schema.classes)), "codes": (len(tree.codes),)}
        expected = shape.get(spec.name, (n,))
        _require(
            array.shape == expected,
            f"array {spec.name!r} has shape {array.shape}, expected {expected}",
        )
    _validate_shape(tree, n)
    _validate_tests(tree, schema)
    _validate_codes(tree, schema)
    for name in ("weights", "cases"):
        array = getattr(tree, name)
        _require(
            bool((np.isfinite(array) & (array >= 0)).all()),
            f"array {name!r} has entries that are negative or not finite",
        )
    _require(bool((tree.weights.sum(axis=1) > 0).all()), "a node without any weight")


def _require(condition: bool, complaint: str) -> None:
    if not condition:
        raise DataError(f"Not a sane tree: {complaint}.")


def _validate_shape(tree: Tree, n: int) -> None:
    # Bounding each entry first keeps the sums below from overflowing.
    _require(
        bool(((tree.n_children >= 0) & (tree.n_children < n)).all()),
        "n_children is negative or larger than the tree",
    )
    _require(
        int(tree.n_children.sum()) == n - 1,
        f"n_children must add up to {n - 1:,}, one for every node but the root",
    )
    # Every node must have been announced by a node before it.
    announced = 1 + np.cumsum(tree.n_children)[:-1]
    _require(
        bool((announced > np.arange(1, n)).all()), "a node that no other node leads to"
    )
    _require(
        bool(((tree.column >= 0) == (tree.n_children > 0)).all())
        and bool((tree.column >= -1).all()),
        "a node needs both a column and children, or neither",
    )
    _require(
        bool(((tree.n_codes >= 0) & (tree.n_codes <= len(tree.codes))).all())
        and int(tree.n_codes.sum()) == len(tree.codes),
        "n_codes must add up to the number of codes",
    )
    for name in ("missing_to", "unseen_to"):
        branch = getattr(tree, name)
        _require(
            bool(((branch >= EVERY_BRANCH) & (branch < tree.n_children)).all())
            and bool((branch[tree.n_children == 0] == STOP).all()),
            f"{name} points to a branch that is not there",
        )


def _validate_tests(tree: Tree, schema: Schema) -> None:
    _require(
        bool((tree.column < len(schema.columns)).all()),
        "a column beyond those of the schema",
    )
    numeric = np.array([column.is_numeric for column in schema.columns])
    is_numeric = np.zeros(len(tree), dtype=bool)
    split = tree.column >= 0
    is_numeric[split] = numeric[tree.column[split]]
    cut = tree.cut
    _require(
        bool(np.isnan(cut[~is_numeric]).all()), "a cut on a column without numbers"
    )
    _require(not bool(np.isinf(cut).any()), "an infinite cut")


def _validate_codes(tree: Tree, schema: Schema) -> None:
    sizes = np.array([2 if c.is_numeric else len(c.categories) for c in schema.columns])
    owner = np.repeat(np.arange(len(tree)), tree.n_codes)
    _require(not bool((owner == 0).any()), "codes that lead to the root")
    column = tree.column[tree.parent[owner]]
    _require(
        bool(((tree.codes >= 0) & (tree.codes < sizes[column])).all()),
        "a code that is no value of its column",
    )
    key = tree.parent[owner] * (int(sizes.max(initial=0)) + 1) + tree.codes
    _require(
        len(np.unique(key)) == len(key), "two branches of a node for the same value"
    )
    # Without a cut nothing tells the two sides of a number apart.
    sided = np.flatnonzero((sizes[column] == 2) & (tree.n_codes[owner] == 1))
    numeric = np.array([c.is_numeric for c in schema.columns])[column[sided]]
    _require(
        not bool(np.isnan(tree.cut[tree.parent[owner[sided[numeric]]]]).any()),
        "two sides of a number without a cut",
    )
    # A child without codes is where missing values go, or nothing leads to it.
    orphan = np.flatnonzero(tree.n_codes[1:] == 0) + 1
    parent = tree.parent[orphan]
    _require(
        bool((tree.missing_to[parent] == orphan - tree.first_child[parent]).all()),
        "a branch that no value leads to",
    )
