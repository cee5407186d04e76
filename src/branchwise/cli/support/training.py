"""Training tables: columns, targets and weights, by the growing options."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from branchwise.cli.options import (
    Table,
    categorical_names,
    column_names,
    growing,
    read_na_values,
    reading_options,
    split_entry,
    takes,
)
from branchwise.cli.support import Reporter
from branchwise.cli.support.class_amounts import by_class, read_costs
from branchwise.cli.support.hints import (
    remark_classes,
    remark_columns,
    remark_findings,
    remark_header,
    written,
)
from branchwise.cli.support.rows import Weights, case_weights, located
from branchwise.data.columns import Numbers, RawColumn
from branchwise.data.conventions.date_format import DateFormat
from branchwise.data.conventions.number_format import NumberFormat
from branchwise.data.encoded_table import EncodedTable
from branchwise.data.frames import open_table, read_vector
from branchwise.data.table_schema import Value, check_absent, value_type
from branchwise.data.target import learn_numbers, learn_target
from branchwise.errors import DataError, ParameterError, counted, quoted
from branchwise.files.options import Reading
from branchwise.files.read_table import TableFile, with_location
from branchwise.recipe.ensemble_recipe import BALANCED_SAMPLES

#: So many different numbers as classes are a mistake.
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
    order: dict[str, list[str]]
    regression: bool = False

    @property
    def declared(self) -> dict[str, Any]:
        """The parameters with which the values of columns are declared."""
        return {"categories": self.categories or None, "order": self.order or None}


def assign_roles(file: Table, options: Mapping[str, Any]) -> Roles:
    """Return the role of every column, by the options of a subcommand that grows."""
    target, weight = options["target"], options["weight"]
    special = [target] if weight is None else [target, weight]
    file.check_names(special)
    ignored = column_names(file, options["ignore"])
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
    declared = declared_values("--categories", options["categories"], file)
    order = declared_values("--order", options["order"], file)
    regression = options["regression"]
    special = special if regression else special[1:]
    numbers = [*column_names(file, options["numeric"]), *special]
    text = [
        *categorical_names(file, options["categorical"], numbers),
        *declared,
        *order,
    ]
    return Roles(target, weight, text, numbers, ignored, declared, order, regression)


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
        classes = None if self.roles.regression else self.labels
        remark_header(self.file, reading, reporter)
        for note in self.file.numbers.notes:
            reporter.note(note)
        remark_columns(self.attributes, self.roles.text, reporter)
        remark_findings(self.attributes, classes, reporter)
        if classes is not None:
            remark_classes(classes, self.roles.target, reporter)


def read_training(file: TableFile, options: Mapping[str, Any]) -> TrainingTable:
    """Read a table by the options about its columns."""
    roles = assign_roles(file, options)
    table = file.read(
        text_columns=roles.text,
        number_columns=roles.numbers,
        ignore=roles.ignored,
        classes=None if roles.regression else roles.target,
    )
    labels, attributes = _features_and_target(table, roles, file)
    weights = case_weights(table, roles.weight, file)
    return TrainingTable(file, roles, table, attributes, labels, weights)


def read_others(path: str, rows: TrainingTable, reading: Reading) -> TrainingTable:
    """Read other rows, each column as in the training table, without weights.

    The reading options of the training table are applied where they fit.
    """
    file = TableFile(path, reading, further=True, missing=rows.file.missing)
    wanted = [name for name in rows.table.column_names if name != rows.roles.weight]
    table = _read_alike(file, rows.table.select(wanted))
    labels, attributes = _features_and_target(table, rows.roles, file)
    return TrainingTable(file, rows.roles, table, attributes, labels, None)


def _read_alike(file: TableFile, table: Any) -> Any:
    """Read the columns that another table has, each as it is there."""
    from branchwise.data.conventions.derived_columns import (
        derived_features,
        with_features,
    )

    frame = open_table(table)
    derived = derived_features(frame)
    own = [name for name in frame.names if name not in derived]
    check_absent(file.label, file.names, own, "the other table has")
    types: dict[str, list[str]] = {"number": [], "boolean": [], "text": []}
    formats: dict[str, NumberFormat | DateFormat] = {}
    known: dict[str, Sequence[Value]] = {}
    for name in own:
        raw = frame.column(frame.names.index(name))
        if isinstance(raw, Numbers):
            types["number"].append(name)
            if isinstance(raw.number_format, (NumberFormat, DateFormat)):
                formats[name] = raw.number_format
        else:
            known[name] = raw.values
            types[value_type(raw.values[0]) if raw.values else "text"].append(name)
    others = file.read(
        only=own,
        text_columns=types["text"],
        number_columns=types["number"],
        boolean_columns=types["boolean"],
        number_formats=formats,
        known_values=known if file.reading.merge_case else None,
    )
    return with_features(others, list(derived.values()), file.label)


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
    path: str, rows: TrainingTable, reading: Reading
) -> tuple[Any, Any]:
    """Read the attributes and the target of rows to prune with."""
    others = read_others(path, rows, reading)
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


def declared_values(
    option: str, given: Sequence[str] | None, file: Table
) -> dict[str, list[str]]:
    """Read ``--categories`` or ``--order`` such as ``color=y,g,b``."""
    declared: dict[str, list[str]] = {}
    for entry in given or ():
        split = split_entry(entry, file.names)
        if split is None:
            raise ParameterError(
                f"{option} must be a column, = and its values with commas between "
                f"them, such as color=red,green. Got {entry!r}."
            )
        name, values = split
        file.check_names([name])
        if name in declared:
            raise ParameterError(
                f"{option} names {name!r} twice. Give all its values at once."
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
                f"names, say so with {written('--categorical', roles.target)}."
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
            f"{written('--categorical', target)}, or predict the numbers themselves "
            "with --algorithm cart --regression."
        )
    return with_location(error, file.label, file.location) or error


@dataclass(frozen=True)
class Growth:
    """The growing options of a subcommand that tests trees, and how it reads tables."""

    options: Mapping[str, Any]
    reading: Reading

    @property
    def given(self) -> dict[str, Any]:
        """The parameters that were given, by the names of the estimators."""
        return growing.given_parameters(self.options)

    def check(self, algorithm: str, regression: bool) -> None:
        """Reject options that the algorithm does not have."""
        if algorithm in growing.ENSEMBLES:
            from branchwise.cli.options.ensemble_growing import ensemble_recipe

            ensemble_recipe(algorithm, regression, self.given)
        else:
            growing.given_recipe(algorithm, regression, self.given)

    def open(self, path: str) -> TableFile:
        """Open a table."""
        na_values = read_na_values(self.options["missing"])
        return TableFile(path, self.reading, missing=na_values)

    def read(self, path: str, target: str, regression: bool) -> TrainingTable:
        """Read a training table."""
        file = self.open(path)
        named = {"target": target, "regression": regression}
        return read_training(file, {**self.options, **named})

    def read_encoded(
        self,
        path: str,
        target: str,
        regression: bool,
        threads: int | None,
        reporter: Reporter,
    ) -> TrainingTable:
        """Read a training table, and encode its attributes once for all folds."""
        with reporter.reading(path):
            rows = self.read(path, target, regression)
            with located(rows.file):
                encoded = EncodedTable(rows.attributes, n_jobs=threads)
        rows.remark(self.reading, reporter)
        return replace(rows, attributes=encoded)

    def estimator(
        self,
        algorithm: str,
        regression: bool,
        rows: TrainingTable,
        only_effective: bool = False,
    ) -> Any:
        """Return an estimator with the parameters that its algorithm has."""
        from branchwise.evaluation import candidate

        if algorithm not in (*growing.ALGORITHMS, *growing.ENSEMBLES):
            return candidate(algorithm, regression)
        name, given = growing.full_name(algorithm, regression), self.given
        if given.get("pruning") == "none":
            del given["pruning"]
            given["prune"] = False
        given = {n: v for n, v in given.items() if growing.has_parameter(name, n)}
        for weights in ("class_weight", "priors"):
            if given.get(weights) == BALANCED_SAMPLES and algorithm == "forest":
                continue
            read = by_class(growing.option_of(weights), given.get(weights))
            if callable(read):
                given[weights] = read(learn_target(rows.labels)[0])
        if "costs" in given:
            given["costs"] = read_costs(given["costs"], learn_target(rows.labels)[0])
        if only_effective:
            given = growing.effective_parameters(name, given)
        return candidate(algorithm, regression, **rows.roles.declared, **given)


_OPTIONS = [o for o in growing.OPTIONS if o.name not in ("n_jobs", "validation")]


@takes(
    options=growing.group(*_OPTIONS),
    ensembles=growing.ensemble_options,
    reading=reading_options,
)
def growth_options(
    *, options: dict[str, Any], ensembles: dict[str, Any], reading: Reading
) -> Growth:
    """Return the growing and reading options of subcommands other than fit."""
    return Growth(options | ensembles, reading)
