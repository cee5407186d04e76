"""Regression in the compiled kernel equals the reference to the last bit."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from branchwise import CARTRegressor, Recipe
from branchwise import native as loader
from branchwise.data.table_schema import Column, Columns
from branchwise.data.target import measure
from branchwise.data.weights import weigh
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.grow import native_kernel as native
from branchwise.grow.criteria import SERIES
from branchwise.grow.grow import grow
from branchwise.recipe import CART
from branchwise.train.train import finished
from number_problems import (
    random_number_problem,
    random_subtree_problem,
    same_numbers,
)
from selection import examples, first_fast

_native = pytest.importorskip(
    "branchwise._native", reason="installed without the compiled extension"
)

REGRESSION = replace(CART, criterion="variance")


def both(columns, data, y, grid, recipe, threads=1):
    """The trees of the reference and of the compiled kernel."""
    target = measure(y, grid)
    engine = MemoryEngine(columns, data, target, grid)
    reference = grow(engine, columns, recipe)
    twin = native.grow_numbers(columns, data, target, grid, recipe, threads)
    return tuple(finished(tree, target.scale, grid) for tree in (reference, twin))


def summarised(columns, data, y, grid, recipe, threads=1):
    """The tree whose nodes have weight, mean and deviation from the kernel."""
    target = measure(y, grid)
    given = columns, data, target, grid, recipe, threads, None, None, None, True
    return finished(native.grow_numbers(*given), None, grid)


def check_tables(seeds):
    for seed in seeds:
        problem = random_number_problem(seed)
        threads = 2 if seed % 10 == 0 else 1
        reference, tree = both(*problem, threads)
        same_numbers(reference, tree, (seed, problem[-1]))
        same_numbers(reference, summarised(*problem, threads), (seed, problem[-1]))


def test_same_tree_on_random_tables():
    check_tables(range(10_000, 10_000 + examples(60)))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_same_tree_on_5000_random_tables(part):
    check_tables(range(part, 5000, 10))


def check_subtrees(seeds):
    for seed in seeds:
        problem = random_subtree_problem(seed)
        same_numbers(*both(*problem, 2 if seed % 10 == 0 else 1), (seed, problem[-1]))


def test_same_subtrees_of_whole_rows():
    check_subtrees(range(10_000, 10_000 + examples(20)))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_same_subtrees_of_whole_rows_on_1000_tables(part):
    check_subtrees(range(part, 1000, 10))


def test_same_tree_where_nodes_are_handed_back():
    # Sums of 0.1 and 0.2 differ by less than plain numbers tell, in all columns alike.
    rng = np.random.default_rng(4)
    n = 9000
    columns = [Column(f"x{j}", "numeric", (), False) for j in range(2)]
    columns += [Column("c", "categorical", tuple(range(200)), False)]
    cells = (rng.normal(size=n), rng.normal(size=n), rng.integers(0, 200, n, np.uint8))
    y = rng.choice([0.1, 0.2, 0.3, 0.1 + 1e-13], n)
    data = Columns(n, cells)
    recipe = replace(REGRESSION, max_depth=8)
    same_numbers(*both(columns, data, y, weigh(None, n, False), recipe), "near")


def few_rows(seed):
    """Three to twelve rows, which columns may divide as targets are best divided."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 13))
    columns, cells = [], []
    for j in range(int(rng.integers(1, 7))):
        if rng.random() < 0.5:
            columns.append(Column(f"n{j}", "numeric", (), False))
            cells.append(rng.normal(size=n).round(int(rng.choice([0, 1, 9]))))
        else:
            n_values = int(rng.choice([2, 6, 64, 65, 200]))
            values = tuple(range(n_values))
            columns.append(Column(f"c{j}", "categorical", values, False))
            cells.append(rng.integers(0, n_values, n).astype(np.uint8))
    y = [
        rng.normal(size=n),
        rng.permutation(n) / 10,
        rng.integers(0, 3, n).astype(float),
        np.where(np.arange(n) < 2, 1e9 * rng.random(n), rng.random(n)),
        1e6 + rng.permutation(n) * 1e-9,
    ][int(rng.integers(0, 5))]
    many_values = str(rng.choice(["corrected", "plain"]))
    recipe = replace(REGRESSION, many_values=many_values)
    return columns, Columns(n, tuple(cells)), y, weigh(None, n, False), recipe


def test_same_subtrees_of_few_rows():
    for seed in range(examples(500)):
        same_numbers(*both(*few_rows(seed)), seed)


@pytest.mark.slow
def test_same_subtrees_of_few_rows_on_10000_tables():
    for seed in range(1000, 11_000):
        same_numbers(*both(*few_rows(seed)), seed)


@pytest.mark.parametrize("n_rows", [383, 384, 385, 2000])
@pytest.mark.parametrize("min_samples_leaf", [1, 130])
@pytest.mark.parametrize("missing", ["largest", "branch"])
def test_same_thresholds_in_blocks_of_lists(n_rows, min_samples_leaf, missing):
    # Tables with missing values have no subtrees that are grown as a whole.
    rng = np.random.default_rng(n_rows)
    columns = [Column(f"n{j}", "numeric", (), j == 1) for j in range(4)]
    cells = [rng.normal(size=n_rows) for _ in columns]
    cells[1][rng.random(n_rows) < 0.3] = np.nan
    cells[2] = cells[2].round(1)
    cells[3] = np.sort(cells[3])
    y = np.where(cells[0] > 1.5, 3.0, 0.0) + rng.normal(size=n_rows) + cells[2]
    recipe = replace(REGRESSION, missing=missing, min_samples_leaf=min_samples_leaf)
    problem = columns, Columns(n_rows, tuple(cells)), y, weigh(None, n_rows, False)
    same_numbers(*both(*problem, recipe), n_rows)


def large_table(n=20_000, weighted=False):
    rng = np.random.default_rng(1)
    columns = [Column(f"n{j}", "numeric", (), j == 1) for j in range(3)]
    cells = [rng.normal(size=n), rng.normal(size=n), rng.integers(0, 50, n) / 4]
    cells[1][rng.random(n) < 0.1] = np.nan
    columns += [Column("a", "categorical", tuple(range(20)), False)]
    columns += [Column("b", "categorical", tuple(range(300)), False)]
    cells += [rng.integers(0, 20, n).astype(np.uint8)]
    cells += [rng.integers(0, 300, n).astype(np.uint16)]
    y = cells[0] + np.sin(cells[2]) + cells[3] % 3 + rng.normal(size=n)
    weights = rng.random(n) if weighted else None
    return columns, Columns(n, tuple(cells)), y, weigh(weights, n, False)


@pytest.mark.parametrize("weighted", first_fast([True, False]))
@pytest.mark.parametrize("missing", ["largest", "branch"])
def test_same_tree_on_a_larger_table_with_any_number_of_threads(
    weighted, missing, monkeypatch
):
    monkeypatch.setattr(native, "WORTH_SHARING", 1 << 10)
    problem = large_table(4000, weighted)
    recipe = replace(REGRESSION, missing=missing, max_depth=9)
    reference, one = both(*problem, recipe)
    same_numbers(reference, one, "one thread")
    target = measure(problem[2], problem[3])
    for threads in (2, 3, 7):
        shared = native.grow_numbers(*problem[:2], target, problem[3], recipe, threads)
        same_numbers(one, finished(shared, target.scale, problem[3]), threads)
        same_numbers(one, summarised(*problem, recipe, threads), threads)


@pytest.mark.parametrize("criterion", ["variance", "poisson"])
@pytest.mark.parametrize("weights", first_fast(["wide", "none", "even", "whole"], 2))
@pytest.mark.parametrize("target", ["plain", "counts", "outliers", "near"])
@pytest.mark.parametrize("n_rows", first_fast([600, 1500]))
def test_same_tree_by_sums_with_bounds(criterion, weights, target, n_rows):
    columns, data, y, _ = large_table(n_rows)
    n = len(y)
    rng = np.random.default_rng(2)
    y = {
        "plain": np.exp(y / 4),
        "counts": rng.poisson(np.exp(y / 4)).astype(float),
        "outliers": np.exp(y / 4) * np.where(rng.random(n) < 0.01, 1e30, 1.0),
        "near": 1e6 + y * 1e-9,
    }[target]
    weight = {
        "none": None,
        "even": rng.uniform(0.5, 3, n),
        "wide": 10.0 ** rng.uniform(-9, 3, n),
        "whole": rng.integers(0, 4, n).astype(float),
    }[weights]
    recipe = replace(REGRESSION, criterion=criterion, missing="learned", max_depth=7)
    problem = columns, data, y, weigh(weight, n, False), recipe
    same_numbers(*both(*problem), (criterion, weights, target))


def moments_of_groups(seed):
    """Moments of groups of a random table, one of them empty."""
    _, _, y, grid, _ = random_number_problem(seed)
    target = measure(y, grid)
    rows = target.scale.moments(target.values, grid.weights)
    if grid.weights is not None:
        rows[grid.weights == 0] = 0.0
    ends = [0, 0, *range(1, len(y), max(len(y) // 7, 1)), len(y)]
    pairs = pairwise(ends)
    return target.scale, np.array([rows[a:b].sum(axis=0) for a, b in pairs])


@pytest.mark.parametrize("part", first_fast(range(5)))
def test_same_means_and_variances(part):
    for seed in range(part, 300, 5):
        scale, moments = moments_of_groups(seed)
        means, variances = native.summarise(scale, moments)
        np.testing.assert_array_equal(means, scale.means(moments), str(seed))
        np.testing.assert_array_equal(variances, scale.variances(moments), str(seed))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("moments", np.zeros(3)),
        ("moments", np.zeros((2, 4))),
        ("sum_exponents", [-48.5]),
        ("weight_step", 5000),
        ("unit", -5000),
        ("means", np.empty(3)),
        ("variances", np.empty(2, dtype=np.float32)),
    ],
)
def test_summaries_refuse(name, value):
    given = {
        "moments": np.ones((2, 3)),
        "weight_step": 0,
        "sum_exponents": [-48.0],
        "square_exponents": [-48.0],
        "unit": 0,
        "means": np.empty(2),
        "variances": np.empty(2),
    }
    _native.summarise(**given)
    with pytest.raises((ValueError, TypeError), match=name):
        _native.summarise(**given | {name: value})


def test_same_model_in_bins(monkeypatch):
    columns, data, y, _ = large_table(3000)
    X = {column.name: cells for column, cells in zip(columns, data.data, strict=True)}
    models = []
    for kernel in ("reference", "native"):
        monkeypatch.setenv(loader.VARIABLE, kernel)
        fitted = CARTRegressor(max_bins=16, max_depth=6).fit(X, y)
        models.append(fitted.model_.to_bytes())
    assert models[0] == models[1]


def test_all_recipes_of_regression_are_served():
    assert native.serves(REGRESSION)
    assert native.serves(Recipe(criterion="poisson"))


def growth(**changed):
    """Arguments of growth from four rows, some of them changed."""
    options = {
        "fractions": False,
        "weight_step": 1.0,
        "case_step": 1.0,
        "weights_are_cases": False,
        "criterion": "variance",
        "max_depth": 9,
        "cases_to_split": 2.0,
        "cases_in_leaf": 1.0,
        "cases_in_branch": 0.0,
        "weight_in_leaf": 0.0,
        "branching": "two-way",
        "quinlan_thresholds": False,
        "average_gain": False,
        "corrects_values": False,
        "few_values_to_group": 2,
        "positions": [0],
        "few_values": [True],
        "min_gain": 0.0,
        "missing": "largest",
        "unseen": "largest",
        "tests_splits": False,
        "max_log_p": 0.0,
        "series": list(SERIES),
        "n_threads": 1,
        "worth_sharing": 1,
        "max_features": 0,
        "draw_key": 0,
        "random_splits": False,
        "sum_exponents": [-48.0],
        "square_exponents": [-48.0],
        "case_bits": 3,
        "summarised": False,
        "unit": 0,
    }
    given = {
        "columns": [np.array([0.5, 1, 2, 3])],
        "n_codes": [1],
        "values": np.array([0.25, 0.5, 0.5, -0.5]),
        "weights": None,
        "times": None,
        "options": options,
        "progress": None,
    }
    for name, value in changed.items():
        (options if name in options else given)[name] = value
    return given


def test_the_border_takes_good_arrays():
    tree = _native.grow_numbers(**growth())
    assert tree["weights"].shape == (5, 3)
    tree = _native.grow_numbers(**growth(summarised=True, unit=1))
    assert tree["weights"][0] == 4
    assert tree["mean"][0] == 0.375
    often = np.array([1, 2, 1, 255], dtype=np.uint8)
    tree = _native.grow_numbers(
        **growth(times=often, sum_exponents=[-40.0], square_exponents=[-40.0])
    )
    assert tree["cases"][0] == 259


def test_the_border_refuses_times_beside_weights():
    once = {"times": np.ones(4, dtype=np.uint8), "weights": np.ones(4)}
    with pytest.raises(ValueError, match="times must be None"):
        _native.grow_numbers(**growth(**once))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("values", np.array([0.25, 2.0, 0.5, -0.5])),
        ("values", np.full(4, np.nan)),
        ("values", np.empty(0)),
        ("columns", [np.zeros(3)]),
        ("criterion", "gini"),
        ("branching", "groups"),
        ("case_step", 2.0),
        ("quinlan_thresholds", True),
        ("sum_exponents", []),
        ("sum_exponents", [-48.5]),
        ("sum_exponents", [-1060.0]),
        ("sum_exponents", [0.0, -60.0]),
        ("square_exponents", [-48.0, -40.0]),
        ("case_bits", 100),
        ("unit", 2000),
        ("weights", np.full(4, 0.5)),
        ("times", np.array([1, 2, 0, 1], dtype=np.uint8)),
        ("times", np.ones(3, dtype=np.uint8)),
        ("times", np.ones(4)),
    ],
)
def test_the_border_refuses(name, value):
    with pytest.raises((ValueError, TypeError), match=name.split("_")[-1]):
        _native.grow_numbers(**growth(**{name: value}))
