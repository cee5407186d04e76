"""Every engine counts the cells that training did not have as the memory does."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from branchwise import DataError, ParameterError, RandomForestClassifier, fit_tree
from branchwise.engines.chunked import ChunkedTable
from branchwise.engines.sql import SqlTable
from branchwise.files.dataset import StreamedTable
from branchwise.recipe import CART
from spark_sessions import local_spark
from sql_sources import (
    in_duckdb,
    in_postgresql,
    in_sqlite,
)

#: Splits on every column, so that each is counted.
DEEP = replace(CART, min_samples_leaf=1)


def columns_of(rng, n_rows, shift=0, further=()):
    """Return columns of all kinds; ``shift`` and ``further`` are new in some."""

    def with_gaps(cells, share=0.15):
        return [None if rng.random() < share else cell for cell in cells]

    words = ["it's", 'say "hi"', "a", "100%", *further]
    times = rng.integers(-300 * shift, 5000 + 300 * shift, n_rows).tolist()
    start = dt.datetime(2023, 1, 1, 7, 30)
    return {
        'the "word"; --': with_gaps(rng.choice(words, n_rows).tolist()),
        "number": with_gaps((rng.normal(size=n_rows) * (1 + shift)).tolist()),
        "truth": with_gaps((rng.random(n_rows) < 0.5).tolist()),
        "code": with_gaps(rng.integers(0, 4 + shift, n_rows).tolist()),
        "time": with_gaps([start + dt.timedelta(minutes=t) for t in times]),
        "day": with_gaps([start.date() + dt.timedelta(t // 100) for t in times]),
    }


def fitted(rng, names=None):
    columns = columns_of(rng, 120)
    table = pa.table({n: c for n, c in columns.items() if names is None or n in names})
    y = rng.choice(["p", "q"], 120).tolist()
    as_values = [n for n in ("code",) if n in table.column_names]
    return fit_tree(table, y, DEEP, categorical_features=as_values or "from_dtype")


def new_rows(rng, n_rows=200):
    columns = columns_of(rng, n_rows, shift=3, further=("new", "A"))
    columns["time"] = [
        t if t is None or at % 2 else t + dt.timedelta(seconds=17, microseconds=5)
        for at, t in enumerate(columns["time"])
    ]
    return columns


@pytest.mark.parametrize("seed", range(2))
def test_databases_and_files_count_as_the_memory(seed, tmp_path):
    rng = np.random.default_rng(seed)
    model = fitted(rng)
    assert len(model.used_columns) == 6
    columns = new_rows(rng)
    table = pa.table(columns)
    expected = model.check_table(table)
    assert min(expected["code"].unseen, expected["time"].below) > 0
    assert expected["day"].above > 0
    path = tmp_path / "t.parquet"
    parquet.write_table(table, path)
    chunks = ChunkedTable(StreamedTable((str(path),), chunk_rows=7))
    database = SqlTable(in_duckdb(columns, tmp_path / "t.duckdb"), "t")
    for source in (path, chunks, database):
        found = model.check_table(source)
        assert found.counts == expected.counts
        assert found.notes() == expected.notes()
    plain = fitted(rng, ['the "word"; --', "number", "code"])
    sqlite = SqlTable(in_sqlite(as_texts(columns), tmp_path / "t.sqlite"), "t")
    assert plain.check_table(sqlite).counts == plain.check_table(table).counts


def as_texts(columns):
    dates = ("time", "day")
    return {
        name: [str(c) if name in dates and c is not None else c for c in cells]
        for name, cells in columns.items()
    }


@pytest.mark.slow
def test_postgresql_counts_as_the_memory(postgresql):
    rng = np.random.default_rng(5)
    columns = {n: c for n, c in new_rows(rng).items() if n not in ("time", "day")}
    model = fitted(rng, list(columns))
    found = model.check_table(SqlTable(in_postgresql(columns, postgresql), "t"))
    assert found.counts == model.check_table(pa.table(columns)).counts


def test_dask_counts_as_the_memory():
    dd = pytest.importorskip("dask.dataframe")
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(6)
    # Dask makes text of truths beside missing cells, and days of pandas are objects.
    columns = {n: c for n, c in new_rows(rng).items() if n not in ("truth", "day")}
    model, frame = fitted(rng, list(columns)), pa.table(columns).to_pandas()
    parts = dd.from_pandas(frame, npartitions=3)
    assert model.check_table(parts).counts == model.check_table(frame).counts
    X = rng.normal(size=(50, 2))
    of_array = fit_tree(X, rng.choice(["p", "q"], 50), DEEP)
    new = da.from_array(X * 2, chunks=(20, 1))
    assert of_array.check_table(new).counts == of_array.check_table(X * 2).counts


@pytest.mark.slow
def test_spark_counts_as_the_memory():
    rng = np.random.default_rng(7)
    model, columns = fitted(rng), new_rows(rng)
    expected = model.check_table(pa.table(columns)).counts
    with local_spark() as spark:
        rows = list(zip(*columns.values(), strict=True))
        frame = spark.createDataFrame(rows, list(columns)).repartition(3)
        frame = frame.withColumn("time", frame["time"].cast("timestamp_ntz"))
        assert model.check_table(frame).counts == expected
        assert model.check_table(frame.limit(0)).counts.n_rows == 0
        with pytest.raises(DataError, match="The table lacks 'number'"):
            model.check_table(frame.drop("number"))


def test_ensembles_are_checked_in_databases(tmp_path):
    rng = np.random.default_rng(8)
    columns = {"number": rng.normal(size=60).tolist(), "w": ["a", "b"] * 30}
    forest = RandomForestClassifier(n_estimators=3)
    model = forest.fit(pa.table(columns), rng.choice(["p", "q"], 60)).model_
    place = in_sqlite({**columns, "w": ["a", "c"] * 30}, tmp_path / "t.sqlite")
    assert model.check_table(SqlTable(place, "t"))["w"].unseen == 30


def test_tables_that_cannot_be_checked(tmp_path):
    rng = np.random.default_rng(9)
    model = fitted(rng, ["number", "code"])
    place = in_sqlite({"number": ["x"], "code": [1]}, tmp_path / "t.sqlite")
    with pytest.raises(DataError, match="Column 'number' was learnt as numbers, and"):
        model.check_table(SqlTable(place, "t"))
    with pytest.raises(DataError, match="no column 'code'"):
        model.check_table(SqlTable(place, query="SELECT number FROM t"))
    with pytest.raises(ParameterError, match="must be a SqlTable"):
        model.check_table(SqlTable(place, "t").open())
