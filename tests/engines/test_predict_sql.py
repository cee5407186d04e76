"""Predictions in a database are those of the model, and nothing is written unasked."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from branchwise import (
    BranchwiseError,
    DataError,
    ExportError,
    ID3Classifier,
    ParameterError,
    fit_tree,
    read_table,
)
from branchwise.engines.sql import SqlTable
from branchwise.export import sql as sql_runners
from branchwise.export import verification
from branchwise.predict import predict_rows
from branchwise.recipe import C45, CART, ID3
from sql_sources import (
    in_duckdb,
    in_postgresql,
    in_sqlite,
    random_columns,
)


@pytest.fixture(autouse=True)
def _few_probes(monkeypatch):
    monkeypatch.setattr(verification, "_N_PROBES", 60)


def table_and_model(recipe, path):
    table = read_table(path, table="t")
    X = table.drop_columns(["y", "w", "id"])
    return X, fit_tree(X, table["y"], replace(recipe, max_depth=4))


def columns_for(recipe, seed=4):
    rng = np.random.default_rng(seed)
    columns = random_columns(rng, 80, 0.1, recipe.is_regression)
    return {**columns, "id": list(range(80))}


def wanted(model):
    return ["classes", "probabilities"] if model.schema.classes else "classes"


def check(place, X, model, keep=("id",), **options):
    table, what = SqlTable(place, "t"), wanted(model)
    rows = sorted(predict_rows(model, table, what, keep=keep, **options))
    expected = model.predict(X)
    assert [row[0] for row in rows] == list(range(X.num_rows))
    assert [row[1] for row in rows] == list(expected)
    if model.schema.classes:
        chances = np.array([row[2:] for row in rows])
        np.testing.assert_array_equal(chances, model.predict_proba(X))


REGRESSION = replace(CART, criterion="variance")


@pytest.mark.parametrize("recipe", [ID3, C45, CART, REGRESSION], ids=repr)
def test_answers_are_those_of_the_model(recipe, tmp_path):
    columns = columns_for(recipe)
    for place in (
        in_sqlite(columns, tmp_path / "t.sqlite"),
        in_duckdb(columns, tmp_path / "t.duckdb"),
    ):
        check(place, *table_and_model(recipe, place))


def test_postgresql_answers_as_the_model(postgresql, tmp_path, monkeypatch):
    columns = columns_for(C45)
    X, model = table_and_model(C45, in_duckdb(columns, tmp_path / "t.duckdb"))
    in_postgresql(columns, postgresql)
    monkeypatch.delenv(sql_runners.ADDRESS, raising=False)
    with pytest.raises(ExportError, match="cannot be verified here"):
        predict_rows(model, SqlTable(postgresql, "t"), as_query=True)
    check(postgresql, X, model, verify=False)
    monkeypatch.setenv(sql_runners.ADDRESS, postgresql)
    check(postgresql, X, model)


def test_a_query_is_answered_and_marks_are_missing(tmp_path):
    columns = {"x": ["a", "?", "b", ""] * 5, "y": [1, 2, 3, 2] * 5}
    path = in_sqlite(columns, tmp_path / "t.sqlite")
    model = fit_tree(read_table(path, table="t").drop_columns(["y"]), columns["y"])
    table = SqlTable(path, query="SELECT upper(x) AS n, x FROM t")
    assert set(predict_rows(model, table, wanted(model), keep=["n"])) == {
        ("A", 1, 1.0, 0.0, 0.0),
        ("B", 3, 0.0, 0.0, 1.0),
        ("?", 2, 0.0, 1.0, 0.0),
        ("", 2, 0.0, 1.0, 0.0),
    }
    query = predict_rows(model, table, as_query=True)
    with closing(sqlite3.connect(path)) as connection:
        assert len(connection.execute(query).fetchall()) == 20


def test_a_table_is_written_only_where_the_caller_may(tmp_path):
    columns = columns_for(ID3)
    path = in_sqlite(columns, tmp_path / "t.sqlite")
    _, model = table_and_model(ID3, path)
    with pytest.raises(ParameterError, match="opened for reading only"):
        predict_rows(model, SqlTable(path, "t"), output="answers")
    with closing(sqlite3.connect(path)) as connection:
        table = SqlTable(connection, "t")
        assert predict_rows(model, table, keep=["id"], output="the answers") is None
        found = connection.execute('SELECT COUNT(*) FROM "the answers"').fetchone()
        assert found == (80,)
        with pytest.raises(DataError, match="already exists"):
            predict_rows(model, table, output="the answers")


def test_columns_that_do_not_fit_are_named(tmp_path):
    path = in_sqlite({"x": ["a", "b"] * 5, "y": [1, 2] * 5}, tmp_path / "t.sqlite")
    model = fit_tree({"x": ["a", "b"] * 5}, [1, 2] * 5)
    number = SqlTable(path, query="SELECT y AS x FROM t")
    with pytest.raises(DataError, match="Column 'x' was learnt as text"):
        predict_rows(model, number)
    with pytest.raises(DataError, match=r"no column 'x'\. Did you mean 'xx'"):
        predict_rows(model, SqlTable(path, query="SELECT x AS xx FROM t"))


def test_what_is_no_model_and_no_table_is_told(tmp_path):
    place = in_sqlite({"x": ["a", "b"], "y": ["n", "p"]}, tmp_path / "t.sqlite")
    table = SqlTable(place, "t")
    estimator = ID3Classifier().fit(table, "y")
    assert sorted(predict_rows(estimator, table))[0] == ("n",)
    with pytest.raises(ParameterError, match=r"model must be .*Got dict"):
        predict_rows({}, table)
    with pytest.raises(ParameterError, match=r"must be a SqlTable.*Got SqlRows"):
        predict_rows(estimator, table.open())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"what": "leaves"}, "'leaves' is not possible in a database"),
        ({"as_query": True, "output": "t2"}, "as_query returns the query, and output"),
        ({"escape_formulas": True}, "escape_formulas has no effect"),
        ({"keep": "x"}, "keep must be a list of names"),
        ({"keep": ["z"]}, "no column 'z'"),
    ],
)
def test_parameters_without_effect(options, complaint, tmp_path):
    place = in_sqlite({"x": ["a", "b"], "y": ["n", "p"]}, tmp_path / "t.sqlite")
    model = fit_tree({"x": ["a", "b"]}, ["n", "p"])
    with pytest.raises(BranchwiseError, match=complaint):
        predict_rows(model, SqlTable(place, "t"), **options)
