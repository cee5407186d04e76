"""The choice of a split: which column splits a node, or why none does.

The highest score wins even at gain 0, so that XOR is learnt; of equal scores the first
column wins. C4.5 has a further condition: see :func:`average_gains`. With
``max_p_value`` only columns whose split is significant are considered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, first_best_of_rows
from branchwise.data.table_schema import Column
from branchwise.grow.criteria import ImpuritySums64
from branchwise.grow.protocol import Level
from branchwise.grow.scored import Scored
from branchwise.recipe import Recipe
from branchwise.tree.splits import Splits

if TYPE_CHECKING:  # a fit in the extension does not search
    from branchwise.grow.search import Search

#: A column has very many values if it has more than this share of the cases.
_MANY_VALUES = 0.3
#: How far below the average a gain may be, in bits.
AVERAGE_SLACK = 1e-3


class Stop(IntEnum):
    """Why no split is searched for at a node; OPEN where one is."""

    OPEN = 0
    PURE = 1
    DEEP = 2
    SMALL = 3


def stops(
    level: Level,
    depth: int,
    recipe: Recipe,
    n_cases: float,
    impurity_sums: ImpuritySums64,
) -> Ints:
    """Return for every node of a level whether it may be split, or why not."""
    cases = level.cases
    if recipe.weights_are_cases:
        cases = impurity_sums.weight(level.weights)
    small = cases < recipe.cases_to_split(n_cases)
    stop = np.where(small, int(Stop.SMALL), int(Stop.OPEN))
    if recipe.max_depth is not None and depth >= recipe.max_depth:
        stop[:] = Stop.DEEP
    return np.where(impurity_sums.mixed(level.weights), stop, int(Stop.PURE))


@dataclass(frozen=True)
class Verdicts:
    """The decisions at the open nodes of a level, a row for each of them.

    By column: its best split (``found`` is its score), and its score if it is eligible,
    else -inf. By node: the rounding error of scores, the number of candidates, the
    average gain where it is a condition (else NaN), the best column and the chosen one,
    -1 being none. ``log_p`` are the logarithms of adjusted p-values of candidates where
    they are tested (else NaN).
    """

    found: Floats
    scores: Floats
    gains: Floats
    thresholds: Floats
    missing_to: Ints
    log_ways: Floats
    n_thresholds: Ints
    resolution: Floats
    n_candidates: Ints
    average: Floats
    best: Ints
    chosen: Ints
    log_p: Floats


def carried_out(search: Search, found: Verdicts) -> Splits:
    """Return the splits of the chosen columns."""
    best = np.arange(len(found.best)), found.best
    return search.carry_out(
        found.chosen, found.thresholds[best], found.missing_to[best]
    )


def verdicts(search: Search, batches: Ints | None = None) -> Verdicts:
    """Score every column at every open node, and choose.

    ``batches`` are those of :meth:`~branchwise.grow.draws.ColumnDraws.batches`.
    """
    each = [search.score(index, column) for index, column in enumerate(search.columns)]
    scored = tuple(
        np.stack([getattr(one, field.name) for one in each], axis=1)
        for field in fields(Scored)
    )
    if batches is None:
        return _decided(search, *scored)
    found = _decided(search, *_among(scored, batches == 0))
    for batch in range(1, int(batches.max()) + 1):
        undecided = found.chosen < 0
        if not undecided.any():
            break
        other = _decided(search, *_among(scored, batches == batch))
        found = _combined(undecided, other, found)
    return found


def _among(
    scored: tuple[NDArray[Any], ...], candidates: NDArray[np.bool_]
) -> tuple[NDArray[Any], ...]:
    """Return scores in which only some columns of each node have a split."""
    nothing = Scored.nothing(1)
    return tuple(
        np.where(candidates, values, getattr(nothing, field.name))
        for field, values in zip(fields(Scored), scored, strict=True)
    )


def _combined(nodes: NDArray[np.bool_], one: Verdicts, other: Verdicts) -> Verdicts:
    """Return the verdicts of ``one`` at some nodes, at the rest those of the other."""
    return Verdicts(
        *(
            np.where(nodes.reshape(-1, *(1,) * (mine.ndim - 1)), mine, yours)
            for mine, yours in zip(
                vars(one).values(), vars(other).values(), strict=True
            )
        )
    )


def _decided(
    search: Search,
    found: Floats,
    gains: Floats,
    thresholds: Floats,
    resolutions: Floats,
    missing_to: Ints,
    log_ways: Floats,
    n_thresholds: Ints,
) -> Verdicts:
    """Choose among the best splits of columns."""
    level, columns, recipe = search.level, search.columns, search.recipe
    scores, resolution = found.copy(), resolutions.max(axis=1)
    n_candidates = np.count_nonzero(found > -np.inf, axis=1)
    average = np.full(len(level), np.nan)
    if recipe.average_gain:
        average = average_gains(gains, few_values(columns, search.n_training_cases))
        scores[~(gains >= average[:, np.newaxis] - AVERAGE_SLACK)] = -np.inf
    if recipe.min_gain:
        # 0 is no condition: a user's criterion may always be negative.
        scores[gains < search.min_gain - resolution[:, np.newaxis]] = -np.inf
    log_p = np.full(scores.shape, np.nan)
    splits = np.ones(len(level), dtype=bool)
    if recipe.max_p_value is not None:
        log_p = _log_p_values(
            search, scores, thresholds, missing_to, log_ways, n_candidates
        )
        significant = log_p <= np.log(recipe.max_p_value)
        splits = significant.any(axis=1)
        # If no candidate is significant, the best one is kept to explain the leaf.
        scores[splits[:, np.newaxis] & ~significant] = -np.inf
    best = first_best_of_rows(scores, resolution)
    possible = scores[np.arange(len(level)), best] > -np.inf
    chosen = np.where(possible & splits, best, -1)
    return Verdicts(
        found,
        scores,
        gains,
        thresholds,
        missing_to,
        log_ways,
        n_thresholds,
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
    thresholds: Floats,
    missing_to: Ints,
    log_ways: Floats,
    n_candidates: Ints,
) -> Floats:
    """Return the logarithms of adjusted p-values; NaN for other columns."""
    log_p = np.full(scores.shape, np.nan)
    for index in range(scores.shape[1]):
        column = np.where(scores[:, index] > -np.inf, index, -1)
        tested = column >= 0
        found = search.log_p_values(column, thresholds[:, index], missing_to[:, index])
        log_tries = np.log(np.maximum(n_candidates, 1)) + log_ways[:, index]
        log_p[tested, index] = (found + log_tries)[tested]
    return log_p


def splits_by_rank(columns: Sequence[Column], recipe: Recipe) -> bool:
    """Whether some columns are split between ranks: see ``grow/ranks.py``."""
    two_way = recipe.branching == "two-way"
    return two_way and any(column.kind == "ordinal" for column in columns)


def few_values(columns: Sequence[Column], n_cases: float) -> NDArray[np.bool_]:
    """Tell which columns count for the average gain: not those with very many values.

    Unless all columns have very many.
    """
    few = [c.is_numeric or len(c.categories) < _MANY_VALUES * n_cases for c in columns]
    return np.array(few) if any(few) else np.ones(len(columns), dtype=bool)


def average_gains(gains: Floats, few_values: NDArray[np.bool_]) -> Floats:
    """Return by node the average gain of candidates (Quinlan 1993, 2.2).

    A candidate must gain nearly as much: the ratio alone would prefer splits that
    separate very few cases.
    """
    total = np.zeros(len(gains))
    number = np.zeros(len(gains))
    for index in np.flatnonzero(few_values).tolist():
        admissible = gains[:, index] > -np.inf
        total += np.where(admissible, gains[:, index], 0.0)
        number += admissible
    return np.where(number > 0, total / np.maximum(number, 1.0), np.inf)
