"""Cost-complexity pruning by errors: Breiman's risk, chosen where alpha is."""

from dataclasses import replace

import numpy as np
import pytest

from branchwise import CARTClassifier, CARTRegressor, ParameterError, datasets, fit_tree
from branchwise.prune.risk import Errors, leaf_risk, left_behind, measure_of
from branchwise.prune.subtrees import pruned, pruning_path
from branchwise.recipe import CART, ID3, Recipe
from branchwise.tree.apply import with_costs
from naive_pruning import pruning_path as naive_path

BY_ERRORS = replace(CART, pruning="cost-complexity", risk="errors")
COSTS = ((0.0, 1.0, 5.0), (2.0, 0.0, 1.0), (1.0, 3.0, 0.0))


def made_table(seed, n=300):
    draw = np.random.default_rng(seed)
    X = {
        "a": draw.choice(list("uvwxyz"), n),
        "b": draw.choice(list("pq"), n),
        "n": draw.integers(0, 9, n).astype(float),
    }
    y = np.where(draw.random(n) < 0.3, draw.integers(0, 3, n), (X["n"] > 4) * 1)
    return X, np.array(["one", "two", "three"])[y]


@pytest.mark.parametrize("costs", [None, COSTS])
@pytest.mark.parametrize("recipe", [CART, ID3])
def test_the_risk_of_a_node_is_the_share_of_rows_that_it_predicts_wrongly(
    recipe, costs
):
    recipe = replace(recipe, costs=costs)
    tree = with_costs(fit_tree(*made_table(1), recipe).tree, recipe)
    found = leaf_risk(tree, Errors(costs))
    matrix = 1 - np.eye(3) if costs is None else np.array(costs)
    for node in range(len(tree)):
        wrong = tree.weights[node] @ matrix[:, tree.label[node]]
        assert found[node] == pytest.approx(wrong / tree.weights[0].sum())
    assert not left_behind(tree, Errors(costs)).any()


@pytest.mark.parametrize("seed", range(8))
def test_the_path_by_errors_is_that_of_the_definition(seed):
    tree = fit_tree(*made_table(seed, 120), CART).tree
    fast, plain = pruning_path(tree, Errors()), naive_path(tree, Errors())
    assert fast.alphas == pytest.approx(plain.alphas, rel=1e-9, abs=1e-12)
    assert fast.n_leaves.tolist() == plain.n_leaves.tolist()
    for alpha in fast.alphas[1:]:
        assert pruned(tree, alpha * 1.001, Errors()).n_leaves <= tree.n_leaves


def test_splits_that_save_no_error_go_even_where_leaves_cost_nothing():
    # Both leaves predict "no": impurity is lower, errors are not.
    X, y = {"a": ["u"] * 4 + ["v"] * 4}, ["no"] * 3 + ["yes"] + ["no"] * 4
    by_impurity = CARTClassifier(pruning="cost-complexity").fit(X, y)
    assert by_impurity.get_n_leaves() == 2
    by_errors = CARTClassifier(pruning="cost-complexity", risk="errors").fit(X, y)
    assert by_errors.get_n_leaves() == 1


def test_alphas_that_are_chosen_are_of_errors_and_numbers_of_impurity():
    chosen = replace(CART, pruning="cost-complexity", ccp_alpha="1-se")
    assert chosen.counts_errors
    assert measure_of(chosen) == Errors()
    assert not replace(chosen, ccp_alpha=0.01).counts_errors
    assert not replace(chosen, risk="impurity").counts_errors
    assert replace(chosen, ccp_alpha=0.01, risk="errors").counts_errors
    assert not replace(chosen, criterion="variance").counts_errors


@pytest.mark.parametrize("rule", ["best", "1-se"])
def test_a_model_keeps_what_its_alpha_was_chosen_by(rule):
    X, y = made_table(3)
    model = CARTClassifier(ccp_alpha=rule).fit(X, y).model_
    assert model.recipe.risk == "errors"
    alpha = model.recipe.ccp_alpha
    again = CARTClassifier(ccp_alpha=alpha, risk="errors").fit(X, y).model_
    assert again.tree.n_leaves == model.tree.n_leaves
    other = CARTClassifier(ccp_alpha=rule, risk="impurity").fit(X, y).model_
    assert other.recipe.risk == "impurity"


def test_finished_models_are_pruned_by_either():
    iris = datasets.load("iris")
    model = CARTClassifier().fit(iris.X, iris.y).model_
    best = model.prune("cost-complexity", iris.X, iris.y, ccp_alpha="best")
    assert not best.recipe.counts_errors
    assert best.recipe.ccp_alpha in model.pruning_path().alpha
    small = model.prune("cost-complexity", ccp_alpha=0.2, risk="errors")
    same = CARTClassifier(ccp_alpha=0.2, risk="errors").fit(iris.X, iris.y).model_
    assert small.tree.n_leaves == same.tree.n_leaves == 3
    smaller = small.prune("cost-complexity", iris.X, iris.y, ccp_alpha="1-se")
    assert smaller.recipe.counts_errors
    path = small.pruning_path()
    assert path.alpha[-1] == pytest.approx(1 / 3)
    estimator = CARTClassifier(risk="errors", pruning="cost-complexity")
    bunch = estimator.cost_complexity_pruning_path(iris.X, iris.y)
    assert bunch.impurities[-1] == pytest.approx(2 / 3)


def test_errors_are_for_classes_and_for_cost_complexity_alone():
    with pytest.raises(ParameterError, match="risk='errors' counts wrong classes"):
        replace(BY_ERRORS, criterion="variance")
    with pytest.raises(ParameterError, match="risk='errors' has no effect unless"):
        Recipe(risk="errors")
    with pytest.raises(
        ParameterError, match="risk must be 'auto' or 'impurity' or 'errors'"
    ):
        Recipe(pruning="cost-complexity", risk="gini")
    assert "risk" not in CARTRegressor().get_params()
