"""The schema of a model file: columns, their formats and values, and the classes."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from branchwise.data.arrays import NUMBER_KINDS
from branchwise.data.conventions.date_format import DateFormat
from branchwise.data.conventions.number_format import NumberFormat
from branchwise.data.table_schema import Column, Schema, Value, Written, value_type
from branchwise.errors import (
    ModelFileError,
)
from branchwise.model_file.fields import fields_of, shown, typed
from branchwise.model_file.metadata_fields import (
    read_label,
    read_metadata,
    read_statistics,
)


def _read_na_values(fields: dict[str, Any], where: str) -> tuple[str, ...] | None:
    """Read the cells of files that are missing, if they are not the usual ones."""
    if "na_values" not in fields:
        return None
    texts = typed(fields, "na_values", where, "a list")
    if not all(isinstance(text, str) for text in texts):
        raise ModelFileError(f"'na_values' of {where} must be texts")
    if len(set(texts)) < len(texts):
        raise ModelFileError(f"'na_values' of {where} has a text twice")
    return tuple(texts)


def read_schema(document: dict[str, Any]) -> Schema:
    """Return the schema of a document; raise if a field is not valid."""
    where = "'schema'"
    names = ("target", "named", "classes", "columns")
    fields = fields_of(document["schema"], where, names)
    target = typed(fields, "target", where, "text or null")
    named = typed(fields, "named", where, "true or false")
    classes = _read_values(fields, "classes", where)
    columns = typed(fields, "columns", where, "a list")
    if not columns:
        raise ModelFileError("'columns' of 'schema' is empty")
    read = tuple(_read_column(c, f"column {index}") for index, c in enumerate(columns))
    times = Counter(column.name for column in read)
    twice = [name for name in times if times[name] > 1]
    if twice:
        raise ModelFileError(f"two columns are named {shown(twice[0])}")
    label = read_label(fields, "label", where, len(classes))
    fields.setdefault("merge_case", False)
    merge_case = typed(fields, "merge_case", where, "true or false")
    how = _read_number_format(fields, where)
    if how is not None and classes:
        raise ModelFileError("'schema' has classes and yet a 'number_format'")
    metadata = read_metadata(document)
    na_values = _read_na_values(fields, where)
    schema = Schema(
        read, classes, target, named, metadata, label, merge_case, how, na_values
    )
    if label is not None or any(column.label is not None for column in read):
        from branchwise.text.labels import check_distinct  # noqa: PLC0415  (rare)

        check_distinct(schema)
    return schema


def _read_column(value: Any, where: str) -> Column:
    fields = fields_of(value, where, ("name", "kind", "categories", "has_missing"))
    name = typed(fields, "name", where, "text")
    kind = typed(fields, "kind", where, ("categorical", "ordinal", "numeric"))
    categories = _read_values(fields, "categories", where)
    if kind == "numeric" and categories:
        raise ModelFileError(f"{where} is numeric and yet has categories")
    has_missing = typed(fields, "has_missing", where, "true or false")
    fields.setdefault("sketched", False)
    sketched = typed(fields, "sketched", where, "true or false")
    if sketched and kind != "numeric":
        raise ModelFileError(f"{where} is sketched and yet not numeric")
    how: Written | None = _read_number_format(fields, where)
    how = how or _read_date(fields, where) or _read_derived(fields, where)
    if how is not None and kind != "numeric":
        what = "a number format" if isinstance(how, NumberFormat) else "dates"
        raise ModelFileError(f"{where} has {what} and yet is not numeric")
    fields.setdefault("number_kind", "any")
    number_kind = typed(fields, "number_kind", where, NUMBER_KINDS)
    if number_kind != "any" and kind != "numeric":
        raise ModelFileError(f"{where} has a 'number_kind' and yet is not numeric")
    statistics = read_statistics(fields, where, kind == "numeric", has_missing)
    label = read_label(fields, "label", where, len(categories))
    return Column(
        name,
        kind,
        categories,
        has_missing,
        sketched,
        how,
        number_kind,
        statistics,
        label,
    )


def _read_number_format(column: dict[str, Any], where: str) -> NumberFormat | None:
    if column.get("number_format") is None:
        return None
    given = fields_of(column["number_format"], f"'number_format' of {where}", ())
    try:
        return NumberFormat.of(given)
    except ValueError as error:
        raise ModelFileError(f"'number_format' of {where} {error}") from None


def _read_derived(column: dict[str, Any], where: str) -> Written | None:
    if column.get("derived") is None:
        return None
    from branchwise.data.conventions.date_features import DateFeature  # noqa: PLC0415  (few have)

    given = fields_of(column["derived"], f"'derived' of {where}", ("of", "feature"))
    try:
        return DateFeature.of_fields(given)
    except ValueError as error:
        raise ModelFileError(f"'derived' of {where} {error}") from None


def _read_date(column: dict[str, Any], where: str) -> DateFormat | None:
    if column.get("date") is None:
        return None
    given = fields_of(column["date"], f"'date' of {where}", ("unit",))
    try:
        return DateFormat.of(given)
    except ValueError as error:
        raise ModelFileError(f"'date' of {where} {error}") from None


def _read_values(fields: dict[str, Any], name: str, where: str) -> tuple[Value, ...]:
    values = typed(fields, name, where, "a list")
    for value in values:
        if not isinstance(value, (str, bool, int, float)):
            complaint = f"must hold text, numbers or true and false, not {shown(value)}"
        elif isinstance(value, float) and not math.isfinite(value):
            complaint = "has a number that is not finite"
        elif not isinstance(value, (str, float)) and not -(2**63) <= value < 2**63:
            complaint = "has a whole number beyond 64 bits"
        else:
            continue
        raise ModelFileError(f"{name!r} of {where} {complaint}")
    if len({value_type(value) for value in values}) > 1:
        raise ModelFileError(f"{name!r} of {where} mixes types")
    times = Counter(values)
    if len(times) < len(values):
        twice = next(value for value in times if times[value] > 1)
        raise ModelFileError(f"{name!r} of {where} lists {shown(twice)} twice")
    return tuple(values)
