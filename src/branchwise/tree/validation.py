"""Validation of the arrays of a tree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Ints, distinct
from branchwise.data.table_schema import Schema
from branchwise.errors import DataError
from branchwise.tree.splits import EVERY_BRANCH, STOP, Surrogates
from branchwise.tree.tree import OPTIONAL_ARRAYS, Tree

#: Tolerance of sums of fractional cases, each rounded, relative to the whole.
_ROUNDING = 1e-6
#: Codes are marked where there are at most so many cells for each of them.
_CELLS_A_CODE = 64


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
    validate_shapes(tree, n, width)
    _validate_structure(tree, n)
    _validate_thresholds(tree, schema)
    _validate_codes(tree, schema)
    for name in ("weights", "cases", "deviation"):
        _require_amounts(tree, name)
    if tree.surrogates is not None:
        _validate_surrogates(tree, tree.surrogates, schema)
    if tree.prediction is not None:
        possible = (tree.prediction >= 0) & (tree.prediction < width)
        _require(possible, "a prediction that is none of the classes")
    if tree.mean is not None:
        _require(np.isfinite(tree.mean), "a mean that is not finite")
    _validate_sums(tree)
    if tree.class_cases is not None:
        _require(not tree.is_regression, "cases of classes in a tree of numbers")
        _require_amounts(tree, "class_cases")
        difference = np.abs(tree.class_cases.sum(axis=1) - tree.cases)
        _require(
            difference <= _ROUNDING * np.maximum(tree.cases, 1.0),
            "array 'class_cases' does not add up to 'cases'",
        )


def _require(condition: NDArray[np.bool_] | bool, complaint: str) -> None:
    if not np.all(condition):
        raise DataError(f"Not a sane tree: {complaint}.")


def _require_amounts(tree: Tree, name: str) -> None:
    array = getattr(tree, name)
    _require(
        array is None or (np.isfinite(array) & (array >= 0)),
        f"array {name!r} has entries that are negative or not finite",
    )


def validate_shapes(tree: Tree, n: int, width: int) -> None:
    """Reject arrays whose sizes are not those of n nodes with ``width`` weights."""
    shape = {"weights": (n, width), "class_cases": (n, width), "codes": (-1,)}
    if tree.surrogate_column is not None:
        m = len(tree.surrogate_column)
        shape |= {"surrogate_column": (m,), "surrogate_threshold": (m,)}
        shape |= {"surrogate_n_codes": (2 * m,), "surrogate_codes": (-1,)}
    for spec in tree.arrays:
        array = getattr(tree, spec.name)
        expected = shape.get(spec.name, (n,))
        if expected == (-1,):  # as many as there are
            expected = (len(array),)
        _require(
            array.shape == expected,
            f"array {spec.key!r} has shape {array.shape}, expected {expected}",
        )


def _validate_structure(tree: Tree, n: int) -> None:
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
        ((tree.column >= 0) == (tree.n_children > 0)) & (tree.column >= -1),
        "a node needs both a column and children, or neither",
    )
    _require(
        _adds_up(tree.n_codes, 0, len(tree.codes)),
        "n_codes must add up to the number of codes",
    )
    for name in ("missing_to", "unseen_to"):
        branch = getattr(tree, name)
        possible = (branch >= EVERY_BRANCH) & (branch < tree.n_children)
        _require(
            possible & (~tree.is_leaf | (branch == STOP)),
            f"{name} points to a branch that is not there",
        )


def _adds_up(numbers: Ints, least: int, total: int) -> bool:
    """Whether numbers add up to a total, none of them being below the least."""
    within = (numbers >= least) & (numbers <= total)
    return bool(within.all()) and int(numbers.sum()) == total


def _validate_thresholds(tree: Tree, schema: Schema) -> None:
    _require(tree.column < len(schema.columns), "a column beyond those of the schema")
    # The last entry is that of leaves, whose column is -1.
    numeric = np.array([*(column.is_numeric for column in schema.columns), False])
    _require(
        np.isnan(tree.threshold[~numeric[tree.column]]),
        "a threshold on a column without numbers",
    )
    _require(~np.isinf(tree.threshold), "an infinite threshold")


def _n_values(schema: Schema) -> Ints:
    """Return how many codes each column has: two sides of a threshold, or values."""
    return np.array([2 if c.is_numeric else len(c.categories) for c in schema.columns])


def _validate_codes(tree: Tree, schema: Schema) -> None:
    sizes = _n_values(schema)
    owner = np.repeat(np.arange(len(tree)), tree.n_codes)
    _require(owner != 0, "codes that lead to the root")
    parent = tree.parent[owner]
    column = tree.column[parent]
    _require(
        (tree.codes >= 0) & (tree.codes < sizes[column]),
        "a code that is no value of its column",
    )
    _require_once(parent, tree.codes, sizes, "two branches of a node")
    # Without a threshold the two sides of a number are not defined.
    numeric = np.array([c.is_numeric for c in schema.columns])[column]
    sided = numeric & (tree.n_codes[owner] == 1)
    _require(
        ~np.isnan(tree.threshold[parent[sided]]),
        "two sides of a number without a threshold",
    )
    # A child without codes is the branch of missing values, or cannot be reached.
    orphan = np.flatnonzero(tree.n_codes[1:] == 0) + 1
    parent = tree.parent[orphan]
    _require(
        tree.missing_to[parent] == orphan - tree.first_child[parent],
        "a branch that no value leads to",
    )


def _require_once(owner: Ints, codes: Ints, sizes: Ints, what: str) -> None:
    """Reject an owner that has a code twice."""
    width = int(sizes.max(initial=0)) + 1
    key = owner * width + codes
    n_cells = (int(owner.max(initial=-1)) + 1) * width
    if n_cells <= _CELLS_A_CODE * len(key):  # marking them is faster than sorting
        seen = np.zeros(n_cells, dtype=bool)
        seen[key] = True
        n_distinct = int(np.count_nonzero(seen))
    else:
        n_distinct = len(distinct(key))
    _require(n_distinct == len(key), f"{what} for the same value")


def _validate_sums(tree: Tree) -> None:
    """Reject nodes without cases or weight, or with more than their parents."""
    weight = tree.weights.sum(axis=1)
    _require(weight > 0, "a node without any weight")
    _require(tree.cases > 0, "a node without any case")
    for name, amount in (("weights", weight), ("cases", tree.cases)):
        below = np.bincount(tree.parent[1:], amount[1:], len(tree))
        _require(
            (below <= amount * (1 + _ROUNDING))[~tree.is_leaf],
            f"the {name} of the branches add up to more than those of their node",
        )


def _validate_surrogates(tree: Tree, surrogates: Surrogates, schema: Schema) -> None:
    number, splits = surrogates.number, surrogates.splits
    m = len(splits.column)
    _require(
        _adds_up(number, 0, m), "n_surrogates must add up to the number of surrogates"
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
    finite, absent = np.isfinite(splits.threshold), np.isnan(splits.threshold)
    _require(
        (finite == numeric) & (absent != numeric),
        "a surrogate needs a threshold on numbers, and none on anything else",
    )
    _require(
        _adds_up(splits.n_codes, 1, len(splits.codes)),
        "surrogate_n_codes must add up, with a code for each branch",
    )
    sizes = _n_values(schema)
    owner = np.repeat(np.arange(2 * m), splits.n_codes) // 2
    known = (splits.codes >= 0) & (splits.codes < sizes[splits.column[owner]])
    _require(known, "a code that is no value of a surrogate's column")
    _require_once(owner, splits.codes, sizes, "two branches of a surrogate")
