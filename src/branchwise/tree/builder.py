"""Validation of the arrays of a tree, and :class:`TreeBuilder` for trees by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, distinct
from branchwise.data.table_schema import Schema, Value
from branchwise.errors import DataError
from branchwise.recipe import Policy
from branchwise.tree.splits import (
    ABOVE,
    AT_MOST,
    EVERY_BRANCH,
    STOP,
    Surrogates,
    routes,
)
from branchwise.tree.tree import OPTIONAL_ARRAYS, Tree

#: Tolerance of the sum of fractional cases, each rounded, relative to the whole.
_ROUNDING = 1e-6
#: Numbers of fractional cases this close, relative to each other, are equal.
_SAME_CASES = 1e-6


def validate(tree: Tree, schema: Schema) -> None:
    """Reject arrays that are not a valid tree over the schema."""
    n = len(tree.column)
    _require(n >= 1, "a tree has at least one node")
    width = 1 if tree.is_regression else len(schema.classes)
    _require(
        tree.is_regression == (not schema.classes),
        "either classes or means, not both or neither",
    )
    for group in OPTIONAL_ARRAYS:
        given = [getattr(tree, spec.name) is not None for spec in group]
        names = ", ".join(repr(spec.key) for spec in group)
        _require(all(given) or not any(given), f"all of the arrays {names}, or none")
    shape: dict[str, tuple[int, ...]] = {
        "weights": (n, width),
        "class_cases": (n, width),
        "codes": (len(tree.codes),),
    }
    if tree.surrogate_column is not None and tree.surrogate_codes is not None:
        m = len(tree.surrogate_column)
        shape |= {"surrogate_column": (m,), "surrogate_threshold": (m,)}
        shape |= {
            "surrogate_n_codes": (2 * m,),
            "surrogate_codes": (len(tree.surrogate_codes),),
        }
    for spec in tree.arrays:
        array = getattr(tree, spec.name)
        expected = shape.get(spec.name, (n,))
        _require(
            array.shape == expected,
            f"array {spec.key!r} has shape {array.shape}, expected {expected}",
        )
    _validate_shape(tree, n)
    _validate_tests(tree, schema)
    _validate_codes(tree, schema)
    for spec in tree.arrays:
        if spec.name in ("weights", "cases", "deviation"):
            array = getattr(tree, spec.name)
            _require(
                np.isfinite(array) & (array >= 0),
                f"array {spec.key!r} has entries that are negative or not finite",
            )
    if tree.surrogates is not None:
        _validate_surrogates(tree, tree.surrogates, schema)
    if tree.prediction is not None:
        possible = (tree.prediction >= 0) & (tree.prediction < width)
        _require(possible, "a prediction that is none of the classes")
    if tree.mean is not None:
        _require(np.isfinite(tree.mean), "a mean that is not finite")
    _validate_amounts(tree)
    _validate_class_cases(tree)


def _validate_class_cases(tree: Tree) -> None:
    """Reject cases of classes that do not add up to the cases of the node."""
    if tree.class_cases is None:
        return
    _require(not tree.is_regression, "cases of classes in a tree of numbers")
    cases = tree.class_cases
    _require(
        np.isfinite(cases) & (cases >= 0),
        "array 'class_cases' has entries that are negative or not finite",
    )
    total = cases.sum(axis=1)
    slack = _SAME_CASES * np.maximum(tree.cases, 1.0)
    _require(
        np.abs(total - tree.cases) <= slack,
        "array 'class_cases' does not add up to 'cases'",
    )


def _require(condition: NDArray[np.bool_] | bool, complaint: str) -> None:
    if not np.all(condition):
        raise DataError(f"Not a sane tree: {complaint}.")


def _validate_shape(tree: Tree, n: int) -> None:
    # Bounding each entry first keeps the sums below from overflowing.
    _require(
        (tree.n_children >= 0) & (tree.n_children < n),
        "n_children is negative or larger than the tree",
    )
    _require(
        int(tree.n_children.sum()) == n - 1,
        f"n_children must add up to {n - 1:,}, one for every node but the root",
    )
    # Every node must be the child of an earlier node.
    announced = 1 + np.cumsum(tree.n_children)[:-1]
    _require(announced > np.arange(1, n), "a node that no other node leads to")
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
    _require(tree.column < len(schema.columns), "a column beyond those of the schema")
    numeric = np.array([column.is_numeric for column in schema.columns])
    is_numeric = np.zeros(len(tree), dtype=bool)
    split = tree.column >= 0
    is_numeric[split] = numeric[tree.column[split]]
    threshold = tree.threshold
    _require(
        np.isnan(threshold[~is_numeric]), "a threshold on a column without numbers"
    )
    _require(not bool(np.isinf(threshold).any()), "an infinite threshold")


def _validate_codes(tree: Tree, schema: Schema) -> None:
    sizes = np.array([2 if c.is_numeric else len(c.categories) for c in schema.columns])
    owner = np.repeat(np.arange(len(tree)), tree.n_codes)
    _require(not bool((owner == 0).any()), "codes that lead to the root")
    column = tree.column[tree.parent[owner]]
    _require(
        (tree.codes >= 0) & (tree.codes < sizes[column]),
        "a code that is no value of its column",
    )
    key = tree.parent[owner] * (int(sizes.max(initial=0)) + 1) + tree.codes
    _require(
        len(distinct(key)) == len(key), "two branches of a node for the same value"
    )
    # Without a threshold the two sides of a number are not defined.
    sided = np.flatnonzero((sizes[column] == 2) & (tree.n_codes[owner] == 1))
    numeric = np.array([c.is_numeric for c in schema.columns])[column[sided]]
    _require(
        not bool(np.isnan(tree.threshold[tree.parent[owner[sided[numeric]]]]).any()),
        "two sides of a number without a threshold",
    )
    # A child without codes is the branch of missing values, or cannot be reached.
    orphan = np.flatnonzero(tree.n_codes[1:] == 0) + 1
    parent = tree.parent[orphan]
    _require(
        tree.missing_to[parent] == orphan - tree.first_child[parent],
        "a branch that no value leads to",
    )


def _validate_amounts(tree: Tree) -> None:
    """Reject nodes without cases or weight, or with more than their parents."""
    weight = tree.weights.sum(axis=1)
    _require(weight > 0, "a node without any weight")
    _require(tree.cases > 0, "a node without any case")
    splits_on = tree.n_children > 0
    for name, amount in (("weights", weight), ("cases", tree.cases)):
        below = np.bincount(tree.parent[1:], amount[1:], len(tree))
        _require(
            (below <= amount * (1 + _ROUNDING))[splits_on],
            f"the {name} of the branches add up to more than those of their node",
        )


def _validate_surrogates(tree: Tree, surrogates: Surrogates, schema: Schema) -> None:
    number, splits = surrogates.number, surrogates.splits
    m = len(splits.column)
    _require(
        bool(((number >= 0) & (number <= m)).all()) and int(number.sum()) == m,
        "n_surrogates must add up to the number of surrogates",
    )
    _require(
        tree.n_children[number > 0] == 2, "a surrogate of a node without two branches"
    )
    possible = (splits.column >= 0) & (splits.column < len(schema.columns))
    own = tree.column[np.repeat(np.arange(len(tree)), number)]
    _require(
        possible & (splits.column != own),
        "a surrogate on the node's own column or on one beyond those of the schema",
    )
    numeric = np.array([c.is_numeric for c in schema.columns])[splits.column]
    _require(
        bool((np.isfinite(splits.threshold) == numeric).all())
        and bool((np.isnan(splits.threshold) != numeric).all()),
        "a surrogate needs a threshold on numbers, and none on anything else",
    )
    _require(
        bool(((splits.n_codes >= 1) & (splits.n_codes <= len(splits.codes))).all())
        and int(splits.n_codes.sum()) == len(splits.codes),
        "surrogate_n_codes must add up, with a code for each branch",
    )
    sizes = np.array([2 if c.is_numeric else len(c.categories) for c in schema.columns])
    owner = np.repeat(np.arange(2 * m), splits.n_codes) // 2
    known = (splits.codes >= 0) & (splits.codes < sizes[splits.column[owner]])
    _require(known, "a code that is no value of a surrogate's column")
    key = owner * (int(sizes.max(initial=0)) + 1) + splits.codes
    _require(
        len(distinct(key)) == len(key), "two branches of a surrogate for the same value"
    )


@dataclass
class _Draft:
    column: int | None
    threshold: float
    codes: list[int]
    weights: Floats
    cases: float
    children: list[int]
    class_cases: Floats | None = None


class TreeBuilder:
    """Build a tree by hand, child by child.

    Examples
    --------
    >>> from branchwise.data.table_schema import Column, Schema
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
        self,
        schema: Schema,
        weights: Sequence[float],
        cases: float | None = None,
        class_cases: Sequence[float] | None = None,
    ) -> None:
        self.schema = schema
        self._columns = {name: index for index, name in enumerate(schema.names)}
        self._drafts = [self._draft([], weights, cases, class_cases)]

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
        class_cases: Sequence[float] | None = None,
    ) -> int:
        """Add a child where ``column`` has one of ``values``, or a number up to or
        above a threshold, or is missing; return the number of the node.

        ``weights`` are those of the classes. ``cases`` says how many cases they are
        of, ``class_cases`` how many of each class, for all nodes or for none; by
        default every case weighs 1.
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
        child = self._draft(codes, weights, cases, class_cases)
        numbers = [number for number in (at_most, above) if number is not None]
        threshold = float(numbers[0]) if numbers else np.nan
        self._agree(draft, parent, index, threshold)
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
            np.array([d.threshold for d in drafts]),
            n_children,
            missing_to,
            unseen_to,
            n_codes,
            np.array([code for d in drafts for code in d.codes], dtype=np.intp),
            weights,
            np.array([d.cases for d in drafts]),
        )
        given = [d.class_cases for d in drafts if d.class_cases is not None]
        if given and len(given) < len(drafts):
            raise DataError(
                f"class_cases must be given for all of the {len(drafts):,} nodes or "
                f"for none. Got it for {len(given):,}."
            )
        if given:
            tree = tree.with_class_cases(np.array(given))
        validate(tree, self.schema)
        return tree

    def _draft(
        self,
        codes: list[int],
        weights: Sequence[float],
        cases: float | None,
        class_cases: Sequence[float] | None,
    ) -> _Draft:
        given = self._by_class("weights", weights)
        counted = None
        if class_cases is not None:
            counted = self._by_class("class_cases", class_cases)
        if cases is None:
            cases = float((given if counted is None else counted).sum())
        return _Draft(None, np.nan, codes, given, float(cases), [], counted)

    def _by_class(self, name: str, amounts: Sequence[float]) -> Floats:
        given = np.asarray(amounts, dtype=np.float64)
        if given.shape != (len(self.schema.classes),):
            raise DataError(
                f"{name} must have one entry for each of the "
                f"{len(self.schema.classes)} classes. Got shape {given.shape}."
            )
        return given

    def _index(self, column: str) -> int:
        if column not in self._columns:
            raise DataError(f"{column!r} is not a column of the schema.")
        return self._columns[column]

    def _agree(self, draft: _Draft, node: int, index: int, threshold: float) -> None:
        """Check that all children of a node have the same column and threshold."""
        if draft.column not in (None, index):
            raise DataError(f"Node {node} has children on another column already.")
        if (
            not np.isnan(threshold)
            and not np.isnan(draft.threshold)
            and draft.threshold != threshold
        ):
            raise DataError(f"Node {node} has the threshold {draft.threshold} already.")
        draft.column = index
        draft.threshold = draft.threshold if np.isnan(threshold) else threshold

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
