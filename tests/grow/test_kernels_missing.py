"""Learned sides and surrogates in the compiled kernel equal the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from branchwise import CARTClassifier, CARTRegressor
from branchwise import native as loader
from branchwise.data.table_schema import Schema
from branchwise.data.target import Classes, measure
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.grow import native_kernel as native
from branchwise.grow.grow import grow, recount
from branchwise.prune import error_based
from branchwise.prune.error_based import prune_native
from branchwise.recipe import CART
from branchwise.train.train import finished
from branchwise.tree.apply import Walker
from branchwise.tree.tree import SURROGATE_ARRAYS
from branchwise.tree.validation import validate
from kernel_problems import assert_same_tree, unseen_rows
from kernel_recipes import larger_table, number_problem_with, problem_with
from number_problems import same_numbers
from selection import examples, first_fast

_native = pytest.importorskip(
    "branchwise._native", reason="installed without the compiled extension"
)

#: Seeds of tables that are compared in every run.
FEW = range(10_000, 10_000 + examples(60))


def assert_same_surrogates(one, other, context):
    for spec in SURROGATE_ARRAYS:
        pair = getattr(one, spec.name), getattr(other, spec.name)
        np.testing.assert_array_equal(*pair, f"{spec.name}: {context}")


def check_classes(seeds, monkeypatch, **changes):
    for seed in seeds:
        problem = problem_with(seed, branching="two-way", **changes)
        columns, data, labels, n_classes, grid, recipe = problem
        assert native.serves(recipe)
        engine = MemoryEngine(columns, data, Classes(labels, n_classes), grid)
        reference = grow(engine, columns, recipe)
        # A few tables are shared out node by node.
        monkeypatch.setattr(native, "WORTH_SHARING", 50 if seed % 10 < 2 else 1 << 18)
        for threads in (1, 2, 7) if seed % 10 == 0 else (1,):
            tree = native.grow_native(*problem, n_threads=threads)
            assert_same_tree(reference, tree, (seed, threads, recipe))
            assert_same_surrogates(reference, tree, (seed, threads, recipe))
        validate(tree, Schema(tuple(columns), tuple(range(n_classes))))


def test_learned_sides_of_classes(monkeypatch):
    check_classes(FEW, monkeypatch, missing="learned")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_learned_sides_of_classes_on_5000_tables(part, monkeypatch):
    check_classes(range(part, 5000, 10), monkeypatch, missing="learned")


def check_numbers(seeds, monkeypatch, **changes):
    for seed in seeds:
        problem = number_problem_with(seed, branching="two-way", **changes)
        columns, data, y, grid, recipe = problem
        assert native.serves(recipe)
        target = measure(y, grid)
        engine = MemoryEngine(columns, data, target, grid)
        reference = finished(grow(engine, columns, recipe), target.scale, grid)
        monkeypatch.setattr(native, "WORTH_SHARING", 50 if seed % 10 < 2 else 1 << 18)
        for threads in (1, 2, 7) if seed % 10 == 0 else (1,):
            tree = native.grow_numbers(columns, data, target, grid, recipe, threads)
            tree = finished(tree, target.scale, grid)
            same_numbers(reference, tree, (seed, threads, recipe))
            assert_same_surrogates(reference, tree, (seed, threads, recipe))


def test_learned_sides_of_numbers(monkeypatch):
    check_numbers(FEW, monkeypatch, missing="learned")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_learned_sides_of_numbers_on_5000_tables(part, monkeypatch):
    check_numbers(range(part, 5000, 10), monkeypatch, missing="learned")


def test_surrogates_of_classes(monkeypatch):
    check_classes(FEW, monkeypatch, missing="surrogate")


def test_surrogates_of_numbers(monkeypatch):
    check_numbers(FEW, monkeypatch, missing="surrogate")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_surrogates_of_classes_on_5000_tables(part, monkeypatch):
    check_classes(range(part, 5000, 10), monkeypatch, missing="surrogate")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_surrogates_of_numbers_on_5000_tables(part, monkeypatch):
    check_numbers(range(part, 5000, 10), monkeypatch, missing="surrogate")


def check_pruning(seeds):
    """Trees with surrogates are pruned alike, and raised branches keep theirs."""
    n_smaller = n_raised = n_kept = 0
    for seed in seeds:
        problem = problem_with(seed, branching="two-way", missing="surrogate")
        columns, data, labels, n_classes, grid, base = problem
        rng = np.random.default_rng(seed)
        recipe = replace(
            base,
            max_p_value=None,
            pruning="error-based",
            collapse=bool(rng.random() < 0.3),
            confidence=float(rng.choice([0.1, 0.25, 0.5])),
        )
        engine = MemoryEngine(columns, data, Classes(labels, n_classes), grid)
        whole = native.grow_native(columns, data, labels, n_classes, grid, recipe)

        def count(tree, engine=engine, columns=columns):
            return recount(engine, columns, tree, new_values=False)

        small = error_based.collapsed(whole) if recipe.collapse else whole
        expected = error_based.pruned(small, recipe.confidence, count)
        found = prune_native(columns, data, labels, grid, whole, recipe)
        assert_same_tree(expected, found, (seed, recipe))
        assert_same_surrogates(expected, found, (seed, recipe))
        with_leaves_alone = error_based.pruned(small, recipe.confidence, None)
        n_smaller += len(expected) < len(small)
        n_raised += expected != with_leaves_alone
        n_kept += expected.surrogates is not None
    return n_smaller, n_raised, n_kept


def test_pruning_with_surrogates():
    assert all(check_pruning(range(20_000, 20_150)))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_pruning_with_surrogates_on_2000_tables(part):
    assert all(check_pruning(range(part, 2000, 10)))


def check_predictions(seeds, monkeypatch):
    """Rows with missing and unseen values walk alike in both kernels."""
    n_by_surrogates = 0
    for seed in seeds:
        problem = problem_with(seed, branching="two-way", missing="surrogate")
        columns = problem[0]
        tree = native.grow_native(*problem)
        rows = unseen_rows(np.random.default_rng(seed), columns, 200)
        assert_same_walk(columns, tree, rows, seed, monkeypatch)
        n_by_surrogates += tree.n_surrogates is not None
    assert n_by_surrogates > len(seeds) / 10


def assert_same_walk(columns, tree, rows, context, monkeypatch):
    found = {}
    for kernel in ("native", "reference"):
        monkeypatch.setenv(loader.VARIABLE, kernel)
        walker = Walker(columns, tree)
        arrivals = walker.walk(rows)
        found[kernel] = (
            *(arrivals.row, arrivals.node, arrivals.share),
            *(walker.classify(rows), walker.probabilities(rows)),
        )
    for one, other in zip(*found.values(), strict=True):
        np.testing.assert_array_equal(one, other, str(context))
    monkeypatch.setenv(loader.VARIABLE, "native")
    walker = Walker(columns, tree)
    used = tree.used_columns
    for row in range(5 if used else 0):
        node = walker.node_of_row([rows.data[j][row].item() for j in used])
        (at,) = np.nonzero(arrivals.row == row)
        assert node == (arrivals.node[at[0]] if len(at) == 1 else None)


def test_rows_follow_surrogates(monkeypatch):
    check_predictions(FEW, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_rows_follow_surrogates_on_5000_tables(part, monkeypatch):
    check_predictions(range(part, 5000, 10), monkeypatch)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_surrogates", [2, 0, 0]),
        ("n_surrogates", [0, 1, 0]),
        ("n_surrogates", [-1, 0, 0]),
        ("n_surrogates", [1, 0]),
        ("surrogate_column", [2]),
        ("surrogate_column", [-1]),
        ("surrogate_n_codes", [1, 2]),
        ("surrogate_n_codes", [-1, 3]),
        ("surrogate_n_codes", [1]),
        ("surrogate_codes", [0, 9]),
        ("surrogate_codes", [0, 1, 1]),
    ],
)
def test_the_border_of_prediction_refuses_bad_surrogates(name, value):
    ints = {
        "column": [0, -1, -1],
        "n_children": [2, 0, 0],
        "missing_to": [0, -1, -1],
        "unseen_to": [-1, -1, -1],
        "n_codes": [0, 1, 1],
        "codes": [0, 1],
    }
    tree = {key: np.array(entries, dtype=np.int64) for key, entries in ints.items()}
    tree["threshold"] = np.full(3, np.nan)
    surrogates = {
        "n_surrogates": np.array([1, 0, 0]),
        "surrogate_column": np.array([1]),
        "surrogate_threshold": np.array([np.nan]),
        "surrogate_n_codes": np.array([1, 1]),
        "surrogate_codes": np.array([0, 1]),
    }
    given = {"sizes": np.ones(3), "labels": np.zeros(3, dtype=np.uint8)}
    given |= {"tree": tree, "values": [2, 3], "surrogates": surrogates}
    nodes = _native.Walk(**given).arrive(
        [np.array([2, 2, 2], dtype=np.uint8), np.array([0, 1, 4], dtype=np.uint8)], 3
    )[0]
    assert nodes.tolist() == [1, 2, 1]
    surrogates[name] = np.array(value)
    with pytest.raises(ValueError, match="surrogate"):
        _native.Walk(**given)


@pytest.mark.parametrize("n_rows", first_fast([3000, 6000]))
@pytest.mark.parametrize("weighted", first_fast([True, False]))
@pytest.mark.parametrize("missing", ["learned", "surrogate"])
def test_larger_tables_with_any_number_of_threads(
    weighted, missing, n_rows, monkeypatch
):
    monkeypatch.setattr(native, "WORTH_SHARING", 1 << 11)
    columns, data, y, grid = larger_table(n_rows, weighted)
    labels = np.digitize(y, [0.0, 1.0, 3.0])
    recipe = replace(CART, missing=missing, max_depth=7)
    reference = grow(
        MemoryEngine(columns, data, Classes(labels, 4), grid), columns, recipe
    )
    for threads in (1, 2, 7):
        tree = native.grow_native(columns, data, labels, 4, grid, recipe, threads)
        assert_same_tree(reference, tree, threads)
        assert_same_surrogates(reference, tree, threads)
    recipe = replace(recipe, criterion="variance")
    target = measure(y, grid)
    reference = grow(MemoryEngine(columns, data, target, grid), columns, recipe)
    reference = finished(reference, target.scale, grid)
    for threads in (1, 2, 7):
        tree = native.grow_numbers(columns, data, target, grid, recipe, threads)
        same_numbers(reference, finished(tree, target.scale, grid), threads)
        assert_same_surrogates(reference, tree, threads)


@pytest.mark.parametrize(
    "recipe", [{"missing": "learned"}, {"missing": "surrogate"}, {"max_p_value": 0.01}]
)
@pytest.mark.parametrize("estimator", [CARTClassifier, CARTRegressor])
def test_same_model_in_bins(recipe, estimator, monkeypatch):
    columns, data, y, _ = larger_table(3000, weighted=False)
    X = {column.name: cells for column, cells in zip(columns, data.data, strict=True)}
    target = y > 1 if estimator is CARTClassifier else y
    models = []
    for kernel in ("reference", "native"):
        monkeypatch.setenv(loader.VARIABLE, kernel)
        fitted = estimator(max_bins=16, max_depth=6, **recipe).fit(X, target)
        models.append(fitted.model_.to_bytes())
    assert models[0] == models[1]
