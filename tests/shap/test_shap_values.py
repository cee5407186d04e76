"""Results of model.shap: picking, text, frames, the package shap, errors."""

from __future__ import annotations

import json
import math
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from branchwise import (
    CARTClassifier,
    CARTRegressor,
    DataError,
    ID3Classifier,
    ParameterError,
    datasets,
)
from branchwise.shap import row_values, shap_values
from branchwise.shap.shap_values import ShapValues

WEATHER = datasets.load("weather")
MODEL = ID3Classifier(threshold="midpoint").fit(WEATHER.X, WEATHER.y).model_
NUMBERS = CARTRegressor().fit(WEATHER.X, np.arange(14) * 1.5).model_
HOT = {"outlook": "sunny", "temperature": 71, "humidity": 85, "windy": "TRUE"}
HOT_TEXT = (
    "Shapley values: base value 0.3571, prediction 1 (probability of no).\n"
    "  column      value  cell\n"
    "  humidity  +0.2714  85\n"
    "  outlook   +0.2643  sunny\n"
    "  windy     +0.1071  TRUE\n"
    "1 column without any effect."
)


def test_the_text_of_a_row():
    found = MODEL.shap(HOT)
    assert str(found) == f"Row 0\n{HOT_TEXT}"
    assert repr(found) == "<Shapley values of 1 row, 4 columns, 2 classes>"


def test_the_text_of_several_rows():
    found = MODEL.shap(WEATHER.X, WEATHER.X)
    assert str(found[:, "yes"]) == (
        "Shapley values of 14 rows\n"
        "  column       mean size of values\n"
        "  outlook                   0.2704\n"
        "  windy                     0.1735\n"
        "  humidity                  0.1684\n"
        "  temperature                    0"
    )
    assert "no     yes" in str(found)
    assert "<table>" in found.to_html()
    assert repr(found[:, "no"]) == "<Shapley values of 14 rows, 4 columns, class no>"
    assert repr(NUMBERS.shap(HOT)) == "<Shapley values of 1 row, 4 columns, numbers>"


def test_rows_and_classes_are_picked():
    found = MODEL.shap(WEATHER.X, interactions=True)
    assert len(found) == 14
    one = found[3]
    assert one.rows == (3,)
    assert one.values.shape == (1, 4, 2)
    assert one.data.tolist() == found.data[3:4].tolist()
    assert found[-1].rows == (13,)
    assert found[2:5].rows == (2, 3, 4)
    picked = found[2:5, "yes"]
    assert picked.label == "yes"
    assert picked.classes == ()
    assert np.array_equal(picked.values, found.values[2:5, :, 1])
    assert np.array_equal(picked.interactions, found.interactions[2:5, ..., 1])
    assert picked.base_values == found.base_values[1]
    assert found.of_prediction(0).label == "no"
    with pytest.raises(IndexError):
        found[14]


def test_a_class_that_is_not_there():
    found = MODEL.shap(HOT)
    with pytest.raises(ParameterError, match=r"one of 'no', 'yes'. Got 'maybe'"):
        found[:, "maybe"]
    with pytest.raises(ParameterError, match="from values of several classes"):
        found.of_class("no").of_class("no")
    with pytest.raises(ParameterError, match=r"rows and a class.*Got 3 indices"):
        found[0, "no", 1]


def test_numbers_have_no_axis_of_classes():
    found = NUMBERS.shap(WEATHER.X, WEATHER.X, interactions=True)
    assert found.values.shape == (14, 4)
    assert found.base_values.shape == ()
    assert found.interactions.shape == (14, 4, 4)
    assert np.array_equal(found.predictions, NUMBERS.predict(WEATHER.X))
    for row in range(14):
        total = math.fsum([float(found.base_values), *found.values[row]])
        assert total == pytest.approx(found.predictions[row], rel=1e-15)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_dataframe_has_a_line_for_each_value(library):
    found = MODEL.shap(WEATHER.X)
    frame = found.to_frame(library)
    assert list(frame.columns) == ["row", "column", "class", "value"]
    assert len(frame) == found.values.size
    at = 5 * 8 + 2 * 2 + 1  # row 5, column 2, class 1
    line = [frame[name][at] for name in frame.columns]
    assert line == [5, "humidity", "yes", found.values[5, 2, 1]]
    assert list(NUMBERS.shap(HOT).to_columns()) == ["row", "column", "value"]


def test_plain_values():
    row = {**HOT, "humidity": None}
    document = json.loads(MODEL.shap(row, interactions=True).to_json())
    assert document["classes"] == ["no", "yes"]
    (described,) = document["rows"]
    assert described["cells"] == ["sunny", 71.0, None, "TRUE"]
    assert np.array(described["interactions"]).shape == (4, 4, 2)
    assert MODEL.shap(HOT).of_class("no").to_dict()["class"] == "no"


def test_explanations_show_the_values_of_the_predicted_class():
    why = MODEL.explain(HOT, shap=True)
    assert str(why) == f"{MODEL.explain(HOT)}\n{HOT_TEXT}"
    assert why.to_dict()["shap"]["columns"] == list(MODEL.schema.names)
    several = MODEL.explain(WEATHER.X, shap=True, background=WEATHER.X)
    assert several[3].shap.rows == (3,)
    assert str(several).count("Shapley values: base value") == 14
    assert str(NUMBERS.explain(HOT, shap=True)).count("Shapley values") == 1


def test_the_background_needs_the_values():
    with pytest.raises(ParameterError, match="background has no effect without shap"):
        MODEL.explain(HOT, background=WEATHER.X)
    with pytest.raises(ParameterError, match="background_weight has no effect without"):
        MODEL.shap(HOT, background_weight=[1.0])


def test_backgrounds_that_cannot_be_used():
    with pytest.raises(DataError, match="background must have at least one row"):
        MODEL.shap(HOT, pd.DataFrame(WEATHER.X).iloc[:0])
    with pytest.raises(DataError, match="background_weight must have one weight"):
        MODEL.shap(HOT, WEATHER.X, background_weight=[1.0])
    with pytest.raises(DataError, match="background_weight must be finite"):
        MODEL.shap(HOT, WEATHER.X, background_weight=[-1.0] * 14)
    with pytest.raises(DataError, match="windy"):
        MODEL.shap(HOT, pd.DataFrame(WEATHER.X).drop(columns="windy"))
    with pytest.raises(ParameterError, match="n_jobs"):
        MODEL.shap(HOT, n_jobs=0)


def test_the_weights_of_a_background_count_as_rows():
    frame = pd.DataFrame(WEATHER.X)
    twice = pd.concat([frame, frame.iloc[:3]])
    weights = [2.0] * 3 + [1.0] * 11
    one = MODEL.shap(frame, frame, background_weight=weights)
    assert np.allclose(one.values, MODEL.shap(frame, twice).values, atol=1e-15)


def test_no_rows_have_no_values():
    found = MODEL.shap(pd.DataFrame(WEATHER.X).iloc[:0], WEATHER.X, interactions=True)
    assert found.values.shape == (0, 4, 2)
    assert found.interactions.shape == (0, 4, 4, 2)


def test_sizes_are_checked_first(monkeypatch):
    monkeypatch.setattr(row_values, "MOST_NUMBERS", 4 * 4 * 2 * 13)
    MODEL.shap(WEATHER.X)
    with pytest.raises(ParameterError, match="at most 13 rows for the interactions of"):
        MODEL.shap(WEATHER.X, interactions=True)


def test_the_package_shap_gets_the_shapes_that_it_expects(monkeypatch):
    class Explanation(SimpleNamespace):
        pass

    monkeypatch.setattr(shap_values, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "shap", SimpleNamespace(Explanation=Explanation))
    several = MODEL.shap(WEATHER.X).to_shap()
    assert several.values.shape == (14, 4, 2)
    assert several.base_values.shape == (14, 2)
    assert several.data.shape == (14, 4)
    assert several.feature_names == list(MODEL.schema.names)
    assert several.output_names == ["no", "yes"]
    one = NUMBERS.shap(WEATHER.X).to_shap()
    assert one.values.shape == (14, 4)
    assert one.base_values.shape == (14,)
    assert one.output_names is None


def test_without_the_package_shap_there_is_a_hint(monkeypatch):
    monkeypatch.setattr(shap_values, "find_spec", lambda name: None)
    with pytest.raises(ParameterError, match="pip install shap"):
        MODEL.shap(HOT).to_shap()


def test_tables_of_numbers_have_data_of_numbers():
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[3, 1] = np.nan
    model = CARTClassifier(missing="split").fit(X, X[:, 0] > 0).model_
    found = model.shap(X)
    assert found.data.dtype == np.float64
    assert np.array_equal(found.data, X, equal_nan=True)
    assert "missing" in str(model.shap(X[3:4])) or not found.values[3, 1].any()


def test_results_can_be_pickled():
    found = MODEL.shap(WEATHER.X)
    again = pickle.loads(pickle.dumps(found))
    assert isinstance(again, ShapValues)
    assert np.array_equal(again.values, found.values)
