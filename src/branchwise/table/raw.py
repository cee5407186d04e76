"""A column as it was read, before the schema decides what it is taken for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import DataError
from branchwise.table.schema import Value

#: Integers beyond this are not all exact in float64.
LARGEST_EXACT = 2**53


@dataclass(frozen=True)
class Coded:
    """Distinct values, and for each row the position of its value (-1: missing).

    ``declared`` values come from a category or dictionary type: their order is
    kept, and those that never occur stay possible.
    """

    codes: NDArray[np.integer[Any]]
    values: tuple[Value, ...]
    declared: bool = False
    ordered: bool = False


@dataclass(frozen=True)
class Numbers:
    """float64 values with NaN for missing; ``integral`` if the source had integers."""

    values: NDArray[np.float64]
    integral: bool


RawColumn = Coded | Numbers


def as_value(name: str, value: Any) -> Value:
    """Turn a category into a plain Python value; intervals and dates become text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if not np.isfinite(value):
            raise DataError(
                f"Column {name!r} has {value} as a category. Categories must be text, "
                "booleans or finite numbers; make it a missing value or drop it."
            )
        return value
    if hasattr(value, "isoformat") or hasattr(value, "closed"):
        # Dates and the intervals of pandas.cut have one obvious name.
        return str(value)
    raise DataError(
        f"Column {name!r} has the category {value!r} of type {type(value).__name__}. "
        "Categories must be text, booleans or numbers; convert the column to text."
    )


def check_exact(name: str, values: NDArray[Any], first_row: int = 0) -> None:
    """Refuse integers that float64 cannot hold: two of them might become one."""
    if values.size == 0 or values.dtype.itemsize < 8:
        return
    beyond = (values > LARGEST_EXACT) | (values < -LARGEST_EXACT)
    if beyond.any():
        row = int(np.argmax(beyond))
        raise DataError(
            f"Column {name!r} has the integer {int(values[row])} in row "
            f"{first_row + row}, beyond "
            "2**53, where float64 is no longer exact. If it is an identifier, leave "
            "it out or pass it as text."
        )
