"""Which encoded rows fulfil a condition, and which rule of a list comes first.

A missing value fulfils ``is missing`` and nothing else. A value that training did not
have fulfils nothing, unless it is taken for a missing one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Ints
from branchwise.table.schema import Column, Columns, Value
from branchwise.words import Condition

Mask = NDArray[np.bool_]
#: So many cells of known answers are kept; rules that follow each other share many.
_KEPT_CELLS = 2**26


class Coverage:
    """Evaluates conditions on rows, each condition once.

    Parameters
    ----------
    columns : sequence of Column
        What the columns are.
    data : Columns
        The encoded rows.
    unseen_is_missing : bool
        Whether a value that training did not have is taken for a missing one.
    """

    def __init__(
        self, columns: Sequence[Column], data: Columns, unseen_is_missing: bool = False
    ) -> None:
        self._columns = columns
        self._data = data
        self._unseen_is_missing = unseen_is_missing
        self._index = {column.name: at for at, column in enumerate(columns)}
        self._known: dict[Condition, Mask] = {}

    def holds(self, condition: Condition) -> Mask:
        """Tell which rows fulfil a condition."""
        mask = self._known.get(condition)
        if mask is None:
            if len(self._known) * self._data.n_rows > _KEPT_CELLS:
                self._known.clear()
            mask = self._known[condition] = self._evaluated(condition)
        return mask

    def covered(self, conditions: Iterable[Condition]) -> Mask:
        """Tell which rows fulfil all conditions."""
        mask = np.ones(self._data.n_rows, dtype=bool)
        for condition in conditions:
            mask &= self.holds(condition)
        return mask

    def first(self, rules: Sequence[Sequence[Condition]]) -> Ints:
        """Return the first rule that each row fulfils, one past the last for none."""
        first = np.full(self._data.n_rows, len(rules), dtype=np.intp)
        for number, conditions in enumerate(rules):
            first[self.covered(conditions) & (first == len(rules))] = number
        return first

    def _evaluated(self, condition: Condition) -> Mask:
        index = self._index[condition.column]
        column, cells = self._columns[index], self._data.data[index]
        if column.is_numeric:
            return _number_holds(condition, cells)
        table = np.zeros(column.unseen_code + 1, dtype=bool)
        _mark_codes(table, condition, column)
        table[column.unseen_code] = (
            self._unseen_is_missing and table[column.missing_code]
        )
        mask: Mask = table[cells]
        return mask


def _number_holds(condition: Condition, cells: NDArray[Any]) -> Mask:
    """Evaluate a condition on numbers; comparisons with NaN do not hold."""
    value: Any = condition.value
    match condition.op:
        case "is missing":
            mask: Mask = np.isnan(cells)
        case "is known":
            mask = ~np.isnan(cells)
        case "<=":
            mask = cells <= value
        case ">":
            mask = cells > value
        case _:
            above, at_most = value
            mask = (cells > above) & (cells <= at_most)
    return mask


def _mark_codes(table: Mask, condition: Condition, column: Column) -> None:
    """Mark the codes that fulfil a condition."""
    possible = slice(0, column.missing_code)
    if condition.op == "is missing":
        table[column.missing_code] = True
        return
    table[possible] = condition.op in ("not in", "is known")
    if condition.value is None:
        return
    value: Any = condition.value
    values: tuple[Value, ...] = value if isinstance(value, tuple) else (value,)
    table[[column.code_of[v] for v in values]] = condition.op != "not in"
