"""The true answers of rows: classes or numbers that a table has beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import DataError, ParameterError
from branchwise.table.frames import read_vector
from branchwise.table.raw import Coded, Numbers
from branchwise.table.read import TableFile
from branchwise.table.schema import Schema, Value, value_type


@dataclass(frozen=True)
class Truth:
    """The true classes: ``codes`` into ``labels``, -1 where there is none.

    ``labels`` are the classes of the model and, after them, the unknown ones.
    """

    labels: tuple[Value, ...]
    codes: NDArray[np.int64]
    unknown: tuple[Value, ...]


def true_column(schema: Schema, given: str | None, file: TableFile) -> str:
    """Return the column with the true answers: the target, or one that is named."""
    target = given if given is not None else schema.target
    if target is None:
        raise ParameterError(
            "The model does not know the name of its target. Name the column with the "
            "true classes with --target."
        )
    file.check_names([target])
    return target


def true_classes(
    file: TableFile, target: str, schema: Schema, missing: tuple[str, ...]
) -> Truth:
    """Read the true classes of the rows of a table."""
    column = file.read(only=[target], text_columns=[target], missing=missing)[target]
    raw = read_vector(column, target)
    if not isinstance(raw, Coded) or not (raw.codes >= 0).any():
        raise DataError(
            f"Column {target!r} of {file.label} has no class in any row. This needs "
            "rows whose class is known."
        )
    known = {_written(label): code for code, label in enumerate(schema.classes)}
    place = [known.get(_as_written(text, schema), -1) for text in raw.values]
    unknown = [v for v, at in zip(raw.values, place, strict=True) if at < 0]
    position = {label: len(known) + at for at, label in enumerate(unknown)}
    recode = [
        position[value] if at < 0 else at
        for value, at in zip(raw.values, place, strict=True)
    ]
    codes = np.array([*recode, -1], dtype=np.int64)[raw.codes]
    return Truth((*schema.classes, *unknown), codes, tuple(unknown))


def _written(label: Value) -> object:
    """Return a class in the form in which texts of the table are compared."""
    return str(label).lower() if isinstance(label, bool) else label


def _as_written(text: Value, schema: Schema) -> object:
    """Read the text of a label as the model's classes are: text, number, truth."""
    kind = value_type(schema.classes[0])
    if kind == "text":
        return text
    if kind == "boolean":
        return str(text).lower()
    try:
        return float(text)
    except ValueError:
        return text


def true_numbers(
    file: TableFile, target: str, missing: tuple[str, ...]
) -> NDArray[np.float64]:
    """Read the true numbers of the rows of a table; NaN where there is none."""
    column = file.read(only=[target], number_columns=[target], missing=missing)[target]
    raw = read_vector(column, target)
    if not isinstance(raw, Numbers) or not np.isfinite(raw.values).any():
        raise DataError(
            f"Column {target!r} of {file.label} has no number in any row. This needs "
            "rows whose number is known."
        )
    infinite = np.isinf(raw.values)
    if infinite.any():
        place = file.place(int(np.argmax(infinite)))
        raise DataError(
            f"Column {target!r} of {file.label} is infinite in {place}. Correct the "
            "cell, or leave it empty."
        )
    return raw.values.astype(np.float64)
