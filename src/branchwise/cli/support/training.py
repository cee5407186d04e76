"""Columns, targets and weights of a training table, by the options of fit."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from branchwise.cli.options.shared import Table, categorical_names, column_names
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
from branchwise.data.columns import Coded, Numbers
from branchwise.data.frames import open_table, read_vector
from branchwise.data.schema import Value
from branchwise.data.target import learn_target
from branchwise.errors import DataError, ParameterError, counted, quoted
from branchwise.files.options import Reading
from branchwise.files.read_table import TableFile
from branchwise.recipe import ALPHA_RULES

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


def features_and_target(table: Any, roles: Roles, file: TableFile) -> tuple[Any, Any]:
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
    path: str, table: Any, roles: Roles, missing: Sequence[str], reading: Reading
) -> tuple[Any, Any]:
    """Read the attributes and the target of rows to prune with.

    Parameters
    ----------
    path : str
        The file that has them.
    table : pyarrow.Table
        The training table, which tells how each column is to be taken.
    roles : Roles
        What the columns are for.
    missing : sequence of str
        The cells that are missing values.
    reading : Reading
        The reading options of the training table, applied here where they fit.
    """
    file = TableFile(path, reading, further=True)
    wanted = [name for name in table.column_names if name != roles.weight]
    rows = read_alike(file, table.select(wanted), missing)
    labels, attributes = features_and_target(rows, roles, file)
    if not roles.regression:
        known, _ = learn_target(table[roles.target])
        found, _ = learn_target(labels)
        unknown = [label for label in found if label not in known]
        if unknown:
            raise DataError(
                f"{file.label} has classes that {roles.target!r} does not have in the "
                f"training table: {quoted(unknown)}. Take these rows out."
            )
    return attributes, labels


def number_or_rule(option: str, text: str | None) -> float | str | None:
    """Read ccp_alpha: a number, or the rule that chooses it."""
    if text is None or text in ALPHA_RULES:
        return text
    try:
        return float(text)
    except ValueError:
        rules = " or ".join(ALPHA_RULES)
        raise typer.BadParameter(
            f"{option} must be a number, {rules}. Got {text!r}."
        ) from None


def samples(option: str, text: str | None) -> float | None:
    """Read a number of cases or a share: 5 is five cases, 0.05 is a share."""
    if text is None:
        return None
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
    given: Sequence[str] | None, file: Table
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
    pieces = entry.split("=")
    ways = [
        ("=".join(pieces[:at]), "=".join(pieces[at:])) for at in range(1, len(pieces))
    ]
    for name, values in ways:
        if name in names:
            return name, next(csv.reader([values]), [])
    return (ways[0][0], []) if ways else (None, [])


def _check_target(labels: Any, roles: Roles, file: TableFile) -> None:
    """Reject rows without a target value, and numbers that are not classes."""
    target = roles.target
    raw = read_vector(labels, target)
    missing = np.isnan(raw.values) if isinstance(raw, Numbers) else raw.codes < 0
    if missing.any():
        rows = counted(int(missing.sum()), "row")
        wanted = "number" if roles.regression else "class"
        raise DataError(
            f"The target {target!r} is missing in {rows} of {file.label}, first in "
            f"{file.location(int(np.argmax(missing)))}. Every row needs a {wanted}: "
            "fill it in or take the row out."
        )
    if isinstance(raw, Numbers) and not roles.regression:
        unseen = raw.values != np.rint(raw.values)
        if unseen.any():
            row = int(np.argmax(unseen))
            raise DataError(
                f"The target {target!r} must hold classes: text or whole numbers. Got "
                f"{raw.values[row]} in {file.location(row)} of {file.label}. Put such "
                f"numbers into classes, take them as names with "
                f"{option('--categorical', target)}, or predict the numbers themselves "
                "with --algorithm cart --regression."
            )
        classes = len(np.unique(raw.values))
        if classes >= _TOO_MANY_CLASSES:
            raise DataError(
                f"The target {target!r} of {file.label} has {classes:,} different "
                "numbers, and each would be a class. Predict the numbers themselves "
                "with --algorithm cart --regression; or, if they are names, say so "
                f"with {option('--categorical', target)}."
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
            f"negative. Got {got} in {file.location(row)} of {file.label}."
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
        named = named_numbers(
            "--class-weight",
            given,
            classes,
            "'balanced' or classes with weights that are not negative, such as "
            "yes=2,no=1",
        )
        by_class = np.array([named.get(str(label), 1.0) for label in classes])
    by_row = by_class[codes]
    if not by_row.any():
        raise ParameterError(
            "--class-weight gives 0 to every class, so that no row counts. Give a "
            "positive weight to a class."
        )
    return by_row if weights is None else weights * by_row


def prior_weights(
    given: str | None, labels: Any, weights: Weights | None
) -> Weights | None:
    """Multiply the weights of the rows so that each class has its share of all."""
    if given is None:
        return weights
    classes, codes = learn_target(labels, len(labels))
    what = "every class with its share, such as yes=0.1,no=0.9"
    named = named_numbers("--priors", given, classes, what)
    absent = [label for label in classes if str(label) not in named]
    total = sum(named.values())
    if absent or not total > 0:
        got = f"none for {quoted(absent)}" if absent else "0 for every class"
        raise ParameterError(f"--priors must be {what}. Got {got}.")
    weights = np.ones(len(codes)) if weights is None else weights
    wanted = np.array([named[str(label)] for label in classes]) / total
    found = np.bincount(codes, weights, len(classes))
    by_class = wanted * weights.sum() / np.where(found > 0, found, 1.0)
    by_row: Weights = weights * by_class[codes]
    return by_row


def by_class(
    option: str, given: str | None
) -> Callable[[Sequence[Value]], dict[Value, float]] | str | None:
    """Return what reads numbers of classes once these are known."""
    if given is None or (option == "--class-weight" and given == "balanced"):
        return given

    def read(classes: Sequence[Value]) -> dict[Value, float]:
        what = "classes with numbers that are not negative, such as yes=2,no=1"
        named = named_numbers(option, given, classes, what)
        return {label: named[str(label)] for label in classes if str(label) in named}

    return read


def named_numbers(
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
