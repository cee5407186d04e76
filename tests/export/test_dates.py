"""Exports of trees that split at dates: every target gives what the model gives."""

from __future__ import annotations

import datetime as dt
import json
import shutil

import numpy as np
import pytest

from branchwise import ExportError, RandomForestClassifier, fit_tree
from branchwise.export import sql
from branchwise.export.verification import verify, write
from branchwise.recipe import C45, CART

UNITS = {"day": 86_400, "minute": 420, "second": 13, "microsecond": 1.000_001}
QUICK = ("python", "javascript", "json", "c", "onnx")
PROGRAMS = {"javascript": "node", "c": "cc"}


def table(unit, zoned=False, n=150, written=None):
    rng = np.random.default_rng(3)
    start = dt.datetime(2023, 1, 1, tzinfo=dt.UTC if zoned else None)
    steps = rng.integers(0, 300, n).tolist()
    times = [start + dt.timedelta(seconds=step * UNITS[unit]) for step in steps]
    cells = [None if at % 11 == 0 else time for at, time in enumerate(times)]
    x = rng.integers(0, 5, n).tolist()
    y = [
        "late" if s > 120 and k > 1 else "early" for s, k in zip(steps, x, strict=True)
    ]
    return {"opened": cells, "x": x}, y


def available(target):
    if target == "onnx":
        pytest.importorskip("onnxruntime")
    if target in PROGRAMS and shutil.which(PROGRAMS[target]) is None:
        pytest.skip("there is nothing that runs it")
    return target


@pytest.mark.parametrize(
    ("target", "unit"),
    [*zip(QUICK, ["day", "minute", "second", "day", "minute"], strict=True)],
)
def test_targets(target, unit):
    X, y = table(unit)
    model = fit_tree(X, y, CART if unit == "day" else C45)
    assert verify(model, available(target)).ok
    done = verify(model, target, X)
    assert done.ok
    assert done.n_rows == len(y)


@pytest.mark.slow
@pytest.mark.parametrize("target", [*QUICK, "pmml", "excel"])
@pytest.mark.parametrize("zoned", [False, True])
@pytest.mark.parametrize("unit", UNITS)
def test_all_targets_and_units(target, unit, zoned):
    X, y = table(unit, zoned)
    model = fit_tree(X, y, CART)
    if zoned and target in ("pmml", "excel"):
        with pytest.raises(ExportError, match=r"Column 'opened' (holds|has) times"):
            write(model, target)
    elif (target, unit) == ("excel", "microsecond"):
        with pytest.raises(ExportError, match="fractions of seconds"):
            write(model, target)
    else:
        assert verify(model, available(target)).ok
        assert verify(model, target, X).ok


SOME = ["day", *(pytest.param(u, marks=pytest.mark.slow) for u in [*UNITS][1:])]


@pytest.mark.parametrize("unit", SOME)
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "ansi"])
def test_sql(unit, dialect):
    pytest.importorskip("duckdb")
    X, y = table(unit)
    model = fit_tree(X, y, CART)
    assert verify(model, "sql", dialect=dialect).ok
    assert verify(model, "sql", X, dialect=dialect).ok
    X, y = table(unit, zoned=True)
    zoned = fit_tree(X, y, CART)
    if dialect == "duckdb":
        assert verify(zoned, "sql", dialect=dialect).ok
        return
    with pytest.raises(ExportError) as caught:
        write(zoned, "sql", dialect=dialect)
    assert str(caught.value) == (
        "Column 'opened' holds times with a time zone, and the dialect "
        f"{dialect!r} has none. Choose another dialect (duckdb, postgresql, spark), or "
        "convert them to UTC without a time zone and fit again."
    )


def test_sql_has_the_first_date_above():
    days = [dt.date(2024, 3, day) for day in (1, 5, 6, 9)]
    model = fit_tree({"opened": days}, ["a", "a", "b", "b"], CART)
    texts = {
        name: write(model, "sql", dialect=name, form="expression").decode()
        for name in ("ansi", "sqlite", "duckdb", "postgresql", "spark")
    }
    assert "\"opened\" < DATE '2024-03-06'" in texts["duckdb"]
    assert "\"opened\" < '2024-03-06'" in texts["sqlite"]
    assert "`opened` < DATE '2024-03-06'" in texts["spark"]


def test_fractional_cases_and_forests():
    pytest.importorskip("duckdb")
    X, y = table("day", n=60)
    model = fit_tree(X, y, C45)
    assert model.recipe.missing == "split"
    assert verify(model, "sql", dialect="duckdb").ok
    forest = RandomForestClassifier(n_estimators=2, random_state=0).fit(X, y)
    for target in ("python", "json"):
        assert verify(forest.model_, target).ok


def module_of(model):
    module = {}
    exec(write(model, "python"), module)
    return module


def test_python_takes_dates_of_all_kinds(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("opened,y\n05-Mar-2024,a\n17-Apr-2024,b\n")
    from branchwise import read_table

    with pytest.warns(UserWarning, match="05-Mar-2024|17-Apr-2024"):
        model = fit_tree(read_table(path), "y", CART)
    predict = module_of(model)["predict"]
    early = ["05-Mar-2024", "2024-03-05", dt.date(2024, 3, 5), "5-march-2024 23:59"]
    for cell in [
        *early,
        dt.datetime(2024, 3, 5, 7),
        np.datetime64("2024-03-05").item(),
    ]:
        assert predict({"opened": cell}) == "a"
    for cell in ("18-Apr-2024", dt.date.max, "9999-12-31"):
        assert predict({"opened": cell}) == "b"
    for missing in (None, "", float("nan"), np.datetime64("NaT").item()):
        assert predict({"opened": missing}) == model.predict({"opened": None})[0]
    wrong = [5, "2024-02-30", "05.03.2024", "2024-03-05T00:00Z", True, b"x"]
    for cell in [*wrong, dt.datetime(2024, 3, 5, tzinfo=dt.UTC)]:
        with pytest.raises(ValueError, match="must be a date or a time without a time"):
            predict({"opened": cell})


def test_javascript_takes_a_date_only_with_a_time_zone(tmp_path):
    available("javascript")
    import subprocess

    for zoned in (False, True):
        X, y = table("minute", zoned, n=60)
        script = write(fit_tree(X, y, CART), "javascript").decode()
        call = (
            "try { tree.predict({ opened: new Date(0), x: 4 }); console.log('fine'); }"
        )
        call += " catch (error) { console.log(error.message); }"
        (tmp_path / "t.js").write_text(script + call)
        done = subprocess.run(
            ["node", tmp_path / "t.js"], capture_output=True, text=True, check=True
        )
        told = done.stdout.strip()
        assert (told == "fine") == zoned
        assert zoned or told.startswith(
            'Column "opened" must be the text of a date or a time without a time zone.'
        )


def test_units_are_told_where_dates_are_numbers():
    X, y = table("minute")
    model = fit_tree(X, y, CART)
    assert "// opened: minutes since 1970-01-01" in write(model, "c").decode()
    columns = json.loads(write(model, "json"))["columns"]
    assert {"name": "opened", "type": "date", "unit": "minute"} in columns
    onnx = pytest.importorskip("onnx")
    graph = onnx.load_from_string(write(model, "onnx")).graph
    assert "opened: minutes since 1970-01-01" in graph.doc_string


def test_column_types_of_all_dialects():
    for dialect in sql.DIALECTS.values():
        assert {"date", "time"} <= dialect.dates.keys()
