"""Case weights on a grid on which every sum is exact.

Row order, thread count and engine must not matter, but floating-point sums depend on
the order of their terms. So weights are rounded once, to multiples of a power of two
chosen such that the sum of all of them needs no more than 52 bits: every partial sum is
exact in float64. What rounding takes is at most 2**-53 of the total weight, as in a
plain sum. Whole numbers are never changed; a weight that becomes 0 counts as absent.

Only the proportions of weights matter, unless they count as cases (C4.5). So weights
are counted in a unit, a power of two: one in which they are whole, or else add up to a
number between 1 and 2. Weights times a power of two then give the same tree to the last
bit, and very large and very small ones do not overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Real

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.exact_sums import NO_BIT, lowest_bit
from branchwise.data.table_schema import Value
from branchwise.errors import DataError, ParameterError, quoted

_BITS = 52

#: Sums beyond these would overflow or vanish in products.
LEAST_TOTAL = 1e-300
LARGEST_TOTAL = 1e300


def check_weights(weights: object, n_rows: int) -> Floats:
    """Return the weights as float64; raise if one is invalid."""
    given = check_each_weight(weights, n_rows)
    with np.errstate(over="ignore"):
        check_total(given.sum())
    return given


def check_each_weight(weights: object, n_rows: int) -> Floats:
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
            f"{row}.",
            row=row,
        )
    return given


def check_total(total: float) -> None:
    """Reject weights whose sum is too small or too large to divide by."""
    if not LEAST_TOTAL <= total <= LARGEST_TOTAL:
        raise DataError(
            f"sample_weight must have a sum between {LEAST_TOTAL:g} and "
            f"{LARGEST_TOTAL:g}: with a weight of zero for every row there is nothing "
            f"to learn from. Got the sum {total:g}."
        )


def _as_numbers(weights: object) -> Floats | None:
    """Return numbers as float64; None for text, even if it could be parsed."""
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


def on_grid(weights: Floats, step: float) -> Floats:
    """Round weights to whole multiples of ``step`` (a power of two)."""
    rounded: Floats = np.rint(weights / step) * step
    return rounded


def long_sum(numbers: Floats) -> tuple[float, ...]:
    """Return the sum as two floats, the second being the rounding error of the first.

    So the sums of chunks can be added up to the sum of all rows.
    """
    listed = numbers.tolist()
    total = math.fsum(listed)
    return total, math.fsum([*listed, -total])


def _order_free_sum(weights: Floats) -> float:
    """Return a sum whose next power of two does not depend on the row order."""
    total = float(weights.sum())
    mantissa = math.frexp(total)[0]
    near_a_power = min(mantissa - 0.5, 1.0 - mantissa) < 1e-9
    return math.fsum(weights.tolist()) if near_a_power else total


@dataclass(frozen=True)
class WeightGrid:
    """The weights of rows on their grid, and the steps of the grid.

    ``weights`` is None where every row counts as one; a row of weight 0 is left out.
    All weights are in units of ``unit``. ``fractions`` says that cases may be split,
    so that the grid must be fine even for whole weights. Fractions of weights are
    rounded to multiples of ``step``, fractions of cases to multiples of ``case_step``.
    """

    weights: Floats | None
    fractions: bool
    whole: bool
    step: float
    case_step: float
    n_cases: float
    total: float
    unit: float = 1.0

    @property
    def natural(self) -> WeightGrid:
        """The same with weights as they were given, on their grid."""
        weights = None if self.weights is None else self.weights * self.unit
        return replace(
            self,
            weights=weights,
            step=self.step * self.unit,
            total=self.total * self.unit,
            unit=1.0,
        )


@dataclass(frozen=True)
class WeightSummary:
    """Summary of all weights, needed to choose the grid; mergeable.

    ``sums`` add up to their sum; ``bit`` is the exponent of the lowest bit of any of
    them.
    """

    sums: tuple[float, ...] = ()
    bit: int = NO_BIT
    n_cases: int = 0

    @classmethod
    def of(cls, weights: Floats) -> WeightSummary:
        """Return the summary of weights."""
        return cls(
            long_sum(weights), lowest_bit(weights), int(np.count_nonzero(weights))
        )

    def merge(self, other: WeightSummary) -> WeightSummary:
        """Return the summary of both sets of weights."""
        return WeightSummary(
            self.sums + other.sums,
            min(self.bit, other.bit),
            self.n_cases + other.n_cases,
        )

    @property
    def total(self) -> float:
        """The sum."""
        return math.fsum(self.sums)


def empty_grid(found: WeightSummary, fractions: bool, as_cases: bool) -> WeightGrid:
    """Return the grid for these weights, without the weights.

    ``as_cases`` says that a weight of 2 is two cases, so that its size matters.
    """
    unit = 1.0
    if not as_cases:
        above = math.frexp(found.total)[1]
        fit = not fractions and above - found.bit <= _BITS
        unit = math.ldexp(1.0, found.bit if fit else above - 1)
    whole = not fractions and found.bit >= math.frexp(unit)[1] - 1
    step = grid_step(found.total / unit, whole)
    return WeightGrid(None, fractions, whole and step == 1.0, step, 1.0, 0, 0.0, unit)


def filled_grid(grid: WeightGrid, found: WeightSummary) -> WeightGrid:
    """Return the grid with the totals of its weights."""
    case_step = grid_step(found.n_cases, whole=not grid.fractions)
    return replace(grid, case_step=case_step, n_cases=found.n_cases, total=found.total)


def weigh(
    weights: Floats | None,
    n_rows: int,
    fractions: bool,
    as_cases: bool = False,
) -> WeightGrid:
    """Round the weights of rows to a grid."""
    if weights is None:
        return unit_grid(n_rows, fractions)
    found = WeightSummary((_order_free_sum(weights),), lowest_bit(weights))
    grid = empty_grid(found, fractions, as_cases)
    rounded = on_grid(weights / grid.unit, grid.step)
    n_cases = int(np.count_nonzero(rounded))
    filled = filled_grid(grid, WeightSummary((float(rounded.sum()),), n_cases=n_cases))
    return replace(filled, weights=rounded)


@lru_cache(maxsize=64)
def unit_grid(n_rows: int, fractions: bool) -> WeightGrid:
    """Return the grid of rows that all count as one."""
    step = grid_step(n_rows, whole=not fractions)
    return WeightGrid(None, fractions, not fractions, step, step, n_rows, n_rows)


def class_weights(given: object, classes: Sequence[Value], rows: Floats) -> Floats:
    """Return the weight of a case of each class; ``rows`` is how many each has.

    What is given may be a function of the classes, too.
    """
    given = given(classes) if callable(given) else given
    if isinstance(given, str) and given == "balanced":
        present = np.maximum(
            rows, 1.0
        )  # avoids division by zero for classes without rows
        balanced: Floats = rows.sum() / (np.count_nonzero(rows) * present)
        return balanced
    if not isinstance(given, Mapping):
        raise ParameterError(
            "class_weight must be None, 'balanced' or a dict of class to weight. Got "
            f"{given!r} instead."
        )
    unknown = [label for label in given if label not in classes]
    if unknown and len(unknown) > len(given) - len(classes):
        # If every class is present, further names may belong to other rows of the data.
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


@dataclass(frozen=True)
class CostPriors:
    """Priors in proportion to what errors cost: ``costs`` returns them by class.

    They alter ``priors``, or the shares of weight that classes have.
    """

    costs: Callable[[Sequence[Value]], Floats]
    priors: object = None

    def factors(self, classes: Sequence[Value], found: Floats) -> Floats:
        """Return the factor of each class; the sum of weights stays as it is."""
        factors = np.ones(len(classes))
        if self.priors is not None:
            factors = prior_weights(self.priors, classes, found)
        costs = self.costs(classes)
        if (costs == costs[0]).all():
            return factors
        weights = found * factors
        shares = dict(zip(classes, (costs * weights).tolist(), strict=True))
        return factors * prior_weights(shares, classes, weights)


def prior_weights(priors: object, classes: Sequence[Value], found: Floats) -> Floats:
    """Return the factor of each class, of weight ``found``, that gives it its prior.

    What is given may be a function of the classes, too.
    """
    if isinstance(priors, CostPriors):
        return priors.factors(classes, found)
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
            "priors must be reachable by multiplying the weights of classes. The "
            "weights of some classes differ too much for that; give sample_weight "
            "that differ less."
        )
    return factors


def with_class_weights(
    weights: Floats | None,
    class_weight: object,
    priors: object,
    classes: Sequence[Value],
    labels: Ints,
) -> Floats | None:
    """Multiply the weights of rows by the factors of their classes."""
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
    """Return the factors of the weights of rows, by class.

    ``rows`` is how many rows each class has, ``sums`` their exact weights, rounded
    once.
    """
    factors = np.ones(len(classes))
    if class_weight is not None:
        factors = class_weights(class_weight, classes, rows)
    if priors is not None:
        factors = factors * prior_weights(priors, classes, sums * factors)
    return factors
