"""Random tables for both kernels, and the comparison of their trees."""

from __future__ import annotations

import numpy as np

from branchwise import Recipe
from branchwise.data.arrays import number_kind
from branchwise.data.table_schema import Column, Columns
from branchwise.data.weights import weigh
from branchwise.recipe.parameters import BUILT_IN, POLICIES, THRESHOLDS
from branchwise.tree.tree import ARRAYS, Tree


def random_column(rng: np.random.Generator, name: str, n: int):
    if rng.random() < 0.35:
        x = rng.normal(size=n).round(int(rng.integers(0, 4)))
        if rng.random() < 0.5:
            x[rng.random(n) < 0.2] = np.nan
        if rng.random() < 0.1:
            x[:] = 3.0  # constant
        missing = bool(np.isnan(x).any())
        return Column(name, "numeric", (), missing, number_kind=number_kind(x)), x
    size = int(rng.choice([1, 2, 3, 5, 12, 64, 65, 300]))
    codes = rng.integers(0, size, n)
    if rng.random() < 0.5:
        codes[rng.random(n) < 0.2] = size
    values = tuple(range(size))
    column = Column(name, "categorical", values, bool((codes == size).any()))
    return column, codes.astype(column.code_dtype)


def random_weights(rng: np.random.Generator, n: int):
    kind = rng.random()
    if kind < 0.5:
        return None
    weights = rng.random(n) if kind < 0.75 else rng.integers(0, 4, n).astype(float)
    weights[0] += 1.0
    return weights


def random_problem(seed: int):
    """A table of 1 to 400 rows with ties, gaps, numbers, weights and a recipe."""
    rng = np.random.default_rng(seed)
    n = int(
        rng.choice([1, 2, 5, 17, 60, 150, 400], p=[0.05, 0.05, 0.2, 0.3, 0.2, 0.1, 0.1])
    )
    only_values = rng.random() < 0.3
    made = [random_column(rng, f"x{j}", n) for j in range(int(rng.integers(1, 7)))]
    if only_values:
        made = [m for m in made if not m[0].is_numeric] or made
    columns = [column for column, _ in made]
    data = Columns(n, tuple(cells for _, cells in made))
    n_classes = int(rng.choice([1, 2, 2, 3, 5, 60]))
    labels = rng.integers(0, n_classes, n).astype(np.intp)
    recipe = Recipe(
        criterion=BUILT_IN[int(rng.integers(0, 3))],
        max_depth=rng.choice([None, None, 0, 1, 3]),
        min_samples_split=int(rng.choice([2, 2, 5])),
        min_samples_leaf=int(rng.choice([1, 1, 3])),
        min_gain=float(rng.choice([0.0, 0.0, 0.05])),
        min_weight_fraction_leaf=float(rng.choice([0.0, 0.0, 0.0, 0.1])),
        threshold=THRESHOLDS[seed % 3],
        missing=POLICIES[int(rng.integers(0, 4))],
        unseen=POLICIES[int(rng.integers(0, 4))],
    )
    weights = random_weights(rng, n)
    fractions = recipe.missing == "split" and any(c.has_missing for c in columns)
    return columns, data, labels, n_classes, weigh(weights, n, fractions), recipe


def assert_same_tree(one: Tree, other: Tree, context: object) -> None:
    for spec in ARRAYS:
        np.testing.assert_array_equal(
            getattr(one, spec.name),
            getattr(other, spec.name),
            f"{spec.name}: {context}",
        )


def shared_problem(n_numeric: int):
    """A table whose nodes threads share out, as grow_native takes it."""
    rng = np.random.default_rng(3)
    n = 50_000
    columns = [Column(f"x{j}", "categorical", tuple(range(9))) for j in range(8)]
    cells = [rng.integers(0, 9, n).astype(np.uint8) for _ in columns]
    columns += [Column(f"n{j}", "numeric", ()) for j in range(n_numeric)]
    cells += [rng.normal(size=n) for _ in range(n_numeric)]
    labels = rng.integers(0, 2, n).astype(np.intp)
    grid = weigh(None, n, fractions=False)
    return columns, Columns(n, tuple(cells)), labels, 2, grid, Recipe()


def unseen_rows(rng: np.random.Generator, columns, n: int) -> Columns:
    cells = []
    for column in columns:
        if column.is_numeric:
            numbers = rng.normal(size=n).round(1)
            numbers[rng.random(n) < 0.2] = np.nan
            cells.append(numbers)
        else:
            codes = rng.integers(0, column.unseen_code + 1, n)
            cells.append(codes.astype(column.code_dtype))
    return Columns(n, tuple(cells))
