"""The same numbers in as little room as they need, for what travels or waits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers in the narrowest type that holds them."""
    if np.isnan(array).all():
        return array.astype(np.float16)
    if not (array == np.rint(array)).all():
        return array.copy()
    least, most = int(array.min(initial=0)), int(array.max(initial=0))
    smallest = np.promote_types(np.min_scalar_type(least), np.min_scalar_type(most))
    return array.astype(smallest if smallest.kind in "iu" else array.dtype)
