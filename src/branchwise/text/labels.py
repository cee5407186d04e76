"""Labels: titles and units of columns, and words for their values, in views.

They come from a dictionary or a file, are kept in the model, and change nothing but
words: columns are matched, and rows are compared, by names and values as they are.
"""

from __future__ import annotations

import csv
import json
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from branchwise.data.conventions.number_format import NumberFormat
from branchwise.data.descriptions import LONGEST_LABEL, ColumnLabel
from branchwise.data.table_schema import (
    Column,
    Schema,
    Value,
    Written,
    check_names,
    nearest_name,
)
from branchwise.errors import DataError, ParameterError, plain, quoted
from branchwise.text.label_words import title_of
from branchwise.text.words import word

#: What a label may have.
KEYS = ("title", "unit", "words", "order")
#: The columns of a CSV file of labels; only the first is needed.
CSV_COLUMNS = ("column", "title", "unit", "value", "word")
_LARGEST = 10_000_000


def target_title(schema: Schema) -> str | None:
    """Return what the target is called."""
    label = schema.target_label
    return (None if label is None else label.title) or schema.target


def called_columns(schema: Schema | None, names: Iterable[str]) -> list[str]:
    """Return what columns are called, in the order of their names."""
    known = {} if schema is None else {c.name: c for c in schema.columns}
    return [title_of(known.get(name), name) for name in names]


def titles_of(schema: Schema | None, names: Iterable[str]) -> list[str]:
    """Write what columns are called in words."""
    return [word(title) for title in called_columns(schema, names)]


def class_called(schema: Schema, label: Value) -> Value:
    """Return what a class, or a predicted number, is called."""
    labels = schema.target_label
    if labels is None or not labels.words or label not in schema.classes:
        return label
    return labels.words[schema.classes.index(label)] or label


def labels_in_words(schema: Schema) -> str:
    """Return all labels in a line, for comments of programs; nothing without any."""
    pairs: list[tuple[str, ColumnLabel | None, tuple[Value, ...], Written | None]] = [
        (c.name, c.label, c.categories, c.number_format) for c in schema.columns
    ]
    own = schema.target_label, schema.classes, schema.target_format
    pairs.append((schema.target or "target", *own))
    found = []
    for name, label, values, how in pairs:
        if label is None:
            continue
        words = zip(values, label.words, strict=False)
        codes = [f"{word(value)}: {word(name)}" for value, name in words if name]
        title = f" is {word(label.title)}" if label.title else ""
        unit = f" in {word(label.unit)}" if label.unit else ""
        if isinstance(how, NumberFormat) and how.percent:
            unit = " as a share (0.12 is 12 %)"
        listed = f" ({', '.join(codes)})" if codes else ""
        found.append(f"{word(name)}{title}{unit}{listed}")
    return "; ".join(found)


def shown_schema(schema: Schema) -> Schema:
    """Return a schema for views: names are titles, and values are words."""
    target = schema.target_label or ColumnLabel()
    columns = tuple(map(_shown_column, schema.columns))
    classes = _worded(schema.classes, target)
    name = target.title or schema.target
    if (columns, classes, name) == (schema.columns, schema.classes, schema.target):
        return schema
    return replace(schema, columns=columns, classes=classes, target=name)


def _shown_column(column: Column) -> Column:
    label = column.label
    if label is None:
        return column
    unit = None if label.unit is None else ColumnLabel(unit=label.unit)
    name, values = label.title or column.name, _worded(column.categories, label)
    return replace(column, name=name, categories=values, label=unit)


def _worded(values: tuple[Value, ...], label: ColumnLabel) -> tuple[Value, ...]:
    if not label.words:
        return values
    pairs = zip(label.words, values, strict=True)
    return tuple(value if called is None else called for called, value in pairs)


def with_labels(schema: Schema, given: object) -> Schema:
    """Return a schema with labels: a dictionary, or a JSON, TOML or CSV file."""
    labels = read_labels(given)
    _check_misspelt(labels, schema)
    columns = tuple(
        replace(
            column, label=_label(labels, column.name, column.categories, column.label)
        )
        for column in schema.columns
    )
    named = "" if schema.target is None else schema.target
    target = _label(labels, named, schema.classes, schema.target_label)
    labelled = replace(schema, columns=columns, target_label=target)
    check_distinct(labelled)
    return labelled


def with_found_labels(schema: Schema, found: Mapping[str, Mapping[str, str]]) -> Schema:
    """Return a schema with the titles and units that a file of data has.

    The user has not written them for this: those that no label may have, and titles
    that several columns would have, are passed over.
    """
    columns = [*schema.names, *([] if schema.target is None else [schema.target])]
    usable: dict[str, dict[str, str]] = {}
    for name in columns:
        texts = {key: text.strip() for key, text in found.get(name, {}).items()}
        usable[name] = {k: t for k, t in texts.items() if 0 < len(t) <= LONGEST_LABEL}
    titles = [usable[name].get("title", name) for name in columns]
    for name, title in zip(columns, titles, strict=True):
        if titles.count(title) > 1:
            usable[name].pop("title", None)
    return with_labels(schema, usable)


def _check_misspelt(labels: Collection[str], schema: Schema) -> None:
    """Reject names that are nearly those of columns; others are of a larger table."""
    known = [*schema.names, *([] if schema.target is None else [schema.target])]
    left = [name for name in known if name not in labels]
    others = [name for name in labels if name not in known]
    for name in others:
        if nearest_name(name, left) or len(others) == len(labels):
            check_names("The model", known, [name])


def _label(
    labels: Mapping[str, Mapping[str, Any]],
    name: str,
    values: tuple[Value, ...],
    earlier: ColumnLabel | None,
) -> ColumnLabel | None:
    if name not in labels:
        return earlier
    given = labels[name]
    # A codebook may have more values than the table.
    by_value = {str(value): called for value, called in given.get("words", {}).items()}
    words = tuple(by_value.get(word(value)) for value in values)
    try:
        label = ColumnLabel(
            given.get("title"), given.get("unit"), words if any(words) else ()
        )
    except ParameterError as error:
        raise ParameterError(f"In the labels of column {name!r}, {error}") from None
    return None if label == ColumnLabel() else label


def check_distinct(schema: Schema) -> None:
    """Reject labels by which columns, or values of a column, would look the same."""
    shown = shown_schema(schema)
    _check_once(shown.names, "labels", "columns")
    for column in shown.columns:
        _check_once(map(word, column.categories), f"column {column.name!r}", "values")
    _check_once(map(word, shown.classes), "the target", "classes")


def _check_once(texts: Iterable[str], where: str, what: str) -> None:
    twice = [text for text, times in Counter(texts).items() if times > 1]
    if twice:
        raise DataError(
            f"By the labels, two {what} of {where} would be called {twice[0]!r}. Give "
            "each a name of its own."
        )


def read_labels(given: object) -> dict[str, dict[str, Any]]:
    """Return labels by column: a dictionary, or the content of a file."""
    if isinstance(given, (str, os.PathLike)):
        given = _read_file(Path(given))
    if not isinstance(given, Mapping):
        raise ParameterError(
            "labels must be a dictionary by column, or the path of a JSON, TOML or CSV "
            f"file. Got {type(given).__name__}."
        )
    return {str(name): _checked(str(name), label) for name, label in given.items()}


def _checked(name: str, label: object) -> dict[str, Any]:
    if isinstance(label, str):
        return {"title": label}
    if not isinstance(label, Mapping):
        raise ParameterError(
            f"The label of column {name!r} must be a title, or a dictionary of "
            f"{quoted(KEYS, len(KEYS))}. Got {type(label).__name__}."
        )
    unknown = [key for key in label if key not in KEYS]
    if unknown:
        raise ParameterError(
            f"The label of column {name!r} may have {quoted(KEYS, len(KEYS))}. Got "
            f"{unknown[0]!r}."
        )
    if not isinstance(label.get("words", {}), Mapping):
        raise ParameterError(
            f"words of column {name!r} must be a dictionary from values to words."
        )
    order = label.get("order", [])
    if isinstance(order, str) or not isinstance(order, (list, tuple)):
        raise ParameterError(f"order of column {name!r} must be a list of values.")
    return dict(label)


def _read_file(path: Path) -> object:
    readers: dict[str, Callable[[str], object]] = {
        ".json": json.loads,
        ".toml": tomllib.loads,
        ".csv": _from_csv,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ParameterError(
            "labels must be a file whose name ends with .json, .toml or .csv. Got "
            f"{str(path)!r}."
        )
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise DataError(
            f"labels cannot be read from {plain(str(path))}: {error}."
        ) from None
    if len(content) > _LARGEST:
        raise DataError(
            f"{plain(str(path))} is larger than 10 MB, too large for labels."
        )
    try:
        return reader(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{plain(str(path))} is not valid {path.suffix[1:].upper()}: {error}."
        ) from None


def _from_csv(text: str) -> dict[str, dict[str, Any]]:
    """Return the labels of lines of column, title, unit, value and word."""
    labels: dict[str, dict[str, Any]] = {}
    rows = csv.DictReader(text.splitlines())
    names = rows.fieldnames or []
    if "column" not in names or not set(names) <= set(CSV_COLUMNS):
        raise ValueError(f"its columns must be {', '.join(CSV_COLUMNS)}")
    for row in rows:
        label = labels.setdefault(row["column"], {})
        for key in ("title", "unit"):
            if row.get(key):
                label[key] = row[key]
        if row.get("word"):
            label.setdefault("words", {})[row.get("value") or ""] = row["word"]
    return labels
