"""Every printed number of a worked solution, held against exact fractions."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from branchwise import fit_tree
from branchwise.recipe import C45, CART, ID3, Recipe
from exact_steps import DIGITS, Checker, Settings
from selection import examples

KINDS = ("id3", "id3 ratio", "id3 gini", "c4.5", "c4.5 groups", "cart", "numbers")


def random_table(rng: random.Random, kind: str):
    """Return columns, target and weights; few values, so that ties are common."""
    n = rng.randint(4, 22)
    gaps = rng.random() < 0.5
    columns: dict[str, list] = {}
    for index in range(rng.randint(2, 4)):
        name = "abcd"[index]
        if rng.random() < 0.4:
            cells: list = [
                float(rng.randint(0, 6)) / rng.choice([1, 2]) for _ in range(n)
            ]
        else:
            cells = [rng.choice("pqrst"[: rng.randint(1, 5)]) for _ in range(n)]
        if gaps:
            cells = [None if rng.random() < 0.2 else cell for cell in cells]
            if all(cell is None for cell in cells):
                cells[0] = "p"
        columns[name] = cells
    if kind == "numbers":
        # None is 0: criterion "poisson" makes no branch of zeros alone.
        y: list = [float(rng.randint(1, 6)) for _ in range(n)]
        y[0] = 2.0
    else:
        y = [rng.choice(["no", "yes", "maybe"][: rng.randint(2, 3)]) for _ in range(n)]
    weights = None
    match rng.randint(0, 3):
        case 0:
            weights = [float(rng.randint(0, 3)) for _ in range(n)]
        case 1:
            weights = [rng.randint(1, 16) / 8 for _ in range(n)]
    if weights is not None:
        weights[0] = 1.0
    return columns, y, weights


def random_recipe(rng: random.Random, kind: str, weights) -> tuple[Recipe, Settings]:
    """Return a recipe, and the same in the words of the checker."""
    bars = {
        "min_samples_split": rng.choice([2, 2, 4]),
        "min_gain": rng.choice([0.0, 0.0, 0.05]),
        "max_depth": rng.choice([None, None, 1]),
        "max_p_value": rng.choice([None, None, None, 0.2]),
    }
    told = Settings(
        min_split=bars["min_samples_split"],
        min_gain=bars["min_gain"],
        max_depth=bars["max_depth"],
        significance=bars["max_p_value"],
    )
    if kind.startswith("c4.5"):
        groups = kind.endswith("groups")
        recipe = replace(C45, branching="groups" if groups else "values", **bars)
        if rng.random() < 0.5:
            recipe = replace(recipe, pruning=None, collapse=False)
        return recipe, replace(
            told,
            criterion="gain_ratio",
            branching="groups" if groups else "values",
            missing="split",
            quinlan=True,
            min_leaf=0,
            min_branch=2,
            threshold="value",
            pruned=recipe.collapse,
        )
    leaf = rng.choice([1, 1, 2])
    bars |= {"min_samples_leaf": leaf, "threshold": "midpoint"}
    told = replace(told, min_leaf=leaf)
    if kind in ("cart", "numbers"):
        numbers = kind == "numbers"
        criteria = ["variance", "variance", "poisson"] if numbers else ["gini", "gain"]
        missing = rng.choice(["largest", "split", "node"])
        criterion = rng.choice(criteria)
        if numbers and missing == "split":
            bars["max_p_value"] = None  # whole degrees of freedom only
            told = replace(told, significance=None)
        recipe = replace(CART, criterion=criterion, missing=missing, **bars)
        return recipe, replace(
            told, criterion=criterion, missing=missing, branching="two-way"
        )
    criterion = {"id3 ratio": "gain_ratio", "id3 gini": "gini"}.get(kind, "gain")
    missing = rng.choice(["branch", "branch", "split", "largest", "node"])
    recipe = replace(ID3, criterion=criterion, missing=missing, **bars)
    return recipe, replace(told, criterion=criterion, missing=missing)


def checked(seed: int) -> int:
    """Check one random table; returns how many numbers were looked at."""
    rng = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    columns, y, weights = random_table(rng, kind)
    recipe, settings = random_recipe(rng, kind, weights)
    model = fit_tree(columns, y, recipe, sample_weight=weights)
    text = model.steps(columns, y, "all", weights).to_text(DIGITS)
    return Checker(columns, y, weights, settings).check(text)


def test_forty_random_tables():
    assert sum(map(checked, range(examples(42)))) > examples(5_000)


@pytest.mark.slow
def test_five_hundred_random_tables():
    assert sum(checked(seed) for seed in range(500)) > 150_000
