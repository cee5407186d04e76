"""Columns, targets and weights of a training table, by the options of fit."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.cli.options.shared import (
    Table,
    categorical_names,
    column_names,
    remark_header,
    split_entry,
)
from branchwise.cli.support.hints import (
    has_no_value,
    option,
    why_text,
    with_option,
    without_mistaken,
)
from branchwise.cli.support.models import read_alike
from branchwise.cli.support.streams import Reporter
from branchwise.data.checks import grave_findings
from branchwise.data.columns import Coded, Numbers, RawColumn
from branchwise.data.frames import open_table, read_vector
from branchwise.data.schema import Value
from branchwise.data.target import learn_numbers, learn_target
from branchwise.data.weights import check_each_weight, with_class_weights
from branchwise.errors import DataError, ParameterError, counted, quoted
from branchwise.files.options import Reading
from branchwise.files.read_table import TableFile, with_location

Weights = NDArray[np.float64]

#: So many whole numbers are hardly meant as classes.
_MANY_CLASSES = 50
#: So many are a mistake.
_TOO_MANY_CLASSES = 200


@dataclass(frozen=True)
class Roles:
    """What the options make of the columns of a table."""

    target: str
    weight: str | None
    text: list[str]
    numbers: list[str]
    ignored: list[str]
    categories: dict[str, list[str]]
    regression: bool = False


def assign_roles(
    file: Table,
    target: str,
    weight: str | None,
    categorical: Sequence[str] | None,
    numeric: Sequence[str] | None,
    ignore: Sequence[str] | None,
    categories: Sequence[str] | None,
    regression: bool = False,
) -> Roles:
    """Return the role of every column, by the options."""
    special = [target] if weight is None else [target, weight]
    file.check_names(special)
    ignored = column_names(file, ignore)
    if target == weight:
        raise DataError(
            f"Column {target!r} cannot be both the target and the weight. Name another "
            "column with --weight."
        )
    for name in special:
        if name in ignored:
            role = "--target" if name == target else "--weight"
            raise DataError(
                f"Column {name!r} is named by {role} and by --ignore. Take it out of "
                "one of them."
            )
    declared = declared_categories(categories, file)
    special = special if regression else special[1:]
    numbers = [*column_names(file, numeric), *special]
    text = [*categorical_names(file, categorical, numbers), *declared]
    return Roles(target, weight, text, numbers, ignored, declared, regression)


@dataclass(frozen=True)
class TrainingTable:
    """A table in memory: its attributes, target and weights, each checked."""

    file: TableFile
    roles: Roles
    table: Any
    attributes: Any
    labels: Any
    weights: Weights | None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.labels)

    def remark(self, reading: Reading, reporter: Reporter) -> None:
        """Note what is odd about the columns."""
        remark_header(self.file, reading, reporter)
        remark_columns(self.attributes, self.roles, reporter)
        remark_findings(self.attributes, self.labels, self.roles, reporter)
        remark_target(self.labels, self.roles, reporter)


def read_training(
    file: TableFile, roles: Roles, na_values: Sequence[str]
) -> TrainingTable:
    """Read a table by the roles of its columns."""
    table = file.read(
        missing=na_values,
        text_columns=roles.text,
        number_columns=roles.numbers,
        ignore=roles.ignored,
    )
    labels, attributes = _features_and_target(table, roles, file)
    weights = case_weights(table, roles.weight, file)
    return TrainingTable(file, roles, table, attributes, labels, weights)


def read_others(
    path: str, rows: TrainingTable, na_values: Sequence[str], reading: Reading
) -> TrainingTable:
    """Read other rows, each column as in the training table, without weights.

    The reading options of the training table are applied where they fit.
    """
    file = TableFile(path, reading, further=True)
    wanted = [name for name in rows.table.column_names if name != rows.roles.weight]
    table = read_alike(file, rows.table.select(wanted), na_values)
    labels, attributes = _features_and_target(table, rows.roles, file)
    return TrainingTable(file, rows.roles, table, attributes, labels, None)


def _features_and_target(table: Any, roles: Roles, file: TableFile) -> tuple[Any, Any]:
    """Return the target and the attributes, each checked."""
    names = [n for n in table.column_names if n not in (roles.target, roles.weight)]
    if not names:
        raise DataError(
            f"{file.label} has no attributes: besides the target {roles.target!r} no "
            "column is left to learn from."
        )
    if table.num_rows == 0:
        raise DataError(
            f"{file.label} has a header but no rows, so there is nothing to learn from."
        )
    labels = table[roles.target]
    _check_target(labels, roles, file)
    return labels, table.select(names)


def validation_rows(
    path: str, rows: TrainingTable, na_values: Sequence[str], reading: Reading
) -> tuple[Any, Any]:
    """Read the attributes and the target of rows to prune with."""
    others = read_others(path, rows, na_values, reading)
    target = rows.roles.target
    if not rows.roles.regression:
        known, _ = learn_target(rows.labels)
        found, _ = learn_target(others.labels)
        unknown = [label for label in found if label not in known]
        if unknown:
            raise DataError(
                f"{others.file.label} has classes that {target!r} does not have in the "
                f"training table: {quoted(unknown)}. Take these rows out."
            )
    return others.attributes, others.labels


def declared_categories(
    given: Sequence[str] | None, file: Table
) -> dict[str, list[str]]:
    """Read ``--categories`` such as ``color=y,g,b``."""
    declared: dict[str, list[str]] = {}
    for entry in given or ():
        split = split_entry(entry, file.names)
        if split is None:
            raise ParameterError(
                "--categories must be a column, = and its values with commas between "
                f"them, such as color=red,green. Got {entry!r}."
            )
        name, values = split
        file.check_names([name])
        if name in declared:
            raise ParameterError(
                f"--categories names {name!r} twice. Give all its values at once."
            )
        declared[name] = next(csv.reader([values]), [])
    return declared


def _check_target(labels: Any, roles: Roles, file: TableFile) -> None:
    """Reject rows without a target value, and numbers that are not classes."""
    raw = read_vector(labels, roles.target)
    try:
        if roles.regression:
            learn_numbers(raw)
        else:
            learn_target(raw)
    except DataError as error:
        raise _target_error(error, raw, roles, file) from None
    if isinstance(raw, Numbers) and not roles.regression:
        classes = len(np.unique(raw.values))
        if classes >= _TOO_MANY_CLASSES:
            raise DataError(
                f"The target {roles.target!r} of {file.label} has {classes:,} "
                "different numbers, and each would be a class. Predict the numbers "
                "themselves with --algorithm cart --regression; or, if they are "
                f"names, say so with {option('--categorical', roles.target)}."
            )


def _target_error(
    error: DataError, raw: RawColumn, roles: Roles, file: TableFile
) -> DataError:
    """Return an error about the target that names the line and what to do about it."""
    target, row = roles.target, error.row
    if row is None:
        return error
    missing = np.isnan(raw.values) if isinstance(raw, Numbers) else raw.codes < 0
    if missing[row]:
        rows = counted(int(missing.sum()), "row")
        wanted = "number" if roles.regression else "class"
        return DataError(
            f"The target {target!r} is missing in {rows} of {file.label}, first in "
            f"{file.location(row)}. Every row needs a {wanted}: fill it in or take "
            "the row out."
        )
    if isinstance(raw, Numbers) and np.isfinite(raw.values[row]):
        return DataError(
            f"The target {target!r} must hold classes: text or whole numbers. Got "
            f"{raw.values[row]} in {file.location(row)} of {file.label}. Put such "
            f"numbers into classes, take them as names with "
            f"{option('--categorical', target)}, or predict the numbers themselves "
            "with --algorithm cart --regression."
        )
    return with_location(error, file.label, file.location) or error


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


def class_weighted(
    options: Mapping[str, Any], labels: Any, weights: Weights | None
) -> Weights | None:
    """Return the weights of rows with those of their classes, by the options."""
    if options["class_weight"] is None and options["priors"] is None:
        return weights
    classes, codes = learn_target(labels)
    return with_class_weights(
        weights,
        by_class("--class-weight", options["class_weight"]),
        by_class("--priors", options["priors"]),
        classes,
        codes,
    )


#: What options with numbers of classes must be.
_BY_CLASS = {
    "--class-weight": "'balanced' or classes with weights that are not negative, such "
    "as yes=2,no=1",
    "--priors": "every class with its share, such as yes=0.1,no=0.9",
}


def by_class(option: str, given: str | None) -> Any:
    """Return what reads numbers of classes once these are known; ``fit_tree`` takes it.

    "balanced" weights, and None, are returned as they are.
    """
    if given is None or (option == "--class-weight" and given == "balanced"):
        return given

    def read(classes: Sequence[Value]) -> dict[Value, float]:
        what = _BY_CLASS[option]
        named = _named_numbers(option, given, classes, what)
        absent = [label for label in classes if str(label) not in named]
        if option == "--priors" and (absent or not any(named.values())):
            got = f"none for {quoted(absent)}" if absent else "0 for every class"
            raise ParameterError(f"--priors must be {what}. Got {got}.")
        if not absent and not any(named.values()):
            raise ParameterError(
                f"{option} gives 0 to every class, so that no row counts. Give a "
                "positive weight to a class."
            )
        return {label: named[str(label)] for label in classes if str(label) in named}

    return read


def _named_numbers(
    option: str, given: str, classes: Sequence[Value], what: str
) -> dict[str, float]:
    """Read numbers of classes, such as ``yes=2,no=1``, none of them negative."""
    known = [str(label) for label in classes]
    numbers = {}
    for entry in next(csv.reader([given]), []):
        name, _, written = entry.rpartition("=")
        number = as_amount(written) if name else None
        if number is None:
            raise ParameterError(f"{option} must be {what}. Got {entry!r}.")
        if name not in known:
            raise ParameterError(
                f"{option} names the class {name!r}, which does not occur. The classes "
                f"are {quoted(known, 20)}."
            )
        numbers[name] = number
    return numbers


def as_amount(written: str) -> float | None:
    """Read a finite number that is not negative; None is anything else."""
    try:
        number = float(written)
    except ValueError:
        return None
    return number if 0 <= number < np.inf else None


def remark_target(labels: Any, roles: Roles, reporter: Reporter) -> None:
    """Note numbers that are hardly meant as classes."""
    raw = read_vector(labels, roles.target)
    if roles.regression or not isinstance(raw, Numbers):
        return
    classes = len(np.unique(raw.values))
    if classes >= _MANY_CLASSES:
        reporter.note(
            f"each of the {classes:,} numbers in {roles.target!r} is taken for a "
            "class; --algorithm cart --regression predicts them as numbers."
        )


def remark_columns(attributes: Any, roles: Roles, reporter: Reporter) -> None:
    """Note columns that cannot help, or are taken for text."""
    frame = open_table(attributes)
    empty = []
    for index, name in enumerate(frame.names):
        raw = frame.column(index)
        if has_no_value(raw):
            empty.append(name)
        elif isinstance(raw, Coded):
            why = "" if name in roles.text else why_text(raw)
            if why:
                reporter.note(f"column {name!r} is {why}.")
    if empty:
        reporter.note(f"no row has a value in {_columns(empty)}.")


def remark_findings(
    attributes: Any, labels: Any, roles: Roles, reporter: Reporter
) -> None:
    """Note columns that help too well: they name rows, or give the class away."""
    if reporter.quiet:
        return
    found = grave_findings(attributes, None if roles.regression else labels)
    for finding in without_mistaken(found, open_table(attributes)):
        reporter.note(with_option(finding))


def _columns(names: Sequence[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {quoted(names)}"
