"""Significant splits in the compiled kernel equal those of the reference."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from branchwise import CARTClassifier, Recipe
from branchwise import native as loader
from branchwise.data.table_schema import Column, Columns
from branchwise.data.target import Classes, measure
from branchwise.data.weights import weigh
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.grow import native_kernel as native
from branchwise.grow.grow import grow
from branchwise.recipe import CART
from branchwise.stats import log_p_values_of_classes
from branchwise.train.train import finished
from kernel_problems import assert_same_tree
from kernel_recipes import larger_table, number_problem_with, problem_with
from number_problems import same_numbers
from selection import examples, first_fast

pytest.importorskip(
    "branchwise._native", reason="installed without the compiled extension"
)

P_VALUES = [1.0, 0.5, 0.2, 0.05, 1e-3]


def random_test(seed, branchings):
    """What is tested: a limit, and branches of any number and policy."""
    rng = np.random.default_rng([seed, 2])
    branching = str(rng.choice(branchings))
    policies = ["branch", "split", "largest", "node", "learned"]
    missing = str(rng.choice(policies[: 4 + (branching == "two-way")]))
    limit = float(rng.choice(P_VALUES))
    return {"max_p_value": limit, "branching": branching, "missing": missing}


def check_classes(seeds, monkeypatch):
    undecided = 0  # p-values such as 1 / 2, times two candidates, may be their limit
    for seed in seeds:
        changes = random_test(seed, ["values", "two-way", "groups"])
        problem = problem_with(seed, **changes)
        columns, data, labels, n_classes, grid, recipe = problem
        assert native.serves(recipe)
        engine = MemoryEngine(columns, data, Classes(labels, n_classes), grid)
        reference = grow(engine, columns, recipe)
        monkeypatch.setattr(native, "WORTH_SHARING", 50 if seed % 10 < 2 else 1 << 18)
        for threads in (1, 2, 7) if seed % 10 == 0 else (1,):
            tree = native.grow_native(*problem, n_threads=threads)
            undecided += tree is None
            if tree is not None:
                assert_same_tree(reference, tree, (seed, threads, recipe))
    assert undecided <= 2


def check_numbers(seeds, monkeypatch):
    undecided = 0
    for seed in seeds:
        changes = random_test(seed, ["values", "two-way"])
        columns, data, y, grid, recipe = number_problem_with(seed, **changes)
        assert native.serves(recipe)
        target = measure(y, grid)
        engine = MemoryEngine(columns, data, target, grid)
        reference = finished(grow(engine, columns, recipe), target.scale, grid)
        monkeypatch.setattr(native, "WORTH_SHARING", 50 if seed % 10 < 2 else 1 << 18)
        for threads in (1, 2, 7) if seed % 10 == 0 else (1,):
            tree = native.grow_numbers(columns, data, target, grid, recipe, threads)
            undecided += tree is None
            if tree is not None:
                tree = finished(tree, target.scale, grid)
                same_numbers(reference, tree, (seed, threads, recipe))
    assert undecided <= 2


def test_significant_splits_of_classes(monkeypatch):
    check_classes(range(10_000, 10_000 + examples(50)), monkeypatch)


def test_significant_splits_of_numbers(monkeypatch):
    check_numbers(range(10_000, 10_000 + examples(30)), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_significant_splits_of_classes_on_5000_tables(part, monkeypatch):
    check_classes(range(part, 5000, 10), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_significant_splits_of_numbers_on_5000_tables(part, monkeypatch):
    check_numbers(range(part, 5000, 10), monkeypatch)


@pytest.mark.parametrize("n_rows", first_fast([2000, 6000]))
@pytest.mark.parametrize("weighted", first_fast([True, False]))
@pytest.mark.parametrize("branching", ["values", "groups", "two-way"])
def test_larger_tables(weighted, branching, n_rows):
    """Many cases, and more than 256 values that may be grouped."""
    columns, data, y, grid = larger_table(n_rows, weighted)
    labels = np.digitize(y, [0.0, 1.0, 3.0])
    recipe = Recipe(branching=branching, max_p_value=1e-4, max_depth=7)
    engine = MemoryEngine(columns, data, Classes(labels, 4), grid)
    reference = grow(engine, columns, recipe)
    tree = native.grow_native(columns, data, labels, 4, grid, recipe)
    assert_same_tree(reference, tree, recipe)
    if branching == "groups":
        return
    target = measure(y, grid)
    recipe = replace(recipe, criterion="variance")
    engine = MemoryEngine(columns, data, target, grid)
    reference = finished(grow(engine, columns, recipe), target.scale, grid)
    tree = native.grow_numbers(columns, data, target, grid, recipe)
    same_numbers(reference, finished(tree, target.scale, grid), recipe)


def table_of_two_branches():
    """Cells, labels and the p-value of the only split."""
    cells = np.repeat(["a", "b"], 20)
    labels = np.repeat([0, 1, 0, 1], [13, 7, 6, 14])
    counts = np.array([[13.0, 7.0], [6.0, 14.0]])
    (log_p,) = log_p_values_of_classes(counts, np.array([0]), np.array([40.0]))
    return {"x": cells}, labels, math.exp(log_p)


@pytest.mark.parametrize("off", [-1e-7, -1e-12, 0.0, 1e-12, 1e-7])
def test_a_p_value_next_to_its_limit_is_left_to_the_reference(off, monkeypatch):
    X, y, p_value = table_of_two_branches()
    models = []
    for kernel in ("reference", "native"):
        monkeypatch.setenv(loader.VARIABLE, kernel)
        fitted = CARTClassifier(max_p_value=p_value * (1 + off)).fit(X, y)
        models.append(fitted.model_.to_bytes())
    assert models[0] == models[1]
    recipe = replace(CART, max_p_value=p_value * (1 + off))
    codes = np.repeat(np.array([0, 1], dtype=np.uint8), 20)
    columns = [Column("x", "categorical", ("a", "b"), False)]
    grid = weigh(None, 40, False)
    tree = native.grow_native(columns, Columns(40, (codes,)), y, 2, grid, recipe)
    assert (tree is None) == (abs(off) < 1e-10)
