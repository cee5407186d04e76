"""How far a score may be from the truth: 95 % intervals, and which is used when.

Scores of folds are not independent, as the folds share most of their training rows.
So the variance of their mean is taken as ``(1 / J + test / train) * s^2`` for J folds,
the correction of Nadeau and Bengio (2003), with Student's t of J - 1 degrees. From
one hold-out a share of rows has Wilson's interval (1927), what is an average over rows
the normal one, and all else the middle of what the score is for rows that are drawn
again from those tested (the percentile bootstrap), always the same ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from branchwise.intervals import share_interval

#: The share of the intervals that are to contain the truth.
LEVEL = 0.95

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """A score and its interval; NaN is what is not defined or not known."""

    mean: float
    low: float = math.nan
    high: float = math.nan
    folds: tuple[float, ...] = ()

    @property
    def deviation(self) -> float:
        """The standard deviation of the folds."""
        known = [value for value in self.folds if not math.isnan(value)]
        return float(np.std(known, ddof=1)) if len(known) > 1 else math.nan

    def clipped(self, low: float, high: float) -> Score:
        """Keep the interval within the values that the score can have."""
        inner = max(self.low, low), min(self.high, high)
        return self if math.isnan(self.low) else Score(self.mean, *inner, self.folds)


def over_folds(values: Floats, ratio: float) -> Score:
    """Average the scores of folds.

    Parameters
    ----------
    values : array
        A score for each fold; NaN where it is not defined.
    ratio : float
        Rows for testing to rows for fitting.
    """
    folds = tuple(float(value) for value in values)
    known = values[~np.isnan(values)]
    if not len(known):
        return Score(math.nan, folds=folds)
    mean = float(known.mean())
    if len(known) < 2:
        return Score(mean, folds=folds)
    spread = math.sqrt((1 / len(known) + ratio) * float(known.var(ddof=1)))
    reach = float(t.ppf((1 + LEVEL) / 2, len(known) - 1)) * spread
    return Score(mean, mean - reach, mean + reach, folds)


def wilson(successes: float, trials: float) -> Score:
    """Return a share with Wilson's interval."""
    if trials <= 0:
        return Score(math.nan)
    share = successes / trials
    return Score(share, *share_interval(share, trials, LEVEL))


def over_rows(values: Floats) -> Score:
    """Average what each row contributes, with the normal interval."""
    mean = float(values.mean())
    if len(values) < 2:
        return Score(mean)
    z = float(norm.ppf((1 + LEVEL) / 2))
    reach = z * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Score(mean, mean - reach, mean + reach)
