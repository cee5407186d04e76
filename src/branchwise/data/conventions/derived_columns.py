"""Tables with columns that are derived from dates."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from branchwise.data.arrow import from_array, pa, with_described_column
from branchwise.data.as_numbers import as_written
from branchwise.data.columns import Coded, Numbers, RawColumn
from branchwise.data.conventions.date_features import (
    OF_TIMES,
    DateFeature,
    as_learnt,
    requested_features,
)
from branchwise.data.frames import Frame, open_table
from branchwise.data.table_schema import Column, Schema, check_names
from branchwise.errors import DataError


def with_derived(frame: Frame, schema: Schema) -> Frame:
    """Return a table with the columns that a model derives from dates."""
    derived = [column for column in schema.columns if column.date_feature is not None]
    position = {name: at for at, name in enumerate(frame.names)}
    added = {
        column.name: _reader(frame, position[column.given_as], column.date_feature)
        for column in derived
        if column.date_feature is not None and column.given_as in position
    }
    added = {name: read for name, read in added.items() if name not in position}
    if not added:
        return frame
    return replace(
        frame if type(frame) is Frame else _plain(frame),
        names=(*frame.names, *added),
        readers=(*frame.readers, *added.values()),
    )


def _plain(frame: Frame) -> Frame:
    return Frame(frame.names, frame.n_rows, frame.named, frame.readers)


def _reader(frame: Frame, at: int, feature: DateFeature) -> Callable[[], RawColumn]:
    dates = Column(feature.of, "numeric", number_format=feature.date)

    def read() -> RawColumn:
        raw = as_written(dates, frame.column(at))
        if not isinstance(raw, Numbers) or raw.date is None:
            raise AssertionError("dates are numbers")
        return Numbers(feature.numbers(raw.values, raw.date), feature)

    return read


def with_requested(frame: Frame, features: Sequence[DateFeature]) -> Frame:
    """Return a table with columns that are derived from its dates, read on demand."""
    if not features:
        return frame
    check_names("The table", frame.names, [feature.of for feature in features])
    taken = list(frame.names)
    for feature in features:
        _check_new(feature, taken, "The table")
        taken.append(feature.name)
    position = {name: at for at, name in enumerate(frame.names)}
    readers = [partial(_taken, frame, position[each.of], each) for each in features]
    return replace(
        frame if type(frame) is Frame else _plain(frame),
        names=tuple(taken),
        readers=(*(partial(frame.column, at) for at in position.values()), *readers),
    )


def _taken(frame: Frame, at: int, feature: DateFeature) -> RawColumn:
    """Return what is derived from a column of dates of a table, or a chunk of it."""
    raw = frame.column(at)
    date = raw.date if isinstance(raw, Numbers) else None
    if isinstance(raw, Numbers) and date is not None:
        return Numbers(feature.numbers(raw.values, date), as_learnt(feature, date))
    known = raw.codes >= 0 if isinstance(raw, Coded) else ~np.isnan(raw.values)
    if known.any():
        raise DataError(
            f"Column {feature.of!r} holds no dates, so that there is no "
            f"{feature.feature} of them. Leave it out, or make the column one of dates."
        )
    return Numbers(np.full(frame.n_rows, np.nan), feature)


def check_times(columns: Sequence[Column], features: Sequence[DateFeature]) -> None:
    """Reject hours and minutes of dates without a time of day."""
    units = {column.name: column.date.unit for column in columns if column.date}
    for feature in features:
        if feature.feature in OF_TIMES and units.get(feature.of) == "day":
            raise DataError(
                f"Column {feature.of!r} holds dates without a time of day, so that "
                f"there is no {feature.feature} of them. Leave it out."
            )


def _check_new(feature: DateFeature, names: Sequence[str], label: str) -> None:
    if feature.name in names:
        raise DataError(
            f"{label} has a column {feature.name!r} already, which would be derived "
            f"from {feature.of!r}. Rename it, or do not derive it."
        )


def derived_features(frame: Frame) -> dict[str, DateFeature]:
    """Return the columns of a table that are derived from others."""
    found = {}
    for at, name in enumerate(frame.names):
        raw = frame.column(at)
        how = raw.number_format if isinstance(raw, Numbers) else None
        if isinstance(how, DateFeature):
            found[name] = how
    return found


def date_features(X: Any, features: Mapping[str, Sequence[str] | str]) -> Any:
    """Return a table with columns derived from its dates, such as ``opened.month``.

    A model that is fitted on it computes them for new rows, which need only the dates.

    Parameters
    ----------
    X : table
        A dataframe, an Arrow table or a dict of columns, with columns of dates.
    features : dict of str to list of str
        What to take of each column of dates: "year", "quarter", "month", "day",
        "weekday" (1 is Monday), and of times "hour" and "minute"; ``"age:2024-12-31"``
        and ``"age_years:2024-12-31"`` are the days and completed years up to a day.

    Returns
    -------
    pyarrow.Table
        The columns of ``X``, and behind them the derived ones.

    Examples
    --------
    >>> import datetime
    >>> accounts = {"opened": [datetime.date(2024, 3, 5)]}
    >>> table = date_features(accounts, {"opened": ["month", "age:2024-12-31"]})
    >>> table.select(["opened.month", "opened.age"]).to_pylist()
    [{'opened.month': 3.0, 'opened.age': 301.0}]
    """
    if isinstance(X, Mapping):
        table = pa.table(dict(X))
    else:
        frame: Any = nw.from_native(X, eager_only=True)
        table = (
            frame.to_native() if frame.implementation.is_pyarrow() else frame.to_arrow()
        )
    return with_features(table, requested_features("features", features), "X")


def with_features(table: Any, features: Sequence[DateFeature], label: str) -> Any:
    """Return an Arrow table with columns that are derived from its dates."""
    check_names(label, table.column_names, [feature.of for feature in features])
    frame = open_table(table)
    for feature in features:
        raw = frame.column(frame.names.index(feature.of))
        date = raw.date if isinstance(raw, Numbers) else None
        if not isinstance(raw, Numbers) or date is None:
            raise DataError(
                f"Column {feature.of!r} of {label} holds no dates, so that there is no "
                f"{feature.feature} of them. Leave it out, or make the column one of "
                "dates."
            )
        if feature.feature in OF_TIMES and date.coarsest(raw.values) == "day":
            raise DataError(
                f"Column {feature.of!r} of {label} holds dates without a time of day, "
                f"so that there is no {feature.feature} of them. Leave it out."
            )
        _check_new(feature, table.column_names, label)
        learnt = as_learnt(feature, date)
        numbers = feature.numbers(raw.values, date)
        known = from_array(np.nan_to_num(numbers))
        cells = pa.array(known.to_pylist(), mask=np.isnan(numbers))
        table = with_described_column(
            table, feature.name, cells, json.dumps(learnt.fields)
        )
    return table
