"""Rows for subcommands: single rows to explain, and labelled rows to score.

``read_rows`` reads rows from a table or from ``--set``; ``read_known_rows`` reads a
table with its true classes or numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.cli.options.shared import (
    TextFormat,
    check_without_table,
    read_na_values,
    split_entry,
)
from branchwise.cli.support.models import read_for_model
from branchwise.cli.support.streams import Reporter, print_lines
from branchwise.cli.support.training import case_weights
from branchwise.data.columns import Coded, Numbers
from branchwise.data.frames import read_vector
from branchwise.data.schema import Column, Schema, Value, value_type
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.files.options import Reading
from branchwise.files.read_table import TableFile
from branchwise.model import Model
from branchwise.text.document import Document

_TRUTH = {"true": True, "false": False}


def print_written(written: Document, output_format: TextFormat) -> None:
    """Write a text to standard output, in a format."""
    if output_format is TextFormat.JSON:
        print_lines([written.to_json()])
    elif output_format is TextFormat.MARKDOWN:
        print_lines([written.to_markdown()])
    else:
        print_lines([str(written)])


@dataclass(frozen=True)
class Rows:
    """The model that matches columns by name, its rows, and where they come from."""

    model: Model
    rows: Any
    file: TableFile | None
    first: int


def read_rows(
    model: Model,
    table: str | None,
    chosen: int | None,
    settings: Sequence[str] | None,
    missing: Sequence[str] | None,
    reporter: Reporter,
    reading: Reading,
) -> Rows:
    """Read the rows of a table, or the chosen one, and fill in what was typed."""
    check_without_table(reading, "TABLE", table)
    typed = _typed_cells(model, settings or (), read_na_values(missing))
    if table is None:
        if not typed:
            raise ParameterError(
                "There is no row to look at. Give a TABLE, or the cells of a row with "
                "--set COLUMN=VALUE."
            )
        if chosen is not None:
            raise ParameterError("--row chooses a row of a TABLE. Give one, too.")
        empty: dict[str, Any] = dict.fromkeys(model.schema.names)
        return Rows(model, [empty | typed], None, 0)
    with reporter.reading(table):
        file = TableFile(table, reading)
        model, content = read_for_model(model, file, read_na_values(missing), reporter)
    first = 0
    if chosen is not None:
        first = _checked_row(chosen, content.num_rows, file)
        content = content.slice(first, 1)
    elif typed and content.num_rows != 1:
        raise ParameterError(
            f"--set fills in one row, and {file.label} has {content.num_rows:,}. "
            "Choose one with --row."
        )
    rows = [{**row, **typed} for row in content.to_pylist()] if typed else content
    return Rows(model, rows, file, first)


def _checked_row(row: int, n_rows: int, file: TableFile) -> int:
    if row >= n_rows:
        raise DataError(
            f"{file.label} has no row {row}. Rows are counted from 0, and it has "
            f"{n_rows:,}."
        )
    return row


def split_pair(option: str, entry: str, names: Sequence[str]) -> tuple[str, str]:
    """Split ``COLUMN=VALUE``; the name may contain ``=``."""
    split = split_entry(entry, names)
    if split is None:
        raise ParameterError(
            f"{option} must be COLUMN=VALUE. Got {entry!r}; put it in quotes if it "
            "has spaces."
        )
    if split[0] not in names:
        raise ParameterError(
            f"{option} must name a column of the tree. Got {split[0]!r}; the columns "
            f"are {quoted(names, 20)}."
        )
    return split


def _typed_cells(
    model: Model, settings: Sequence[str], na_values: Sequence[str]
) -> dict[str, Any]:
    columns = {column.name: column for column in model.schema.columns}
    cells: dict[str, Any] = {}
    for entry in settings:
        name, text = split_pair("--set", entry, list(columns))
        cells[name] = None if text in na_values else typed_value(columns[name], text)
    return cells


def typed_value(column: Column, text: str) -> Value:
    """Read a typed value as the values of a column are."""
    kind = column.value_type or "text"
    if kind == "text":
        return text
    if kind == "boolean" and text.strip().lower() in _TRUTH:
        return _TRUTH[text.strip().lower()]
    if kind == "number":
        try:
            return float(text)
        except ValueError:
            pass
    wanted = "a number" if kind == "number" else "true or false"
    raise DataError(
        f"Column {column.name!r} takes {wanted}. Got {text!r}; correct it, or leave "
        "it empty if it is missing."
    )


@dataclass(frozen=True)
class Truth:
    """The true classes: ``codes`` into ``labels``, -1 where there is none.

    ``labels`` are the classes of the model and, after them, the unknown ones.
    """

    labels: tuple[Value, ...]
    codes: NDArray[np.int64]
    unknown: tuple[Value, ...]


def true_column(schema: Schema, given: str | None, file: TableFile) -> str:
    """Return the column with the true classes or numbers, by default the target."""
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
    at_sign = [known.get(_as_written(text, schema), -1) for text in raw.values]
    unknown = [v for v, at in zip(raw.values, at_sign, strict=True) if at < 0]
    position = {label: len(known) + at for at, label in enumerate(unknown)}
    recode = [
        position[value] if at < 0 else at
        for value, at in zip(raw.values, at_sign, strict=True)
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
        at_sign = file.location(int(np.argmax(infinite)))
        raise DataError(
            f"Column {target!r} of {file.label} is infinite in {at_sign}. Correct the "
            "cell, or leave it empty."
        )
    return raw.values.astype(np.float64)


@dataclass(frozen=True)
class KnownRows:
    """A model that matches columns by name, and a labelled table."""

    model: Model
    X: Any = None
    y: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None
    file: TableFile | None = None


def read_known_rows(
    model: Model,
    file: TableFile,
    target: str | None,
    weight: str | None,
    missing: tuple[str, ...],
    reporter: Reporter,
) -> KnownRows:
    """Read the rows whose class or number is known."""
    target = true_column(model.schema, target, file)
    besides = [target] if weight is None else [target, weight]
    file.check_names(besides)
    predictions, known = _predictions(model, file, target, missing)
    weights = None
    if weight is not None:
        column = file.read(only=[weight], number_columns=[weight], missing=missing)
        weights = case_weights(column, weight, file)
    named, table = read_for_model(model, file, missing, reporter, besides)
    if known.all():
        return KnownRows(named, table, predictions, weights, file)
    reporter.note(
        f"rows without a value in column {target!r} are left out: "
        f"{int((~known).sum()):,} of {len(known):,} in {file.label}."
    )
    left = np.flatnonzero(known)
    weights = None if weights is None else weights[left]
    # Row numbers in messages of the library no longer are those of the file.
    return KnownRows(named, table.take(left), predictions[left], weights)


def _predictions(
    model: Model, file: TableFile, target: str, missing: tuple[str, ...]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the true classes or numbers, and which of them are known."""
    if model.tree.is_regression:
        numbers = true_numbers(file, target, missing)
        return numbers, ~np.isnan(numbers)
    truth = true_classes(file, target, model.schema, missing)
    if truth.unknown:
        raise DataError(
            f"Column {target!r} of {file.label} has classes that the tree does not "
            f"know: {quoted(truth.unknown)}. Take these rows out."
        )
    return model.schema.class_array.take(truth.codes), truth.codes >= 0
