"""The choice of groups or two-way splits, and of pruning, by cross-validation."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from branchwise import (
    BaggedTrees,
    C45Classifier,
    ParameterError,
    datasets,
    fit_tree,
    grow_by_hand,
)
from branchwise.data.encode import learn_columns
from branchwise.data.frames import open_table
from branchwise.data.target import learn_target
from branchwise.engines.memory import Training
from branchwise.estimators.of_model import to_estimator
from branchwise.recipe import C45, Recipe
from branchwise.train import cross_validation
from branchwise.train.cross_validation import candidates
from branchwise.train.hold_out import assigned

CHOOSES = replace(C45, branching="groups", cross_validate=True)
CAR = datasets.load("car")


def made(seed, n=300):
    """Return rows of class yes where exactly two of six categories are u."""
    rng = np.random.default_rng(seed)
    X = {name: rng.choice(list("uvw"), n) for name in "abcdef"}
    hits = sum((X[name] == "u").astype(int) for name in "abcdef")
    return X, np.where(hits == 2, "yes", "no")


def encoded(X, y, weights):
    columns, data = learn_columns(open_table(X), "from_dtype", None)
    classes, codes = learn_target(y)
    return Training(columns, data, codes, len(classes), weights)


def permuted(X, order):
    return {name: cells[order] for name, cells in X.items()}


def naive_choice(X, y, recipe, weights=None, repeats=3):
    """Return the chosen recipe, by whole fits, the losses one row after the other."""
    classes = sorted(set(y))

    def fitted(rows, one):
        return fit_tree(
            permuted(X, rows),
            y[rows],
            one,
            sample_weight=None if weights is None else weights[rows],
            classes=classes,
        )

    # Those with ccp_alpha="best" have the one that is best for all rows.
    everything = np.arange(len(y))
    recipes = [fitted(everything, one).recipe for one in candidates(recipe)]
    costs = recipe.costs or 1 - np.eye(len(classes))
    loss = np.zeros((len(recipes), len(y)))
    leaves = np.zeros(len(recipes))
    for repeat, fold in product(range(repeats), range(10)):
        hand = assigned(encoded(X, y, weights), 10, repeat)
        rest, aside = np.flatnonzero(hand != fold), np.flatnonzero(hand == fold)
        for at, one in enumerate(recipes):
            model = fitted(rest, one)
            leaves[at] += model.tree.n_leaves
            for row, got in zip(aside, model.predict(permuted(X, aside)), strict=True):
                loss[at, row] += costs[classes.index(y[row])][classes.index(got)]
    counts = np.ones(len(y)) if weights is None else weights
    best = loss[np.argmin(loss @ counts)]
    chosen = None
    for at in range(len(recipes)):
        excess = loss[at] - best
        total = (counts * excess).sum()
        spread = (counts * excess**2).sum() - total**2 / counts.sum()
        if total <= np.sqrt(spread) and (chosen is None or leaves[at] < leaves[chosen]):
            chosen = at
    return recipes[chosen]


COSTS = ((0, 1), (5, 0))


@pytest.mark.parametrize("seed", range(4))
def test_the_choice_is_that_of_whole_fits(seed):
    X, y = made(seed)
    recipe = CHOOSES if seed != 2 else replace(CHOOSES, costs=COSTS)
    if seed == 3:
        missing = np.random.default_rng(seed).random(len(y)) < 0.2
        X["a"] = np.where(missing, None, X["a"].astype(object))
    weights = None
    if seed == 1:
        weights = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
    model = fit_tree(X, y, recipe, sample_weight=weights)
    chosen = naive_choice(X, y, recipe, weights)
    assert model.recipe == chosen
    assert model.tree == fit_tree(X, y, chosen, sample_weight=weights).tree


@pytest.mark.parametrize("seed", [0, 3])
def test_folds_of_many_rows_are_not_repeated(seed, monkeypatch):
    monkeypatch.setattr(cross_validation, "FEW_ROWS", 299)
    X, y = made(seed)
    assert fit_tree(X, y, CHOOSES).recipe == naive_choice(X, y, CHOOSES, repeats=1)


def test_repeats_have_other_stratified_folds():
    X, y = made(1)
    folds = [assigned(encoded(X, y, None), 10, repeat) for repeat in range(3)]
    for one, other in zip(folds, [*folds[1:], folds[0]], strict=True):
        together = (one[:, np.newaxis] == one) & (other[:, np.newaxis] == other)
        # Of two rows in a fold, one in ten pairs is in a fold of the other repeat, too.
        assert together.sum() - len(y) < 0.2 * len(y) * len(y) / 10
        for label in set(y):
            sizes = np.bincount(one[y == label], minlength=10)
            assert sizes.max() - sizes.min() <= 1


def test_different_tables_have_different_choices():
    chosen = {fit_tree(*made(seed), CHOOSES).recipe for seed in (0, 2, 3)}
    chosen.add(fit_tree(*made(2, n=100), CHOOSES).recipe)
    assert {(one.branching, one.criterion, one.pruning) for one in chosen} == {
        ("groups", "gain_ratio", "error-based"),
        ("groups", "gain_ratio", "cost-complexity"),
        ("two-way", "gain", "error-based"),
        ("two-way", "gini", "cost-complexity"),
    }


def test_the_order_of_rows_does_not_matter():
    X, y = made(3)
    order = np.random.default_rng(0).permutation(len(y))
    weights = np.random.default_rng(1).random(len(y)) + 0.5
    one = fit_tree(X, y, CHOOSES, sample_weight=weights)
    other = fit_tree(
        permuted(X, order), y[order], CHOOSES, sample_weight=weights[order]
    )
    assert one.to_bytes() == other.to_bytes()


def test_the_order_of_equal_rows_does_not_matter():
    X, y = made(5)
    X = {name: X[name] for name in "abc"}
    y = np.where(np.random.default_rng(2).random(len(y)) < 0.2, "yes", y)
    order = np.random.default_rng(0).permutation(len(y))
    one = fit_tree(X, y, CHOOSES)
    other = fit_tree(permuted(X, order), y[order], CHOOSES)
    assert one.to_bytes() == other.to_bytes()


def test_rows_without_weight_do_not_count():
    X, y = made(4)
    noise = made(5)[0]
    both = {name: np.concatenate([X[name], noise[name]]) for name in X}
    labels = np.concatenate([y, y[::-1]])
    weights = np.repeat([1.0, 0.0], len(y))
    one = fit_tree(X, y, CHOOSES, sample_weight=np.ones(len(y)))
    other = fit_tree(both, labels, CHOOSES, sample_weight=weights)
    assert one.recipe == other.recipe
    assert one.tree.column.tolist() == other.tree.column.tolist()


def test_car_has_fewer_errors():
    groups = C45Classifier(group_values=True).fit(CAR.X, CAR.y)
    chosen = C45Classifier(group_values=True, cross_validate=True).fit(CAR.X, CAR.y)
    assert chosen.model_.recipe.pruning == "cost-complexity"
    assert not chosen.model_.recipe.cross_validate
    assert chosen.score(CAR.X, CAR.y) > groups.score(CAR.X, CAR.y)


def test_few_rows_stay_with_groups():
    model = fit_tree({"a": ["x"]}, ["no"], CHOOSES)
    assert model.recipe == candidates(CHOOSES)[0]
    two = fit_tree({"a": ["x", "y"]}, [0, 1], CHOOSES, sample_weight=[0, 1])
    assert two.recipe.branching == "groups"


def test_other_pruning_is_left_as_it_is():
    found = candidates(replace(CHOOSES, pruning=None, collapse=False))
    assert [one.branching for one in found] == ["groups", "two-way"]
    priced = replace(
        CHOOSES, pruning="cost-complexity", ccp_alpha="best", collapse=False
    )
    chosen = fit_tree(*made(2), priced).recipe
    assert chosen.pruning == "cost-complexity"
    assert isinstance(chosen.ccp_alpha, float)


def test_costs_in_growth_are_kept():
    recipe = replace(CHOOSES, costs=COSTS, costs_in="growth")
    chosen = fit_tree(*made(1), recipe).recipe
    assert (chosen.costs, chosen.costs_in) == (recipe.costs, "growth")
    assert not chosen.cross_validate


@pytest.mark.parametrize("seed", [0, 2])
def test_an_estimator_of_a_two_way_tree_would_choose_again(seed):
    X, y = made(seed)
    chosen = C45Classifier(group_values=True, cross_validate=True).fit(X, y)
    assert chosen.model_.recipe.branching == "two-way"
    again = to_estimator(chosen.model_)
    assert again.cross_validate
    assert again.group_values
    assert again.fit(X, y).model_.to_bytes() == chosen.model_.to_bytes()


def test_an_estimator_of_groups_has_the_chosen_pruning():
    X, y = made(3)
    chosen = C45Classifier(group_values=True, cross_validate=True).fit(X, y)
    again = to_estimator(chosen.model_)
    assert not again.cross_validate
    assert again.pruning == "cost-complexity"
    assert again.fit(X, y).model_.to_bytes() == chosen.model_.to_bytes()


def test_sides_of_missing_values_are_learned_unless_a_policy_is_given():
    X, y = made(2)
    X["a"] = X["a"].astype(object)
    X["a"][::7] = None
    model = fit_tree(X, y, CHOOSES)
    assert (model.recipe.branching, model.recipe.missing) == ("two-way", "learned")
    same = type(model).from_bytes(model.to_bytes())
    assert same.predict(X).tolist() == model.predict(X).tolist()
    given = candidates(replace(CHOOSES, missing="largest"))
    assert {one.missing for one in given} == {"largest"}


def test_growing_by_hand_chooses_the_same():
    session = grow_by_hand(CAR.X, CAR.y, CHOOSES)
    session.grow("/")
    assert session.model.tree == fit_tree(CAR.X, CAR.y, CHOOSES).tree


def test_growing_by_hand_learns_sides_where_they_are_chosen():
    X, y = made(2)
    session = grow_by_hand(X, y, CHOOSES)
    session.grow("/")
    assert session.model.tree == fit_tree(X, y, CHOOSES).tree


def test_what_does_not_go_together(tmp_path):
    with pytest.raises(ParameterError, match="has no effect unless branching is"):
        Recipe(cross_validate=True)
    with pytest.raises(ParameterError, match="cross_validate must be"):
        C45Classifier(cross_validate="best").fit(CAR.X, CAR.y)
    tree = C45Classifier(group_values=True, cross_validate=True)
    with pytest.raises(ParameterError, match="is for single trees"):
        BaggedTrees(estimator=tree, n_estimators=2).fit(CAR.X, CAR.y)
    path = tmp_path / "rows.csv"
    path.write_text("a,y\nx,1\nz,2\n", encoding="utf-8")
    with pytest.raises(ParameterError, match="cross_validate=True needs the rows in"):
        fit_tree(path, "y", CHOOSES, engine="chunked")
