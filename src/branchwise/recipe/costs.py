"""Costs of misclassification by the names of classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from branchwise.data.table_schema import Value
from branchwise.errors import ParameterError, quoted
from branchwise.recipe.parameters import PARAMETERS

#: A row for each true class, with the cost of each predicted class.
Costs = tuple[tuple[float, ...], ...]


def costs_by_class(given: Mapping[Any, Any], classes: Sequence[Value]) -> Costs:
    """Return the matrix of costs that are given by pairs of classes.

    Keys are pairs of a true and a predicted class, ``{("bad", "good"): 5}``, or true
    classes with a dict of predicted ones, ``{"bad": {"good": 5}}``. Other wrong
    predictions cost 1.
    """
    codes = {label: code for code, label in enumerate(classes)}
    n_classes = len(classes)
    costs = [[float(i != j) for j in range(n_classes)] for i in range(n_classes)]
    for true, prediction, cost in _pairs(given):
        for label in (true, prediction):
            if label not in codes:
                raise ParameterError(
                    f"costs has the class {label!r}. The classes are "
                    f"{quoted(classes, 20)}."
                )
        PARAMETERS["costs"].check([[0, cost], [cost, 0]])
        if true == prediction and cost != 0:
            raise ParameterError(
                f"costs must be 0 where the class {true!r} is predicted for itself. "
                f"Got {cost!r}."
            )
        costs[codes[true]][codes[prediction]] = float(cost)
    return tuple(map(tuple, costs))


def _pairs(given: Mapping[Any, Any]) -> Iterator[tuple[Any, Any, Any]]:
    for key, value in given.items():
        if isinstance(value, Mapping):
            yield from ((key, prediction, cost) for prediction, cost in value.items())
        elif isinstance(key, tuple) and len(key) == 2:
            yield (*key, value)
        else:
            raise ParameterError(
                "costs must be a dict of pairs of a true and a predicted class, such "
                "as {('bad', 'good'): 5}, or of dicts, such as {'bad': {'good': 5}}. "
                f"Got the key {key!r} with {value!r}."
            )
