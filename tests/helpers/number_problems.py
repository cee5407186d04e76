"""Random tables with numbers as targets, and the comparison of their trees."""

from __future__ import annotations

import numpy as np

from branchwise import Recipe
from branchwise.data.table_schema import Columns
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


def same_numbers(one: Tree, other: Tree, context: object) -> None:
    """Check that two trees have the same nodes, means and deviations."""
    for name in (*(spec.name for spec in ARRAYS), "mean", "deviation"):
        np.testing.assert_array_equal(
            getattr(one, name), getattr(other, name), f"{name}: {context}"
        )
