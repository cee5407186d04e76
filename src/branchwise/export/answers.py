"""Rows to try an export with, and what the model answers to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.export.plan import Plan, Row
from branchwise.predict import Walker
from branchwise.recipes import Recipe
from branchwise.table.encode import encode_columns
from branchwise.table.frames import open_table
from branchwise.table.matching import plain_cells
from branchwise.table.schema import Column, Columns, Schema, Value
from branchwise.tree import Tree

#: A label or number, and the probability of each class (none for numbers); None where
#: a row has no answer because missing or unseen values are refused.
Answer = tuple[Value, tuple[float, ...]] | None


@dataclass(frozen=True)
class Sample:
    """Rows as plain values of a plan's fields, and the same rows encoded."""

    rows: list[Row]
    data: Columns


def sample_of_table(X: object, schema: Schema, tree: Tree) -> Sample:
    """Take the rows of a user's table."""
    frame, used = open_table(X), tree.used_columns
    cells = plain_cells(frame, schema, used)
    rows: list[Row] = [()] * frame.n_rows
    if used:
        rows = list(zip(*cells, strict=True))
    return Sample(rows, encode_columns(frame, schema, used))


def sample_of_rows(rows: Sequence[Row], schema: Schema, tree: Tree) -> Sample:
    """Take rows that are plain values already, one for each column that is used."""
    data: list[NDArray[np.generic]] = [np.empty(0)] * len(schema.columns)
    for position, index in enumerate(tree.used_columns):
        column = schema.columns[index]
        data[index] = _encoded(column, [row[position] for row in rows])
    return Sample(list(rows), Columns(len(rows), tuple(data)))


def _encoded(column: Column, cells: Sequence[Value | None]) -> NDArray[np.generic]:
    if column.is_numeric:
        return np.array([np.nan if cell is None else cell for cell in cells], float)
    codes = [
        column.missing_code
        if cell is None
        else column.code_of.get(cell, column.unseen_code)
        for cell in cells
    ]
    return np.array(codes, dtype=column.code_dtype)


def model_answers(
    schema: Schema,
    tree: Tree,
    recipe: Recipe,
    sample: Sample,
    leave_divided: bool = False,
) -> list[Answer]:
    """Return what the model answers to every row, or to every undivided one."""
    walker = Walker(schema.columns, tree, recipe)
    arrivals = walker.walk(sample.data)
    answers: list[Answer]
    if tree.predicts_numbers:
        answers = [(number, ()) for number in walker.numbers(arrivals).tolist()]
    else:
        labels = walker.labels(arrivals).tolist()
        chances = walker.distribution(arrivals).tolist()
        answers = [
            (schema.classes[label], tuple(row))
            for label, row in zip(labels, chances, strict=True)
        ]
    left = _refused(schema, tree, recipe, sample)
    if leave_divided:
        left |= np.bincount(arrivals.row, minlength=len(left)) > 1
    for row in np.flatnonzero(left).tolist():
        answers[row] = None
    return answers


def _refused(
    schema: Schema, tree: Tree, recipe: Recipe, sample: Sample
) -> NDArray[np.bool_]:
    """Tell which rows the model would refuse."""
    refused = np.zeros(len(sample.rows), dtype=bool)
    for index in tree.used_columns:
        column, cells = schema.columns[index], sample.data.data[index]
        if recipe.missing == "error":
            gone = (
                np.isnan(cells) if column.is_numeric else cells == column.missing_code
            )
            refused |= gone
        if recipe.unseen == "error" and not column.is_numeric:
            refused |= cells == column.unseen_code
    return refused


def same(first: Answer, second: Answer, plan: Plan) -> bool:
    """Tell whether two answers are the same, to the last bit of every number.

    True and 1 are different labels; the two zeros are one number.
    """
    if first is None or second is None:
        return first is second
    if first[1] != second[1] or first[0] != second[0]:
        return False
    return plan.predicts_numbers or type(first[0]) is type(second[0])
