"""Readable thresholds are the same in every engine, and kept in model files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from branchwise import ModelFileError, fit_tree, load
from branchwise.engines.chunked import ChunkedTable
from branchwise.engines.sql import SqlTable
from branchwise.model_file.reader import from_bytes
from branchwise.recipe import CART, ID3, Recipe
from selection import first_fast

READABLE = {
    "id3": replace(ID3, threshold="readable", max_depth=4),
    "cart": replace(CART, threshold="readable", max_depth=4, missing="surrogate"),
    "bins": replace(CART, threshold="readable", max_depth=4, max_bins=9),
    "c4.5": replace(ID3, threshold="readable", quinlan_thresholds=True, max_depth=3),
    "numbers": replace(CART, threshold="readable", max_depth=4, criterion="variance"),
}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 400
    made = pd.DataFrame(
        {
            "flag": rng.integers(0, 2, n),
            "count": rng.integers(0, 60, n).astype(float),
            "share": rng.random(n).round(3),
            "nearly": rng.integers(0, 9, n).astype(float),
            "size": np.exp(3 * rng.normal(size=n)),
        }
    )
    made.loc[rng.random(n) < 0.1, "count"] = np.nan
    made["weight"] = rng.integers(1, 4, n)
    # Rows without weight are absent: the column has whole numbers all the same.
    made.loc[n - 1, "nearly"], made.loc[n - 1, "weight"] = 0.5, 0
    drawn = made["flag"] + (made["count"].fillna(9) > 20) + (made["nearly"] > 4)
    made["y"] = drawn + 2.0 * (made["share"] > 0.4) + (rng.random(n) < 0.2)
    return made


def sources(rows: pd.DataFrame, folder):
    cut = len(rows) // 3
    rows.iloc[:cut].to_parquet(folder / "1.parquet")
    rows.iloc[cut:].to_parquet(folder / "2.parquet", row_group_size=50)
    yield ChunkedTable(folder, most_rows=30)
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("rows", rows)
    connection.execute("CREATE TABLE stored AS SELECT * FROM rows")
    yield SqlTable(connection, "stored")
    connection.close()


@pytest.mark.parametrize("name", first_fast(reversed(READABLE), n_fast=3))
def test_same_bytes_in_every_engine(name, tmp_path, monkeypatch):
    rows, recipe = table(), READABLE[name]
    if not recipe.is_regression:
        rows["y"] = rows["y"].astype(int).astype(str)
    given = {"recipe": recipe, "sample_weight": "weight"}
    expected = fit_tree(rows, "y", **given)
    kinds = [column.number_kind for column in expected.schema.columns]
    assert kinds == ["binary", "whole", "any", "whole", "any"]
    for source in sources(rows, tmp_path):
        found = fit_tree(source, "y", **given)
        assert found.to_bytes() == expected.to_bytes(), source
    monkeypatch.setenv("BRANCHWISE_KERNEL", "reference")
    assert fit_tree(rows, "y", **given).to_bytes() == expected.to_bytes()
    check_readable(expected)


def check_readable(model) -> None:
    tree = model.tree
    for node in np.flatnonzero(~np.isnan(tree.threshold)).tolist():
        column = model.schema.columns[int(tree.column[node])]
        threshold = float(tree.threshold[node])
        if column.number_kind == "binary":
            assert threshold == 0
        elif column.number_kind == "whole":
            assert threshold == int(threshold)
        else:
            assert len(repr(threshold)) <= 7, threshold


def test_sketched_columns_know_their_numbers(tmp_path):
    rows = pd.DataFrame({"x": np.arange(3000.0), "z": np.arange(3000) / 7})
    rows["y"] = np.where((rows["x"] > 1234) & (rows["z"] < 400), "a", "b")
    rows.to_parquet(tmp_path / "rows.parquet")
    recipe = replace(CART, threshold="readable")
    model = fit_tree(str(tmp_path), "y", recipe=recipe, engine="chunked", max_exact=100)
    kinds = [(c.sketched, c.number_kind) for c in model.schema.columns]
    assert kinds == [(True, "whole"), (True, "any")]
    check_readable(model)


def test_other_thresholds_leave_model_files_as_they_were():
    rows = table()
    for threshold in ("midpoint", "value"):
        model = fit_tree(rows, "y", Recipe(threshold=threshold, criterion="variance"))
        assert b"number_kind" not in model.to_bytes()


def test_model_files_keep_the_kind_of_numbers(tmp_path):
    rows = table()
    model = fit_tree(rows, "y", READABLE["numbers"])
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.schema == model.schema
    assert again.recipe.threshold == "readable"
    assert again.to_bytes() == model.to_bytes()
    content = model.to_bytes()
    with pytest.raises(ModelFileError, match="number_kind"):
        from_bytes(content.replace(b'"binary"', b'"bins"'))
    wrong = b'"kind": "categorical", "categories": ["a"]'
    with pytest.raises(ModelFileError, match="not numeric"):
        from_bytes(content.replace(b'"kind": "numeric", "categories": []', wrong, 1))
