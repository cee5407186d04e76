"""What ``branchwise fit`` checks and prepares before a tree is grown."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from branchwise.cli.hints import (
    as_missing,
    has_no_value,
    is_identifier,
    option,
    stray_words,
)
from branchwise.cli.options import categorical_names, column_names
from branchwise.cli.streams import Reporter, counted
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.table.encode import learn_target
from branchwise.table.frames import open_table, read_vector
from branchwise.table.raw import Coded, Numbers
from branchwise.table.read import TableFile
from branchwise.table.schema import Value

Weights = NDArray[np.float64]


@dataclass(frozen=True)
class Roles:
    """What the options make of the columns of a table."""

    target: str
    weight: str | None
    text: list[str]
    numbers: list[str]
    ignored: list[str]
    categories: dict[str, list[str]]


def assign_roles(
    file: TableFile,
    target: str,
    weight: str | None,
    categorical: Sequence[str] | None,
    numeric: Sequence[str] | None,
    ignore: Sequence[str] | None,
    categories: Sequence[str] | None,
) -> Roles:
    """Find out what every column is for, as the options say."""
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
    numbers = [*column_names(file, numeric), *special[1:]]
    text = [*categorical_names(file, categorical, numbers), *declared]
    return Roles(target, weight, text, numbers, ignored, declared)


def parted(table: Any, roles: Roles, file: TableFile) -> tuple[Any, Any]:
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
    _check_target(labels, roles.target, file)
    return labels, table.select(names)


def samples(option: str, text: str) -> float:
    """Read a number of cases or a share: 5 is five cases, 0.05 is a share."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"{option} must be a whole number or a share between 0 and 1. Got {text!r}."
        ) from None


def declared_categories(
    given: Sequence[str] | None, file: TableFile
) -> dict[str, list[str]]:
    """Read ``--categories`` such as ``color=y,g,b``."""
    declared: dict[str, list[str]] = {}
    for entry in given or ():
        name, values = _split_entry(entry, file.names)
        if name is None:
            raise ParameterError(
                "--categories must be a column, = and its values with commas between "
                f"them, such as color=red,green. Got {entry!r}."
            )
        file.check_names([name])
        if name in declared:
            raise ParameterError(
                f"--categories names {name!r} twice. Give all its values at once."
            )
        declared[name] = values
    return declared


def _split_entry(entry: str, names: Sequence[str]) -> tuple[str | None, list[str]]:
    """Split at the first = whose left side is a column, for a name may have one."""
    parts = entry.split("=")
    ways = [("=".join(parts[:at]), "=".join(parts[at:])) for at in range(1, len(parts))]
    for name, values in ways:
        if name in names:
            return name, next(csv.reader([values]), [])
    return (ways[0][0], []) if ways else (None, [])


def _check_target(labels: Any, target: str, file: TableFile) -> None:
    """Refuse rows without a class, and numbers that are no classes."""
    raw = read_vector(labels, target)
    missing = np.isnan(raw.values) if isinstance(raw, Numbers) else raw.codes < 0
    if missing.any():
        rows = counted(int(missing.sum()), "row")
        raise DataError(
            f"The target {target!r} is missing in {rows} of {file.label}, first in "
            f"{file.place(int(np.argmax(missing)))}. Every row needs a class: fill it "
            "in or take the row out."
        )
    if isinstance(raw, Numbers):
        strange = raw.values != np.rint(raw.values)
        if strange.any():
            row = int(np.argmax(strange))
            raise DataError(
                f"The target {target!r} must hold classes: text or whole numbers. Got "
                f"{raw.values[row]} in {file.place(row)} of {file.label}. Put such "
                f"numbers into classes, or take them as names with "
                f"{option('--categorical', target)}."
            )


def case_weights(table: Any, column: str | None, file: TableFile) -> Weights | None:
    """Return the weights of the rows."""
    if column is None:
        return None
    raw = read_vector(table[column], column)
    if not isinstance(raw, Numbers):
        raise DataError(f"Column {column!r} must hold the weights of the rows.")
    weights = raw.values
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        got = "none" if np.isnan(weights[row]) else str(weights[row])
        raise DataError(
            f"Column {column!r} must hold weights: finite numbers that are not "
            f"negative. Got {got} in {file.place(row)} of {file.label}."
        )
    if not weights.any():
        raise DataError(
            f"Column {column!r} holds only weights of 0, so that no row counts. Give a "
            "positive weight to the rows to learn from."
        )
    return weights


def class_weights(
    given: str | None, labels: Any, weights: Weights | None
) -> Weights | None:
    """Multiply the weights of the rows by the weights of their classes."""
    if given is None:
        return weights
    classes, codes = learn_target(labels, len(labels))
    if given == "balanced":
        by_class = len(codes) / (len(classes) * np.bincount(codes))
    else:
        by_class = _named_weights(given, classes)
    by_row = by_class[codes]
    if not by_row.any():
        raise ParameterError(
            "--class-weight gives 0 to every class, so that no row counts. Give a "
            "positive weight to a class."
        )
    return by_row if weights is None else weights * by_row


def _named_weights(given: str, classes: Sequence[Value]) -> Weights:
    code_of = {str(label): code for code, label in enumerate(classes)}
    by_class = np.ones(len(classes))
    for entry in next(csv.reader([given]), []):
        name, _, number = entry.rpartition("=")
        try:
            weight = float(number) if name else -1.0
        except ValueError:
            weight = -1.0
        if not 0 <= weight < np.inf:
            raise ParameterError(
                "--class-weight must be 'balanced' or classes with weights that are "
                f"not negative, such as yes=2,no=1. Got {entry!r}."
            )
        if name not in code_of:
            raise ParameterError(
                f"--class-weight names the class {name!r}, which does not occur. The "
                f"classes are {quoted(code_of, 20)}."
            )
        by_class[code_of[name]] = weight
    return by_class


def remark_columns(attributes: Any, roles: Roles, reporter: Reporter) -> None:
    """Note columns that cannot help, help too well, or are taken for text."""
    frame = open_table(attributes)
    empty, telling = [], []
    for index, name in enumerate(frame.names):
        raw = frame.column(index)
        if has_no_value(raw):
            empty.append(name)
        elif isinstance(raw, Coded):
            words = [] if name in roles.text else stray_words(raw)
            if words:
                reporter.note(
                    f"column {name!r} is taken for text because of {quoted(words)}; it "
                    f"is numeric with {as_missing(words)}."
                )
            elif is_identifier(raw):
                telling.append(name)
    if empty:
        reporter.note(f"no row has a value in {_columns(empty)}.")
    if telling:
        reporter.note(
            f"every row has another value in {_columns(telling)}. If that identifies "
            f"the rows, leave it out: {option('--ignore', telling[0])}."
        )


def _columns(names: Sequence[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {quoted(names)}"
