"""Validation of the arrays of a tree against a schema."""

from __future__ import annotations

import numpy as np

from branchwise.data.arrays import distinct
from branchwise.data.schema import Schema
from branchwise.errors import DataError
from branchwise.tree.splits import EVERY_BRANCH, STOP, Surrogates
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
                bool((np.isfinite(array) & (array >= 0)).all()),
                f"array {spec.key!r} has entries that are negative or not finite",
            )
    if tree.surrogates is not None:
        _validate_surrogates(tree, tree.surrogates, schema)
    if tree.prediction is not None:
        possible = (tree.prediction >= 0) & (tree.prediction < width)
        _require(bool(possible.all()), "a prediction that is none of the classes")
    if tree.mean is not None:
        _require(bool(np.isfinite(tree.mean).all()), "a mean that is not finite")
    _validate_amounts(tree)
    _validate_class_cases(tree)


def _validate_class_cases(tree: Tree) -> None:
    """Reject cases of classes that do not add up to the cases of the node."""
    if tree.class_cases is None:
        return
    _require(not tree.is_regression, "cases of classes in a tree of numbers")
    cases = tree.class_cases
    _require(
        bool((np.isfinite(cases) & (cases >= 0)).all()),
        "array 'class_cases' has entries that are negative or not finite",
    )
    total = cases.sum(axis=1)
    slack = _SAME_CASES * np.maximum(tree.cases, 1.0)
    _require(
        bool((np.abs(total - tree.cases) <= slack).all()),
        "array 'class_cases' does not add up to 'cases'",
    )


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
    # Every node must be the child of an earlier node.
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
    threshold = tree.threshold
    _require(
        bool(np.isnan(threshold[~is_numeric]).all()),
        "a threshold on a column without numbers",
    )
    _require(not bool(np.isinf(threshold).any()), "an infinite threshold")


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
        bool((tree.missing_to[parent] == orphan - tree.first_child[parent]).all()),
        "a branch that no value leads to",
    )


def _validate_amounts(tree: Tree) -> None:
    """Reject nodes without cases or weight, or with more than their parents."""
    weight = tree.weights.sum(axis=1)
    _require(bool((weight > 0).all()), "a node without any weight")
    _require(bool((tree.cases > 0).all()), "a node without any case")
    splits_on = tree.n_children > 0
    for name, amount in (("weights", weight), ("cases", tree.cases)):
        below = np.bincount(tree.parent[1:], amount[1:], len(tree))
        _require(
            bool((below <= amount * (1 + _ROUNDING))[splits_on].all()),
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
        bool((tree.n_children[number > 0] == 2).all()),
        "a surrogate of a node without two branches",
    )
    possible = (splits.column >= 0) & (splits.column < len(schema.columns))
    own = tree.column[np.repeat(np.arange(len(tree)), number)]
    _require(
        bool((possible & (splits.column != own)).all()),
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
    _require(bool(known.all()), "a code that is no value of a surrogate's column")
    key = owner * (int(sizes.max(initial=0)) + 1) + splits.codes
    _require(
        len(distinct(key)) == len(key),
        "two branches of a surrogate for the same value",
    )
