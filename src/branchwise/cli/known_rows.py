"""Rows of a file whose answers are known, read in the way that a model wants them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.cli.models import read_for_model
from branchwise.cli.streams import Reporter
from branchwise.cli.training import case_weights
from branchwise.cli.truth import true_classes, true_column, true_numbers
from branchwise.errors import DataError, quoted
from branchwise.model import Model
from branchwise.table.read import TableFile


@dataclass(frozen=True)
class KnownRows:
    """A model that matches columns by name, and a table with its true answers."""

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
    """Read the rows whose answer is known."""
    target = true_column(model.schema, target, file)
    besides = [target] if weight is None else [target, weight]
    file.check_names(besides)
    answers, known = _answers(model, file, target, missing)
    weights = None
    if weight is not None:
        column = file.read(only=[weight], number_columns=[weight], missing=missing)
        weights = case_weights(column, weight, file)
    named, table = read_for_model(model, file, missing, reporter, besides)
    if known.all():
        return KnownRows(named, table, answers, weights, file)
    reporter.note(
        f"rows without an answer in column {target!r} are left out: "
        f"{int((~known).sum()):,} of {len(known):,} in {file.label}."
    )
    left = np.flatnonzero(known)
    weights = None if weights is None else weights[left]
    # What the library says of a row can no longer be told by its line.
    return KnownRows(named, table.take(left), answers[left], weights)


def _answers(
    model: Model, file: TableFile, target: str, missing: tuple[str, ...]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the true answers, and which of them are known."""
    if model.tree.predicts_numbers:
        numbers = true_numbers(file, target, missing)
        return numbers, ~np.isnan(numbers)
    truth = true_classes(file, target, model.schema, missing)
    if truth.unknown:
        raise DataError(
            f"Column {target!r} of {file.label} has classes that the tree does not "
            f"know: {quoted(truth.unknown)}. Take these rows out."
        )
    return model.schema.class_array.take(truth.codes), truth.codes >= 0
