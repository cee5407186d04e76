"""Candidates of a node: what every column can do for it; previews of other splits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, overload

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.data.one_row import Framed
from branchwise.data.table_schema import Column, Schema, Value
from branchwise.data.target import Scale
from branchwise.grow.choose import AVERAGE_SLACK
from branchwise.grow.criteria import Scores
from branchwise.grow.ranks import codes_of_sides
from branchwise.grow.scored import Branches
from branchwise.grow.search import Search
from branchwise.recipe import Recipe
from branchwise.stats import log_adjacent_groupings, log_groupings
from branchwise.studio.nodes.node_search import Given, NodeSearch
from branchwise.studio.nodes.row_counts import RowCounts
from branchwise.text.blocks import Block, Heading, Table
from branchwise.text.bounds import shown
from branchwise.text.conditions import condition_on, phrases
from branchwise.text.document import Document
from branchwise.text.words import amount, rounded, word
from branchwise.tree.apply import predicted_classes

#: Digits of scores in tables.
_DIGITS = 4
#: Branches of a candidate that a table lists.
_LISTED = 6


@dataclass(frozen=True)
class CandidateChild:
    """A branch of a candidate: its condition in words, its cases and its prediction.

    ``weights`` are by class, in class order; where numbers are predicted there are
    none, but a ``mean``.
    """

    condition: str
    #: The same without the column.
    edge: str
    cases: float
    weights: tuple[float, ...]
    mean: float | None
    prediction: Value

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain values."""
        return {**vars(self), "weights": list(self.weights)}


@dataclass(frozen=True)
class Candidate:
    """What a column can do for a node: the split it would make, and what that gains.

    ``score`` is what decides, ``gain`` what the criterion gains; of classes
    ``gain_ratio`` is the gain in bits by the split information. ``p_value`` is adjusted
    for the ways to split (thresholds or groupings) and for the columns. Numbers have a
    ``threshold`` (of dates the date), other columns ``groups`` of values. ``reason``
    says why the recipe would not split on the column, if it would not; there may be a
    split all the same.
    """

    column: str
    kind: str
    score: float | None = None
    gain: float | None = None
    gain_ratio: float | None = None
    p_value: float | None = None
    threshold: float | None = None
    shown_threshold: Value | None = None
    groups: tuple[tuple[Value, ...], ...] | None = None
    children: tuple[CandidateChild, ...] = ()
    reason: str | None = None

    @property
    def splits(self) -> bool:
        """Whether there is a split."""
        return bool(self.children)

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain values."""
        groups = None if self.groups is None else [list(each) for each in self.groups]
        children = [child.to_dict() for child in self.children]
        return {**vars(self), "groups": groups, "children": children}


class Candidates(Sequence[Candidate], Framed, Document):
    """The candidates of a node, the best first; columns without a split at the end."""

    def __init__(self, node: str, candidates: Sequence[Candidate], words: str) -> None:
        self.node = node
        self._candidates = tuple(candidates)
        self._words = words

    @overload
    def __getitem__(self, at: int) -> Candidate: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Candidate, ...]: ...
    def __getitem__(self, at: int | slice) -> Candidate | tuple[Candidate, ...]:
        return self._candidates[at]

    def __len__(self) -> int:
        return len(self._candidates)

    def __repr__(self) -> str:
        return f"<Candidates of node {self.node}: {len(self)} columns>"

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the figures as lists, one for each column of the table."""
        names = ("column", "kind", "score", "gain", "gain_ratio", "p_value")
        columns = {name: [getattr(each, name) for each in self] for name in names}
        columns["split"] = [_branch_words(each, _LISTED) for each in self]
        columns["cases"] = [
            "/".join(amount(child.cases) for child in each.children) for each in self
        ]
        columns["reason"] = [each.reason for each in self]
        return columns

    def blocks(self) -> Iterator[Block]:
        """Yield a table of all columns."""
        yield Heading(f"Candidates of node {self.node} ({self._words})", 2)
        rows = [
            [
                word(each.column),
                _figure(each.score),
                _figure(each.gain),
                _figure(each.gain_ratio),
                _figure(each.p_value),
                _branch_words(each, _LISTED),
                each.reason or "",
            ]
            for each in self
        ]
        head = ["column", "score", "gain", "gain ratio", "p", "branches", "not chosen"]
        yield Table(head, rows, words=(0, 5, 6))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain values."""
        return {"node": self.node, "candidates": [each.to_dict() for each in self]}


def _figure(value: float | None) -> str:
    return "" if value is None else rounded(value, _DIGITS)


def _branch_words(candidate: Candidate, limit: int) -> str:
    told = [
        f"{child.edge} ({amount(child.cases)})" for child in candidate.children[:limit]
    ]
    if len(candidate.children) > limit:
        told.append(f"... ({len(candidate.children) - limit} more)")
    return "; ".join(told)


#: Of a branch: its weights by class, its mean, and what it predicts.
_Prediction = tuple[tuple[float, ...], float | None, Value]


@dataclass(frozen=True)
class _Made:
    """A split of a column with its branches and scores; ``found`` by the search."""

    column: int
    branches: Branches
    codes: Sequence[Sequence[int]]
    threshold: float
    log_ways: float
    score: float
    gain: float
    found: bool = True


class CandidateMaker:
    """Makes candidates of the splits that a search finds, or is given."""

    def __init__(
        self, node: str, counts: RowCounts, search: NodeSearch, schema: Schema
    ) -> None:
        self._node, self._counts, self._search = node, counts, search
        self._schema, self._recipe = schema, search.recipe

    def every(self) -> Candidates:
        """Return the candidates of all columns, the best first."""
        found = self._search.found
        every = range(len(self._schema.columns))
        able = [at for at in every if found.found[0, at] > -math.inf]
        best = [self._best(index) for index in able]
        made = [self._without_split(index) for index in every]
        for at, candidate in zip(able, self._told(best), strict=True):
            made[at] = candidate
        order = np.lexsort((-found.found[0], -found.scores[0]))
        splitting = [at for at in order.tolist() if made[at].splits]
        others = [at for at, each in enumerate(made) if not each.splits]
        whole = self._search.level
        cases = amount(float(whole.cases[0]))
        ordered = [made[at] for at in (*splitting, *others)]
        return Candidates(self._node, ordered, f"{cases} cases")

    def given(self, split: Given) -> Candidate:
        """Return the figures of a prescribed split."""
        search = self._search.exact
        made, _ = self._search.branches(split)
        known, unknown = search.apart(split.column)
        joins = self._recipe.missing in ("branch", "learned")
        outside = (
            0.0 if joins else float(search.impurity_sums.weight(unknown.weights).sum())
        )
        scores = self._search.scored(made.weights, made.cases, outside)
        score, gain = float(scores.score[0]), float(scores.gain[0])
        column = self._schema.columns[split.column]
        if column.is_numeric:
            n_ways = self._n_thresholds(split.column)
            log_ways = math.log(n_ways)
            if self._recipe.quinlan_thresholds:
                total = float(search.impurity_sums.weight(search.level.weights)[0])
                score, gain = _penalised(search, scores, n_ways, total, self._recipe)
        else:
            log_ways = self._log_groupings(column, len(known.node), len(split.codes))
            if self._search.search.columns[split.column].is_numeric:
                # Ordered values are split between ranks.
                log_ways = math.log(self._n_thresholds(split.column))
            less = float(search.correction(search.in_terms(known))[0])
            score, gain = score - less, gain - less
        unit = search.impurity_sums.gain_unit
        figures = _Made(
            split.column,
            made,
            split.codes,
            split.threshold,
            log_ways,
            score * unit,
            gain * unit,
            found=False,
        )
        return self._told([figures])[0]

    def _n_thresholds(self, index: int) -> int:
        numeric = self._schema.columns[index].is_numeric
        search = self._search.exact if numeric else self._search.search
        scored = search.score(index, search.columns[index])
        return max(int(scored.n_thresholds[0]), 1)

    def _without_split(self, index: int) -> Candidate:
        column = self._schema.columns[index]
        return Candidate(column.name, column.kind, reason=self._why_not(index))

    def _best(self, index: int) -> _Made:
        """Return the best split of a column that has one."""
        found, search = self._search.found, self._search.search
        column = self._schema.columns[index]
        threshold = found.thresholds[:, index]
        one = np.zeros(1, dtype=np.intp)
        made = search.branches(index, one, threshold, found.missing_to[:, index])
        at = np.array([index])
        number = float(self._counts.thresholds_in_numbers(threshold, at)[0])
        codes = _codes_by_branch(made)
        if search.columns[index].is_numeric and not column.is_numeric:
            n = len(column.categories)
            codes = [tuple(codes_of_sides(c, number, n)) if c else () for c in codes]
            number = math.nan
        log_ways = float(np.log(max(found.n_thresholds[0, index], 1)))
        if not search.columns[index].is_numeric:
            n_known = len(search.apart(index)[0].node)
            n_groups = sum(bool(each) for each in codes)
            log_ways = self._log_groupings(column, n_known, n_groups)
        unit = search.impurity_sums.gain_unit
        score, gain = found.found[0, index] * unit, found.gains[0, index] * unit
        return _Made(index, made, codes, number, log_ways, float(score), float(gain))

    def _log_groupings(self, column: Column, n_values: int, n_groups: int) -> float:
        """Return the logarithm of in how many ways values can be grouped."""
        if self._recipe.branching == "values" or not n_groups:
            return 0.0
        ways = log_adjacent_groupings if column.kind == "ordinal" else log_groupings
        return float(ways(n_values, n_groups))

    def _told(self, made: Sequence[_Made]) -> list[Candidate]:
        """Return the candidates of splits."""
        ratios = self._gain_ratios(made)
        if self._recipe.criterion_name == "gain_ratio":
            ratios = [each.score for each in made]
        predicted = self._predicted([each.branches for each in made])
        given = zip(made, self._p_values(made), ratios, predicted, strict=True)
        return [self._candidate(*each) for each in given]

    def _candidate(
        self,
        made: _Made,
        p_value: float | None,
        ratio: float | None,
        predicted: Sequence[_Prediction],
    ) -> Candidate:
        column = self._schema.columns[made.column]
        branches, threshold = made.branches, made.threshold
        codes = [*made.codes, *([()] * (len(branches.cases) - len(made.codes)))]
        groups = None
        if not column.is_numeric:
            groups = tuple(
                tuple(column.categories[code] for code in each)
                for each in codes
                if each
            )
        known = None if math.isnan(threshold) else threshold
        told = (phrases(condition_on(column, each, threshold)) for each in codes)
        cases = branches.cases.tolist()
        return Candidate(
            column.name,
            column.kind,
            _finite(made.score),
            _finite(made.gain),
            _finite(ratio),
            p_value,
            known,
            None if known is None else shown(column, known),
            groups,
            tuple(
                CandidateChild(*words, n, weights, mean, prediction)
                for words, n, (weights, mean, prediction) in zip(
                    told, cases, predicted, strict=True
                )
            ),
            self._why_not(made.column) if made.found else None,
        )

    def _predicted(self, made: Sequence[Branches]) -> list[list[_Prediction]]:
        """Return what all branches of splits predict."""
        if not made:
            return []
        weights = np.concatenate([each.weights for each in made])
        scale: Scale | None = self._counts.engine.scale
        predicted: list[_Prediction]
        if scale is not None:
            means = scale.means(weights).tolist()
            predicted = [((), mean, mean) for mean in means]
        else:
            root, classes = self._search.level.weights[0], self._schema.classes
            labels = predicted_classes(weights, root, self._recipe).tolist()
            by_class = (weights * self._counts.grid.unit).tolist()
            predicted = [
                (tuple(own), None, classes[label])
                for own, label in zip(by_class, labels, strict=True)
            ]
        in_turn = iter(predicted)
        return [list(islice(in_turn, len(each.cases))) for each in made]

    def _p_values(self, made: Sequence[_Made]) -> list[float | None]:
        """Return adjusted p-values, all at once."""
        search = self._search.search
        given = [each.branches for each in made if not each.found]
        of_given = iter(search.log_p_of(given))
        log_p = [
            search.best_log_p[each.column] if each.found else next(of_given)
            for each in made
        ]
        tries = math.log(max(int(self._search.found.n_candidates[0]), 1))
        return [
            math.exp(min(one + each.log_ways + tries, 0.0))
            if len(each.branches.cases) > 1
            else None
            for one, each in zip(log_p, made, strict=True)
        ]

    def _gain_ratios(self, made: Sequence[_Made]) -> list[float | None]:
        """Return gains in bits by the split information; None for numbers."""
        if self._counts.engine.scale is not None or not made:
            return [None] * len(made)
        branches = [each.branches.weights for each in made]
        starts = np.cumsum([0, *(len(each) for each in branches)])[:-1]
        weights = np.concatenate(branches)
        total = np.add.reduceat(weights.sum(axis=1), starts)
        number = np.diff(starts, append=len(weights))
        share = weights / np.repeat(np.maximum(total, 1e-300), number)[:, np.newaxis]
        size, known = share.sum(axis=1), np.add.reduceat(share, starts, axis=0)
        information = np.add.reduceat(_entropy(size), starts)
        within = np.add.reduceat(_entropy(share).sum(axis=1), starts) - information
        gain = _entropy(known).sum(axis=1) - within
        pairs = zip(gain.tolist(), information.tolist(), strict=True)
        return [one / other if other > 0 else None for one, other in pairs]

    def _why_not(self, index: int) -> str | None:
        """Say why the recipe does not split on a column; None where it could."""
        found, recipe = self._search.found, self._recipe
        limit = recipe.max_p_value
        if limit is not None and found.log_p[0, index] > math.log(limit):
            return f"its p-value is above max_p_value={limit:g}"
        if found.scores[0, index] > -np.inf:
            return None
        if found.found[0, index] > -np.inf:
            low = not found.gains[0, index] >= found.average[0] - AVERAGE_SLACK
            if recipe.average_gain and low:
                return "its gain is below the average of the columns"
            return f"its gain is below min_gain={recipe.min_gain:g}"
        return self._why_none(index)

    def _why_none(self, index: int) -> str:
        search, column = self._search.search, self._schema.columns[index]
        n_values, some_missing = search.n_values(index)
        if not n_values:
            return "all its values are missing here"
        if n_values + (self._recipe.missing == "branch" and some_missing) < 2:
            return "it has one value here"
        if not column.is_numeric:
            return "no grouping of its values leaves enough cases in the branches"
        if found_thresholds := int(self._search.found.n_thresholds[0, index]):
            del found_thresholds
            return "no threshold gains more than choosing it costs"
        return "no threshold leaves enough cases on both sides"


def _penalised(
    search: Search, scores: Scores, n_ways: int, total: float, recipe: Recipe
) -> tuple[float, float]:
    """Return the score and gain of a threshold of C4.5, less what its choice costs."""
    sums = search.impurity_sums
    left = float(scores.drop[0] - sums.log2(np.array([float(n_ways)]))[0])
    gain = left * sums.unit / total
    by_ratio = recipe.criterion_name == "gain_ratio"
    information = float(scores.information[0])
    return (left / information if by_ratio and information else gain), gain


def _entropy(share: Floats) -> Floats:
    """Return -x log2 x, what shares add to the entropy in bits."""
    bits: Floats = -share * np.log2(np.where(share > 0, share, 1.0))
    return bits


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value) + 0.0


def _codes_by_branch(made: Branches) -> list[tuple[int, ...]]:
    ends = np.cumsum(made.n_codes)
    return [tuple(each.tolist()) for each in np.split(made.codes, ends[:-1])]
