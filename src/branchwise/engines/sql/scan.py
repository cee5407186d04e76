"""Scan of a database by queries: the summary of its rows, and the plan.

Columns follow the rules of ``data/encode.py``; but distinct values are fetched with
their counts, and errors name no row, as rows of a database have no numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.columns import Coded, Numbers, RawColumn, check_no_dates
from branchwise.data.conventions.declared_columns import (
    Order,
    chosen_columns,
    declared_categories,
)
from branchwise.data.conventions.number_format import detect_texts
from branchwise.data.descriptions import ColumnStatistics
from branchwise.data.encode import learn_column
from branchwise.data.exact_sums import lowest_bit
from branchwise.data.frames import Frame
from branchwise.data.table_schema import (
    Column,
    Value,
    value_type,
)
from branchwise.data.target import Spread, class_codes, occurring_classes
from branchwise.data.weights import WeightSummary, long_sum
from branchwise.engines.base import Plan, Task, attributes_of
from branchwise.engines.scan import finalise, weigh_again
from branchwise.engines.sql.connections import (
    Binder,
)
from branchwise.engines.sql.date_cells import as_read
from branchwise.engines.sql.queries import weight_of
from branchwise.engines.sql.table_columns import Source
from branchwise.engines.summaries import ColumnSummary, NumberSummary, Summary
from branchwise.errors import BranchwiseWarning, DataError, counted, quoted
from branchwise.files.options import as_number

_LOW_BITS = np.int64(-(1 << 27))


#: Products of such whole numbers and half the bits of a number are exact.
_FEW = 1 << 26


def learn(source: Source, task: Task) -> Plan:
    """Summarise the rows of a source by queries, and return the plan."""
    frame = source.frame()
    _check_equal_names(source)
    source.features = {feature.name: feature for feature in task.date_features}
    attributes = attributes_of(frame, task)
    special = [task.target, *([] if task.weight is None else [task.weight])]
    source.prepare([*attributes.names, *special])
    learning = _Learning(source, task)
    statistics = learning.statistics(attributes)

    def again(request: object, plan: Plan) -> Summary | WeightSummary:
        if request is weigh_again:
            return learning.weigh(plan)
        return replace(learning, plan=plan).statistics(attributes)

    return finalise(statistics, task, again)


def _check_equal_names(source: Source) -> None:
    names = source.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(
            f"The query has more than one column named {quoted(twice)}. Give each a "
            "name of its own: SELECT a.x AS a_x."
        )


@dataclass
class _Learning:
    """Fetches summaries; with a plan, only of rows with a weight on its grid."""

    source: Source
    task: Task
    plan: Plan | None = None

    def statistics(self, attributes: Frame) -> Summary:
        """Summarise the table."""
        as_values = chosen_columns(attributes, self.task.categorical_features)
        declared = declared_categories(attributes, self.task.categories)
        numeric = [
            name
            for at, name in enumerate(attributes.names)
            if self._is_number(name) and not (as_values[at] or at in declared)
        ]
        n_rows, known = self._profile(attributes.names, numeric)
        if not n_rows:
            return Summary()
        weights = None if self.task.weight is None else self._weights()
        columns = []
        for at, name in enumerate(attributes.names):
            if name in numeric:
                found = self._numeric(name, known[name])
            else:
                found = self._values(name, as_values[at], declared.get(at))
            if self.task.rejects_missing and found.column.has_missing:
                raise DataError(
                    f"Column {name!r} has missing values, and missing='error' allows "
                    "none. Fill them or choose another policy: 'branch', 'split', "
                    "'largest' or 'node'."
                )
            columns.append(found)
        statistics = Summary(
            n_rows, tuple(columns), weights=weights, max_exact=self.task.max_exact
        )
        return self._with_target(statistics)

    def _is_number(self, name: str) -> bool:
        return self.source.cells(name).kind == "number"

    def _profile(
        self, names: Sequence[str], numeric: Sequence[str]
    ) -> tuple[int, Mapping[str, ColumnStatistics]]:
        """Count the rows and the cells of numeric columns; reject invalid numbers."""
        wanted = ["COUNT(*)"]
        checked = [name for name in names if self._is_number(name)]
        special = [n for n in (self.task.target, self.task.weight) if n is not None]
        for name, what in zip(special, ("y", f"Column {special[-1]!r}"), strict=False):
            check_no_dates(what, self.source.cells(name).date)
        checked += [name for name in special if self._is_number(name)]
        for name in checked:
            cells = self.source.cells(name)
            wanted += [
                f"COUNT({cells.number})",
                _times(f"abs({cells.number}) > 1.7976931348623157e308"),
                _times(cells.inexact),
                f"MIN({cells.number})",
                f"MAX({cells.number})",
            ]
        types = "i" + "iiiff" * len(checked)
        found: list[Any] = []
        for first in range(0, len(wanted), 300):
            chunk = slice(first, first + 300)
            requested = (
                f"SELECT {', '.join(wanted[chunk])} FROM {self.source.relation} "  # noqa: S608
                "AS source"
            )
            result = self.source.connection.fetch(requested, (), types[chunk])
            found += [each[0].item() for each in result]
        n_rows, known = found[0], {}
        for at, name in enumerate(checked):
            number, infinite, large, *span = found[1 + 5 * at : 6 + 5 * at]
            what = "y" if name == self.task.target else f"Column {name!r}"
            if infinite:
                raise DataError(
                    f"{what} is infinite in {counted(infinite, 'row')}. Numbers must "
                    "be finite; replace it by a large number or by a missing value."
                )
            if large:
                raise DataError(
                    f"{what} has integers beyond 2**53 in {counted(large, 'row')}, "
                    "where float64 is no longer exact. If it is an identifier, leave "
                    "it out or cast it to text in a query."
                )
            # Of two zeros that are equal there is one.
            span = [end + 0.0 for end in span] if number else []
            known[name] = ColumnStatistics(number, n_rows - number, *span)
        return n_rows, {name: known[name] for name in numeric}

    def _counted(self, name: str) -> Iterator[tuple[Floats, Ints]]:
        """Return the distinct numbers of a column in rows that have a weight."""
        binder = Binder(self.source.connection.dialect)
        weight = "1"
        if self.plan is not None:
            weight = weight_of(self.source, self.plan, binder)
        elif self.task.weight is not None:
            weight = self.source.cells(self.task.weight).number
        return self.tallied(self.source.cells(name).number, binder, weight)

    def tallied(
        self, expression: str, binder: Binder | None = None, weight: str = "1"
    ) -> Iterator[tuple[Floats, Ints]]:
        """Yield distinct numbers and how often they occur, some at a time."""
        requested = (
            f"SELECT {expression} AS v, COUNT(*) AS n FROM {self.source.relation} "  # noqa: S608
            f"AS source WHERE {weight} > 0 GROUP BY 1"
        )
        values = () if binder is None else binder.values
        for numbers, times in self.source.connection.stream(requested, values, "fi"):
            known = ~np.isnan(numbers)
            yield numbers[known] + 0.0, times[known]

    def _numbers(self, name: str, factor: int = 1) -> NumberSummary:
        most = self.task.max_exact
        summary = NumberSummary(np.empty(0), np.empty(0), np.empty(0, dtype=np.intp))
        for numbers, times in self._counted(name):
            chunk = NumberSummary.of_values(numbers * factor, times.astype(np.intp))
            summary = summary.merge(chunk.joined(0).within(most), most)
        return summary

    def _numeric(self, name: str, seen: ColumnStatistics) -> ColumnSummary:
        column = Column(name, "numeric", (), seen.missing > 0, statistics=seen)
        cells = self.source.cells(name)
        if cells.feature is not None:
            column = replace(column, number_format=cells.feature)
        if cells.date is None:
            return ColumnSummary(column, numbers=self._numbers(name))
        column, factor = as_read(column, cells.date, cells.type)
        numbers = self._numbers(name, factor)
        return ColumnSummary(column, numbers=numbers, unit=cells.date.unit)

    def _values(
        self, name: str, as_value: bool, declared: tuple[Value, ...] | None
    ) -> ColumnSummary:
        found = self.source.distinct(name)
        raw = found.raw
        said = as_value or declared is not None or name in self.source.text_columns
        if isinstance(raw, Coded) and not (said or raw.declared):
            _warn_of_numbers(name, [str(value) for value in raw.values[:_SAMPLE]])
        if declared is not None:
            _check_undeclared(name, raw, declared)
        column, _ = learn_column(name, raw, as_value or declared is not None, declared)
        # It was learnt from distinct cells; these are as many as there are rows.
        gone = np.isnan(raw.values) if isinstance(raw, Numbers) else raw.codes < 0
        times = np.array(found.count, dtype=np.int64)
        statistics = ColumnStatistics(int(times[~gone].sum()), int(times[gone].sum()))
        fixed = declared is not None or (isinstance(raw, Coded) and raw.declared)
        return ColumnSummary(replace(column, statistics=statistics), fixed)

    def _weights(self) -> WeightSummary:
        name = str(self.task.weight)
        cells = self.source.cells(name)
        if cells.kind != "number":
            raise DataError(f"Column {name!r} must hold the weights of the rows.")
        requested = (
            f"SELECT {_times(f'{cells.number} IS NULL')}, "  # noqa: S608
            f"{_times(f'{cells.number} < 0')} FROM {self.source.relation} AS source"
        )
        gone, negative = self.source.connection.fetch(requested, (), "ii")
        if gone[0] or negative[0]:
            problem = "missing" if gone[0] else "negative"
            raise DataError(
                f"sample_weight must be finite and not negative. Column {name!r} is "
                f"{problem} in {counted(int((gone + negative)[0]), 'row')}."
            )
        return _weighed(self.tallied(cells.number))

    def weigh(self, plan: Plan) -> WeightSummary:
        """Summarise all weights on the grid of a plan."""
        binder = Binder(self.source.connection.dialect)
        weight = weight_of(self.source, plan, binder)
        return _weighed(self.tallied(weight, binder))

    def _with_target(self, statistics: Summary) -> Summary:
        """Add the summary of the target."""
        if self.task.is_regression:
            return replace(statistics, spread=self._spread(statistics.n_rows))
        found = self.source.distinct(self.task.target)
        raw, times = found.raw, np.array(found.count)
        gone = np.isnan(raw.values) if isinstance(raw, Numbers) else raw.codes < 0
        self._check_no_missing(int(times[gone].sum()))
        if isinstance(raw, Numbers) and (raw.values != np.rint(raw.values)).any():
            raise DataError(
                "y must hold classes: text, booleans, categories or whole numbers. "
                f"Column {self.task.target!r} has fractions. Bin it, or cast it to "
                "text in a query if these numbers are names."
            )
        classes, labels = occurring_classes(raw, None)
        codes = class_codes(labels, classes)
        rows = np.bincount(codes, times, len(classes)).astype(int).tolist()
        statistics = replace(statistics, labels=dict(zip(classes, rows, strict=True)))
        if self.task.priors is None:
            return statistics
        labels_of = [classes[code] for code in codes]
        by_key = dict(zip(found.keys, labels_of, strict=True))
        weights = self._label_weights(statistics, by_key)
        return replace(statistics, label_weights=weights)

    def _check_no_missing(self, differences: int) -> None:
        if differences:
            raise DataError(
                f"y is missing in {counted(differences, 'row')}: column "
                f"{self.task.target!r} must have a value in every row. Leave the "
                "others out with a query."
            )

    def _spread(self, n_rows: int) -> Spread:
        cells = self.source.cells(self.task.target)
        if cells.kind != "number":
            raise DataError(
                f"y must hold numbers to be predicted. Column {self.task.target!r} "
                "does not; cast it in a query, or use a classifier."
            )
        known = sum(int(times.sum()) for _, times in self.tallied(cells.number))
        self._check_no_missing(n_rows - known)
        spread = Spread()
        for numbers, _ in self._counted(self.task.target):
            spread = spread.merge(Spread.of(numbers))
        return spread

    def _label_weights(
        self, statistics: Summary, by_key: Mapping[Any, Value]
    ) -> Mapping[Value, tuple[float, ...]]:
        """Add up the weights of each class."""
        labels = statistics.labels or {}
        if self.task.weight is None:
            return {label: (float(rows), 0.0) for label, rows in labels.items()}
        requested = (
            f"SELECT {self.source.cells(self.task.target).key}, "  # noqa: S608
            f"{self.source.cells(self.task.weight).number}, COUNT(*) "
            f"FROM {self.source.relation} AS source GROUP BY 1, 2"
        )
        sums: dict[Value, tuple[float, ...]] = dict.fromkeys(labels, ())
        for keys, weights, times in self.source.connection.stream(requested, (), "ofi"):
            of_row = [by_key[key] for key in keys.tolist()]
            for label in labels:
                own = np.array([each == label for each in of_row])
                sums[label] += exact_sum(weights[own], times[own])
        return sums


#: How many values are looked at for numbers that are not written plainly.
_SAMPLE = 500


def _warn_of_numbers(name: str, texts: Sequence[str]) -> None:
    """Warn of text that is read as numbers from files: types of databases are kept."""
    dressed = [text for text in texts if as_number(text) is None]
    if dressed and detect_texts(texts).formats:
        warnings.warn(
            f"Column {name!r} has numbers as text, such as {dressed[0]!r}, and each of "
            "them is a value of its own. Cast them to numbers in a query; if they are "
            f"names, name the column among the categorical ones.",
            BranchwiseWarning,
            stacklevel=2,
        )


def _times(test: str) -> str:
    """Return the expression for how often a condition holds."""
    return f"COALESCE(SUM(CASE WHEN {test} THEN 1 ELSE 0 END), 0)"


def _weighed(tallied: Iterator[tuple[Floats, Ints]]) -> WeightSummary:
    total = WeightSummary()
    for weights, times in tallied:
        cases = int(times[weights != 0].sum())
        chunk = WeightSummary(exact_sum(weights, times), lowest_bit(weights), cases)
        total = total.merge(chunk)
    return total


def exact_sum(numbers: Floats, times: Ints) -> tuple[float, ...]:
    """Return the sum of numbers that occur so often, as two floats; see long_sum."""
    high = (numbers.view(np.int64) & _LOW_BITS).view(np.float64)
    low = numbers - high
    chunks = []
    left = times.copy()
    while left.any():
        few = np.minimum(left, _FEW).astype(np.float64)
        chunks += [few * high, few * low]
        left -= few.astype(left.dtype)
    return long_sum(np.concatenate(chunks) if chunks else np.zeros(1))


def _check_undeclared(name: str, raw: RawColumn, declared: Sequence[Value]) -> None:
    values: Sequence[Value] = raw.values.tolist() if isinstance(raw, Numbers) else ()
    if isinstance(raw, Coded):
        values = [raw.values[code] for code in sorted(set(raw.codes.tolist()) - {-1})]
    for value in values:
        if value != value:
            continue
        if value not in declared or value_type(value) != value_type(declared[0]):
            parameter = "order=" if isinstance(declared, Order) else "categories="
            raise DataError(
                f"Column {name!r} has the value {value!r}, which is not among its "
                f"declared categories {quoted(declared)}. Add it to {parameter} or "
                "correct the table."
            )
