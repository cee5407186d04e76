"""Numbers in SQL that every engine reads as the very float64.

Not every engine reads decimals to the nearest float64: SQLite misses some by a bit.
What all of them do exactly is to read a whole number of up to 2**53, and to divide one
such number by another: that is an operation of IEEE 754. So a number that an engine
cannot be trusted with is written as a quotient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

#: Whole numbers up to here are float64 without rounding.
WHOLE = 2**53
#: Powers of ten up to here are float64 without rounding.
_TENS = 22
#: Digits of a decimal whose digits alone are a whole number below 2**53.
_DIGITS = 15
#: Powers of two in one factor: 2**62 is the last that is a 64-bit integer.
_TWOS = 62
#: Class probabilities are quotients of counts, mostly of small ones.
_LARGEST_COUNT = 1_000_000


def quotient(number: float, real: Callable[[str], str]) -> str:
    """Write a number with whole numbers, divisions and multiplications alone.

    ``real`` makes a floating-point number of a decimal. Decimals that are a float64
    without rounding, such as 77.5, stand as they are.
    """
    if number == int(number) and abs(number) <= WHOLE:
        return real(str(int(number)))
    decimal = _decimal(number)
    if decimal is not None and Fraction(*decimal) == Fraction(number):
        return real(format(Decimal(repr(number)), "f"))
    parts = decimal or _ratio(number)
    if parts is not None:
        return f"{real(str(parts[0]))} / {real(str(parts[1]))}"
    return _binary(number, real)


def _decimal(number: float) -> tuple[int, int] | None:
    """Return the digits of the shortest decimal and the power of ten to divide by."""
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    if (
        not isinstance(exponent, int)
        or not -_TENS <= exponent < 0
        or len(digits) > _DIGITS
    ):
        return None
    whole = int("".join(map(str, digits)))
    return (-whole if sign else whole), 10**-exponent


def _ratio(number: float) -> tuple[int, int] | None:
    """Return two small whole numbers whose quotient is this number."""
    near = Fraction(number).limit_denominator(_LARGEST_COUNT)
    if abs(near.numerator) > WHOLE or near.numerator / near.denominator != number:
        return None
    return near.numerator, near.denominator


def _binary(number: float, real: Callable[[str], str]) -> str:
    """Write the 53 bits as a whole number, then powers of two: exact at every step."""
    fraction, exponent = math.frexp(number)
    bits, exponent = int(fraction * WHOLE), exponent - 53
    while bits % 2 == 0:
        bits, exponent = bits // 2, exponent + 1
    sign = "*" if exponent > 0 else "/"
    factors = [_TWOS] * (abs(exponent) // _TWOS)
    if abs(exponent) % _TWOS:
        factors.append(abs(exponent) % _TWOS)
    wholes = [bits, *(2**power for power in factors)]
    return f" {sign} ".join(real(str(whole)) for whole in wholes)
