"""Dask's tables: their partitions as tasks, and predictions for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, Protocol, get_args

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from branchwise.counts import Floats, Ints
from branchwise.engines.afield import check_parquet, held
from branchwise.engines.predicting import model_of
from branchwise.errors import DataError, ParameterError, counted, quoted
from branchwise.table.frames import Frame
from branchwise.table.parquet import declared_columns
from branchwise.table.raw import RawColumn
from branchwise.table.schema import Schema

What = Literal["classes", "probabilities", "leaves"]


class PartedTable:
    """A Dask DataFrame or 2-D array, and what lies beside it, part by part."""

    def __init__(self, X: Any, beside: Mapping[str, Any]) -> None:
        if isinstance(X, da.Array):
            X = _whole_rows(X)
        elif not isinstance(X, dd.DataFrame):
            raise DataError(
                "X must be a Dask DataFrame or a Dask array of two dimensions. Got "
                f"{type(X).__name__} instead; a table in memory needs no Dask."
            )
        self._X = X
        self._beside = {
            role: _parted_alike(role, column, X) for role, column in beside.items()
        }

    @property
    def named(self) -> bool:
        """Whether columns have names of the user's."""
        return isinstance(self._X, dd.DataFrame)

    @property
    def names(self) -> list[str]:
        """The names of the columns of X."""
        if self.named:
            return [str(name) for name in self._X.columns]
        return [f"x{index}" for index in range(self._X.shape[1])]

    @property
    def outline(self) -> Frame:
        """The table without its rows."""
        names = (*self.names, *self._beside)
        return Frame(names, 0, self.named, (_unread,) * len(names))

    def delayed(self, unread: AbstractSet[str]) -> list[Any]:
        """Return tasks that read the partitions but for some columns."""
        X = self._X
        if self.named and not unread.isdisjoint(self.names):
            # What is not needed is not even read from files.
            X = X[[name for name in X.columns if str(name) not in unread]]
        tables = _tasks(X)
        beside = {name: _tasks(column) for name, column in self._beside.items()}
        read = dask.delayed(held, pure=False)
        return [
            read(at, table, {name: tasks[at] for name, tasks in beside.items()})
            for at, table in enumerate(tables)
        ]


def parquet_frame(
    paths: Sequence[str], names: Sequence[str], missing: Sequence[str]
) -> Any:
    """Return columns of Parquet files as a DataFrame; some texts are missing values."""
    files = [str(path) for path in paths]
    check_parquet(files, "dask")
    frame = dd.read_parquet(files)
    declared = declared_columns(files[0])
    if not set(names) <= set(frame.columns):
        frame = frame.reset_index()  # a column that pandas wrote as the index
    return frame[list(names)].map_partitions(_as_read, tuple(missing), declared)


def _as_read(
    part: pd.DataFrame, missing: Sequence[str], declared: AbstractSet[str]
) -> pd.DataFrame:
    """Take columns as files are read: some texts are missing values.

    A dictionary that is not declared is only a way to store values.
    """
    part = part.copy(deep=False)
    for name, column in part.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            gone = [text for text in missing if text in column.cat.categories]
            kept = column.cat.remove_categories(gone)
            plain = kept.astype(column.cat.categories.dtype)
            part[name] = kept if name in declared else plain
        elif pd.api.types.is_string_dtype(column.dtype):
            part[name] = column.mask(column.isin(missing))
    return part


def series_name(column: Any) -> str | None:
    """Return the name of a Series; arrays have names that mean nothing."""
    name = column.name if isinstance(column, dd.Series) else None
    return name if isinstance(name, str) and name else None


def _unread() -> RawColumn:
    raise AssertionError("an outline has no rows")


def _tasks(collection: Any) -> list[Any]:
    tasks = collection.to_delayed()
    return list(tasks.ravel() if isinstance(tasks, np.ndarray) else tasks)


def _whole_rows(X: Any) -> Any:
    """Return an array whose rows are not cut in pieces."""
    if X.ndim != 2:
        raise DataError(
            f"X must be a table. Expected 2D array, got {X.ndim}D array instead. "
            "Reshape your data: X.reshape(-1, 1) if it is one column."
        )
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _parted_alike(role: str, column: Any, X: Any) -> Any:
    """Check that a column is parted as the table is, as far as can be known."""
    if not isinstance(column, (dd.Series, da.Array)) or column.ndim != 1:
        raise DataError(
            f"{role} must be a Dask Series or a Dask array of one dimension beside a "
            f"Dask table, or the name of a column. Got {type(column).__name__} instead."
        )
    if isinstance(X, da.Array) and isinstance(column, da.Array):
        rows, entries = X.shape[0], column.shape[0]
        if not math.isnan(rows) and not math.isnan(entries):
            if rows != entries:
                raise DataError(
                    f"{role} must have one value for each row of X. Got "
                    f"{counted(entries, 'value')} for {counted(rows, 'row')}."
                )
            return column.rechunk((X.chunks[0],))
    n_table, n_column = _n_parts(X), _n_parts(column)
    if n_table != n_column:
        raise DataError(
            f"{role} must be parted as X is. Got {counted(n_column, 'partition')} for "
            f"{counted(n_table, 'partition')} of X; make both of one table, or "
            "repartition one."
        )
    return column


def _n_parts(collection: Any) -> int:
    if isinstance(collection, da.Array):
        return int(collection.numblocks[0])
    return int(collection.npartitions)


class Predicting(Protocol):
    """A model, as far as it is needed here."""

    schema: Schema

    def predict(self, X: object) -> NDArray[np.generic]:
        """Return the class, or the number, of each row."""

    def predict_proba(self, X: object) -> Floats:
        """Return the probabilities of the classes."""

    def apply(self, X: object) -> Ints:
        """Return the node that each row arrives at."""

    def to_bytes(self) -> bytes:
        """Return the content of the model file."""


def predict(model: Predicting, X: Any, what: What = "classes") -> Any:
    """Predict where the rows lie, when the answer is asked for.

    Parameters
    ----------
    model : Model
        What :func:`~branchwise.fit_tree` or :func:`~branchwise.load` returns, or an
        estimator that is fitted. It is sent to each worker once.
    X : dask.dataframe.DataFrame or dask.array.Array
        The rows.
    what : {"classes", "probabilities", "leaves"}, default="classes"
        The class of each row, or the number where numbers are predicted; the
        probability of each class; or the node that each row arrives at.

    Returns
    -------
    Series, DataFrame or array of Dask
        Lazy, with the partitions and the index of X: a Series, for probabilities a
        DataFrame with a column for each class; arrays for an array.
    """
    model = model_of(model)
    if what not in get_args(What):
        raise ParameterError(
            f"what must be one of {quoted(get_args(What))}. Got {what!r}."
        )
    if what == "probabilities" and not model.schema.classes:
        raise ParameterError(
            "what='probabilities' needs a tree that predicts classes. Got one that "
            "predicts numbers; use 'classes', which are its numbers."
        )
    token = dask.base.tokenize(model.to_bytes())
    sent = dask.delayed(model, name=f"branchwise-model-{token}", traverse=False)
    if isinstance(X, dd.DataFrame):
        meta = _frame_answers(X._meta, model, what)  # noqa: SLF001
        return X.map_partitions(
            _frame_answers, sent, what, meta=meta, enforce_metadata=False
        )
    if not isinstance(X, da.Array):
        raise DataError(
            "X must be a Dask DataFrame or a Dask array of two dimensions. Got "
            f"{type(X).__name__} instead; use model.predict for a table in memory."
        )
    X = _whole_rows(X)
    meta = _answers(np.empty((0, X.shape[1]), X.dtype), model, what)
    shape: dict[str, Any] = {"drop_axis": 1}
    if meta.ndim == 2:
        shape = {"chunks": (X.chunks[0], (meta.shape[1],))}
    return X.map_blocks(_answers, model=sent, what=what, meta=meta, **shape)


def _answers(rows: Any, model: Predicting, what: What) -> NDArray[Any]:
    if what == "probabilities":
        return model.predict_proba(rows)
    return model.predict(rows) if what == "classes" else model.apply(rows)


def _frame_answers(rows: pd.DataFrame, model: Predicting, what: What) -> Any:
    found = _answers(rows, model, what)
    if what == "probabilities":
        return pd.DataFrame(found, rows.index, list(model.schema.classes))
    name = model.schema.target if what == "classes" else "leaf"
    return pd.Series(found, rows.index, name=name)
