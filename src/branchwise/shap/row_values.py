"""Shapley values of rows: of one tree, or of the sum of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats
from branchwise.data.encode import encode_columns
from branchwise.data.frames import Frame, open_table
from branchwise.data.one_row import Cells, as_table, open_rows
from branchwise.data.table_schema import Columns, Schema
from branchwise.data.weights import check_weights
from branchwise.errors import (
    DataError,
    ParameterError,
    counted,
)
from branchwise.recipe import Recipe
from branchwise.shap.products import Term
from branchwise.shap.shap_values import ShapValues
from branchwise.shap.shapley import Background, shapley_values
from branchwise.threads import n_threads
from branchwise.train.fitted_tree import FittedTree

#: Numbers in the largest result: 8 GiB.
MOST_NUMBERS = 2**30


@dataclass(frozen=True)
class TreeSum:
    """A sum of trees whose predictions are explained.

    ``predict`` returns what the model predicts for encoded rows, to the last bit;
    with ``scale`` "margin" that is not yet a probability or a number.
    """

    schema: Schema
    recipe: Recipe
    terms: Sequence[Term]
    used_columns: Sequence[int]
    predict: Callable[[Columns], Floats]
    scale: str = "probability"

    def encoded(self, frame: Frame, threads: int) -> Columns:
        """Encode the columns that the trees split on."""
        return encode_columns(
            frame,
            self.schema,
            self.used_columns,
            allow_missing=self.recipe.missing != "error",
            allow_unseen=self.recipe.unseen != "error",
            threads=threads,
        )


def shap_of_rows(
    model: FittedTree,
    X: object,
    background: object = None,
    interactions: bool = False,
    n_jobs: int | None = None,
    background_weight: object = None,
) -> ShapValues:
    """Return the Shapley values of the predictions for a table or a row."""
    term = Term(model.tree, model.walker.node_values)
    trees = TreeSum(
        model.schema,
        model.recipe,
        [term],
        model.tree.used_columns,
        lambda data: model.walker.blend(data, term.values),
    )
    return shap_of_sum(trees, X, background, interactions, n_jobs, background_weight)


def shap_of_sum(
    model: TreeSum,
    X: object,
    background: object = None,
    interactions: bool = False,
    n_jobs: int | None = None,
    background_weight: object = None,
) -> ShapValues:
    """Return the Shapley values of a sum of trees for a table or a row."""
    schema, threads = model.schema, n_threads(n_jobs)
    frame = open_rows(X)
    data, cells = model.encoded(frame, threads), Cells(frame, schema)
    width = max(len(schema.classes), 1)
    checksize(data.n_rows, len(schema.columns), width, interactions)
    others = None
    if background is not None:
        others = _background(model, background, background_weight, threads)
    elif background_weight is not None:
        raise ParameterError(
            "background_weight has no effect without a background. Pass both."
        )
    found = shapley_values(
        schema.columns,
        model.terms,
        data,
        others,
        interactions,
        model.predict(data),
        threads,
    )
    arrays = [cells.column(index) for index in range(len(schema.columns))]
    result = ShapValues(
        values=found.values,
        base_values=found.base,
        predictions=found.predictions,
        data=_side_by_side(arrays, data.n_rows),
        columns=tuple(schema.names),
        classes=schema.classes,
        rows=tuple(range(data.n_rows)),
        interactions=found.interactions,
        target=schema.target,
        scale=model.scale,
        schema=schema,
    )
    return result if schema.classes else _of_numbers(result)


def _of_numbers(result: ShapValues) -> ShapValues:
    """Drop the axis of the only output."""
    matrix = result.interactions
    return replace(
        result,
        values=result.values[..., 0],
        base_values=result.base_values[0],
        predictions=result.predictions[:, 0],
        interactions=None if matrix is None else matrix[..., 0],
    )


def _side_by_side(arrays: list[NDArray[Any]], n_rows: int) -> NDArray[Any]:
    """Return columns as one array: of numbers if all are, else of objects."""
    numeric = all(array.dtype == np.float64 for array in arrays)
    table = np.empty((n_rows, len(arrays)), dtype=np.float64 if numeric else object)
    for index, array in enumerate(arrays):
        table[:, index] = array
    return table


def _background(
    model: TreeSum, table: object, weight: object, threads: int
) -> Background:
    """Encode the background, and scale its weights so that they add up to 1."""
    frame = open_table(as_table(table))
    if not frame.n_rows:
        raise DataError(
            "background must have at least one row to average over. Got none; leave it "
            "out to use the weights of the training cases."
        )
    data = model.encoded(frame, threads)
    if weight is None:
        return Background(data, np.full(frame.n_rows, 1.0 / frame.n_rows))
    try:
        weights = check_weights(weight, frame.n_rows)
    except DataError as error:
        message = str(error).replace("sample_weight", "background_weight")
        raise DataError(message, row=error.row) from None
    return Background(data, weights / weights.sum())


def checksize(n_rows: int, n_columns: int, width: int, interactions: bool) -> None:
    """Raise before a result is made that is too large."""
    each = max(n_columns ** (1 + interactions) * width, 1)
    if n_rows * each > MOST_NUMBERS:
        what = "interactions" if interactions else "values"
        raise ParameterError(
            f"X must have at most {MOST_NUMBERS // each:,} rows for the {what} of "
            f"{counted(n_columns, 'column')} and {counted(width, 'output')}. Got "
            f"{n_rows:,}; pass fewer rows at a time."
        )
