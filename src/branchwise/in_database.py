"""Predictions where the rows lie: the verified SQL export, run on a table or a query.

The answers come back as rows, or stay in the database as a new table, which is created
only where the caller names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from typing import Any

from branchwise.engines.predicting import model_of
from branchwise.engines.sql import SqlRows, SqlTable
from branchwise.errors import DataError, ParameterError
from branchwise.export.plan import Field, make_plan
from branchwise.export.sql_dialects import DIALECTS, Dialect
from branchwise.export.sql_names import Names
from branchwise.export.verification import Exportable, exported, write
from branchwise.table.schema import PLURAL

#: What a query calls the rows that it answers.
_ROWS = "rows of branchwise"
#: Types whose text is not what a table in memory has for them.
_OTHER_TEXT = ("TIME", "INTERVAL", "timestamp", "timetz", "time", "interval")


def prediction_query(
    model: Exportable, table: SqlTable, keep: Sequence[str] = (), verify: bool = True
) -> str:
    """Return the query that answers every row of a table.

    Parameters
    ----------
    model : Model
        The tree.
    table : SqlTable
        The rows; it must have the columns that the tree asks for.
    keep : sequence of str
        Columns of the table to return with the answers, such as its key.
    verify : bool
        Whether the query is tried against the model first, in an engine at hand.

    Returns
    -------
    str
        A SELECT: the columns to keep, the prediction, and the probabilities of classes.
    """
    with _opened(table) as rows:
        return _query(model, rows, keep, verify)


def predictions(
    model: Exportable, table: SqlTable, keep: Sequence[str] = (), verify: bool = True
) -> Iterator[tuple[Any, ...]]:
    """Return an answer for every row of a table; see :func:`prediction_query`.

    They come in the order in which the database has them, which may be any: ``keep``
    the columns that tell rows apart.
    """
    with _opened(table) as rows:
        query = _query(model, rows, keep, verify)
        yield from rows.connection.rows(query)


def write_predictions(
    model: Exportable,
    table: SqlTable,
    destination: str,
    keep: Sequence[str] = (),
    verify: bool = True,
) -> None:
    """Create a table with the answers; the connection must be one that may write.

    Parameters
    ----------
    model, table, keep, verify
        As in :func:`prediction_query`.
    destination : str
        The table to create; ``schema.table`` for another schema. There must be none of
        that name. The caller's connection is not committed where it is in a
        transaction.
    """
    if isinstance(table.database, (str, PathLike)):
        raise ParameterError(
            "Addresses are opened for reading only. To write predictions, pass a "
            "connection of your own that may write."
        )
    with _opened(table) as rows:
        query = _query(model, rows, keep, verify)
        connection = rows.connection
        name = connection.dialect.named(*destination.split("."))
    connection.write(f"CREATE TABLE {name} AS {query}")


def _opened(table: SqlTable) -> AbstractContextManager[SqlRows]:
    if not isinstance(table, SqlTable):
        raise ParameterError(
            f"table must be a SqlTable(database, table). Got {type(table).__name__}."
        )
    return table.open()


def _query(model: Exportable, rows: SqlRows, keep: Sequence[str], verify: bool) -> str:
    model = model_of(model)
    dialect = DIALECTS[rows.connection.dialect.name.lower()]
    options = {"dialect": dialect.name, "table": _ROWS}
    if verify:
        content, _ = exported(model, "sql", **options)
    else:
        content = write(model, "sql", **options)
    plan = make_plan(model.schema, model.tree, model.recipe)
    rows.check_names([*(field.name for field in plan.fields), *keep])
    wanted = [
        f"{_cell(rows, field, dialect)} AS {dialect.named(field.name)}"
        for field in plan.fields
    ]
    named = [(dialect.named(each), f"kept{at}") for at, each in enumerate(keep)]
    wanted += [f"source.{name} AS {kept}" for name, kept in named]
    cells = ", ".join(wanted) or "1 AS nothing"
    given = f"SELECT {cells} FROM {rows.source.relation} AS source"  # noqa: S608
    names = Names(plan, dialect, _ROWS)
    outputs = [f"answered.{kept} AS {name}" for name, kept in named]
    outputs += [f"answered.{each}" for each in (names.prediction, *names.chances)]
    return (
        f"WITH {names.table} AS ({given}) SELECT {', '.join(outputs)} "  # noqa: S608
        f"FROM (\n{content.decode()}) AS answered"
    )


def _cell(rows: SqlRows, field: Field, dialect: Dialect) -> str:
    """Return the expression for a cell as the model compares it."""
    cells = rows.source.cells(field.name)
    kind = {"number": "number", "boolean": "truth", "text": "text"}[field.kind]
    if cells.kind != kind:
        raise DataError(
            f"Column {field.name!r} was learnt as {PLURAL[field.kind]}, and "
            f"{rows.connection.label} has it as {cells.type or cells.kind}. Cast it in "
            "a query."
        )
    if kind == "number":
        return cells.number
    if kind == "truth":
        return cells.raw
    if cells.type.startswith(_OTHER_TEXT):
        raise DataError(
            f"Column {field.name!r} is of type {cells.type}, whose text depends on who "
            "writes it. Cast it to text in a query, for fitting and for predicting."
        )
    text = f"CAST({cells.raw} AS {dialect.types['text']})"
    marks = ", ".join(dialect.value(mark) for mark in rows.source.missing)
    return f"CASE WHEN {text} IN ({marks}) THEN NULL ELSE {text} END" if marks else text
