"""Random models and rows for what-if questions."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from branchwise import (
    Model,
    Recipe,
    fit_tree,
)
from branchwise.recipe import C45, CART

UNPRUNED = replace(C45, pruning=None, collapse=False, min_samples_branch=1)


RECIPES = [
    Recipe(),
    Recipe(missing="split", unseen="split"),
    Recipe(missing="largest", unseen="largest"),
    Recipe(missing="node"),
    UNPRUNED,
    C45,
    replace(C45, branching="groups", min_samples_branch=1),
    replace(UNPRUNED, probabilities="laplace"),
    replace(UNPRUNED, costs=((0.0, 1.0, 1.0), (3.0, 0.0, 1.0), (1.0, 1.0, 0.0))),
    CART,
    replace(CART, missing="branch", unseen="branch"),
    replace(CART, missing="split", unseen="split"),
    replace(CART, missing="learned"),
    replace(CART, missing="surrogate"),
    replace(CART, missing="surrogate", unseen="split"),
]


OF_NUMBERS = [
    replace(CART, criterion="variance"),
    replace(CART, criterion="variance", missing="split", unseen="split"),
    replace(CART, criterion="variance", missing="surrogate"),
]


LETTERS = "abc"


def random_cells(rng: random.Random, n: int, gaps: float) -> dict[str, list[Any]]:
    def cell_or_missing(cell: Any) -> Any:
        return None if rng.random() < gaps else cell

    return {
        "u": [cell_or_missing(rng.choice(LETTERS)) for _ in range(n)],
        "n": [cell_or_missing(rng.randrange(6)) for _ in range(n)],
        "v": [cell_or_missing(rng.choice("xy")) for _ in range(n)],
        "m": [cell_or_missing(rng.randrange(4) / 2) for _ in range(n)],
    }


def random_model(rng: random.Random, recipe: Recipe) -> Model:
    n = rng.randrange(6, 26)
    cells = random_cells(rng, n, rng.choice([0, 0.2, 0.4]))
    cells["u"][:3], cells["v"][:2] = LETTERS, "xy"
    if recipe.criterion == "variance":
        return fit_tree(cells, [float(rng.randrange(5)) for _ in range(n)], recipe)
    labels = [rng.choice("pqr") for _ in range(n)]
    labels[:3] = "pqr"  # as many classes as the costs have
    return fit_tree(cells, labels, recipe)


def random_row(rng: random.Random) -> dict[str, Any]:
    row = {name: cells[0] for name, cells in random_cells(rng, 1, 0.3).items()}
    if rng.random() < 0.2:
        row["u"] = "unheard"
    return row
