"""The schema of a table: names, kinds and categories of columns, and classes.

A schema is learnt once (or declared) and stored with the tree. Views need nothing
else to show the names and values of the user. It holds no rows.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Ints
from branchwise.data.conventions.date_format import ISO, DateFormat
from branchwise.data.conventions.number_format import NumberFormat
from branchwise.data.descriptions import (
    NOTHING_KNOWN,
    ColumnLabel,
    ColumnStatistics,
    Metadata,
)
from branchwise.errors import DataError, plain, quoted
from branchwise.threads import cached_property

if TYPE_CHECKING:
    from branchwise.data.conventions.date_features import DateFeature

Value = str | bool | int | float
#: How the numbers of a column are written, which dates they are, or of which they are.
Written: TypeAlias = "NumberFormat | DateFormat | DateFeature"
Kind = Literal["categorical", "ordinal", "numeric"]
ValueType = Literal["text", "boolean", "number"]

#: The plural of each value type in messages.
PLURAL: dict[ValueType, str] = {
    "text": "text",
    "boolean": "booleans",
    "number": "numbers",
}

_CODE_TYPES: tuple[tuple[np.dtype[np.unsignedinteger], int], ...] = (
    (np.dtype(np.uint8), 2**8 - 1),
    (np.dtype(np.uint16), 2**16 - 1),
    (np.dtype(np.uint32), 2**32 - 1),
)


def value_type(value: object) -> ValueType:
    """Return which of the three types a category value has."""
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "number"


@dataclass(frozen=True)
class Column:
    """One attribute: its name, its kind and, unless numeric, its possible values.

    The code of a category is its position in ``categories``; one more code stands
    for a missing value and another for a value that is none of the categories.
    ``sketched`` columns had so many distinct numbers that they were split only between
    bins of a summary. ``number_format`` is how numbers are written, unless plainly; or
    which dates they are.
    ``number_kind`` says what all numbers of the training rows are: "binary" (0 and 1),
    "whole" or "any"; or "bins" while a tree is grown from bins. It is learnt for
    readable thresholds only. ``statistics`` are of the training table; they are no part
    of what a column means, and none are known of columns made by hand. ``label`` is how
    the column and its values are called in views.
    """

    name: str
    kind: Kind
    categories: tuple[Value, ...] = ()
    has_missing: bool = False
    sketched: bool = False
    number_format: Written | None = None
    number_kind: str = "any"
    statistics: ColumnStatistics | None = field(default=None, compare=False)
    label: ColumnLabel | None = field(default=None, compare=False)

    @property
    def is_numeric(self) -> bool:
        """Whether the column is split at thresholds."""
        return self.kind == "numeric"

    @property
    def is_whole(self) -> bool:
        """Whether the column is known to have whole numbers only."""
        dated = self.date is not None or self.date_feature is not None
        return self.number_kind in ("binary", "whole") or dated

    @property
    def date_feature(self) -> DateFeature | None:
        """What the numbers are of the dates of another column, if they are that."""
        how = self.number_format
        return cast("DateFeature", how) if hasattr(how, "feature") else None

    @property
    def given_as(self) -> str:
        """The name of the column of a table that has the values, or their dates."""
        return self.name if self.date_feature is None else self.date_feature.of

    @property
    def date(self) -> DateFormat | None:
        """Which dates the numbers are, if they are dates."""
        how = self.number_format
        return how if isinstance(how, DateFormat) else None

    def position(self, threshold: str) -> str:
        """Return where thresholds lie, by the ``threshold`` of a recipe."""
        if threshold != "readable":
            return threshold
        if self.number_kind == "bins":
            return "midpoint"
        if self.date is not None:
            return self.date.unit
        return "whole" if self.is_whole else "readable"

    @property
    def missing_code(self) -> int:
        """The code of a missing value."""
        return len(self.categories)

    @property
    def unseen_code(self) -> int:
        """The code of a value that is none of the categories."""
        return len(self.categories) + 1

    @property
    def code_dtype(self) -> np.dtype[np.unsignedinteger]:
        """The smallest unsigned type that holds every code."""
        for dtype, largest in _CODE_TYPES:
            if self.unseen_code <= largest:
                return dtype
        return np.dtype(np.uint64)

    @cached_property
    def value_type(self) -> ValueType | None:
        """The type of the values; None if no value was seen."""
        if self.is_numeric:
            return "number"
        return value_type(self.categories[0]) if self.categories else None

    @cached_property
    def code_of(self) -> dict[Value, int]:
        """Category value -> code."""
        return {value: code for code, value in enumerate(self.categories)}


def merged_statistics(one: Column, other: Column) -> ColumnStatistics | None:
    """Return the statistics of two chunks, dates in the finer of their units."""
    mine, further = one.statistics, other.statistics
    if mine is None or further is None:
        return None
    if one.date is not None and other.date is not None:
        finer = min(one.date, other.date, key=lambda how: how.step)
        mine = mine.scaled(one.date, finer)
        further = further.scaled(other.date, finer)
    return mine.merge(further)


def columns_by_type(columns: Mapping[str, Column]) -> dict[ValueType, list[str]]:
    """Return the names of the columns by the type that they are read as."""
    names: dict[ValueType, list[str]] = {"text": [], "boolean": [], "number": []}
    for name, column in columns.items():
        # A column without any known value is read as text.
        names[column.value_type or "text"].append(name)
    return names


def number_formats(
    columns: Mapping[str, Column],
) -> dict[str, NumberFormat | DateFormat]:
    """Return how the numbers of columns are written, where it is not plainly."""
    return {
        name: column.number_format
        for name, column in columns.items()
        if isinstance(column.number_format, (NumberFormat, DateFormat))
    }


#: Cells of files that are missing values by default.
MISSING = ("", "?")


@dataclass(frozen=True)
class Schema:
    """The attributes in order, the classes in sorted order, and their names.

    There are no classes where numbers are predicted. ``named`` is false when the
    table was an array, whose columns are matched by position and called x0, x1, ...
    in views. ``metadata`` is of the model that has the schema; ``target_label`` is how
    the target and its classes are called in views. With ``merge_case`` the texts of
    files that differ from a known one only in case or whitespace around them are read
    as it; ``target_format`` is how the numbers of the target are written in files,
    unless plainly; ``na_values`` are the cells of files that are missing, unless the
    usual ones.
    """

    columns: tuple[Column, ...]
    classes: tuple[Value, ...]
    target: str | None = None
    named: bool = True
    metadata: Metadata = field(default=NOTHING_KNOWN, compare=False)
    target_label: ColumnLabel | None = field(default=None, compare=False)
    merge_case: bool = False
    target_format: NumberFormat | None = None
    na_values: tuple[str, ...] | None = None

    @property
    def names(self) -> list[str]:
        """The column names in order."""
        return [column.name for column in self.columns]

    @cached_property
    def class_array(self) -> NDArray[np.generic]:
        """The classes as an array that maps codes to labels."""
        # A fixed-width text array would drop a NUL at the end.
        nul = any(
            isinstance(label, str) and label.endswith("\0") for label in self.classes
        )
        return np.array(self.classes, dtype=object if nul else None)

    def describe(self) -> str:
        """Describe the type of every column, one line each."""
        target = plain(self.target or "(target)")
        names = [plain(name) for name in self.names]
        width = max(len(name) for name in [*names, target])
        lines = [
            f"{name:<{width}}  {_describe_column(column)}"
            for name, column in zip(names, self.columns, strict=True)
        ]
        wanted = _listed(self.classes, "class") if self.classes else "numeric"
        lines.append(f"{target:<{width}}  target, {wanted}")
        return "\n".join(lines)


def _describe_column(column: Column) -> str:
    missing = ", some missing" if column.has_missing else ""
    if column.is_numeric:
        bins = ", split between bins" if column.sketched else ""
        how = column.number_format
        kind, written = "numeric", "" if how is None else f", written as {how}"
        if column.date_feature is not None:
            written = f", {column.date_feature}"
        if column.date is not None:
            kind = column.date.what
            plainly = column.date.written == ISO
            written = "" if plainly else f", written as {column.date.written}"
        return f"{kind}{bins}{written}{missing}"
    return f"{column.kind}, {_listed(column.categories, 'value')}{missing}"


def _listed(values: tuple[Value, ...], noun: str, limit: int = 8) -> str:
    plural = noun if len(values) == 1 else noun + ("es" if noun[-1] == "s" else "s")
    shown = ", ".join(plain(str(value)) for value in values[:limit])
    more = ", ..." if len(values) > limit else ""
    return f"{len(values):,} {plural}: {shown}{more}"


@dataclass(frozen=True)
class Columns:
    """An encoded table: per column its codes, or float64 values if numeric.

    Codes are those of :class:`Column`; a missing number is NaN. Numbers stay
    float64 from here to the threshold and to the prediction, so that printed rules
    and predictions always agree.
    """

    n_rows: int
    data: tuple[NDArray[Any], ...]

    def take(self, rows: Ints) -> Columns:
        """Return some of the rows."""
        # Columns that no split tests may have been left out: these have no cells.
        data = tuple(cells.take(rows) if cells.size else cells for cells in self.data)
        return Columns(len(rows), data)


def check_names(
    label: str,
    known: Sequence[str],
    names: Collection[str],
    without_spaces: str | None = None,
) -> None:
    """Raise an error for a name that is not a column; suggest the nearest.

    ``without_spaces`` is the option that strips whitespace around cells.
    """
    there = frozenset(known)
    for name in names:
        if name not in there:
            meant = nearest_name(name, known)
            if without_spaces and name in [other.strip(" \t") for other in known]:
                meant += (
                    " The whitespace is part of the name; "
                    f"{without_spaces} strips it around cells."
                )
            raise DataError(
                f"{label} has no column {name!r}.{meant} The columns are "
                f"{quoted(known, 20)}."
            )


def columns_for(
    schema: Schema,
    names: Sequence[str],
    label: str,
    used: Sequence[int],
    besides: Sequence[str] = (),
) -> dict[str, Column]:
    """Match the columns of a file with those of a schema, at least those in use.

    Where the schema has no names of the user's and the file does not have its names,
    columns are taken in their order, but for those ``besides``.
    """
    wanted = schema.names
    if set(wanted) <= set(names) or schema.named:
        check_used(label, names, schema, used)
        known = frozenset(names)
        stored = [c for c in schema.columns if c.date_feature is None]
        own = {column.name: column for column in stored if column.name in known}
        for column in schema.columns:  # dates of a model that has only their features
            if column.date_feature is not None and column.given_as in known:
                dates = Column(column.given_as, "numeric", (), True)
                dates = replace(dates, number_format=column.date_feature.date)
                own.setdefault(column.given_as, dates)
        return own
    left = [name for name in names if name not in besides]
    if len(left) != len(wanted):
        raise DataError(
            f"The model was fitted on a table of {len(wanted):,} columns without "
            f"names, so the columns are taken in their order; {label} has "
            f"{len(left):,}. Leave out the columns that do not belong."
        )
    return dict(zip(left, schema.columns, strict=True))


def check_used(
    label: str, names: Sequence[str], schema: Schema, used: Sequence[int]
) -> None:
    """Reject a table that lacks columns in use."""
    wanted = schema.names
    every = len(used) == len(wanted)
    that = "the tree was fitted with" if every else "the tree splits on"
    given = dict.fromkeys(schema.columns[index].given_as for index in used)
    check_absent(label, names, list(given), that)


def check_absent(
    label: str, names: Sequence[str], wanted: Sequence[str], that: str
) -> None:
    """Reject a table that lacks columns."""
    known = frozenset(names)
    absent = [name for name in wanted if name not in known]
    if absent:
        columns = "column" if len(absent) == 1 else "columns"
        unknown = [name for name in names if name not in frozenset(wanted)]
        there = f"Its columns are {quoted(names, 20)}; rename or a" if names else "A"
        raise DataError(
            f"{label} lacks the {columns} {quoted(absent)} that {that}."
            f"{nearest_name(absent[0], unknown)} {there}dd what is lacking, with empty "
            "cells if it is not known."
        )


def nearest_name(name: str, names: Sequence[str]) -> str:
    """Return a hint with the most similar name, if there is one."""
    by_case = {other.strip().lower(): other for other in names}
    close = difflib.get_close_matches(name.strip().lower(), by_case, 1)
    return f" Did you mean {by_case[close[0]]!r}?" if close else ""
