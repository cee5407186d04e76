"""Dates are the same in every engine, of any unit, with and without a time zone."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from branchwise import DataError, fit_tree
from branchwise.engines.chunked import ChunkedTable
from branchwise.engines.sql import SqlTable
from branchwise.files.dataset import StreamedTable
from branchwise.predict import predict_rows
from branchwise.recipe import CART
from sql_sources import in_duckdb

UNITS = {"day": 86_400, "minute": 420, "second": 13, "microsecond": 1.000_001}
EXACT = replace(CART, missing="surrogate", max_depth=2)
SHALLOW = replace(CART, max_depth=2)


def table(unit, zoned):
    rng = np.random.default_rng(7)
    start = dt.datetime(2023, 1, 1, tzinfo=dt.UTC if zoned else None)
    steps = rng.integers(0, 200, 80).tolist()
    times = [start + dt.timedelta(seconds=step * UNITS[unit]) for step in steps]
    times = [None if at % 9 == 0 else time for at, time in enumerate(times)]
    days = [dt.date(2020, 1, 1) + dt.timedelta(step) for step in steps]
    y = ["b" if step > 90 else "a" for step in rng.permutation(steps).tolist()]
    return pa.table({"time": times, "day": days, "y": y})


FAST = {("minute", False), ("day", True)}
CASES = [
    pytest.param(unit, zoned, marks=[] if (unit, zoned) in FAST else [pytest.mark.slow])
    for unit in UNITS
    for zoned in (False, True)
]


@pytest.mark.parametrize(("unit", "zoned"), CASES)
def test_engines_agree(unit, zoned, tmp_path):
    pytest.importorskip("duckdb")
    rows = table(unit, zoned)
    path = tmp_path / "t.parquet"
    parquet.write_table(rows, path)
    chunks = StreamedTable((str(path),), chunk_rows=7)
    database = in_duckdb({n: rows[n] for n in rows.column_names}, tmp_path / "t.duckdb")
    model = fit_tree(rows, "y", EXACT)
    assert fit_tree(ChunkedTable(chunks), "y", EXACT).to_bytes() == model.to_bytes()
    found = fit_tree(SqlTable(database, "t"), "y", EXACT)
    assert found.to_bytes() == model.to_bytes()
    predicted = [row[0] for row in predict_rows(model, SqlTable(database, "t"))]
    assert sorted(predicted) == sorted(model.predict(rows).tolist())
    sketched = fit_tree(ChunkedTable(chunks), "y", SHALLOW, max_exact=20)
    again = fit_tree(SqlTable(database, "t"), "y", SHALLOW, max_exact=20)
    assert again.to_bytes() == sketched.to_bytes()
    as_values = {"categorical_features": ["time"]}
    one = fit_tree(SqlTable(database, "t"), "y", SHALLOW, **as_values)
    assert one.to_bytes() == fit_tree(rows, "y", SHALLOW, **as_values).to_bytes()


@pytest.mark.slow
def test_dask_agrees():
    dd = pytest.importorskip("dask.dataframe")
    for unit in UNITS:
        frame = table(unit, unit == "minute").to_pandas()
        frame["day"] = pd.to_datetime(frame["day"])
        model = fit_tree(frame, "y", EXACT)
        parts = dd.from_pandas(frame, npartitions=3)
        assert fit_tree(parts, "y", EXACT).to_bytes() == model.to_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("zoned", [False, True])
@pytest.mark.parametrize("unit", UNITS)
def test_postgresql_agrees(unit, zoned, postgresql):
    import psycopg

    rows = table(unit, zoned)
    kind = "timestamptz" if zoned else "timestamp"
    with psycopg.connect(postgresql) as connection:
        connection.execute("DROP TABLE IF EXISTS dated")
        connection.execute(f"CREATE TABLE dated (time {kind}, day date, y text)")
        connection.cursor().executemany(
            "INSERT INTO dated VALUES (%s, %s, %s)",
            [tuple(row.values()) for row in rows.to_pylist()],
        )
    model = fit_tree(rows, "y", EXACT)
    found = fit_tree(SqlTable(postgresql, "dated"), "y", EXACT)
    assert found.to_bytes() == model.to_bytes()
    source = SqlTable(postgresql, "dated")
    predicted = [row[0] for row in predict_rows(model, source, verify=False)]
    assert sorted(predicted) == sorted(model.predict(rows).tolist())


def test_chunks_that_differ(tmp_path):
    day, time = dt.date(2024, 1, 1), dt.datetime(2024, 1, 2, 7, 30)
    zoned = time.replace(tzinfo=dt.UTC)
    for name, cells in {"day": [day], "time": [time], "zoned": [zoned]}.items():
        parquet.write_table(pa.table({"t": cells, "y": ["a"]}), tmp_path / name)
    plain = tmp_path / "number"
    parquet.write_table(pa.table({"t": [7], "y": ["b"]}), plain)

    def fitted(*names):
        paths = tuple(str(tmp_path / name) for name in names)
        return fit_tree(ChunkedTable(StreamedTable(paths)), "y", CART)

    assert fitted("day", "time").to_bytes() == fitted("time", "day").to_bytes()
    assert fitted("day", "time").schema.columns[0].date.unit == "minute"
    with pytest.raises(DataError) as caught:
        fitted("time", "zoned")
    assert "'t' has times with a time zone in some chunks of the table and" in str(
        caught.value
    )
    with pytest.raises(DataError, match="'t' holds dates in some chunks of the table"):
        fitted("day", "number")


def test_targets_and_weights_are_no_dates(tmp_path):
    pytest.importorskip("duckdb")
    rows = table("day", False)
    database = in_duckdb({n: rows[n] for n in rows.column_names}, tmp_path / "t.duckdb")
    for source in (rows, SqlTable(database, "t")):
        with pytest.raises(DataError, match="y holds dates, which can be attributes"):
            fit_tree(source, "day", CART)
