"""Candidates and p-values of the nodes of a level, as the search has found them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from branchwise.data.arrays import (
    Floats,
    first_best,
    least_of_equals,
    run_starts,
    selected,
)
from branchwise.data.bins import numbers_of_thresholds
from branchwise.data.table_schema import Column, Value
from branchwise.grow.choose import Stop
from branchwise.grow.counts import Counts
from branchwise.grow.criteria import Candidates, Criterion, ImpuritySums64, Scores, log2
from branchwise.grow.many_values import FEW_VALUES
from branchwise.grow.ranks import codes_of_sides
from branchwise.grow.scored import Branches
from branchwise.grow.search import Search
from branchwise.grow.thresholds import Thresholds
from branchwise.recipe import Recipe
from branchwise.steps.numbers import (
    Candidate,
    Ending,
    Group,
    PValue,
    Rows,
    Threshold,
    Visit,
    why_out,
)
from branchwise.text.bounds import shown
from branchwise.text.conditions import Condition, condition_on
from branchwise.threads import cached_property
from branchwise.tree.splits import STOP


class Grouper:
    """Makes groups of class weights, or of moments of numbers."""

    def __init__(
        self, rows: Rows, recipe: Recipe, impurity_sums: ImpuritySums64
    ) -> None:
        self.impurity_sums = impurity_sums
        self.scoring = Criterion.of(recipe)
        self._unit = rows.unit
        self._scale = rows.engine.scale

    def impurities(self, statistics: Floats) -> Floats | None:
        """Return impurities; None for a user-defined criterion."""
        if self.scoring.function is not None:
            return None
        if self._scale is not None and self.scoring.name == "poisson":
            mean = self._scale.means(statistics)
            return -mean * log2(mean)
        if self._scale is not None:
            return np.ldexp(self._scale.variances(statistics), 2 * self._scale.unit)
        weighted_impurity = self.scoring.weighted_impurity(self.impurity_sums)(
            statistics
        )
        weight = self.impurity_sums.weight(statistics)
        impurity: Floats = (
            weighted_impurity
            * self.impurity_sums.unit
            / np.where(weight > 0, weight, 1.0)
        )
        return np.maximum(impurity, 0.0)

    def groups(
        self, conditions: Sequence[Condition | None], statistics: Floats, cases: Floats
    ) -> tuple[Group, ...]:
        """Make a group of each row of statistics."""
        impurities = self.impurities(statistics)
        weight = self.impurity_sums.weight(statistics) * self._unit
        means: list[float | None] = [None] * len(weight)
        if self._scale is None:
            by_class = (statistics * self._unit).tolist()
        else:
            means = self._scale.means(statistics).tolist()
            by_class = [[] for _ in means]
        return tuple(
            Group(
                condition,
                tuple(by_class[at]),
                float(weight[at]),
                float(cases[at]),
                None if impurities is None else float(impurities[at]),
                means[at],
            )
            for at, condition in enumerate(conditions)
        )

    def group(
        self, condition: Condition | None, statistics: Floats, cases: float
    ) -> Group:
        """Make one group."""
        return self.groups([condition], statistics[np.newaxis], np.array([cases]))[0]

    def remainder(self, branches: Floats, weight: float) -> float | None:
        """Return the impurity that remains in branches of this weight."""
        impurities = self.impurities(branches)
        if impurities is None:
            return None
        if self._scale is not None:
            # Shares first: products of large weights and variances overflow.
            shares = self.impurity_sums.weight(branches) / (weight / self._unit)
            return float((impurities * shares).sum())
        left = int(self.scoring.weighted_impurity(self.impurity_sums)(branches).sum())
        return left * self.impurity_sums.unit / (weight / self._unit)


#: With more thresholds than this only their number is given.
_LISTED_THRESHOLDS = 50


@dataclass(frozen=True)
class _Split:
    """A split of one node: the branches, what they share out, and its scores."""

    codes: list[list[int]]
    weights: Floats
    cases: Floats
    known: Floats
    outside: float
    gain: float
    information: int


@dataclass(frozen=True)
class ColumnWork:
    """One column at all nodes of a visit."""

    visit: Visit
    rows: Rows
    grouper: Grouper
    index: int

    @property
    def _search(self) -> Search:
        return self.visit.search

    @property
    def _column(self) -> Column:
        return self._search.columns[self.index]

    @cached_property
    def _counts(self) -> tuple[Counts, Counts]:
        """The counts of known values, and of missing ones."""
        return self._search.apart(self.index)

    @cached_property
    def _considered(self) -> tuple[Thresholds, Thresholds, Scores | None]:
        return self._search.candidate_thresholds(self.index)

    @cached_property
    def _threshold(self) -> Floats:
        """The threshold that is shown, by node; NaN where there is none.

        Where no threshold gains enough, that is the one that gains most.
        """
        threshold: Floats = self.visit.found.thresholds[:, self.index].copy()
        if not self._column.is_numeric:
            return threshold
        _, considered, scores = self._considered
        if scores is None:
            return threshold
        able = self.visit.found.found[:, self.index] > -np.inf
        starts = run_starts(considered.node)
        node = considered.node[starts]
        best = first_best(scores.gain, starts, scores.resolution[node])
        found = self._positioned(selected(considered, best))
        threshold[node] = np.where(able[node], threshold[node], found)
        return threshold

    def _positioned(self, thresholds: Thresholds) -> Floats:
        values = self._search.source.values(self.index)
        position = self._column.position(self._search.recipe.threshold)
        return thresholds.positioned(values, position)

    def _condition(self, codes: Sequence[int], threshold: float) -> Condition:
        """Return the condition of the codes of a branch."""
        column = self.visit.columns[self.index]
        if column is not self._column:  # the codes are those of sides of ranks
            codes = codes_of_sides(codes, threshold, len(column.categories))
        condition = condition_on(column, codes, threshold)
        # Groups are listed as they are counted.
        return condition if self._column.is_numeric else replace(condition, of=None)

    def candidates(self) -> Iterator[Candidate]:
        """Yield what the column can do for each node."""
        splits = self._splits()
        first = np.searchsorted(
            self._counts[0].node, np.arange(len(self.visit.nodes) + 1)
        )
        for at in range(len(self.visit.nodes)):
            candidate = self._counted(at, slice(int(first[at]), int(first[at + 1])))
            if at in splits:
                candidate = self._with_split(candidate, splits[at], at)
            if self._column.is_numeric:
                candidate = self._with_thresholds(candidate, at)
            yield replace(candidate, out=why_out(candidate, self.visit, at, self.index))

    def _counted(self, at: int, piece: slice) -> Candidate:
        """Count the values of a node, before anything is split."""
        known, (missing, missing_cases) = self._counts[0], self._missing
        name, numeric = self._column.name, self._column.is_numeric
        values: tuple[Group, ...] = ()
        if not numeric:
            codes = known.code[piece].tolist()
            values = self.grouper.groups(
                [Condition(name, "=", self._column.categories[code]) for code in codes],
                known.weights[piece],
                known.cases[piece],
            )
        gone = None
        if missing_cases[at] > 0:
            condition = Condition(name, "is missing")
            gone = self.grouper.group(condition, missing[at], missing_cases[at])
        all_known = self.grouper.group(
            None, known.weights[piece].sum(axis=0), known.cases[piece].sum()
        )
        return Candidate(name, numeric, values, missing=gone, known=all_known)

    @cached_property
    def _missing(self) -> tuple[Floats, Floats]:
        return self._counts[1].totals(len(self.visit.nodes))

    def _splits(self) -> dict[int, _Split]:
        """Return the best split of every node that has one."""
        search, found = self._search, self.visit.found
        able = found.found[:, self.index] > -np.inf
        nodes = np.flatnonzero(able | ~np.isnan(self._threshold))
        if not len(nodes):
            return {}
        made = search.branches(
            self.index, nodes, self._threshold, found.missing_to[:, self.index]
        )
        order = np.argsort(made.node, kind="stable")
        starts = run_starts(made.node[order])
        node = made.node[order[starts]]
        known = np.add.reduceat(made.weights[order], starts, axis=0)
        outside = np.zeros(len(starts))
        if search.recipe.missing not in ("branch", "learned"):
            outside = search.impurity_sums.weight(self._missing[0])[node]
        judged = search.impurity_sums.statistics(
            Counts(made.node[order], order, made.weights[order], made.cases[order])
        ).weights
        candidates = Candidates(
            np.arange(len(starts)),
            judged,
            starts,
            np.add.reduceat(judged, starts, axis=0),
            outside,
        )
        scores = search.scores(candidates, node)
        codes = _codes_by_branch(made)
        return {
            int(node[k]): _Split(
                [codes[m] for m in mine.tolist()],
                made.weights[mine],
                made.cases[mine],
                known[k],
                float(outside[k]) * self.rows.unit,
                float(scores.gain[k]),
                int(scores.information[k]),
            )
            for k, mine in enumerate(np.split(order, starts[1:]))
        }

    def _with_split(self, candidate: Candidate, split: _Split, at: int) -> Candidate:
        impurity_sums, recipe = self._search.impurity_sums, self._search.recipe
        threshold = self._number(float(self._threshold[at]))
        conditions = [self._condition(codes, threshold) for codes in split.codes]
        known = self.grouper.group(None, split.known, split.cases.sum())
        total = (known.weight + split.outside) / self.rows.unit
        found = self.visit.found
        candidate = replace(
            candidate,
            branches=self.grouper.groups(conditions, split.weights, split.cases),
            known=known,
            remainder=self.grouper.remainder(split.weights, known.weight),
            raw_gain=split.gain * impurity_sums.gain_unit,
            gain=_finite(found.gains[at, self.index] * impurity_sums.gain_unit),
            gains_nothing=not callable(recipe.criterion)
            and abs(split.gain) <= float(found.resolution[at]),
            score=_finite(found.found[at, self.index] * impurity_sums.gain_unit),
            n_thresholds=int(found.n_thresholds[at, self.index]),
            threshold=None if math.isnan(threshold) else self._shown(threshold),
        )
        if recipe.criterion_name == "gain_ratio":
            bits = split.information * impurity_sums.unit / total
            candidate = replace(candidate, split_information=bits)
        if recipe.quinlan_thresholds and candidate.threshold is not None:
            units = int(
                impurity_sums.log2(np.array([float(candidate.n_thresholds)]))[0]
            )
            candidate = replace(candidate, penalty=units * impurity_sums.unit / total)
        if recipe.corrects_values and len(candidate.values) > FEW_VALUES:
            less = split.gain - float(found.gains[at, self.index])
            candidate = replace(candidate, penalty=less * impurity_sums.gain_unit)
        learned = int(found.missing_to[at, self.index])
        if learned != STOP:
            return replace(candidate, joined=learned)
        # A branch of their own has the missing cases, or no branch.
        return (
            replace(candidate, missing=None)
            if recipe.missing == "branch"
            else candidate
        )

    def _shown(self, threshold: float) -> Value:
        """Return a threshold; between ordered categories the last one up to it."""
        column = self.visit.columns[self.index]
        if column is self._column:
            return shown(column, threshold)
        return column.categories[math.floor(threshold)]

    def _number(self, threshold: float) -> float:
        """Return a threshold as the model has it."""
        column = np.array([self.index], dtype=np.intp)
        return (
            float(
                numbers_of_thresholds(np.array([threshold]), column, self.rows.edges)[0]
            )
            + 0.0
        )

    def _with_thresholds(self, candidate: Candidate, at: int) -> Candidate:
        """Add the number of thresholds, what each side needs, and their list."""
        positions, considered, scores = self._considered
        begin, end = np.searchsorted(positions.node, [at, at + 1]).tolist()
        if begin == end:
            return candidate
        # Where their side is learnt, the missing cases are tried on either.
        twice = int((positions.missing_to[begin:end] != STOP).any()) + 1
        candidate = replace(
            candidate,
            positions=(end - begin) // twice,
            # As it was before it was lowered a little.
            least_on_a_side=float(f"{self._least_on_a_side[begin]:.8g}"),
        )
        begin, end = np.searchsorted(considered.node, [at, at + 1]).tolist()
        if scores is None or begin == end:
            return candidate
        quinlan = self._search.recipe.quinlan_thresholds
        judged = (scores.gain if quinlan else scores.score)[begin:end]
        top = np.array([judged.max()])
        least = least_of_equals(top, scores.resolution[[at]])[0]
        equal = np.unique(considered.low[begin:end][judged >= least])
        listed = (
            () if end - begin > _LISTED_THRESHOLDS else self._listed(begin, end, scores)
        )
        return replace(candidate, equal_thresholds=len(equal), thresholds=listed)

    @cached_property
    def _least_on_a_side(self) -> Floats:
        return self._search.cases_on_a_side(self._considered[0])

    def _listed(self, begin: int, end: int, scores: Scores) -> tuple[Threshold, ...]:
        mine, considered = slice(begin, end), self._considered[1]
        impurity_sums, unit = self._search.impurity_sums, self.rows.unit
        columns = (
            self._positioned(selected(considered, mine)),
            impurity_sums.weight(considered.left[mine]) * unit,
            impurity_sums.weight(considered.right[mine]) * unit,
            scores.gain[mine] * impurity_sums.gain_unit,
            scores.score[mine] * impurity_sums.gain_unit,
        )
        return tuple(
            Threshold(self._shown(self._number(threshold)), *others)
            for threshold, *others in zip(*(c.tolist() for c in columns), strict=True)
        )


def _codes_by_branch(made: Branches) -> list[list[int]]:
    codes, ends = made.codes.tolist(), np.cumsum(made.n_codes).tolist()
    return [codes[a:b] for a, b in pairwise([0, *ends])]


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


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
