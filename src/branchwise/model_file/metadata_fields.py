"""Metadata of a model and statistics of its columns, as fields of a model file.

An unknown field is an error: these objects are read by people and by drift checks,
which would not see what is left out.
"""

from __future__ import annotations

from dataclasses import fields as fields_of_class
from typing import Any

from branchwise.data.descriptions import (
    NOTHING_KNOWN,
    ColumnLabel,
    ColumnStatistics,
    Metadata,
)
from branchwise.errors import ModelFileError, ParameterError
from branchwise.model_file.fields import check_known, fields_of, typed

_METADATA = tuple(each.name for each in fields_of_class(Metadata))
_STATISTICS = tuple(each.name for each in fields_of_class(ColumnStatistics))


def read_metadata(document: dict[str, Any]) -> Metadata:
    """Return the metadata of a file, which earlier files do not have."""
    if "metadata" not in document:
        return NOTHING_KNOWN
    where = "'metadata'"
    given = fields_of(document["metadata"], where, ())
    check_known(given, _METADATA, where, "field")
    for name in given:
        typed(given, name, where, "text")
    try:
        return Metadata(**given)
    except ParameterError as error:
        raise ModelFileError(f"in {where}, {str(error).removesuffix('.')}") from None


def label_fields(label: ColumnLabel) -> dict[str, object]:
    """Return a label as plain values, without what it has not."""
    given = {"title": label.title, "unit": label.unit, "words": list(label.words)}
    return {name: value for name, value in given.items() if value}


def read_label(
    fields: dict[str, Any], name: str, where: str, n_values: int
) -> ColumnLabel | None:
    """Return how a column, or the target, is called, if the file tells."""
    if name not in fields:
        return None
    where = f"{name!r} of {where}"
    given = fields_of(fields[name], where, ())
    check_known(given, ("title", "unit", "words"), where, "field")
    for text in ("title", "unit"):
        if text in given:
            typed(given, text, where, "text")
    words = typed(given, "words", where, "a list") if "words" in given else []
    if words and len(words) != n_values:
        raise ModelFileError(
            f"'words' of {where} must have one for each of {n_values} values, not "
            f"{len(words)}"
        )
    try:
        return ColumnLabel(given.get("title"), given.get("unit"), tuple(words))
    except ParameterError as error:
        raise ModelFileError(f"in {where}, {str(error).removesuffix('.')}") from None


def statistics_fields(statistics: ColumnStatistics) -> dict[str, object]:
    """Return the statistics of a column as plain values."""
    fields: dict[str, object] = {
        "known": statistics.known,
        "missing": statistics.missing,
    }
    if statistics.low is not None and statistics.high is not None:
        fields |= {"low": _plain(statistics.low), "high": _plain(statistics.high)}
    return fields


def _plain(number: float) -> float | int:
    """Return a whole number without a point, as those of the tree."""
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def read_statistics(
    column: dict[str, Any], where: str, is_numeric: bool, has_missing: bool
) -> ColumnStatistics | None:
    """Return the statistics of a column, if the file has them."""
    if "statistics" not in column:
        return None
    where = f"'statistics' of {where}"
    given = fields_of(column["statistics"], where, ("known", "missing"))
    check_known(given, _STATISTICS, where, "field")
    known, missing = (
        typed(given, name, where, "a whole number from 0") for name in _STATISTICS[:2]
    )
    if has_missing != (missing > 0):
        raise ModelFileError(f"{where} contradicts 'has_missing'")
    span = [
        typed(given, name, where, "a finite number")
        for name in given
        if name in _STATISTICS[2:]
    ]
    if len(span) != 2 * (is_numeric and known > 0):
        raise ModelFileError(
            f"{where} must have 'low' and 'high' if the column is numeric and has "
            "known values, and only then"
        )
    if not span:
        return ColumnStatistics(known, missing)
    low, high = float(given["low"]), float(given["high"])
    if low > high:
        raise ModelFileError(f"{where} has a 'low' above its 'high'")
    return ColumnStatistics(known, missing, low, high)
