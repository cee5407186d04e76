"""Error-based pruning by costs: against its definition, and in the native kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from branchwise import C45Classifier, Model, fit_tree
from branchwise.data.target import Classes
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.grow.grow import grow, recount
from branchwise.prune import error_based
from branchwise.prune.error_based import prune_native
from branchwise.prune.estimates import Estimate, cost_estimate
from branchwise.recipe import C45
from branchwise.tree.apply import with_costs
from branchwise.tree.tree import Tree, with_collapsed
from c45_problems import c45_problem
from kernel_problems import assert_same_tree
from selection import first_fast

MATRIX = ((0.0, 1.0, 6.0), (2.0, 0.0, 1.0), (1.0, 9.0, 0.0))


def by_definition(cases, table, costs, confidence=0.25):
    """The pessimistic cost of a leaf, class by class, in units of the mean cost."""
    n = len(costs)
    rows = range(n)
    unit = sum(table[i] * costs[i][j] for i in rows for j in rows)
    unit /= (n - 1) * sum(table)
    cost = [sum(cases[i] * costs[i][j] for i in rows) / unit for j in rows]
    best = cost.index(min(cost))
    total, errors = sum(cases), sum(cases) - cases[best]
    added = Estimate(confidence, 1000).added(np.array([total]), np.array([errors]))
    others = sum(table[i] for i in rows if i != best)
    usual = sum(table[i] * costs[i][best] for i in rows) / unit / others
    mean = cost[best] / errors if errors >= 1 else cost[best] + (1 - errors) * usual
    return cost[best] + float(added[0]) * mean


@pytest.mark.parametrize(
    "cases", [(9, 2, 1), (0, 4, 0), (0.25, 3, 0.5), (2, 2, 2), (30, 0, 7)]
)
def test_costs_of_a_leaf(cases):
    table = [40.0, 25.0, 15.0]
    estimate = cost_estimate(C45, np.array(table), MATRIX, by_costs=False)
    found = estimate.of(np.array([cases], dtype=float))[0] / 2.0**estimate.bits
    assert found == pytest.approx(by_definition(cases, table, MATRIX), rel=1e-12)


def test_two_classes_as_c50_estimates_them():
    """What an error costs, times the errors estimated of cases without weights."""
    costs = ((0.0, 5.0), (1.0, 0.0))
    table = np.array([300.0, 700.0])
    weights = table * [5.0, 1.0] * (1000 / 2200)  # as rows weigh in growth
    estimate = cost_estimate(C45, weights, costs, by_costs=True)
    leaf = np.array([[2.0, 30.0]])
    errors = Estimate(0.25, 1000).of(leaf)[0] / 2.0 ** Estimate(0.25, 1000).bits
    found = estimate.of(leaf * [5.0, 1.0] * (1000 / 2200))[0] / 2.0**estimate.bits
    assert found == pytest.approx(errors * 5.0 / 2.2, rel=1e-12)


def test_costs_that_are_all_the_same_count_errors():
    even = tuple(tuple(7.0 * (i != j) for j in range(3)) for i in range(3))
    assert cost_estimate(C45, np.ones(3), even, by_costs=True) is None


def leaves_by_recursion(tree: Tree, costs) -> set[int]:
    table = tree.weights[0].tolist()
    leaves: set[int] = set()

    def best(node: int) -> float:
        as_leaf = by_definition(tree.weights[node].tolist(), table, costs)
        if not tree.children(node):
            return as_leaf
        as_tree = sum(best(child) for child in tree.children(node))
        if as_leaf <= as_tree + 0.1:
            leaves.add(node)
            return as_leaf
        return as_tree

    best(0)
    return leaves


def three_classes(seed: int, n: int = 300):
    rng = np.random.default_rng(seed)
    told = rng.integers(0, 3, n)
    number = rng.integers(0, 12, n).astype(float)
    X = {
        "a": [str(value) for value in told],
        "b": list(rng.choice(list("uvwx"), n)),
        "n": number.tolist(),
    }
    return X, np.where(number > 3, told, rng.integers(0, 3, n))


def test_a_fit_prunes_by_the_whole_matrix():
    other = 0
    for seed in range(8):
        X, y = three_classes(seed)
        growing = C45Classifier(prune=False, costs=MATRIX, costs_in="growth")
        whole = growing.fit(X, y).model_
        options = {"costs": MATRIX, "costs_in": "growth", "raise_subtrees": False}
        pruned = C45Classifier(**options).fit(X, y).model_
        leaves = np.zeros(len(whole.tree), dtype=bool)
        leaves[list(leaves_by_recursion(whole.tree, MATRIX))] = True
        expected = with_collapsed(whole.tree, leaves).tree
        np.testing.assert_array_equal(pruned.tree.column, expected.column)
        np.testing.assert_array_equal(pruned.predict(X), Model(
            whole.schema, expected, whole.recipe).predict(X))  # fmt: skip
        assert whole.prune("error-based").tree == pruned.tree
        # Pruned by the sums of costs of classes it would often be another tree.
        usual = C45Classifier(raise_subtrees=False, priors=by_sums(y))
        other += len(usual.fit(X, y).tree_) != len(pruned.tree)
    assert other > 2


def by_sums(y):
    sums = np.array(MATRIX).sum(axis=1)
    return dict(enumerate((np.bincount(y) * sums).tolist()))


@pytest.mark.parametrize("first", first_fast([60, *range(100, 2000, 200)]))
def test_the_native_kernel_prunes_by_costs(first):
    n_raised = n_other = 0
    for seed in range(first, first + (40 if first < 100 else 200)):
        columns, data, labels, n_classes, grid, recipe = c45_problem(seed)
        rng = np.random.default_rng(seed + 77)
        costs = rng.integers(1, 12, (n_classes, n_classes)).astype(float)
        np.fill_diagonal(costs, 0.0)
        engine = MemoryEngine(columns, data, Classes(labels, n_classes), grid)
        whole = grow(engine, columns, recipe)
        matrix = tuple(map(tuple, costs.tolist()))
        estimate = cost_estimate(
            recipe, whole.weights[0], matrix, bool(rng.random() < 0.5)
        )
        if estimate is None or not whole.weights[0].all():
            continue
        small = error_based.collapsed(whole, estimate)

        def count(tree, engine=engine, columns=columns):
            return recount(engine, columns, tree, new_values=True)

        door = count if recipe.raise_subtrees else None
        expected = error_based.pruned(small, recipe.confidence, door, estimate)
        found = prune_native(columns, data, labels, grid, whole, recipe, estimate)
        assert_same_tree(expected, found, (seed, recipe))
        unraised = error_based.pruned(small, recipe.confidence, None, estimate)
        n_raised += expected != unraised
        n_other += expected != error_based.pruned(
            error_based.collapsed(whole), recipe.confidence, door
        )
    assert n_raised
    assert n_other


@pytest.mark.parametrize("first", first_fast([0, *range(100, 2000, 200)]))
def test_the_native_kernel_prunes_predictions_of_least_cost(first):
    """They decide what collapses, and are no part of the estimates."""
    n_pruned = n_other = 0
    for seed in range(first, first + (40 if first < 100 else 200)):
        columns, data, labels, n_classes, grid, base = c45_problem(seed)
        rng = np.random.default_rng(seed + 78)
        costs = rng.integers(1, 12, (n_classes, n_classes)).astype(float)
        np.fill_diagonal(costs, 0.0)
        recipe = replace(base, costs=tuple(map(tuple, costs.tolist())))
        engine = MemoryEngine(columns, data, Classes(labels, n_classes), grid)
        plain = grow(engine, columns, base)
        whole = with_costs(plain, recipe)

        def count(tree, engine=engine, columns=columns, recipe=recipe):
            counted, origin = recount(engine, columns, tree, new_values=True)
            return with_costs(counted, recipe), origin

        door = count if recipe.raise_subtrees else None
        small = error_based.collapsed(whole)
        expected = error_based.pruned(small, recipe.confidence, door)
        found = prune_native(columns, data, labels, grid, whole, recipe)
        assert found.prediction is None
        assert_same_tree(expected, with_costs(found, recipe), (seed, recipe))
        n_pruned += len(expected) < len(whole)
        n_other += len(small) != len(error_based.collapsed(plain))
    assert n_pruned
    assert n_other


def test_the_reference_fits_the_same_tree(monkeypatch):
    X, y = three_classes(1)
    X = {name: [None if i % 29 == 0 else v for i, v in enumerate(column)]
         for name, column in X.items()}  # fmt: skip
    for costs_in in ("growth", "prediction"):
        recipe = replace(C45, costs=MATRIX, costs_in=costs_in)
        native = fit_tree(X, y, recipe)
        with monkeypatch.context() as patch:
            patch.setattr(error_based, "available", lambda: False)
            assert fit_tree(X, y, recipe).to_bytes() == native.to_bytes()
