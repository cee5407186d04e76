"""Tables with columns that are derived from dates."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from branchwise.data.arrow import from_array, pa, with_described_column
from branchwise.data.as_numbers import as_written
from branchwise.data.columns import Numbers, RawColumn
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
        if feature.name in table.column_names:
            raise DataError(
                f"{label} has a column {feature.name!r} already, which would be "
                f"derived from {feature.of!r}. Rename it, or do not derive it."
            )
        learnt = as_learnt(feature, date)
        numbers = feature.numbers(raw.values, date)
        known = from_array(np.nan_to_num(numbers))
        cells = pa.array(known.to_pylist(), mask=np.isnan(numbers))
        table = with_described_column(
            table, feature.name, cells, json.dumps(learnt.fields)
        )
    return table
