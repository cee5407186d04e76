"""Model files, and tables read for a model: rows to explain, labelled rows to score."""

from __future__ import annotations

import filecmp
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from branchwise.cli.options import (
    NA_VALUES,
    QUIET,
    check_without_table,
    read_na_values,
    reading_options,
    split_entry,
    takes,
)
from branchwise.cli.support import Reporter, print_json, print_lines
from branchwise.cli.support.hints import remark_spellings
from branchwise.data.columns import Coded, Numbers
from branchwise.data.conventions.date_format import read_text
from branchwise.data.conventions.number_format import NumberFormat, parse_texts
from branchwise.data.conventions.spellings import known_spelling
from branchwise.data.frames import read_vector
from branchwise.data.table_schema import (
    Column,
    Schema,
    Value,
    columns_by_type,
    columns_for,
    number_formats,
    value_type,
)
from branchwise.data.weights import check_each_weight
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.files.dataset import StreamedTable
from branchwise.files.options import Reading, as_number, as_truth
from branchwise.files.read_table import (
    STANDARD_STREAM,
    TableFile,
    known_na_values,
    with_location,
)
from branchwise.model import Model

if TYPE_CHECKING:
    from branchwise.engines.table_check import TableCheck
    from branchwise.ensemble.ensemble import Ensemble
    from branchwise.text.document import Document

#: What predicts.
Predictor = TypeVar("Predictor", bound="Model | Ensemble")


@dataclass(frozen=True)
class Inputs:
    """How a subcommand reads tables, and who notes what is odd about them."""

    reading: Reading
    missing: list[str] | None
    reporter: Reporter

    def open(self, path: str, further: bool = False) -> TableFile:
        """Open a table, or a further one beside it."""
        na_values = read_na_values(self.missing)
        return TableFile(path, self.reading, further, na_values)

    @contextmanager
    def opened(self, path: str) -> Iterator[tuple[TableFile, Callable[[str], None]]]:
        """Open a table, with a progress bar for it and for what follows."""
        with self.reporter.reading(path) as say:
            yield self.open(path), say


@takes(reading=reading_options)
def input_options(
    missing: list[str] | None = NA_VALUES, quiet: bool = QUIET, *, reading: Reading
) -> Inputs:
    """Return the options of subcommands that read tables for a model."""
    return Inputs(reading, missing, Reporter(quiet))


def check_two_streams(**paths: str | None) -> None:
    """Reject more than one input from standard input."""
    streams = [name for name, path in paths.items() if path == STANDARD_STREAM]
    if len(streams) > 1:
        raise ParameterError(
            f"{' and '.join(streams)} are both -, but standard input can be only one "
            "of them. Give a file for the other."
        )


def check_known_rows(table: str, option: str, others: str | None) -> None:
    """Reject the training table as the table to test or prune with."""
    if others is None or not (Path(table).is_file() and Path(others).is_file()):
        return
    if filecmp.cmp(table, others, shallow=False):
        raise ParameterError(
            f"{option} {others} has the rows of {table}, from which the tree is grown. "
            "Give rows that it has not seen."
        )


def read_for_model(
    model: Predictor,
    file: TableFile,
    reporter: Reporter,
    besides: Sequence[str] = (),
    only_used: bool = False,
) -> tuple[Predictor, Any]:
    """Read the columns of a model, each with the type that it had in training.

    Returns the model, which now matches the columns by name, and the table. ``besides``
    are columns that are no attributes, such as the target. Columns that the model does
    not split on may be absent, and are not read with ``only_used``.
    """
    own_names = columns_of(model, file, reporter, besides)
    if only_used:
        from branchwise.engines.prediction import columns_in_use

        own_names = columns_in_use(own_names, model)
    types = columns_by_type(own_names)
    table = file.read(
        # Without splits a column is read as well, to count the rows.
        only=list(own_names) or file.names[:1],
        missing=known_na_values(file.missing, model.schema),
        text_columns=types["text"],
        number_columns=types["number"],
        boolean_columns=types["boolean"],
        number_formats=number_formats(own_names),
        known_values=_known_values(
            model, file, {name: column.categories for name, column in own_names.items()}
        ),
    )
    if own_names:
        remark_spellings(own_names, table, reporter)
        names = [own_names[name].name for name in table.column_names]
        table = table.rename_columns(names)
    by_name = copy(model)
    by_name.schema = replace(model.schema, named=True)
    return by_name, table


def _known_values(
    model: Model | Ensemble, file: TableFile, known: Mapping[str, Sequence[Value]]
) -> Mapping[str, Sequence[Value]] | None:
    """Return the values into which other spellings are merged, if they are."""
    return known if model.schema.merge_case or file.reading.merge_case else None


def columns_of(
    model: Model | Ensemble,
    file: TableFile | StreamedTable,
    reporter: Reporter,
    besides: Sequence[str] = (),
) -> dict[str, Column]:
    """Return which columns of a file the model means; tell if by their order."""
    used = model.used_columns
    advising = file.advising() if isinstance(file, TableFile) else nullcontext()
    with advising:
        own_names = columns_for(model.schema, file.names, file.label, used, besides)
    if any(name != column.name for name, column in own_names.items()):
        reporter.note(
            "the model was fitted on a table without column names; the columns of "
            f"{file.label} are taken in their order."
        )
    return own_names


def note_cells(check: TableCheck, reporter: Reporter) -> None:
    """Note cells of a table that training did not have."""
    for note in check.notes():
        reporter.note(note)


@contextmanager
def located(file: TableFile | None) -> Iterator[None]:
    """Add to errors where in the file the row is that they speak of.

    Without a file nothing is added: there are several tables, or their rows are not
    those of the file.
    """
    try:
        yield
    except DataError as error:
        found = None
        if file is not None:
            found = with_location(error, file.label, file.location)
        if found is None:
            raise
        raise found from None


def print_result(document: Any, lines: Iterable[str], output_format: str) -> None:
    """Write a result to standard output, as JSON or as text."""
    if output_format == "json":
        print_json(document)
    else:
        print_lines(lines)


def print_written(written: Document, output_format: str) -> None:
    """Write a text to standard output, in a format."""
    write = {"json": written.to_json, "markdown": written.to_markdown}
    print_lines([write.get(output_format, written.__str__)()])


@dataclass(frozen=True)
class Rows:
    """The model that matches columns by name, its rows, and where they come from."""

    model: Any
    rows: Any
    file: TableFile | None
    first: int


def read_rows(
    model: Model | Ensemble,
    table: str | None,
    chosen: int | None,
    settings: Sequence[str] | None,
    inputs: Inputs,
) -> Rows:
    """Read the rows of a table, or the chosen one, and fill in what was typed."""
    check_without_table(inputs.reading, "TABLE", table)
    na_values = known_na_values(read_na_values(inputs.missing), model.schema)
    typed = _typed_cells(model, settings or (), na_values)
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
    with inputs.opened(table) as (file, _):
        model, content = read_for_model(model, file, inputs.reporter)
    if chosen is not None:
        if chosen >= content.num_rows:
            raise DataError(
                f"{file.label} has no row {chosen}. Rows are counted from 0, and it "
                f"has {content.num_rows:,}."
            )
        content = content.slice(chosen, 1)
    elif typed and content.num_rows != 1:
        raise ParameterError(
            f"--set fills in one row, and {file.label} has {content.num_rows:,}. "
            "Choose one with --row."
        )
    rows = [{**row, **typed} for row in content.to_pylist()] if typed else content
    return Rows(model, rows, file, chosen or 0)


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
    model: Model | Ensemble, settings: Sequence[str], na_values: Sequence[str]
) -> dict[str, Any]:
    columns = {column.name: column for column in model.schema.columns}
    cells: dict[str, Any] = {}
    for entry in settings:
        name, text = split_pair("--set", entry, list(columns))
        if model.schema.merge_case:
            text = known_spelling(text, columns[name].categories)
        cells[name] = None if text in na_values else typed_value(columns[name], text)
    return cells


def typed_value(column: Column, text: str) -> Value:
    """Read a typed value as the values of a column are."""
    kind = column.value_type or "text"
    if kind == "text":
        return text
    value: Value | None = None
    if column.date is not None:
        if read_text(text, column.date) is None:
            raise DataError(
                f"Column {column.name!r} takes {column.date.what} written as "
                f"{column.date}. Got {text!r}; correct it, or leave it empty if it is "
                "missing."
            )
        return text
    if isinstance(column.number_format, NumberFormat):
        value = parse_texts([text], column.number_format)[0]
    if value is None:
        value = as_number(text) if kind == "number" else as_truth(text)
    if value is None:
        wanted = "a number" if kind == "number" else "true or false"
        raise DataError(
            f"Column {column.name!r} takes {wanted}. Got {text!r}; correct it, or "
            "leave it empty if it is missing."
        )
    return value


def class_written(schema: Schema, text: str) -> Value | None:
    """Return the class that is written like this; None if there is none."""
    for label in schema.classes:
        written = str(label)
        alike = not isinstance(label, str) and written.lower() == text.lower()
        if alike or written == text:
            return label
    return None


@dataclass(frozen=True)
class Truth:
    """The true targets of rows: numbers, or codes of classes; ``noun`` tells which.

    ``known`` are the rows that have one. ``labels`` are the classes of the model and,
    after them, the unknown ones.
    """

    noun: str
    values: NDArray[Any]
    known: NDArray[np.bool_]
    labels: tuple[Value, ...] = ()
    unknown: tuple[Value, ...] = ()

    @property
    def n_without(self) -> int:
        """How many rows have none."""
        return int((~self.known).sum())


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


def read_truth(model: Model | Ensemble, file: TableFile, target: str) -> Truth:
    """Read the true classes or numbers of the rows of a table."""
    noun = "class" if model.schema.classes else "number"
    text, numbers = ([target], []) if model.schema.classes else ([], [target])
    how = model.schema.target_format
    classes = tuple(map(str, model.schema.classes))
    table = file.read(
        only=[target],
        missing=known_na_values(file.missing, model.schema),
        text_columns=text,
        number_columns=numbers,
        # The numbers of a table may be written in another way than those of a frame.
        number_formats=None if how is None else {target: how},
        known_values=_known_values(model, file, {target: classes}),
    )
    raw = read_vector(table[target], target)
    known = raw.codes >= 0 if isinstance(raw, Coded) else ~np.isnan(raw.values)
    if isinstance(raw, Coded) != bool(model.schema.classes) or not known.any():
        raise DataError(
            f"Column {target!r} of {file.label} has no {noun} in any row. This needs "
            f"rows whose {noun} is known."
        )
    if isinstance(raw, Coded):
        labels, codes = _true_classes(raw, model.schema)
        unknown = labels[len(model.schema.classes) :]
        return Truth(noun, codes, known, labels, unknown)
    infinite = np.isinf(raw.values)
    if infinite.any():
        where = file.location(int(np.argmax(infinite)))
        raise DataError(
            f"Column {target!r} of {file.label} is infinite in {where}. Correct the "
            "cell, or leave it empty."
        )
    return Truth(noun, raw.values.astype(np.float64), known)


def _true_classes(
    raw: Coded, schema: Schema
) -> tuple[tuple[Value, ...], NDArray[np.int64]]:
    """Return the classes of the model and unknown ones, and the code of each row."""
    known: dict[object, int] = {}
    for code, label in enumerate(schema.classes):
        known[str(label).lower() if isinstance(label, bool) else label] = code
    labels = list(schema.classes)
    recode = []
    for text in raw.values:
        code = known.get(_as_written(text, schema), len(labels))
        if code == len(labels):
            labels.append(text)
        recode.append(code)
    return tuple(labels), np.array([*recode, -1], dtype=np.int64)[raw.codes]


def _as_written(text: Value, schema: Schema) -> object:
    """Read the text of a label as the model's classes are: text, number, truth."""
    kind = value_type(schema.classes[0])
    if kind == "text":
        return text
    if kind == "boolean":
        return str(text).lower()
    number = as_number(str(text))
    return text if number is None else number


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
    reporter: Reporter,
) -> KnownRows:
    """Read the rows whose class or number is known."""
    target = true_column(model.schema, target, file)
    besides = [target] if weight is None else [target, weight]
    file.check_names(besides)
    truth = read_truth(model, file, target)
    if truth.unknown:
        raise DataError(
            f"Column {target!r} of {file.label} has classes that the tree does not "
            f"know: {quoted(truth.unknown)}. Take these rows out."
        )
    known, targets = truth.known, truth.values
    if truth.labels:
        targets = model.schema.class_array.take(targets)
    weights = None
    if weight is not None:
        column = file.read(only=[weight], number_columns=[weight])
        weights = case_weights(column, weight, file)
    named, table = read_for_model(model, file, reporter, besides)
    if known.all():
        return KnownRows(named, table, targets, weights, file)
    reporter.note(
        f"rows without a value in column {target!r} are left out: "
        f"{truth.n_without:,} of {len(known):,} in {file.label}."
    )
    left = np.flatnonzero(known)
    weights = None if weights is None else weights[left]
    # Row numbers in messages of the library no longer are those of the file.
    return KnownRows(named, table.take(left), targets[left], weights)


Weights = NDArray[np.float64]


def case_weights(table: Any, column: str | None, file: TableFile) -> Weights | None:
    """Return the weights of the rows."""
    if column is None:
        return None
    raw = read_vector(table[column], column)
    if not isinstance(raw, Numbers):
        raise DataError(f"Column {column!r} must hold the weights of the rows.")
    weights = raw.values
    try:
        check_each_weight(weights, len(weights))
    except DataError as error:
        row = int(error.row or 0)
        got = "none" if np.isnan(weights[row]) else str(weights[row])
        raise DataError(
            f"Column {column!r} must hold weights: finite numbers that are not "
            f"negative. Got {got} in {file.location(row)} of {file.label}."
        ) from None
    if not weights.any():
        raise DataError(
            f"Column {column!r} holds only weights of 0, so that no row counts. Give a "
            "positive weight to the rows to learn from."
        )
    return weights
