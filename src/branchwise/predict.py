""":func:`predict_rows`: the one way to predict for tables of any size and place."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from branchwise.data.columns import Numbers
from branchwise.data.frames import open_table
from branchwise.engines.base import engine_of, model_of
from branchwise.engines.prediction import (
    Batch,
    FilePredictions,
    Keep,
    What,
    checked_what,
    kept_columns,
    predicted_columns,
    prediction_names,
)
from branchwise.engines.sql.model_cells import cell_of, check_table
from branchwise.engines.sql.source import SqlRows, SqlTable
from branchwise.errors import ParameterError, quoted
from branchwise.export.base import Exportable
from branchwise.export.plan import make_plan
from branchwise.export.sql_cases import Names
from branchwise.export.verification import exported, write
from branchwise.files.dataset import StreamedTable
from branchwise.files.options import ENDINGS
from branchwise.files.raw_bytes import atomic_write
from branchwise.files.write_table import FileFormat, format_of_name, write_columns


def predict_rows(
    model: Any,
    source: object,
    what: What | Sequence[What] = "classes",
    *,
    keep: Keep = False,
    output: str | os.PathLike[str] | None = None,
    escape_formulas: bool = False,
    verify: bool = True,
    as_query: bool = False,
) -> Any:
    """Predict for all rows of a table, in memory or where they are.

    Parameters
    ----------
    model : Model or Ensemble
        What :func:`~branchwise.fit_tree` or :func:`~branchwise.load` returns, or an
        estimator that is fitted; an ensemble for tables in memory and files.
    source : table, files, SqlTable, DataFrame of Dask or Spark
        The rows, as :func:`~branchwise.fit_tree` takes them. Columns are found by name,
        and read as the model has learnt them.
    what : {"classes", "probabilities", "leaves"} or several of them
        "classes" is the column ``prediction``, the class or the number; "probabilities"
        the columns ``probability of ...``, one for each class; "leaves" the column
        ``leaf``, the number of the node (not in databases). Of Dask one at a time.
    keep : bool or sequence of str
        Whether the columns of the table, or which of them, come before these; not for
        Dask, where predictions have the index of the table.
    output : str, path or None
        Tables in memory and files: the file to write, whole or not at all; its name
        ends with .csv, .tsv, .json, .parquet, .arrow or .feather. SqlTable: the table
        to create (``schema.table`` for another schema), by a connection of the caller,
        which is not committed where it is in a transaction.
    escape_formulas : bool
        Whether texts that a spreadsheet would treat as a formula (they begin with =,
        +, -, @, a tab or a carriage return) get an apostrophe in front, in a CSV or TSV
        file; numbers stay numbers.
    verify : bool
        SqlTable: whether the query is verified against the model first, in a local
        database.
    as_query : bool
        SqlTable: whether to return the query, and not to run it.

    Returns
    -------
    dict, iterator, DataFrame, str, int or None
        A table in memory: a dict of arrays by name. Files: an iterator of such dicts,
        each for a chunk of rows. With an output file the number of rows written.
        SqlTable: an iterator of tuples, in the order of the database, which is not
        defined; the query; or None with an output. Dask and Spark: a lazy table.
    """
    model = model_of(model)
    wanted = checked_what(model, what)
    engine = engine_of(source)
    if engine not in ("memory", "chunked") and not hasattr(model, "tree"):
        raise ParameterError(
            "Ensembles predict for tables in memory and for files. Got a source of the "
            f"engine {engine!r}; predict with one of the trees, or export the ensemble."
        )
    _check_effects(engine, keep, output, escape_formulas, verify, as_query)
    if engine == "sql":
        return _in_database(model, source, wanted, keep, output, verify, as_query)
    if engine == "spark":
        from branchwise.engines.spark.source import (  # noqa: PLC0415
            spark_predictions,
        )

        return spark_predictions(model, source, wanted, keep)
    if engine == "dask":
        from branchwise.engines.dask.source import dask_predictions  # noqa: PLC0415

        return dask_predictions(model, source, wanted)
    if engine == "memory":
        return _in_memory(model, source, wanted, keep, output, escape_formulas)
    return _in_files(model, source, wanted, keep, output, escape_formulas)


def _check_effects(
    engine: str,
    keep: Keep,
    output: object,
    escape_formulas: bool,
    verify: bool,
    as_query: bool,
) -> None:
    """Reject parameters that have no effect on the kind of source."""
    if engine != "sql":
        for name, given in (("verify", not verify), ("as_query", as_query)):
            if given:
                raise ParameterError(
                    f"{name} has no effect unless source is a SqlTable. Leave it out."
                )
    elif as_query and output is not None:
        raise ParameterError(
            "as_query returns the query, and output would run it. Give one of them."
        )
    if engine in ("dask", "spark") and output is not None:
        raise ParameterError(
            f"output has no effect on a {engine.capitalize()} table. Write the lazy "
            "table that is returned."
        )
    if engine == "dask" and (keep if isinstance(keep, bool) else True):
        raise ParameterError(
            "keep has no effect on a Dask table: predictions have its index and "
            "partitions. Join them."
        )
    if escape_formulas and (output is None or engine == "sql"):
        raise ParameterError(
            "escape_formulas has no effect without an output, which it is for. "
            "Leave it out, or name a CSV or TSV file."
        )


def _in_memory(
    model: Any,
    table: object,
    wanted: Sequence[What],
    keep: Keep,
    output: str | os.PathLike[str] | None,
    escape_formulas: bool,
) -> Batch | int:
    """Predict for a table in memory."""
    frame = open_table(table)
    names = [n for what in wanted for n in prediction_names(model.schema, what)]
    kept = kept_columns(keep, frame.names, "The table", names)
    columns: Batch = {}
    for name in kept:
        raw = frame.column(frame.names.index(name))
        if isinstance(raw, Numbers):
            columns[name] = raw.values
        else:
            columns[name] = np.array([*raw.values, None], dtype=object)[raw.codes]
    columns |= predicted_columns(model, frame, wanted)
    if output is None:
        return columns
    file_format = _format_of(output)
    cells = {name: column.tolist() for name, column in columns.items()}
    with atomic_write(output) as file:
        write_columns(file, cells, file_format, escape_formulas)
    return frame.n_rows


def _in_files(
    model: Any,
    source: Any,
    wanted: Sequence[What],
    keep: Keep,
    output: str | os.PathLike[str] | None,
    escape_formulas: bool,
) -> Iterator[Batch] | int:
    """Predict for the rows of files, chunk by chunk."""
    table = StreamedTable.of(getattr(source, "table", source))
    predictions = FilePredictions(model, table, wanted, keep)
    if output is None:
        return predictions.batches()
    file_format = _format_of(output)
    if Path(output).resolve() in {Path(path).resolve() for path in table.paths}:
        raise ParameterError(
            f"output would write over {os.fspath(output)!r}, which is read. Give "
            "another name."
        )
    with atomic_write(output) as file:
        return predictions.write(file, file_format, escape_formulas=escape_formulas)


def _format_of(output: str | os.PathLike[str]) -> FileFormat:
    file_format = format_of_name(output)
    if file_format is None:
        endings = [end for end in (*ENDINGS, ".json") if format_of_name(f"x{end}")]
        raise ParameterError(
            f"output must be a file whose name ends with {quoted(endings, 99)}. Got "
            f"{os.fspath(output)!r}."
        )
    return file_format


#: The name of the rows in a query.
_ROWS = "rows of branchwise"


def _in_database(
    model: Exportable,
    table: Any,
    wanted: Sequence[What],
    keep: Keep,
    output: str | os.PathLike[str] | None,
    verify: bool,
    as_query: bool,
) -> Iterator[tuple[Any, ...]] | str | None:
    """Predict in a database, by the SQL export."""
    table = check_table(table)
    if "leaves" in wanted:
        raise ParameterError(
            "what='leaves' is not possible in a database, whose query has classes and "
            "probabilities. Leave it out."
        )
    if output is not None and isinstance(table.database, (str, os.PathLike)):
        raise ParameterError(
            "Addresses are opened for reading only. To write predictions, pass a "
            "connection of your own that may write."
        )
    with table.open() as rows:
        query = _query(model, rows, wanted, keep, verify)
    if as_query:
        return query
    if output is None:
        return _fetched(table, query)
    connection = rows.connection
    name = connection.dialect.quoted(*os.fspath(output).split("."))
    connection.write(f"CREATE TABLE {name} AS {query}")
    return None


def _fetched(table: SqlTable, query: str) -> Iterator[tuple[Any, ...]]:
    with table.open() as rows:
        yield from rows.connection.rows(query)


def _query(
    model: Exportable, rows: SqlRows, wanted: Sequence[What], keep: Keep, verify: bool
) -> str:
    """Return a query: the columns to keep, then the predictions."""
    dialect = rows.connection.dialect
    options = {"dialect": dialect.name, "table": _ROWS}
    if verify:
        content, _ = exported(model, "sql", **options)
    else:
        content = write(model, "sql", **options)
    plan = make_plan(model.schema, model.tree, model.recipe)
    rows.check_names([field.name for field in plan.inputs])
    names = Names(plan, dialect, _ROWS)
    found = {"classes": [names.prediction], "probabilities": names.probabilities}
    added = [name for what in wanted for name in found[what]]
    called = [name for what in wanted for name in prediction_names(model.schema, what)]
    kept_names = kept_columns(keep, rows.names, rows.label, called)
    cells = [
        f"{cell_of(rows, field.schema_column)} AS {dialect.named(field.name)}"
        for field in plan.inputs
        if field.schema_column is not None
    ]
    named = [(dialect.named(each), f"kept{at}") for at, each in enumerate(kept_names)]
    cells += [f"source.{name} AS {kept}" for name, kept in named]
    selected = ", ".join(cells) or "1 AS nothing"
    given = f"SELECT {selected} FROM {rows.source.relation} AS source"  # noqa: S608
    outputs = [f"predicted.{kept} AS {name}" for name, kept in named]
    outputs += [f"predicted.{each}" for each in added]
    return (
        f"WITH {names.table} AS ({given}) SELECT {', '.join(outputs)} "  # noqa: S608
        f"FROM (\n{content.decode()}) AS predicted"
    )
