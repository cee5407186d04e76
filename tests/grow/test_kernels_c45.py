"""The native kernel grows and prunes C4.5's trees as the reference does.

Recipes may have one of its rules alone, with any criterion.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from branchwise import Recipe, fit_tree
from branchwise.data.table_schema import Schema
from branchwise.data.target import Classes, measure
from branchwise.data.weights import weigh
from branchwise.engines import memory_engine
from branchwise.engines.memory_engine import MemoryEngine
from branchwise.grow import native_kernel as native
from branchwise.grow.grow import grow, recount
from branchwise.prune import error_based
from branchwise.prune.error_based import prune_native
from branchwise.train.train import finished
from branchwise.tree.validation import validate
from c45_problems import c45_problem
from kernel_problems import assert_same_tree, random_problem
from kernel_recipes import number_problem_with, problem_with
from number_problems import same_numbers
from selection import examples, first_fast

pytest.importorskip(
    "branchwise._native", reason="installed without the compiled extension"
)

N_TABLES = 2000


@pytest.mark.parametrize("part", first_fast(range(16)))
def test_same_tree_before_and_after_pruning(part):
    raised = 0
    for seed in range(part * N_TABLES // 16, (part + 1) * N_TABLES // 16):
        columns, data, labels, n_classes, grid, recipe = c45_problem(seed)
        engine = MemoryEngine(columns, data, Classes(labels, n_classes), grid)
        reference = grow(engine, columns, recipe)
        twin = native.grow_native(columns, data, labels, n_classes, grid, recipe)
        assert_same_tree(reference, twin, (seed, recipe))
        small = error_based.collapsed(reference)

        def count(tree, engine=engine, columns=columns):
            return recount(engine, columns, tree, new_values=True)

        door = count if recipe.raise_subtrees else None
        expected = error_based.pruned(small, recipe.confidence, door)
        pruned = prune_native(columns, data, labels, grid, reference, recipe)
        assert_same_tree(expected, pruned, (seed, recipe))
        validate(pruned, Schema(tuple(columns), tuple(range(n_classes))))
        unraised = error_based.pruned(small, recipe.confidence, None)
        raised += expected != unraised
    # Few tables have a branch to raise: without the first ones they would show nothing.
    assert raised or part


@pytest.mark.parametrize("part", first_fast(range(16)))
def test_same_cases_of_classes(part, monkeypatch):
    """Down finished trees, where cases are divided."""
    n_parts = n_pruned = 0
    for seed in range(part * N_TABLES // 16, (part + 1) * N_TABLES // 16):
        make = c45_problem if seed % 2 else random_problem
        columns, data, labels, n_classes, grid, recipe = make(seed)
        if not grid.fractions:
            continue
        tree = native.grow_native(columns, data, labels, n_classes, grid, recipe)
        if tree is None:
            continue
        if recipe.pruning == "error-based":
            whole = len(tree)
            tree = prune_native(columns, data, labels, grid, tree, recipe)
            n_pruned += 1 < len(tree) < whole
        table = (columns, data, Classes(labels, n_classes), grid)
        counted = memory_engine.class_cases_of(*table, tree)
        with monkeypatch.context() as patch:
            patch.setattr(memory_engine, "available", lambda: False)
            expected = memory_engine.class_cases_of(*table, tree)
        assert counted.tobytes() == expected.tobytes(), (seed, recipe)
        n_parts += bool((counted % 1).any())
    assert n_parts
    assert n_pruned


@pytest.mark.parametrize("part", first_fast(range(48)))
def test_same_groups_of_values(part):
    shared = 0
    for seed in range(part, N_TABLES // 3, 48):
        columns, data, labels, n_classes, grid, base = c45_problem(seed)
        rng = np.random.default_rng(seed)
        if rng.random() < 0.5:
            recipe = replace(base, branching="groups")
        else:
            _, _, _, _, _, plain = random_problem(seed)
            recipe = replace(plain, branching="two-way")
            fractions = recipe.missing == "split" and any(
                c.has_missing for c in columns
            )
            grid = weigh(grid.weights, data.n_rows, fractions)
        engine = MemoryEngine(columns, data, Classes(labels, n_classes), grid)
        reference = grow(engine, columns, recipe)
        twin = native.grow_native(columns, data, labels, n_classes, grid, recipe)
        assert_same_tree(reference, twin, (seed, recipe))
        shared += bool((reference.n_codes > 1).any())
    assert shared > 1


def some_rules(rng: np.random.Generator, branchings: list[str]):
    """One of C4.5's rules, or both, with changes of all that they depend on."""
    branching = str(rng.choice(branchings))
    policies = ["branch", "branch", "split", "largest", "learned", "surrogate"]
    limit = float(rng.choice([0.5, 0.05])) if rng.random() < 0.15 else None
    return {
        "branching": branching,
        "missing": str(rng.choice(policies[: 4 + 2 * (branching == "two-way")])),
        "min_gain": float(rng.choice([0, 0, 0.01, 0.1])),
        "max_p_value": limit,
    }


def check_rules_of_classes(seeds):
    undecided = 0
    for seed in seeds:
        rng = np.random.default_rng([seed, 8])
        rules = [(True, False), (False, True), (True, True)][seed % 3]
        problem = problem_with(
            seed,
            quinlan_thresholds=rules[0],
            average_gain=rules[1],
            criterion=str(rng.choice(["gain", "gain_ratio", "gini"])),
            **some_rules(rng, ["values", "values", "two-way", "groups"]),
        )
        columns, data, labels, n_classes, grid, recipe = problem
        assert native.serves(recipe)
        engine = MemoryEngine(columns, data, Classes(labels, n_classes), grid)
        tree = native.grow_native(*problem)
        undecided += tree is None
        if tree is not None:
            assert_same_tree(grow(engine, columns, recipe), tree, (seed, recipe))
    assert undecided <= 2


def check_average_gain_of_numbers(seeds):
    undecided = 0
    for seed in seeds:
        rng = np.random.default_rng([seed, 8])
        changes = some_rules(rng, ["values", "two-way"])
        problem = number_problem_with(seed, average_gain=True, **changes)
        columns, data, y, grid, recipe = problem
        target = measure(y, grid)
        engine = MemoryEngine(columns, data, target, grid)
        tree = native.grow_numbers(columns, data, target, grid, recipe)
        undecided += tree is None
        if tree is not None:
            reference = finished(grow(engine, columns, recipe), target.scale, grid)
            tree = finished(tree, target.scale, grid)
            same_numbers(reference, tree, (seed, recipe))
    assert undecided <= 2


CHECKS = [check_rules_of_classes, check_average_gain_of_numbers]


@pytest.mark.parametrize("check", CHECKS)
def test_same_trees_by_single_rules(check):
    check(range(10_000, 10_000 + examples(45)))


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("part", range(10))
def test_same_trees_by_single_rules_on_5000_tables(check, part):
    check(range(part, 5000, 10))


@pytest.mark.parametrize("kernel", ["native", "reference"])
def test_thresholds_and_categories_are_compared_by_gain(kernel, monkeypatch):
    """What is left of the gain of a threshold is a gain, as that of a category is."""
    monkeypatch.setenv("BRANCHWISE_KERNEL", kernel)
    rng = np.random.default_rng(0)
    number, category = rng.normal(size=500), rng.integers(0, 2, 500)
    label = np.where(rng.random(500) < 0.95, category, number > 0).astype(int)
    label = np.where(rng.random(500) < 0.15, number > 0, label).astype(int)
    table = {"number": number, "category": [f"c{code}" for code in category]}
    recipe = Recipe(criterion="gain", quinlan_thresholds=True, max_depth=1)
    model = fit_tree(table, label, recipe)
    assert model.used_columns == [1]
    other = fit_tree({"number": number}, label, recipe)
    assert len(other.tree) == 3
