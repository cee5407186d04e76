"""Sorted lists of subtrees: the tree of the reference, and of nodes without such lists.

A subtree of at most 65,535 rows has lists of two bytes a row, if one thread grows the
tree, cases are whole, and there are at most 256 classes. Several threads, and tables
beyond these limits, read the longer entries that all nodes had before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from branchwise import Recipe
from branchwise.data.table_schema import Column, Columns
from branchwise.data.target import Classes
from branchwise.data.weights import weigh
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.grow import native_kernel as native
from branchwise.grow.grow import grow
from branchwise.recipe import CART
from branchwise.tree.tree import ARRAYS, Tree
from selection import first_fast

pytest.importorskip(
    "branchwise._native", reason="installed without the compiled extension"
)


def assert_same_tree(one: Tree, other: Tree, context: object) -> None:
    for spec in ARRAYS:
        np.testing.assert_array_equal(
            getattr(one, spec.name),
            getattr(other, spec.name),
            f"{spec.name}: {context}",
        )


def table(rng: np.random.Generator, n: int, n_columns: int, labels, gaps: float):
    """Numbers of all sizes, some repeating, and a column of categories."""
    columns, cells = [], []
    for j in range(n_columns):
        x = rng.normal(size=n) + float(rng.choice([0.0, 0.5])) * (labels % 7)
        x = x.round(int(rng.choice([2, 3, 12])))
        x[rng.random(n) < gaps] = np.nan
        columns.append(Column(f"x{j}", "numeric", (), bool(np.isnan(x).any())))
        cells.append(x)
    columns.append(Column("c", "categorical", tuple(range(5)), False))
    cells.append(rng.integers(0, 5, n).astype(np.uint8))
    return columns, Columns(n, tuple(cells))


def grown(columns, data, labels, recipe, weights=None, n_threads=1) -> Tree:
    n_classes = int(labels.max()) + 1
    grid = weigh(weights, data.n_rows, fractions=False)
    return native.grow_native(columns, data, labels, n_classes, grid, recipe, n_threads)


def reference(columns, data, labels, recipe, weights=None) -> Tree:
    grid = weigh(weights, data.n_rows, fractions=False)
    classes = Classes(labels, int(labels.max()) + 1)
    return grow(MemoryEngine(columns, data, classes, grid), columns, recipe)


@pytest.mark.parametrize("n", [65_535, 65_536])
@pytest.mark.parametrize("missing", ["branch", "learned", "largest"])
def test_same_tree_where_the_root_is_too_large_or_just_not(n, missing):
    rng = np.random.default_rng([n, len(missing)])
    labels = rng.integers(0, 3, n)
    gaps = 0.0 if missing == "branch" else 0.02
    columns, data = table(rng, n, 3, labels, gaps)
    recipe = replace(CART, missing=missing, max_depth=5)
    tree = grown(columns, data, labels, recipe)
    assert_same_tree(reference(columns, data, labels, recipe), tree, missing)
    deep = replace(recipe, max_depth=None)
    several = grown(columns, data, labels, deep, n_threads=2)
    assert_same_tree(several, grown(columns, data, labels, deep), missing)
    assert several.max_depth > 12


@pytest.mark.parametrize("n_classes", [255, 256, 257])
def test_same_tree_of_so_many_classes(n_classes):
    """Labels of subtrees have a byte."""
    rng = np.random.default_rng(n_classes)
    n = 3_000
    labels = rng.permutation(np.arange(n) % n_classes)
    columns, data = table(rng, n, 2, labels, 0.01)
    recipe = replace(CART, missing="learned", max_depth=7)
    tree = grown(columns, data, labels, recipe)
    assert_same_tree(reference(columns, data, labels, recipe), tree, n_classes)


@pytest.mark.parametrize("part", first_fast(range(16)))
def test_same_tree_with_and_without_lists_of_subtrees(part, monkeypatch):
    """Weights, missing values in a branch of their own or with either side."""
    # Two threads share every node, however small.
    monkeypatch.setattr(native, "WORTH_SHARING", 1)
    for seed in range(part, 320, 16):
        rng = np.random.default_rng([seed, 3])
        n = int(rng.choice([20, 97, 260, 1_500, 6_000]))
        labels = rng.integers(0, int(rng.choice([2, 2, 3, 5, 40])), n)
        columns, data = table(rng, n, 3, labels, float(rng.choice([0.0, 0.05])))
        if rng.random() < 0.3:  # nothing but numbers, so that branches may be many
            columns, data = columns[:-1], Columns(n, data.data[:-1])
        base = [CART, CART, Recipe(), Recipe(criterion="gain_ratio")][
            int(rng.integers(0, 4))
        ]
        policies = ["branch", "largest", "node", *(["learned"] * 3)]
        recipe = replace(
            base,
            missing=str(rng.choice(policies if base is CART else policies[:3])),
            min_samples_leaf=int(rng.choice([1, 1, 7])),
            min_weight_fraction_leaf=float(rng.choice([0.0, 0.0, 0.02])),
            max_depth=[None, 3, 30][int(rng.integers(0, 3))],
        )
        weights = [None, None, rng.integers(1, 4, n) * 1.0, rng.random(n)][
            int(rng.integers(0, 4))
        ]
        tree = grown(columns, data, labels, recipe, weights)
        several = grown(columns, data, labels, recipe, weights, n_threads=2)
        assert_same_tree(several, tree, (seed, recipe))
        if n < 1_000:  # the reference takes its time
            expected = reference(columns, data, labels, recipe, weights)
            assert_same_tree(expected, tree, (seed, recipe))
