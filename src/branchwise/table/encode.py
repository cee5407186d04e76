"""A frame -> its schema and encoded columns; a frame and a schema -> columns.

Learning decides the kind of every column and collects its possible values;
encoding turns cells into the codes of a schema learnt before. Both refuse what
they cannot take as it is, naming the column and the row.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import BranchwiseWarning, DataError, ParameterError, quoted
from branchwise.table.frames import Frame, read_vector
from branchwise.table.raw import Coded, Numbers, RawColumn, as_value
from branchwise.table.schema import (
    PLURAL,
    Column,
    Columns,
    Kind,
    Schema,
    Value,
    value_type,
)

Declared = Mapping[Any, Sequence[Any]]


def learn_columns(
    frame: Frame, categorical_features: object, categories: Declared | None
) -> tuple[tuple[Column, ...], Columns]:
    """Find out what every column is, and encode it."""
    if not frame.names:
        raise DataError(
            "X has no columns: Found array with 0 feature(s) (shape="
            f"({frame.n_rows}, 0)) while a minimum of 1 is required."
        )
    if frame.n_rows == 0:
        raise DataError(
            f"X has no rows: Found array with 0 sample(s) (shape=(0, "
            f"{len(frame.names)})) while a minimum of 1 is required."
        )
    declared = _declared_categories(frame, categories)
    as_values = _chosen_columns(frame, categorical_features)
    learnt: list[Column] = []
    data: list[NDArray[Any]] = []
    for index, name in enumerate(frame.names):
        raw = frame.column(index)
        if isinstance(raw, Numbers):
            _refuse_infinite(name, raw)
            if index in declared or as_values[index]:
                raw = _numbers_as_values(raw)
        if isinstance(raw, Numbers):
            missing = bool(np.isnan(raw.values).any())
            learnt.append(Column(name, "numeric", (), missing))
            data.append(raw.values)
        else:
            column, codes = _learn_categories(name, raw, declared.get(index))
            learnt.append(column)
            data.append(codes)
    return tuple(learnt), Columns(frame.n_rows, tuple(data))


def encode_columns(frame: Frame, schema: Schema, used: Sequence[int]) -> Columns:
    """Encode the columns that a tree uses; the others are left empty."""
    source = _match_columns(frame, schema)
    data: list[NDArray[Any]] = [np.empty(0)] * len(schema.columns)
    for index in used:
        column = schema.columns[index]
        data[index] = _encode_one(column, frame.column(source[index]))
    return Columns(frame.n_rows, tuple(data))


def learn_target(
    y: object, n_rows: int, name: str = "y"
) -> tuple[tuple[Value, ...], NDArray[np.intp]]:
    """Return the classes in sorted order, and the class code of every row."""
    raw = read_vector(y, name)
    n_labels = len(raw.values if isinstance(raw, Numbers) else raw.codes)
    if n_labels != n_rows:
        raise DataError(
            f"y must have one label for each row of X. Got {n_labels:,} labels for "
            f"{n_rows:,} rows (inconsistent numbers of samples)."
        )
    missing = np.isnan(raw.values) if isinstance(raw, Numbers) else raw.codes < 0
    if missing.any():
        raise DataError(
            f"y has {int(missing.sum()):,} missing labels, the first in row "
            f"{int(np.argmax(missing))}. Input y contains NaN or None; every row "
            "needs a label, so drop those rows."
        )
    if isinstance(raw, Numbers):
        raw = _labels_from_numbers(raw)
    classes, codes = _occurring(raw)
    return classes, codes.astype(np.intp)


def _labels_from_numbers(raw: Numbers) -> Coded:
    finite = np.isfinite(raw.values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise DataError(f"y is infinite in row {row}. Input y contains infinity.")
    fractional = raw.values != np.rint(raw.values)
    if fractional.any():
        row = int(np.argmax(fractional))
        raise DataError(
            "y must hold classes: text, booleans, categories or whole numbers. Got "
            f"{raw.values[row]} in row {row} (Unknown label type: continuous). Bin "
            "the target, or turn it into text if these numbers are names."
        )
    return _numbers_as_values(raw)


def _occurring(raw: Coded) -> tuple[tuple[Value, ...], NDArray[np.integer[Any]]]:
    """Sort the values that occur, and recode the rows."""
    present = np.flatnonzero(np.bincount(raw.codes[raw.codes >= 0]))
    order = sorted(present.tolist(), key=lambda code: raw.values[code])
    recode = np.full(len(raw.values) + 1, -1, dtype=np.int64)
    recode[order] = np.arange(len(order))
    return tuple(raw.values[code] for code in order), recode[raw.codes]


def _numbers_as_values(raw: Numbers) -> Coded:
    known = ~np.isnan(raw.values)
    uniques, inverse = np.unique(raw.values[known], return_inverse=True)
    codes = np.full(len(raw.values), -1, dtype=np.int64)
    codes[known] = inverse
    if raw.integral or (uniques == np.rint(uniques)).all():
        # A column of whole numbers with gaps arrives as floats: 4 reads better.
        return Coded(codes, tuple(int(value) for value in uniques.tolist()))
    return Coded(codes, tuple(uniques.tolist()))


def _refuse_infinite(name: str, raw: Numbers) -> None:
    infinite = np.isinf(raw.values)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise DataError(
            f"Column {name!r} is infinite in row {row} (Input X contains infinity). "
            "Numbers must be finite; replace it by a large number or by a missing "
            "value."
        )


def _learn_categories(
    name: str, raw: Coded, declared: tuple[Value, ...] | None
) -> tuple[Column, NDArray[Any]]:
    missing = bool((raw.codes < 0).any())
    if declared is not None:
        column = Column(name, "categorical", declared, missing)
        _refuse_undeclared(column, raw)
        return column, _translate(column, raw)
    if raw.declared:
        kind: Kind = "ordinal" if raw.ordered else "categorical"
        _refuse_equal_names(name, raw.values)
        column = Column(name, kind, raw.values, missing)
        return column, _narrow(column, raw.codes)
    values, codes = _occurring(raw)
    column = Column(name, "categorical", values, missing)
    return column, _narrow(column, codes)


def _refuse_equal_names(name: str, values: tuple[Value, ...]) -> None:
    if len(set(values)) < len(values):
        raise DataError(
            f"Column {name!r} has categories that are equal or have the same name. "
            "Give every category a name of its own."
        )
    types = {value_type(value) for value in values}
    if len(types) > 1:
        raise DataError(
            f"Column {name!r} mixes {' and '.join(sorted(PLURAL[t] for t in types))} "
            "in its categories. Convert the categories to one type."
        )


def _refuse_undeclared(column: Column, raw: Coded) -> None:
    occurring = np.flatnonzero(np.bincount(raw.codes[raw.codes >= 0]))
    for code in occurring.tolist():
        value = raw.values[code]
        if value not in column.code_of or (
            value_type(value) != value_type(column.categories[0])
        ):
            row = int(np.argmax(raw.codes == code))
            raise DataError(
                f"Column {column.name!r} has the value {value!r} in row {row}, which "
                f"is not among its declared categories {quoted(column.categories)}. "
                "Add it to categories= or correct the row."
            )


def _narrow(column: Column, codes: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """Store codes in the column's own type, with -1 as the missing code."""
    narrow = codes.astype(column.code_dtype)
    if column.has_missing:
        narrow[codes < 0] = column.missing_code
    return narrow


def _translate(column: Column, raw: Coded) -> NDArray[Any]:
    """Look every distinct value up in the schema; strings are touched once each."""
    table = np.empty(len(raw.values) + 1, dtype=column.code_dtype)
    for code, value in enumerate(raw.values):
        table[code] = column.code_of.get(value, column.unseen_code)
    table[-1] = column.missing_code
    codes: NDArray[Any] = table[raw.codes]
    return codes


def _encode_one(column: Column, raw: RawColumn) -> NDArray[Any]:
    if column.is_numeric:
        return _encode_numeric(column, raw)
    if isinstance(raw, Numbers):
        _refuse_infinite(column.name, raw)
        raw = _numbers_as_values(raw)
    if raw.values and column.value_type is not None:
        got = value_type(raw.values[0])
        if got != column.value_type:
            raise DataError(
                f"Column {column.name!r} was learnt as {PLURAL[column.value_type]} "
                f"(such as {column.categories[0]!r}) but now holds {PLURAL[got]} (such "
                f"as {raw.values[0]!r}). Convert it to the type used for fitting."
            )
    return _translate(column, raw)


def _encode_numeric(column: Column, raw: RawColumn) -> NDArray[Any]:
    if isinstance(raw, Numbers):
        _refuse_infinite(column.name, raw)
        return raw.values
    if not raw.values:  # nothing but missing values, whatever their type
        return np.full(len(raw.codes), np.nan)
    got = value_type(raw.values[0])
    if got == "number":
        values = np.array([*raw.values, np.nan], dtype=np.float64)
        numbers: NDArray[Any] = values[raw.codes]
        return numbers
    raise DataError(
        f"Column {column.name!r} was learnt as numbers but now holds {PLURAL[got]} "
        f"(such as {raw.values[0]!r}). Convert it to numbers."
    )


def _match_columns(frame: Frame, schema: Schema) -> list[int]:
    """For every column of the schema, its position in the frame."""
    if frame.named and schema.named:
        position = {name: index for index, name in enumerate(frame.names)}
        absent = [name for name in schema.names if name not in position]
        if absent:
            raise DataError(
                f"X lacks the columns {quoted(absent)} that the tree was fitted with. "
                f"Got {quoted(frame.names)}."
            )
        # Further columns do no harm: the tree asks for its own by name.
        return [position[name] for name in schema.names]
    if len(frame.names) != len(schema.columns):
        raise DataError(
            f"X has {len(frame.names)} features, but branchwise is expecting "
            f"{len(schema.columns)} features as input: {quoted(schema.names)}."
        )
    if frame.named != schema.named:
        given, learnt = ("has", "without") if frame.named else ("has no", "with")
        warnings.warn(
            f"X {given} column names but the tree was fitted {learnt} them; columns "
            "are matched by position. Pass the same kind of table to both.",
            BranchwiseWarning,
            stacklevel=2,
        )
    return list(range(len(schema.columns)))


def _chosen_columns(frame: Frame, chosen: object) -> list[bool]:
    """Resolve ``categorical_features`` into a mask over the columns."""
    n_columns = len(frame.names)
    if isinstance(chosen, str):
        if chosen in ("from_dtype", "all"):
            return [chosen == "all"] * n_columns
        raise ParameterError(
            "categorical_features must be 'from_dtype', 'all', a mask, a list of "
            f"indices or a list of names. Got {chosen!r}; for one column pass "
            f"[{chosen!r}]."
        )
    try:
        items = [i.item() if isinstance(i, np.generic) else i for i in chosen]  # type: ignore[attr-defined]
    except TypeError:
        raise ParameterError(
            "categorical_features must be 'from_dtype', 'all', a mask, a list of "
            f"indices or a list of names. Got {chosen!r} instead."
        ) from None
    if items and all(isinstance(item, bool) for item in items):
        if len(items) != n_columns:
            raise ParameterError(
                f"categorical_features is a mask of {len(items)} entries, but X has "
                f"{n_columns} columns. Give one entry for each column."
            )
        return items
    mask = [False] * n_columns
    for item in items:
        mask[_column_index(frame, item, "categorical_features")] = True
    return mask


def _column_index(frame: Frame, key: object, parameter: str) -> int:
    if isinstance(key, str) and key in frame.names:
        return frame.names.index(key)
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        if -len(frame.names) <= key < len(frame.names):
            return int(key) % len(frame.names)
        raise ParameterError(
            f"{parameter} names column {key}, but X has {len(frame.names)} columns, "
            f"0 to {len(frame.names) - 1}."
        )
    raise ParameterError(
        f"{parameter} names {key!r}, which is not a column of X. The columns are "
        f"{quoted(frame.names, 20)}."
    )


def _declared_categories(
    frame: Frame, categories: Declared | None
) -> dict[int, tuple[Value, ...]]:
    """Check ``categories`` and key it by column position."""
    if categories is None:
        return {}
    if not isinstance(categories, Mapping):
        raise ParameterError(
            "categories must be a dict of column name (or index) to the list of its "
            f"possible values. Got {type(categories).__name__} instead."
        )
    declared: dict[int, tuple[Value, ...]] = {}
    for key, values in categories.items():
        index = _column_index(frame, key, "categories")
        name = frame.names[index]
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            raise ParameterError(
                f"categories[{name!r}] must be a list of values. Got {values!r}."
            )
        plain = tuple(as_value(name, value) for value in values)
        if not plain or len(set(plain)) < len(plain):
            raise ParameterError(
                f"categories[{name!r}] must list at least one value and each only "
                f"once. Got {quoted(plain)}."
            )
        if len({value_type(value) for value in plain}) > 1:
            raise ParameterError(
                f"categories[{name!r}] mixes types: {quoted(plain)}. Give all values "
                "as text, all as numbers or all as booleans."
            )
        declared[index] = plain
    return declared
