"""What one column can do for the nodes of a level, as the search has found it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from branchwise.data.arrays import Floats, run_starts
from branchwise.data.bins import cut_numbers
from branchwise.data.schema import Column
from branchwise.data.ties import first_best, least_of_equals
from branchwise.grow.counts import Counts
from branchwise.grow.criteria import Candidates, Criterion, Masses64, Scores, log2
from branchwise.grow.search import Branches, Search
from branchwise.grow.thresholds import Cuts, placed
from branchwise.recipe import Recipe
from branchwise.steps.numbers import Candidate, Cut, Group, why_out
from branchwise.steps.walk import Rows, Visit
from branchwise.text.conditions import Condition, one_of
from branchwise.threads import cached_property
from branchwise.tree.splits import AT_MOST, STOP


class Grouper:
    """Makes groups of class weights, or of moments of numbers."""

    def __init__(self, rows: Rows, recipe: Recipe, masses: Masses64) -> None:
        self.masses = masses
        self.scoring = Criterion.of(recipe)
        self._unit = rows.unit
        self._scale = rows.engine.scale

    def impurities(self, statistics: Floats) -> Floats | None:
        """Return mass by weight, as the criterion has it."""
        if self.scoring.function is not None:
            return None
        if self._scale is not None and self.scoring.name == "poisson":
            mean = self._scale.means(statistics)
            return -mean * log2(mean)
        if self._scale is not None:
            return np.ldexp(self._scale.variances(statistics), 2 * self._scale.unit)
        mass = self.scoring.mass(self.masses)(statistics)
        weight = self.masses.weight(statistics)
        impurity: Floats = mass * self.masses.unit / np.where(weight > 0, weight, 1.0)
        return np.maximum(impurity, 0.0)

    def groups(
        self, conditions: Sequence[Condition | None], statistics: Floats, cases: Floats
    ) -> tuple[Group, ...]:
        """Make a group of each row of statistics."""
        impurities = self.impurities(statistics)
        weight = self.masses.weight(statistics) * self._unit
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
        """Return what is left of the impurity in branches of this weight."""
        impurities = self.impurities(branches)
        if impurities is None:
            return None
        if self._scale is not None:
            sizes = self.masses.weight(branches) * self._unit
            return float((impurities * sizes).sum()) / weight
        left = int(self.scoring.mass(self.masses)(branches).sum())
        return left * self.masses.unit / (weight / self._unit)


#: With more cuts than this only their number is told.
_LISTED_CUTS = 50


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
    def _tried(self) -> tuple[Cuts, Cuts, Scores | None]:
        return self._search.tried_cuts(self.index)

    @cached_property
    def _cut(self) -> Floats:
        """The cut that is shown, by node; NaN where there is none.

        Where no cut gains enough, that is the one that gains most.
        """
        cut: Floats = self.visit.found.cuts[:, self.index].copy()
        if not self._column.is_numeric:
            return cut
        _, tried, scores = self._tried
        if scores is None:
            return cut
        able = self.visit.found.found[:, self.index] > -np.inf
        starts = run_starts(tried.node)
        node = tried.node[starts]
        best = first_best(scores.gain, starts, scores.resolution[node])
        shown = self._placed(tried.cut[best])
        cut[node] = np.where(able[node], cut[node], shown)
        return cut

    def _placed(self, cut: Floats) -> Floats:
        values = self._search.source.values(self.index)
        return placed(cut, values, self._search.recipe.cut)

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
                candidate = self._with_cuts(candidate, at)
            yield replace(candidate, out=why_out(candidate, self.visit, at, self.index))

    def _counted(self, at: int, part: slice) -> Candidate:
        """Count the values of a node, before anything is split."""
        known, (missing, missing_cases) = self._counts[0], self._missing
        name, numeric = self._column.name, self._column.is_numeric
        values: tuple[Group, ...] = ()
        if not numeric:
            codes = known.code[part].tolist()
            values = self.grouper.groups(
                [Condition(name, "=", self._column.categories[code]) for code in codes],
                known.weights[part],
                known.cases[part],
            )
        gone = None
        if missing_cases[at] > 0:
            condition = Condition(name, "is missing")
            gone = self.grouper.group(condition, missing[at], missing_cases[at])
        all_known = self.grouper.group(
            None, known.weights[part].sum(axis=0), known.cases[part].sum()
        )
        return Candidate(name, numeric, values, missing=gone, known=all_known)

    @cached_property
    def _missing(self) -> tuple[Floats, Floats]:
        return self._counts[1].totals(len(self.visit.nodes))

    def _splits(self) -> dict[int, _Split]:
        """Return the best split of every node that has one."""
        search, found = self._search, self.visit.found
        able = found.found[:, self.index] > -np.inf
        nodes = np.flatnonzero(able | ~np.isnan(self._cut))
        if not len(nodes):
            return {}
        made = search.branches(
            self.index, nodes, self._cut, found.missing_to[:, self.index]
        )
        order = np.argsort(made.node, kind="stable")
        starts = run_starts(made.node[order])
        node = made.node[order[starts]]
        known = np.add.reduceat(made.weights[order], starts, axis=0)
        outside = np.zeros(len(starts))
        if search.recipe.missing not in ("branch", "learned"):
            outside = search.masses.weight(self._missing[0])[node]
        judged = search.masses.statistics(
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
        masses, recipe = self._search.masses, self._search.recipe
        cut = self._number(float(self._cut[at]))
        conditions = [self._condition(codes, cut) for codes in split.codes]
        known = self.grouper.group(None, split.known, split.cases.sum())
        total = (known.weight + split.outside) / self.rows.unit
        found = self.visit.found
        candidate = replace(
            candidate,
            branches=self.grouper.groups(conditions, split.weights, split.cases),
            known=known,
            remainder=self.grouper.remainder(split.weights, known.weight),
            raw_gain=split.gain * masses.gain_unit,
            gain=_finite(found.gains[at, self.index] * masses.gain_unit),
            gains_nothing=not callable(recipe.criterion)
            and abs(split.gain) <= float(found.resolution[at]),
            score=_finite(found.found[at, self.index] * masses.gain_unit),
            n_cuts=int(found.n_cuts[at, self.index]),
            cut=None if math.isnan(cut) else cut,
        )
        if recipe.criterion_name == "gain_ratio":
            bits = split.information * masses.unit / total
            candidate = replace(candidate, split_information=bits)
        if recipe.quinlan_cuts and candidate.cut is not None:
            units = int(masses.log2(np.array([float(candidate.n_cuts)]))[0])
            candidate = replace(candidate, penalty=units * masses.unit / total)
        learned = int(found.missing_to[at, self.index])
        if learned != STOP:
            return replace(candidate, joined=learned)
        # A branch of their own has the missing cases, or no branch.
        return (
            replace(candidate, missing=None)
            if recipe.missing == "branch"
            else candidate
        )

    def _number(self, cut: float) -> float:
        """Return a cut as the model has it."""
        column = np.array([self.index], dtype=np.intp)
        return float(cut_numbers(np.array([cut]), column, self.rows.edges)[0]) + 0.0

    def _condition(self, codes: list[int], cut: float) -> Condition:
        """Tell what leads down a branch."""
        name = self._column.name
        if not codes:
            return Condition(name, "is missing")
        if not self._column.is_numeric:
            return one_of(name, tuple(self._column.categories[code] for code in codes))
        if len(codes) > 1:
            return Condition(name, "is known")
        return Condition(name, "<=" if codes[0] == AT_MOST else ">", cut)

    def _with_cuts(self, candidate: Candidate, at: int) -> Candidate:
        """Tell how many cuts there were, what each side needs, and list them."""
        places, tried, scores = self._tried
        begin, end = np.searchsorted(places.node, [at, at + 1]).tolist()
        if begin == end:
            return candidate
        # Where their side is learnt, the missing cases are tried on either.
        twice = int((places.missing_to[begin:end] != STOP).any()) + 1
        candidate = replace(
            candidate,
            places=(end - begin) // twice,
            least_on_a_side=_as_asked(float(self._least_on_a_side[begin])),
        )
        begin, end = np.searchsorted(tried.node, [at, at + 1]).tolist()
        if scores is None or begin == end:
            return candidate
        quinlan = self._search.recipe.quinlan_cuts
        judged = (scores.gain if quinlan else scores.score)[begin:end]
        top = np.array([judged.max()])
        least = least_of_equals(top, scores.resolution[[at]])[0]
        equal = np.unique(tried.cut[begin:end][judged >= least])
        listed = () if end - begin > _LISTED_CUTS else self._listed(begin, end, scores)
        return replace(candidate, equal_cuts=len(equal), cuts=listed)

    @cached_property
    def _least_on_a_side(self) -> Floats:
        return self._search.cases_on_a_side(self._tried[0])

    def _listed(self, begin: int, end: int, scores: Scores) -> tuple[Cut, ...]:
        mine, tried = slice(begin, end), self._tried[1]
        masses, unit = self._search.masses, self.rows.unit
        columns = (
            self._placed(tried.cut[mine]),
            masses.weight(tried.left[mine]) * unit,
            masses.weight(tried.right[mine]) * unit,
            scores.gain[mine] * masses.gain_unit,
            scores.score[mine] * masses.gain_unit,
        )
        return tuple(
            Cut(self._number(cut), *others)
            for cut, *others in zip(*(c.tolist() for c in columns), strict=True)
        )


def _codes_by_branch(made: Branches) -> list[list[int]]:
    stops = np.cumsum(made.n_codes).tolist()
    starts = [0, *stops[:-1]]
    codes = made.codes.tolist()
    return [codes[a:b] for a, b in zip(starts, stops, strict=True)]


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _as_asked(cases: float) -> float:
    """Return a bar as it was before it was lowered a little."""
    return float(f"{cases:.8g}")
