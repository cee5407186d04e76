"""What parts of a table show, and how that of two parts is put together.

Merging is associative, and it does not matter which part comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from branchwise.engines.sketch import NumberSummary
from branchwise.errors import DataError, quoted
from branchwise.table.raw import refuse_mixed
from branchwise.table.schema import Column, Value
from branchwise.table.target import Spread
from branchwise.table.weights import Weighed


@dataclass(frozen=True)
class ColumnFacts:
    """What some rows show of an attribute.

    ``declared`` values come with the column's type, whether they occur or not;
    ``numbers`` are those of rows that count.
    """

    column: Column
    declared: bool = False
    numbers: NumberSummary | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no row has a value, so that the type means nothing."""
        if self.numbers is not None:
            return not len(self.numbers.count)
        return not self.column.categories

    def merge(self, other: ColumnFacts, max_exact: int) -> ColumnFacts:
        """Add what further rows show."""
        missing = self.column.has_missing or other.column.has_missing
        if self.is_empty or other.is_empty:
            known = other if self.is_empty else self
            return replace(known, column=replace(known.column, has_missing=missing))
        if self.column.is_numeric != other.column.is_numeric:
            raise DataError(
                f"Column {self.column.name!r} holds numbers in some parts of the table "
                "and text in others. Give it one type, or declare its numbers to be "
                "names: categorical_features names it, --categorical does."
            )
        if self.numbers is not None and other.numbers is not None:
            numbers = self.numbers.merge(other.numbers, max_exact)
            column = replace(self.column, has_missing=missing)
            return replace(self, column=column, numbers=numbers)
        return self._with_values(other, missing)

    def _with_values(self, other: ColumnFacts, missing: bool) -> ColumnFacts:
        mine, further = self.column.categories, other.column.categories
        values = mine
        if mine != further:
            if self.column.kind == "ordinal":
                raise DataError(
                    f"Column {self.column.name!r} has its values in one order in some "
                    f"parts of the table and in another in others: {quoted(mine)} and "
                    f"{quoted(further)}. Give it one order."
                )
            values = tuple(dict.fromkeys(mine + further))
            refuse_mixed(f"Column {self.column.name!r}", values)
            # Declarations that differ between parts have no order in common.
            values = tuple(sorted(_alike(values)))
        column = replace(self.column, categories=values, has_missing=missing)
        return replace(self, column=column)


def _alike(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Make all numbers fractions where one is: 4 is called 4.0 beside 4.5."""
    if any(isinstance(value, float) for value in values):
        return tuple(float(value) for value in values)
    return values


@dataclass(frozen=True)
class Facts:
    """What some rows of a table show."""

    n_rows: int = 0
    columns: tuple[ColumnFacts, ...] = ()
    labels: Mapping[Value, int] | None = None
    label_weights: Mapping[Value, tuple[float, ...]] | None = None
    spread: Spread | None = None
    weights: Weighed | None = None
    max_exact: int = 0

    def merge(self, other: Facts) -> Facts:
        """Add what further rows show."""
        if not self.n_rows or not other.n_rows:
            return other if not self.n_rows else self
        if self.names != other.names:
            raise DataError(
                "Every part of the table must have the same columns. Got "
                f"{quoted(self.names, 20)} and {quoted(other.names, 20)}."
            )
        columns = zip(self.columns, other.columns, strict=True)
        return Facts(
            self.n_rows + other.n_rows,
            tuple(mine.merge(further, self.max_exact) for mine, further in columns),
            _added(self.labels, other.labels),
            _added(self.label_weights, other.label_weights),
            _merged(self.spread, other.spread),
            _merged(self.weights, other.weights),
            self.max_exact,
        )

    @property
    def names(self) -> list[str]:
        """The names of the attributes."""
        return [facts.column.name for facts in self.columns]


def _added(
    mine: Mapping[Value, Any] | None, further: Mapping[Value, Any] | None
) -> dict[Value, Any] | None:
    """Add up what is known of each label; tuples are put together."""
    if mine is None or further is None:
        return None
    total = dict(mine)
    for label, amount in further.items():
        total[label] = total[label] + amount if label in total else amount
    return total


def _merged(mine: Any, further: Any) -> Any:
    return None if mine is None else mine.merge(further)
