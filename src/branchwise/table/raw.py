"""A column as it was read, before the schema decides what it is taken for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import DataError, quoted
from branchwise.table.schema import PLURAL, Value, value_type

#: What to do with dates and times.
DATE_ADVICE = (
    "branchwise takes text, categories, booleans and numbers. Turn it into a number "
    "(such as the year or an age in days) or into text, or leave the column out."
)
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
    """float64 values with NaN for missing."""

    values: NDArray[np.float64]


RawColumn = Coded | Numbers


@dataclass(frozen=True)
class KeptColumn:
    """What reads a column that has been read already."""

    raw: RawColumn

    def __call__(self) -> RawColumn:
        """Return the column."""
        return self.raw


def narrow_codes(raw: RawColumn) -> RawColumn:
    """Return a column whose codes, if it has some, take as little room as they can."""
    if not isinstance(raw, Coded):
        return raw
    narrow = np.min_scalar_type(-max(len(raw.values), 1))
    return replace(raw, codes=raw.codes.astype(narrow, copy=False))


def as_value(what: str, value: Any) -> Value:
    """Turn a category into a plain Python value; intervals and dates become text.

    ``what`` is what messages call the column, such as ``Column 'age'``.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        # An enumeration of strings, too, is known by what it contains.
        return str.__str__(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise DataError(
                f"{what} has the category {shortened(value)}. Whole numbers must fit "
                "64 bits; pass such names as text."
            )
        return int(value)
    if isinstance(value, float):
        if not np.isfinite(value):
            raise DataError(
                f"{what} has {value} as a category. Categories must be text, "
                "booleans or finite numbers; make it a missing value or drop it."
            )
        return float(value)
    if hasattr(value, "isoformat") or hasattr(value, "closed"):
        # Dates and the intervals of pandas.cut have one obvious name.
        return str(value)
    raise DataError(
        f"{what} has the category {shortened(value)} of type {type(value).__name__}. "
        "Categories must be text, booleans or numbers; convert them to text."
    )


def refuse_inexact(what: str, value: int, row: int) -> NoReturn:
    """Refuse an integer that float64 cannot hold."""
    raise DataError(
        f"{what} has the integer {shortened(value)} in row {row}, beyond 2**53, where "
        "float64 is no longer exact. If it is an identifier, leave it out or pass it "
        "as text."
    )


def check_exact(what: str, values: NDArray[Any]) -> None:
    """Refuse integers that float64 cannot hold: two of them might become one."""
    if values.size == 0 or values.dtype.itemsize < 8:
        return
    if values.max() > LARGEST_EXACT or values.min() < -LARGEST_EXACT:
        beyond = (values > LARGEST_EXACT) | (values < -LARGEST_EXACT)
        row = int(np.argmax(beyond))
        refuse_inexact(what, int(values[row]), row)


def shortened(cell: object, limit: int = 40) -> str:
    """Show a cell in a message, cut off where it gets long."""
    try:
        text = repr(cell)
    except ValueError:  # an integer of more digits than Python will print
        return "(thousands of digits)"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def refuse_mixed(what: str, values: tuple[Value, ...]) -> None:
    """Refuse values of several types, of which no order makes sense."""
    types = {value_type(value) for value in values}
    if len(types) > 1:
        raise DataError(
            f"{what} mixes {' and '.join(sorted(PLURAL[t] for t in types))} as "
            f"categories: {quoted(values)}. Convert them to one type."
        )
