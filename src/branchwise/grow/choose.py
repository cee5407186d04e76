"""The choice of a split: which column splits a node, or why none does.

Input: the best split of every column (``grow/search.py``). Output: :class:`Verdicts`,
and from them the :class:`~branchwise.tree.splits.Splits` of the level.

The highest score wins even at gain 0, so that XOR is learnt; of equal scores the
first column wins. C4.5 has a further condition: see :func:`average_gains`. With
``min_significance`` only columns whose split is significant are considered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints
from branchwise.data.schema import Column
from branchwise.data.ties import first_best_of_rows
from branchwise.grow.criteria import Masses64
from branchwise.grow.protocol import CountSource, Level
from branchwise.grow.search import Search
from branchwise.recipe import Recipe
from branchwise.tree.splits import STOP, Splits

#: A column with values for this share of the training cases has very many.
_MANY_VALUES = 0.3
#: How far below the average a gain may be, in bits.
AVERAGE_SLACK = 1e-3


class Stop(IntEnum):
    """Why a node is not even searched for a split; OPEN where it is."""

    OPEN = 0
    PURE = 1
    DEEP = 2
    SMALL = 3


def stops(
    level: Level, depth: int, recipe: Recipe, n_cases: float, masses: Masses64
) -> Ints:
    """Tell of every node of a level whether it may be split, or why not."""
    cases = level.cases
    if recipe.weights_are_cases:
        cases = masses.weight(level.weights)
    small = cases < recipe.cases_to_split(n_cases)
    stop = np.where(small, int(Stop.SMALL), int(Stop.OPEN))
    if recipe.max_depth is not None and depth >= recipe.max_depth:
        stop[:] = Stop.DEEP
    return np.where(masses.mixed(level.weights), stop, int(Stop.PURE))


@dataclass(frozen=True)
class Verdicts:
    """How the open nodes of a level were decided, a row for each of them.

    By column: what it can do (``found`` as its score, ``gains``, ``cuts``,
    ``missing_to``, ``log_ways``, ``n_cuts``), and its score after the bars, -inf
    where it is out. By node: what counts as noise, how many candidates there were,
    the average gain where that is a bar (else NaN), the best column and the chosen
    one, -1 being none. ``log_p`` has the logarithms of the p-values of candidates,
    adjusted for their number, where they are tested (else NaN).
    """

    found: Floats
    scores: Floats
    gains: Floats
    cuts: Floats
    missing_to: Ints
    log_ways: Floats
    n_cuts: Ints
    resolution: Floats
    n_candidates: Ints
    average: Floats
    best: Ints
    chosen: Ints
    log_p: Floats


def best_splits(
    source: CountSource,
    columns: Sequence[Column],
    level: Level,
    recipe: Recipe,
    masses: Masses64,
    n_training_cases: float,
) -> Splits:
    """Choose the split of every open node, or none where none is admissible."""
    search = Search(source, columns, level, recipe, masses, n_training_cases)
    return carried_out(search, verdicts(search))


def carried_out(search: Search, found: Verdicts) -> Splits:
    """Turn verdicts into splits."""
    best = np.arange(len(found.best)), found.best
    return search.carry_out(found.chosen, found.cuts[best], found.missing_to[best])


def verdicts(search: Search) -> Verdicts:
    """Judge every column at every open node, and choose."""
    level, columns, recipe = search.level, search.columns, search.recipe
    shape = (len(level), len(columns))
    scores, gains = np.full(shape, -np.inf), np.full(shape, -np.inf)
    cuts, log_ways = np.full(shape, np.nan), np.zeros(shape)
    missing_to = np.full(shape, STOP, dtype=np.intp)
    n_cuts = np.zeros(shape, dtype=np.intp)
    resolution = np.zeros(len(level))
    for index, column in enumerate(columns):
        scored = search.score(index, column)
        scores[:, index] = scored.score
        gains[:, index] = scored.gain
        cuts[:, index] = scored.cut
        missing_to[:, index] = scored.missing_to
        log_ways[:, index] = scored.log_ways
        n_cuts[:, index] = scored.n_cuts
        np.maximum(resolution, scored.resolution, out=resolution)
    found = scores.copy()
    n_candidates = np.count_nonzero(found > -np.inf, axis=1)
    average = np.full(len(level), np.nan)
    if recipe.average_gain:
        average = average_gains(gains, few_values(columns, search.n_training_cases))
        scores[~(gains >= average[:, np.newaxis] - AVERAGE_SLACK)] = -np.inf
    if recipe.min_gain:
        # 0 is no bar: a user's criterion may be negative throughout.
        scores[gains < search.min_gain - resolution[:, np.newaxis]] = -np.inf
    log_p = np.full(shape, np.nan)
    splits = np.ones(len(level), dtype=bool)
    if recipe.min_significance is not None:
        log_p = _log_p_values(search, scores, cuts, missing_to, log_ways, n_candidates)
        significant = log_p <= np.log(recipe.min_significance)
        splits = significant.any(axis=1)
        # Where no candidate is significant, the best one shows why the node is a leaf.
        scores[splits[:, np.newaxis] & ~significant] = -np.inf
    best = first_best_of_rows(scores, resolution)
    possible = scores[np.arange(len(level)), best] > -np.inf
    chosen = np.where(possible & splits, best, -1)
    return Verdicts(
        found,
        scores,
        gains,
        cuts,
        missing_to,
        log_ways,
        n_cuts,
        resolution,
        n_candidates,
        average,
        best,
        chosen,
        log_p,
    )


def _log_p_values(
    search: Search,
    scores: Floats,
    cuts: Floats,
    missing_to: Ints,
    log_ways: Floats,
    n_candidates: Ints,
) -> Floats:
    """Return the logarithms of adjusted p-values, a column at a time; NaN if out."""
    log_p = np.full(scores.shape, np.nan)
    for index in range(scores.shape[1]):
        column = np.where(scores[:, index] > -np.inf, index, -1)
        tested = column >= 0
        found = search.log_p_values(column, cuts[:, index], missing_to[:, index])
        log_tries = np.log(np.maximum(n_candidates, 1)) + log_ways[:, index]
        log_p[tested, index] = (found + log_tries)[tested]
    return log_p


def few_values(columns: Sequence[Column], n_cases: float) -> NDArray[np.bool_]:
    """Tell which columns count for the average gain: not those with very many values.

    Unless all columns have very many.
    """
    few = [c.is_numeric or len(c.categories) < _MANY_VALUES * n_cases for c in columns]
    return np.array(few) if any(few) else np.ones(len(columns), dtype=bool)


def average_gains(gains: Floats, few_values: NDArray[np.bool_]) -> Floats:
    """Return by node what candidates gain on average (Quinlan 1993, 2.2).

    A candidate must gain as much, nearly: the ratio alone would prefer splits that
    part off next to nothing.
    """
    total = np.zeros(len(gains))
    number = np.zeros(len(gains))
    for index in np.flatnonzero(few_values).tolist():
        admissible = gains[:, index] > -np.inf
        total += np.where(admissible, gains[:, index], 0.0)
        number += admissible
    return np.where(number > 0, total / np.maximum(number, 1.0), np.inf)
