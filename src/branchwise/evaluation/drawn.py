"""Scores of rows that are drawn again: each row counts as often as it was drawn."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from branchwise.counts import Floats, Ints
from branchwise.evaluation.intervals import LEVEL

#: How many times rows are drawn.
_DRAWS = 200


def bounds(scored: Callable[[Floats], Floats], n_rows: int) -> tuple[Floats, Floats]:
    """Return the bounds of scores over draws of rows with replacement.

    Parameters
    ----------
    scored : callable
        Takes how often each row counts, and returns an array of scores.
    n_rows : int
        How many rows there are.
    """
    random = np.random.default_rng(0)
    draws = []
    for _ in range(_DRAWS):
        drawn = random.integers(n_rows, size=n_rows)
        draws.append(scored(np.bincount(drawn, minlength=n_rows).astype(np.float64)))
    shares = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # what is never defined
        low, high = np.nanquantile(np.array(draws), shares, axis=0)
    return low, high


class WeighedClasses:
    """Scores of predicted classes by how often each row counts.

    Calling it returns the balanced accuracy and the F1 of every class, then, where
    there are chances, the area under the ROC curve and the calibration error.
    """

    def __init__(
        self, true: Ints, predicted: Ints, chances: Floats | None, n_classes: int
    ) -> None:
        self._true = true
        self._predicted = predicted
        self._right = (true == predicted).astype(np.float64)
        self._n_classes = n_classes
        self._areas: list[_Area] = []
        self._bins: tuple[Ints, Floats, Floats] | None = None
        if chances is not None:
            codes = [1] if n_classes == 2 else range(n_classes)
            self._areas = [_Area(true == code, chances[:, code]) for code in codes]
            answer = chances.argmax(axis=1)
            chance = chances[np.arange(len(true)), answer]
            place = np.clip(np.ceil(chance * 10) - 1, 0, 9).astype(np.intp)
            self._bins = place, chance, (answer == true).astype(np.float64)

    def __call__(self, counts: Floats) -> Floats:
        """Score the rows, each as often as it counts."""
        n = self._n_classes
        right = np.bincount(self._true, counts * self._right, n)
        there = np.bincount(self._true, counts, n)
        said = np.bincount(self._predicted, counts, n)
        with np.errstate(invalid="ignore"):
            f1 = 2 * right / (there + said)
            balanced = (right[there > 0] / there[there > 0]).mean()
        scores = [balanced, *f1]
        if self._bins is not None:
            areas = [area(counts) for area in self._areas]
            known = [area for area in areas if not np.isnan(area)]
            scores.append(float(np.mean(known)) if known else np.nan)
            scores.append(self._error(counts))
        return np.array(scores)

    def _error(self, counts: Floats) -> float:
        place, chance, right = self._bins  # type: ignore[misc]
        gaps = np.bincount(place, counts * (chance - right), 10)
        return float(np.abs(gaps).sum() / counts.sum())


class _Area:
    """The area under the ROC curve of one class, by how often each row counts."""

    def __init__(self, own: Floats, chance: Floats) -> None:
        self._order = np.argsort(chance, kind="stable")
        self._own = own[self._order].astype(np.float64)
        ordered = chance[self._order]
        new = np.append(True, ordered[1:] != ordered[:-1])
        self._starts = np.flatnonzero(new)

    def __call__(self, counts: Floats) -> float:
        weight = counts[self._order]
        own = np.add.reduceat(weight * self._own, self._starts)
        other = np.add.reduceat(weight * (1 - self._own), self._starts)
        pairs = float(own.sum() * other.sum())
        if not pairs:
            return np.nan
        below = np.cumsum(other) - other / 2
        return float((own * below).sum() / pairs)
