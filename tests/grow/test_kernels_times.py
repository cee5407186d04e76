"""Rows that count several times in the compiled kernel equal rows that are repeated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from branchwise import RandomForestClassifier, RandomForestRegressor
from branchwise.data.table_schema import Columns
from branchwise.data.target import Classes, measure
from branchwise.data.weights import weigh
from branchwise.engines.memory import Training
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.ensemble import forest
from branchwise.ensemble.sampling import Samples
from branchwise.grow import native_kernel as native
from branchwise.grow.draws import ColumnDraws, tree_key
from branchwise.grow.grow import grow
from branchwise.recipe import CART
from branchwise.train.train import counts_times, finished
from branchwise.tree.tree import ARRAYS
from kernel_recipes import larger_table, number_problem_with, problem_with
from number_problems import random_subtree_problem, random_times, same_numbers
from selection import examples

pytest.importorskip(
    "branchwise._native", reason="installed without the compiled extension"
)


def check(columns, data, y, recipe, drawn, times, threads, context):
    """Compare the tree with that of the reference, which has rows repeated."""
    rows = np.repeat(np.arange(data.n_rows), times)
    repeated = Columns(len(rows), tuple(cells[rows] for cells in data.data))
    grid = weigh(None, len(rows), False)
    engine = MemoryEngine(columns, repeated, measure(y[rows], grid), grid)
    reference = grow(engine, columns, recipe, drawn=drawn)
    target = measure(y, grid)
    for n_threads in threads:
        given = columns, data, target, grid, recipe, n_threads, None, drawn, times
        tree = native.grow_numbers(*given)
        if tree is None and recipe.max_p_value is not None:
            continue  # only the reference can tell
        trees = [finished(one, target.scale, grid) for one in (reference, tree)]
        same_numbers(*trees, (context, n_threads, recipe))
        summarised = finished(native.grow_numbers(*given, True), None, grid)
        same_numbers(trees[0], summarised, (context, n_threads, recipe))


def check_classes(columns, data, labels, n_classes, recipe, drawn, times, threads):
    """Compare the tree of classes with that of the reference: rows are repeated."""
    rows = np.repeat(np.arange(data.n_rows), times)
    repeated = Columns(len(rows), tuple(cells[rows] for cells in data.data))
    grid = weigh(None, len(rows), False)
    target = Classes(labels[rows], n_classes)
    engine = MemoryEngine(columns, repeated, target, grid)
    reference = grow(engine, columns, recipe, drawn=drawn)
    for n_threads in threads:
        given = columns, data, labels, n_classes, grid, recipe, n_threads, None
        tree = native.grow_native(*given, drawn, times)
        if tree is None and recipe.max_p_value is not None:
            continue  # only the reference can tell
        for spec in ARRAYS:
            arrays = getattr(reference, spec.name), getattr(tree, spec.name)
            np.testing.assert_array_equal(*arrays, f"{spec.name}: {recipe}")


def random_draws(rng, n_columns):
    if rng.random() < 0.5:
        return None
    most = int(rng.integers(1, n_columns + 2))
    return ColumnDraws(tree_key(int(rng.integers(0, 2**63)), 3), most, False)


def random_changes(rng, branchings):
    """Ways to divide rows and missing values, and a test of splits."""
    branching = str(rng.choice(branchings))
    policies = ["branch", "largest", "node", "learned", "surrogate"]
    missing = str(rng.choice(policies[: 3 + 2 * (branching == "two-way")]))
    limit = float(rng.choice([0.5, 0.05])) if rng.random() < 0.2 else None
    return {"branching": branching, "missing": missing, "max_p_value": limit}


def drawn_and_threads(rng, seed, recipe, n_columns, monkeypatch):
    drawn = random_draws(rng, n_columns)
    if drawn is not None and recipe.branching != "groups" and rng.random() < 0.3:
        drawn = replace(drawn, random_splits=True)
    monkeypatch.setattr(native, "WORTH_SHARING", 50 if seed % 10 < 2 else 1 << 18)
    return drawn, (1, 2, 7) if seed % 10 == 0 else (1,)


def check_tables(seeds, monkeypatch):
    for seed in seeds:
        rng = np.random.default_rng([seed, 5])
        changes = random_changes(rng, ["values", "two-way", "two-way"])
        columns, data, y, _, recipe = number_problem_with(seed, **changes)
        times = random_times(rng, data.n_rows)
        tried = drawn_and_threads(rng, seed, recipe, len(columns), monkeypatch)
        drawn, threads = tried
        check(columns, data, y, recipe, drawn, times, threads, seed)


def check_tables_of_classes(seeds, monkeypatch):
    for seed in seeds:
        rng = np.random.default_rng([seed, 6])
        changes = random_changes(rng, ["values", "two-way", "two-way", "groups"])
        problem = problem_with(seed, **changes)
        columns, data, labels, n_classes, _, recipe = problem
        times = random_times(rng, data.n_rows)
        tried = drawn_and_threads(rng, seed, recipe, len(columns), monkeypatch)
        check_classes(
            columns, data, labels, n_classes, recipe, tried[0], times, tried[1]
        )


def test_same_tree_on_random_tables(monkeypatch):
    check_tables(range(10_000, 10_000 + examples(60)), monkeypatch)


def test_same_tree_of_classes_on_random_tables(monkeypatch):
    check_tables_of_classes(range(10_000, 10_000 + examples(60)), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_same_tree_on_5000_random_tables(part, monkeypatch):
    check_tables(range(part, 5000, 10), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_same_tree_of_classes_on_5000_random_tables(part, monkeypatch):
    check_tables_of_classes(range(part, 5000, 10), monkeypatch)


def check_subtrees(seeds):
    for seed in seeds:
        rng = np.random.default_rng([seed, 5])
        columns, data, y, _, recipe = random_subtree_problem(seed)
        times = random_times(rng, data.n_rows)
        drawn = random_draws(rng, len(columns))
        check(columns, data, y, recipe, drawn, times, (1,), seed)


def test_same_subtrees():
    check_subtrees(range(10_000, 10_000 + examples(20)))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_same_subtrees_on_1000_tables(part):
    check_subtrees(range(part, 1000, 10))


@pytest.mark.parametrize("missing", ["learned", "branch"])
def test_same_tree_on_a_larger_table_with_any_number_of_threads(missing, monkeypatch):
    monkeypatch.setattr(native, "WORTH_SHARING", 1 << 10)
    columns, data, y, _ = larger_table(3000, weighted=False)
    times = random_times(np.random.default_rng(1), data.n_rows)
    recipe = replace(CART, criterion="variance", missing=missing, max_depth=8)
    check(columns, data, y, recipe, None, times, (1, 2, 3), missing)
    labels = (y > np.median(y)).astype(np.intp)
    recipe = replace(recipe, criterion="entropy")
    check_classes(columns, data, labels, 2, recipe, None, times, (1, 2, 3))


def table(n):
    rng = np.random.default_rng(3)
    X = {"a": rng.normal(size=n), "b": rng.choice(["u", "v", "w"], n)}
    return X, X["a"].round(1) + (X["b"] == "v") + rng.normal(size=n).round(2)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"max_features": 1, "min_samples_leaf": 3},
        {"criterion": "poisson"},
        {"max_bins": 8},
        {"ccp_alpha": 0.01},
        {"bootstrap": False, "max_samples": 0.5},
    ],
)
def test_same_forest_of_numbers_from_repeated_rows(settings, monkeypatch):
    X, y = table(300)
    forests = []
    for counts in (counts_times, lambda *_: False):
        monkeypatch.setattr(forest, "counts_times", counts)
        model = RandomForestRegressor(n_estimators=4, **settings).fit(X, y - y.min())
        forests.append(model.model_.to_bytes())
    assert forests[0] == forests[1]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"max_features": None, "min_samples_leaf": 3},
        {"base": "id3"},
        {"base": "c4.5"},
        {"splitter": "random"},
        {"max_bins": 8},
        {"class_weight": "balanced_subsample"},
        {"ccp_alpha": 0.01},
        {"bootstrap": False, "max_samples": 0.5},
    ],
)
def test_same_forest_of_classes_from_repeated_rows(settings, monkeypatch):
    X, y = table(300)
    forests = []
    for counts in (counts_times, lambda *_: False):
        monkeypatch.setattr(forest, "counts_times", counts)
        model = RandomForestClassifier(n_estimators=4, **settings).fit(X, y > 0)
        forests.append(model.model_.to_bytes())
    assert forests[0] == forests[1]


def test_rows_that_are_drawn_too_often_are_repeated(monkeypatch):
    X, y = table(6)
    samples = RandomForestRegressor(n_estimators=1).fit(X, y).model_.samples
    often = np.array([2, 0, 1, 0, 0, 3])
    monkeypatch.setattr(Samples, "times", lambda *_: often)
    rows, times = samples.distinct_rows(0)
    assert rows.tolist() == [0, 2, 5]
    assert times is not None
    assert times.tolist() == [2, 1, 3]
    often[[0, 2, 5]] = 256, 1, 0
    rows, times = samples.distinct_rows(0)
    assert len(rows) == 257
    assert times is None
    often[0] = 1
    rows, times = samples.distinct_rows(0)
    assert rows.tolist() == [0, 2]
    assert times is None


def test_the_reference_repeats_rows():
    columns, data, y, _, recipe = random_subtree_problem(1)
    times = random_times(np.random.default_rng(1), data.n_rows)
    rows = Training(tuple(columns), data, y, 0, times=times)
    again = rows.repeated()
    assert again.data.n_rows == rows.grid(recipe).n_cases == times.sum()
    assert again.repeated() is again
    assert rows.engine(rows.grid(recipe)).grid.n_cases == times.sum()
