"""The training rows of a node, and the tree as far as it is worked out there."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from branchwise.data.table_schema import Column
from branchwise.engines.memory import Training
from branchwise.steps.numbers import NodeRows
from branchwise.text.blocks import TreeLine, TreeLines
from branchwise.text.bounds import shown
from branchwise.text.conditions import condition_of, phrase, without_column
from branchwise.text.label_words import called, target_unit
from branchwise.text.predictions import prediction
from branchwise.text.words import number, word
from branchwise.train.fitted_tree import FittedTree

#: Of more rows only the first are kept.
_SHOWN_ROWS = 50
#: A larger tree is not drawn.
_DRAWN_NODES = 60


def rows_of_nodes(
    model: FittedTree, training: Training, wanted: NDArray[np.bool_]
) -> dict[int, NodeRows]:
    """Return the training rows that get to each of the wanted nodes."""
    rows, nodes = model.visited(model.walker.walk(training.data))
    counted = training.counted[rows]
    rows, nodes = rows[counted], nodes[counted]
    target = "class" if model.schema.classes else "number"
    if model.schema.target is not None:
        target = word(model.schema.target)
    names = [word(column.name) for column in training.columns]
    weighted = training.weights is not None
    head = ("row", *names, target, *(["weight"] if weighted else []))
    found = {}
    for node in np.flatnonzero(wanted).tolist():
        own = rows[nodes == node]
        cells = tuple(
            _cells(model, training, row) for row in own[:_SHOWN_ROWS].tolist()
        )
        found[node] = NodeRows(head, cells, len(own))
    return found


def _cells(model: FittedTree, training: Training, row: int) -> tuple[str, ...]:
    cells = [str(row)]
    for column, values in zip(training.columns, training.data.data, strict=True):
        cells.append(_cell(column, values[row].item()))
    target = training.target[row].item()
    classes = model.schema.classes
    unit = target_unit(model.schema)
    written = unit.behind(unit.exact(target)) if not classes else word(classes[target])
    cells.append(written)
    if training.weights is not None:
        cells.append(number(float(training.weights[row])))
    return tuple(cells)


def _cell(column: Column, value: float) -> str:
    if column.is_numeric:
        return "" if np.isnan(value) else word(called(column, shown(column, value)))
    known = 0 <= value < len(column.categories)
    return word(column.categories[int(value)]) if known else ""


def known_tree(model: FittedTree, known: Collection[int]) -> TreeLines | None:
    """Return the tree as far as some nodes are known; None for a large one.

    Below them only leaves are known.
    """
    tree = model.tree
    lines: list[TreeLine] = []
    left = [(0, 0)]
    while left:
        if len(lines) == _DRAWN_NODES:
            return None
        node, depth = left.pop()
        text, splits = "?", False
        if tree.is_leaf[node]:
            text = prediction(model.schema, tree, node, model.reasons)
        elif node in known:
            splits = True
            text = word(model.schema.columns[int(tree.column[node])].name)
            below = [(child, depth + 1) for child in tree.children(node)]
            left += reversed(below)
        branch = value = ""
        if node:
            condition = condition_of(model.schema, tree, node)
            branch, value = phrase(condition), without_column(condition.worded)
        lines.append(TreeLine(depth, branch, value, text, splits))
    return TreeLines(tuple(lines))
