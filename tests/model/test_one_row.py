"""One row, a dict or a series, is predicted as the table of that row is."""

from __future__ import annotations

import math
import random
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from branchwise import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    DataError,
    ID3Classifier,
    ParameterError,
)
from branchwise.data.encode import encode_columns
from branchwise.data.frames import open_table
from branchwise.data.one_row import RowEncoder
from mixed_trees import random_model
from random_tables import KERNELS
from selection import examples


@pytest.fixture(autouse=True, params=KERNELS)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each kernel predict in turn."""
    monkeypatch.setenv("BRANCHWISE_KERNEL", request.param)


@pytest.fixture(scope="module")
def weather() -> C45Classifier:
    table = pd.DataFrame(
        {
            "outlook": ["sunny", "rain", "overcast", "rain", "sunny", "rain"] * 5,
            "temperature": [64.0, 65, 68, 69, 70, 71] * 5,
            "humidity": [float(number) for number in range(60, 90)],
            "windy": [True, False, True, False, False] * 6,
        }
    )
    y = (table["temperature"] > 68) ^ table["windy"] ^ (table["humidity"] > 80)
    y |= table["outlook"] == "overcast"
    return C45Classifier(prune=False, min_samples_leaf=1).fit(table, y.map(str))


SUNNY = {"outlook": "sunny", "temperature": 70, "humidity": 90.5, "windy": False}


# ------------------------------------------------------------------- what is a row


def test_a_dict_of_cells_is_one_row(weather):
    expected = weather.predict([SUNNY])
    for predicting in (weather, weather.model_):
        assert predicting.predict(SUNNY).tolist() == expected.tolist()
        assert predicting.predict(SUNNY).shape == (1,)
        proba = predicting.predict_proba(SUNNY)
        assert proba.tolist() == weather.predict_proba([SUNNY]).tolist()
        assert predicting.apply(SUNNY).tolist() == weather.apply([SUNNY]).tolist()
    assert weather.predict_log_proba(SUNNY).shape == (1, 2)
    assert weather.decision_path(SUNNY).shape == (1, len(weather.tree_))


def test_a_series_of_pandas_is_one_row(weather):
    frame = pd.DataFrame([SUNNY])
    for row in (frame.iloc[0], pd.Series(SUNNY), pd.Series(SUNNY, name="a case")):
        assert weather.predict(row).tolist() == weather.predict(frame).tolist()
        assert weather.predict_proba(row).shape == (1, 2)


def test_numbers_of_one_row():
    X = pd.DataFrame({"size": [1.0, 2, 3, 4], "kind": ["a", "a", "b", "b"]})
    fitted = CARTRegressor().fit(X, [1.0, 2.0, 5.0, 9.0])
    assert fitted.predict({"size": 1, "kind": "a"}).tolist() == [1.0]
    assert fitted.predict(X.iloc[3]).tolist() == [9.0]
    with pytest.raises(ParameterError, match="predict_proba needs a tree"):
        fitted.model_.predict_proba({"size": 1, "kind": "a"})


def test_predictions_of_one_row_are_copies(weather):
    row = dict(SUNNY)
    weather.predict_proba(row)[:] = 7.0
    assert weather.predict_proba(row).sum() == 1.0
    X = {"size": [1.0, 2.0]}
    fitted = CARTRegressor().fit(X, [1.0, 2.0])
    fitted.predict({"size": 1.0})[:] = 7.0
    assert fitted.predict({"size": 1.0}).tolist() == [1.0]


def test_a_tree_without_names_takes_a_row_by_position():
    fitted = ID3Classifier().fit([["a", "x"], ["b", "x"]], ["no", "yes"])
    with pytest.warns(UserWarning, match="X has column names but the tree was fitted"):
        assert fitted.predict({"one": "b", "two": "x"}).tolist() == ["yes"]


def test_a_tree_of_one_leaf():
    fitted = ID3Classifier().fit({"a": ["x", "x"]}, ["no", "no"])
    assert fitted.predict({"a": "x"}).tolist() == ["no"]
    assert fitted.predict_proba({"a": None}).tolist() == [[1.0]]


# ------------------------------------------------------------------------- errors


def test_a_missing_column_is_named_and_an_unknown_one_suggested(weather):
    row = {"outlook": "sunny", "temperature_c": 70, "humidity": 90, "windy": True}
    message = (
        r"X lacks the column 'temperature' that the tree was fitted with\. Did you "
        r"mean 'temperature_c'\? Its columns are 'outlook', 'temperature_c'"
    )
    for given in (row, [row], pd.Series(row), pd.DataFrame([row])):
        with pytest.raises(DataError, match=message):
            weather.predict(given)
    with pytest.raises(DataError, match="X lacks the columns"):
        weather.predict_proba({"outlook": "sunny"})
    with pytest.raises(DataError, match="X lacks the columns"):
        weather.predict(pd.Series({"a": 1, "b": 2}))


def test_further_columns_are_ignored_as_in_tables(weather):
    further = {**SUNNY, "id": 7, "note": None}
    assert weather.predict(further) == weather.predict(SUNNY)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("hot", "was learnt as numbers but now holds text"),
        (math.inf, "Column 'temperature' is infinite in row 0"),
        (2**53 + 1, "beyond 2\\*\\*53"),
        (np.datetime64("2026-01-01"), "learnt as numbers but now holds dates"),
        (b"hot", "Decode it to text first"),
    ],
)
def test_cells_that_do_not_fit_the_column(weather, cell, message):
    with pytest.raises(DataError, match=message):
        weather.predict({**SUNNY, "temperature": cell})


def test_cells_and_lists_are_not_mixed(weather):
    with pytest.raises(DataError, match="must be a list, an array or a series"):
        weather.predict({**SUNNY, "temperature": [70, 80]})


def test_one_dimension_without_names_is_no_row(weather):
    for given in (list(SUNNY.values()), np.zeros(4), pd.Series([1.0, 2.0, 3.0, 4.0])):
        with pytest.raises(DataError, match="Expected 2D array, got 1D"):
            weather.predict(given)


def test_fitting_takes_no_single_row():
    with pytest.raises(DataError, match="must be a list, an array or a series"):
        ID3Classifier().fit(SUNNY, ["yes"])


@pytest.mark.parametrize("policy", ["missing", "unseen"])
def test_policies_of_error(policy):
    fitted = ID3Classifier(**{policy: "error"}).fit({"a": ["x", "y"]}, ["no", "yes"])
    cell = None if policy == "missing" else "z"
    assert fitted.predict({"a": "y"}).tolist() == ["yes"]
    with pytest.raises(DataError, match=f"{policy}='error' allows no"):
        fitted.predict({"a": cell})
    with pytest.raises(DataError, match=f"{policy}='error' allows no"):
        fitted.predict(pd.DataFrame({"a": [cell]}, dtype="str"))


# ---------------------------------------------------------------- the same as a table

#: Cells of all kinds, to be taken for those of any column.
CELLS = (
    *("sunny", "", "nan", "a", "1", np.str_("a"), True, False, np.True_, None),
    *(math.nan, np.nan, pd.NA, pd.NaT, 0, -0.0, 1, 2.5, -3, 1e300, math.inf, 2**53),
    *(2**53 - 1, 2**70, np.int8(1), np.uint64(3), np.float32(2.5), np.float64(1.0)),
    *(np.float16(1.0), Decimal("1.5"), 1 + 2j, b"a", object()),
)


def outcome(predict, given):
    """Return what comes out, or the error and what it says."""
    try:
        return np.asarray(predict(given)).tolist()
    except (DataError, ParameterError) as error:
        return type(error), str(error)


def rows_of(model, words, n):
    """Yield rows of cells that the columns know, and of some that they do not."""
    for _ in range(n):
        row = {}
        for column in model.schema.columns:
            if words.random() < 0.1:
                row[column.name] = words.choice(CELLS)
            elif column.is_numeric:
                row[column.name] = words.choice([None, 1, words.gauss(0, 10)])
            else:
                row[column.name] = words.choice([*column.categories, None])
        yield row


@pytest.mark.parametrize("kind", range(14))
def test_one_row_equals_the_table_of_it(kind):
    model, words = random_model(kind, seed=kind), random.Random(kind)
    for row in rows_of(model, words, examples(60)):
        table = {name: [cell] for name, cell in row.items()}
        for predict in (model.predict, model.apply):
            expected = outcome(predict, table)
            assert outcome(predict, row) == expected, row
            assert outcome(predict, [row]) == expected, row
        if model.schema.classes:
            assert outcome(model.predict_proba, row) == outcome(
                model.predict_proba, table
            )


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("kind", range(14))
def test_a_dataframe_of_one_row_equals_its_rows_among_others(kind, library):
    model, words = random_model(kind, seed=100 + kind), random.Random(kind)
    rows = [
        {c.name: words.choice([*c.categories, None]) for c in model.schema.columns}
        for _ in range(30)
    ]
    for row in rows:
        for column in model.schema.columns:
            if column.is_numeric:
                row[column.name] = words.choice([None, 1.0, words.gauss(0, 10)])
    frame = (
        pd.DataFrame(rows)
        if library == "pandas"
        else pl.DataFrame(rows, strict=False, infer_schema_length=None)
    )
    expected = outcome(model.predict, frame)
    if not isinstance(expected, list):
        assert model.recipe.missing == "error" or model.recipe.unseen == "error"
        return
    for at in range(len(rows)):
        assert model.predict(frame[at : at + 1]).tolist() == [expected[at]]


@pytest.mark.parametrize(
    "dtype", ["str", "category", "object", "string", "Int64", "float32", "boolean"]
)
def test_dataframes_of_every_type(dtype):
    values = {"Int64": [1, 2, None], "float32": [1.5, 2.5, None]}
    values["boolean"] = [True, False, None]
    X = pd.DataFrame({"a": values.get(dtype, ["x", "y", None])}).astype(dtype)
    X["b"] = [1.0, 2.0, 3.0]
    for estimator in (CARTClassifier(), C45Classifier(min_samples_leaf=1)):
        fitted = estimator.fit(X, ["no", "yes", "no"])
        expected = fitted.predict(X)
        for at in range(3):
            assert fitted.predict(X[at : at + 1]) == expected[at]


def test_the_encoder_gives_what_encoding_a_table_gives():
    for kind in range(14):
        model, words = random_model(kind, seed=kind), random.Random(kind)
        used = model.tree.used_columns
        encoder = RowEncoder(model.schema, used, allow_missing=True, allow_unseen=True)
        taken = 0
        for row in rows_of(model, words, 40):
            cells = encoder.cells(row)
            if cells is None:
                continue
            taken += 1
            expected = encode_columns(open_table([row]), model.schema, used)
            found = encoder.columns(cells)
            for index in used:
                np.testing.assert_array_equal(found.data[index], expected.data[index])
                assert found.data[index].dtype == expected.data[index].dtype
        assert taken > 5


def test_columns_in_another_order_from_one_table_to_the_next(weather):
    frame = pd.DataFrame([SUNNY])
    expected = weather.predict(frame).tolist()
    for names in (
        frame.columns[::-1],
        frame.columns,
        [*frame.columns[2:], *frame.columns[:2]],
    ):
        assert weather.predict(frame[list(names)]).tolist() == expected
    doubled = pd.concat([frame, frame], axis=1)
    with pytest.raises(DataError, match="more than one column named"):
        weather.predict(doubled)
