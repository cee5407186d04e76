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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import DataError

_BITS = 52

#: Sums beyond these would overflow or vanish in products.
LEAST_TOTAL = 1e-300
LARGEST_TOTAL = 1e300


def check_weights(weights: object, n_rows: int) -> NDArray[np.float64]:
    """Return the weights as float64, refusing what is no weight."""
    given = check_each_weight(weights, n_rows)
    with np.errstate(over="ignore"):
        check_total(given.sum())
    return given


def check_each_weight(weights: object, n_rows: int) -> NDArray[np.float64]:
    """Return the weights of some rows, which may be zero for all of them."""
    given = _as_numbers(weights)
    if given is None:
        raise DataError(
            "sample_weight must be numbers, one for each row. Convert it, for example "
            "with np.asarray(weights, dtype=float)."
        )
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
    return given


def check_total(total: float) -> None:
    """Refuse weights that have no sum to divide by."""
    if not LEAST_TOTAL <= total <= LARGEST_TOTAL:
        raise DataError(
            f"sample_weight must have a sum between {LEAST_TOTAL:g} and "
            f"{LARGEST_TOTAL:g}: with a weight of zero for every row there is nothing "
            f"to learn from. Got the sum {total:g}."
        )


def _as_numbers(weights: object) -> NDArray[np.float64] | None:
    """Return numbers as float64; text is none, even if it could be read as such."""
    try:
        given = np.asarray(weights)
        return None if given.dtype.kind in "US" else given.astype(np.float64)
    except (TypeError, ValueError):
        return None


def grid_step(total: float, whole: bool) -> float:
    """Return the spacing of the grid for weights that sum to ``total``."""
    if whole and total <= 2.0**_BITS:
        return 1.0
    return math.ldexp(1.0, math.frexp(total)[1] - _BITS)


def on_grid(weights: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Round weights to whole multiples of ``step`` (a power of two)."""
    rounded: NDArray[np.float64] = np.rint(weights / step) * step
    return rounded


def long_sum(numbers: NDArray[np.float64]) -> tuple[float, ...]:
    """Return the sum as two floats, the second being what the first leaves over.

    So the sums of parts can be added up to what the sum of all would be.
    """
    listed = numbers.tolist()
    total = math.fsum(listed)
    return total, math.fsum([*listed, -total])


def _firm_sum(weights: NDArray[np.float64]) -> float:
    """Sum such that the power of two above it does not hang on the row order."""
    total = float(weights.sum())
    mantissa = math.frexp(total)[0]
    near_a_power = min(mantissa - 0.5, 1.0 - mantissa) < 1e-9
    return math.fsum(weights.tolist()) if near_a_power else total


@dataclass(frozen=True)
class WeightGrid:
    """The weights of rows on their grid, and what counting needs to know of it.

    ``weights`` is None where every row counts as one; a row of weight 0 is left out.
    ``fractions`` says that cases may be split, so that the grid must be fine even
    for whole weights. Parts of weights go to multiples of ``step``, parts of cases
    to multiples of ``case_step``.
    """

    weights: NDArray[np.float64] | None
    fractions: bool
    whole: bool
    step: float
    case_step: float
    n_cases: float
    total: float


def weigh(
    weights: NDArray[np.float64] | None, n_rows: int, fractions: bool
) -> WeightGrid:
    """Put the weights of rows on a grid."""
    if weights is None:
        return unit_grid(n_rows, fractions)
    whole = not fractions and bool((weights == np.rint(weights)).all())
    step = grid_step(_firm_sum(weights), whole)
    rounded = on_grid(weights, step)
    n_cases = int(np.count_nonzero(rounded))
    return WeightGrid(
        rounded,
        fractions,
        whole and step == 1.0,
        step,
        grid_step(n_cases, whole=not fractions),
        n_cases,
        float(rounded.sum()),
    )


def unit_grid(n_rows: int, fractions: bool) -> WeightGrid:
    """Return the grid of rows that all count as one."""
    step = grid_step(n_rows, whole=not fractions)
    return WeightGrid(None, fractions, not fractions, step, step, n_rows, n_rows)
