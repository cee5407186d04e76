"""Shapley values of the predictions for rows: what each column contributed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats
from branchwise.data.encode import encode_columns
from branchwise.data.frames import Frame, open_table
from branchwise.data.one_row import Cells, Framed, as_table, open_rows
from branchwise.data.table_schema import Column, Columns, Schema, Value
from branchwise.data.weights import check_weights
from branchwise.errors import (
    DataError,
    ParameterError,
    check_limit,
    counted,
    quoted,
)
from branchwise.recipe import Recipe
from branchwise.render.charts import standalone
from branchwise.shap.products import Term
from branchwise.shap.shap_figures import SHOWN_COLUMNS, Bars, Waterfall, signed, size
from branchwise.shap.shapley import Background, shapley_values
from branchwise.text.as_html import as_html, asset
from branchwise.text.blocks import Block, Heading, Paragraph, Table
from branchwise.text.document import Document
from branchwise.text.label_words import NO_UNIT, Unit, called, target_unit, title_of
from branchwise.text.labels import class_called, target_title
from branchwise.text.words import number, word
from branchwise.threads import n_threads
from branchwise.train.fitted_tree import FittedTree

#: Numbers in the largest result: 8 GiB.
MOST_NUMBERS = 2**30


@dataclass(frozen=True, eq=False, repr=False)
class ShapValues(Framed, Document):
    """What each column contributed to the predictions for rows.

    ``base_values`` plus the sum of ``values`` over columns is ``predictions``.

    Attributes
    ----------
    values : array of shape (rows, columns, classes), or (rows, columns) for numbers
        The contribution of each column.
    base_values : array of shape (classes,), or of no dimension for numbers
        The prediction if no column is known.
    predictions : array of shape (rows, classes), or (rows,) for numbers
        Probabilities of classes, or the predicted numbers.
    data : array of shape (rows, columns)
        The cells of the rows.
    columns : tuple of str
        The names of the columns.
    classes : tuple
        The classes; empty for numbers, and after one class was picked.
    rows : tuple of int
        The numbers of the rows in the table, counted from 0.
    interactions : array of shape (rows, columns, columns[, classes]) or None
        Half of the interaction of two columns, and main effects on the diagonal. A
        line adds up to the value of its column.
    target : str or None
        The name of what is predicted.
    label : value or None
        The class that was picked.
    scale : str
        What is predicted of a class: its probability, or its margin.
    schema : Schema or None
        The schema of the model, whose labels are the words in tables and charts.
    """

    values: Floats
    base_values: Floats
    predictions: Floats
    data: NDArray[Any]
    columns: tuple[str, ...]
    classes: tuple[Value, ...]
    rows: tuple[int, ...]
    interactions: Floats | None = None
    target: str | None = None
    label: Value | None = None
    scale: str = "probability"
    schema: Schema | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        what = counted(len(self.classes), "class", "classes")
        if not self.classes:
            what = "numbers" if self.label is None else f"class {word(self.label)}"
        return (
            f"<Shapley values of {counted(len(self), 'row')}, "
            f"{counted(len(self.columns), 'column')}, {what}>"
        )

    def __getitem__(self, index: Any) -> ShapValues:
        """Pick rows, or rows and a class: ``[3]``, ``[:10]``, ``[:, "yes"]``."""
        rows, *label = index if isinstance(index, tuple) else (index,)
        if len(label) > 1:
            raise ParameterError(
                "ShapValues takes rows, or rows and a class, such as [:, 'yes']. Got "
                f"{len(label) + 1} indices."
            )
        every = np.arange(len(self))
        picked = np.atleast_1d(every[rows])
        new = replace(
            self,
            values=self.values[picked],
            predictions=self.predictions[picked],
            data=self.data[picked],
            rows=tuple(self.rows[at] for at in picked.tolist()),
            interactions=None
            if self.interactions is None
            else self.interactions[picked],
        )
        return new.of_class(label[0]) if label else new

    def of_class(self, label: Value) -> ShapValues:
        """Return the values of one class."""
        if not self.classes:
            raise ParameterError(
                "A class can be picked from values of several classes only. Got "
                f"{self!r}."
            )
        if label not in self.classes:
            raise ParameterError(
                f"The class must be one of {quoted(self.classes, 20)}. Got {label!r}."
            )
        at = self.classes.index(label)
        return replace(
            self,
            values=self.values[..., at],
            base_values=self.base_values[at],
            predictions=self.predictions[:, at],
            classes=(),
            interactions=None
            if self.interactions is None
            else self.interactions[..., at],
            label=self.classes[at],
        )

    def of_prediction(self, row: int = 0) -> ShapValues:
        """Return the values of a row, of its most probable class if there are some."""
        one = self[row]
        if not one.classes:
            return one
        return one.of_class(one.classes[int(np.argmax(one.predictions[0]))])

    @property
    def importances(self) -> Floats:
        """The mean size of the values of each column (of each class)."""
        if not len(self):
            return np.zeros(self.values.shape[1:])
        sizes: Floats = np.abs(self.values).mean(axis=0)
        return sizes

    def order(self) -> list[int]:
        """Return the columns by their importance, the largest first."""
        sizes = self.importances
        whole = sizes.sum(axis=-1) if sizes.ndim > 1 else sizes
        order: list[int] = np.argsort(-whole, kind="stable").tolist()
        return order

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the values as a table: a line for each row, column and class."""
        n, width = len(self.columns), max(len(self.classes), 1)
        table: dict[str, list[Any]] = {
            "row": np.repeat(self.rows, n * width).tolist(),
            "column": [c for c in self.columns for _ in range(width)] * len(self),
        }
        if self.classes:
            table["class"] = [*self.classes] * (len(self) * n)
        return table | {"value": self.values.reshape(-1).tolist()}

    def to_dict(self) -> dict[str, Any]:
        """Return the values in plain values."""
        document: dict[str, Any] = {
            "target": self.target,
            "classes": list(self.classes),
            **({} if self.label is None else {"class": self.label}),
            "columns": list(self.columns),
            "base_values": self.base_values.tolist(),
            "rows": [self._described(at) for at in range(len(self))],
        }
        return document

    def _described(self, at: int) -> dict[str, Any]:
        cells = [_plain(cell) for cell in self.data[at].tolist()]
        described = {
            "row": self.rows[at],
            "prediction": self.predictions[at].tolist(),
            "cells": cells,
            "values": self.values[at].tolist(),
        }
        if self.interactions is not None:
            described["interactions"] = self.interactions[at].tolist()
        return described

    def blocks(self) -> Iterator[Block]:
        """Yield what there is to say: of one row its values, of several their size."""
        if len(self) == 1:
            yield Heading(f"Row {self.rows[0]}")
            yield from self.of_prediction().row_blocks()
            return
        yield Heading(f"Shapley values of {counted(len(self), 'row')}")
        labels = [*map(self._class, self.classes)] or ["mean size of values"]
        if self.classes:
            yield Paragraph(
                f"Mean size of the values, for the {self.scale} of each class."
            )
        sizes = self.importances.reshape(len(self.columns), -1)
        yield Table(
            ["column", *labels],
            [
                [self._name(at), *(size(each, self._unit) for each in sizes[at])]
                for at in self.order()
            ],
        )

    def row_blocks(self) -> Iterator[Block]:
        """Yield the values of a row and of one class, or of a number."""
        yield Paragraph(
            f"Shapley values: base value {self._predicted(self.base_values)}, "
            f"prediction {self._predicted(self.predictions[0])}"
            + ("" if self.label is None else f" ({self.outcome})")
            + "."
        )
        some = [at for at in self.order() if self.values[0, at]]
        if some:
            yield Table(
                ["column", "value", "cell"],
                [
                    [
                        self._name(at),
                        signed(float(self.values[0, at]), self._unit),
                        self._cell(at),
                    ]
                    for at in some
                ],
                words=(0, 2),
            )
        rest = len(self.columns) - len(some)
        if rest:
            yield Paragraph(f"{counted(rest, 'column')} without any effect.")

    def _name(self, at: int) -> str:
        """Write the title of a column, or its name."""
        column = None if self.schema is None else self.schema.columns[at]
        return word(title_of(column, self.columns[at]))

    def _cell(self, at: int) -> str:
        """Write a cell of the first row, with its unit or as the word for it."""
        column = None if self.schema is None else self.schema.columns[at]
        return cell_words(self.data[0, at], column)

    def _class(self, label: Value) -> str:
        return word(label if self.schema is None else class_called(self.schema, label))

    def _predicted(self, value: Any) -> str:
        """Write a base value or a prediction, a number with its unit."""
        return size(float(value), self._unit)

    @property
    def _unit(self) -> Unit:
        return NO_UNIT if self.scale == "margin" else target_unit(self.schema)

    @property
    def outcome(self) -> str:
        """What the values add up to, in words."""
        title = self.target if self.schema is None else target_title(self.schema)
        target = "prediction" if title is None else word(title)
        if self.label is None:
            return f"margin of {target}" if self.scale == "margin" else target
        name = "" if title is None else f"{target} = "
        return f"{self.scale} of {name}{self._class(self.label)}"

    def figure(self, max_columns: int = SHOWN_COLUMNS) -> Bars | Waterfall:
        """Return what is drawn: of one row a waterfall, of several rows bars."""
        check_limit("max_columns", max_columns, 1, optional=False)
        if len(self) == 1:
            one = self.of_prediction()
            values = one.values[0].tolist()
            named = [
                (f"{self._name(at)} = {self._cell(at)}", value)
                for at in one.order()
                if (value := values[at])
            ]
            base, prediction = float(one.base_values), float(one.predictions[0])
            outcome = one.outcome
            return Waterfall.of(
                named, base, prediction, outcome, max_columns, self._unit
            )
        return Bars.of(
            [self._name(at) for at in range(len(self.columns))],
            self.importances,
            self.order(),
            [self._class(label) for label in self.classes],
            max_columns,
            self._unit,
        )

    def to_svg(self, max_columns: int = SHOWN_COLUMNS) -> str:
        """Return a chart as an SVG document: of one row a waterfall, of several bars.

        Parameters
        ----------
        max_columns : int
            How many columns to draw; the others together are one more bar.
        """
        chart = self.figure(max_columns).to_svg()
        return standalone(chart, str(asset("render/assets/charts.css")))

    def to_html(self) -> str:
        """Return the chart and the table as a piece of HTML."""
        chart = (
            f'<div style="max-width: 40em">{self.to_svg()}</div>' if len(self) else ""
        )
        return f'<div class="branchwise">\n{chart}{as_html(self.blocks())}\n</div>'

    def to_shap(self) -> Any:
        """Return a ``shap.Explanation``, which the plots of that package draw."""
        if find_spec("shap") is None:
            raise ParameterError(
                "to_shap needs the package shap, which is not installed. Run "
                "pip install shap; to_svg and plot.plot_shap draw without it."
            )
        shap = import_module("shap")
        base = np.broadcast_to(self.base_values, self.predictions.shape).copy()
        return shap.Explanation(
            values=self.values,
            base_values=base,
            data=self.data,
            feature_names=list(self.columns),
            output_names=[str(label) for label in self.classes] or None,
        )


def _plain(cell: Any) -> Value | None:
    """Return a cell in plain values: None where it is missing."""
    missing = cell is None or (isinstance(cell, float) and cell != cell)
    return None if missing else cell


def cell_words(cell: Any, column: Column | None = None) -> str:
    """Write a cell, as the labels of its column have it."""
    known = _plain(cell)
    if known is None:
        return "missing"
    known = called(column, known)
    return number(known) if isinstance(known, float) else word(known)


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
