"""What the weights of classes are multiplied with: to count more, or to have a share.

``class_weight`` says how much a case of each class counts, ``priors`` which share of
all weight each class is to have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import ParameterError, quoted
from branchwise.table.schema import Value

Floats = NDArray[np.float64]


def class_weights(given: object, classes: Sequence[Value], rows: Floats) -> Floats:
    """Return the weight of a case of each class; ``rows`` is how many each has.

    What is given may be a function of the classes, too.
    """
    given = given(classes) if callable(given) else given
    if isinstance(given, str) and given == "balanced":
        present = np.maximum(rows, 1.0)  # a class without rows has nothing to weigh
        balanced: Floats = rows.sum() / (np.count_nonzero(rows) * present)
        return balanced
    if not isinstance(given, Mapping):
        raise ParameterError(
            "class_weight must be None, 'balanced' or a dict of class to weight. Got "
            f"{given!r} instead."
        )
    unknown = [label for label in given if label not in classes]
    if unknown and len(unknown) > len(given) - len(classes):
        # With every class there, others may be of another part of the data.
        raise ParameterError(
            f"class_weight names {quoted(unknown)}, but the classes of y are "
            f"{quoted(classes)}. Give weights to these."
        )
    for label, weight in given.items():
        if not isinstance(weight, Real) or not 0 <= float(weight) < np.inf:
            raise ParameterError(
                "class_weight must have finite weights that are not negative. Got "
                f"{weight!r} for the class {label!r}."
            )
    weights = np.array([float(given.get(label, 1.0)) for label in classes])
    if not weights.any():
        raise ParameterError(
            "class_weight must give a class of y a weight above 0. Got 0 for all of "
            f"{quoted(classes)}."
        )
    return weights


def prior_weights(priors: object, classes: Sequence[Value], found: Floats) -> Floats:
    """Return what each class is to be multiplied with to have its share.

    ``found`` are the weights that the classes have. What is given may be a function
    of the classes, too.
    """
    priors = priors(classes) if callable(priors) else priors
    known = isinstance(priors, Mapping) and set(priors) == set(classes)
    shares = [priors[label] for label in classes] if known else []  # type: ignore[index]
    sound = [isinstance(p, Real) and 0 <= float(p) < np.inf for p in shares]
    if not known or not all(sound) or not sum(map(float, shares)) > 0:
        raise ParameterError(
            "priors must be None or a dict that gives every class its share: numbers "
            f"of at least 0 for {quoted(classes)}. Got {priors!r}."
        )
    wanted = np.array(shares, dtype=np.float64) / sum(map(float, shares))
    factors: Floats = wanted * found.sum() / np.where(found > 0, found, 1.0)
    return factors


def with_class_weights(
    weights: Floats | None,
    class_weight: object,
    priors: object,
    classes: Sequence[Value],
    labels: NDArray[np.intp],
) -> Floats | None:
    """Multiply the weights of rows by what their classes count."""
    if class_weight is None and priors is None:
        return weights
    if not classes:
        raise ParameterError(
            "class_weight and priors are for classes, and this tree predicts numbers. "
            "Give sample_weight instead."
        )
    each = np.ones(len(labels)) if weights is None else weights
    if class_weight is not None:
        rows = np.bincount(labels, minlength=len(classes)).astype(np.float64)
        each = each * class_weights(class_weight, classes, rows)[labels]
    if priors is not None:
        found = np.bincount(labels, each, len(classes)).astype(np.float64)
        each = each * prior_weights(priors, classes, found)[labels]
    return each
