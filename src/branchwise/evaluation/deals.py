"""Which rows are for fitting and which for testing, by scikit-learn's splitters."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    RepeatedKFold,
    RepeatedStratifiedKFold,
    train_test_split,
)

from branchwise.counts import Ints
from branchwise.errors import DataError, ParameterError, counted

Split = tuple[Ints, Ints]


@dataclass(frozen=True)
class Deal:
    """How rows are dealt: in folds, some times over, or in two parts.

    Parameters
    ----------
    cv : int, default=10
        The number of folds.
    repeats : int, default=1
        How many times the rows are dealt anew.
    hold_out : float or None, default=None
        In place of folds: the share of the rows that is tested on.
    seed : int, default=0
        The number of the deal. The same number deals in the same way.
    """

    cv: int = 10
    repeats: int = 1
    hold_out: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("cv", 2), ("repeats", 1), ("seed", 0)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise ParameterError(
                    f"{name} must be a whole number of at least {least}. Got {value!r} "
                    "instead."
                )
        share = self.hold_out
        if share is not None and not (isinstance(share, Real) and 0 < share < 1):
            raise ParameterError(
                "hold_out must be None or a share between 0 and 1, such as 0.3. Got "
                f"{share!r} instead."
            )

    def splits(self, target: NDArray[Any], by_class: bool) -> list[Split]:
        """Deal the rows; every part has its share of every class.

        Parameters
        ----------
        target : array
            The class codes, or numbers, of the rows.
        by_class : bool
            Whether they are classes.
        """
        self._check_size(len(target))
        if by_class:
            counts = np.bincount(target.astype(np.intp))
            self._check_classes(int(counts.max()))
            rarest = int(counts[counts > 0].min())
            self._remark_rare(rarest)
        if self.hold_out is not None:
            parts = train_test_split(
                np.arange(len(target)),
                test_size=float(self.hold_out),
                random_state=self.seed,
                stratify=target if by_class and rarest >= 2 else None,
            )
            return [(np.sort(parts[0]), np.sort(parts[1]))]
        dealer = RepeatedStratifiedKFold if by_class else RepeatedKFold
        folds = dealer(n_splits=self.cv, n_repeats=self.repeats, random_state=self.seed)
        with warnings.catch_warnings():
            # Told above, in our words.
            warnings.filterwarnings("ignore", "The least populated class")
            return list(folds.split(np.zeros((len(target), 1)), target))

    def _check_size(self, n_rows: int) -> None:
        least = self.cv if self.hold_out is None else 2
        tested = 1 if self.hold_out is None else n_rows * float(self.hold_out)
        if n_rows < least or not 0 < round(tested + 0.5) <= n_rows - 1:
            raise DataError(
                f"{n_rows:,} rows are too few for {self.described()}. Choose fewer "
                "folds or pass more rows."
            )

    def _check_classes(self, largest: int) -> None:
        if self.hold_out is None and largest < self.cv:
            raise DataError(
                f"No class has as many rows as there are folds: {largest:,} rows at "
                f"most for {self.cv:,} folds. Choose fewer folds, or hold_out."
            )

    def _remark_rare(self, rarest: int) -> None:
        if self.hold_out is None and rarest < self.cv:
            warnings.warn(
                f"The rarest class has {counted(rarest, 'row')}, and there are "
                f"{self.cv:,} folds, so that not every fold can test it. Choose fewer "
                "folds, or join rare classes.",
                stacklevel=2,
            )

    @property
    def ratio(self) -> float:
        """The rows for testing to those for fitting."""
        share = 1 / self.cv if self.hold_out is None else float(self.hold_out)
        return share / (1 - share)

    def described(self) -> str:
        """Tell how rows are dealt."""
        if self.hold_out is not None:
            return f"a hold-out of {100 * float(self.hold_out):g} % of the rows"
        again = "" if self.repeats == 1 else f", {self.repeats:,} times"
        return f"{self.cv:,}-fold cross-validation{again}"
