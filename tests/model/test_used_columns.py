"""Prediction needs only the columns that a model splits on."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from branchwise import (
    CARTClassifier,
    DataError,
    RandomForestClassifier,
    fit_tree,
    predict_rows,
)
from branchwise.engines.sql import SqlTable
from branchwise.recipe import CART, ID3


def training_rows(n=60):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "noise": rng.choice(["a", "b"], n),
            "x": rng.integers(0, 50, n).astype(float),
            "constant": np.ones(n),
            "kind": np.arange(n) % 3,
        }
    )
    return table.astype({"kind": str}), np.where(table["x"] > 20, "high", "low")


@pytest.fixture(scope="module")
def model():
    fitted = fit_tree(*training_rows(), CART)
    assert [fitted.schema.names[at] for at in fitted.used_columns] == ["x"]
    return fitted


def test_frames_rows_and_series_may_lack_the_others(model):
    table, _ = training_rows()
    expected = model.predict(table)
    for rows in (table[["x"]], table[["kind", "x"]], {"x": table["x"].to_list()}):
        assert np.array_equal(model.predict(rows), expected)
        assert np.array_equal(model.apply(rows), model.apply(table))
    row = table.iloc[3]
    assert model.predict({"x": row["x"]}) == expected[3]
    assert model.predict(row[["x"]]) == expected[3]
    assert model.predict(table[["x"]].iloc[3:4]) == expected[3]
    assert model.predict([{"x": row["x"]}, {"x": 3}])[0] == expected[3]


def test_what_is_lacking_is_what_the_tree_splits_on(model):
    table, _ = training_rows()
    message = (
        r"X lacks the column 'x' that the tree splits on\. Its columns are 'noise', "
        r"'constant', 'kind'; rename or add what is lacking"
    )
    for rows in (table.drop(columns="x"), [{"noise": "a", "constant": 1, "kind": "0"}]):
        with pytest.raises(DataError, match=message):
            model.predict(rows)


def test_arrays_must_have_every_column(model):
    table, labels = training_rows()
    numbers = table[["x", "constant"]].to_numpy()
    estimator = CARTClassifier().fit(numbers, labels)
    with pytest.raises(DataError, match=r"X has 1 features, but .* expecting 2"):
        estimator.predict(numbers[:, :1])
    with pytest.raises(DataError, match=r"X has 1 features, but .* expecting 4"):
        model.predict(table[["x"]].to_numpy())


def test_estimators_and_forests(model):
    table, labels = training_rows()
    for estimator in (CARTClassifier(), RandomForestClassifier(n_estimators=5)):
        fitted = estimator.fit(table, labels)
        used = [table.columns[at] for at in fitted.model_.used_columns]
        assert len(used) < len(table.columns)
        assert np.array_equal(fitted.predict(table[used]), fitted.predict(table))
        assert fitted.score(table[used], labels) == fitted.score(table, labels)
        lacking = table.drop(columns=used[0])
        with pytest.raises(DataError, match=f"lacks the column '{used[0]}' that the"):
            fitted.predict(lacking)


def test_a_tree_without_splits_needs_no_column(tmp_path):
    table, labels = training_rows()
    leaf = fit_tree(table, labels, replace(ID3, max_depth=0))
    others = pd.DataFrame({"z": [1, 2, 3]})
    assert len(leaf.predict(others)) == 3
    others.to_csv(tmp_path / "others.csv", index=False)
    (batch,) = predict_rows(leaf, tmp_path / "others.csv")
    assert len(batch["prediction"]) == 3


def test_files_databases_and_dask(model, tmp_path):
    table, _ = training_rows()
    expected = model.predict(table)
    table[["kind", "x"]].to_csv(tmp_path / "rows.csv", index=False)
    (batch,) = predict_rows(model, tmp_path / "rows.csv")
    assert np.array_equal(batch["prediction"], expected)
    with closing(sqlite3.connect(tmp_path / "rows.db")) as database:
        table[["x"]].to_sql("rows", database, index=False)
    found = predict_rows(model, SqlTable(f"sqlite:///{tmp_path}/rows.db", "rows"))
    assert sorted(row[0] for row in found) == sorted(expected)
    dd = pytest.importorskip("dask.dataframe")
    lazy = predict_rows(model, dd.from_pandas(table[["x"]], npartitions=2))
    assert np.array_equal(lazy.compute(scheduler="sync"), expected)


def test_explanations_tell_of_the_columns_in_use(model):
    row = {"x": 30.0}
    assert model.explain(row).prediction == "high"
    assert model.what_if(row, "low").changes
    values = model.shap(row)
    assert values.data[0, 1] == 30.0
    assert values.data[0, 0] is None
    assert np.isnan(values.data[0, 2])


def test_worked_solutions_need_every_column(model):
    table, labels = training_rows()
    with pytest.raises(
        DataError, match=r"lacks the columns .* that the tree was fitted"
    ):
        model.steps(table[["x"]], labels)
