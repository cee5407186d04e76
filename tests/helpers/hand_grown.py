"""Tables, recipes and random actions for tests of sessions."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from branchwise.errors import BranchwiseError
from branchwise.recipe import C45, CART, ID3, Recipe
from branchwise.studio.nodes.node_paths import paths
from branchwise.studio.session import Session

#: The order of a column of ordered categories.
ORDER = {"d": ["lo", "mid", "hi"]}

RECIPES: dict[str, Recipe] = {
    "id3": ID3,
    "id3 p-value": replace(ID3, max_p_value=0.05),
    "c4.5": C45,
    "c4.5 groups": replace(C45, branching="groups"),
    "c4.5 bins": replace(C45, max_bins=16),
    "c4.5 costs": replace(C45, costs=((0, 1, 2), (3, 0, 1), (1, 1, 0))),
    "cart": CART,
    "cart bins": replace(CART, max_bins=16, min_samples_leaf=3),
    "cart surrogates": replace(CART, missing="surrogate", max_depth=5),
    "cart bins surrogates": replace(CART, missing="surrogate", max_bins=8),
    "cart p-value": replace(CART, max_p_value=0.05),
    "cart alpha": replace(CART, pruning="cost-complexity", ccp_alpha=0.005),
    "cart 1-se": replace(CART, pruning="cost-complexity", ccp_alpha="1-se"),
    "cart leaves": replace(CART, max_leaf_nodes=8),
    "cart laplace": replace(CART, probabilities="laplace", max_depth=4),
    "cart shrunk": replace(CART, probabilities="shrunk", max_depth=4),
}
NUMBERS: dict[str, Recipe] = {
    "regression": replace(CART, criterion="variance", min_samples_leaf=3),
    "regression surrogates": replace(
        CART, criterion="variance", missing="surrogate", max_depth=4
    ),
    "regression alpha": replace(
        CART, criterion="variance", pruning="cost-complexity", ccp_alpha=0.002
    ),
    "regression values": replace(ID3, criterion="variance", max_depth=3),
}


#: Recipes that are always tested; the others are slow tests.
QUICK = ("id3", "c4.5", "c4.5 bins", "cart surrogates", "cart alpha", "regression")


def by_recipe() -> list[Any]:
    """Return the names of all recipes as parameters of a test."""
    return [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in (*RECIPES, *NUMBERS)
    ]


def table(
    n_rows: int,
    seed: int,
    missing: bool = False,
    numbers: bool = False,
    weights: bool = False,
) -> pd.DataFrame:
    """Return a table of numbers, categories and ordered categories, and its target."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n_rows).round(2),
            "b": rng.integers(0, 5, n_rows).astype(float),
            "c": rng.choice(list("xyzuvw"), n_rows).astype(object),
            "d": rng.choice(ORDER["d"], n_rows).astype(object),
            "e": rng.choice(list("pq"), n_rows).astype(object),
        }
    )
    total = frame.a + frame.b / 3 + (frame.c == "x") * 2 + (frame.d == "hi")
    total = total + rng.normal(size=n_rows) * 0.7
    if missing:
        for name in frame:
            nothing = None if frame[name].dtype == object else np.nan
            frame.loc[rng.random(n_rows) < 0.1, name] = nothing
    frame["y"] = total.round(3)
    if not numbers:
        frame["y"] = np.select([total < 0, total < 1.5], ["A", "B"], "C")
    if weights:
        frame["w"] = rng.integers(1, 4, n_rows) * 0.3
    return frame


def options(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the options of such a table."""
    weight = {"sample_weight": "w"} if "w" in frame else {}
    return {"order": ORDER, **weight}


def random_step(session: Session, dice: random.Random) -> bool:
    """Do something at random; tell whether it was possible."""
    try:
        _step(session, dice)
    except BranchwiseError:
        return False
    return True


def _step(session: Session, dice: random.Random) -> None:
    tree = session.state.tree
    every = paths(tree)
    node = dice.choice(every)
    leaves = [p for p, n in zip(every, tree.n_children, strict=True) if not n]
    inner = [p for p, n in zip(every, tree.n_children, strict=True) if n] or ["/"]
    leaf, split = dice.choice(leaves), dice.choice(inner)
    to = dice.choice(["largest", "stop", "every", 0, 1])
    steps = {
        "split a leaf": (32, lambda: _split(session, dice, leaf)),
        "split": (8, lambda: _split(session, dice, node)),
        "grow a leaf": (8, lambda: session.grow(leaf)),
        "grow": (4, lambda: session.grow(node, levels=dice.choice([1, 2]))),
        "grow leaves": (2, lambda: session.grow(split, levels=1, leaves=True)),
        "prune": (6, lambda: session.prune(split)),
        "lock": (4, lambda: session.lock(node)),
        "unlock": (6, lambda: session.unlock(dice.choice(session.locks or ["/"]))),
        "relabel": (
            4,
            lambda: session.relabel(leaf, dice.choice(session.schema.classes or (1,))),
        ),
        "note": (3, lambda: session.note(node, "to be seen")),
        "set_missing": (6, lambda: session.set_missing(split, to)),
        "undo": (9, session.undo),
        "redo": (7, session.redo),
        "goto": (3, lambda: session.goto(dice.randrange(len(session.history)))),
    }
    names = list(steps)
    weights = [steps[name][0] for name in names]
    steps[dice.choices(names, weights)[0]][1]()


def _split(session: Session, dice: random.Random, at: str) -> None:
    column = dice.choice(session.schema.columns)
    how = dice.random()
    if how < 0.3:
        session.split(at, column.name)
    elif column.is_numeric:
        session.split(at, column.name, threshold=dice.choice([-0.5, 0, 0.5, 1, 2]))
    elif how < 0.6:
        session.split(at, column.name, values=True)
    else:
        values = list(column.categories)
        dice.shuffle(values)
        middle = dice.randint(1, len(values) - 1)
        session.split(at, column.name, groups=[values[:middle], values[middle:]])
