"""Columns of predictions: which are wanted, how they are called, what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.schema import Schema, check_names
from branchwise.errors import DataError, ParameterError, quoted
from branchwise.text.conditions import word
from branchwise.tree.tree import Tree

What = Literal["classes", "probabilities", "leaves"]
#: False is none, True all columns.
Keep = bool | Sequence[str]
#: Columns by name, of equal length.
Batch = dict[str, NDArray[Any]]


class Predicting(Protocol):
    """The methods of a model that prediction needs."""

    schema: Schema
    tree: Tree

    def predict(self, X: object) -> NDArray[np.generic]:
        """Return the class, or the number, of each row."""

    def predict_proba(self, X: object) -> Floats:
        """Return the probabilities of the classes."""

    def apply(self, X: object) -> Ints:
        """Return the node that each row arrives at."""


def checked_what(model: Predicting, what: What | Sequence[What]) -> tuple[What, ...]:
    """Return which predictions are wanted; raise for those that the tree has not."""
    wanted = (what,) if isinstance(what, str) else tuple(what)
    if not wanted or not set(wanted) <= set(get_args(What)):
        raise ParameterError(
            f"what must be one or more of {quoted(get_args(What))}. Got {what!r}."
        )
    if "probabilities" in wanted and not model.schema.classes:
        raise ParameterError(
            "what='probabilities' needs a tree that predicts classes. Got one that "
            "predicts numbers; use 'classes', which are its numbers."
        )
    return wanted


def prediction_names(schema: Schema, what: What) -> list[str]:
    """Return the names of the columns of a prediction."""
    if what == "probabilities":
        return [f"probability of {word(label)}" for label in schema.classes]
    return ["prediction"] if what == "classes" else ["leaf"]


def predicted_columns(model: Predicting, rows: object, wanted: Sequence[What]) -> Batch:
    """Return the columns of predictions for a table in memory, by name."""
    columns: Batch = {}
    for what in wanted:
        found = predicted(model, rows, what)
        each = found.T if found.ndim == 2 else [found]
        columns.update(zip(prediction_names(model.schema, what), each, strict=True))
    return columns


def predicted(model: Predicting, rows: object, what: What) -> NDArray[Any]:
    """Return one kind of prediction for a table in memory."""
    if what == "probabilities":
        return model.predict_proba(rows)
    return model.predict(rows) if what == "classes" else model.apply(rows)


def kept_columns(
    keep: Keep, names: Sequence[str], label: str, added: Sequence[str]
) -> list[str]:
    """Return the columns of a table that are kept beside those that are added."""
    if isinstance(keep, str):
        raise ParameterError(
            f"keep must be a list of names of columns. Got {keep!r}; put it in a list."
        )
    if isinstance(keep, bool):
        kept = list(names) if keep else []
    else:
        kept = list(keep)
        check_names(label, names, kept)
    double = [name for name in added if name in kept]
    if double:
        raise DataError(
            f"With keep there would be two columns {quoted(double)}: the table has "
            "one of that name already. Rename it there, or do without keep."
        )
    return kept
