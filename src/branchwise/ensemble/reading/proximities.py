"""Proximities of rows in a forest, and the prototypes of the classes.

The proximity of two rows is the share of trees in which they arrive at the same leaf
(Breiman, "Random Forests", 2001).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.one_row import Framed
from branchwise.data.table_schema import Column, Columns, Schema, Value
from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.ensemble.out_of_bag import (
    row_weights,
    samples_of,
    validate_out_of_bag,
)
from branchwise.ensemble.sampling import Samples
from branchwise.errors import ParameterError, counted
from branchwise.text.blocks import Block, Paragraph, Table
from branchwise.text.bounds import shown
from branchwise.text.document import Document
from branchwise.text.label_words import called
from branchwise.text.labels import class_called, titles_of
from branchwise.text.words import share, word
from branchwise.threads import in_order, n_threads
from branchwise.tree.apply import Arrivals

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

#: Pairs of rows whose trees are counted at a time.
_PAIRS = 1 << 16


def proximities(
    ensemble: FittedTrees,
    X: object = None,
    Y: object = None,
    out_of_bag: bool = False,
    n_jobs: int | None = None,
) -> csr_matrix:
    """Return the proximities of the rows of X and Y; None are the training rows."""
    if out_of_bag and (X is not None or Y is not None):
        raise ParameterError(
            "out_of_bag=True is about the training rows. Leave X and Y out, or leave "
            "out_of_bag out."
        )
    samples = None
    if out_of_bag:
        samples = samples_of(ensemble, "Proximities out of bag")
        validate_out_of_bag(samples)
    rows = _leaves(ensemble, _rows(ensemble, X, n_jobs), samples, n_jobs)
    columns = rows
    if Y is not None:
        columns = _leaves(ensemble, _rows(ensemble, Y, n_jobs), None, n_jobs)
    together = (rows @ columns.T).tocsr()
    together.sort_indices()
    if samples is None:
        together.data /= len(ensemble)
    else:
        together.data /= _trees_of_pairs(together, samples, len(ensemble))
    return together


def _rows(ensemble: FittedTrees, X: object, n_jobs: int | None) -> Columns:
    if X is None:
        return samples_of(ensemble, "Proximities of training rows").training.data
    return ensemble.encoded(X, n_jobs)


def _arrivals(
    ensemble: FittedTrees, data: Columns, n_jobs: int | None
) -> list[Arrivals]:
    walkers = ensemble.walkers
    return in_order(lambda walker: walker.walk(data), walkers, n_threads(n_jobs))


def _leaves(
    ensemble: FittedTrees,
    data: Columns,
    samples: Samples | None,
    n_jobs: int | None,
) -> csr_matrix:
    """Return the share of each row at each node of all trees.

    With samples, only those of the rows that are out of bag.
    """
    from scipy.sparse import csr_matrix  # noqa: PLC0415, to open models fast

    every = _arrivals(ensemble, data, n_jobs)
    offset = np.cumsum([0, *map(len, ensemble.trees)])
    row = np.concatenate([arrivals.row for arrivals in every])
    node = np.concatenate(
        [each.node + at for each, at in zip(every, offset.tolist(), strict=False)]
    )
    amount = np.concatenate([arrivals.share for arrivals in every])
    if samples is not None:
        kept = np.concatenate(
            [samples.out_of_bag(tree)[each.row] for tree, each in enumerate(every)]
        )
        row, node, amount = row[kept], node[kept], amount[kept]
    return csr_matrix((amount, (row, node)), shape=(data.n_rows, int(offset[-1])))


def _trees_of_pairs(pairs: csr_matrix, samples: Samples, n_trees: int) -> Ints:
    """Return in how many trees both rows of each pair are out of bag."""
    out = np.stack([samples.out_of_bag(tree) for tree in range(n_trees)], axis=1)
    row, column = pairs.nonzero()
    found = [
        np.count_nonzero(out[row[at : at + _PAIRS]] & out[column[at : at + _PAIRS]], 1)
        for at in range(0, len(row), _PAIRS)
    ]
    return np.concatenate([np.empty(0, dtype=np.intp), *found])


@dataclass(frozen=True, eq=False, repr=False)
class Prototypes(Framed, Document):
    """The typical training row of each class.

    Attributes
    ----------
    classes : tuple
        The classes that training rows have.
    rows : tuple of int
        The row of each class, counted from 0: the one whose average proximity to the
        rows of its class, by weight, is highest.
    proximity : tuple of float
        That average.
    columns : tuple of str
        The names of the columns.
    cells : tuple of tuple
        The values of each row; None is missing.
    target : str or None
        The name of what is predicted.
    schema : Schema or None
        The schema of the forest, whose labels are the words of the table.
    """

    classes: tuple[Value, ...]
    rows: tuple[int, ...]
    proximity: tuple[float, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Value | None, ...], ...]
    target: str | None = None
    schema: Schema | None = None

    def __len__(self) -> int:
        return len(self.classes)

    def __repr__(self) -> str:
        return f"<prototypes of {counted(len(self), 'class', 'classes')}>"

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the prototypes as lists: class, row, proximity, and the values."""
        return {
            "class": list(self.classes),
            "row": list(self.rows),
            "proximity": list(self.proximity),
            **{
                name: [cells[at] for cells in self.cells]
                for at, name in enumerate(self.columns)
            },
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the prototypes in plain values."""
        lines = [
            {
                "class": label,
                "row": row,
                "proximity": near,
                "cells": dict(zip(self.columns, cells, strict=True)),
            }
            for label, row, near, cells in zip(
                self.classes, self.rows, self.proximity, self.cells, strict=True
            )
        ]
        return {"target": self.target, "classes": lines}

    def blocks(self) -> Iterator[Block]:
        """Yield a table with a column for each class, and what it shows."""
        schema = self.schema
        columns = [None] * len(self.columns) if schema is None else schema.columns
        rows = [
            [title, *(_words(cells[at], columns[at]) for cells in self.cells)]
            for at, title in enumerate(titles_of(schema, self.columns))
        ]
        rows.append(["(row)", *(f"{row:,}" for row in self.rows)])
        rows.append(["(proximity)", *(share(near, 1) for near in self.proximity)])
        classes = self.classes
        if schema is not None:
            classes = tuple(class_called(schema, label) for label in classes)
        head = ["column", *map(word, classes)]
        yield Table(head, rows, words=range(len(head)))
        yield Paragraph(
            "The training row of each class that is nearest to the rows of its class: "
            "proximity is the average share of trees in which it is in one leaf with "
            "them."
        )


def _words(cell: Value | None, column: Column | None) -> str:
    return "missing" if cell is None else word(called(column, cell))


def prototypes_of(ensemble: FittedTrees, n_jobs: int | None = None) -> Prototypes:
    """Return the training row of each class that is nearest to those of its class."""
    if ensemble.is_regression:
        raise ParameterError(
            "prototypes needs a forest that predicts classes. Got one that predicts "
            "numbers; use proximities."
        )
    samples = samples_of(ensemble, "Prototypes")
    training, order = samples.training, samples.order
    target, classes = training.target.astype(np.intp), ensemble.schema.classes
    weight = row_weights(training)
    near = _nearness(ensemble, training.data, target, weight, order, n_jobs)
    found = []
    for code in range(len(classes)):
        own = order[target[order] == code]
        if len(own):
            # The first of equals in the order of contents.
            row = int(own[np.argmax(near[own])])
            found.append((classes[code], row, float(near[row])))
    labels, rows, values = zip(*found, strict=True)
    columns = ensemble.schema.columns
    cells = [
        tuple(
            _cell(column, data[row])
            for column, data in zip(columns, training.data.data, strict=True)
        )
        for row in rows
    ]
    names = tuple(column.name for column in columns)
    schema = ensemble.schema
    return Prototypes(labels, rows, values, names, tuple(cells), schema.target, schema)


def _nearness(
    ensemble: FittedTrees,
    data: Columns,
    target: Ints,
    weight: Floats,
    order: Ints,
    n_jobs: int | None,
) -> Floats:
    """Return the average proximity of each row to the rows of its class, by weight."""
    n_classes = len(ensemble.schema.classes)
    counted = np.zeros(len(target))
    counted[order] = weight[order]
    # Rows in the order of contents, so that sums do not depend on that of the table.
    rank = np.full(len(target), len(order))
    rank[order] = np.arange(len(order))
    total = np.zeros(len(target))
    for tree, arrivals in zip(
        ensemble.trees, _arrivals(ensemble, data, n_jobs), strict=True
    ):
        row, cell = arrivals.row, arrivals.node * n_classes + target[arrivals.row]
        amount = arrivals.share * counted[row]
        sequence = np.argsort(rank[row], kind="stable")
        sums = np.bincount(
            cell[sequence], amount[sequence], minlength=len(tree) * n_classes
        )
        total += np.bincount(row, sums[cell] * arrivals.share, minlength=len(target))
    whole = np.bincount(target[order], counted[order], minlength=n_classes)
    return total / np.where(whole > 0, whole, 1.0)[target] / len(ensemble)


def _cell(column: Column, cell: Any) -> Value | None:
    """Return the value of an encoded cell; None if it is missing."""
    if column.is_numeric:
        return None if np.isnan(cell) else shown(column, float(cell))
    code = int(cell)
    return column.categories[code] if code < len(column.categories) else None
