"""Columns derived from dates: their numbers, and models that derive them again."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from branchwise import (
    CARTClassifier,
    DataError,
    Model,
    ModelFileError,
    ParameterError,
    date_features,
    fit_tree,
    read_table,
)
from branchwise.predict import predict_rows
from branchwise.recipe import CART
from command_line import output, run

TIMES = [
    dt.datetime(2023, 1, 1) + dt.timedelta(hours=13 * at, minutes=7 * at)
    for at in range(200)
]
TIMES[5] = None
Y = ["w" if t is not None and t.weekday() >= 5 and t.hour < 12 else "d" for t in TIMES]
ALL = ["year", "quarter", "month", "day", "weekday", "hour", "minute"]


def completed_years(born, on):
    return on.year - born.year - ((on.month, on.day) < (born.month, born.day))


def test_the_numbers_of_all_features():
    on = dt.date(2024, 2, 29)
    wanted = [*ALL, "age:2024-02-29", "age_years:2024-02-29"]
    far = [dt.datetime(1, 1, 1), dt.datetime(1600, 2, 29), dt.datetime(9999, 12, 31)]
    for cells in (TIMES, far):
        names = (
            wanted if cells is TIMES else [w for w in wanted if w[:3] not in "hou min"]
        )
        table = date_features({"t": cells}, {"t": names}).to_pydict()
        for at, t in enumerate(cells):
            got = {name: column[at] for name, column in table.items()}
            if t is None:
                assert set(got.values()) == {None}
                continue
            expected = {
                "t": t,
                "t.year": t.year,
                "t.quarter": (t.month + 2) // 3,
                "t.month": t.month,
                "t.day": t.day,
                "t.weekday": t.isoweekday(),
                "t.hour": t.hour,
                "t.minute": t.minute,
                "t.age": (on - t.date()).days,
                "t.age_years": completed_years(t.date(), on),
            }
            assert got == {name: expected[name] for name in got}


def test_a_model_derives_them_again(tmp_path):
    frame = pd.DataFrame({"t": TIMES, "x": range(200)})
    table = date_features(frame, {"t": ["weekday", "hour", "age:2024-12-31"]})
    model = fit_tree(table, Y, CART)
    assert str(model).startswith("t.weekday <= Fri: d")
    assert "t.hour <= 11" in str(model)
    assert "t.weekday  numeric, weekday of 't', some missing" in (
        model.schema.describe()
    )
    again = Model.from_bytes(model.to_bytes())
    assert again.to_bytes() == model.to_bytes()
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    rows = frame.to_dict("records")
    for one in (model, again, model.drop_unused()):
        for X in (table, frame, pl.from_pandas(frame), frame[["t"]], rows):
            assert one.predict(X).tolist() == Y
        (chunk,) = predict_rows(one, path)
        assert next(iter(chunk.values())).tolist() == Y
    assert model.predict({"t": "2024-06-01 10:30", "x": 1}) == ["w"]
    assert model.predict({"t": dt.datetime(2024, 6, 1, 12), "x": 1}) == ["d"]
    told = model.explain({"t": "2024-06-01 10:30", "x": 1})
    assert "t.weekday >= Sat (it is Sat)" in str(told)
    with pytest.raises(DataError, match="X lacks the column 't' that the tree splits"):
        model.predict({"x": 1})
    estimator = CARTClassifier().fit(table, Y)
    assert estimator.predict(frame).tolist() == Y


def test_what_if_leaves_such_dates_as_they_are():
    X = {"t": TIMES[6:], "x": [at % 5 for at in range(194)]}
    y = [
        "w" if t.weekday() >= 5 and x > 2 else "d"
        for t, x in zip(X["t"], X["x"], strict=True)
    ]
    model = fit_tree(date_features(X, {"t": ["weekday", "month"]}), y, CART)
    saturday, monday = dt.datetime(2023, 4, 1, 9), dt.datetime(2023, 4, 3, 9)
    found = model.what_if({"t": saturday, "x": 1}, "w")
    assert [change.column for change in found.changes] == ["x"]
    assert str(found).endswith(
        "Dates are left as they are where the tree splits on what is derived from "
        "them: t."
    )
    assert found.to_dict()["note"] == found.note
    assert model.predict(found.best.row).tolist() == ["w"]
    stuck = model.what_if({"t": monday, "x": 1}, "w")
    assert not stuck
    assert "No change gives w while the dates stay as they are." in str(stuck)
    assert "Dates are left as they are" in str(stuck)


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        ({"t": "week"}, ParameterError, "features of 't' must be 'year'"),
        ({"t": "age"}, ParameterError, "or an age on a day: 'age:2024-12-31' in days"),
        ({"t": "age:2024-02-30"}, ParameterError, "Got 'age:2024-02-30'."),
        ({"t": "month:2024-01-01"}, ParameterError, "Got 'month:2024-01-01'."),
        ({"u": "month"}, DataError, "X has no column 'u'."),
        ({"x": "month"}, DataError, "Column 'x' of X holds no dates, so that there is"),
        ({"d": "hour"}, DataError, "Column 'd' of X holds dates without a time of day"),
        ({"t": ["day", "day"]}, DataError, "X has a column 't.day' already"),
    ],
)
def test_messages(features, error, message):
    days = [dt.date(2024, 1, 1 + at % 30) for at in range(200)]
    with pytest.raises(error, match=message.replace("(", r"\(")):
        date_features({"t": TIMES, "x": [1] * 200, "d": days}, features)


@pytest.mark.filterwarnings("default:.*read as dates")
def test_the_command_line(tmp_path):
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    lines = [
        f"{'' if t is None else t.strftime('%d.%m.%Y %H:%M')},{y}"
        for t, y in zip(TIMES, Y, strict=True)
    ]
    path.write_text("\n".join(["t,y", *lines, ""]))
    wanted = ("--date-features", "t=weekday,hour")
    assert run("fit", path, "-t", "y", "-a", "cart", *wanted, "-o", model)[0] == 0
    for engine in ("memory", "chunked"):
        assert output("predict", model, path, "--engine", engine).split()[1:] == Y
    with pytest.warns(UserWarning, match="read as dates"):
        table = read_table(path, date_features={"t": ["weekday", "hour"]})
    again = fit_tree(table, "y", CART)
    document = json.loads(model.read_text())
    assert (
        document["schema"]["columns"]
        == json.loads(again.to_bytes())["schema"]["columns"]
    )
    chunked = tmp_path / "chunked.json"
    options = ("-a", "cart", *wanted, "--engine", "chunked", "-o", chunked)
    code, _, errors = run("fit", path, "-t", "y", *options)
    assert code == 0, errors
    assert chunked.read_bytes() == model.read_bytes()


def test_model_files_are_checked():
    model = fit_tree(date_features({"t": TIMES}, {"t": ["weekday"]}), Y, CART)
    document = json.loads(model.to_bytes())
    derived = document["schema"]["columns"][1]["derived"]
    assert derived == {"of": "t", "feature": "weekday"}
    for changed, message in (
        ({"feature": "week"}, "'derived' of column 1 has an invalid 'feature'"),
        ({"on": "2024-01-01"}, "'derived' of column 1 has an invalid 'on'"),
        ({"at": 1}, "'derived' of column 1 has the unknown field 'at'"),
    ):
        document["schema"]["columns"][1]["derived"] = derived | changed
        with pytest.raises(ModelFileError, match=message):
            Model.from_bytes(json.dumps(document).encode())
    date = document["schema"]["columns"][0]["date"]
    document["schema"]["columns"][1]["derived"] = derived
    for changed, message in (
        ({"unit": "week"}, "'date' of column 0 has an invalid 'unit'"),
        ({"zoned": 1}, "'date' of column 0 has an invalid 'zoned'"),
        ({"written": "DD"}, "'date' of column 0 has an invalid 'written'"),
        ({"x": 1}, "'date' of column 0 has the unknown field 'x'"),
    ):
        document["schema"]["columns"][0]["date"] = date | changed
        with pytest.raises(ModelFileError, match=message):
            Model.from_bytes(json.dumps(document).encode())


def test_missing_dates_are_missing_features():
    table = date_features({"t": [None, *TIMES[:3]]}, {"t": ["month"]})
    model = fit_tree(table, ["a", "b", "b", "c"], CART)
    assert model.schema.columns[1].has_missing
    assert np.array_equal(model.predict({"t": [None]}), model.predict({"t": [""]}))
