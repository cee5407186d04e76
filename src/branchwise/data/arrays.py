"""Array types and helpers: aliases, runs of equal values, downcasting."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray


def downcast(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers in the smallest type that holds them."""
    if np.isnan(array).all():
        return array.astype(np.float16)
    if not (array == np.rint(array)).all():
        return array.copy()
    least, most = int(array.min(initial=0)), int(array.max(initial=0))
    smallest = np.promote_types(np.min_scalar_type(least), np.min_scalar_type(most))
    return array.astype(smallest if smallest.kind in "iu" else array.dtype)


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


Floats = NDArray[np.float64]


Ints = NDArray[np.intp]


def run_starts(*keys: NDArray[np.integer]) -> Ints:
    """Return where each run of equal (combinations of) keys begins."""
    if not len(keys[0]):
        return np.empty(0, dtype=np.intp)
    changes = np.zeros(len(keys[0]), dtype=bool)
    changes[0] = True
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(changes)
