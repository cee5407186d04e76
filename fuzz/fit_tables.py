"""The same table in many kinds, and held by many engines: the same model."""

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
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from branchwise import EncodedTable, read_table
from branchwise.engines.chunked import ChunkedTable
from branchwise.engines.sql import SqlTable
from branchwise.table.streamed import StreamedTable
from fit_cases import Case, is_missing
from fit_trials import (
    TARGET,
    WEIGHT,
    fitted,
    fitted_by_name,
    named_table,
    same_model,
    same_tree,
)

Cells = list[Any]


def family(cells: Cells) -> str:
    """Return what a column holds: text, boolean, whole, number or nothing."""
    kinds = {type(cell) for cell in cells if not is_missing(cell)}
    names = {str: "text", bool: "boolean", int: "whole", float: "number"}
    if not kinds:
        return "nothing"
    if kinds == {int, float}:
        return "number"
    return names[kinds.pop()] if len(kinds) == 1 else "mixed"


def with_none(cells: Cells) -> Cells:
    """Return the cells with None for what is missing; numbers of one type."""
    number = float if family(cells) == "number" else lambda cell: cell
    return [None if is_missing(cell) else number(cell) for cell in cells]


# ----------------------------------------------------------------------------- kinds


def arrow_table(columns: dict[str, Cells], **changed: Any) -> pa.Table:
    """Return an Arrow table, its text of another type if one is given."""
    types = {
        "text": changed.get("text", pa.string()),
        "boolean": pa.bool_(),
        "whole": pa.int64(),
        "number": pa.float64(),
        "nothing": pa.float64(),
    }
    arrays = {
        name: pa.array(with_none(cells), types[family(cells)])
        for name, cells in columns.items()
    }
    return pa.table(arrays)


def _dictionaries(columns: dict[str, Cells]) -> pa.Table:
    table = arrow_table(columns)
    arrays = [
        c.dictionary_encode() if pa.types.is_string(c.type) else c
        for c in table.columns
    ]
    return pa.table(dict(zip(table.column_names, arrays, strict=True)))


def _chunks(columns: dict[str, Cells]) -> pa.Table:
    table = arrow_table(columns)
    third = max(1, table.num_rows // 3)
    parts = [table.slice(i, third) for i in range(0, table.num_rows, third)]
    return pa.concat_tables(parts)


def _pandas(columns: dict[str, Cells], types: dict[str, Any]) -> pd.DataFrame:
    made = {}
    for name, cells in columns.items():
        kind = types.get(family(cells), object)
        made[name] = pd.Series(with_none(cells), dtype=kind)
    return pd.DataFrame(made)


def _polars(columns: dict[str, Cells], text: Callable[[Cells], Any]) -> pl.DataFrame:
    types = {"boolean": pl.Boolean, "whole": pl.Int64, "number": pl.Float64}
    made = []
    for name, cells in columns.items():
        kind = family(cells)
        dtype = text(cells) if kind == "text" else types.get(kind, pl.Float64)
        made.append(pl.Series(name, with_none(cells), dtype=dtype))
    return pl.DataFrame(made)


def _distinct(cells: Cells) -> list[str]:
    return sorted({cell for cell in cells if isinstance(cell, str)})


def _category(columns: dict[str, Cells], ordered: bool = False) -> pd.DataFrame:
    frame = _pandas(columns, {"whole": "Int64", "number": "float64"})
    for name, cells in columns.items():
        if family(cells) == "text":
            frame[name] = pd.Categorical(
                with_none(cells), _distinct(cells), ordered=ordered
            )
    return frame


KINDS: dict[str, Callable[[dict[str, Cells]], Any]] = {
    "list of dicts": lambda c: [
        dict(zip(c, row, strict=True)) for row in zip(*c.values(), strict=True)
    ],
    "dict of arrays": lambda c: {
        name: np.array(cells, dtype=object) for name, cells in c.items()
    },
    "pandas, object": lambda c: _pandas(c, {}),
    "pandas, plain": pd.DataFrame,
    "pandas, string": lambda c: _pandas(c, {"text": "string", "number": "float64"}),
    "pandas, nullable": lambda c: _pandas(
        c, {"text": "str", "whole": "Int64", "number": "Float64", "boolean": "boolean"}
    ),
    "pandas, category": _category,
    "pandas, pyarrow": lambda c: arrow_table(c).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda c: _polars(c, lambda _: pl.String),
    "polars, Categorical": lambda c: _polars(c, lambda _: pl.Categorical),
    "arrow": arrow_table,
    "arrow, dictionaries": _dictionaries,
    "arrow, chunks": _chunks,
    "arrow, large text": lambda c: arrow_table(c, text=pa.large_string()),
    "encoded": EncodedTable,
}

#: Kinds of tables whose columns have no type.
UNTYPED = ("list of dicts", "dict of arrays", "encoded")


def check_kinds(case: Case) -> bool:
    """Every kind of table gives the same model."""
    if any(family(cells) == "mixed" for cells in case.columns.values()):
        return False
    expected = fitted(case)
    untyped = any(family(cells) == "nothing" for cells in case.columns.values())
    for name, make in KINDS.items():
        if untyped and name not in UNTYPED:
            continue  # a column without values is what its type says
        same_model(expected, fitted(case, make(case.columns)), name)
    if untyped:
        return True
    ordered = fitted(case, _category(case.columns, ordered=True))
    enum = _polars(case.columns, lambda cells: pl.Enum(_distinct(cells)))
    same_model(ordered, fitted(case, enum), "polars, Enum against ordered categories")
    if "categories" in case.parameters:
        return True
    rows = list(zip(*case.columns.values(), strict=True))
    array = np.empty((case.n_rows, len(case.columns)), dtype=object)
    for i, row in enumerate(rows):
        array[i] = row
    same_tree(expected, fitted(case, array), "an array of objects")
    return True


# --------------------------------------------------------------------------- engines


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
        part_rows = rng.choice([max(1, case.n_rows // 9), 7, 500])
        chunked = ChunkedTable(
            replace(streamed, part_rows=part_rows), most_rows=rng.choice([0, 5])
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
    if not _for_engines(case) or case.n_rows > 300:
        return False
    table = arrow_table(named_table(case))
    named = len({name.lower() for name in table.column_names}) == table.num_columns
    if not named:
        return False  # databases do not tell capitals from other letters
    makers = [_in_duckdb, *([_in_sqlite] if _typed_by_cells(table) else [])]
    expected = fitted_by_name(case, table)
    rng = case.random("databases")
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


def check_dask(case: Case) -> bool:
    """Dask's partitions give the model of the table in memory."""
    if not _for_engines(case) or case.n_rows > 300:
        return False
    import dask.dataframe as dd  # noqa: PLC0415

    _dask_client()
    types = {
        "text": "string",
        "whole": "Int64",
        "number": "float64",
        "boolean": "boolean",
    }
    frame = _pandas(named_table(case), types | {"nothing": "float64"})
    expected = fitted_by_name(case, frame)
    for partitions in (1, 3):
        source = dd.from_pandas(frame, npartitions=partitions)
        same_model(expected, fitted_by_name(case, source), f"Dask, {partitions} parts")
    return True


@cache
def _dask_client() -> Any:
    import distributed  # noqa: PLC0415

    return distributed.Client(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    )


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
    return text.isascii() and text[:1].isalpha() and text.replace(" ", "").isalnum()


TABLES: dict[str, Callable[[Case], bool]] = {
    "kinds": check_kinds,
    "files": check_files,
    "databases": check_databases,
}
SLOW: dict[str, Callable[[Case], bool]] = {"dask": check_dask}
