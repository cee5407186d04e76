"""Shapley values of the predictions for rows: what each column contributed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats
from branchwise.data.one_row import Framed
from branchwise.data.table_schema import Column, Schema, Value
from branchwise.errors import (
    ParameterError,
    check_limit,
    counted,
    quoted,
)
from branchwise.render.charts import standalone
from branchwise.shap.shap_figures import SHOWN_COLUMNS, Bars, Waterfall, signed, size
from branchwise.text.as_html import as_html, asset
from branchwise.text.blocks import Block, Heading, Paragraph, Table
from branchwise.text.document import Document
from branchwise.text.label_words import NO_UNIT, Unit, called, target_unit, title_of
from branchwise.text.labels import class_called, target_title
from branchwise.text.words import number, word


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
        """Return the values of one class.

        Parameters
        ----------
        label : class
            One of the classes.

        Returns
        -------
        ShapValues
            Without the axis of classes.
        """
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
        """Return the values of a row, of its most probable class if there are some.

        Parameters
        ----------
        row : int
            The position of the row.

        Returns
        -------
        ShapValues
            Of one row.
        """
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
            + (f" ({self.outcome})" if self._says_outcome else "")
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
    def _says_outcome(self) -> bool:
        return self.label is not None or self.scale == "margin"

    @property
    def _unit(self) -> Unit:
        return NO_UNIT if self.scale == "margin" else target_unit(self.schema)

    @property
    def outcome(self) -> str:
        """What the values add up to, in words."""
        title = self.target if self.schema is None else target_title(self.schema)
        target = "prediction" if title is None else word(title)
        if self.label is None:
            # The only margins without a class are those of Poisson's loss.
            return f"logarithm of {target}" if self.scale == "margin" else target
        name = "" if title is None else f"{target} = "
        return f"{self.scale} of {name}{self._class(self.label)}"

    def figure(self, max_columns: int = SHOWN_COLUMNS) -> Bars | Waterfall:
        """Return what is drawn: of one row a waterfall, of several rows bars.

        Parameters
        ----------
        max_columns : int
            The most columns; others are added up in one more bar.

        Returns
        -------
        Bars or Waterfall
            The lengths and words of the bars, without a drawing.
        """
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

        Returns
        -------
        str
            The document.
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
