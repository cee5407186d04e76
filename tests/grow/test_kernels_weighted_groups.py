"""Groups of values of cases with weights: the compiled kernel equals the reference."""

from __future__ import annotations

import numpy as np
import pytest

from branchwise import Recipe
from branchwise.data.table_schema import Column, Columns
from branchwise.data.target import Classes
from branchwise.data.weights import weigh
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.grow import native_kernel as native
from branchwise.grow.grow import grow
from branchwise.recipe.parameters import BUILT_IN
from kernel_problems import assert_same_tree
from selection import first_fast

pytest.importorskip(
    "branchwise._native", reason="installed without the compiled extension"
)

N_TABLES, PARTS = 2000, 100


def weighted_problem(seed: int):
    """Rows with weights, or that missing values divide, of up to 40 values a column."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([20, 60, 200, 500]))
    n_classes = int(rng.choice([2, 3, 3, 5, 20, 70]))
    sizes = rng.integers(2, rng.choice([9, 13, 30, 41]), size=int(rng.integers(1, 5)))
    missing = str(rng.choice(["branch", "learned", "split", "largest", "surrogate"]))
    columns, cells = [], []
    for j, size in enumerate(sizes.tolist()):
        codes = (size * rng.random(n) ** rng.choice([1, 1, 3])).astype(np.uint8)
        has_missing = rng.random() < 0.6
        if has_missing:
            codes[rng.random(n) < rng.choice([0.05, 0.3])] = size
        columns.append(Column(f"x{j}", "categorical", tuple(range(size)), has_missing))
        cells.append(codes)
    truth = (cells[0] // 2 + cells[-1]) % n_classes
    noise = rng.integers(0, n_classes, n)
    labels = np.where(rng.random(n) < rng.choice([0.0, 0.1, 0.5]), noise, truth)
    # Halves and equal weights have equal scores, tenths have almost equal ones.
    weights = [
        None,
        rng.integers(1, 4, n) / 2,
        rng.integers(0, 20, n) / 10,
        rng.random(n),
        rng.random(n) * 2.0 ** rng.integers(-30, 30, n),
    ][int(rng.integers(5))]
    two_way = missing in ("learned", "surrogate") or rng.random() < 0.6
    recipe = Recipe(
        criterion=str(rng.choice(["gain", "gain_ratio", *BUILT_IN])),
        branching="two-way" if two_way else "groups",
        missing=missing,
        unseen=str(rng.choice(["node", "largest"])),
        min_samples_leaf=int(rng.choice([1, 1, 1, 4])),
        min_gain=float(rng.choice([0, 0, 0.01])),
    )
    data = Columns(n, tuple(cells))
    grid = weigh(weights, n, fractions=missing == "split")
    return columns, data, labels.astype(np.intp), n_classes, grid, recipe


@pytest.mark.parametrize("part", first_fast(range(PARTS)))
def test_same_tree_of_weighted_groups(part):
    n_splits = 0
    for seed in range(part, N_TABLES, PARTS):
        problem = weighted_problem(seed)
        columns, data, labels, n_classes, grid, recipe = problem
        engine = MemoryEngine(columns, data, Classes(labels, n_classes), grid)
        reference = grow(engine, columns, recipe)
        assert_same_tree(reference, native.grow_native(*problem), (seed, recipe))
        n_splits += int(np.count_nonzero(reference.n_codes > 1))
    assert n_splits > 50
