"""Exports of trees that split on what is derived from dates."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from branchwise import (
    ExportError,
    RandomForestClassifier,
    date_features,
    fit_tree,
)
from branchwise.export import sql, verification
from branchwise.export.verification import verify, write
from branchwise.recipe import C45, CART

pytestmark = pytest.mark.filterwarnings("ignore:The tree has")
PROGRAMS = {"javascript": "node", "c": "cc"}
UNITS = {"day": 86_400, "minute": 420, "second": 13, "microsecond": 1.000_001}
OF_DAYS = ["year", "quarter", "month", "day", "weekday"]
OF_DAYS += ["age:2024-02-29", "age_years:2024-02-29"]


def table(unit="minute", zoned=False, n=240, features=None):
    rng = np.random.default_rng(3)
    start = dt.datetime(2019, 1, 1, 5, tzinfo=dt.UTC if zoned else None)
    steps = rng.integers(0, 2000 * 86_400, n) // UNITS[unit] * UNITS[unit]
    times = [start + dt.timedelta(seconds=float(step)) for step in steps]
    if unit == "day":
        times = [time.date() for time in times]
    cells = [None if at % 11 == 0 else time for at, time in enumerate(times)]
    if features is None:
        features = OF_DAYS if unit == "day" else [*OF_DAYS, "hour", "minute"]
    X = date_features(
        {"opened": cells, "x": rng.integers(0, 5, n)}, {"opened": features}
    )
    return X, rng.choice(["p", "q"], n).tolist()


def available(target):
    if target == "onnx":
        pytest.importorskip("onnxruntime")
    if target in PROGRAMS and shutil.which(PROGRAMS[target]) is None:
        pytest.skip("there is nothing that runs it")
    return target


def check(model, target, X, **options):
    for rows in (None, X):
        done = verify(model, available(target), rows, **options)
        assert done.ok, str(done)


@pytest.fixture(autouse=True)
def _few_probes(monkeypatch, request):
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(verification, "_N_PROBES", 200)


QUICK = ("python", "javascript", "json", "c", "onnx")


def forest(X, y):
    """Return a few trees that split on every column."""
    sizes = {"n_estimators": 5, "max_depth": 5, "max_features": 1}
    model = RandomForestClassifier(**sizes, random_state=1).fit(X, y).model_
    assert len(model.used_columns) == len(X.column_names)
    return model


@pytest.mark.parametrize("target", QUICK)
def test_targets(target):
    X, y = table("day" if target == "json" else "minute")
    check(forest(X, y), target, X)


def test_models_without_the_dates_themselves():
    X, y = table()
    bare = fit_tree(X.drop_columns(["opened"]), y, C45).drop_unused()
    assert "opened" not in bare.schema.names
    check(bare, "python", X)


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_sql(dialect):
    pytest.importorskip("duckdb")
    X, y = table()
    check(forest(X, y), "sql", X, dialect=dialect)
    shallow = fit_tree(X, y, replace(CART, max_depth=3))
    check(shallow, "sql", X, dialect=dialect, form="expression")


def test_what_databases_are_asked():
    days = [dt.date(2000 + at % 5, 1 + at % 12, 1 + at) for at in range(24)]
    X = date_features({"opened": days}, {"opened": ["month", "age:2024-12-31"]})
    model = fit_tree(X, ["a" if day.month < 7 else "b" for day in days], CART)
    texts = {
        name: write(model, "sql", dialect=name, form="expression").decode()
        for name in ("sqlite", "duckdb", "postgresql", "spark")
    }
    month = 'strftime(\'%m\', substr("rows"."opened", 1, 19))'
    assert f"CAST(CAST({month} AS INTEGER) AS REAL) <= 6.0" in texts["sqlite"]
    assert 'EXTRACT(MONTH FROM "rows"."opened") <= 6.0e0' in texts["duckdb"]
    assert "EXTRACT(MONTH FROM `rows`.`opened`) <= 6.0D" in texts["spark"]
    with pytest.raises(ExportError) as caught:
        write(model, "sql", dialect="ansi")
    assert str(caught.value) == (
        "Column 'opened.month' is derived from dates (month of 'opened'), for which "
        "the dialect 'ansi' has no functions that every database has. Choose another "
        "dialect (duckdb, postgresql, spark, sqlite)."
    )


def test_only_the_dates_are_given():
    X, y = table("day", features=["month", "weekday"])
    model = fit_tree(X.drop_columns(["opened"]), y, CART)
    module = {}
    exec(write(model, "python"), module)
    assert module["COLUMNS"] == ("x", "opened")
    for day in (dt.date(2024, 3, 5), "2024-03-05"):
        row = {"opened": day, "x": 1}
        assert module["predict"](row) == model.predict(row)[0]
    columns = json.loads(write(model, "json"))["columns"]
    assert [c["type"] for c in columns] == ["number", "date", "derived", "derived"]
    assert columns[2] == {
        "name": "opened.month",
        "type": "derived",
        "of": "opened",
        "feature": "month",
    }
    text = write(model, "c").decode()
    assert "double opened;  // opened: days since 1970-01-01" in text


@pytest.mark.slow
def test_postgresql(postgresql, monkeypatch):
    monkeypatch.setenv(sql.ADDRESS, postgresql)
    for unit, zoned in (("day", False), ("minute", False), ("microsecond", True)):
        X, y = table(unit, zoned)
        check(forest(X, y), "sql", X, dialect="postgresql")


@pytest.mark.slow
def test_spark():
    pytest.importorskip("pyspark")
    X, y = table("minute", n=100)
    check(fit_tree(X, y, CART), "sql", X, dialect="spark")


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["day", "second"])
def test_excel(unit):
    X, y = table(unit, n=120)
    check(forest(X, y), "excel", X)
    check(fit_tree(X, y, CART), "excel", X)


@pytest.mark.slow
@pytest.mark.parametrize("target", [*QUICK, "pmml"])
@pytest.mark.parametrize("zoned", [False, True])
@pytest.mark.parametrize("unit", UNITS)
def test_all_targets_and_units(target, unit, zoned):
    X, y = table(unit, zoned and unit != "day")
    model = forest(X, y)
    if target == "pmml" and zoned and unit != "day":
        with pytest.raises(ExportError, match="times with a time zone"):
            write(model, target)
        return
    check(model, target, X)
    check(fit_tree(X, y, CART), target, X)
