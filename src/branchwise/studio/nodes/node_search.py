"""The search for splits at one node, and splits there that are prescribed.

The search is the one that grows trees. A column is counted once for its score, its
branches and its p-value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats, Ints, first_best, larger_side
from branchwise.data.table_schema import Column
from branchwise.engines.memory_engine import Cases, MemoryEngine
from branchwise.errors import DataError
from branchwise.grow.choose import Verdicts, verdicts
from branchwise.grow.counts import Counts
from branchwise.grow.criteria import Candidates as Scorable
from branchwise.grow.criteria import ImpuritySums64, Scores
from branchwise.grow.grow import completed, searched_in, surrogates_added
from branchwise.grow.moments import Moments64
from branchwise.grow.protocol import Level
from branchwise.grow.scored import Branches, assembled
from branchwise.recipe import Recipe
from branchwise.studio.nodes.number_segments import NumberSegmentCounter
from branchwise.studio.nodes.one_node import CountedOnce, NodeLevelSearch
from branchwise.studio.nodes.row_counts import RowCounts
from branchwise.studio.nodes.threshold_segments import (
    ClassSegmentCounter,
    SegmentCounter,
)
from branchwise.threads import cached_property
from branchwise.tree.splits import STOP, Splits

#: The node of a level of one node.
_ONE = np.zeros(1, dtype=np.intp)


@dataclass(frozen=True)
class Given:
    """A prescribed split: the codes of each branch, and the threshold or NaN."""

    column: int
    threshold: float
    codes: tuple[tuple[int, ...], ...]


class NodeSearch:
    """The search for splits at one node."""

    def __init__(
        self, counts: RowCounts, cases: Cases, recipe: Recipe, level: Level
    ) -> None:
        if not len(cases.row):
            raise DataError(
                "The node has no rows, so that nothing can be counted there. Choose "
                "another node, or prune the split above it."
            )
        self._counts, self._cases, self.recipe = counts, cases, recipe
        self._threads = counts.search_threads(cases)
        #: The class weights, or moments, and the cases of the node.
        self.level = level

    def _search_in(
        self, engine: MemoryEngine, columns: Sequence[Column], by_rank: bool
    ) -> NodeLevelSearch:
        counts, recipe, level = self._counts, self.recipe, self.level
        n_cases, weight, impurity_sums_at = counts.references(recipe)
        n_classes = counts.rows.n_classes
        source: Any = CountedOnce(engine, counts.labels, self._threads)
        impurities = impurity_sums_at(level)
        counter = self._segment_counter(engine, impurities)
        whole = [
            at
            for at, column in enumerate(columns)
            if not (column.is_numeric and counter.serves(at))
        ]
        searched = columns
        if by_rank:
            source.count_all(n_classes, whole)
            source, searched = searched_in(source, columns, recipe)
        return NodeLevelSearch(
            source,
            searched,
            level,
            recipe,
            impurities,
            n_cases,
            weight,
            segment_counter=counter,
        )

    def _segment_counter(
        self, engine: MemoryEngine, impurities: ImpuritySums64
    ) -> SegmentCounter:
        labels, n_classes = self._counts.labels, self._counts.rows.n_classes
        scale, moments = engine.scale, engine.moments
        if scale is None or moments is None or not isinstance(impurities, Moments64):
            return ClassSegmentCounter(engine, labels, n_classes, impurities)
        all_rows = len(engine.root.row) == len(labels)
        return NumberSegmentCounter(engine, all_rows, impurities, scale, moments)

    @cached_property
    def search(self) -> NodeLevelSearch:
        """The search as growing has it: between bins, if there are any."""
        engine = self._counts.search_engine.below(self._cases)
        return self._search_in(engine, self._counts.searched_columns, by_rank=True)

    @cached_property
    def exact(self) -> NodeLevelSearch:
        """The search in numbers and codes as they are, for splits that are given."""
        searched = self.__dict__.get("search")
        if searched is not None and searched.columns is self._counts.columns:
            return self.search
        engine = self._counts.engine.below(self._cases)
        return self._search_in(engine, self._counts.columns, by_rank=False)

    @cached_property
    def found(self) -> Verdicts:
        """The best split of every column."""
        self.search.score_all(self._threads)
        return verdicts(self.search)

    def best(self, column: int) -> Splits | None:
        """Return the best split of a column; None if it has none."""
        if self.found.found[0, column] == -np.inf:
            return None
        chosen = np.array([column], dtype=np.intp)
        splits = self.search.carry_out(
            chosen, self.found.thresholds[:, column], self.found.missing_to[:, column]
        )
        return self._completed(splits, in_codes=False)

    def prescribed(self, given: Given) -> Splits:
        """Return a prescribed split, missing values being sent as the recipe says."""
        made, learned = self.branches(given)
        chosen = np.array([given.column], dtype=np.intp)
        threshold = np.array([given.threshold])
        splits = assembled(
            [made], chosen, threshold, np.array([learned], dtype=np.intp), self.recipe
        )
        return self._completed(splits, in_codes=True)

    def _completed(self, splits: Splits, in_codes: bool) -> Splits:
        """Return a split in numbers and codes, with its surrogates."""
        if in_codes and self.recipe.missing != "surrogate":
            return splits
        counts, search = self._counts, self.search
        if not in_codes:
            numbers = counts.thresholds_in_numbers(splits.threshold, splits.column)
            splits = replace(splits, threshold=numbers)
        recipe = self.recipe
        if recipe.missing == "surrogate" and (splits.n_branches != 2).any():
            # Surrogates choose between two branches.
            recipe = replace(recipe, missing="largest")
        add = surrogates_added if in_codes else completed
        source: Any = search.source
        columns = counts.searched_columns
        splits = add(splits, source, columns, search.columns, recipe)
        if splits.surrogates is None or not counts.edges:
            return splits
        inner = splits.surrogates.splits
        numbers = counts.thresholds_in_numbers(inner.threshold, inner.column)
        surrogates = replace(
            splits.surrogates, splits=replace(inner, threshold=numbers)
        )
        return replace(splits, surrogates=surrogates)

    def branches(self, given: Given) -> tuple[Branches, int]:
        """Count the branches of a prescribed split; also the learnt one of missing."""
        search = self.exact
        known, unknown = search.apart(given.column)
        branch = self._branch_of(given, known)
        n = len(given.codes)
        weights = np.zeros((n, known.weights.shape[1]))
        cases = np.zeros(n)
        np.add.at(weights, branch, known.weights)
        np.add.at(cases, branch, known.cases)
        codes = [code for branch_codes in given.codes for code in branch_codes]
        n_codes = [len(branch_codes) for branch_codes in given.codes]
        learned = STOP
        if len(unknown.node) and self.recipe.missing == "learned":
            learned = self._learnt(weights, unknown)
            weights[learned] += unknown.weights[0]
            cases[learned] += unknown.cases[0]
        if len(unknown.node) and self.recipe.missing == "branch":
            weights = np.concatenate([weights, unknown.weights])
            cases = np.concatenate([cases, unknown.cases])
            n_codes.append(0)
        made = Branches(
            np.zeros(len(cases), dtype=np.intp),
            search.impurity_sums.weight(weights),
            np.array(n_codes, dtype=np.intp),
            np.array(codes, dtype=np.intp),
            weights,
            cases,
        )
        return made, learned

    def _branch_of(self, given: Given, known: Counts) -> Ints:
        """Return the branch of each code that has cases at the node."""
        if self.exact.columns[given.column].is_numeric:
            values = self.exact.source.values(given.column)
            return (values[known.code] > given.threshold).astype(np.intp)
        branch = {code: at for at, codes in enumerate(given.codes) for code in codes}
        return np.array([branch[code] for code in known.code.tolist()], dtype=np.intp)

    def _learnt(self, weights: Floats, unknown: Counts) -> int:
        """Return the branch where missing cases score best, of equals the largest."""
        order = list(range(len(weights)))
        size = self.exact.impurity_sums.weight(weights)
        first = int(first_best(size, _ONE, np.zeros(1))[0])
        if len(order) == 2:
            first = int(larger_side(size[:1], size[1:])[0])
        order.remove(first)
        trials = []
        for branch in (first, *order):
            joined = weights.copy()
            joined[branch] += unknown.weights[0]
            trials.append(self.scored(joined, np.ones(len(joined)), 0.0))
        score = np.array([scores.score[0] for scores in trials])
        best = int(first_best(score, _ONE, trials[0].resolution)[0])
        return (first, *order)[best]

    def scored(self, weights: Floats, cases: Floats, outside: float) -> Scores:
        """Score branches, beside which cases of some weight are in none."""
        search = self.exact
        judged = search.in_terms(
            Counts(np.zeros(len(cases), np.intp), np.arange(len(cases)), weights, cases)
        ).weights
        scorable = Scorable(
            _ONE,
            judged,
            _ONE,
            judged.sum(axis=0, keepdims=True),
            np.array([outside]),
        )
        return search.scores(scorable, _ONE)
