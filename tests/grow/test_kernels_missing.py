"""Learned sides of missing values in the compiled kernel equal the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from branchwise.data.table_schema import Schema
from branchwise.data.target import Classes, measure
from branchwise.engines.memory import MemoryEngine
from branchwise.grow import native_kernel as native
from branchwise.grow.grow import grow
from branchwise.recipe import CART
from branchwise.train.train import finished
from branchwise.tree.validation import validate
from kernel_problems import assert_same_tree
from kernel_recipes import larger_table, number_problem_with, problem_with
from number_problems import same_numbers

pytest.importorskip(
    "branchwise._native", reason="installed without the compiled extension"
)


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
        validate(tree, Schema(tuple(columns), tuple(range(n_classes))))


def test_learned_sides_of_classes(monkeypatch):
    check_classes(range(10_000, 10_400), monkeypatch, missing="learned")


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


def test_learned_sides_of_numbers(monkeypatch):
    check_numbers(range(10_000, 10_150), monkeypatch, missing="learned")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_learned_sides_of_numbers_on_5000_tables(part, monkeypatch):
    check_numbers(range(part, 5000, 10), monkeypatch, missing="learned")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", ["learned"])
def test_larger_tables_with_any_number_of_threads(weighted, missing, monkeypatch):
    monkeypatch.setattr(native, "WORTH_SHARING", 1 << 12)
    columns, data, y, grid = larger_table(6000, weighted)
    labels = np.digitize(y, [0.0, 1.0, 3.0])
    recipe = replace(CART, missing=missing, max_depth=7)
    reference = grow(
        MemoryEngine(columns, data, Classes(labels, 4), grid), columns, recipe
    )
    for threads in (1, 2, 7):
        tree = native.grow_native(columns, data, labels, 4, grid, recipe, threads)
        assert_same_tree(reference, tree, threads)
    recipe = replace(recipe, criterion="variance")
    target = measure(y, grid)
    reference = grow(MemoryEngine(columns, data, target, grid), columns, recipe)
    reference = finished(reference, target.scale, grid)
    for threads in (1, 2, 7):
        tree = native.grow_numbers(columns, data, target, grid, recipe, threads)
        same_numbers(reference, finished(tree, target.scale, grid), threads)
