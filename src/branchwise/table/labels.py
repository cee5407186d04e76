"""What is to be predicted -> the class, or the number, of every row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import DataError, counted, quoted
from branchwise.table.encoded import EncodedLabels
from branchwise.table.frames import read_labels, read_quantities
from branchwise.table.raw import Coded, Numbers, RawColumn, refuse_mixed
from branchwise.table.schema import Value
from branchwise.table.values import numbers_as_values, occurring


def learn_target(
    y: object, n_rows: int | None = None, declared: Sequence[Value] | None = None
) -> tuple[tuple[Value, ...], NDArray[np.intp]]:
    """Return the classes in sorted order, and the class code of every row.

    ``declared`` are the possible classes, in their order.
    """
    if isinstance(y, EncodedLabels):
        _refuse_other_length(len(y), n_rows)
        if declared is None:
            return y.classes, y.codes
        classes, raw = y.classes, Coded(y.codes, y.classes)
    else:
        classes, raw = occurring_classes(read_labels(y), n_rows)
    if declared is not None:
        check_classes(classes, declared)
        classes = tuple(declared)
    return classes, class_codes(raw, classes)


def occurring_classes(
    raw: RawColumn, n_rows: int | None
) -> tuple[tuple[Value, ...], Coded]:
    """Return the classes that occur in a target, sorted, and the target as names."""
    raw = _complete(raw, n_rows)
    if isinstance(raw, Numbers):
        raw = _labels_from_numbers(raw)
    refuse_mixed("y", raw.values)
    return occurring(raw), raw


def class_codes(raw: Coded, classes: Sequence[Value]) -> NDArray[np.intp]:
    """Return the class code of every row; -1 where it is none of the classes."""
    code_of = {label: code for code, label in enumerate(classes)}
    table = np.array([code_of.get(value, -1) for value in raw.values], dtype=np.intp)
    return table.take(raw.codes)


def check_classes(found: Sequence[Value], declared: Sequence[Value]) -> None:
    """Refuse declared classes that are not all, or that say one twice."""
    if set(found) <= set(declared) and len(set(declared)) == len(declared):
        return
    raise DataError(
        f"classes must name every class of y once. Got {quoted(declared)}, and y has "
        f"{quoted(found)}."
    )


def learn_numbers(
    y: object, n_rows: int | None = None, criterion: object = "variance"
) -> NDArray[np.float64]:
    """Return the number of every row, refusing what is no finite number."""
    numbers = plain_numbers(read_quantities(y), n_rows)
    if criterion == "poisson":
        check_rates(float(numbers.min()), float(numbers.max()))
    return numbers


def plain_numbers(raw: RawColumn, n_rows: int | None) -> NDArray[np.float64]:
    """Return the numbers of a target, refusing what is no finite number."""
    raw = _complete(raw, n_rows)
    if not isinstance(raw, Numbers):
        example = next(iter(raw.values), None)
        raise DataError(
            "y must hold numbers to be predicted. Got "
            f"{example!r} among its values; convert it, or use a classifier."
        )
    finite = np.isfinite(raw.values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise DataError(
            f"y is infinite in row {row}. Input y contains infinity; every row needs "
            "a finite number."
        )
    return raw.values.astype(np.float64)


def check_rates(low: float, high: float) -> None:
    """Refuse numbers that are no rates of events: negative ones, or nothing but 0."""
    if low < 0 or high == 0:
        raise DataError(
            "criterion 'poisson' needs numbers y that are not negative and not all 0. "
            f"Got numbers from {low:g} to {high:g}; use 'variance'."
        )


def _complete(raw: Numbers | Coded, n_rows: int | None) -> Numbers | Coded:
    """Return the target: as many entries as there are rows, none of them missing."""
    n_labels = len(raw.values if isinstance(raw, Numbers) else raw.codes)
    _refuse_other_length(n_labels, n_rows)
    missing = np.isnan(raw.values) if isinstance(raw, Numbers) else raw.codes < 0
    if missing.any():
        raise DataError(
            f"y is missing in {counted(int(missing.sum()), 'row')}, the first of them "
            f"row {int(np.argmax(missing))}. Input y contains NaN or None, but every "
            "row needs a label; drop the rows without."
        )
    return raw


def _refuse_other_length(n_labels: int, n_rows: int | None) -> None:
    if n_rows is not None and n_labels != n_rows:
        raise DataError(
            f"y must have one label for each row of X. Got "
            f"{counted(n_labels, 'label')} for {counted(n_rows, 'row')} "
            "(inconsistent numbers of samples)."
        )


def _labels_from_numbers(raw: Numbers) -> Coded:
    finite = np.isfinite(raw.values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise DataError(
            f"y is infinite in row {row}. Input y contains infinity; a class must be "
            "text, a boolean, a category or a whole number."
        )
    fractional = raw.values != np.rint(raw.values)
    if fractional.any():
        row = int(np.argmax(fractional))
        raise DataError(
            "y must hold classes: text, booleans, categories or whole numbers. Got "
            f"{raw.values[row]} in row {row} (Unknown label type: continuous). Bin "
            "the target, or turn it into text if these numbers are names."
        )
    return numbers_as_values(raw)
