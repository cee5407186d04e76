"""Case weights on a grid on which every sum is exact.

Floating-point sums depend on the order of their terms; the vow that row order,
thread count and engine do not matter would be broken by the first 0.1. So
weights are rounded once, to multiples of a power of two chosen such that the sum
of all of them needs no more than 52 bits. Every partial sum is then exact in
float64, in any order. What rounding takes is at most 2**-53 of the total weight,
which is what a plain sum would lose as well. Whole numbers are never changed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import DataError

_BITS = 52


def check_weights(weights: object, n_rows: int) -> NDArray[np.float64]:
    """Return the weights as float64, refusing what is no weight."""
    try:
        given = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"sample_weight must be numbers, one for each row. {error}"
        ) from None
    if given.shape != (n_rows,):
        raise DataError(
            f"sample_weight must have one weight for each of the {n_rows:,} rows. Got "
            f"an array of shape {given.shape}."
        )
    bad = ~(np.isfinite(given) & (given >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"sample_weight must be finite and not negative. Got {given[row]} in row "
            f"{row}."
        )
    with np.errstate(over="ignore"):
        total = given.sum()
    if not 0 < total < np.inf:
        raise DataError(
            "sample_weight must have a positive, finite sum, so that there is "
            f"something to learn from. Got the sum {total}."
        )
    return given


def grid_step(total: float, whole: bool) -> float:
    """Return the spacing of the grid for weights that sum to ``total``."""
    if whole and total <= 2.0**_BITS:
        return 1.0
    return math.ldexp(1.0, math.frexp(total)[1] - _BITS)


def on_grid(weights: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Round weights to whole multiples of ``step`` (a power of two)."""
    rounded: NDArray[np.float64] = np.rint(weights / step) * step
    return rounded
