"""The results of a search of a level, as the candidates and p-values of each node."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from branchwise.data.ties import least_of_equals
from branchwise.grow.choose import Stop
from branchwise.recipe import Recipe
from branchwise.steps.candidates import ColumnWork, Grouper
from branchwise.steps.numbers import Candidate, Ending, Group, PValue
from branchwise.steps.walk import Rows, Visit

_ENDINGS: dict[int, Ending] = {
    Stop.PURE: "pure",
    Stop.DEEP: "max_depth",
    Stop.SMALL: "few cases",
}


@dataclass(frozen=True)
class Worked:
    """All columns at the nodes of a visit: ``candidates[k]`` are those of row k."""

    whole: tuple[Group, ...]
    candidates: list[list[Candidate]]
    p_value: list[PValue | None]


def worked(visit: Visit, rows: Rows, recipe: Recipe) -> Worked:
    """Return the candidates and p-values of the nodes of a visit."""
    grouper = Grouper(rows, recipe, visit.search.impurity_sums)
    nodes: list[list[Candidate]] = [[] for _ in visit.nodes]
    for index in range(len(visit.search.columns)):
        column = ColumnWork(visit, rows, grouper, index)
        for at, candidate in enumerate(column.candidates()):
            nodes[at].append(candidate)
    least = least_of_equals(visit.found.scores.max(axis=1), visit.found.resolution)
    tied = (visit.found.scores >= least[:, np.newaxis]) & (visit.found.scores > -np.inf)
    return Worked(
        grouper.groups(
            [None] * len(visit.nodes), visit.level.weights, visit.level.cases
        ),
        [
            [replace(c, tied=bool(tied[at, j])) for j, c in enumerate(candidates)]
            for at, candidates in enumerate(nodes)
        ],
        [_p_value(visit, at, recipe) for at in range(len(visit.nodes))],
    )


def ending(visit: Visit, at: int) -> Ending:
    """Return why the node of a row is a leaf, given that it is one."""
    stop = int(visit.stop[at])
    if stop in _ENDINGS:
        return _ENDINGS[stop]
    found = visit.found
    if found.chosen[at] >= 0:
        return "pruned"
    has_candidate = found.scores[at, found.best[at]] > -np.inf
    return "p-value" if has_candidate else "no candidate"


def _p_value(visit: Visit, at: int, recipe: Recipe) -> PValue | None:
    found = visit.found
    best = int(found.best[at])
    if recipe.max_p_value is None or found.scores[at, best] == -np.inf:
        return None
    n_candidates = int(found.n_candidates[at])
    log_ways = float(found.log_ways[at, best])
    log_total = float(found.log_p[at, best])
    return PValue(
        math.exp(log_total - log_ways - math.log(n_candidates)),
        _exp(log_ways),
        n_candidates,
        _exp(log_total),
        float(recipe.max_p_value),
    )


def _exp(logarithm: float) -> float:
    return math.exp(logarithm) if logarithm < 700 else math.inf
