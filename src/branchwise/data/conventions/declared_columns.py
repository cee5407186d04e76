"""Columns that a user declares: categorical ones, and values and orders of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from branchwise.data.columns import (
    as_value,
    check_mixed,
    is_missing,
    shortened,
)
from branchwise.data.frames import Frame
from branchwise.data.table_schema import Value
from branchwise.errors import DataError, ParameterError, counted, quoted

Declared = Mapping[Any, Sequence[Any]]


class Order(tuple[Any, ...]):
    """Declared values of a column of ordered categories, the lowest first."""

    __slots__ = ()


def with_orders(categories: Declared | None, order: Declared | None) -> Declared | None:
    """Return the declared values of columns, of ordered ones as :class:`Order`."""
    if order is None:
        return categories
    if not isinstance(order, Mapping):
        raise ParameterError(
            "order must be None or a dict of column name (or index) to the list of its "
            f"values, the lowest first. Got {shortened(order)} instead."
        )
    if isinstance(categories, Mapping):
        for key in order:
            if key in categories:
                raise ParameterError(
                    f"order and categories both name {key!r}. An order lists all "
                    "values of a column; leave the column out of categories."
                )
    elif categories is not None:
        return categories  # rejected where columns are known
    ordered = {
        key: Order(_declared_values(f"order[{key!r}]", values))
        for key, values in order.items()
    }
    return {**(categories or {}), **ordered}


def check_column_names(names: Sequence[str]) -> None:
    """Reject training columns whose name is empty or whitespace, as in files."""
    unnamed = [at for at, name in enumerate(names) if not name.strip()]
    if unnamed:
        raise DataError(
            f"Column {unnamed[0] + 1} of {len(names):,} to learn from has no name: it "
            f"is {names[unnamed[0]]!r}. Give it one, or leave the column out."
        )


def chosen_columns(frame: Frame, chosen: object) -> list[bool]:
    """Resolve ``categorical_features`` into a mask over the columns."""
    n_columns = len(frame.names)
    if isinstance(chosen, str):
        if chosen in ("from_dtype", "all"):
            return [chosen == "all"] * n_columns
        advice = f"for one column pass [{chosen!r}]" if chosen in frame.names else ""
        _raise_choice(chosen, advice)
    if not isinstance(chosen, Iterable) or getattr(chosen, "ndim", 1) == 0:
        _raise_choice(chosen)
    items = [item.item() if isinstance(item, np.generic) else item for item in chosen]
    if items and all(isinstance(item, bool) for item in items):
        if len(items) != n_columns:
            raise ParameterError(
                f"categorical_features is a mask of length {len(items)}, but X has "
                f"{counted(n_columns, 'column')}. Give one entry for each column."
            )
        return items
    positions = _positions(frame)
    mask = [False] * n_columns
    for item in items:
        mask[_column_index(frame, positions, item, "categorical_features")] = True
    return mask


def _raise_choice(chosen: object, advice: str = "") -> NoReturn:
    raise ParameterError(
        "categorical_features must be 'from_dtype', 'all', a mask, a list of indices "
        f"or a list of names. Got {shortened(chosen)}"
        + (f"; {advice}." if advice else " instead.")
    )


def _positions(frame: Frame) -> dict[str, int]:
    return {name: index for index, name in enumerate(frame.names)}


def _column_index(
    frame: Frame, positions: Mapping[str, int], key: object, parameter: str
) -> int:
    if isinstance(key, str) and key in positions:
        return positions[key]
    n_columns = len(frame.names)
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        if -n_columns <= key < n_columns:
            return int(key) % n_columns
        raise ParameterError(
            f"{parameter} names column {key}, but X has only "
            f"{counted(n_columns, 'column')}, numbered from 0 to {n_columns - 1}."
        )
    raise ParameterError(
        f"{parameter} names {shortened(key)}, which is not a column of X. The columns "
        f"are {quoted(frame.names, 20)}."
    )


def declared_categories(
    frame: Frame, categories: Declared | None
) -> dict[int, tuple[Value, ...]]:
    """Check ``categories`` and key it by column position."""
    if categories is None:
        return {}
    if not isinstance(categories, Mapping):
        raise ParameterError(
            "categories must be None or a dict of column name (or index) to the list "
            f"of its possible values. Got {shortened(categories)} instead."
        )
    declared: dict[int, tuple[Value, ...]] = {}
    positions = _positions(frame)
    for key, values in categories.items():
        is_order = isinstance(values, Order)
        parameter = "order" if is_order else "categories"
        index = _column_index(frame, positions, key, parameter)
        if index in declared:
            raise ParameterError(
                f"{parameter} names column {frame.names[index]!r} twice, by name and "
                "by index. Name it once."
            )
        # An order was checked when it was made.
        what = f"categories[{key!r}]"
        declared[index] = (
            values if isinstance(values, Order) else _declared_values(what, values)
        )
    return declared


def _declared_values(what: str, values: Any) -> tuple[Value, ...]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise ParameterError(
            f"{what} must be a list of values. Got {shortened(values)} instead."
        )
    values = list(values)
    if any(np.ndim(value) == 0 and is_missing(value) for value in values):
        raise ParameterError(
            f"{what} lists a missing value. Missing values need no declaration; leave "
            "it out."
        )
    try:
        plain = tuple(as_value(what, value) for value in values)
        check_mixed(what, plain)
    except DataError as error:
        raise ParameterError(str(error)) from None
    if not plain:
        raise ParameterError(f"{what} is empty. List at least one possible value.")
    twice = [value for value, times in Counter(plain).items() if times > 1]
    if twice:
        raise ParameterError(
            f"{what} lists {quoted(twice)} more than once. List every value once."
        )
    return plain
