"""Models as estimators, and the methods of models that estimators have."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.inspection import (
    DecisionBoundaryDisplay,
    PartialDependenceDisplay,
    permutation_importance,
)
from sklearn.metrics import ConfusionMatrixDisplay, RocCurveDisplay

import branchwise
from branchwise import (
    BaggedTrees,
    BoostedClassifier,
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    ID3Classifier,
    Model,
    ModelFileError,
    RandomForestClassifier,
    RandomForestRegressor,
)
from branchwise.ensemble.ensemble import Ensemble
from forest_tables import mixed

ESTIMATORS = [
    ID3Classifier(max_depth=3, criterion="gini"),
    C45Classifier(confidence=0.1),
    C45Classifier(prune=False, group_values=True),
    CARTClassifier(ccp_alpha=0.01, missing="surrogate"),
    CARTRegressor(min_samples_leaf=4, criterion="poisson"),
    RandomForestClassifier(n_estimators=3, base="id3", voting="hard"),
    RandomForestClassifier(n_estimators=3, class_weight="balanced_subsample"),
    RandomForestRegressor(n_estimators=3, max_samples=0.5, splitter="random"),
    BaggedTrees(estimator=C45Classifier(confidence=0.1), n_estimators=3),
    BoostedClassifier(n_estimators=3, base="cart", max_depth=2, prune=False),
    GradientBoostingClassifier(n_estimators=3, learning_rate=0.3),
    GradientBoostingRegressor(n_estimators=3, subsample=0.6, loss="poisson"),
]


def fitted(estimator: Any) -> tuple[Any, Any, Any]:
    """Return the fitted estimator, the table and its targets."""
    X, y = mixed(120)
    if "Regressor" in type(estimator).__name__:
        y = X["income"].abs() + 1
    return clone(estimator).fit(X, y), X, y


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_a_model_gives_its_estimator(estimator: Any) -> None:
    trained, X, y = fitted(estimator)
    opened = branchwise.load(trained.to_bytes()).to_estimator()
    assert type(opened) is type(trained)
    assert opened.recipe == trained.recipe
    assert np.array_equal(opened.predict(X), trained.predict(X))
    assert opened.score(X, y) == trained.score(X, y)
    assert list(opened.feature_names_in_) == list(X.columns)
    again = clone(opened).fit(X, y)
    if getattr(estimator, "class_weight", None) is None:
        assert again.to_bytes() == trained.to_bytes()
    if hasattr(trained, "staged_predict"):
        for one, other in zip(
            opened.staged_predict(X), trained.staged_predict(X), strict=True
        ):
            assert np.array_equal(one, other)


def test_displays_and_inspection_of_a_model_from_a_file(tmp_path: Path) -> None:
    trained, X, y = fitted(CARTClassifier(max_depth=3))
    trained.save(tmp_path / "tree.json")
    opened = branchwise.load(tmp_path / "tree.json").to_estimator()
    shown = ConfusionMatrixDisplay.from_estimator(opened, X, y)
    assert shown.confusion_matrix.sum() == len(X)
    found = permutation_importance(opened, X, y, n_repeats=2, random_state=0)
    assert len(found.importances_mean) == X.shape[1]


@pytest.mark.parametrize("estimator", [CARTClassifier(max_depth=3), ESTIMATORS[5]])
def test_curves_and_boundaries_of_a_model_from_a_file(estimator: Any) -> None:
    X, _ = mixed(120)
    X, y = X[["income", "age"]], np.where(X["income"].fillna(0) > 0, "high", "low")
    opened = branchwise.load(clone(estimator).fit(X, y).to_bytes()).to_estimator()
    curve = RocCurveDisplay.from_estimator(opened, X, y)
    assert curve.roc_auc == 1.0
    known = X.fillna(0.0)
    shown = PartialDependenceDisplay.from_estimator(opened, known, ["income"])
    dependence = shown.pd_results[0]["average"][0]
    assert dependence[0] > dependence[-1]  # of the class "low"
    boundary = DecisionBoundaryDisplay.from_estimator(
        opened, known, response_method="predict_proba", grid_resolution=5
    )
    assert boundary.response.shape == (5, 5)
    plt.close("all")


@pytest.mark.parametrize("estimator", [ESTIMATORS[0], ESTIMATORS[4], ESTIMATORS[5]])
def test_one_row_as_a_dict_or_a_series(estimator: Any) -> None:
    trained, X, _ = fitted(estimator)
    opened = branchwise.load(trained.to_bytes())
    row, first = X.iloc[0], trained.predict(X)[:1]
    for one in (row, row.to_dict(), [row.to_dict()]):
        for able in (trained, opened, opened.to_estimator()):
            assert np.array_equal(able.predict(one), first)


def test_load_takes_paths_files_and_bytes(tmp_path: Path) -> None:
    trained, _, _ = fitted(ID3Classifier(max_depth=2))
    path = tmp_path / "tree.json"
    trained.save(path)
    content = path.read_bytes()
    with path.open("rb") as file:
        models = [branchwise.load(path), branchwise.load(file)]
    models += [branchwise.load(content), branchwise.load(io.BytesIO(content))]
    models += [branchwise.load(str(path)), Model.from_bytes(content)]
    assert all(model == trained.model_ for model in models)
    with (
        path.open(encoding="utf-8") as text,
        pytest.raises(ModelFileError, match="'rb'"),
    ):
        branchwise.load(text)  # type: ignore[arg-type]
    with pytest.raises(ModelFileError, match="the content is not a branchwise model"):
        branchwise.load(b"{}")


def test_trees_and_ensembles_are_told_apart() -> None:
    tree, forest = fitted(ESTIMATORS[0])[0], fitted(ESTIMATORS[5])[0]
    assert Ensemble.from_bytes(forest.to_bytes()) == forest.model_
    with pytest.raises(ModelFileError, match="holds a single tree"):
        Ensemble.from_bytes(tree.to_bytes())
    with pytest.raises(ModelFileError, match="holds an ensemble of 3 trees"):
        Model.from_bytes(forest.to_bytes())


def test_methods_of_the_model() -> None:
    trained, X, _ = fitted(CARTClassifier(max_depth=3))
    row = X.iloc[0]
    assert trained.to_text() == trained.model_.to_text()
    assert trained.rules().to_text() == trained.model_.rules().to_text()
    assert str(trained.explain(row)) == str(trained.model_.explain(row))
    assert trained.export("python") == trained.model_.export("python")
    assert not hasattr(trained, "steps")  # as a pipeline has
    assert trained.rules.__doc__ == Model.rules.__doc__


TREE_METHODS = ["rules", "explain", "what_if", "shap", "to_text", "to_html", "save"]


@pytest.mark.parametrize(
    ("estimator", "names"),
    [
        (ID3Classifier(), TREE_METHODS),
        (RandomForestClassifier(), ["shap", "export", "to_bytes", "save"]),
    ],
)
def test_methods_need_a_fit(estimator: Any, names: list[str]) -> None:
    for name in names:
        with pytest.raises(NotFittedError):
            getattr(estimator, name)()
