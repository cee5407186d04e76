"""Export targets: how each is written, and how it is run for verification."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.encode import encode_columns, plain_cells
from branchwise.data.frames import open_table
from branchwise.data.table_schema import Column, Columns, Schema, Value
from branchwise.errors import ExportError, ParameterError, quoted
from branchwise.export.dates import number_of
from branchwise.export.plan import (
    LINK_TOLERANCE,
    LINK_ZERO,
    Plan,
    Row,
    make_ensemble_plan,
    make_plan,
)
from branchwise.recipe import Recipe
from branchwise.recipe.ensemble_recipe import EnsembleRecipe
from branchwise.text.as_html import asset
from branchwise.tree.apply import Arrivals, Walker
from branchwise.tree.tree import Tree

#: A label or number, and the probability of each class (none for numbers); None where
#: a row has no prediction because missing or unseen values are rejected.
Prediction = tuple[Value, tuple[float, ...]] | None


@dataclass(frozen=True)
class Sample:
    """Rows as plain values of a plan's fields, and the same rows encoded."""

    rows: list[Row]
    data: Columns


class Exportable(Protocol):
    """A model: anything with schema, tree and recipe."""

    schema: Schema
    tree: Tree
    recipe: Recipe


@runtime_checkable
class ExportableEnsemble(Protocol):
    """An ensemble: anything with schema, trees and recipe, which predicts."""

    schema: Schema
    trees: tuple[Tree, ...]
    recipe: EnsembleRecipe
    tree_weights: Floats | None
    initial: Floats | None

    def average(self, data: Columns) -> Floats:
        """Return what the trees predict together for encoded rows."""

    def class_codes(self, probabilities: Floats) -> Ints:
        """Return the predicted classes."""


def plan_of(model: Exportable | ExportableEnsemble) -> Plan:
    """Make the plan of a model or an ensemble."""
    if isinstance(model, ExportableEnsemble):
        return make_ensemble_plan(
            model.schema, model.trees, model.recipe, model.tree_weights, model.initial
        )
    return make_plan(model.schema, model.tree, model.recipe)


def sample_of_table(X: object, schema: Schema, plan: Plan) -> Sample:
    """Take the rows of a user's table, of the columns that are used."""
    frame = open_table(X)
    used = [field.column for field in plan.fields if field.column >= 0]
    inputs, given = schema, [field.column for field in plan.inputs]
    if plan.derived:  # dates that the model has not, or only what is derived from them
        columns = [field.schema_column for field in plan.inputs]
        inputs = replace(schema, columns=tuple(c for c in columns if c is not None))
        given = list(range(len(columns)))
    cells = plain_cells(frame, inputs, given)
    rows: list[Row] = [()] * frame.n_rows
    if given:
        rows = list(zip(*cells, strict=True))
    return Sample(rows, encode_columns(frame, schema, used))


def sample_of_rows(rows: Sequence[Row], schema: Schema, plan: Plan) -> Sample:
    """Take rows that are plain values already, one for each input."""
    data: list[NDArray[np.generic]] = [np.empty(0)] * len(schema.columns)
    for position, tested in enumerate(plan.fields):
        at = position if tested.feature is None else tested.source
        if tested.column >= 0:
            column = schema.columns[tested.column]
            data[tested.column] = _encoded(column, [row[at] for row in rows])
    return Sample(list(rows), Columns(len(rows), tuple(data)))


def _encoded(column: Column, cells: Sequence[Value | None]) -> NDArray[np.generic]:
    dates = column.date
    if column.date_feature is not None:
        dates = column.date_feature.date
    if dates is not None:
        numbers = np.array([number_of(dates, cell) for cell in cells], float)
        feature = column.date_feature
        return numbers if feature is None else feature.numbers(numbers, dates)
    if column.is_numeric:
        return np.array([np.nan if cell is None else cell for cell in cells], float)
    codes = [
        column.missing_code
        if cell is None
        else column.code_of.get(cell, column.unseen_code)
        for cell in cells
    ]
    return np.array(codes, dtype=column.code_dtype)


def model_predictions(
    schema: Schema,
    tree: Tree,
    recipe: Recipe,
    sample: Sample,
    leave_fractional: bool = False,
) -> list[Prediction]:
    """Return the predictions of the model; None for fractional cases if left out."""
    walker = Walker(schema.columns, tree, recipe)
    arrivals = walker.walk(sample.data)
    predictions: list[Prediction]
    if tree.is_regression:
        predictions = [(number, ()) for number in walker.numbers(arrivals).tolist()]
    else:
        labels = walker.labels(arrivals).tolist()
        probabilities = walker.distribution(arrivals).tolist()
        predictions = [
            (schema.classes[label], tuple(row))
            for label, row in zip(labels, probabilities, strict=True)
        ]
    left = _rejected(schema, tree.used_columns, recipe, sample)
    if leave_fractional:
        left |= _fractional(arrivals)
    for row in np.flatnonzero(left).tolist():
        predictions[row] = None
    return predictions


def ensemble_predictions(
    ensemble: ExportableEnsemble,
    plan: Plan,
    sample: Sample,
    leave_fractional: bool = False,
) -> list[Prediction]:
    """Return the predictions of an ensemble; None for rows that it rejects.

    None for fractional cases of any tree, too, if these are left out.
    """
    values = ensemble.average(sample.data)
    predictions: list[Prediction] = [(row[0], ()) for row in values.tolist()]
    if plan.classes:
        codes = ensemble.class_codes(values).tolist()
        predictions = [
            (plan.classes[code], tuple(row))
            for code, row in zip(codes, values.tolist(), strict=True)
        ]
    used = [field.column for field in plan.fields if field.column >= 0]
    left = _rejected(ensemble.schema, used, ensemble.recipe.tree, sample)
    for tree in ensemble.trees if leave_fractional else ():
        walker = Walker(ensemble.schema.columns, tree, ensemble.recipe.tree)
        left |= _fractional(walker.walk(sample.data))
    for row in np.flatnonzero(left).tolist():
        predictions[row] = None
    return predictions


def _fractional(arrivals: Arrivals) -> NDArray[np.bool_]:
    """Tell which rows arrive at several nodes."""
    return np.bincount(arrivals.row, minlength=arrivals.n_rows) > 1


def _rejected(
    schema: Schema, used: Sequence[int], recipe: Recipe, sample: Sample
) -> NDArray[np.bool_]:
    """Tell which rows the model rejects."""
    rejected = np.zeros(len(sample.rows), dtype=bool)
    for index in used:
        column, cells = schema.columns[index], sample.data.data[index]
        if recipe.missing == "error":
            numeric = column.is_numeric
            rejected |= np.isnan(cells) if numeric else cells == column.missing_code
        if recipe.unseen == "error" and not column.is_numeric:
            rejected |= cells == column.unseen_code
    return rejected


def same(
    first: Prediction, second: Prediction, plan: Plan, rounding: float = 0.0
) -> bool:
    """Tell whether two predictions are the same, to the last bit of every number.

    True and 1 are different labels; the two zeros are one number. After a link numbers
    are the same within its tolerance; predicted numbers may differ by ``rounding``.
    """
    if first is None or second is None:
        return first is second
    if plan.is_regression:
        return _equal(first[0], second[0], plan, rounding)
    return (
        first[0] == second[0]
        and type(first[0]) is type(second[0])
        and len(first[1]) == len(second[1])
        and all(_equal(*pair, plan) for pair in zip(first[1], second[1], strict=True))
    )


def _equal(first: Value, second: Value, plan: Plan, rounding: float = 0.0) -> bool:
    if first == second or not isinstance(first, float) or not isinstance(second, float):
        return first == second
    if plan.link is not None:
        return math.isclose(first, second, rel_tol=LINK_TOLERANCE, abs_tol=LINK_ZERO)
    return abs(first - second) <= rounding


#: What a program that runs an export may take, in seconds.
_PATIENCE = 600

#: The choice of the option ``divided`` that leaves fractional cases without a
#: prediction.
UNANSWERED = "unanswered"

Options = Mapping[str, str]


@dataclass(frozen=True)
class Runner:
    """A way to run what was exported.

    ``absent`` tells why it cannot be had on this machine, or returns None. ``run``
    takes the export, its plan and rows, and returns the predictions.
    """

    name: str
    absent: Callable[[], str | None]
    run: Callable[[bytes, Plan, Sequence[Row]], Sequence[Prediction]]


@dataclass(frozen=True)
class Target:
    """A language or format that models are exported to.

    ``write`` returns the export, or raises ExportError with the reason why the target
    cannot carry the model. ``choices`` are its options with what they may be, the
    default first; a single choice takes any text. What is not ``binary`` is UTF-8.
    ``runners`` are all tried. A target that cannot hold every row says in ``domain``
    which it holds; ``fitting`` returns the nearest such row, or None. ``rounding`` is
    by how much numbers may differ, where a program adds them up in its own way;
    ``has_probabilities`` tells whether an export predicts more than classes.
    """

    name: str
    suffix: str
    write: Callable[[Plan, Options], bytes]
    runners: Callable[[Options], Sequence[Runner]]
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    binary: bool = False
    fitting: Callable[[Plan, Row], Row | None] | None = None
    domain: str = ""
    rounding: Callable[[Plan], float] = lambda _: 0.0
    has_probabilities: Callable[[Options], bool] = lambda _: True

    def options(self, given: Mapping[str, str]) -> Options:
        """Return all options: those given, checked, and the defaults of the others."""
        for name, value in given.items():
            if name not in self.choices:
                known = quoted(self.choices, 20) or "none"
                raise ParameterError(
                    f"The export to {self.name!r} has no option {name!r}. Its options "
                    f"are: {known}."
                )
            allowed = self.choices[name]
            if len(allowed) > 1 and value not in allowed:
                raise ParameterError(
                    f"{name} of the export to {self.name!r} must be one of "
                    f"{quoted(allowed, 20)}. Got {value!r}."
                )
        return {name: given.get(name, c[0]) for name, c in self.choices.items()}


def program_runner(
    name: str,
    command: Callable[[Plan], Sequence[str]],
    driver: str,
    exported: str,
    absent: Callable[[], str | None] = lambda: None,
) -> Runner:
    """Return a runner that starts a template of ours, which reads the export."""

    def run(content: bytes, plan: Plan, rows: Sequence[Row]) -> Sequence[Prediction]:
        program = asset(f"export/templates/{driver}").encode()
        files = {driver.removesuffix(".txt"): program, exported: content}
        return run_program(command(plan), files, rows, plan)

    return Runner(name, absent, run)


def run_program(
    command: Sequence[str], files: Mapping[str, bytes], rows: Sequence[Row], plan: Plan
) -> list[Prediction]:
    """Run a program in a temporary folder with some files; return its predictions.

    Rows and predictions are lines of JSON: arrays of cells; null, or arrays of a number
    or of label and probabilities. Labels are codes, so that true and 1 stay apart.
    """
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    told = run_in_folder([command], files, lines.encode())
    return [_prediction(json.loads(line), plan) for line in told.splitlines()]


def run_in_folder(
    commands: Sequence[Sequence[str]],
    files: Mapping[str, bytes],
    given: bytes = b"",
    result: str | None = None,
) -> bytes:
    """Run programs one after the other in a folder of their own that holds some files.

    Returns what the last one wrote: to its standard output, or the file ``result``.
    """
    with TemporaryDirectory(prefix="branchwise-") as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        for command in commands:
            done = subprocess.run(  # noqa: S603
                list(command),
                cwd=folder,
                input=given,
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
            if done.returncode:
                told = done.stderr.decode(errors="replace").strip()[-2000:]
                raise ExportError(f"The export does not run: {command[0]} says: {told}")
        return done.stdout if result is None else (Path(folder) / result).read_bytes()


def _prediction(line: list[float] | None, plan: Plan) -> Prediction:
    if line is None:
        return None
    if plan.is_regression:
        return float(line[0]), ()
    return plan.classes[int(line[0])], tuple(map(float, line[1:]))
