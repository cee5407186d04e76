"""What is special about ONNX: names, masks, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from branchwise import (
    CARTClassifier,
    CARTRegressor,
    ExportError,
    ID3Classifier,
    RandomForestClassifier,
    datasets,
    export,
    fit_tree,
)
from branchwise.export import onnx as target

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(export.write(model, "onnx"), options)


def test_inputs_are_called_by_the_names_of_columns():
    table = datasets.load("weather")
    session = session_of(fit_tree(table.X, table.y))
    assert [i.name for i in session.get_inputs()] == ["outlook", "humidity", "windy"]
    label, chances = session.run(
        ["label", "probabilities"],
        {
            "outlook": np.array(["sunny", "rainy"], dtype=object),
            "humidity": np.array([70.0, np.nan]),
            "windy": np.array(["TRUE", "TRUE"], dtype=object),
        },
    )
    assert label.tolist() == ["yes", "no"]
    assert chances.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_a_mask_tells_where_text_is_missing():
    X = {"colour": ["red", "red", "blue", None], "label": ["a", "b", "a", "b"]}
    model = fit_tree(X, ["no", "yes", "no", "yes"])
    session = session_of(model)
    # A column has the name of an output, and keeps it.
    assert [o.name for o in session.get_outputs()] == ["label_", "probabilities"]
    feed = {"label": np.array(["a", "a"], dtype=object)}
    mask = {"label is missing": np.array([False, True])}
    assert session.run(None, feed)[0].tolist() == ["no", "no"]
    assert session.run(None, feed | mask)[0].tolist() == [
        "no",
        *model.predict({"colour": ["red"], "label": [None]}),
    ]


def test_refused_rows_are_not_answered():
    X = {"colour": ["red", "blue"] * 3}
    model = ID3Classifier(missing="error", unseen="error").fit(X, [1, 2] * 3).model_
    session = session_of(model)
    cells = np.array(["red", "green"], dtype=object)
    label, _, answered = session.run(None, {"colour": cells})
    assert label[0] == 1
    assert answered.tolist() == [True, False]


def test_a_tree_that_asks_nothing():
    done = export.verify(fit_tree({"a": [1, 1]}, ["no", "no"]), "onnx")
    assert done.ok, str(done)


def test_half_a_surrogate_pair_is_refused():
    model = fit_tree({"a": ["\ud800", "b"] * 2}, ["no", "yes"] * 2)
    with pytest.raises(ExportError, match="half of a surrogate pair"):
        export.write(model, "onnx")


def test_large_trees_that_divide_are_refused(monkeypatch):
    monkeypatch.setattr(target, "_MOST_FRACTIONAL_NODES", 2)
    table = datasets.load("weather")
    model = ID3Classifier(missing="split").fit(table.X, table.y).model_
    with pytest.raises(ExportError, match="8 nodes; at most 2 are allowed"):
        export.write(model, "onnx")


def test_without_the_package(monkeypatch):
    monkeypatch.setattr(target.importlib.util, "find_spec", lambda name: None)
    table = datasets.load("weather")
    model = fit_tree(table.X, table.y)
    with pytest.raises(ExportError, match="needs the package onnx"):
        export.write(model, "onnx")
    assert "pip install" in str(target._absent())


def numbers(n_rows=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    y = X[:, 0] + rng.normal(size=n_rows) > 0
    return X, y


def operators_of(model):
    graph = onnx.load_from_string(export.write(model, "onnx")).graph
    return {node.op_type for node in graph.node}


@pytest.mark.parametrize(
    ("estimator", "fast"),
    [
        (CARTClassifier(), True),
        (CARTClassifier(missing="learned", probabilities="laplace"), True),
        (CARTClassifier(missing="error"), True),
        (CARTClassifier(missing="branch"), False),
        (CARTClassifier(missing="node"), False),
        (CARTClassifier(missing="split"), False),
        (CARTClassifier(missing="surrogate"), False),
        (CARTRegressor(max_depth=4), True),
    ],
)
def test_plain_trees_of_numbers_take_the_tree_operator(estimator, fast):
    X, y = numbers()
    if estimator.missing != "error":
        X[::7, 0] = np.nan
    model = estimator.fit(X, y * 1.0).model_
    done = export.verify(model, "onnx")
    assert done.ok, str(done)
    assert ("TreeEnsemble" in operators_of(model)) == fast


@pytest.mark.parametrize("missing", ["largest", "node"])
def test_forests_of_numbers_take_the_tree_operator(missing):
    X, y = numbers()
    forest = RandomForestClassifier(n_estimators=4, max_depth=3, missing=missing)
    ensemble = forest.fit(X, y).model_
    done = export.verify(ensemble, "onnx")
    assert done.ok, str(done)
    assert ("TreeEnsemble" in operators_of(ensemble)) == (missing == "largest")


def test_the_tree_operator_tells_neighbours_apart():
    """It compares in float64: the cuts, the next numbers, gaps, and both zeros."""
    cuts = [0.1, 1 / 3, 5e-324, -1e-300]
    X = np.array([[n] for c in cuts for n in (c, np.nextafter(c, 9))] + [[0.0], [-0.0]])
    y = [str(i % 3) for i in range(len(X))]
    model = CARTClassifier().fit(X, y).model_
    assert "TreeEnsemble" in operators_of(model)
    session = session_of(model)
    rows = np.append(X, np.nan)
    label, chances = session.run(None, {session.get_inputs()[0].name: rows})
    assert label.tolist() == model.predict(rows[:, None]).tolist()
    assert chances.tolist() == model.predict_proba(rows[:, None]).tolist()


def test_files_hold_nothing_that_is_not_used(capfd):
    table = datasets.load("iris")
    policies = ("largest", "node", "split")
    estimators = [CARTClassifier(missing=policy) for policy in policies]
    models = [one.fit(table.X, table.y).model_ for one in estimators]
    capfd.readouterr()
    for model in models:
        onnxruntime.InferenceSession(export.write(model, "onnx"))
    assert capfd.readouterr().err == ""
