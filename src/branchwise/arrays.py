"""Helpers for NumPy arrays."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


def distinct(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return the values of an array, sorted, each once; NaN is not expected.

    ``np.unique`` of NumPy 2.3 and later does this in C++ with the GIL released, and
    aborts the process where Python shuts down while a daemon thread is in it.
    """
    ordered = np.sort(values, axis=None)
    if not len(ordered):
        return ordered
    first = np.empty(len(ordered), dtype=bool)
    first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]
