"""Learning the schema of a table, and encoding tables by a schema.

Learning decides the kind of every column and collects its possible values;
encoding converts cells to the codes of a schema. Both raise :class:`DataError` for
unsupported cells, with the column and the row.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrow import number_cells
from branchwise.data.as_numbers import as_written, check_numbers
from branchwise.data.columns import (
    LARGEST_EXACT,
    Coded,
    Numbers,
    RawColumn,
    check_mixed,
    present,
)
from branchwise.data.conventions.declared_columns import (
    Declared,
    Order,
    check_column_names,
    chosen_columns,
    declared_categories,
)
from branchwise.data.descriptions import ColumnStatistics
from branchwise.data.encoded_table import EncodedTable, LRUCache
from branchwise.data.frames import Frame
from branchwise.data.table_schema import (
    PLURAL,
    Column,
    Columns,
    Kind,
    Schema,
    Value,
    ValueType,
    check_used,
    value_type,
)
from branchwise.errors import BranchwiseWarning, DataError, quoted
from branchwise.threads import in_order


def occurring(raw: Coded) -> tuple[Value, ...]:
    """Return the values that occur, sorted."""
    return tuple(sorted(raw.values[code] for code in present(raw)))


def numbers_as_values(raw: Numbers) -> Coded:
    """Convert numbers to categories, dates to texts."""
    if raw.date is not None:
        from branchwise.data.conventions.dates import as_texts  # noqa: PLC0415  (few columns)

        return Coded(*as_texts(raw.values, raw.date))
    distinct, codes = _distinct_numbers(raw.values)
    if ((distinct == np.rint(distinct)) & (np.abs(distinct) <= LARGEST_EXACT)).all():
        # Integers with missing values arrive as floats: 4 is shown instead of 4.0.
        return Coded(codes, tuple(int(value) for value in distinct.tolist()))
    return Coded(codes, tuple(distinct.tolist()))


def _distinct_numbers(
    values: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return the distinct numbers, sorted, and for each row which it has."""
    values = values + 0.0  # of two zeros that are equal there remains one
    numbered = number_cells(values)
    if numbered is None:
        known = ~np.isnan(values)
        distinct, inverse = np.unique(values[known], return_inverse=True)
        codes = np.full(len(values), -1, dtype=np.int32)
        codes[known] = inverse
        return distinct, codes
    codes, firsts = numbered
    unsorted = values[firsts]
    order = np.argsort(unsorted)[: np.count_nonzero(~np.isnan(unsorted))]  # NaN is last
    rank = np.full(len(unsorted), -1, dtype=np.int32)
    rank[order] = np.arange(len(order))
    return unsorted[order], rank.take(codes)


def match_columns(frame: Frame, schema: Schema, used: Sequence[int]) -> list[int]:
    """For every column of the schema, its position in the frame.

    Of columns with names only those that are used must be there; -1 is an absent one.
    """
    if frame.named and schema.named:
        check_used("X", frame.names, schema, used)
        # Further columns are ignored: those of the tree are matched by name.
        position = {name: index for index, name in enumerate(frame.names)}
        return [position.get(name, -1) for name in schema.names]
    if len(frame.names) != len(schema.columns):
        raise DataError(
            f"X has {len(frame.names)} features, but branchwise is expecting "
            f"{len(schema.columns)} features as input: {quoted(schema.names, 20)}. "
            "Pass the columns that the tree was fitted with, in that order."
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


def derived_frame(frame: Frame, schema: Schema) -> Frame:
    """Return a table with the columns that a model derives from its dates."""
    if all(column.date_feature is None for column in schema.columns):
        return frame
    from branchwise.data.conventions.derived_columns import with_derived  # noqa: PLC0415  (few)

    return with_derived(frame, schema)


def plain_cells(
    frame: Frame, schema: Schema, used: Sequence[int]
) -> list[list[Value | None]]:
    """Return the cells of columns of a schema, None where they are missing.

    Dates are texts.
    """
    frame = derived_frame(frame, schema)
    source = match_columns(frame, schema, used)
    return [
        _plain(as_written(schema.columns[index], frame.column(source[index])))
        for index in used
    ]


def _plain(raw: RawColumn) -> list[Value | None]:
    if isinstance(raw, Numbers):
        cells: list[Value | None] = raw.values.tolist()
        if raw.date is not None:
            cells = [raw.date.show(cell) if cell == cell else cell for cell in cells]  # type: ignore[arg-type]
        for row in np.flatnonzero(np.isnan(raw.values)).tolist():
            cells[row] = None
        return cells
    values: list[Value | None] = [*raw.values, None]  # -1 is the last one
    return [values[code] for code in raw.codes.tolist()]


#: Cells from which threads save more than starting them costs.
LARGE_TABLE = 500_000


def learn_columns(
    frame: Frame,
    categorical_features: object,
    categories: Declared | None,
    threads: int = 1,
) -> tuple[tuple[Column, ...], Columns]:
    """Learn the kind of every column, and encode it."""
    _check_empty(frame)
    check_column_names(frame.names)
    declared = declared_categories(frame, categories)
    as_values = chosen_columns(frame, categorical_features)
    if isinstance(frame, EncodedTable):
        return frame.cache.recall(
            ("learnt", _choices(declared, as_values)),
            lambda: _learn(frame, declared, as_values, threads),
            lambda learnt: sum(cells.nbytes for cells in learnt[1].data),
        )
    return _learn(frame, declared, as_values, threads)


def cache_of_rows(
    frame: Frame, categorical_features: object, categories: Declared | None
) -> LRUCache | None:
    """Return the cache for results computed from rows with these settings."""
    if not isinstance(frame, EncodedTable):
        return None
    declared = declared_categories(frame, categories)
    as_values = chosen_columns(frame, categorical_features)
    return frame.cache.below(_choices(declared, as_values))


def _choices(
    declared: Mapping[int, tuple[Value, ...]], as_values: Sequence[bool]
) -> Hashable:
    # 1, 1.0 and True are equal, but different as names.
    named = [
        (index, type(values), values, tuple(map(type, values)))
        for index, values in declared.items()
    ]
    return tuple(sorted(named, key=lambda entry: entry[0])), tuple(as_values)


def _learn(
    frame: Frame,
    declared: Mapping[int, tuple[Value, ...]],
    as_values: Sequence[bool],
    threads: int,
) -> tuple[tuple[Column, ...], Columns]:
    def learn(index: int) -> tuple[Column, NDArray[Any]]:
        as_value = index in declared or as_values[index]
        raw, name = frame.column(index), frame.names[index]
        return learn_column(name, raw, as_value, declared.get(index))

    indices = range(len(frame.names))
    learnt = in_order(learn, indices, _useful_threads(frame, indices, threads))
    columns, data = zip(*learnt, strict=True)
    return columns, Columns(frame.n_rows, data)


def _useful_threads(frame: Frame, indices: Sequence[int], threads: int) -> int:
    """Return the number of threads; one where starting more would not pay off."""
    if frame.n_rows * len(indices) < LARGE_TABLE:
        return 1
    return max(1, min(threads, len(indices)))


def learn_column(
    name: str,
    raw: RawColumn,
    as_values: bool,
    declared: tuple[Value, ...] | None,
    as_read: bool = False,
) -> tuple[Column, NDArray[Any]]:
    """Learn the kind of a column, and encode it.

    Dates are counted in the coarsest unit that all rows allow; ``as_read`` keeps the
    unit, where there are more rows.
    """
    if isinstance(raw, Coded):
        return _learn_categories(name, raw, declared)
    _check_infinite(name, raw)
    if as_values:
        return _learn_categories(name, numbers_as_values(raw), declared)
    how, values = raw.number_format, raw.values
    if raw.date is not None and not as_read:
        how = replace(raw.date, unit=raw.date.coarsest(values))
        values = raw.date.scaled(values, how)
    statistics = ColumnStatistics.of_numbers(values)
    column = Column(
        name,
        "numeric",
        has_missing=statistics.missing > 0,
        number_format=how,
        statistics=statistics,
    )
    return column, values


def _check_empty(frame: Frame) -> None:
    shape = f"(shape=({frame.n_rows}, {len(frame.names)}))"
    if frame.n_rows == 0:
        raise DataError(
            f"X has no rows. Found array with 0 sample(s) {shape} while a minimum of 1 "
            "is required; pass at least one training case."
        )
    if not frame.names:
        raise DataError(
            f"X has no columns. Found array with 0 feature(s) {shape} while a minimum "
            "of 1 is required; pass at least one attribute."
        )


def encode_columns(
    frame: Frame,
    schema: Schema,
    used: Sequence[int],
    *,
    allow_missing: bool = True,
    allow_unseen: bool = True,
    threads: int = 1,
) -> Columns:
    """Encode the columns that a tree uses; the others are left empty.

    A policy of "error" allows no missing cells, or no unseen values.
    """
    frame = derived_frame(frame, schema)
    source = match_columns(frame, schema, used)

    def encode(index: int) -> NDArray[Any]:
        column = schema.columns[index]
        raw = frame.column(source[index])
        cells = _encoded(frame, source[index], column, raw)
        if not allow_unseen and not column.is_numeric:
            _check_unseen(column, raw, cells)
        return cells

    data: list[NDArray[Any]] = [np.empty(0)] * len(schema.columns)
    encoded = in_order(encode, used, _useful_threads(frame, used, threads))
    for index, cells in zip(used, encoded, strict=True):
        data[index] = cells
    columns = Columns(frame.n_rows, tuple(data))
    if not allow_missing:
        check_missing(((index, schema.columns[index]) for index in used), columns)
    return columns


def check_missing(columns: Iterable[tuple[int, Column]], data: Columns) -> None:
    """Raise for the first missing cell, as the policy "error" requires."""
    for index, column in columns:
        cells = data.data[index]
        gone = np.isnan(cells) if column.is_numeric else cells == column.missing_code
        if gone.any():
            raise DataError(
                f"Column {column.name!r} is missing in row {int(np.argmax(gone))}, and "
                "missing='error' allows no missing values. Fill it or choose "
                "another policy: 'branch', 'split', 'largest' or 'node'.",
                row=int(np.argmax(gone)),
                column=column.name,
            )


def _encoded(frame: Frame, index: int, column: Column, raw: RawColumn) -> NDArray[Any]:
    if not isinstance(frame, EncodedTable):
        return _encode_one(column, raw)
    return frame.cache.recall(
        ("encoded", index, column, column.value_type),
        lambda: _encode_one(column, raw),
        lambda cells: cells.nbytes,
    )


def _check_unseen(column: Column, raw: RawColumn, codes: NDArray[Any]) -> None:
    unseen = codes == column.unseen_code
    if not unseen.any():
        return
    row = int(np.argmax(unseen))
    value = raw.values[row] if isinstance(raw, Numbers) else raw.values[raw.codes[row]]
    raise DataError(
        f"Column {column.name!r} has the value {value!r} in row {row}, which training "
        f"did not have, and unseen='error' allows none. Declare it in "
        f"{_declared_by(column)} or choose another policy: 'node', 'largest', 'split' "
        "or 'branch'.",
        row=row,
        column=column.name,
    )


def _all_finite(values: NDArray[np.float64]) -> bool:
    """Whether no number is missing or infinite; takes no memory, unlike a mask."""
    extremes = values.min(initial=0.0), values.max(initial=0.0)  # NaN if one is
    return all(map(math.isfinite, extremes))


def _check_infinite(name: str, raw: Numbers) -> None:
    if _all_finite(raw.values):
        return
    infinite = np.isinf(raw.values)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise DataError(
            f"Column {name!r} is infinite in row {row} (Input X contains infinity). "
            "Numbers must be finite; replace it by a large number or by a missing "
            "value.",
            row=row,
            column=name,
        )


def _learn_categories(
    name: str, raw: Coded, declared: tuple[Value, ...] | None
) -> tuple[Column, NDArray[Any]]:
    statistics = ColumnStatistics.of_codes(raw.codes)
    learnt = Column(
        name,
        "categorical",
        has_missing=statistics.missing > 0,
        statistics=statistics,
    )
    if declared is not None:
        as_declared: Kind = "ordinal" if isinstance(declared, Order) else "categorical"
        column = replace(learnt, kind=as_declared, categories=tuple(declared))
        _check_undeclared(column, raw)
        return column, _translate(column, raw)
    if raw.declared:
        kind: Kind = "ordinal" if raw.ordered else "categorical"
        _check_equal_names(name, raw.values)
        column = replace(learnt, kind=kind, categories=raw.values)
        return column, _downcast(column, raw.codes)
    column = replace(learnt, categories=occurring(raw))
    return column, _translate(column, raw)


def _check_equal_names(name: str, values: tuple[Value, ...]) -> None:
    check_mixed(f"Column {name!r}", values)
    if len(set(values)) < len(values):
        twice = [value for value, times in Counter(values).items() if times > 1]
        raise DataError(
            f"Column {name!r} has more than one category called {quoted(twice)}. Give "
            "every category a name of its own."
        )


def _declared_by(column: Column) -> str:
    """Return the parameter that declares the values of a column."""
    return "order=" if column.kind == "ordinal" else "categories="


def _check_undeclared(column: Column, raw: Coded) -> None:
    for code in present(raw):
        value = raw.values[code]
        if value not in column.code_of or (
            value_type(value) != value_type(column.categories[0])
        ):
            row = int(np.argmax(raw.codes == code))
            raise DataError(
                f"Column {column.name!r} has the value {value!r} in row {row}, which "
                f"is not among its declared categories {quoted(column.categories)}. "
                f"Add it to {_declared_by(column)} or correct the row.",
                row=row,
                column=column.name,
            )


def _downcast(column: Column, codes: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """Store codes in the column's own type, with -1 as the missing code."""
    dtype = column.code_dtype
    # Codes are only read: a view of the user's array will do where the type fits.
    as_they_are = codes.dtype.itemsize == dtype.itemsize == 1
    unsigned = codes.view(dtype) if as_they_are else codes.astype(dtype)
    if codes.min(initial=0) >= 0:
        return unsigned
    # -1 has become the highest code of the type, which is more than any in use.
    return np.minimum(unsigned, dtype.type(column.missing_code))


def _translate(column: Column, raw: Coded) -> NDArray[Any]:
    """Look up every distinct value in the schema, each string once."""
    if raw.values == column.categories:
        return _downcast(column, raw.codes)
    table = np.empty(len(raw.values) + 1, dtype=column.code_dtype)
    for code, value in enumerate(raw.values):
        table[code] = column.code_of.get(value, column.unseen_code)
    table[-1] = column.missing_code
    codes: NDArray[Any] = table.take(raw.codes)
    return codes


def _encode_one(column: Column, raw: RawColumn) -> NDArray[Any]:
    if column.is_numeric:
        return _encode_numeric(column, raw)
    if isinstance(raw, Numbers):
        _check_infinite(column.name, raw)
        raw = numbers_as_values(raw)
    if column.value_type is not None:
        example = f" (such as {column.categories[0]!r})"
        _check_other_type(column.name, raw, column.value_type, example)
    return _translate(column, raw)


def _encode_numeric(column: Column, raw: RawColumn) -> NDArray[Any]:
    raw = as_written(column, raw)
    if isinstance(raw, Numbers):
        if column.date is None:
            check_numbers(column.name, raw)
        _check_infinite(column.name, raw)
        return raw.values
    _check_other_type(column.name, raw, "number", "")
    # Only numbers occur here.
    numbers = [v if value_type(v) == "number" else np.nan for v in raw.values]
    values: NDArray[Any] = np.array([*numbers, np.nan], dtype=np.float64)[raw.codes]
    return values


def _check_other_type(name: str, raw: Coded, learnt: ValueType, example: str) -> None:
    """Reject values of another family than those used for fitting."""
    if all(value_type(value) == learnt for value in raw.values):
        return
    for code in present(raw):
        got = value_type(raw.values[code])
        if got != learnt:
            row = int(np.argmax(raw.codes == code))
            raise DataError(
                f"Column {name!r} was learnt as {PLURAL[learnt]}{example} but now "
                f"holds {PLURAL[got]} ({raw.values[code]!r} in row {row}). Convert it "
                f"to {PLURAL[learnt]}, as it was for fitting.",
                row=row,
                column=name,
            )
