"""The values that occur in a column, and which of them every row has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from branchwise.table.raw import LARGEST_EXACT, Coded, Numbers
from branchwise.table.schema import Value
from branchwise.table.text import number_cells

# So many rows show most values of a column; the others are looked for in all rows.
_SAMPLE = 4096


def occurring(raw: Coded) -> tuple[Value, ...]:
    """Return the values that occur, sorted."""
    return tuple(sorted(raw.values[code] for code in present(raw)))


def present(raw: Coded) -> list[int]:
    """Return the codes that occur."""
    for codes in (raw.codes[:_SAMPLE], raw.codes):
        # NumPy before 2 counts no unsigned codes of 64 bits.
        known = codes[codes >= 0].astype(np.intp, copy=False)
        seen = np.bincount(known, minlength=len(raw.values)) > 0
        if seen.all():
            break
    found: list[int] = np.flatnonzero(seen).tolist()
    return found


def numbers_as_values(raw: Numbers) -> Coded:
    """Take numbers for names."""
    distinct, codes = _distinct_numbers(raw.values)
    if ((distinct == np.rint(distinct)) & (np.abs(distinct) <= LARGEST_EXACT)).all():
        # Whole numbers with gaps between them arrive as floats: 4 reads better.
        return Coded(codes, tuple(int(value) for value in distinct.tolist()))
    return Coded(codes, tuple(distinct.tolist()))


def _distinct_numbers(
    values: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return the distinct numbers, sorted, and for each row which it has."""
    values = values + 0.0  # of two zeros that are equal there remains one
    numbered = number_cells(values)
    if numbered is None:
        known = ~np.isnan(values)
        distinct, inverse = np.unique(values[known], return_inverse=True)
        codes = np.full(len(values), -1, dtype=np.int32)
        codes[known] = inverse
        return distinct, codes
    codes, firsts = numbered
    found = values[firsts]
    order = np.argsort(found)[: np.count_nonzero(~np.isnan(found))]  # NaN is last
    rank = np.full(len(found), -1, dtype=np.int32)
    rank[order] = np.arange(len(order))
    return found[order], rank.take(codes)
