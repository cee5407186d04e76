"""The cases of a node: how a column is distributed there, and rows to look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.conventions.date_format import read_text
from branchwise.data.conventions.number_format import NumberFormat, parse_texts
from branchwise.data.conventions.threshold_positions import between
from branchwise.data.table_schema import Column, Schema, Value
from branchwise.engines.memory import Training
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.files.options import as_number, as_truth
from branchwise.recipe import Recipe
from branchwise.text.bounds import shown

#: Bars of the distribution of a number.
_BINS = 40
#: The most thresholds to choose from; of more a part is offered, evenly.
MOST_THRESHOLDS = 1_000
#: The most rows of a node that the page gets.
MOST_ROWS = 200


class NodeCases:
    """The rows, or fractions of rows, that arrive at a node.

    Parameters
    ----------
    schema : Schema
        Columns and classes.
    rows : Training
        The encoded training rows.
    row : array of int
        The positions of the rows at the node.
    weight : array of float or None
        Their weights there; None is 1 each.
    """

    def __init__(
        self, schema: Schema, rows: Training, row: Ints, weight: Floats | None
    ) -> None:
        self.schema, self.rows, self.row = schema, rows, row
        self.weight = np.ones(len(row)) if weight is None else weight

    def distribution(self, index: int, recipe: Recipe) -> dict[str, Any]:
        """Return how the values of a column are distributed, by class."""
        column = self.schema.columns[index]
        cells = self.rows.data.data[index][self.row]
        if column.is_numeric:
            return self._of_numbers(column, cells.astype(np.float64), recipe)
        codes = np.asarray(cells, dtype=np.intp)
        known = (codes >= 0) & (codes < len(column.categories))
        counts = self._counts(codes, len(column.categories), known)
        return {
            "column": column.name,
            "kind": "category",
            "values": list(column.categories),
            "counts": counts.tolist(),
            "missing": float(self.weight[~known].sum()),
        }

    def _of_numbers(
        self, column: Column, numbers: Floats, recipe: Recipe
    ) -> dict[str, Any]:
        known = ~np.isnan(numbers)
        distinct = np.unique(numbers[known])
        found: dict[str, Any] = {
            "column": column.name,
            "kind": "number",
            "missing": float(self.weight[~known].sum()),
            "min": float(distinct[0]) if len(distinct) else None,
            "max": float(distinct[-1]) if len(distinct) else None,
        }
        if not len(distinct):
            return found | {"edges": [], "counts": [], "thresholds": []}
        edges = _edges(distinct)
        bins = np.searchsorted(edges, numbers, side="right") - 1
        bins = np.clip(bins, 0, len(edges) - 2)
        thresholds = _thresholds(column, distinct, recipe)
        found |= {
            "edges": edges.tolist(),
            "counts": self._counts(bins, len(edges) - 1, known).tolist(),
            "thresholds": thresholds.tolist(),
        }
        if column.date is not None:
            found["shown"] = [shown(column, float(each)) for each in thresholds]
        return found

    def _counts(
        self, position: Ints, n_positions: int, known: NDArray[np.bool_]
    ) -> Floats:
        """Return the weight at each position, by class if there are classes."""
        n_classes = max(self.rows.n_classes, 1)
        target = np.zeros(len(self.row), dtype=np.intp)
        if self.rows.n_classes:
            target = self.rows.target[self.row].astype(np.intp)
        cell = position[known] * n_classes + target[known]
        size = n_positions * n_classes
        counts: Floats = np.bincount(cell, self.weight[known], size).astype(np.float64)
        if not self.rows.n_classes:
            return counts
        return counts.reshape(n_positions, n_classes)

    def table(self, most: int) -> dict[str, Any]:
        """Return the first rows with their cells, the target last."""
        if most > MOST_ROWS:
            raise ParameterError(
                f"rows must be a whole number from 0 to {MOST_ROWS}. Got {most:,}."
            )
        names = [column.name for column in self.schema.columns]
        target = self.schema.target or "target"
        picked = self.row[:most].tolist()
        rows = [[*self._cells(row), self._target(row)] for row in picked]
        return {
            "columns": [*names, target],
            "rows": rows,
            "numbers": picked,
            "n_rows": len(self.row),
        }

    def _cells(self, row: int) -> list[Value | None]:
        cells = zip(self.schema.columns, self.rows.data.data, strict=True)
        return [_cell(column, values[row].item()) for column, values in cells]

    def _target(self, row: int) -> Value:
        target = self.rows.target[row].item()
        if not self.rows.n_classes:
            return float(target)
        return self.schema.classes[int(target)]


def _edges(distinct: Floats) -> Floats:
    """Return the edges of bars; few whole numbers have one bar each."""
    low, high = float(distinct[0]), float(distinct[-1])
    whole = bool((distinct == np.rint(distinct)).all())
    if whole and high - low < _BINS:
        return np.arange(low - 0.5, high + 1.0)
    if low == high:
        return np.array([low - 0.5, low + 0.5])
    # Not of the difference, which may be infinite.
    shares = np.linspace(0.0, 1.0, _BINS + 1)
    edges: Floats = low * (1.0 - shares) + high * shares
    return np.unique(edges)


def _thresholds(column: Column, distinct: Floats, recipe: Recipe) -> Floats:
    """Return thresholds between neighbours, where the recipe places them."""
    low, high = distinct[:-1], distinct[1:]
    if len(low) > MOST_THRESHOLDS:
        kept = np.linspace(0, len(low) - 1, MOST_THRESHOLDS).round().astype(np.intp)
        low, high = low[kept], high[kept]
    position = column.position(recipe.threshold)
    if position == "value":
        return low
    return between(low, high, position)


def _cell(column: Column, value: float) -> Value | None:
    """Return a cell as it was in the table; None is a missing one."""
    if column.is_numeric:
        return None if np.isnan(value) else shown(column, float(value))
    known = 0 <= value < len(column.categories)
    return column.categories[int(value)] if known else None


def typed_row(schema: Schema, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the page with the types of its columns; absent ones are missing.

    Cells may be texts as they are typed in; empty ones are missing.
    """
    known = {column.name: column for column in schema.columns}
    unknown = [name for name in row if name not in known and name != schema.target]
    if unknown:
        raise DataError(
            f"row has no such column in the table: {quoted(unknown)}. The columns are "
            f"{quoted(known)}.",
            column=str(unknown[0]),
        )
    return {name: _typed(column, row.get(name)) for name, column in known.items()}


def _typed(column: Column, cell: Value | None) -> Value | None:
    if cell is None or cell == "":
        return None
    if column.date is not None:
        text = str(cell)
        if read_text(text, column.date) is None:
            raise _wrong(column, text, f"{column.date.what} written as {column.date}")
        return text
    if column.is_numeric:
        number = _number(column, cell) if isinstance(cell, str) else cell
        if number is None or isinstance(number, bool):
            raise _wrong(column, cell, "a number")
        return number
    if not isinstance(cell, str) or column.value_type == "text":
        return str(cell) if column.value_type == "text" else cell
    typed = as_number(cell) if column.value_type == "number" else as_truth(cell)
    if typed is None:
        raise _wrong(column, cell, f"a {column.value_type}")
    return typed


def _number(column: Column, text: str) -> float | None:
    """Read a number as it is written in the table, or plainly."""
    number = as_number(text)
    if number is None and isinstance(column.number_format, NumberFormat):
        return parse_texts([text], column.number_format)[0]
    return number


def _wrong(column: Column, cell: Value, wanted: str) -> DataError:
    return DataError(
        f"Column {column.name!r} takes {wanted}. Got {cell!r}; correct it, or leave it "
        "empty if it is missing.",
        column=column.name,
    )
