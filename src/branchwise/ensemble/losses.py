"""Losses of gradient boosting: gradients, initial margins, and links to predictions.

A margin is what the trees add up to: the number itself (squared error), the logarithm
of the expected number (Poisson), the log odds of the second of two classes, or a score
for each of several classes, whose exponentials are in proportion to the probabilities.

All numbers of a row follow from its own target and margins, and sums over rows are
exact, so that the order of the rows does not matter.
"""

from __future__ import annotations

import math

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.data.exact_sums import NO_BIT, Limbs, lowest_bit
from branchwise.data.weights import on_grid
from branchwise.recipe.ensemble_recipe import Loss

#: The criterion that the target must be fit for; None for classes.
TARGETS: dict[Loss, str | None] = {
    "squared_error": "variance",
    "poisson": "poisson",
    "log_loss": None,
}
#: Digits of the largest number of a sum that count, beyond those of its float64.
_DIGITS = 60
#: Probabilities of classes from which initial margins are made are at least this.
_LEAST = float(np.finfo(np.float32).eps)


def link(loss: Loss, margins: Floats) -> Floats:
    """Return predictions: one number, or the probability of each class."""
    if loss == "squared_error":
        return margins
    if loss == "poisson":
        with np.errstate(over="ignore"):
            return np.exp(margins)
    if margins.shape[1] > 1:
        powers = np.exp(margins - margins.max(axis=1, keepdims=True))
        shares: Floats = powers / powers.sum(axis=1, keepdims=True)
        return shares
    small = np.exp(-np.abs(margins[:, 0]))
    likelier, other = 1.0 / (1.0 + small), small / (1.0 + small)
    second = margins[:, 0] >= 0
    return np.stack(
        [np.where(second, other, likelier), np.where(second, likelier, other)], axis=1
    )


def gradients(loss: Loss, target: Floats, margins: Floats) -> tuple[Floats, Floats]:
    """Return negative gradients and second derivatives by margin, of each row."""
    predicted = link(loss, margins)
    if loss != "log_loss":
        away = target[:, np.newaxis] - predicted
        return away, np.ones_like(away) if loss == "squared_error" else predicted
    if margins.shape[1] == 1:
        predicted = predicted[:, 1:]
        wanted = (target == 1)[:, np.newaxis]
    else:
        wanted = target[:, np.newaxis] == np.arange(margins.shape[1])
    return wanted - predicted, predicted * (1.0 - predicted)


def newton_factor(n_outputs: int) -> float:
    """Return the factor of Newton steps: margins of several classes may be shifted."""
    return 1.0 if n_outputs == 1 else (n_outputs - 1) / n_outputs


def initial_margins(
    loss: Loss, target: Floats, weights: Floats, n_classes: int
) -> Floats:
    """Return the margins that fit best if they are the same for all rows."""
    total = exact_sum(weights)
    if loss == "log_loss":
        sums = [exact_sum(weights * (target == at)) for at in range(n_classes)]
        shares = np.clip(np.array(sums) / total, _LEAST, 1 - _LEAST)
        if n_classes <= 2:
            share = float(shares[1]) if n_classes == 2 else _LEAST
            return np.array([math.log(share / (1 - share))])
        logs = np.array([math.log(share) for share in shares.tolist()])
        # As in scikit-learn; the probabilities are the same.
        centred: Floats = logs - logs.mean()
        return centred
    mean = exact_sum(weights * target) / total
    return np.array([math.log(mean) if loss == "poisson" else mean])


def mean_loss(loss: Loss, target: Floats, margins: Floats, weights: Floats) -> float:
    """Return the mean loss by weight.

    As in scikit-learn: the squared error, half the deviance of Poisson's distribution,
    the deviance of two classes (twice the logarithmic loss), or the logarithmic loss.
    """
    if loss == "squared_error":
        losses = (target - margins[:, 0]) ** 2
    elif loss == "poisson":
        ratio = np.where(target > 0, target, 1.0)
        own = target * (np.log(ratio) - 1.0)
        losses = link(loss, margins)[:, 0] - target * margins[:, 0] + own
    else:
        rows = np.arange(len(target))
        likelihood = link(loss, margins)[rows, target.astype(np.intp)]
        losses = -np.log(np.maximum(likelihood, np.finfo(np.float64).tiny))
        losses *= 2.0 if margins.shape[1] == 1 else 1.0
    return exact_sum(weights * losses) / exact_sum(weights)


def limbs_of(terms: Floats) -> tuple[Limbs, Floats]:
    """Split numbers into limbs that can be added up exactly, in any order."""
    largest = float(np.abs(terms).max(initial=0.0))
    low = math.frexp(largest)[1] - _DIGITS
    if largest == 0.0:
        return Limbs((0,)), np.zeros((len(terms), 1))
    bit = lowest_bit(terms)
    if bit < low:
        terms, bit = on_grid(terms, math.ldexp(1.0, low)), low
    limbs = Limbs.of(largest * len(terms), len(terms), 1, min(bit, NO_BIT))
    return limbs, limbs.split_limbs([terms])


def whole_sums(limbs: Limbs, sums: Floats) -> Floats:
    """Return the sums of limbs as numbers, rounded in one way."""
    *upper, total = limbs.normal(sums)
    for limb in reversed(upper):
        total = limb + total
    return total


def exact_sum(terms: Floats) -> float:
    """Return a sum that does not depend on the order of its terms."""
    limbs, split = limbs_of(terms)
    return float(whole_sums(limbs, split.sum(axis=0)))
