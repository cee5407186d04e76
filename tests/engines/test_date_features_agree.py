"""What is derived from dates is the same in every engine."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from branchwise import (
    DataError,
    RandomForestClassifier,
    date_features,
    fit_tree,
    predict_rows,
)
from branchwise.engines.chunked import ChunkedTable
from branchwise.engines.sql import SqlTable
from branchwise.ensemble.fit import fit_ensemble
from branchwise.files.dataset import StreamedTable
from branchwise.recipe import CART
from spark_sessions import local_spark
from sql_sources import in_duckdb, in_sqlite

FEATURES = {
    "t": ["year", "quarter", "month", "day", "weekday", "hour", "minute"],
    "d": ["weekday", "age:2024-02-29", "age_years:2024-02-29"],
}
DEEP = replace(CART, max_depth=6)
pytestmark = pytest.mark.filterwarnings("ignore:The tree has")


def table(zoned=False, n=160):
    rng = np.random.default_rng(11)
    start = dt.datetime(2021, 1, 1, tzinfo=dt.UTC if zoned else None)
    minutes = rng.integers(0, 2_000_000, n).tolist()
    times = [start + dt.timedelta(minutes=m) for m in minutes]
    days = [dt.date(1990, 1, 1) + dt.timedelta(m // 150) for m in minutes]
    y = ["b" if t.hour < 9 or t.weekday() > 4 else "a" for t in times]
    y = [["a", "b"][at % 2] if at % 7 == 0 else label for at, label in enumerate(y)]
    cells = [None if at % 9 == 0 else t for at, t in enumerate(times)]
    return pa.table({"t": cells, "d": days, "x": rng.integers(0, 4, n), "y": y})


def expected(rows):
    """Return the model of the memory, from a table that has the columns."""
    return fit_tree(date_features(rows, FEATURES), "y", DEEP)


@pytest.mark.parametrize("zoned", [False, True])
def test_files_and_duckdb_agree(zoned, tmp_path):
    rows = table(zoned)
    model = expected(rows)
    assert {"t.weekday", "t.hour"} <= {
        model.schema.names[i] for i in model.used_columns
    }
    path = tmp_path / "t.parquet"
    parquet.write_table(rows, path)
    chunks = ChunkedTable(StreamedTable((str(path),), chunk_rows=23))
    database = in_duckdb({n: rows[n] for n in rows.column_names}, tmp_path / "t.duckdb")
    sql = SqlTable(database, "t")
    for source in (rows, chunks, sql):
        found = fit_tree(source, "y", DEEP, date_features=FEATURES)
        assert found.to_bytes() == model.to_bytes()
    predicted = sorted(row[0] for row in predict_rows(model, sql, verify=False))
    assert predicted == sorted(model.predict(rows).tolist())
    later = rows.set_column(
        1, "d", [[day.as_py() + dt.timedelta(4000) for day in rows["d"]]]
    )
    moved = in_duckdb({n: later[n] for n in rows.column_names}, tmp_path / "m.duckdb")
    deep = fit_tree(date_features(rows, FEATURES), "y", CART)
    counts = deep.check_table(SqlTable(moved, "t")).counts
    assert counts == deep.check_table(later).counts


def test_forests_agree(tmp_path):
    rows = table()
    path = tmp_path / "t.parquet"
    parquet.write_table(rows, path)
    whole = date_features(rows, FEATURES)
    forest = RandomForestClassifier(n_estimators=3)
    model = forest.fit(whole.drop_columns(["y"]), whole["y"]).model_
    found = fit_ensemble(str(path), "y", model.recipe, date_features=FEATURES)
    assert found.schema.columns == model.schema.columns


@pytest.mark.slow
def test_dask_agrees():
    dd = pytest.importorskip("dask.dataframe")
    frame = table().to_pandas()
    frame["d"] = frame["d"].astype("datetime64[s]")
    model = fit_tree(frame, "y", DEEP, date_features=FEATURES)
    parts = dd.from_pandas(frame, npartitions=3)
    found = fit_tree(parts, "y", DEEP, date_features=FEATURES)
    assert found.to_bytes() == model.to_bytes()
    predicted = predict_rows(model, parts).compute().tolist()
    assert predicted == model.predict(frame).tolist()


@pytest.mark.slow
def test_spark_agrees():
    rows = table()
    model = expected(rows)
    with local_spark() as spark:
        cells = [tuple(row.values()) for row in rows.to_pylist()]
        frame = spark.createDataFrame(cells, rows.column_names).repartition(3)
        frame = frame.withColumn("t", frame["t"].cast("timestamp_ntz"))
        found = fit_tree(frame, "y", DEEP, date_features=FEATURES)
        assert found.to_bytes() == model.to_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("zoned", [False, True])
def test_postgresql_agrees(zoned, postgresql):
    import psycopg

    rows = table(zoned)
    kind = "timestamptz" if zoned else "timestamp"
    with psycopg.connect(postgresql) as connection:
        connection.execute("DROP TABLE IF EXISTS derived")
        connection.execute(f"CREATE TABLE derived (t {kind}, d date, x bigint, y text)")
        connection.cursor().executemany(
            "INSERT INTO derived VALUES (%s, %s, %s, %s)",
            [tuple(row.values()) for row in rows.to_pylist()],
        )
    model, source = expected(rows), SqlTable(postgresql, "derived")
    found = fit_tree(source, "y", DEEP, date_features=FEATURES)
    assert found.to_bytes() == model.to_bytes()
    assert model.check_table(source).counts == model.check_table(rows).counts


def test_what_cannot_be_derived_is_told(tmp_path):
    rows = table()
    path = tmp_path / "t.parquet"
    parquet.write_table(rows, path)
    chunks = ChunkedTable(StreamedTable((str(path),), chunk_rows=50))
    texts = {"t": ["2024-01-02 03:04"] * 3, "y": ["a", "b", "a"]}
    sqlite = SqlTable(in_sqlite(texts, tmp_path / "t.sqlite"), "t")
    for source, features, message in (
        (rows, {"d": "hour"}, "Column 'd' holds dates without a time of day, so that"),
        (chunks, {"d": "minute"}, "Column 'd' holds dates without a time of day"),
        (
            chunks,
            {"x": "month"},
            "Column 'x' holds no dates, so that there is no month",
        ),
        (chunks, {"u": "month"}, "The table has no column 'u'"),
        (chunks, {"t": ["day", "day"]}, "has a column 't.day' already"),
        (sqlite, {"t": "month"}, "Column 't' of .* holds no dates but text"),
    ):
        with pytest.raises(DataError, match=message):
            fit_tree(source, "y", DEEP, date_features=features)
