"""How predicted numbers compare with the true ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.table.read import TableFile
from branchwise.words import aligned


@dataclass(frozen=True)
class NumberScores:
    """What is said of predicted numbers.

    ``r2`` is the share of the variance that is explained, None where the true
    numbers do not vary; the errors are in the unit of the numbers.
    """

    rows: int
    rows_without_number: int
    r2: float | None
    mean_absolute_error: float
    root_mean_squared_error: float

    @classmethod
    def compare(
        cls, true: NDArray[np.float64], predicted: NDArray[np.float64]
    ) -> NumberScores:
        """Compare the rows whose number is known."""
        known = ~np.isnan(true)
        true, error = true[known], predicted[known] - true[known]
        squared = float(error @ error)
        varied = true - true.mean()
        # The mean of equal numbers may be off by a rounding.
        variation = float(varied @ varied) if np.ptp(true) > 0 else 0.0
        return cls(
            len(true),
            int((~known).sum()),
            1 - squared / variation if variation > 0 else None,
            float(np.abs(error).mean()),
            float(np.sqrt(squared / len(true))),
        )

    def notes(self, target: str, file: TableFile) -> Iterator[str]:
        """Tell what else there is to know of the rows."""
        if self.rows_without_number:
            total = self.rows + self.rows_without_number
            yield (
                f"rows without a number in column {target!r} are left out: "
                f"{self.rows_without_number:,} of {total:,} in {file.label}."
            )
        if self.r2 is None:
            yield (
                f"column {target!r} of {file.label} has the same number everywhere, so "
                "that R^2 is not defined."
            )

    def lines(self) -> list[str]:
        """Write one line for each score."""
        rows = [
            ["R^2", "-" if self.r2 is None else f"{self.r2:.4f}"],
            ["mean absolute error", f"{self.mean_absolute_error:.5g}"],
            ["root mean squared error", f"{self.root_mean_squared_error:.5g}"],
            ["rows", f"{self.rows:,}"],
        ]
        return aligned(rows, [False, False])

    def document(self) -> dict[str, Any]:
        """Tell all in plain values."""
        return {
            "rows": self.rows,
            "rows_without_number": self.rows_without_number,
            "r2": self.r2,
            "mean_absolute_error": self.mean_absolute_error,
            "root_mean_squared_error": self.root_mean_squared_error,
        }
