"""Counts of cells that are missing, and of those that training did not have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from branchwise.data.table_schema import Column, Columns, Schema


@dataclass(frozen=True)
class CellCounts:
    """The cells of one column.

    ``unseen`` are values that are none of the categories; ``below`` and ``above`` are
    numbers outside of the range that training had.
    """

    missing: int = 0
    unseen: int = 0
    below: int = 0
    above: int = 0

    @classmethod
    def of(cls, column: Column, cells: Any) -> CellCounts:
        """Count the encoded cells of a column."""
        if not column.is_numeric:
            missing, unseen = column.missing_code, column.unseen_code
            return cls(_times(cells == missing), _times(cells == unseen))
        missing = _times(np.isnan(cells))
        seen = column.statistics
        if seen is None or seen.low is None or seen.high is None:
            return cls(missing)
        return cls(missing, 0, _times(cells < seen.low), _times(cells > seen.high))

    def merge(self, other: CellCounts) -> CellCounts:
        """Add the cells of further rows."""
        names = [each.name for each in fields(self)]
        return CellCounts(*(getattr(self, n) + getattr(other, n) for n in names))


def _times(found: Any) -> int:
    return int(np.count_nonzero(found))


@dataclass(frozen=True)
class TableCounts:
    """The counts of some columns of a table, by their position in the schema."""

    n_rows: int
    columns: dict[int, CellCounts]

    @classmethod
    def of(cls, schema: Schema, used: Iterable[int], data: Columns) -> TableCounts:
        """Count the cells of an encoded table."""
        columns = schema.columns
        found = {at: CellCounts.of(columns[at], data.data[at]) for at in used}
        return cls(data.n_rows, found)

    @classmethod
    def of_rows(cls, model: Any, rows: object) -> TableCounts:
        """Count the cells of a table in memory that a model splits on."""
        return cls.of(model.schema, model.used_columns, model.encoded(rows))

    @classmethod
    def of_none(cls, model: Any) -> TableCounts:
        """Return the counts of no rows."""
        return cls(0, {at: CellCounts() for at in model.used_columns})

    def merge(self, other: TableCounts) -> TableCounts:
        """Add the cells of further rows."""
        both = {at: own.merge(other.columns[at]) for at, own in self.columns.items()}
        return TableCounts(self.n_rows + other.n_rows, both)
