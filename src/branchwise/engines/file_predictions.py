"""Predictions for the rows of files that may be larger than memory, in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from branchwise.data.arrow import as_arrays
from branchwise.data.columns import RawColumn
from branchwise.data.encode import columns_for
from branchwise.data.frames import Frame
from branchwise.data.schema import Column, Schema
from branchwise.engines.prediction import (
    Batch,
    Keep,
    Predicting,
    What,
    checked_what,
    kept_columns,
    predicted_columns,
    prediction_names,
)
from branchwise.errors import DataError
from branchwise.files.dataset import StreamedTable
from branchwise.files.write_table import FileFormat, chunk_writer


class FilePredictions:
    """The predictions of a model for the rows of files, in chunks."""

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
        self._own = columns_for(model.schema, names, table.label)
        columns = model.schema.columns
        # A tree without splits needs a column as well, to count the rows.
        used = {columns[at].name for at in model.tree.used_columns or [0]}
        read = {name: c for name, c in self._own.items() if c.name in used}
        self._table = replace(table, ignore=(), only=list(read)).for_columns(read)

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
        with closing(self._table.chunks(bool(self._kept))) as chunks:
            for chunk in chunks:
                rows = _framed(chunk.frame, self._own, self._model.schema)
                try:
                    added = predicted_columns(self._model, rows, self._wanted)
                except DataError as error:
                    raise chunk.located(error) from None
                as_is = chunk.as_is
                yield {name: as_is[name] for name in self._kept}, added


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
