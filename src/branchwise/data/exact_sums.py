"""Exact sums of floating-point numbers, independent of the order of terms.

Every term is split into *limbs*: multiples of a power of two (the step of the limb)
that are small enough for the sum over all rows to need at most 52 bits. Each limb is
added up by itself, without rounding, by NumPy, by a database or on another machine.
Their number and steps follow from what all rows have in common (their number, the
largest term, the lowest bit that is set in any), so that all engines agree on them.

A product of two float64 numbers is first made the sum of two others (Dekker, "A
floating-point technique for extending the available precision", Numerische Mathematik
18, 1971; no fused operation is needed).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from branchwise.data.arrays import Floats

#: The exponent of the lowest bit of numbers that are all zero.
NO_BIT = 1024
#: Sums of limbs stay below two to this power, in steps.
_BITS = 51
#: A number times this, less the same less the number, has the upper half of its bits.
SPLITTER = 134217729.0


def lowest_bit(numbers: Floats) -> int:
    """Return the exponent of the lowest bit that is set in any of the numbers.

    Examples
    --------
    >>> lowest_bit(np.array([6.0, 0.75])), lowest_bit(np.array([12.0, 0.0]))
    (-2, 2)
    """
    mantissa, exponent = np.frexp(numbers[numbers != 0])
    if not len(mantissa):
        return NO_BIT
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    last = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    return int((exponent - 53 + last).min())


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the rounded sum and its exact rounding error."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the rounded product and its exact rounding error."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + (
        a_low * b_low
    )
    return product, rest


def _halves(a: Floats) -> tuple[Floats, Floats]:
    wide = SPLITTER * a
    high = wide - (wide - a)
    return high, a - high


def _in_steps(numbers: Floats, step: float | Floats) -> Floats:
    """Return numbers in steps. None is too large for that, but NumPy 1 fills up its
    registers with ones, and warns where one of them is: steps may be subnormal.
    """  # noqa: D205
    with np.errstate(over="ignore"):
        found: Floats = numbers / step
        return found


@dataclass(frozen=True)
class Limbs:
    """The steps of limbs, from the largest down: exponents of powers of two."""

    exponents: tuple[int, ...]

    @classmethod
    def of(cls, total: float, n_rows: float, n_terms: int, low: int) -> Limbs:
        """Choose limbs for ``n_terms`` numbers of each of ``n_rows`` rows.

        The sizes of all of them add up to at most ``total``, and none has a bit below
        that of the exponent ``low``.
        """
        steps = [math.frexp(total)[1] - _BITS]
        spare = math.frexp(n_rows)[1] + (n_terms - 1).bit_length()
        while steps[-1] > low:
            steps.append(max(steps[-1] - (_BITS - spare), low))
        return cls(tuple(steps))

    def __len__(self) -> int:
        return len(self.exponents)

    @cached_property
    def steps(self) -> tuple[float, ...]:
        """The steps themselves."""
        return tuple(math.ldexp(1.0, exponent) for exponent in self.exponents)

    def split_limbs(self, terms: Sequence[Floats]) -> Floats:
        """Split the terms of each row into limbs: shape (rows, limbs)."""
        found = np.zeros((len(terms[0]), len(self)))
        for term in terms:
            left = term
            for at, step in enumerate(self.steps):
                limb = np.rint(_in_steps(left, step)) * step
                found[:, at] += limb
                left = left - limb
        return found

    def normal(self, sums: Floats) -> list[Floats]:
        """Carry sums of limbs upwards, so that they depend on what they add up to
        alone: each is at most half a step of the one above.
        """  # noqa: D205
        limbs = [sums[..., at] for at in range(len(self))]
        for at in range(len(self) - 1, 0, -1):
            above = self.steps[at - 1]
            carried = np.floor(_in_steps(limbs[at], above) + 0.5) * above
            limbs[at] = limbs[at] - carried
            limbs[at - 1] = limbs[at - 1] + carried
        return limbs

    def whole(self, sums: Floats) -> list[int]:
        """Return the sums of rows of limbs, in steps of the last limb."""
        shifts = [exponent - self.exponents[-1] for exponent in self.exponents]
        listed = _in_steps(sums, np.array(self.steps)).tolist()
        return [
            sum(int(limb) << shift for limb, shift in zip(row, shifts, strict=True))
            for row in listed
        ]


def ratio(top: int, bottom: int, exponent: int) -> float:
    """Return ``top / bottom * 2**exponent``, rounded once, to the nearest float64."""
    if exponent >= 0:
        return (top << exponent) / bottom
    return top / (bottom << -exponent)
