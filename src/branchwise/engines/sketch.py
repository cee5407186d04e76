"""The numbers of a column, summed up so that the summaries of parts can be merged.

Up to ``max_exact`` distinct numbers are kept as they are, with how often each
occurs. Beyond, neighbours share a cell: the numbers whose first bits are the same,
in an order of bits that is the order of numbers, with as many bits as leave no more
than ``max_exact`` cells. How many bits that are depends on the numbers alone, so the
summary of a table is the same however it is parted and in whatever order the parts
are merged; and as every cell knows its least and largest number, cuts between cells
lie between numbers that are there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Floats, Ints, run_starts
from branchwise.table.bins import edges_between

#: Distinct numbers of a column that are kept apart, unless the user says otherwise.
MAX_EXACT = 10_000
#: Bins of a column that has more, unless the recipe says otherwise.
BINS_BEYOND = 255

_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True)
class NumberSummary:
    """Cells in the order of their numbers: the least and largest number, how many.

    ``dropped`` bits of the order tell numbers of a cell apart; 0 is exact.
    """

    low: Floats
    high: Floats
    count: Ints
    dropped: int = 0

    @classmethod
    def of(cls, numbers: Floats, max_exact: int) -> NumberSummary:
        """Sum up numbers, of which missing ones are left out."""
        known = numbers[~np.isnan(numbers)] + 0.0  # one zero of two
        values, count = np.unique(known, return_counts=True)
        return cls(values, values, count.astype(np.intp)).within(max_exact)

    def merge(self, other: NumberSummary, max_exact: int) -> NumberSummary:
        """Add the numbers of another part."""
        joined = NumberSummary(
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
            np.concatenate([self.count, other.count]),
            max(self.dropped, other.dropped),
        )
        return joined.joined(joined.dropped).within(max_exact)

    def within(self, max_exact: int) -> NumberSummary:
        """Join cells until there are no more than so many."""
        summary = self
        while len(summary.count) > max_exact:
            summary = summary.joined(summary.dropped + 1)
        return summary

    def joined(self, dropped: int) -> NumberSummary:
        """Join the cells whose numbers agree but for so many bits."""
        key = ordered_bits(self.low) >> dropped
        order = np.argsort(key, kind="stable")
        starts = run_starts(key[order])
        if not len(starts):
            return self
        return NumberSummary(
            np.minimum.reduceat(self.low[order], starts),
            np.maximum.reduceat(self.high[order], starts),
            np.add.reduceat(self.count[order], starts),
            dropped,
        )

    @property
    def exact(self) -> bool:
        """Whether every cell is one number."""
        return self.dropped == 0

    def edges(self, max_bins: int | None) -> Floats | None:
        """Return the cuts between bins; None where every number is its own."""
        if self.exact and max_bins is None:
            return None
        most = BINS_BEYOND if max_bins is None else max_bins
        if self.exact and len(self.count) <= most:
            return None
        return edges_between(self.low, self.high, self.count, most)


def ordered_bits(numbers: Floats) -> NDArray[np.int64]:
    """Return whole numbers in the same order."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, bits ^ _SIGN, bits)
