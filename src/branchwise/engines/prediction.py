"""Columns of predictions, and predictions for files larger than memory, in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, BinaryIO, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.arrow import as_arrays
from branchwise.data.frames import Frame, unread
from branchwise.data.table_schema import (
    Column,
    Columns,
    Schema,
    check_names,
    columns_for,
)
from branchwise.engines.cell_counts import TableCounts
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.files.dataset import StreamedTable
from branchwise.files.read_table import known_na_values
from branchwise.files.write_table import FileFormat, chunk_writer
from branchwise.text.words import word

What = Literal["classes", "probabilities", "leaves"]
#: False is none, True all columns.
Keep = bool | Sequence[str]
#: Columns by name, of equal length.
Batch = dict[str, NDArray[Any]]


class Predicting(Protocol):
    """The methods of a model that prediction needs."""

    schema: Schema

    @property
    def used_columns(self) -> Sequence[int]:
        """The columns that are split on."""

    def encoded(self, X: object) -> Columns:
        """Encode the columns that are split on."""

    def predict(self, X: object) -> NDArray[np.generic]:
        """Return the class, or the number, of each row."""

    def predict_proba(self, X: object) -> Floats:
        """Return the probabilities of the classes."""

    def apply(self, X: object) -> Ints:
        """Return the node that each row arrives at."""


def checked_what(model: Predicting, what: What | Sequence[What]) -> tuple[What, ...]:
    """Return which predictions are wanted; raise for those that the tree has not."""
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


def prediction_names(schema: Schema, what: What) -> list[str]:
    """Return the names of the columns of a prediction."""
    if what == "probabilities":
        return [f"probability of {word(label)}" for label in schema.classes]
    return ["prediction"] if what == "classes" else ["leaf"]


def columns_in_use(own: Mapping[str, Column], model: Predicting) -> dict[str, Column]:
    """Return those of the columns of a table that a model splits on."""
    used = {model.schema.columns[at].given_as for at in model.used_columns}
    return {name: column for name, column in own.items() if column.name in used}


def predicted_columns(model: Predicting, rows: object, wanted: Sequence[What]) -> Batch:
    """Return the columns of predictions for a table in memory, by name."""
    columns: Batch = {}
    for what in wanted:
        found = predicted(model, rows, what)
        each = found.T if found.ndim == 2 else [found]
        columns.update(zip(prediction_names(model.schema, what), each, strict=True))
    return columns


def predicted(model: Predicting, rows: object, what: What) -> NDArray[Any]:
    """Return one kind of prediction for a table in memory."""
    if what == "probabilities":
        return model.predict_proba(rows)
    return model.predict(rows) if what == "classes" else model.apply(rows)


def kept_columns(
    keep: Keep, names: Sequence[str], label: str, added: Sequence[str]
) -> list[str]:
    """Return the columns of a table that are kept beside those that are added."""
    if isinstance(keep, str):
        raise ParameterError(
            f"keep must be a list of names of columns. Got {keep!r}; put it in a list."
        )
    if isinstance(keep, bool):
        kept = list(names) if keep else []
    else:
        kept = list(keep)
        check_names(label, names, kept)
    double = [name for name in added if name in kept]
    if double:
        raise DataError(
            f"With keep there would be two columns {quoted(double)}: the table has "
            "one of that name already. Rename it there, or do without keep."
        )
    return kept


class FilePredictions:
    """The predictions of a model for the rows of files, in chunks.

    ``counts`` are of the cells that were read so far.
    """

    def __init__(
        self,
        model: Predicting,
        table: StreamedTable,
        what: What | Sequence[What] = "classes",
        keep: Keep = False,
    ) -> None:
        self._model = model
        self._wanted = checked_what(model, what)
        names = table.names
        added = [n for w in self._wanted for n in prediction_names(model.schema, w)]
        self._kept = kept_columns(keep, names, table.label, added)
        used = model.used_columns
        self._own = columns_for(model.schema, names, table.label, used)
        read = columns_in_use(self._own, model)
        # A tree without splits needs a column as well, to count the rows.
        only = list(read) or names[:1]
        known = {name: column.categories for name, column in read.items()}
        self._table = replace(
            table,
            ignore=(),
            only=only,
            known_values=known if model.schema.merge_case else {},
            missing=known_na_values(table.missing, model.schema),
        ).for_columns(read)
        self.counts = TableCounts.of_none(model)

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

    def all_counts(self) -> TableCounts:
        """Read all rows, and count their cells."""
        for _ in self._chunks():
            pass
        return self.counts

    def _chunks(self) -> Iterator[tuple[dict[str, Any], Batch]]:
        """Yield the columns that are kept, and those that are added."""
        schema = self._model.schema
        with closing(self._table.chunks(bool(self._kept))) as chunks:
            for chunk in chunks:
                rows = _framed(chunk.frame, self._own, schema)
                try:
                    data = self._model.encoded(rows)
                except DataError as error:
                    raise chunk.located(error) from None
                found = TableCounts.of(schema, self._model.used_columns, data)
                self.counts = self.counts.merge(found)
                added = predicted_columns(self._model, data, self._wanted)
                as_is = chunk.as_is
                yield {name: as_is[name] for name in self._kept}, added


def _framed(frame: Frame, own: Mapping[str, Column], schema: Schema) -> Frame:
    """Return a frame that has all columns of a schema, in its order."""
    readers = dict(zip(frame.names, frame.readers, strict=True))
    return Frame(
        tuple(column.name for column in own.values()),
        frame.n_rows,
        schema.named,
        tuple(readers.get(name, unread) for name in own),
    )
