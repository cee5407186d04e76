"""A table or a query of an open connection, and what was asked of it so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from branchwise.engines.sql_cells import (
    Cells,
    Distinct,
    check_type,
    distinct,
    loose_cells,
    typed_cells,
)
from branchwise.engines.sql_connections import Connection, Described
from branchwise.engines.sql_dialects import SQLITE
from branchwise.table.frames import Frame
from branchwise.table.raw import RawColumn


@dataclass
class Source:
    """A table or query of an open connection, and what was asked of it so far."""

    connection: Connection
    relation: str
    described: Sequence[Described]
    text_columns: frozenset[str] = frozenset()
    missing: tuple[str, ...] = ()
    _cells: dict[str, Cells] = field(default_factory=dict)
    _distinct: dict[str, Distinct] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.described)

    def prepare(self, names: Sequence[str]) -> None:
        """Find out what the cells of columns are."""
        new = [name for name in names if name not in self._cells]
        if self.connection.dialect is SQLITE:
            found = loose_cells(
                self.connection, self.relation, new, self.text_columns, self.missing
            )
        else:
            types = {column.name: column.type for column in self.described}
            found = [
                typed_cells(
                    self.connection, name, types[name], name in self.text_columns
                )
                for name in new
            ]
        for cells in found:
            check_type(self.connection, cells, cells.name in self.text_columns)
            self._cells[cells.name] = cells

    def cells(self, name: str) -> Cells:
        """Return a column that was prepared."""
        if name not in self._cells:
            self.prepare([name])
        return self._cells[name]

    def distinct(self, name: str) -> Distinct:
        """Return the distinct cells of a column, fetched once."""
        if name not in self._distinct:
            cells = self.cells(name)
            self._distinct[name] = distinct(
                self.connection,
                self.relation,
                cells,
                self.missing,
                name in self.text_columns,
            )
        return self._distinct[name]

    def frame(self) -> Frame:
        """Return the table as one of distinct cells, column by column."""
        readers = tuple(partial(self._raw, name) for name in self.names)
        return Frame(self.names, 0, named=True, readers=readers)

    def _raw(self, name: str) -> RawColumn:
        return self.distinct(name).raw
