"""Laws of ``min_weight_fraction_leaf``; ``test_naive.py`` has the oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from branchwise import CARTClassifier, CARTRegressor, Model, Recipe, fit_tree
from branchwise.recipe import C45, CART, ID3, unpruned

RECIPES: dict[str, Recipe] = {
    "id3": ID3,
    "id3, fractional cases": replace(ID3, missing="split"),
    "c4.5": unpruned(C45),
    "c4.5, groups": replace(unpruned(C45), branching="groups"),
    "cart": CART,
    "cart, learned": replace(CART, missing="learned"),
    "cart, a third branch": replace(CART, missing="branch"),
    "cart, surrogates": replace(CART, missing="surrogate"),
    "numbers": replace(CART, criterion="variance"),
    "numbers, learned": replace(CART, criterion="variance", missing="learned"),
    "rates": replace(CART, criterion="poisson"),
}
N = 200


def table(seed: int = 0) -> tuple[dict[str, list[Any]], list[str], list[float]]:
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=N).round(1).tolist()
    texts = rng.choice(list("abcde"), N).tolist()
    others = rng.integers(0, 3, N)
    for at in rng.choice(N, 20, replace=False).tolist():
        numbers[at] = None
    for at in rng.choice(N, 20, replace=False).tolist():
        texts[at] = None
    X = {"n": numbers, "t": texts, "k": [f"k{v}" for v in others]}
    noise = rng.random(N)
    y = [
        "no" if (text in ("a", "b")) ^ (other == 1) or e < 0.2 else "yes"
        for text, other, e in zip(texts, others, noise, strict=True)
    ]
    return X, y, rng.integers(1, 5, N).astype(float).tolist()


def grown(name: str, share: float, weights: Any = None, **more: Any) -> Model:
    X, y, _ = table()
    recipe = replace(RECIPES[name], min_weight_fraction_leaf=share, **more)
    target = [float(y_ == "yes") + 0.5 for y_ in y] if recipe.is_regression else y
    return fit_tree(X, target, recipe, sample_weight=weights)


def weight(model: Model) -> np.ndarray:
    tree = model.tree
    return tree.weights.sum(axis=1)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_leaf_has_its_share(name, weighted):
    weights = table()[2] if weighted else None
    for share in (0.01, 0.05, 0.1, 0.3):
        model = grown(name, share, weights)
        least = share * (sum(weights) if weights else N)
        assert weight(model).min() >= least * (1 - 1e-9)
    assert len(grown(name, 0.01, weights).tree) > len(grown(name, 0.3, weights).tree)


@pytest.mark.parametrize("name", RECIPES)
def test_zero_is_no_limit(name):
    weights = table()[2]
    X, y, _ = table()
    recipe = RECIPES[name]
    target = [float(y_ == "yes") + 0.5 for y_ in y] if recipe.is_regression else y
    plain = fit_tree(X, target, recipe, sample_weight=weights)
    assert grown(name, 0.0, weights).to_bytes() == plain.to_bytes()
    tiny = grown(name, 1e-9, weights)
    assert tiny.tree == plain.tree


@pytest.mark.parametrize("name", RECIPES)
def test_half_leaves_at_most_two_leaves(name):
    for weights in (None, table()[2]):
        assert grown(name, 0.5, weights).tree.n_leaves <= 2


@pytest.mark.parametrize("name", RECIPES)
def test_scaled_weights_grow_the_same_tree(name):
    weights = np.array(table()[2])
    for share in (0.03, 0.1):
        # C4.5 takes weights for numbers of cases, but for this limit.
        if RECIPES[name].weights_are_cases:
            continue
        first, second = grown(name, share, weights), grown(name, share, weights * 4)
        assert first.tree.column.tolist() == second.tree.column.tolist()
        assert first.tree.cases.tolist() == second.tree.cases.tolist()


@pytest.mark.parametrize("name", RECIPES)
def test_without_weights_it_is_a_number_of_cases(name):
    if RECIPES[name].missing == "split":
        pytest.skip("numbers of fractional cases are rounded up")
    for share in (0.02, 0.1):
        by_cases = grown(name, 0.0, min_samples_leaf=round(share * N))
        assert grown(name, share).tree == by_cases.tree


@pytest.mark.parametrize("name", RECIPES)
def test_a_row_of_weight_two_is_a_row_twice(name):
    X, y, weights = table()
    recipe = replace(RECIPES[name], min_weight_fraction_leaf=0.04)
    rows = np.repeat(np.arange(N), np.array(weights, dtype=int))
    target = [float(y_ == "yes") + 0.5 for y_ in y] if recipe.is_regression else y
    twice = fit_tree(
        {name: [cells[at] for at in rows] for name, cells in X.items()},
        [target[at] for at in rows],
        recipe,
    )
    model = fit_tree(X, target, recipe, sample_weight=weights)
    assert model.tree.column.tolist() == twice.tree.column.tolist()
    np.testing.assert_allclose(model.tree.weights, twice.tree.weights)


@pytest.mark.parametrize("share", [0.05, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_scikit_learn_grows_the_same_trees(share, weighted):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 3))
    labels = (X[:, 0] * X[:, 1] + rng.normal(size=300) * 0.3 > 0).astype(int)
    numbers = X[:, 0] * X[:, 1] + rng.normal(size=300) * 0.3
    # With other weights scikit-learn splits nodes of one class, too, by rounding.
    weights = rng.integers(1, 4, 300).astype(float) if weighted else None
    for ours, theirs, y in (
        (CARTClassifier, DecisionTreeClassifier, labels),
        (CARTRegressor, DecisionTreeRegressor, numbers),
    ):
        mine = ours(min_weight_fraction_leaf=share).fit(X, y, weights)
        other = theirs(min_weight_fraction_leaf=share, random_state=0)
        other.fit(X, y, weights)
        assert mine.get_n_leaves() == other.get_n_leaves()
        sizes = np.sort(other.tree_.weighted_n_node_samples)
        np.testing.assert_allclose(np.sort(mine.tree_.weights.sum(axis=1)), sizes)


def test_the_worked_solution_says_so():
    X, y, weights = table()
    model = grown("id3", 0.2, weights)
    text = str(model.steps(X, y, sample_weight=weights, node="all"))
    assert "a branch would have less than 0.2 of the weight of all cases" in text
    assert "requires and min_weight_fraction_leaf 0.2 of the weight of all" in text
    X = {"n": [float(at % 20 == 0) for at in range(N)]}
    model = fit_tree(X, y, replace(ID3, min_weight_fraction_leaf=0.1))
    text = str(model.steps(X, y))
    assert "no threshold leaves 1 case and 0.1 of the weight of all cases on" in text
