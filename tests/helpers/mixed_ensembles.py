"""Random ensembles of every kind of tree, and damage to their files."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from branchwise import (
    BoostedClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
)
from branchwise.ensemble.ensemble import Ensemble
from branchwise.model_file.array_text import array_of_text, array_text
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from branchwise.tree.tree import ARRAYS, OPTIONAL_ARRAYS
from forest_tables import mixed
from mixed_trees import random_model
from model_mutations import damage_bytes, damage_meaning, damage_value, paths_of

FLOATS = {
    spec.key
    for group in (ARRAYS, *OPTIONAL_ARRAYS)
    for spec in group
    if spec.dtype is np.float64
}


@lru_cache(maxsize=64)
def random_ensemble(
    kind: int, seed: int, hostile: bool = True, n_trees: int = 3
) -> Ensemble:
    """Return a random model's tree and smaller ones, which predict together."""
    model = random_model(kind, seed, hostile)
    words = random.Random(seed)
    trees = [model.tree]
    while len(trees) < n_trees:
        smaller = model
        for _ in range(words.randrange(1, 4)):
            inner = np.flatnonzero(~smaller.tree.is_leaf).tolist()
            if inner:
                smaller = smaller.collapse_nodes(words.choice(inner))
        trees.append(smaller.tree)
    voting = "hard" if seed % 3 == 0 and not model.tree.is_regression else "soft"
    max_features = words.choice(["auto", "sqrt", None, 1, 1.0, 0.5])
    recipe = EnsembleRecipe(model.recipe, n_trees, max_features, voting=voting)
    return Ensemble(model.schema, trees, recipe)


@lru_cache(maxsize=64)
def random_boosting(kind: int, seed: int) -> Ensemble:
    """Return trees of a random ensemble with weights; of numbers, with a link."""
    ensemble = random_ensemble(kind, seed)
    rng = np.random.default_rng(seed)
    schema, recipe, trees = ensemble.schema, ensemble.recipe, ensemble.trees
    if not ensemble.is_regression:
        recipe = replace(recipe, method="boosted", voting="hard")
        return Ensemble(schema, trees, recipe, rng.random(len(trees)) * 5)
    classes = ((), (), ("no", "yes"), (1, 2, 3))[seed % 4]
    loss = ("squared_error", "poisson", "log_loss", "log_loss")[seed % 4]
    largest = max(float(np.abs(tree.mean).max()) for tree in trees)
    trees = [replace(tree, mean=tree.mean * (3 / largest)) for tree in trees]
    recipe = replace(recipe, method="gradient", loss=loss)
    initial = rng.normal(size=recipe.n_outputs(len(classes)))
    return Ensemble(replace(schema, classes=classes), trees, recipe, None, initial)


def small_ensemble(kind: int, seed: int) -> Ensemble:
    """Return a random ensemble whose trees have two levels of splits."""
    ensemble = random_ensemble(kind, seed)
    trees = []
    for model in ensemble:
        deep = np.flatnonzero((model.tree.depth == 2) & ~model.tree.is_leaf).tolist()
        trees.append(model.collapse_nodes(*deep).tree if deep else model.tree)
    return Ensemble(ensemble.schema, trees, ensemble.recipe)


@lru_cache(maxsize=1)
def boosted_ensembles() -> list[Ensemble]:
    """Return small ensembles by boosting: weights of trees, margins of classes."""
    X, y = mixed(80)
    rows = X.drop(columns="noise")
    estimators = (
        (BoostedClassifier(n_estimators=3, max_depth=2), y),
        (GradientBoostingClassifier(n_estimators=3, max_depth=2), y),
        (GradientBoostingClassifier(n_estimators=2, max_depth=2), X["size"]),
        (GradientBoostingRegressor(n_estimators=3, max_depth=2), X["noise"]),
    )
    return [estimator.fit(rows, target).model_ for estimator, target in estimators]


def damaged(content: bytes, document: Any, rng: random.Random) -> bytes:
    """Return the file of an ensemble with damage of some kind."""
    match rng.randrange(6):
        case 0:
            return damage_bytes(content, rng)
        case 1:
            changed = damage_value(document, paths_of(document), rng)
            return json.dumps(changed).encode()
        case 2:
            return json.dumps(_damage_text(document, rng)).encode()
        case _:
            return json.dumps(_damage_tree(document, rng)).encode()


def _damage_text(document: Any, rng: random.Random) -> Any:
    """Damage the text of an array, or put that of another array in its place."""
    document = copy.deepcopy(document)
    tree, other = rng.choice(document["trees"]), rng.choice(document["trees"])
    key = rng.choice(list(tree))
    text = tree[key]
    at = rng.randrange(len(text) + 1)
    letter = rng.choice("AQgw/+=:z \n")
    tree[key] = rng.choice(
        [
            text[:at] + letter + text[at + 1 :],
            text[:at] + letter + text[at:],
            text[:at],
            text[:3] + text[3:] * 2,
            rng.choice(["i1", "i2", "i4", "i8", "f8", "f4", "u1"]) + text[2:],
            other.get(rng.choice(list(other))),
            text + "====",
        ]
    )
    return document


def _damage_tree(document: Any, rng: random.Random) -> Any:
    """Damage the numbers of a tree, the schema or the recipe; write them anew."""
    at = rng.randrange(len(document["trees"]))
    tree = document["trees"][at]
    n_nodes = len(array_of_text(tree["column"], "column", False))
    lists = {key: _numbers(text, key, n_nodes) for key, text in tree.items()}
    changed = damage_meaning({**document, "tree": lists, "trees": None}, rng)
    lists = changed.pop("tree")
    texts = {key: _text(lists[key], key) for key in lists}
    trees = [texts if i == at else t for i, t in enumerate(document["trees"])]
    return {**changed, "trees": trees}


def _numbers(text: str, key: str, n_nodes: int) -> list[Any]:
    array = array_of_text(text, key, key in FLOATS)
    if key in ("weights", "class_cases"):
        return array.reshape(n_nodes, -1).tolist()
    return [None if number != number else number for number in array.tolist()]


def _text(numbers: list[Any], key: str) -> Any:
    try:
        return array_text(np.array(numbers, float if key in FLOATS else np.int64))
    except (ValueError, TypeError, OverflowError):
        return numbers
