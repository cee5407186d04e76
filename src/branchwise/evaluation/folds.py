"""Folds and hold-outs, by the splitters of scikit-learn."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    RepeatedKFold,
    RepeatedStratifiedKFold,
    train_test_split,
)

from branchwise.data.arrays import Ints
from branchwise.errors import (
    DataError,
    ParameterError,
    check_limit,
    check_seed,
    counted,
)

Split = tuple[Ints, Ints]


@dataclass(frozen=True)
class FoldAssignment:
    """Assignment of rows to folds, repeated or not, or to a hold-out.

    Parameters
    ----------
    cv : int, default=10
        The number of folds.
    repeats : int, default=1
        How many times the rows are assigned to folds.
    hold_out : float or None, default=None
        In place of folds: the share of the rows that is tested on.
    seed : int, default=0
        Random seed of the folds.
    """

    cv: int = 10
    repeats: int = 1
    hold_out: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_limit("cv", self.cv, least=2, optional=False)
        check_limit("repeats", self.repeats, least=1, optional=False)
        object.__setattr__(self, "seed", check_seed(self.seed))
        share = self.hold_out
        if share is not None and not (isinstance(share, Real) and 0 < share < 1):
            raise ParameterError(
                "hold_out must be None or a share between 0 and 1, such as 0.3. Got "
                f"{share!r} instead."
            )

    def splits(self, target: NDArray[Any], by_class: bool) -> list[Split]:
        """Return the training and test rows of every fold, stratified by class.

        ``target`` has class codes, if they are to be balanced by class, or numbers.

        Parameters
        ----------
        target : array
            Class codes, or numbers.
        by_class : bool
            Whether folds are to have about the same shares of the classes.

        Returns
        -------
        list of Split
            One for each fold.
        """
        if self.hold_out is not None:
            return [self._pieces(target, by_class, float(self.hold_out))]
        self._check_size(len(target))
        if by_class:
            self._check_classes(_class_sizes(target))
        splitter = RepeatedStratifiedKFold if by_class else RepeatedKFold
        folds = splitter(
            n_splits=self.cv, n_repeats=self.repeats, random_state=self.seed
        )
        with warnings.catch_warnings():
            # Reported above.
            warnings.filterwarnings("ignore", "The least populated class")
            return list(folds.split(np.zeros((len(target), 1)), target))

    def _pieces(self, target: NDArray[Any], by_class: bool, share: float) -> Split:
        sizes = _class_sizes(target) if by_class else np.array([len(target)])
        # A class with one row cannot be in both.
        in_both = by_class and int(sizes.min()) >= 2
        _check_hold_out(len(target), share, len(sizes) if in_both else 1)
        if by_class:
            _remark_one_class(sizes)
        pieces = train_test_split(
            np.arange(len(target)),
            test_size=share,
            random_state=self.seed,
            stratify=target if in_both else None,
        )
        return np.sort(pieces[0]), np.sort(pieces[1])

    def _check_size(self, n_rows: int) -> None:
        if n_rows < self.cv:
            choose = "Choose fewer folds, or pass" if n_rows >= 2 else "Pass"
            raise DataError(
                f"{self.described()} needs at least {self.cv:,} rows. Got {n_rows:,}. "
                f"{choose} more rows."
            )

    def _check_classes(self, sizes: Ints) -> None:
        largest, rarest = int(sizes.max()), int(sizes.min())
        if largest < self.cv:
            raise DataError(
                "No class has as many rows as there are folds: "
                f"{counted(largest, 'row')} at most for {self.cv:,} folds. Choose "
                "fewer folds, or hold_out."
            )
        _remark_one_class(sizes)
        if rarest < self.cv:
            warnings.warn(
                f"The rarest class has {counted(rarest, 'row')}, and there are "
                f"{self.cv:,} folds, so that not every fold can test it. Choose fewer "
                "folds, or join rare classes.",
                stacklevel=3,
            )

    @property
    def ratio(self) -> float:
        """The rows for testing to those for fitting."""
        share = 1 / self.cv if self.hold_out is None else float(self.hold_out)
        return share / (1 - share)

    def described(self) -> str:
        """Return a description of the folds."""
        if self.hold_out is not None:
            return f"a hold-out of {100 * float(self.hold_out):g} % of the rows"
        again = "" if self.repeats == 1 else f", {self.repeats:,} times"
        return f"{self.cv:,}-fold cross-validation{again}"


def _class_sizes(target: NDArray[Any]) -> Ints:
    """Return the rows of each class that is there."""
    counts = np.bincount(target.astype(np.intp))
    return counts[counts > 0]


def _remark_one_class(sizes: Ints) -> None:
    if len(sizes) == 1:
        warnings.warn(
            "All rows have the same class, so that every prediction is right and "
            "scores tell nothing. Check that the target is the column you mean.",
            stacklevel=4,
        )


def _check_hold_out(n_rows: int, share: float, least: int) -> None:
    """Reject a hold-out with too few rows to fit to or to test on."""
    tested = math.ceil(n_rows * share)
    fitted = n_rows - tested
    if min(tested, fitted) >= least:
        return
    size = "larger" if tested < least else "smaller"
    choose = f"Choose a {size} share, or pass" if n_rows >= 2 * least else "Pass"
    why = ", one for each class" if least > 1 else ""
    raise DataError(
        f"A hold-out of {100 * share:g} % of {counted(n_rows, 'row')} is {tested:,} to "
        f"test on and {fitted:,} to fit to. Both need at least "
        f"{counted(least, 'row')}{why}. {choose} more rows."
    )
