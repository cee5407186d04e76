"""Random tables to grow and prune trees of C4.5 from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from branchwise.data.table_schema import Column, Columns
from branchwise.data.weights import weigh
from branchwise.recipe import C45
from kernel_problems import random_problem, random_weights


def noisy_table(rng: np.random.Generator):
    """A rule with much noise on it: here branches are worth raising now and then."""
    n, n_classes = int(rng.integers(100, 400)), int(rng.integers(2, 4))
    columns, cells = [], []
    for j in range(6):
        size = int(rng.integers(2, 5))
        codes = rng.integers(0, size, n)
        if rng.random() < 0.3:
            codes[rng.random(n) < 0.1] = size
        column = Column(f"x{j}", "categorical", tuple(range(size)), size in codes)
        columns.append(column)
        cells.append(codes.astype(column.code_dtype))
    told = (cells[0].astype(int) + cells[1] * cells[2]) % n_classes
    noise = rng.integers(0, n_classes, n)
    labels = np.where(rng.random(n) < 0.7, told, noise).astype(np.intp)
    return columns, Columns(n, tuple(cells)), labels, n_classes


def c45_problem(seed: int):
    """A random table with C4.5's recipe, its usual missing policy most of the time."""
    columns, data, labels, n_classes, grid, base = random_problem(seed)
    rng = np.random.default_rng(seed)
    if rng.random() < 0.5:
        columns, data, labels, n_classes = noisy_table(rng)
        weights = random_weights(rng, data.n_rows)
        grid = weigh(weights, data.n_rows, fractions=False)
    recipe = replace(
        C45,
        max_depth=base.max_depth,
        min_gain=base.min_gain,
        min_samples_branch=int(rng.choice([1, 2, 2, 5])),
        missing="split" if rng.random() < 0.7 else base.missing,
        unseen=base.unseen,
        threshold=str(rng.choice(["value", "midpoint"])),
        confidence=float(rng.choice([0.01, 0.25, 0.5])),
        raise_subtrees=bool(rng.random() < 0.8),
    )
    fractions = recipe.missing == "split" and any(c.has_missing for c in columns)
    grid = weigh(grid.weights, data.n_rows, fractions)
    return columns, data, labels, n_classes, grid, recipe
