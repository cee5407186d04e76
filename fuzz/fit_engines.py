"""The same rows held by files, databases and Dask: the same model and predictions."""

from __future__ import annotations

import math
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import branchwise
from branchwise import BranchwiseError, fit_tree, read_table
from branchwise.engines.chunked import ChunkedTable
from branchwise.engines.sql.source import SqlTable
from branchwise.files.dataset import StreamedTable
from branchwise.predict import predict_rows
from fit_cases import Case
from fit_laws import known_rows
from fit_tables import arrow_table, family, pandas_frame
from fit_trials import (
    TARGET,
    WEIGHT,
    Outcome,
    Refusal,
    fitted_by_name,
    named_table,
    same_bits,
    same_model,
)

#: The column that tells rows apart.
ROW = "the row"


def check_files(case: Case) -> bool:
    """Files, read whole or in parts, give the model of the table in memory."""
    if not _for_engines(case):
        return False
    table = arrow_table(named_table(case))
    expected = fitted_by_name(case, table)
    rng = case.random("files")
    with tempfile.TemporaryDirectory() as folder:
        whole, streamed = _files(case, table, folder)
        same_model(expected, fitted_by_name(case, whole), "a file, read whole")
        # Every level of a tree reads all chunks: let there be 60 at most.
        fewest = max(7, case.n_rows // 60)
        chunk_rows = rng.choice([max(1, case.n_rows // 9), fewest, 500])
        chunked = ChunkedTable(
            replace(streamed, chunk_rows=chunk_rows), most_rows=rng.choice([0, 5])
        )
        same_model(expected, fitted_by_name(case, chunked), "files in parts")
    return True


def _files(case: Case, table: pa.Table, folder: str) -> tuple[Any, StreamedTable]:
    """Write Parquet or CSV files; return the table read, and one to be streamed."""
    rng = case.random("which files")
    if rng.random() < 0.5 and _readable_as_text(table):
        path = f"{folder}/table.csv"
        pa.csv.write_csv(table, path)
        return read_table(path), StreamedTable((path,))
    cut = rng.randint(0, case.n_rows)
    paths = tuple(f"{folder}/{i}.parquet" for i in (1, 2, "whole"))
    pa.parquet.write_table(table.slice(0, cut), paths[0])
    pa.parquet.write_table(table.slice(cut), paths[1], row_group_size=7)
    pa.parquet.write_table(table, paths[2])
    return read_table(paths[2], missing=()), StreamedTable(paths[:2], missing=())


def check_databases(case: Case) -> bool:
    """SQLite and DuckDB count what memory counts."""
    # Dozens of queries make this the slowest check: every second case goes through it.
    rng = case.random("databases")
    if rng.random() < 0.5 or not _for_engines(case) or case.n_rows > 300:
        return False
    table = arrow_table(named_table(case))
    named = len({name.lower() for name in table.column_names}) == table.num_columns
    if not named:
        return False  # databases do not tell capitals from other letters
    makers = [_in_duckdb, *([_in_sqlite] if _typed_by_cells(table) else [])]
    expected = fitted_by_name(case, table)
    make = rng.choice(makers)
    with tempfile.TemporaryDirectory() as folder:
        path = make(table, folder)
        temporary = rng.random() < 0.5 and make is _in_duckdb
        sql = SqlTable(path, "stored", missing=(), temporary_tables=temporary)
        same_model(expected, fitted_by_name(case, sql), Path(path).suffix)
    return True


def _typed_by_cells(table: pa.Table) -> bool:
    """Whether cells tell what the columns are; those of SQLite have no types."""
    for column in table.columns:
        if column.null_count == len(column) or pa.types.is_boolean(column.type):
            return False
        if pa.types.is_floating(column.type):
            known = column.drop_null().to_numpy()
            if (known == np.rint(known)).all() and (np.abs(known) > 2**53).any():
                return False  # taken for whole numbers that float64 cannot hold
    return True


def _in_duckdb(table: pa.Table, folder: str) -> str:
    path = str(Path(folder) / "t.duckdb")
    with closing(duckdb.connect(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE stored AS FROM given")
    return path


def _in_sqlite(table: pa.Table, folder: str) -> str:
    path = str(Path(folder) / "t.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        names = ", ".join('"' + n.replace('"', '""') + '"' for n in table.column_names)
        connection.execute(f"CREATE TABLE stored ({names})")
        marks = ", ".join("?" * table.num_columns)
        rows = zip(*(c.to_pylist() for c in table.columns), strict=True)
        connection.executemany(f"INSERT INTO stored VALUES ({marks})", rows)
        connection.commit()
    return path


def _for_engines(case: Case) -> bool:
    """Whether every engine takes the case: what needs rows in memory is refused."""
    families = [family(cells) for cells in named_table(case).values()]
    return (
        "mixed" not in families
        and all(name.strip() for name in case.columns)  # files need names that show
        and "validation_fraction" not in case.parameters
        and not isinstance(case.parameters.get("ccp_alpha"), str)
    )


def _readable_as_text(table: pa.Table) -> bool:
    """Whether the cells of a table are read from text as what they are."""
    for column in table.columns:
        cells = [cell for cell in column.to_pylist() if cell is not None]
        if not cells or isinstance(cells[0], bool):
            return False
        if isinstance(cells[0], str) and not all(_stays_text(cell) for cell in cells):
            return False
        if isinstance(cells[0], float) and not all(map(math.isfinite, cells)):
            return False
    names = [n for n in table.column_names if n not in (TARGET, WEIGHT)]
    return all(_stays_text(name) for name in names)


def _stays_text(text: str) -> bool:
    plain = text.isascii() and text[:1].isalpha() and text.replace(" ", "").isalnum()
    return plain and text.lower() not in ("inf", "infinity", "nan")


def check_sketches(case: Case) -> bool:
    """Numbers beyond max_exact are cut at the same places, whoever holds the rows.

    It is the slowest check, so that it takes one case in three.
    """
    if not _for_engines(case) or not 5 < case.n_rows <= 300 or case.seed % 3:
        return False
    if not any(family(cells) in ("whole", "number") for cells in case.columns.values()):
        return False
    table = arrow_table(named_table(case))
    rng = case.random("sketches")
    max_exact = rng.choice([2, 3, 8])
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.parquet"
        pa.parquet.write_table(table, path)
        streamed = StreamedTable((path,), missing=())
        expected = _sketched(case, ChunkedTable(streamed), max_exact)
        named = len({name.lower() for name in table.column_names}) == table.num_columns
        if rng.random() < 0.5 or not named:
            parts = replace(streamed, chunk_rows=rng.choice([2, 7]))
            got = _sketched(case, ChunkedTable(parts, most_rows=5), max_exact)
            same_model(expected, got, f"max_exact={max_exact}, files in parts")
            return True
        sql = SqlTable(_in_duckdb(table, folder), "stored", missing=())
        got = _sketched(case, sql, max_exact)
        same_model(expected, got, f"max_exact={max_exact}, DuckDB")
    return True


def _sketched(case: Case, source: object, max_exact: int) -> Outcome:
    """Fit with few numbers of a column kept apart."""
    fields = ("class_weight", "priors", "categorical_features", "categories")
    given = {name: case.parameters[name] for name in fields if name in case.parameters}
    try:
        estimator = getattr(branchwise, case.estimator)(**case.parameters)
        return fit_tree(
            source,
            TARGET,
            estimator.recipe,
            sample_weight=None if case.weights is None else WEIGHT,
            max_exact=max_exact,
            **given,
        )
    except BranchwiseError as error:
        return Refusal(error)


def check_predict_elsewhere(case: Case) -> bool:
    """Files and DuckDB get the predictions that tables in memory get."""
    if not _for_engines(case) or case.n_rows > 300:
        return False
    model = fitted_by_name(case, arrow_table(named_table(case)))
    if isinstance(model, Refusal):
        return False
    rows = known_rows(case)
    if any(family(c) != family(case.columns[name]) for name, c in rows.items()):
        return False
    table, expected = arrow_table(rows), model.predict(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.parquet"
        pa.parquet.write_table(table, path)
        streamed = StreamedTable((path,), missing=(), chunk_rows=5)
        batches = list(predict_rows(model, streamed))
        got = np.concatenate([batch["prediction"] for batch in batches])
        same_bits(expected.tolist(), got.tolist(), "predictions for files")
        if len({name.lower() for name in table.column_names}) < table.num_columns:
            return True
        numbered = table.append_column(ROW, pa.array(range(table.num_rows)))
        sql = SqlTable(_in_duckdb(numbered, folder), "stored", missing=())
        try:
            got = sorted(predict_rows(model, sql, keep=[ROW], verify=False))
        except branchwise.ExportError:
            return True  # what SQL cannot say is refused
        same_bits(expected.tolist(), [each[1] for each in got], "predictions of DuckDB")
    return True


def check_dask(case: Case) -> bool:
    """Dask's partitions give the model of the table in memory."""
    if not _for_engines(case) or case.n_rows > 300:
        return False
    import dask.dataframe as dd

    _dask_client()
    types = {
        "text": "string",
        "whole": "Int64",
        "number": "float64",
        "boolean": "boolean",
    }
    frame = pandas_frame(named_table(case), types | {"nothing": "float64"})
    expected = fitted_by_name(case, frame)
    for partitions in (1, 3):
        source = dd.from_pandas(frame, npartitions=partitions)
        same_model(expected, fitted_by_name(case, source), f"Dask, {partitions} parts")
    return True


@cache
def _dask_client() -> Any:
    import distributed

    return distributed.Client(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    )


ENGINES: dict[str, Callable[[Case], bool]] = {
    "files": check_files,
    "databases": check_databases,
    "sketches": check_sketches,
    "predict_elsewhere": check_predict_elsewhere,
}
SLOW: dict[str, Callable[[Case], bool]] = {"dask": check_dask}
