"""Search for the best split of every column at every open node.

Candidates at a node are the columns that make at least two non-empty branches there (so
one branch per value is possible at most once on a path), each branch with
``min_samples_leaf`` cases and ``min_weight_fraction_leaf`` of the weight. Unless
missing values are a branch, or their side is learnt, a column is judged by its known
cases, its gain scaled by their share (Quinlan 1993, section 3.2). C4.5 has further
conditions: see ``grow/thresholds.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import Floats, Ints, distinct, run_starts
from branchwise.data.table_schema import Column
from branchwise.grow.categories import (
    Grouping,
    Judge,
    by_group,
    grouped,
    joining_groups,
)
from branchwise.grow.counts import Counts
from branchwise.grow.criteria import Candidates, Criterion, ImpuritySums64, Scores
from branchwise.grow.many_values import class_factor, corrected_share
from branchwise.grow.protocol import CountSource, Level
from branchwise.grow.scored import Branches, Scored, assembled
from branchwise.grow.thresholds import (
    BestThresholds,
    Thresholds,
    best_by_score,
    best_penalised,
    quinlan_least,
)
from branchwise.recipe import Recipe
from branchwise.stats import (
    log_adjacent_groupings,
    log_groupings,
    log_p_values_of_classes,
    log_p_values_of_numbers,
)
from branchwise.threads import cached_property
from branchwise.tree.splits import ABOVE, AT_MOST, STOP, Splits

if TYPE_CHECKING:
    from branchwise.grow.draws import Keys
    from branchwise.grow.random_splits import RandomSplits


@dataclass(frozen=True)
class Search:
    """Search for splits of the open nodes of one level."""

    source: CountSource
    columns: Sequence[Column]
    level: Level
    recipe: Recipe
    impurity_sums: ImpuritySums64
    n_training_cases: float
    training_weight: float
    random_splits: RandomSplits | None = None

    def at_random(self, keys: Keys) -> Search:
        """Return the search for one random split of each column."""
        from branchwise.grow.random_splits import RandomSplits  # noqa: PLC0415  (rare)

        return replace(self, random_splits=RandomSplits(keys))

    @cached_property
    def cases_in_leaf(self) -> float:
        """The fewest cases of every branch."""
        return self.recipe.cases_in_leaf(self.n_training_cases)

    @cached_property
    def cases_in_branch(self) -> float:
        """The fewest cases of two branches at least."""
        return self.recipe.cases_in_branch(self.n_training_cases)

    @cached_property
    def weight_in_leaf(self) -> float:
        """The least weight of every branch."""
        return self.recipe.weight_in_leaf(self.training_weight)

    def enough(self, statistics: Floats, cases: Floats) -> NDArray[np.bool_]:
        """Tell which branches have the cases and the weight that each must get."""
        enough: NDArray[np.bool_] = cases >= self.cases_in_leaf
        if self.weight_in_leaf:
            enough &= self.impurity_sums.weight(statistics) >= self.weight_in_leaf
        return enough

    @cached_property
    def min_gain(self) -> float:
        """The least gain of a split, in the units of scores."""
        return self.recipe.min_gain / self.impurity_sums.gain_unit

    @property
    def _every(self) -> Ints:
        return np.arange(len(self.level))

    def score(self, index: int, column: Column) -> Scored:
        """Score one column at every open node."""
        known, unknown = self._judged(index)
        if column.is_numeric:
            return self._score_thresholds(index, known, unknown)
        joined, missing_to = self._joined(index, known, unknown)
        log_ways = self._log_ways(column, known, joined)
        if self.recipe.missing == "branch":
            joined = joined.merge(unknown)
        if self.recipe.missing in ("branch", "learned"):
            unknown = unknown.select(np.zeros(len(unknown.node), bool))
        scored = self._score_values(joined, unknown)
        scored = replace(scored, missing_to=missing_to, log_ways=log_ways)
        less = self.correction(known)
        return replace(scored, score=scored.score - less, gain=scored.gain - less)

    def correction(self, known: Counts) -> Floats:
        """Return what is subtracted from the score of groups of values, by node."""
        if not self.recipe.corrects_values or self.random_splits is not None:
            return np.zeros(len(self.level))
        values = np.bincount(known.node, minlength=len(self.level))
        weighted = Criterion.of(self.recipe).weighted_impurity
        impurity = self.impurity_sums.impurity(weighted, self.level.weights)
        share = corrected_share(values, self.level.cases)
        if not self.recipe.is_regression:
            share *= class_factor(self.level.weights, values, self.level.cases)
        return impurity * share

    def _log_ways(self, column: Column, known: Counts, joined: Counts) -> Floats:
        """Return the logarithms of the numbers of groupings of the values."""
        n = len(self.level)
        given = self.recipe.branching == "values" or self.random_splits is not None
        if given or not self.recipe.tests_splits:
            return np.zeros(n)
        values = np.bincount(known.node, minlength=n).tolist()
        groups = np.bincount(joined.node, minlength=n).tolist()
        pairs = zip(values, groups, strict=True)
        ordered = column.kind == "ordinal"
        log_ways = log_adjacent_groupings if ordered else log_groupings
        return np.array([log_ways(v, g) if g else 0.0 for v, g in pairs])

    def apart(self, index: int, nodes: Ints | None = None) -> tuple[Counts, Counts]:
        """Return the counts of the known values of a column, and of missing ones."""
        counts = self.source.counts(index, nodes)
        missing = counts.code == self.source.missing_code(index)
        return counts.select(~missing), counts.select(missing)

    def _judged(self, index: int) -> tuple[Counts, Counts]:
        """Return the same as statistics of the criterion."""
        known, unknown = self.apart(index)
        return self.in_terms(known), self.in_terms(unknown)

    def in_terms(self, counts: Counts) -> Counts:
        """Return counts as statistics of the criterion."""
        return self.impurity_sums.statistics(self.in_cases(counts))

    def in_cases(self, counts: Counts) -> Counts:
        """Return counts with their cases as the recipe counts these."""
        if not self.recipe.weights_are_cases:
            return counts
        return replace(counts, cases=self.impurity_sums.weight(counts.weights))

    def scores(self, candidates: Candidates, nodes: Ints) -> Scores:
        """Score candidates, whose nodes are these of the level."""
        scores = Criterion.of(self.recipe).score(candidates, self.impurity_sums)
        if not self.impurity_sums.for_numbers:
            return scores
        score = self.impurity_sums.in_units(scores.score, nodes[candidates.node])
        resolution = self.impurity_sums.in_units(scores.resolution, nodes)
        return replace(scores, score=score, gain=score, resolution=resolution)

    def _joined(
        self, index: int, known: Counts, unknown: Counts
    ) -> tuple[Counts, Ints]:
        """Join the counts of values that share a branch, under the code of the first.

        If the branch of missing cases is learnt, they are added there. Also returns
        that branch of each node, or STOP.
        """
        if self.recipe.branching == "values" or not len(known.node):
            return known, np.full(len(self.level), STOP, dtype=np.intp)
        grouping = self._grouping(index, known, unknown)
        order, starts = by_group(known, grouping)
        weights = np.add.reduceat(known.weights[order], starts, axis=0)
        cases = np.add.reduceat(known.cases[order], starts)
        node, first = known.node[order][starts], known.code[order][starts]
        joining, branch = joining_groups(node, unknown, grouping.missing_to)
        weights[branch] += unknown.weights[joining]
        cases[branch] += unknown.cases[joining]
        return Counts(node, first, weights, cases), grouping.missing_to

    def _grouping(self, index: int, known: Counts, unknown: Counts) -> Grouping:
        learned = self.recipe.missing == "learned"
        if (drawn := self.random_splits) is not None:
            return drawn.grouping(index, known, unknown, self.impurity_sums, learned)
        judge = Judge(
            Criterion.of(self.recipe),
            self.impurity_sums,
            self.enough,
            self.cases_in_branch,
        )
        return grouped(
            known,
            unknown,
            len(self.level),
            judge,
            self.recipe.branching == "two-way",
            learned,
            self.columns[index].kind == "ordinal",
        )

    def _score_values(self, known: Counts, unknown: Counts) -> Scored:
        """Score one branch for each value that has cases at the node."""
        result = Scored.nothing(len(self.level))
        if not len(known.node):
            return result
        starts = run_starts(known.node)
        width = np.diff(starts, append=len(known.node))
        enough = self.enough(known.weights, known.cases)
        enough = np.logical_and.reduceat(enough, starts)
        large = np.add.reduceat(known.cases >= self.cases_in_branch, starts, dtype=int)
        admissible = (width >= 2) & (large >= 2) & enough
        kept = known.select(np.repeat(admissible, width))
        self._score_into(result, kept, unknown)
        return result

    def _score_into(self, result: Scored, branches: Counts, unknown: Counts) -> None:
        """Score one candidate for each node that has branches."""
        if not len(branches.node):
            return
        starts = run_starts(branches.node)
        node = branches.node[starts]
        known = np.add.reduceat(branches.weights, starts, axis=0)
        weight = np.zeros(len(self.level))
        weight[unknown.node] = self.impurity_sums.weight(unknown.weights)
        candidates = Candidates(
            np.arange(len(node)), branches.weights, starts, known, weight[node]
        )
        scores = self.scores(candidates, node)
        result.score[node] = scores.score
        result.gain[node] = scores.gain
        result.resolution[node] = scores.resolution

    def _score_thresholds(self, index: int, known: Counts, unknown: Counts) -> Scored:
        """Score the best threshold; missing may be a third branch."""
        result = Scored.nothing(len(self.level))
        if not len(known.node):
            return result
        third = self.recipe.missing == "branch" and len(unknown.node) > 0
        thresholds, outside, n_admissible = self._worth_scoring(index, known, unknown)
        result.n_thresholds[:] = n_admissible
        result.log_ways[:] = np.log(np.maximum(result.n_thresholds, 1))
        if len(thresholds.node):
            candidates = thresholds.candidates(outside, third, self.impurity_sums)
            best = self._best_thresholds(thresholds, candidates, n_admissible)
            result.score[best.node] = best.score
            result.gain[best.node] = best.gain
            result.threshold[best.node] = self._positioned(index, best.threshold)
            result.resolution[best.node] = best.resolution
            result.missing_to[best.node] = best.missing_to
        if third:
            without_threshold = result.score == -np.inf
            self._score_known_against_missing(result, known, unknown, without_threshold)
        return result

    def _positioned(self, index: int, thresholds: Thresholds) -> Floats:
        """Return thresholds of a column as numbers."""
        position = self.columns[index].position(self.recipe.threshold)
        return thresholds.positioned(self.source.values(index), position)

    def _worth_scoring(
        self, index: int, known: Counts, unknown: Counts
    ) -> tuple[Thresholds, Floats, Ints]:
        """Return thresholds that may be the best, and how many are admissible by node.

        Also returns the weights of cases that are on no side.
        """
        thresholds, outside = self._possible_thresholds(index, known, unknown)
        thresholds = thresholds.select(self.admissible(thresholds, unknown))
        number = np.bincount(thresholds.node, minlength=len(self.level))
        return thresholds, outside, number

    def _possible_thresholds(
        self, index: int, known: Counts, unknown: Counts
    ) -> tuple[Thresholds, Floats]:
        """Return all thresholds, and the weights of cases that are on no side."""
        values = self.source.values(index)
        thresholds = Thresholds.between(known, values, len(self.level))
        if self.random_splits is not None:
            drawn = self.random_splits.threshold_between(index, known, values)
            thresholds = thresholds.select(drawn)
        return self._with_missing(thresholds, unknown)

    def _with_missing(
        self, thresholds: Thresholds, unknown: Counts
    ) -> tuple[Thresholds, Floats]:
        """Add the missing cases to a side, if that is learnt.

        Also returns the weights of cases that are on no side.
        """
        weights, cases = unknown.totals(len(self.level))
        if self.recipe.missing != "learned":
            return thresholds, weights
        return thresholds.with_missing(
            weights, cases, self.impurity_sums
        ), np.zeros_like(weights)

    def admissible(self, thresholds: Thresholds, unknown: Counts) -> NDArray[np.bool_]:
        """Tell which thresholds leave enough cases in all branches."""
        admissible = thresholds.fewest_cases >= self.cases_on_a_side(thresholds)
        scoring = Criterion.of(self.recipe)
        admissible &= scoring.allows(thresholds.left) & scoring.allows(thresholds.right)
        admissible &= self.enough(thresholds.left, thresholds.left_cases)
        admissible &= self.enough(thresholds.right, thresholds.right_cases)
        if self.recipe.quinlan_thresholds:
            admissible &= thresholds.apart
        if self.recipe.missing == "branch" and len(unknown.node):
            weights, cases = unknown.totals(len(self.level))
            few = (cases > 0) & ~self.enough(weights, cases)
            admissible &= ~few[thresholds.node]
        return admissible

    def cases_on_a_side(self, thresholds: Thresholds) -> Floats:
        """Return the least number of cases on each side of thresholds."""
        if not self.recipe.quinlan_thresholds:
            least = max(self.cases_in_leaf, self.cases_in_branch)
            return np.full(len(thresholds.node), least)
        n_classes = self.level.weights.shape[1]
        wanted = quinlan_least(thresholds, n_classes, self.cases_in_branch)
        return np.maximum(wanted, self.cases_in_leaf)

    def candidate_thresholds(
        self, index: int
    ) -> tuple[Thresholds, Thresholds, Scores | None]:
        """Return the thresholds of a column, the admissible ones, and their scores."""
        known, unknown = self._judged(index)
        if not len(known.node):
            nothing = Thresholds.along(known, len(self.level))
            return nothing, nothing, None
        positions, outside = self._possible_thresholds(index, known, unknown)
        thresholds = positions.select(self.admissible(positions, unknown))
        if not len(thresholds.node):
            return positions, thresholds, None
        third = self.recipe.missing == "branch" and len(unknown.node) > 0
        candidates = thresholds.candidates(outside, third, self.impurity_sums)
        return positions, thresholds, self.scores(candidates, self._every)

    def _best_thresholds(
        self, thresholds: Thresholds, candidates: Candidates, n_admissible: Ints
    ) -> BestThresholds:
        scores = self.scores(candidates, self._every)
        if self.recipe.quinlan_thresholds:
            given = thresholds, scores, candidates, self.impurity_sums, n_admissible
            return best_penalised(*given, self.recipe.criterion_name == "gain_ratio")
        enough = scores.gain >= self.min_gain - scores.resolution[thresholds.node]
        # Each is compared with min_gain: the best ratio need not have the best gain.
        if self.recipe.min_gain:
            scores = replace(scores, score=np.where(enough, scores.score, -np.inf))
        return best_by_score(thresholds, scores)

    def _score_known_against_missing(
        self,
        result: Scored,
        known: Counts,
        unknown: Counts,
        nodes: NDArray[np.bool_],
    ) -> None:
        """Score known against missing where there is no threshold.

        With a threshold, three branches never gain less than these two.
        """
        weights, cases = known.totals(len(self.level))
        missing_weights, missing_cases = unknown.totals(len(self.level))
        both = (cases > 0) & (missing_cases > 0) & self.enough(weights, cases)
        both &= self.enough(missing_weights, missing_cases)
        able = np.flatnonzero(nodes & both).astype(np.intp)
        pairs = np.stack([weights[able], missing_weights[able]], axis=1)
        branches = Counts(
            np.repeat(able, 2),
            np.tile(np.arange(2), len(able)),
            pairs.reshape(-1, weights.shape[1]),
            np.stack([cases[able], missing_cases[able]], axis=1).ravel(),
        )
        nothing = unknown.select(np.zeros(len(unknown.node), bool))
        result.threshold[able] = np.nan
        self._score_into(result, branches, nothing)

    def log_p_values(self, chosen: Ints, threshold: Floats, missing_to: Ints) -> Floats:
        """Return the logarithms of the p-values of chosen splits."""
        result = np.zeros(len(chosen))
        for index in distinct(chosen[chosen >= 0]).tolist():
            nodes = np.flatnonzero(chosen == index)
            made = self.branches(index, nodes, threshold, missing_to)
            order = np.argsort(made.node, kind="stable")
            starts = run_starts(made.node[order])
            cases = made.size if self.recipe.weights_are_cases else made.cases
            cases = np.add.reduceat(cases[order], starts)
            result[made.node[order[starts]]] = self.log_p_value(
                made.weights[order], starts, cases
            )
        return result

    def log_p_value(self, branches: Floats, starts: Ints, cases: Floats) -> Floats:
        """Return the logarithms of p-values, by split."""
        if not self.impurity_sums.for_numbers:
            return log_p_values_of_classes(branches, starts, cases)
        whole = np.add.reduceat(branches, starts, axis=0)
        within = np.add.reduceat(self.impurity_sums.squares(branches), starts)
        n_branches = np.diff(starts, append=len(branches))
        return log_p_values_of_numbers(
            self.impurity_sums.squares(whole), within, n_branches, cases
        )

    def carry_out(self, chosen: Ints, threshold: Floats, missing_to: Ints) -> Splits:
        """Turn the chosen columns into branches."""
        made = [
            self.branches(index, np.flatnonzero(chosen == index), threshold, missing_to)
            for index in distinct(chosen[chosen >= 0]).tolist()
        ]
        return assembled(made, chosen, threshold, missing_to, self.recipe)

    def branches(
        self, index: int, nodes: Ints, threshold: Floats, missing_to: Ints
    ) -> Branches:
        """Make the branches of the nodes that one column splits."""
        return self._made(index, *self.apart(index, nodes), threshold, missing_to)

    def _numbers(self, index: int, known: Counts) -> Floats:
        """Return the numbers that codes of a column stand for."""
        return self.source.values(index)[known.code]

    def _made(
        self,
        index: int,
        known: Counts,
        unknown: Counts,
        threshold: Floats,
        missing_to: Ints,
    ) -> Branches:
        """Make branches of the counts of known values, and of missing ones."""
        code = known.code
        if self.columns[index].is_numeric:
            with np.errstate(invalid="ignore"):
                above = self._numbers(index, known) > threshold[known.node]
            code = np.where(above, ABOVE, AT_MOST)
        order = np.arange(len(code))
        if self.columns[index].is_numeric or self.recipe.branching == "values":
            starts = run_starts(known.node, code)
            node, code = known.node[starts], code[starts]
            n_codes = np.ones(len(node), dtype=np.intp)
        else:
            judged = self.in_terms(known), self.in_terms(unknown)
            order, starts = by_group(known, self._grouping(index, *judged))
            node, code = known.node[order[starts]], known.code[order]
            n_codes = np.diff(starts, append=len(order))
        weights = np.add.reduceat(known.weights[order], starts, axis=0)
        cases = np.add.reduceat(known.cases[order], starts)
        if self.columns[index].is_numeric:
            # Known against missing: all numbers in one branch, without a threshold.
            uncut = np.isnan(threshold[node])
            n_codes[uncut] = 2
            code = np.repeat(code, n_codes)
            position = np.cumsum(n_codes) - n_codes
            code[position[uncut]], code[position[uncut] + 1] = AT_MOST, ABOVE
        joining, branch = joining_groups(node, unknown, missing_to)
        weights[branch] += unknown.weights[joining]
        cases[branch] += unknown.cases[joining]
        if self.recipe.missing == "branch":
            node = np.concatenate([node, unknown.node])
            weights = np.concatenate([weights, unknown.weights])
            cases = np.concatenate([cases, unknown.cases])
            n_codes = np.concatenate([n_codes, np.zeros(len(unknown.node), np.intp)])
        size = self.impurity_sums.weight(weights)
        return Branches(node, size, n_codes, code, weights, cases)
