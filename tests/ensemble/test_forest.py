"""Random forests: the same data and seed, votes, weights, errors."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from branchwise import (
    DataError,
    Model,
    ParameterError,
    RandomForestClassifier,
    RandomForestRegressor,
    datasets,
)
from branchwise.ensemble.sampling import Samples
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from forest_tables import mixed

#: A row of weight 2 may be drawn once or not at all; two equal rows are drawn each.
_SAMPLES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "rows are drawn, not weights"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [RandomForestClassifier(n_estimators=3), RandomForestRegressor(n_estimators=3)],
    expected_failed_checks=lambda estimator: _SAMPLES,
)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        RandomForestClassifier(n_estimators=5, base="id3", voting="hard"),
        RandomForestClassifier(n_estimators=5, base="c4.5"),
    ],
    expected_failed_checks=lambda estimator: _SAMPLES,
)
def test_scikit_learn_with_other_options(estimator: Any, check: Any) -> None:
    check(estimator)


def content(forest: Any) -> list[bytes]:
    """Return the model files of all trees."""
    return [model.to_bytes() for model in forest.model_]


@pytest.mark.parametrize("base", ["id3", "c4.5", "cart"])
@pytest.mark.parametrize("options", [{}, {"bootstrap": False, "max_samples": 0.6}])
def test_same_data_and_seed_give_the_same_bytes(base: str, options: Any) -> None:
    X, y = mixed()
    forest = RandomForestClassifier(n_estimators=8, base=base, **options).fit(X, y)
    order = np.random.default_rng(1).permutation(len(X))
    again = clone(forest).set_params(n_jobs=3).fit(X.iloc[order], y.iloc[order])
    assert content(forest) == content(again)
    other = clone(forest).set_params(random_state=1).fit(X, y)
    assert content(forest) != content(other)
    assert len(set(content(forest))) == 8


def test_weights_go_with_their_rows() -> None:
    X, y = mixed()
    weights = np.random.default_rng(2).integers(0, 4, len(X)).astype(float)
    forest = RandomForestClassifier(n_estimators=5).fit(X, y, weights)
    order = np.random.default_rng(3).permutation(len(X))
    again = clone(forest).fit(X.iloc[order], y.iloc[order], weights[order])
    assert content(forest) == content(again)
    counted = weights > 0
    absent = clone(forest).fit(X[counted], y[counted], weights[counted])
    for one, other in zip(forest.model_, absent.model_, strict=True):
        assert one.tree == other.tree  # the schema tells of all rows


def test_numbers_in_any_order() -> None:
    X, _ = mixed()
    y = X["income"] * 3 + X["age"].fillna(40) / 10
    forest = RandomForestRegressor(n_estimators=5, max_features=2).fit(X, y)
    order = np.random.default_rng(4).permutation(len(X))
    again = clone(forest).set_params(n_jobs=2).fit(X.iloc[order], y.iloc[order])
    assert content(forest) == content(again)
    mean = np.mean([model.predict(X) for model in forest.model_], axis=0)
    assert np.allclose(forest.predict(X), mean, rtol=1e-14)


def test_fingerprints_that_collide_leave_no_trace(monkeypatch: Any) -> None:
    from branchwise.train import hold_out

    monkeypatch.setattr(
        hold_out,
        "_fingerprint",
        lambda training, repeat: np.zeros(training.data.n_rows, dtype=np.uint64),
    )
    test_same_data_and_seed_give_the_same_bytes("id3", {})


def test_trees_are_models_of_their_samples() -> None:
    X, y = mixed()
    forest = RandomForestClassifier(n_estimators=3, max_features=None).fit(X, y)
    samples = forest.model_.samples
    assert samples is not None
    for number, model in enumerate(forest.model_):
        assert isinstance(model, Model)
        times = samples.times(number)
        assert times.sum() == len(X)
        assert model.tree.cases[0] == len(X)
        by_class = [times[y.to_numpy() == name].sum() for name in ("no", "yes")]
        assert model.tree.weights[0].tolist() == by_class
    assert len(forest) == len(forest.estimators_) == 3
    assert forest[-1] == forest[2]


@pytest.mark.parametrize("max_features", ["sqrt", 1.0])
def test_equal_columns_are_chosen_equally_often(max_features: Any) -> None:
    column = np.random.default_rng(5).normal(size=200)
    X = dict.fromkeys("abcd", column)
    forest = RandomForestClassifier(n_estimators=40, max_features=max_features)
    importances = forest.fit(X, column > 0.3).feature_importances_
    assert importances.min() > 0.1
    # Without draws the trees are those of single fits: the first of equals wins.
    forest.set_params(max_features=None).fit(X, column > 0.3)
    assert forest.feature_importances_.tolist() == [1, 0, 0, 0]


def test_samples_are_bootstrap_samples() -> None:
    X, y = mixed(2000)
    forest = RandomForestClassifier(n_estimators=1).fit(X, y)
    training = forest.model_.samples.training  # type: ignore[union-attr]
    samples = Samples(training, EnsembleRecipe())
    times = np.array([samples.times(tree) for tree in range(60)])
    # Poisson's distribution: 1/e of the rows are out of bag.
    for k, share in enumerate([0.3679, 0.3679, 0.1839, 0.0613]):
        assert abs((times == k).mean() - share) < 0.005
    assert np.abs(times.mean(axis=0) - 1).max() < 0.75
    third = Samples(training, EnsembleRecipe(bootstrap=False, max_samples=0.3))
    times = np.array([third.times(tree) for tree in range(60)])
    assert times.max() == 1
    assert (times.sum(axis=1) == 600).all()


def test_adding_trees_is_growing_all_of_them() -> None:
    X, y = mixed()
    whole = RandomForestClassifier(n_estimators=9).fit(X, y)
    warm = RandomForestClassifier(n_estimators=4, warm_start=True).fit(X, y)
    first = warm.model_.trees
    warm.set_params(n_estimators=9).fit(X, y)
    assert content(warm) == content(whole)
    assert warm.model_.trees[:4] == first
    with pytest.raises(ParameterError, match="n_estimators must be at least 9"):
        warm.set_params(n_estimators=3).fit(X, y)


@pytest.mark.parametrize("base", ["id3", "cart"])
def test_random_splits(base: str) -> None:
    X, y = mixed()
    options = {"n_estimators": 8, "base": base, "splitter": "random"}
    forest = RandomForestClassifier(**options, bootstrap=False).fit(X, y)  # type: ignore[arg-type]
    best = clone(forest).set_params(splitter="best").fit(X, y)
    assert content(forest) != content(best)
    assert len(set(content(forest))) == 8
    order = np.random.default_rng(1).permutation(len(X))
    again = clone(forest).set_params(n_jobs=2).fit(X.iloc[order], y.iloc[order])
    assert content(forest) == content(again)
    assert forest.score(X, y) > 0.9
    binned = clone(forest).set_params(max_bins=8).fit(X, y)
    assert binned.score(X, y) > 0.7
    numbers = RandomForestRegressor(n_estimators=8, splitter="random")
    assert numbers.fit(X, X["income"]).score(X, X["income"]) > 0.9


def test_votes_and_averages() -> None:
    X, y = mixed()
    soft = RandomForestClassifier(n_estimators=15, max_depth=3).fit(X, y)
    hard = clone(soft).set_params(voting="hard").fit(X, y)
    assert content(soft) == content(hard)
    average = np.mean([model.predict_proba(X) for model in soft.model_], axis=0)
    assert np.allclose(soft.predict_proba(X), average, rtol=1e-14)
    votes = np.mean(
        [model.predict(X)[:, np.newaxis] == soft.classes_ for model in soft.model_],
        axis=0,
    )
    assert np.allclose(hard.predict_proba(X), votes, rtol=1e-14)
    assert (hard.predict(X) == soft.classes_[votes.argmax(axis=1)]).all()
    assert (soft.predict(X) != hard.predict(X)).any()


def test_costs() -> None:
    X, y = mixed()
    costs = [[0, 1], [9, 0]]
    forest = RandomForestClassifier(n_estimators=15, max_depth=2, costs=costs)
    probabilities = forest.fit(X, y).predict_proba(X)
    expected = np.where(probabilities @ costs @ [1, -1] > 0, "yes", "no")
    assert (forest.predict(X) == expected).all()
    assert (expected == "yes").mean() > (probabilities.argmax(axis=1) == 1).mean()


def test_balanced_samples() -> None:
    X, y = mixed()
    few = (y == "no") | (np.arange(len(y)) % 5 == 0)
    forest = RandomForestClassifier(n_estimators=4, class_weight="balanced_subsample")
    for model in forest.fit(X[few], y[few]).model_:
        no, yes = model.tree.weights[0]
        assert no == pytest.approx(yes)


def test_importances_and_paths() -> None:
    X, y = mixed()
    forest = RandomForestClassifier(n_estimators=10).fit(X, y)
    importances = forest.feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances[4] < importances[2]
    nodes = forest.apply(X)
    assert nodes.shape == (len(X), 10)
    path, starts = forest.decision_path(X)
    assert path.shape[1] == starts[-1] == sum(len(tree) for tree in forest.model_.trees)
    for tree, model in enumerate(forest.model_):
        assert (nodes[:, tree] == model.apply(X)).all()
        assert path[np.arange(len(X)), starts[tree] + nodes[:, tree]].all()


def test_one_row_no_row_and_pickling() -> None:
    X, y = mixed()
    forest = RandomForestClassifier(n_estimators=5).fit(X, y)
    restored = pickle.loads(pickle.dumps(forest))
    assert (restored.predict(X) == forest.predict(X)).all()
    assert forest.predict(X.iloc[0].to_dict())[0] == forest.predict(X)[0]
    assert len(forest.predict(X.iloc[:0])) == 0
    assert "forest of 5 CART trees" in repr(forest.model_)


def test_unseen_and_missing_values() -> None:
    X, y = mixed()
    forest = RandomForestClassifier(n_estimators=5, base="id3").fit(X, y)
    new = X.assign(colour="violet", age=np.nan)
    assert set(forest.predict(new)) <= {"no", "yes"}
    strict = clone(forest).set_params(unseen="error").fit(X, y)
    with pytest.raises(DataError, match="violet"):
        strict.predict(new)


def test_bins_are_found_once_for_all_trees() -> None:
    X, y = mixed(2000)
    forest = RandomForestClassifier(n_estimators=5, max_bins=8).fit(X, y)
    noise = X.columns.get_loc("noise")
    used = {
        threshold
        for tree in forest.model_.trees
        for threshold in tree.threshold[tree.column == noise].tolist()
    }
    assert 0 < len(used) <= 7


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"base": "cat"}, "base must be 'id3' or 'c4.5' or 'cart'. Got 'cat'"),
        ({"n_estimators": 0}, "n_estimators must be a whole number of at least 1"),
        ({"max_features": 0}, "max_features must be None, 'auto', 'sqrt'"),
        ({"max_features": "all"}, "max_features must be None, 'auto', 'sqrt'"),
        ({"max_samples": 1.5}, "max_samples must be None, a whole number"),
        ({"random_state": -1}, "random_state must be a whole number of at least 0"),
        ({"random_state": "7"}, "random_state must be a whole number of at least 0"),
        ({"voting": "loud"}, "voting must be 'soft' or 'hard'. Got 'loud'"),
        ({"criterion": "variance"}, "Use RandomForestRegressor"),
        ({"ccp_alpha": "1-se"}, "Give a number for the trees of an ensemble"),
        ({"pruning": "reduced-error"}, "needs rows to prune with"),
        ({"bootstrap": False, "oob_score": True}, "set bootstrap=True"),
        ({"bootstrap": False, "max_samples": 999}, "at most the number of rows"),
        ({"class_weight": "even"}, "class_weight must be None, 'balanced'"),
    ],
)
def test_errors(given: dict[str, Any], message: str) -> None:
    X, y = mixed(50)
    with pytest.raises(ParameterError, match=message):
        RandomForestClassifier(**{"n_estimators": 3} | given).fit(X, y)


def test_errors_of_regression() -> None:
    X, _ = mixed(50)
    with pytest.raises(ParameterError, match="base must be 'cart'"):
        RandomForestRegressor(base="id3").fit(X, X["income"])
    with pytest.raises(ParameterError, match="criterion must be"):
        RandomForestRegressor(criterion="gini").fit(X, X["income"])
    forest = RandomForestRegressor(n_estimators=2).fit(X, X["income"])
    with pytest.raises(ParameterError, match="use predict"):
        forest.model_.predict_proba(X)


def test_seeds() -> None:
    tennis = datasets.load("tennis")
    forest = RandomForestClassifier(n_estimators=3)
    fixed = forest.set_params(random_state=np.random.RandomState(5))
    one = content(fixed.fit(tennis.X, tennis.y))
    fixed = forest.set_params(random_state=np.random.RandomState(5))
    assert content(fixed.fit(tennis.X, tennis.y)) == one
    seeds = {
        forest.set_params(random_state=None)
        .fit(tennis.X, tennis.y)
        .model_.recipe.random_state
        for _ in range(3)
    }
    assert len(seeds) == 3


def test_trees_that_are_not_there() -> None:
    X, y = mixed(40)
    forest = RandomForestClassifier(n_estimators=3).fit(X, y)
    assert forest[-1].tree == forest[2].tree
    assert len(list(forest)) == 3
    with pytest.raises(IndexError, match=r"3 trees, with numbers from 0 to 2\. Got 3"):
        forest[3]
    with pytest.raises(TypeError, match=r"from 0 to 2\. Got slice\(None, 2, None\)"):
        forest.model_[:2]  # type: ignore[index]
