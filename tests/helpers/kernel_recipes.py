"""Random problems for both kernels with recipes of two-way splits and of tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from branchwise.data.table_schema import Column, Columns
from branchwise.data.weights import weigh
from branchwise.recipe import C45
from kernel_problems import random_problem, random_weights
from number_problems import random_number_problem


def problem_with(seed: int, **changes: Any):
    """A random table of classes, its recipe changed; some recipes are those of C4.5."""
    columns, data, labels, n_classes, _, recipe = random_problem(seed)
    rng = np.random.default_rng([seed, 1])
    labels = with_something_to_find(rng, data.data[0], labels, n_classes)
    at = str(rng.choice(["midpoint", "midpoint", "value"]))
    if seed % 7 == 0:
        unseen = recipe.unseen
        recipe = replace(C45, unseen=unseen, threshold=at, pruning=None, collapse=False)
    else:
        branch = int(rng.choice([0, 0, 2]))
        recipe = replace(recipe, threshold=at, min_samples_branch=branch)
    recipe = replace(recipe, **changes)
    weights = random_weights(rng, data.n_rows)
    fractions = recipe.missing == "split" and any(c.has_missing for c in columns)
    grid = weigh(weights, data.n_rows, fractions, recipe.weights_are_cases)
    return columns, data, labels, n_classes, grid, recipe


def with_something_to_find(rng: np.random.Generator, cells, labels, n_classes: int):
    """Labels that follow a column, in half of the tables."""
    if rng.random() < 0.5:
        return labels
    told = np.nan_to_num(cells.astype(float), nan=2.0).astype(int) % n_classes
    return np.where(rng.random(len(labels)) < 0.7, told, labels)


def number_problem_with(seed: int, **changes: Any):
    """A random table of numbers, its recipe changed."""
    columns, data, y, grid, recipe = random_number_problem(seed)
    rng = np.random.default_rng([seed, 1])
    branch = int(rng.choice([0, 0, 2]))
    recipe = replace(recipe, min_samples_branch=branch, **changes)
    fractions = recipe.missing == "split" and any(c.has_missing for c in columns)
    cases = recipe.weights_are_cases
    grid = weigh(grid.weights, data.n_rows, fractions, cases)
    return columns, data, y, grid, recipe


def larger_table(n: int, weighted: bool):
    """Rows with missing values in every column, of which some sort many numbers."""
    rng = np.random.default_rng(n)
    columns = [Column(f"n{j}", "numeric", (), True) for j in range(3)]
    cells = [rng.normal(size=n), rng.normal(size=n), rng.integers(0, 40, n) / 4]
    columns += [Column("a", "categorical", tuple(range(9)), True)]
    columns += [Column("b", "categorical", tuple(range(300)), True)]
    cells += [rng.integers(0, 9, n).astype(np.uint8)]
    cells += [rng.integers(0, 300, n).astype(np.uint16)]
    y = cells[0] + np.sin(cells[2]) + cells[3] % 3 + rng.normal(size=n) / 2
    for column, known in zip(columns, cells, strict=True):
        missing = np.nan if column.is_numeric else column.missing_code
        known[(rng.random(n) < 0.1) & (y > 0)] = missing
    weights = rng.random(n) if weighted else None
    return columns, Columns(n, tuple(cells)), y, weigh(weights, n, False)
