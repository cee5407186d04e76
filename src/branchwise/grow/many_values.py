"""The correction of scores for many values.

The more values a column has, the more its best two groups gain even if it tells
nothing. With ``many_values="corrected"`` that is subtracted from the score before
columns are compared.
"""

from __future__ import annotations

import math

import numpy as np

from branchwise.data.arrays import Floats, Ints

#: With no more values than this at a node nothing is subtracted from a score: their
#: best two groups gain at random what the best threshold of a number does.
FEW_VALUES = 8
#: The best two groups of k values that tell nothing gain this times k / (cases - 1) of
#: the impurity on average: (E |z|)^2 for normal z, as groups are made by its sign.
_NULL_MEAN = 2.0 / math.pi
#: Three standard deviations of that gain are this times sqrt(k) / (cases - 1).
_NULL_SPREAD = 3.0 * math.sqrt(8.0 / math.pi * (1.0 - 2.0 / math.pi))
#: With fewer cases of a value than this on average, as much is subtracted of any number
#: of classes as of two.
_CASES_OF_VALUE = 10.0


def corrected_share(values: Ints, cases: Floats) -> Floats:
    """Return the share of a node's impurity that is subtracted from a score.

    ``values`` is how many values of a column a node has, ``cases`` how many cases.
    """
    share: Floats = null_excess(values, cases) / np.maximum(cases - 1.0, 1.0)
    return share


def null_excess(values: Ints, cases: Floats) -> Floats:
    """Return what many values gain at random more than a few do.

    In units of the impurity divided by ``cases - 1``, which two values that tell
    nothing gain on average.
    """
    k = values.astype(np.float64)
    # Values of a single case are of one class: they gain all that there is.
    alone = np.minimum(k / np.maximum(cases, 1.0), 1.0)
    mean = k * (_NULL_MEAN + (1.0 - _NULL_MEAN) * alone * alone)
    few = FEW_VALUES * _NULL_MEAN + _NULL_SPREAD * math.sqrt(FEW_VALUES)
    excess = mean + _NULL_SPREAD * np.sqrt(k) - few
    return np.where(values > FEW_VALUES, excess, 0.0)


def class_factor(weights: Floats, values: Ints, cases: Floats) -> Floats:
    """Return what the excess of two classes is multiplied by at nodes of more.

    ``weights`` are the class weights of the nodes.
    """
    contrast = contrast_share(weights)
    per_value = values.astype(np.float64) * _CASES_OF_VALUE / np.maximum(cases, 1.0)
    few_cases = np.minimum(per_value, 1.0)
    factor: Floats = contrast + (1.0 - contrast) * few_cases
    return factor


def contrast_share(weights: Floats) -> Floats:
    """Return the share of impurity that telling one class from the others takes away.

    It is the largest share, of the Gini impurity of nodes with these class weights: 1
    with two classes, 1 / (c - 1) with c that are equally frequent. Two groups of values
    divide the classes in one way, and gain at random in proportion to it.
    """
    n_nodes, n_classes = weights.shape
    if n_classes <= 2:
        return np.ones(n_nodes)
    # One class after the other, as the native implementation adds them.
    total, squares, best = np.zeros(n_nodes), np.zeros(n_nodes), np.zeros(n_nodes)
    for own in weights.T:
        total += own
        squares += own * own
    impurity = total * total - squares
    for own in weights.T:
        others = total - own
        rest = (squares - own * own) / np.where(others > 0, others, 1.0)
        explained = np.where(others > 0, own * others + own * rest, 0.0)
        best = np.maximum(best, explained)
    share = np.minimum(best / np.where(impurity > 0, impurity, 1.0), 1.0)
    return np.where(impurity > 0, share, 1.0)
