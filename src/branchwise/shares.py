"""What the weights of classes are multiplied with: to count more, or to have a share.

``class_weight`` says how much a case of each class counts, ``priors`` which share of
all weight each class is to have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import ParameterError, quoted
from branchwise.table.schema import Value
from branchwise.table.weights import check_total

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
    with np.errstate(over="ignore"):
        total = math.fsum(found.tolist())
        factors: Floats = wanted * total / np.where(found > 0, found, 1.0)
    if not np.isfinite(factors).all():
        raise ParameterError(
            "priors must be shares that weights can be given by multiplying them. The "
            "weights of some classes are too far apart for that; give sample_weight "
            "that differ less."
        )
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
    rows = np.bincount(labels, minlength=len(classes)).astype(np.float64)
    sums = np.array(
        [math.fsum(each[labels == at].tolist()) for at in range(len(classes))]
    )
    weighed: Floats = (
        each * class_factors(class_weight, priors, classes, rows, sums)[labels]
    )
    check_total(math.fsum(weighed.tolist()))
    return weighed


def class_factors(
    class_weight: object,
    priors: object,
    classes: Sequence[Value],
    rows: Floats,
    sums: Floats,
) -> Floats:
    """Return what the weights of rows are multiplied with, by class.

    ``rows`` is how many rows each class has, ``sums`` what they weigh: exact sums that
    are rounded once, whatever the order of the rows.
    """
    factors = np.ones(len(classes))
    if class_weight is not None:
        factors = class_weights(class_weight, classes, rows)
    if priors is not None:
        factors = factors * prior_weights(priors, classes, sums * factors)
    return factors
