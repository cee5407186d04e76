"""Thresholds by gain ratio, without C4.5's rules: the tree of the reference.

Ratios are large where there is little on a side, so that the first and the last
thresholds of a list compete with those that tell the classes.
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
from kernel_problems import assert_same_tree
from selection import examples, first_fast

pytest.importorskip(
    "branchwise._native", reason="installed without the compiled extension"
)

N_TABLES = 4800


def random_weights(rng: np.random.Generator, n: int):
    """None, whole, fractional, or of very different sizes, some being nothing."""
    kind = int(rng.choice([0, 0, 0, 1, 2, 3, 4]))
    if kind == 0:
        return None
    if kind == 1:
        return rng.integers(1, 4, n).astype(float)
    if kind == 2:
        return rng.exponential(size=n)
    if kind == 3:
        return 10.0 ** rng.integers(-12, 3, n)
    weights = rng.random(n) * (rng.random(n) < 0.8)
    weights[0] = 1.0
    return weights


def random_labels(rng: np.random.Generator, n: int):
    """Classes of equal or of very different sizes."""
    n_classes = int(rng.choice([2, 2, 2, 3, 3, 4, 7, 40]))
    power = float(rng.choice([1.0, 1.0, 3.0, 9.0]))
    return (n_classes * rng.random(n) ** power).astype(np.intp), n_classes


def random_cells(rng: np.random.Generator, n: int, labels, gaps: float):
    """Numbers that tell the class, all of them or at one end; few values; ties."""
    columns, cells = [], []
    for j in range(int(rng.integers(1, 5))):
        kind = int(rng.integers(0, 5))
        x = rng.normal(size=n)
        if kind == 1:
            x += labels * float(rng.choice([0.3, 3.0]))
        elif kind == 2:  # one end is pure
            x = np.where((labels == 0) & (rng.random(n) < 0.05), x + 9, x)
        elif kind == 3:
            x = rng.integers(0, int(rng.choice([2, 5, 30])), n).astype(float)
        x = x.round(int(rng.choice([0, 1, 2, 12, 12])))
        x[rng.random(n) < gaps] = np.nan
        columns.append(Column(f"n{j}", "numeric", (), bool(np.isnan(x).any())))
        cells.append(x)
    for j in range(int(rng.integers(0, 3))):
        size = int(rng.choice([2, 4, 9]))
        codes = rng.integers(0, size, n)
        codes[rng.random(n) < gaps] = size
        missing = bool((codes == size).any())
        columns.append(Column(f"c{j}", "categorical", tuple(range(size)), missing))
        cells.append(codes.astype(columns[-1].code_dtype))
    if rng.random() < 0.2:  # columns that tie, one in the opposite order
        columns.append(replace(columns[0], name="again"))
        cells.append(rng.choice([-1.0, 1.0]) * cells[0])
    return columns, cells


def random_recipe(rng: np.random.Generator):
    branching = str(rng.choice(["values", "values", "two-way"]))
    missing = ["branch", "split", "split", "largest", "node", "learned", "surrogate"]
    return Recipe(
        criterion="gain_ratio",
        branching=branching,
        missing=str(rng.choice(missing[: 5 + 2 * (branching == "two-way")])),
        min_samples_leaf=int(rng.choice([1, 1, 1, 2, 10])),
        min_samples_split=int(rng.choice([2, 2, 12])),
        min_samples_branch=int(rng.choice([0, 0, 3])),
        min_weight_fraction_leaf=float(rng.choice([0.0, 0.0, 0.02])),
        min_gain=float(rng.choice([0.0, 0.0, 0.003, 0.05])),
        max_p_value=float(rng.choice([0.5, 0.01])) if rng.random() < 0.15 else None,
        max_depth=None if rng.random() < 0.5 else int(rng.integers(1, 6)),
        average_gain=bool(rng.random() < 0.1),
    )


def check(seed: int) -> bool:
    """Grow a tree twice; returns whether the native kernel could tell all p-values."""
    rng = np.random.default_rng([seed, 15])
    n = int(rng.choice([4, 30, 64, 65, 96, 98, 131, 300, 700, 1500]))
    labels, n_classes = random_labels(rng, n)
    columns, cells = random_cells(rng, n, labels, float(rng.choice([0.0, 0.05, 0.3])))
    recipe = random_recipe(rng)
    data = Columns(n, tuple(cells))
    fractions = recipe.missing == "split" and any(c.has_missing for c in columns)
    grid = weigh(random_weights(rng, n), n, fractions)
    engine = MemoryEngine(columns, data, Classes(labels, n_classes), grid)
    threads = int(rng.choice([1, 1, 3]))
    twin = native.grow_native(columns, data, labels, n_classes, grid, recipe, threads)
    if twin is None:
        return False
    assert_same_tree(grow(engine, columns, recipe), twin, (seed, recipe))
    return True


@pytest.mark.parametrize("part", first_fast(range(96)))
def test_same_tree_by_gain_ratio(part, monkeypatch):
    monkeypatch.setattr(native, "WORTH_SHARING", 500)
    seeds = range(part, N_TABLES, 96)
    assert sum(check(seed) for seed in seeds) > 0.9 * len(seeds)


@pytest.mark.parametrize("weighted", [False, True])
def test_ends_of_a_list_win_by_ratio(weighted):
    """A pure row at an end has a larger ratio than a threshold that gains most."""
    at_end = 0
    for seed in range(examples(50)):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([200, 2000]))
        labels = rng.integers(0, 2, n).astype(np.intp)
        x = rng.normal(size=n) + 0.1 * labels
        columns = [Column("x", "numeric", (), False)]
        grid = weigh(rng.random(n) + 0.5 if weighted else None, n, False)
        trees = [
            native.grow_native(columns, Columns(n, (x,)), labels, 2, grid, recipe)
            for criterion in ("gain", "gain_ratio")
            for recipe in [Recipe(criterion=criterion, max_depth=1)]
        ]
        sizes = [tree.cases[1:].min() for tree in trees]
        at_end += sizes[1] < 5 < sizes[0]
    assert at_end > examples(50) / 2
