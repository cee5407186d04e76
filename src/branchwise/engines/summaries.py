"""Summaries of a chunk of rows, which merge: numbers, columns and whole tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import (
    Floats,
    Ints,
    number_kind,
    run_starts,
    wider_kind,
)
from branchwise.data.bins import edges_between
from branchwise.data.columns import check_mixed
from branchwise.data.conventions.date_format import UNITS, DateFormat
from branchwise.data.table_schema import (
    Column,
    Value,
    merged_statistics,
)
from branchwise.data.target import (
    Spread,
)
from branchwise.data.weights import (
    WeightSummary,
)
from branchwise.errors import DataError, quoted

#: The default number of bins of a column with more numbers than have exact thresholds.
BINS_BEYOND = 255


_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True)
class NumberSummary:
    """Sorted cells of numbers: the least and the largest number, and the count.

    Numbers of a cell agree but for the last ``dropped`` bits; 0 is exact. ``kind`` is
    what all numbers are.
    """

    low: Floats
    high: Floats
    count: Ints
    dropped: int = 0
    kind: str = "binary"

    @classmethod
    def of(cls, numbers: Floats, max_exact: int) -> NumberSummary:
        """Summarise numbers without missing ones."""
        known = numbers[~np.isnan(numbers)] + 0.0  # one zero
        values, count = np.unique(known, return_counts=True)
        return cls.of_values(values, count.astype(np.intp)).within(max_exact)

    @classmethod
    def of_values(cls, values: Floats, count: Ints) -> NumberSummary:
        """Summarise distinct numbers, which occur so many times."""
        return cls(values, values, count, kind=number_kind(values))

    def merge(self, other: NumberSummary, max_exact: int) -> NumberSummary:
        """Add the numbers of another chunk."""
        joined = NumberSummary(
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
            np.concatenate([self.count, other.count]),
            max(self.dropped, other.dropped),
            wider_kind(self.kind, other.kind),
        )
        return joined.joined(joined.dropped).within(max_exact)

    def within(self, max_exact: int) -> NumberSummary:
        """Merge cells until there are at most so many."""
        summary = self
        while len(summary.count) > max_exact:
            summary = summary.joined(summary.dropped + 1)
        return summary

    def joined(self, dropped: int) -> NumberSummary:
        """Merge the cells whose numbers agree but for so many bits."""
        key = ordered_bits(self.low) >> dropped
        order = np.argsort(key, kind="stable")
        starts = run_starts(key[order])
        if not len(starts):
            return self
        return NumberSummary(
            np.minimum.reduceat(self.low[order], starts),
            np.maximum.reduceat(self.high[order], starts),
            np.add.reduceat(self.count[order], starts),
            dropped,
            self.kind,
        )

    def scaled(self, unit: DateFormat, other: DateFormat) -> NumberSummary:
        """Return whole numbers of a unit in another."""
        low, high = unit.scaled(self.low, other), unit.scaled(self.high, other)
        return replace(self, low=low, high=high)

    @property
    def exact(self) -> bool:
        """Whether every cell is one number."""
        return self.dropped == 0

    def edges(self, max_bins: int | None, position: str = "midpoint") -> Floats | None:
        """Return the edges of bins; None where every number has its own."""
        if self.exact and max_bins is None:
            return None
        most = BINS_BEYOND if max_bins is None else max_bins
        if self.exact and len(self.count) <= most:
            return None
        return edges_between(self.low, self.high, self.count, most, position)


def ordered_bits(numbers: Floats) -> NDArray[np.int64]:
    """Return whole numbers in the same order."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, bits ^ _SIGN, bits)


@dataclass(frozen=True)
class ColumnSummary:
    """Summary of a column in some rows.

    ``declared`` values come with the column's type, whether they occur or not;
    ``numbers`` are those of rows that count. ``unit`` is the coarsest one in which all
    dates are whole.
    """

    column: Column
    declared: bool = False
    numbers: NumberSummary | None = None
    unit: str = "day"

    @property
    def is_empty(self) -> bool:
        """Whether no row has a value, so that the type is not known."""
        if self.numbers is not None:
            return not len(self.numbers.count)
        return not self.column.categories

    def merge(self, other: ColumnSummary, max_exact: int) -> ColumnSummary:
        """Add the summary of further rows."""
        statistics = merged_statistics(self.column, other.column)
        missing = self.column.has_missing or other.column.has_missing
        all_rows: dict[str, Any] = {"has_missing": missing, "statistics": statistics}
        if self.is_empty or other.is_empty:
            known = other if self.is_empty else self
            return replace(known, column=replace(known.column, **all_rows))
        if self.column.is_numeric != other.column.is_numeric:
            raise DataError(
                f"Column {self.column.name!r} holds numbers in some chunks of the "
                "table and text in others. Give it one type, or name it in "
                "categorical_features to read its numbers as categories."
            )
        if self.numbers is not None and other.numbers is not None:
            mine, further = _in_one_unit(self, other)
            numbers = mine.merge(further, max_exact)
            column = replace(self.column, **all_rows)
            date, finer = self.column.date, other.column.date
            if date is not None and finer is not None and finer.step < date.step:
                column = replace(column, number_format=finer)
            unit = min(self.unit, other.unit, key=lambda unit: UNITS[unit])
            return replace(self, column=column, numbers=numbers, unit=unit)
        return self._with_values(other, all_rows)

    def _with_values(
        self, other: ColumnSummary, all_rows: Mapping[str, Any]
    ) -> ColumnSummary:
        mine, further = self.column.categories, other.column.categories
        values = mine
        if mine != further:
            if self.column.kind == "ordinal":
                raise DataError(
                    f"Column {self.column.name!r} has its values in one order in some "
                    f"chunks of the table and in another in others: {quoted(mine)} and "
                    f"{quoted(further)}. Give it one order."
                )
            values = tuple(dict.fromkeys(mine + further))
            check_mixed(f"Column {self.column.name!r}", values)
            # Declarations that differ between chunks have no common order.
            values = tuple(sorted(_alike(values)))
        column = replace(self.column, categories=values, **all_rows)
        return replace(self, column=column)


def _in_one_unit(
    one: ColumnSummary, other: ColumnSummary
) -> tuple[NumberSummary, NumberSummary]:
    """Return the numbers of two chunks, dates of both in the finer of their units."""
    mine, further = one.column.date, other.column.date
    if one.numbers is None or other.numbers is None:
        raise AssertionError("both are numeric")
    if mine is None or further is None:
        if mine is not further:
            raise DataError(
                f"Column {one.column.name!r} holds dates in some chunks of the table "
                "and numbers in others. Give it one type."
            )
        return one.numbers, other.numbers
    if mine.zoned != further.zoned:
        raise DataError(
            f"Column {one.column.name!r} has times with a time zone in some chunks of "
            "the table and without one in others. Give all of them a time zone, or "
            "none."
        )
    finer = min(mine, further, key=lambda how: how.step)
    return one.numbers.scaled(mine, finer), other.numbers.scaled(further, finer)


def _alike(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Convert all numbers to floats where one is: 4 becomes 4.0 beside 4.5."""
    if any(isinstance(value, float) for value in values):
        return tuple(float(value) for value in values)
    return values


@dataclass(frozen=True)
class Summary:
    """Summary of some rows of a table."""

    n_rows: int = 0
    columns: tuple[ColumnSummary, ...] = ()
    labels: Mapping[Value, int] | None = None
    label_weights: Mapping[Value, tuple[float, ...]] | None = None
    spread: Spread | None = None
    weights: WeightSummary | None = None
    max_exact: int = 0

    def merge(self, other: Summary) -> Summary:
        """Add the summary of further rows."""
        if not self.n_rows or not other.n_rows:
            return other if not self.n_rows else self
        if self.names != other.names:
            raise DataError(
                "Every chunk of the table must have the same columns. Got "
                f"{quoted(self.names, 20)} and {quoted(other.names, 20)}."
            )
        columns = zip(self.columns, other.columns, strict=True)
        return Summary(
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
        return [statistics.column.name for statistics in self.columns]


def _added(
    mine: Mapping[Value, Any] | None, further: Mapping[Value, Any] | None
) -> dict[Value, Any] | None:
    """Merge the values of each label; tuples are concatenated."""
    if mine is None or further is None:
        return None
    total = dict(mine)
    for label, amount in further.items():
        total[label] = total[label] + amount if label in total else amount
    return total


def _merged(mine: Any, further: Any) -> Any:
    return None if mine is None else mine.merge(further)
