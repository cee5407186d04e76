"""Random tables with numbers as targets, and the comparison of their trees."""

from __future__ import annotations

import numpy as np

from branchwise import Recipe
from branchwise.data.table_schema import Column, Columns
from branchwise.data.weights import weigh
from branchwise.tree.tree import ARRAYS, Tree
from kernel_problems import random_column, random_weights


def random_target(rng: np.random.Generator, n: int):
    """Numbers with ties, outliers, few digits or many."""
    kind = int(rng.integers(0, 9))
    plain = rng.normal(size=n)
    return [
        plain,
        plain.round(1),
        rng.integers(0, 4, n).astype(float),
        np.where(rng.random(n) < 0.1, plain * 1e30, plain),
        plain * 1e-9 + 1e9,
        plain * 10.0 ** rng.integers(-40, 40, n),
        np.full(n, 0.1),
        rng.poisson(1.5, n).astype(float),
        plain * 2.0 ** rng.integers(-300, 200, n),
    ][kind]


def random_number_problem(seed: int):
    """A table of 1 to 400 rows with ties, gaps, weights, and a recipe of regression."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 5, 17, 60, 150, 400], p=[0.05, 0.05, *[0.18] * 5]))
    made = [random_column(rng, f"x{j}", n) for j in range(int(rng.integers(1, 6)))]
    columns = [column for column, _ in made]
    data = Columns(n, tuple(cells for _, cells in made))
    y = random_target(rng, n)
    codes = made[0][1]
    if rng.random() < 0.5:  # something to find
        y = y + np.nan_to_num(codes.astype(float)) % 3 * float(np.abs(y).max())
    poisson = bool(rng.random() < 0.3)
    recipe = Recipe(
        criterion="poisson" if poisson else "variance",
        branching=str(rng.choice(["two-way", "two-way", "values"])),  # type: ignore[arg-type]
        max_depth=rng.choice([None, None, 0, 1, 3]),
        min_samples_split=int(rng.choice([2, 2, 5])),
        min_samples_leaf=int(rng.choice([1, 1, 3])),
        min_gain=float(rng.choice([0.0, 0.0, 0.05])),
        min_weight_fraction_leaf=float(rng.choice([0.0, 0.0, 0.0, 0.1])),
        missing=str(rng.choice(["branch", "largest", "node", "split"])),  # type: ignore[arg-type]
        unseen=str(rng.choice(["branch", "split", "largest", "node"])),  # type: ignore[arg-type]
        threshold=str(rng.choice(["midpoint", "midpoint", "value"])),  # type: ignore[arg-type]
    )
    weights = random_weights(rng, n)
    if poisson:
        y = np.abs(y)
        y[0] += 1.0
        if weights is not None and not (y * weights).any():
            weights = None
    return columns, data, y, weigh(weights, n, recipe.missing == "split"), recipe


def random_subtree_problem(seed: int):
    """A table of 30 to 1,500 complete rows that are grown as whole subtrees.

    Columns have ties, many values or those of another column, targets few distinct
    numbers or outliers, and rows may be repeated.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.choice([rng.integers(30, 80), rng.integers(80, 400), 1500]))
    made = [_complete_column(rng, f"x{j}", n) for j in range(int(rng.integers(1, 6)))]
    columns = [column for column, _ in made]
    cells = [column_cells for _, column_cells in made]
    if rng.random() < 0.3:
        columns.append(Column("copy", "numeric", (), False))
        cells.append(cells[0].astype(float))
    plain = rng.normal(size=n)
    found = cells[0].astype(float) % 3 + plain
    y = [
        found,
        found.round(),
        (plain > 0.5).astype(float),
        np.where(rng.random(n) < 0.9, 0.0, plain),
        1e6 + found * 1e-9,
        found * np.where(rng.random(n) < 0.01, 1e30, 1.0),
    ][int(rng.integers(0, 6))]
    if rng.random() < 0.3:
        again = np.sort(rng.integers(0, n, n))
        cells, y = [one[again] for one in cells], y[again]
    recipe = Recipe(
        criterion="variance",
        branching=str(rng.choice(["two-way", "two-way", "values"])),  # type: ignore[arg-type]
        max_depth=rng.choice([None, None, 4, 9]),
        min_samples_split=int(rng.choice([2, 2, 5, 40])),
        min_samples_leaf=int(rng.choice([1, 1, 2, 3, 20])),
        min_samples_branch=int(rng.choice([0, 0, 0, 4])),
    )
    return columns, Columns(n, tuple(cells)), y, weigh(None, n, False), recipe


def random_times(rng: np.random.Generator, n: int):
    """How often rows count: as in a bootstrap sample, a few times, or very often."""
    drawn = np.bincount(rng.integers(0, n, n), minlength=n)
    often = rng.choice([1, 2, 255], n, p=[0.9, 0.05, 0.05])
    times = [drawn, rng.integers(0, 4, n), often][int(rng.integers(0, 3))]
    return np.maximum(times, 1).astype(np.uint8)


def _complete_column(rng: np.random.Generator, name: str, n: int):
    kind = int(rng.integers(0, 5))
    if kind < 3:
        numbers = [
            rng.normal(size=n),
            rng.normal(size=n).round(1),
            rng.integers(0, int(rng.choice([5, 60, 700])), n).astype(float),
        ][kind]
        return Column(name, "numeric", (), False), numbers
    size = int(rng.choice([2, 7, 64, 65, 300]))
    codes = rng.integers(0, size, n).astype(np.uint8 if size < 256 else np.uint16)
    return Column(name, "categorical", tuple(range(size)), False), codes


def same_numbers(one: Tree, other: Tree, context: object) -> None:
    """Check that two trees have the same nodes, means and deviations."""
    for name in (*(spec.name for spec in ARRAYS), "mean", "deviation"):
        np.testing.assert_array_equal(
            getattr(one, name), getattr(other, name), f"{name}: {context}"
        )
