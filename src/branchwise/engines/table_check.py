"""A new table beside the training table: unseen values, other ranges, missing cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from branchwise.data.descriptions import ColumnStatistics
from branchwise.data.one_row import Framed
from branchwise.data.table_schema import Column, Schema
from branchwise.engines.base import engine_of
from branchwise.engines.cell_counts import CellCounts, TableCounts
from branchwise.errors import counted
from branchwise.text.blocks import Block, Paragraph, Table
from branchwise.text.bounds import shown
from branchwise.text.document import Document
from branchwise.text.label_words import called
from branchwise.text.words import percent, word

#: Columns that notes tell about; the others are counted.
_NOTED = 10


@dataclass(frozen=True)
class TableCheck(Framed, Document):
    """How many cells of a table are missing, unseen or out of range, by column.

    ``check["age"]`` has the counts of a column: ``missing``, ``unseen`` (values that
    are none of the categories), ``below`` and ``above`` (numbers outside of the range
    of training). ``to_frame()`` is a table of all columns.
    """

    schema: Schema
    counts: TableCounts

    def __getitem__(self, name: str) -> CellCounts:
        by_name = {column.name: cells for column, cells in self._columns}
        return by_name[name]

    def __len__(self) -> int:
        return len(self.counts.columns)

    def __repr__(self) -> str:
        odd = sum(1 for _, cells in self._columns if any(vars(cells).values()))
        size = f"{counted(self.n_rows, 'row')}, {counted(len(self), 'column')}"
        return (
            f"<TableCheck: {size}, {odd} with cells that are missing, unseen or out of "
            "range>"
        )

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.counts.n_rows

    @property
    def _columns(self) -> Iterator[tuple[Column, CellCounts]]:
        for at, cells in self.counts.columns.items():
            yield self.schema.columns[at], cells

    def notes(self) -> list[str]:
        """Return a sentence for each column that has such cells, the first ones."""
        found = [note for pair in self._columns if (note := self._note(*pair))]
        further = len(found) - _NOTED
        if further > 1:
            columns = counted(further, "further column")
            found[_NOTED:] = [f"{columns} with values of the kind above."]
        return found

    def _note(self, column: Column, cells: CellCounts) -> str:
        pieces = []
        if cells.unseen:
            pieces.append(f"{self._of_rows(cells.unseen)} not seen in training")
        seen = column.statistics
        if seen is not None and (cells.below or cells.above):
            outside = self._of_rows(cells.below + cells.above)
            pieces.append(
                f"{outside} outside of {_range(column)}, the range in training"
            )
        if cells.missing:
            before = "" if seen is None else f" ({_missing(seen)} in training)"
            pieces.append(f"{self._of_rows(cells.missing)} missing{before}")
        return f"column {column.name!r}: {'; '.join(pieces)}." if pieces else ""

    def _of_rows(self, n: int) -> str:
        return f"{n:,} of {counted(self.n_rows, 'value')}"

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the table as lists, a column each."""
        pairs = list(self._columns)
        seen = [column.statistics or ColumnStatistics(0, 0) for column, _ in pairs]
        return {
            "column": [column.name for column, _ in pairs],
            "rows": [self.n_rows] * len(pairs),
            "missing": [cells.missing for _, cells in pairs],
            "unseen": [cells.unseen for _, cells in pairs],
            "below": [cells.below for _, cells in pairs],
            "above": [cells.above for _, cells in pairs],
            "training_low": [each.low for each in seen],
            "training_high": [each.high for each in seen],
            "training_known": [each.known for each in seen],
            "training_missing": [each.missing for each in seen],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the counts in plain values."""
        return {
            "rows": self.n_rows,
            "columns": {column.name: vars(cells) for column, cells in self._columns},
        }

    def blocks(self) -> Iterator[Block]:
        """Yield a table of all columns."""
        yield Paragraph(
            f"{counted(self.n_rows, 'row')}: cells that are missing, that training did "
            "not have, and numbers outside of its range."
        )
        rows = [
            [
                column.name,
                *(f"{count:,}" for count in vars(cells).values()),
                _range(column),
            ]
            for column, cells in self._columns
        ]
        head = ["column", "missing", "unseen", "below", "above", "range in training"]
        yield Table(head, rows, words=(0, 5))


def counts_in(model: Any, source: object) -> TableCounts:
    """Count the cells of a source of any engine, where its rows are."""
    engine = engine_of(source)
    if engine == "chunked":
        from branchwise.engines.prediction import FilePredictions  # noqa: PLC0415
        from branchwise.files.dataset import StreamedTable  # noqa: PLC0415

        table = StreamedTable.of(getattr(source, "table", source))
        return FilePredictions(model, table).all_counts()
    if engine == "sql":
        from branchwise.engines.sql.model_cells import sql_counts  # noqa: PLC0415

        return sql_counts(model, source)
    if engine == "dask":
        from branchwise.engines.dask.source import dask_counts  # noqa: PLC0415

        return dask_counts(model, source)
    if engine == "spark":
        from branchwise.engines.spark.source import spark_counts  # noqa: PLC0415

        return spark_counts(model, source)
    return TableCounts.of_rows(model, source)


def _range(column: Column) -> str:
    seen = column.statistics
    if seen is None or seen.low is None or seen.high is None:
        return ""
    low, high = (shown(column, end) for end in (seen.low, seen.high))
    first = called(column, low, with_unit=False)
    return f"{word(first)} to {word(called(column, high))}"


def _missing(seen: ColumnStatistics) -> str:
    total = seen.known + seen.missing
    return "none" if not seen.missing else percent(seen.missing / max(total, 1))
