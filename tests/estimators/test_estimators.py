"""The estimators as scikit-learn expects them, and on tables of text."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from branchwise import (
    BranchwiseError,
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ID3Classifier,
    Model,
    datasets,
    fit_tree,
)
from branchwise.tree.tree import Tree

FOLDS_OF_ROWS = {
    f"check_sample_weight_equivalence_on_{kind}_data": (
        "the folds of cross-validation are of rows, so a row twice may be in two "
        "folds, a row of weight 2 is in one. With ccp_alpha as a number the check "
        "passes"
    )
    for kind in ("dense", "sparse")
}
#: Estimators, and why they fail the checks that they fail; every other one is slow.
CHECKED = [
    (ID3Classifier(), {}),
    (ID3Classifier(min_gain=0.001, missing="split", unseen="split"), {}),
    (C45Classifier(), {}),
    (C45Classifier(min_samples_branch=1), {}),
    (CARTClassifier(), {}),
    (C45Classifier(group_values=True, prune=False), {}),
    (CARTClassifier(criterion="log_loss", ccp_alpha=0.01, missing="surrogate"), {}),
    (CARTClassifier(min_gain=0.001, missing="learned"), {}),
    (CARTClassifier(ccp_alpha="1-se"), FOLDS_OF_ROWS),
    (CARTRegressor(criterion="poisson", ccp_alpha=0.01), {}),
    (CARTRegressor(), {}),
    (CARTRegressor(criterion="squared_error", missing="learned", max_leaf_nodes=8), {}),
]


def expected_failures(estimator: Any) -> dict[str, str]:
    (reasons,) = [why for other, why in CHECKED if repr(other) == repr(estimator)]
    return reasons


@parametrize_with_checks(
    [estimator for estimator, _ in CHECKED[::2]],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [estimator for estimator, _ in CHECKED[1::2]],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks_with_other_options(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def weather() -> tuple[pd.DataFrame, pd.Series]:
    """A table of text with a target that takes two of its columns to tell."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "outlook": rng.choice(["sunny", "rain", "over"], 240),
            "wind": rng.choice(["weak", "strong", None], 240),
            "note": rng.choice(list("abcdefgh"), 240),
        }
    )
    play = (X["outlook"] == "over") | ((X["wind"] == "weak") & (X["outlook"] == "rain"))
    return X, play.map({True: "yes", False: "no"}).rename("play")


def test_fitted_attributes(weather):
    X, y = weather
    tree = ID3Classifier().fit(X, y)
    assert tree.classes_.tolist() == ["no", "yes"]
    assert tree.n_features_in_ == 3
    assert tree.feature_names_in_.tolist() == ["outlook", "wind", "note"]
    assert tree.feature_names_in_.dtype == object
    assert isinstance(tree.model_, Model)
    assert isinstance(tree.tree_, Tree)
    assert tree.tree_ is tree.model_.tree
    assert tree.model_.schema.target == "play"
    assert tree.score(X, y) == 1.0


def test_arrays_have_no_names(weather):
    X, y = weather
    tree = ID3Classifier().fit(X.to_numpy(), y)
    assert not hasattr(tree, "feature_names_in_")
    assert tree.n_features_in_ == 3
    tree.fit(X, y)
    assert hasattr(tree, "feature_names_in_")
    tree.fit(X.to_numpy(), y)
    assert not hasattr(tree, "feature_names_in_")


def test_size_and_importances(weather):
    X, y = weather
    tree = ID3Classifier().fit(X, y)
    assert tree.get_depth() == tree.tree_.max_depth == 2
    assert tree.get_n_leaves() == tree.tree_.n_leaves
    importances = tree.feature_importances_
    assert importances.shape == (3,)
    assert importances.sum() == pytest.approx(1)
    assert importances[0] > importances[1] > importances[2] == 0
    root = ID3Classifier(max_depth=0).fit(X, y)
    assert root.get_depth() == 0
    assert root.get_n_leaves() == 1
    assert root.feature_importances_.tolist() == [0, 0, 0]


def test_apply_and_decision_path(weather):
    X, y = weather
    tree = ID3Classifier().fit(X, y)
    nodes = tree.apply(X)
    assert tree.tree_.is_leaf[nodes].all()
    path = tree.decision_path(X)
    assert path.shape == (len(X), len(tree.tree_))
    np.testing.assert_array_equal(path.sum(axis=1).A1, tree.tree_.depth[nodes] + 1)
    for row, node in enumerate(nodes):
        expected = []
        while node >= 0:
            expected.append(int(node))
            node = tree.tree_.parent[node]
        assert path[row].indices.tolist() == sorted(expected)
    frequency = tree.tree_.weights / tree.tree_.weights.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(tree.predict_proba(X), frequency[nodes])
    np.testing.assert_array_equal(
        tree.predict(X), tree.classes_[tree.tree_.label[nodes]]
    )


def test_the_path_of_a_divided_case_has_all_its_leaves():
    X = {"a": ["x", "x", "y", None]}
    tree = ID3Classifier(missing="split").fit(X, ["u", "u", "v", "v"])
    path = tree.decision_path({"a": [None]})
    assert path.toarray().tolist() == [[1, 1, 1]]


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "apply", "decision_path", "score"]
)
def test_unfitted_trees_say_so(method):
    arguments = [[["x"]], ["u"]] if method == "score" else [[["x"]]]
    with pytest.raises(NotFittedError, match="This ID3Classifier instance is not"):
        getattr(ID3Classifier(), method)(*arguments)
    for name in ("get_depth", "get_n_leaves"):
        with pytest.raises(NotFittedError):
            getattr(ID3Classifier(), name)()
    for name in ("tree_", "feature_importances_"):
        assert not hasattr(ID3Classifier(), name)


def test_clone_and_set_params():
    declared = {"a": ["x", "y", "z"]}
    tree = ID3Classifier(
        criterion="gini", max_depth=3, categories=declared, class_weight={"u": 2}
    )
    copy = clone(tree)
    assert type(copy) is ID3Classifier
    assert copy.get_params() == tree.get_params()
    assert copy.categories is not declared
    copy.set_params(max_depth=0, criterion="gain_ratio").fit(
        {"a": ["x", "y"]}, ["u", "v"]
    )
    assert copy.get_depth() == 0
    assert copy.model_.recipe.criterion == "gain_ratio"
    assert tree.max_depth == 3
    assert repr(ID3Classifier(max_depth=3)) == "ID3Classifier(max_depth=3)"


class _Changes(ID3Classifier):
    """Does what scikit-learn does not allow."""

    def __init__(self, max_depth=None):
        super().__init__(max_depth=max_depth and max_depth + 1000)


def test_clones_keep_what_scikit_learn_keeps():
    with config_context(enable_metadata_routing=True):
        tree = ID3Classifier().set_fit_request(sample_weight=True)
        routed = clone(tree).get_metadata_routing().fit.requests
    assert routed["sample_weight"] is True
    with pytest.raises(RuntimeError, match="Cannot clone"):
        clone(_Changes(3))


def test_refitting_forgets_the_first_tree(weather):
    X, y = weather
    tree = ID3Classifier().fit(X, y)
    again = tree.fit({"a": [1, 2]}, [True, False])
    assert again is tree
    assert tree.classes_.tolist() == [False, True]
    assert tree.feature_names_in_.tolist() == ["a"]


@pytest.mark.parametrize("container", ["pandas", "polars", "arrow"])
def test_cross_validation_on_text(weather, container):
    X, y = weather
    if container == "polars":
        X, y = pl.from_pandas(X), pl.from_pandas(y)
    if container == "arrow":
        X, y = pa.Table.from_pandas(X), y.to_numpy()
    assert cross_val_score(ID3Classifier(), X, y, cv=4).tolist() == [1.0] * 4
    assert (cross_val_predict(ID3Classifier(), X, y, cv=4) == np.asarray(y)).all()


def test_cross_validation_on_a_list_of_dicts(weather):
    X, y = weather
    rows = X.to_dict("records")
    assert cross_val_score(ID3Classifier(), rows, list(y), cv=4).tolist() == [1.0] * 4


def test_grid_search_on_text(weather):
    X, y = weather
    grid = {
        "tree__max_depth": np.arange(3),
        "tree__criterion": ["gain", "gain_ratio", "gini"],
        "tree__min_gain": [np.float32(0), 0.01],
    }
    search = GridSearchCV(Pipeline([("tree", ID3Classifier())]), grid, cv=3)
    search.fit(X, y)
    assert search.best_params_["tree__max_depth"] == 2
    assert search.best_score_ == 1.0
    best = search.best_estimator_["tree"]
    # numpy's numbers as parameters do not keep a model from being saved.
    assert (
        best.model_.to_bytes()
        == best.set_params(max_depth=2, min_gain=0).fit(X, y).model_.to_bytes()
    )


def test_pipelines_and_column_transformers(weather):
    X, y = weather
    upper = FunctionTransformer(lambda frame: frame.apply(lambda c: c.str.upper()))
    columns = ColumnTransformer(
        [("upper", upper, ["outlook"]), ("as it is", "passthrough", ["wind"])],
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    pipe = make_pipeline(columns, ID3Classifier()).fit(X, y)
    assert pipe.score(X, y) == 1.0
    assert pipe[-1].feature_names_in_.tolist() == ["outlook", "wind"]
    assert pipe[-1].model_.schema.columns[0].categories == ("OVER", "RAIN", "SUNNY")
    # Without names, and with text as objects of an array.
    plain = ColumnTransformer([("all", "passthrough", ["outlook", "wind"])])
    pipe = make_pipeline(plain, ID3Classifier()).fit(X, y)
    assert pipe.score(X, y) == 1.0


def test_sample_weight_is_routed(weather):
    X, y = weather
    weight = np.where(y == "yes", 3.0, 1.0)
    direct = ID3Classifier().fit(X, y, sample_weight=weight).model_.to_bytes()
    with sklearn.config_context(enable_metadata_routing=True):
        tree = ID3Classifier().set_fit_request(sample_weight=True)
        tree.set_score_request(sample_weight=True)
        pipe = make_pipeline(FunctionTransformer(), tree)
        pipe.fit(X, y, sample_weight=weight)
        assert pipe[-1].model_.to_bytes() == direct
        search = GridSearchCV(tree, {"max_depth": [0, 1]}, cv=3)
        search.fit(X, y, sample_weight=weight)
        unweighted = GridSearchCV(ID3Classifier(), {"max_depth": [0, 1]}, cv=3).fit(
            X, y
        )
        # At depth 0, the heavy class is the answer and its share the score.
        scores = search.cv_results_["mean_test_score"]
        share = weight[y == "yes"].sum() / weight.sum()
        assert scores[0] == pytest.approx(share, abs=0.02)
        assert unweighted.cv_results_["mean_test_score"][0] < 0.6
        scores = cross_val_score(tree, X, y, cv=3, params={"sample_weight": weight})
        assert scores.tolist() == [1.0] * 3


@pytest.mark.parametrize("dump", ["pickle", "joblib"])
def test_round_trips(weather, dump, tmp_path):
    X, y = weather
    tree = ID3Classifier(class_weight="balanced").fit(X, y)
    tree.predict(X)  # what prediction prepares need not travel, but must not hinder
    if dump == "pickle":
        again = pickle.loads(pickle.dumps(tree))
    else:
        joblib.dump(tree, tmp_path / "tree.joblib")
        again = joblib.load(tmp_path / "tree.joblib")
    np.testing.assert_array_equal(again.predict_proba(X), tree.predict_proba(X))
    assert again.model_.to_bytes() == tree.model_.to_bytes()
    assert again.get_params() == tree.get_params()


def test_parallel_jobs_get_the_same_trees(weather):
    X, y = weather
    one = cross_val_score(ID3Classifier(), X, y, cv=3, n_jobs=1)
    with joblib.parallel_config("threading", n_jobs=2):
        two = cross_val_score(ID3Classifier(), X, y, cv=3)
    assert one.tolist() == two.tolist()


def _by_hand(X: Any, y: list[str], weights: dict[str, float]) -> bytes:
    rows = np.array([weights[label] for label in y])
    return fit_tree(X, y, sample_weight=rows).to_bytes()


NOISY = {"a": ["x", "x", "x", "y", "y", "y", "y", "z"]}
NOISY_Y = ["u", "v", "v", "u", "u", "u", "v", "u"]


@pytest.mark.parametrize(
    ("class_weight", "by_class"),
    [
        ({"u": 1, "v": 5}, {"u": 1, "v": 5}),
        ({"v": 2.5}, {"u": 1, "v": 2.5}),
        ({"u": 0, "v": 1}, {"u": 0, "v": 1}),
        ({"u": 1, "v": 2, "w": 7}, {"u": 1, "v": 2}),
        ({np.str_("u"): np.float32(2)}, {"u": 2, "v": 1}),
        ({}, {"u": 1, "v": 1}),
        ("balanced", {"u": 8 / 10, "v": 8 / 6}),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "container",
    [
        list,
        np.array,
        pd.Series,
        pd.Categorical,
        pl.Series,
        pa.array,
        lambda y: pl.Series(y, dtype=pl.Enum(["v", "u"])),
    ],
    ids=["list", "numpy", "pandas", "categories", "polars", "arrow", "enum"],
)
def test_class_weight(class_weight, by_class, container):
    tree = ID3Classifier(class_weight=class_weight).fit(NOISY, container(NOISY_Y))
    assert tree.model_.to_bytes() == _by_hand(NOISY, NOISY_Y, by_class)


def test_class_weight_times_sample_weight():
    weight = np.arange(1.0, 9.0)
    tree = ID3Classifier(class_weight={"v": 2}).fit(NOISY, NOISY_Y, weight)
    both = weight * np.where(np.array(NOISY_Y) == "v", 2.0, 1.0)
    expected = fit_tree(NOISY, NOISY_Y, sample_weight=both)
    assert tree.model_.to_bytes() == expected.to_bytes()


@pytest.mark.parametrize(
    ("y", "class_weight"),
    [([1, 0, 1, 1], {0: 3, 1: 1}), ([True, False, True, True], {False: 3, True: 1})],
)
def test_class_weight_of_other_labels(y, class_weight):
    X = {"a": ["x", "x", "x", "x"]}
    assert ID3Classifier().fit(X, y).predict({"a": ["x"]}).tolist() == [y[0]]
    tree = ID3Classifier(class_weight={**class_weight, y[1]: 9}).fit(X, y)
    assert tree.predict({"a": ["x"]}).tolist() == [y[1]]


def test_a_column_vector_is_taken_with_a_warning(weather):
    X, y = weather
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        tree = ID3Classifier().fit(X, y.to_frame())
    assert tree.score(X, y) == 1.0


def test_a_criterion_may_be_a_function(weather):
    X, y = weather

    def errors(nodes: np.ndarray, branches: np.ndarray) -> np.ndarray:
        right: np.ndarray = branches.max(axis=2).sum(axis=1)
        return right / nodes.sum(axis=1)

    tree = ID3Classifier(criterion=errors).fit(X, y)
    assert tree.score(X, y) == 1.0
    assert clone(tree).criterion is errors


def test_estimator_and_fit_tree_agree():
    for name in ("tennis", "labor", "iris"):
        data = datasets.load(name)
        tree = ID3Classifier(categories=data.categories).fit(data.X, data.y)
        model = fit_tree(data.X, data.y, categories=data.categories)
        assert tree.model_ == model


def test_tags():
    tags = ID3Classifier().__sklearn_tags__()
    assert tags.input_tags.string
    assert tags.input_tags.categorical
    assert tags.input_tags.allow_nan
    assert tags.input_tags.sparse
    assert tags.estimator_type == "classifier"
    assert tags.classifier_tags.multi_class
    assert not tags.non_deterministic


# ------------------------------------------------------------------ every estimator

EVERY = [
    ID3Classifier(missing="split"),
    C45Classifier(),
    C45Classifier(group_values=True, prune=False, missing="branch"),
    CARTClassifier(),
    CARTClassifier(criterion="gain", ccp_alpha=0.001, missing="surrogate"),
    CARTClassifier(missing="learned", pruning="error-based"),
    CARTRegressor(),
    CARTRegressor(criterion="poisson", missing="learned"),
    CARTRegressor(ccp_alpha=0.001, missing="surrogate"),
]
every_estimator = pytest.mark.parametrize("estimator", EVERY, ids=repr)


@pytest.fixture(scope="module")
def fares() -> pd.DataFrame:
    """Text, numbers and a few gaps; the fare and whether it is high follow a rule."""
    rng = np.random.default_rng(8)
    n = 300
    table = pd.DataFrame(
        {
            "line": rng.choice(["bus", "tram", "metro", "ferry", "train"], n),
            "km": rng.uniform(1, 20, n).round(1),
            "note": rng.choice(list("abcd"), n),
            "weight": rng.integers(1, 5, n).astype(float),
        }
    )
    far = table["km"] > 8
    dear = table["line"].isin(["ferry", "train"])
    table["fare"] = 2.0 + 3.0 * dear + 4.0 * (dear & far)
    table["high"] = np.where(dear & far, "high", "low")
    table.loc[rng.choice(n, 15, replace=False), "line"] = None
    table.loc[rng.choice(n, 15, replace=False), "km"] = np.nan
    return table


def parts(fares: pd.DataFrame, estimator: Any) -> tuple[pd.DataFrame, pd.Series]:
    """The columns to learn from, and what this estimator is to predict."""
    target = "fare" if is_regressor(estimator) else "high"
    return fares[["note", "line", "km"]], fares[target]


@every_estimator
def test_all_are_classifiers_or_regressors(estimator):
    assert is_classifier(estimator) != is_regressor(estimator)
    tags = estimator.__sklearn_tags__()
    assert tags.input_tags.string
    assert tags.input_tags.categorical
    assert tags.input_tags.allow_nan
    assert tags.input_tags.sparse
    assert tags.target_tags.required
    assert not tags.target_tags.multi_output
    assert not tags.non_deterministic
    rates = getattr(estimator, "criterion", None) == "poisson"
    assert tags.target_tags.positive_only == rates


@every_estimator
def test_all_learn_text_and_numbers(fares, estimator):
    X, y = parts(fares, estimator)
    tree = clone(estimator).fit(X, y)
    assert tree.score(X, y) > 0.85
    assert tree.n_features_in_ == 3
    assert tree.feature_names_in_.tolist() == ["note", "line", "km"]
    importances = tree.feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances[0] < importances[1:].min()
    assert hasattr(tree, "classes_") == is_classifier(estimator)
    assert hasattr(tree, "predict_proba") == is_classifier(estimator)


@every_estimator
def test_all_say_that_they_are_not_fitted(fares, estimator):
    X, y = parts(fares, estimator)
    for ask in ("predict", "apply", "decision_path"):
        with pytest.raises(NotFittedError):
            getattr(clone(estimator), ask)(X)
    with pytest.raises(NotFittedError):
        clone(estimator).score(X, y)
    assert not hasattr(clone(estimator), "tree_")


@every_estimator
def test_all_are_chosen_by_grids_within_pipelines(fares, estimator):
    X, y = parts(fares, estimator)
    chosen = ColumnTransformer(
        [("rest", "passthrough", ["line", "km"])], verbose_feature_names_out=False
    ).set_output(transform="pandas")
    pipe = Pipeline([("columns", chosen), ("tree", clone(estimator))])
    grid = {"tree__max_depth": [0, 4], "tree__min_samples_leaf": [1, np.int64(3), 0.4]}
    search = GridSearchCV(pipe, grid, cv=KFold(3, shuffle=True, random_state=0))
    search.fit(X, y)
    assert search.best_params_["tree__max_depth"] == 4
    assert search.best_params_["tree__min_samples_leaf"] != 0.4
    assert search.best_score_ > 0.8
    best = search.best_estimator_[-1]
    assert best.feature_names_in_.tolist() == ["line", "km"]
    by_hand = clone(estimator).set_params(
        max_depth=4, min_samples_leaf=int(best.min_samples_leaf)
    )
    by_hand.fit(X[["line", "km"]], y)
    assert best.model_.to_bytes() == by_hand.model_.to_bytes()


@every_estimator
def test_all_are_cloned_with_their_parameters(fares, estimator):
    X, y = parts(fares, estimator)
    tree = clone(estimator).fit(X, y)
    copy = clone(tree)
    assert copy.get_params() == estimator.get_params()
    assert not hasattr(copy, "model_")
    assert copy.fit(X, y).model_.to_bytes() == tree.model_.to_bytes()


@every_estimator
@pytest.mark.parametrize("dump", ["pickle", "joblib"])
def test_all_come_back_from_files(fares, estimator, dump, tmp_path):
    X, y = parts(fares, estimator)
    tree = clone(estimator).fit(X, y)
    answers = tree.predict(X)  # prepares a walk, which must not hinder
    if dump == "pickle":
        again = pickle.loads(pickle.dumps(tree))
    else:
        joblib.dump(tree, tmp_path / "tree.joblib")
        again = joblib.load(tmp_path / "tree.joblib")
    np.testing.assert_array_equal(again.predict(X), answers)
    np.testing.assert_array_equal(again.apply(X), tree.apply(X))
    assert again.model_.to_bytes() == tree.model_.to_bytes()
    assert again.get_params() == tree.get_params()


@every_estimator
def test_all_get_weights_by_routing(fares, estimator):
    X, y = parts(fares, estimator)
    weight = fares["weight"]
    direct = clone(estimator).fit(X, y, sample_weight=weight).model_.to_bytes()
    assert direct != clone(estimator).fit(X, y).model_.to_bytes()
    folds = KFold(3, shuffle=True, random_state=1)
    expected = []
    for train, test in folds.split(X):
        part = clone(estimator).fit(X.iloc[train], y.iloc[train], weight.iloc[train])
        expected.append(part.score(X.iloc[test], y.iloc[test], weight.iloc[test]))
    with sklearn.config_context(enable_metadata_routing=True):
        tree = clone(estimator).set_fit_request(sample_weight=True)
        tree.set_score_request(sample_weight=True)
        pipe = make_pipeline(FunctionTransformer(), tree)
        pipe.fit(X, y, sample_weight=weight)
        assert pipe[-1].model_.to_bytes() == direct
        # Pipelines pass weights on to scores from scikit-learn 1.8 on.
        scores = cross_val_score(tree, X, y, cv=folds, params={"sample_weight": weight})
        np.testing.assert_allclose(scores, expected, rtol=1e-12)
        search = GridSearchCV(tree, {"max_depth": [None]}, cv=folds)
        search.fit(X, y, sample_weight=weight)
        assert search.best_score_ == pytest.approx(np.mean(expected))
        assert search.best_estimator_.model_.to_bytes() == direct


@every_estimator
def test_all_answer_by_the_nodes_of_their_paths(fares, estimator):
    X, y = parts(fares, estimator)
    tree = clone(estimator).fit(X, y)
    path, node = tree.decision_path(X).toarray(), tree.apply(X)
    assert path.shape == (len(X), len(tree.tree_))
    assert (path[np.arange(len(X)), node] == 1).all()
    whole = path.sum(axis=1) == tree.tree_.depth[node] + 1
    assert whole.mean() > 0.8
    if is_regressor(estimator):
        answers = tree.tree_.mean[node]
    else:
        answers = tree.classes_[tree.tree_.label[node]]
    np.testing.assert_array_equal(tree.predict(X)[whole], answers[whole])


# ------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("criterion", ["variance", "poisson"])
@pytest.mark.parametrize(
    "container",
    [
        list,
        tuple,
        np.array,
        lambda y: np.array(y, dtype=np.uint8),
        lambda y: np.array(y, dtype=np.float32),
        lambda y: np.array(y, dtype=object),
        pd.Series,
        lambda y: pd.Series(y, dtype="Int64"),
        pl.Series,
        pa.array,
    ],
)
def test_whole_numbers_are_numbers(container, criterion):
    X, y = {"a": list("ppqqrr")}, [0, 1, 4, 5, 11, 12]
    tree = CARTRegressor(criterion=criterion).fit(X, container(y))
    expected = CARTRegressor(criterion=criterion).fit(
        X, [float(number) for number in y]
    )
    assert tree.model_.to_bytes() == expected.model_.to_bytes()
    assert tree.predict({"a": list("pqr")}).tolist() == [0.5, 4.5, 11.5]
    assert tree.model_.score(X, container(y)) == pytest.approx(tree.score(X, y))


def test_numbers_below_zero_are_numbers():
    tree = CARTRegressor().fit({"a": [1, 2, 3, 4]}, np.array([-3, -3, 2, 2]))
    assert tree.predict({"a": [0, 9]}).tolist() == [-3, 2]


def test_numbers_are_scored_by_what_they_explain(fares):
    X, y = parts(fares, CARTRegressor())
    tree = CARTRegressor(max_depth=1).fit(X, y, fares["weight"])
    answers = tree.predict(X)
    assert answers.dtype == np.float64
    assert tree.score(X, y) == pytest.approx(r2_score(y, answers))
    weighted = tree.score(X, y, sample_weight=fares["weight"])
    by_hand = r2_score(y, answers, sample_weight=fares["weight"])
    assert weighted == pytest.approx(by_hand)
    assert weighted != tree.score(X, y)
    out_of_fold = cross_val_predict(CARTRegressor(), X, y, cv=5)
    assert r2_score(y, out_of_fold) > 0.8


def test_numbers_in_a_column_vector_are_taken_with_a_warning(fares):
    X, y = parts(fares, CARTRegressor())
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        tree = CARTRegressor().fit(X, y.to_frame())
    expected = CARTRegressor().fit(X, y.to_numpy())
    np.testing.assert_array_equal(tree.predict(X), expected.predict(X))


@pytest.mark.parametrize(
    ("estimator", "criterion"),
    [
        (ID3Classifier(criterion="entropy"), "gain"),
        (ID3Classifier(criterion="log_loss"), "gain"),
        (CARTClassifier(criterion="entropy"), "gain"),
        (CARTClassifier(criterion="log_loss"), "gain"),
        (CARTRegressor(criterion="squared_error"), "variance"),
    ],
)
def test_other_names_of_criteria(estimator, criterion, tmp_path):
    given = estimator.criterion
    X, y = [[0], [1], [2], [3], [4]], [1, 1, 0, 1, 0]
    model = estimator.fit(X, y).model_
    assert estimator.get_params()["criterion"] == given
    assert model.recipe.criterion == criterion
    assert model == type(estimator)(criterion=criterion).fit(X, y).model_
    model.save(tmp_path / "tree.json")
    assert f'"criterion": "{criterion}"' in (tmp_path / "tree.json").read_text()


def test_logarithms_of_probabilities():
    X, y = [["a"], ["a"], ["b"], ["b"]], ["p", "q", "q", "q"]
    found = ID3Classifier().fit(X, y).predict_log_proba([["a"], ["b"]])
    assert found.tolist() == [[np.log(0.5), np.log(0.5)], [-np.inf, 0.0]]


def test_a_split_may_need_all_cases():
    X, y = [[0], [1], [2], [3]], [0, 1, 0, 1]
    assert ID3Classifier(min_samples_split=1.0).fit(X, y).get_depth() == 1


@pytest.mark.parametrize("missing", ["largest", "branch", "split", "learned"])
def test_no_rate_is_zero(missing):
    X = {
        "number": [0.0, 1.0, 2.0, 3.0, 4.0, None],
        "name": ["a", "a", "b", None, "c", "c"],
    }
    y = [0, 0, 1, 2, 0, 3]
    tree = CARTRegressor(criterion="poisson", missing=missing).fit(X, y).tree_
    assert len(tree) > 1
    assert (tree.mean > 0).all()


def test_rates_are_those_of_scikit_learn():
    X, y = [[0], [1], [2], [3]], [0, 0, 1, 2]
    peer = DecisionTreeRegressor(criterion="poisson").fit(X, y)
    found = CARTRegressor(criterion="poisson").fit(X, y).predict(X)
    assert found == pytest.approx(peer.predict(X))
    assert found == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2])


@pytest.mark.parametrize("name", datasets.names())
def test_bundled_tables_as_frames(name):
    frame, plain = datasets.load(name, as_frame=True), datasets.load(name)
    assert list(frame.X) == list(plain.X)
    assert frame.y.name == plain.target
    given = ID3Classifier(max_depth=2).fit(frame.X, frame.y).model_
    assert str(given) == str(ID3Classifier(max_depth=2).fit(plain.X, plain.y).model_)


def test_bundled_tables_are_split_by_scikit_learn():
    tennis = datasets.load("tennis", as_frame=True)
    scores = cross_val_score(ID3Classifier(), tennis.X, tennis.y, cv=2)
    assert np.isfinite(scores).all()
    plain = datasets.load("tennis")
    assert scores.tolist() == (
        cross_val_score(ID3Classifier(), plain.rows(), plain.y, cv=2).tolist()
    )


def test_frames_need_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BranchwiseError, match="as_frame=True needs pandas"):
        datasets.load("tennis", as_frame=True)
