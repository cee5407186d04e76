"""Subtrees that engines grow from the rows of one node, in the compiled kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from branchwise.engines.base import Task
from branchwise.grow import native_kernel as native
from branchwise.recipe import C45, CART, ID3, Recipe, unpruned
from branchwise.train.engine_growth import Below, grown_by_engine
from branchwise.train.train import task_of
from branchwise.tree.tree import Tree
from engine_tables import in_parts, random_table
from listed_source import ListedPlace

pytestmark = pytest.mark.skipif(
    not native.available(), reason="installed without the compiled extension"
)


def random_recipe(rng: np.random.Generator) -> Recipe:
    """Classes or numbers, with all that limits growth; few of them test splits."""
    recipe = unpruned([ID3, C45, CART][rng.integers(3)])
    changes: dict[str, Any] = {
        "threshold": str(rng.choice(["midpoint", "value"])),
        "min_samples_leaf": [1, 1, 3, 0.05][rng.integers(4)],
        "min_weight_fraction_leaf": float(rng.choice([0, 0, 0.02])),
        "min_gain": float(rng.choice([0, 0, 0.01])),
        "max_depth": [None, None, 3][rng.integers(3)],
        "max_p_value": [None, None, 0.4][rng.integers(3)],
        "max_bins": [None, None, 5][rng.integers(3)],
    }
    policies = ["branch", "largest", "node"]
    if recipe.branching == "two-way":
        policies += ["learned", "surrogate", "surrogate"]
    changes["missing"] = str(rng.choice(policies))
    if recipe.criterion != "gain_ratio" and rng.random() < 0.5:
        changes["criterion"] = str(rng.choice(["variance", "poisson"]))
    return replace(recipe, **changes)


def random_case(seed: int) -> tuple[pd.DataFrame, Recipe, np.random.Generator]:
    rng = np.random.default_rng(seed)
    table, recipe = random_table(rng), random_recipe(rng)
    if recipe.is_regression:
        told = pd.factorize(table["c0"])[0] + rng.normal(size=len(table)) / 2
        table["y"] = np.exp(told) if recipe.criterion == "poisson" else told
    return table, recipe, rng


def grown_in_parts(
    parts: list[pd.DataFrame], recipe: Recipe, weighted: bool, most_rows: int
) -> Tree:
    source = ListedPlace(parts, most_rows)
    task = Task("y", "w" if weighted else None, ("w",))
    plan = source.learn(task_of(recipe, task))
    assert Below.serves(plan, recipe)
    return grown_by_engine(source, plan, recipe)


def check(seed: int) -> None:
    """Nodes of few rows, or the root, are grown at once; or none is."""
    table, recipe, rng = random_case(seed)
    weighted, parts = rng.random() < 0.5, in_parts(rng, table)
    most_rows = int(rng.choice([40, 40, 10**6]))
    by_levels = grown_in_parts(parts, recipe, weighted, 0)
    at_once = grown_in_parts(parts, recipe, weighted, most_rows)
    assert by_levels == at_once, (seed, recipe)


@pytest.mark.parametrize("part", range(2))
def test_subtrees_are_those_of_the_reference(part: int) -> None:
    for seed in range(10_000 + part, 10_024, 2):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_subtrees_of_5000_tables(part: int) -> None:
    for seed in range(part, 5000, 10):
        check(seed)


def test_the_reference_grows_what_the_kernel_leaves_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A p-value may be too near to its limit; limits are those of the whole table."""

    def undecided(*_: object) -> None:
        return None

    recipe = replace(CART, max_p_value=0.4, min_samples_leaf=0.02, missing="surrogate")
    numbers = replace(recipe, criterion="variance", missing="learned")
    c45 = replace(unpruned(C45), missing="branch", min_samples_leaf=0.02)
    for seed, one in enumerate([recipe, numbers, c45, recipe, numbers, c45]):
        rng = np.random.default_rng(seed)
        table = random_table(rng)
        if one.is_regression:
            table["y"] = rng.normal(size=len(table))
        weighted = seed % 2 == 0
        by_levels = grown_in_parts([table], one, weighted, 0)
        with monkeypatch.context() as changed:
            changed.setattr(native, "grow_native", undecided)
            changed.setattr(native, "grow_numbers", undecided)
            at_once = grown_in_parts([table], one, weighted, 60)
        assert by_levels == at_once, seed
