"""Groups of values in bit rows: the compiled kernel equals the reference."""

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

N_TABLES = 5000


def grouped_problem(seed: int):
    """Rows that count as one, of categories alone, in small and large tables."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([30, 200, 300, 900]))
    n_classes = int(rng.choice([2, 2, 2, 3, 5]))
    widest = 65 if rng.random() < 0.1 else 13
    sizes = rng.integers(1, widest, size=int(rng.integers(1, 9)))
    may_miss = rng.random() < 0.3
    columns, cells = [], []
    for j, size in enumerate(sizes.tolist()):
        codes = (size * rng.random(n) ** rng.choice([1, 1, 3])).astype(np.uint8)
        has_missing = may_miss and size < 64 and rng.random() < 0.7
        if has_missing:
            codes[rng.random(n) < 0.1] = size
        columns.append(Column(f"x{j}", "categorical", tuple(range(size)), has_missing))
        cells.append(codes)
    noise = rng.integers(0, n_classes, n)
    truth = (cells[0] // 2 + cells[-1]) % n_classes
    labels = np.where(rng.random(n) < rng.choice([0.0, 0.1, 0.5]), noise, truth)
    recipe = Recipe(
        criterion=str(rng.choice(["gini", "gini", *BUILT_IN])),
        branching="two-way" if rng.random() < 0.8 else "groups",
        missing="branch" if may_miss else str(rng.choice(["branch", "largest"])),
        unseen=str(rng.choice(["node", "largest"])),
        min_samples_leaf=int(rng.choice([1, 1, 1, 5])),
        min_gain=float(rng.choice([0, 0, 0.01])),
        max_depth=None if rng.random() < 0.8 else 3,
    )
    data, grid = Columns(n, tuple(cells)), weigh(None, n, fractions=False)
    return columns, data, labels.astype(np.intp), n_classes, grid, recipe


@pytest.mark.parametrize("part", first_fast(range(250)))
def test_same_tree_of_groups(part, monkeypatch):
    shared = 0
    for seed in range(part, N_TABLES, 250):
        problem = grouped_problem(seed)
        columns, data, labels, n_classes, grid, recipe = problem
        engine = MemoryEngine(columns, data, Classes(labels, n_classes), grid)
        reference = grow(engine, columns, recipe)
        assert_same_tree(reference, native.grow_native(*problem), (seed, recipe))
        if (seed // 250) % 4 == 0:
            monkeypatch.setattr(native, "WORTH_SHARING", 100)
            twin = native.grow_native(*problem, n_threads=2)
            assert_same_tree(reference, twin, (seed, recipe))
        shared += bool((reference.n_codes > 1).any())
    assert shared >= N_TABLES // 500
