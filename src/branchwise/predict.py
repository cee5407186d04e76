"""Batch prediction: tables in files, in databases and on Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from copy import deepcopy
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, get_args, overload

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.arrow import as_arrays, table_of, with_columns
from branchwise.data.columns import RawColumn
from branchwise.data.encode import columns_for
from branchwise.data.frames import Frame
from branchwise.data.schema import PLURAL, Column, Schema
from branchwise.engines.base import model_of
from branchwise.engines.spark.cluster import mapped
from branchwise.engines.sql.source import SqlRows, SqlTable
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.export.plan import Field, make_plan
from branchwise.export.sql.cases import Names
from branchwise.export.verification import Exportable, exported, write
from branchwise.files.atomic import atomic_write
from branchwise.files.dataset import StreamedTable, TableChunk
from branchwise.files.options import ENDINGS
from branchwise.files.sql_dialects import Dialect
from branchwise.files.write_table import FileFormat, chunk_writer, format_of_name
from branchwise.model import Model
from branchwise.text.conditions import word
from branchwise.tree.tree import Tree

What = Literal["classes", "probabilities", "leaves"]
#: Columns by name, of equal length.
Batch = dict[str, NDArray[Any]]


class Predicting(Protocol):
    """The methods of a model that prediction needs."""

    schema: Schema
    tree: Tree

    def predict(self, X: object) -> NDArray[np.generic]:
        """Return the class, or the number, of each row."""

    def predict_proba(self, X: object) -> Floats:
        """Return the probabilities of the classes."""

    def apply(self, X: object) -> Ints:
        """Return the node that each row arrives at."""


@overload
def predict(
    model: Predicting,
    source: object,
    output: None = None,
    what: What | Sequence[What] = "classes",
    keep: bool = False,
) -> Iterator[Batch]: ...


@overload
def predict(
    model: Predicting,
    source: object,
    output: str | os.PathLike[str],
    what: What | Sequence[What] = "classes",
    keep: bool = False,
    escape_formulas: bool = False,
) -> int: ...


def predict(
    model: Predicting,
    source: object,
    output: str | os.PathLike[str] | None = None,
    what: What | Sequence[What] = "classes",
    keep: bool = False,
    escape_formulas: bool = False,
) -> Iterator[Batch] | int:
    """Predict for the rows of files that may be larger than memory.

    Parameters
    ----------
    model : Model
        What :func:`~branchwise.fit_tree` or :func:`~branchwise.load` returns, or an
        estimator that is fitted.
    source : str, path, list of them, pyarrow dataset or StreamedTable
        The files. Columns are found by name, and read as the model has learnt them.
    output : str, path or None
        The file to write: its name ends with .csv, .tsv, .json, .parquet, .arrow or
        .feather. It is written atomically.
    what : {"classes", "probabilities", "leaves"} or several of them
        "classes" is the column ``prediction``, the class or the number; "probabilities"
        the columns ``probability of ...``, one for each class; "leaves" the column
        ``leaf``, the number of the node.
    keep : bool
        Whether the columns of the table come before these, as they are in the files.
    escape_formulas : bool
        Whether texts that a spreadsheet would treat as a formula (they begin with =,
        +, -, @, a tab or a carriage return) get an apostrophe in front, in a CSV or TSV
        file; numbers stay numbers.

    Returns
    -------
    iterator of dict, or int
        Without an output an iterator of dicts of arrays by name, each for a chunk of
        rows; with one the number of rows written.
    """
    table = StreamedTable.of(source)
    batches_found = Predictions(model_of(model), table, what, keep)
    if output is None:
        if escape_formulas:
            raise ParameterError(
                "escape_formulas has no effect without an output, which it is for. "
                "Leave it out, or name a CSV or TSV file."
            )
        return batches_found.batches()
    file_format = _format_of(output)
    if Path(output).resolve() in {Path(path).resolve() for path in table.paths}:
        raise ParameterError(
            f"output would write over {os.fspath(output)!r}, which is read. Give "
            "another name."
        )
    with atomic_write(output) as file:
        return batches_found.write(file, file_format, escape_formulas=escape_formulas)


class Predictions:
    """The predictions of a model for the rows of files, in chunks."""

    def __init__(
        self,
        model: Predicting,
        table: StreamedTable,
        what: What | Sequence[What] = "classes",
        keep: bool = False,
    ) -> None:
        self._model = model
        self._wanted = _checked(model, what)
        self._keep = keep
        names = table.names
        self._own = columns_for(model.schema, names, table.label)
        columns = model.schema.columns
        # A tree without splits needs a column as well, to count the rows.
        used = {columns[at].name for at in model.tree.used_columns or [0]}
        read = {name: c for name, c in self._own.items() if c.name in used}
        self._table = replace(table, ignore=(), only=list(read)).for_columns(read)
        if keep:
            self._check_double(names)

    def _check_double(self, names: Sequence[str]) -> None:
        double = [name for name in self.names if name in names]
        if double:
            raise DataError(
                f"With keep there would be two columns {quoted(double)}: the table has "
                "one of that name already. Rename it there, or do without keep."
            )

    @property
    def names(self) -> list[str]:
        """The columns that are added."""
        named: dict[str, list[str]] = {
            "classes": ["prediction"],
            "probabilities": [
                f"probability of {word(label)}" for label in self._model.schema.classes
            ],
            "leaves": ["leaf"],
        }
        return [name for what in self._wanted for name in named[what]]

    def batches(self) -> Iterator[Batch]:
        """Yield columns by name, chunk by chunk."""
        for kept, added in self._chunks():
            yield as_arrays(kept) | added

    def write(
        self,
        file: BinaryIO,
        file_format: FileFormat,
        progress: Callable[[int], None] | None = None,
        escape_formulas: bool = False,
    ) -> int:
        """Write a file; return its number of rows; ``progress`` is called with it."""
        n_rows = 0
        with chunk_writer(file, file_format, escape_formulas) as writer:
            for kept, added in self._chunks():
                writer.write(kept | added)
                n_rows += len(next(iter(added.values())))
                if progress is not None:
                    progress(n_rows)
        return n_rows

    def _chunks(self) -> Iterator[tuple[dict[str, Any], Batch]]:
        """Yield the columns that are kept, and those that are added."""
        with closing(self._table.chunks(self._keep)) as chunks:
            for chunk in chunks:
                try:
                    added = self._predicted_rows(chunk)
                except DataError as error:
                    raise chunk.located(error) from None
                yield dict(chunk.as_is), added

    def _predicted_rows(self, chunk: TableChunk) -> Batch:
        rows = _framed(chunk.frame, self._own, self._model.schema)
        found: list[NDArray[Any]] = []
        for what in self._wanted:
            if what == "probabilities":
                found.extend(self._model.predict_proba(rows).T)
            elif what == "leaves":
                found.append(self._model.apply(rows))
            else:
                found.append(self._model.predict(rows))
        return dict(zip(self.names, found, strict=True))


@dataclass(frozen=True)
class _Unread:
    """Placeholder of a column that the tree does not split on."""

    name: str

    def __call__(self) -> RawColumn:
        raise AssertionError(f"{self.name} is not read")


def _framed(frame: Frame, own: Mapping[str, Column], schema: Schema) -> Frame:
    """Return a frame that has all columns of a schema, in its order."""
    readers = dict(zip(frame.names, frame.readers, strict=True))
    return Frame(
        tuple(column.name for column in own.values()),
        frame.n_rows,
        schema.named,
        tuple(readers.get(name, _Unread(name)) for name in own),
    )


def _checked(model: Predicting, what: What | Sequence[What]) -> tuple[What, ...]:
    wanted = (what,) if isinstance(what, str) else tuple(what)
    if not wanted or not set(wanted) <= set(get_args(What)):
        raise ParameterError(
            f"what must be one or more of {quoted(get_args(What))}. Got {what!r}."
        )
    if "probabilities" in wanted and not model.schema.classes:
        raise ParameterError(
            "what='probabilities' needs a tree that predicts classes. Got one that "
            "predicts numbers; use 'classes', which are its numbers."
        )
    return wanted


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
#: Types whose text is not what a table in memory has for them.
_OTHER_TEXT = ("TIME", "INTERVAL", "timestamp", "timetz", "time", "interval")


def prediction_query(
    model: Exportable, table: SqlTable, keep: Sequence[str] = (), verify: bool = True
) -> str:
    """Return a query with the prediction for every row of a table.

    Parameters
    ----------
    model : Model
        The tree.
    table : SqlTable
        The rows; it must have the columns that the tree splits on.
    keep : sequence of str
        Columns of the table to return with the predictions, such as its key.
    verify : bool
        Whether the query is verified against the model first, in a local database.

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
    """Return the prediction for every row of a table; see :func:`prediction_query`.

    The order of rows is that of the database, which is not defined: ``keep`` the
    columns that identify rows.
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
    """Create a table with the predictions; the connection must allow writing.

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
        name = connection.dialect.quoted(*destination.split("."))
    connection.write(f"CREATE TABLE {name} AS {query}")


def _opened(table: SqlTable) -> AbstractContextManager[SqlRows]:
    if not isinstance(table, SqlTable):
        raise ParameterError(
            f"table must be a SqlTable(database, table). Got {type(table).__name__}."
        )
    return table.open()


def _query(model: Exportable, rows: SqlRows, keep: Sequence[str], verify: bool) -> str:
    model = model_of(model)
    dialect = rows.connection.dialect
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
    outputs = [f"predicted.{kept} AS {name}" for name, kept in named]
    outputs += [
        f"predicted.{each}" for each in (names.prediction, *names.probabilities)
    ]
    return (
        f"WITH {names.table} AS ({given}) SELECT {', '.join(outputs)} "  # noqa: S608
        f"FROM (\n{content.decode()}) AS predicted"
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
            f"Column {field.name!r} is of type {cells.type}, whose text depends on the "
            "database. Cast it to text in a query, for fitting and for predicting."
        )
    text = f"CAST({cells.raw} AS {dialect.types['t']})"
    marks = ", ".join(dialect.value(mark) for mark in rows.source.missing)
    return f"CASE WHEN {text} IN ({marks}) THEN NULL ELSE {text} END" if marks else text


PREDICTIONS = ("classes", "probabilities", "leaves")
_TYPES = {bool: "boolean", int: "long", float: "double", str: "string"}


def spark_predict(model: Model, frame: Any, what: str = "classes") -> Any:
    """Return a DataFrame with the predictions of a model as further columns.

    Nothing is computed before the rows are collected or written.

    Parameters
    ----------
    model : Model
        The model, or an estimator that is fitted.
    frame : pyspark.sql.DataFrame
        The rows. Columns are found by name.
    what : {"classes", "probabilities", "leaves"}
        "classes" adds ``prediction``, the class or the number; "probabilities" adds
        ``probability of ...`` for every class; "leaves" adds ``leaf``, the number of
        the node.
    """
    model = model_of(model)
    if not hasattr(frame, "mapInArrow"):
        raise DataError(
            f"frame must be a DataFrame of Spark. Got {type(frame).__name__}; use "
            "model.predict for a table in memory."
        )
    added = _added(model, what)
    names = [column.name for column in model.schema.columns]
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise DataError(
            f"The table lacks {quoted(absent)}, which the tree was fitted with. Its "
            f"columns are {quoted(frame.columns, 20)}; rename or add what is lacking."
        )
    double = [name for name in added if name in frame.columns]
    if double:
        raise DataError(
            f"There would be two columns {quoted(double)}: the table has one of that "
            "name already. Rename it first."
        )
    # By position: Spark treats dots in names as access to fields.
    numbered = frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))
    schema = deepcopy(numbered.schema)
    for at, kind in enumerate(added.values()):
        schema.add(f"added{at}", kind)
    positions = {name: frame.columns.index(name) for name in names}
    new = tuple(schema.names[len(frame.columns) :])
    predicted_rows = mapped(numbered, _Predict(model, what, positions, new), schema)
    return predicted_rows.toDF(*frame.columns, *added)


def _added(model: Model, what: str) -> dict[str, str]:
    """Return the columns that are added, with their types."""
    if what not in PREDICTIONS:
        raise ParameterError(
            f"what must be one of {quoted(PREDICTIONS)}. Got {what!r}."
        )
    if what == "leaves":
        return {"leaf": "long"}
    classes = model.schema.classes
    if what == "classes":
        return {"prediction": _TYPES[type(classes[0])] if classes else "double"}
    if not classes:
        raise ParameterError(
            "what='probabilities' needs a tree that predicts classes. Got one that "
            "predicts numbers; use what='classes', which adds those."
        )
    return {f"probability of {word(label)}": "double" for label in classes}


@dataclass(frozen=True)
class _Predict:
    """Adds columns to the batches of a partition."""

    model: Model
    what: str
    positions: dict[str, int]
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            chosen = table_of(batch, self.positions)
            yield with_columns(batch, self.names, self._predictions(chosen))

    def _predictions(self, table: Any) -> list[Any]:
        if self.what == "leaves":
            return [self.model.apply(table)]
        if self.what == "classes":
            return [self.model.predict(table)]
        return list(self.model.predict_proba(table).T)
