"""Stage 5: the best split of every open node; admissibility; the one tie rule.

Comes in: who can give counts (:class:`CountSource`), the class weights of the
open nodes, and a recipe. Goes out: :class:`~branchwise.splits.Splits`.

Candidates at a node are the columns that make at least two non-empty branches
there (so a categorical column is asked at most once on a path), each branch with
``min_samples_leaf`` cases. The highest score wins even at gain 0, so that XOR is
learnt. Unless missing values are a branch, a column is judged by its known cases,
its gain scaled by their share (Quinlan 1993, section 3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from branchwise.counts import Counts, Floats, Ints, run_starts
from branchwise.criteria import Candidates, Masses64
from branchwise.missing import STOP, routes
from branchwise.recipes import Recipe
from branchwise.splits import ABOVE, AT_MOST, Splits
from branchwise.table.bins import midpoint
from branchwise.table.schema import Column
from branchwise.ties import first_best


class CountSource(Protocol):
    """Who adds up the counts of the open nodes."""

    def counts(self, column: int, nodes: Ints | None = None) -> Counts:
        """Count a column in all open nodes, or in some of them."""

    def values(self, column: int) -> Floats:
        """Return the distinct numbers of a numeric column; a code is a position."""

    def missing_code(self, column: int) -> int:
        """Return the code that stands for missing in the counts of a column."""


@dataclass(frozen=True)
class Level:
    """The open nodes of one level: their class weights and numbers of cases."""

    weights: Floats
    cases: Floats

    def __len__(self) -> int:
        return len(self.cases)


def best_splits(
    source: CountSource,
    columns: Sequence[Column],
    level: Level,
    recipe: Recipe,
    masses: Masses64,
    n_training_cases: float,
) -> Splits:
    """Choose the split of every open node, or none where none is admissible."""
    search = _Search(
        source, columns, level, recipe, masses, recipe.cases_in_leaf(n_training_cases)
    )
    scores = np.full((len(level), len(columns)), -np.inf)
    cuts = np.full((len(level), len(columns)), np.nan)
    resolution = np.zeros(len(level))
    for index, column in enumerate(columns):
        scored = search.score(index, column)
        scores[:, index] = scored.score
        cuts[:, index] = scored.cut
        np.maximum(resolution, scored.resolution, out=resolution)
    starts = np.arange(len(level)) * len(columns)
    best = first_best(scores.ravel(), starts, resolution) - starts
    every = np.arange(len(level))
    chosen = np.where(scores[every, best] > -np.inf, best, -1)
    return search.carry_out(chosen, cuts[every, best])


@dataclass(frozen=True)
class _Scored:
    """The best that one column can do for each node; -inf where it can do nothing."""

    score: Floats
    cut: Floats
    resolution: Floats

    @classmethod
    def nothing(cls, n_nodes: int) -> _Scored:
        return cls(
            np.full(n_nodes, -np.inf), np.full(n_nodes, np.nan), np.zeros(n_nodes)
        )


@dataclass(frozen=True)
class _Search:
    source: CountSource
    columns: Sequence[Column]
    level: Level
    recipe: Recipe
    masses: Masses64
    cases_in_leaf: float

    def score(self, index: int, column: Column) -> _Scored:
        """Score one column at every open node."""
        counts = self.source.counts(index)
        known, unknown = self._apart(index, counts)
        if not column.is_numeric:
            if self.recipe.missing == "branch":
                known, unknown = counts, counts.select(np.zeros(len(counts.node), bool))
            return self._score_values(known, unknown)
        return self._score_cuts(index, known, unknown)

    def _apart(self, index: int, counts: Counts) -> tuple[Counts, Counts]:
        missing = counts.code == self.source.missing_code(index)
        return counts.select(~missing), counts.select(missing)

    def _score_values(self, known: Counts, unknown: Counts) -> _Scored:
        """One branch for each value that has cases at the node."""
        result = _Scored.nothing(len(self.level))
        if not len(known.node):
            return result
        starts = run_starts(known.node)
        width = np.diff(starts, append=len(known.node))
        fewest = np.minimum.reduceat(known.cases, starts)
        admissible = (width >= 2) & (fewest >= self.cases_in_leaf)
        kept = known.select(np.repeat(admissible, width))
        self._score_into(result, kept, unknown)
        return result

    def _score_into(self, result: _Scored, branches: Counts, unknown: Counts) -> None:
        """Score one candidate for each node that has branches."""
        if not len(branches.node):
            return
        starts = run_starts(branches.node)
        node = branches.node[starts]
        known = np.add.reduceat(branches.weights, starts, axis=0)
        weight = np.zeros(len(self.level))
        weight[unknown.node] = unknown.weights.sum(axis=1)
        candidates = Candidates(
            np.arange(len(node)), branches.weights, starts, known, weight[node]
        )
        scores = self.recipe.scoring.score(candidates, self.masses)
        enough = self._enough(scores.gain, scores.resolution)
        result.score[node] = np.where(enough, scores.score, -np.inf)
        result.resolution[node] = scores.resolution

    def _enough(self, gain: Floats, resolution: Floats) -> NDArray[np.bool_]:
        """Hold gains against ``min_gain``; 0 is no bar, so a user's criterion may be
        negative throughout.
        """  # noqa: D205
        if not self.recipe.min_gain:
            return np.ones(len(gain), dtype=bool)
        return gain >= self.recipe.min_gain - resolution

    def _score_cuts(self, index: int, known: Counts, unknown: Counts) -> _Scored:
        """Two branches at the best cut, and a third if missing is a branch."""
        result = _Scored.nothing(len(self.level))
        if not len(known.node):
            return result
        cuts = _Cuts.between(known, self.source.values(index), len(self.level))
        third = self.recipe.missing == "branch" and len(unknown.node) > 0
        missing_weights, missing_cases = unknown.totals(len(self.level))
        admissible = np.minimum(cuts.left_cases, cuts.right_cases) >= self.cases_in_leaf
        if third:
            few = (missing_cases > 0) & (missing_cases < self.cases_in_leaf)
            admissible &= ~few[cuts.node]
        cuts = cuts.select(admissible)
        if len(cuts.node):
            self._score_best_cut(result, cuts, missing_weights, third)
        if third:
            without_cut = result.score == -np.inf
            self._score_known_against_missing(result, known, unknown, without_cut)
        return result

    def _score_best_cut(
        self, result: _Scored, cuts: _Cuts, missing_weights: Floats, third: bool
    ) -> None:
        sides = [cuts.left, cuts.right]
        inside = np.zeros_like(missing_weights)
        outside = missing_weights.sum(axis=1)
        if third:
            sides.append(missing_weights[cuts.node])
            inside, outside = missing_weights, np.zeros_like(outside)
        branches = np.stack(sides, axis=1).reshape(-1, cuts.left.shape[1])
        known = np.zeros_like(missing_weights)
        known[cuts.node] = cuts.left + cuts.right
        known += inside
        # Nodes without a cut keep a weight, so that nothing divides by zero.
        outside[known.sum(axis=1) == 0] = 1.0
        candidates = Candidates(
            cuts.node, branches, np.arange(len(cuts.node)) * len(sides), known, outside
        )
        scores = self.recipe.scoring.score(candidates, self.masses)
        # Held against min_gain one by one: the best ratio need not have the best gain.
        enough = self._enough(scores.gain, scores.resolution[cuts.node])
        score = np.where(enough, scores.score, -np.inf)
        starts = run_starts(cuts.node)
        node = cuts.node[starts]
        resolution = scores.resolution[node]
        best = first_best(score, starts, resolution)
        result.score[node] = score[best]
        result.cut[node] = cuts.cut[best]
        result.resolution[node] = resolution

    def _score_known_against_missing(
        self,
        result: _Scored,
        known: Counts,
        unknown: Counts,
        nodes: NDArray[np.bool_],
    ) -> None:
        """Where no cut can be made, whether the value is missing may still tell.

        With a cut there as well, three branches never gain less than these two.
        """
        weights, cases = known.totals(len(self.level))
        missing_weights, missing_cases = unknown.totals(len(self.level))
        least = max(self.cases_in_leaf, np.finfo(float).tiny)
        able = np.flatnonzero(
            nodes & (np.minimum(cases, missing_cases) >= least)
        ).astype(np.intp)
        pairs = np.stack([weights[able], missing_weights[able]], axis=1)
        branches = Counts(
            np.repeat(able, 2),
            np.tile(np.arange(2), len(able)),
            pairs.reshape(-1, weights.shape[1]),
            np.stack([cases[able], missing_cases[able]], axis=1).ravel(),
        )
        nothing = unknown.select(np.zeros(len(unknown.node), bool))
        result.cut[able] = np.nan
        self._score_into(result, branches, nothing)

    def carry_out(self, chosen: Ints, cut: Floats) -> Splits:
        """Turn the chosen columns into branches."""
        made = [
            self._branches(index, np.flatnonzero(chosen == index), cut)
            for index in np.unique(chosen[chosen >= 0]).tolist()
        ]
        return _assemble(made, chosen, cut, self.recipe)

    def _branches(self, index: int, nodes: Ints, cut: Floats) -> _Branches:
        """Make the branches of the nodes that one column splits."""
        counts = self.source.counts(index, nodes)
        known, unknown = self._apart(index, counts)
        code = known.code
        if self.columns[index].is_numeric:
            with np.errstate(invalid="ignore"):
                above = self.source.values(index)[code] > cut[known.node]
            code = np.where(above, ABOVE, AT_MOST)
        starts = run_starts(known.node, code)
        node, code = known.node[starts], code[starts]
        size = np.add.reduceat(known.weights.sum(axis=1), starts)
        n_codes = np.ones(len(node), dtype=np.intp)
        if self.columns[index].is_numeric:
            # Known against missing: numbers on either side of nowhere.
            uncut = np.isnan(cut[node])
            n_codes[uncut] = 2
            code = np.repeat(code, n_codes)
            position = np.cumsum(n_codes) - n_codes
            code[position[uncut]], code[position[uncut] + 1] = AT_MOST, ABOVE
        if self.recipe.missing == "branch":
            node = np.concatenate([node, unknown.node])
            size = np.concatenate([size, unknown.weights.sum(axis=1)])
            n_codes = np.concatenate([n_codes, np.zeros(len(unknown.node), np.intp)])
        return _Branches(node, size, n_codes, code)


@dataclass(frozen=True)
class _Branches:
    """Branches with the codes that lead to them; that of missing values has none."""

    node: Ints
    size: Floats
    n_codes: Ints
    codes: Ints


@dataclass(frozen=True)
class _Cuts:
    """Every place where the numbers of a node can be cut in two."""

    node: Ints
    cut: Floats
    left: Floats
    right: Floats
    left_cases: Floats
    right_cases: Floats

    @classmethod
    def between(cls, known: Counts, values: Floats, n_nodes: int) -> _Cuts:
        """Cut between neighbouring values of the same node."""
        weights, cases = known.totals(n_nodes)
        starts = run_starts(known.node)
        width = np.diff(starts, append=len(known.node))
        # Sums on the weight grid are exact, so differences of running sums are.
        running = np.cumsum(known.weights, axis=0)
        running_cases = np.cumsum(known.cases)
        before = np.repeat(running[starts] - known.weights[starts], width, axis=0)
        before_cases = np.repeat(running_cases[starts] - known.cases[starts], width)
        inner = np.flatnonzero(known.node[:-1] == known.node[1:])
        node = known.node[inner]
        left = (running - before)[inner]
        left_cases = (running_cases - before_cases)[inner]
        cut = midpoint(values[known.code[inner]], values[known.code[inner + 1]])
        right = weights[node] - left
        return cls(node, cut, left, right, left_cases, cases[node] - left_cases)

    def select(self, mask: NDArray[np.bool_]) -> _Cuts:
        """Keep some of the cuts."""
        return _Cuts(
            self.node[mask],
            self.cut[mask],
            self.left[mask],
            self.right[mask],
            self.left_cases[mask],
            self.right_cases[mask],
        )


def _assemble(
    made: Sequence[_Branches], chosen: Ints, cut: Floats, recipe: Recipe
) -> Splits:
    """Put the branches of all columns in the order of their nodes."""
    empty = np.empty(0, dtype=np.intp)
    node = np.concatenate([b.node for b in made]) if made else empty
    size = np.concatenate([b.size for b in made]) if made else np.empty(0)
    n_codes = np.concatenate([b.n_codes for b in made]) if made else empty
    codes = np.concatenate([b.codes for b in made]) if made else empty
    # Stable: a node's branches keep their order, that of missing values the last.
    order = np.argsort(node, kind="stable")
    code_order = np.argsort(np.repeat(node, n_codes), kind="stable")
    node, size, n_codes, codes = (
        node[order],
        size[order],
        n_codes[order],
        codes[code_order],
    )
    starts = run_starts(node)
    split = node[starts]
    n_branches = np.zeros(len(chosen), dtype=np.intp)
    n_branches[split] = np.diff(starts, append=len(node))
    missing_to = np.full(len(chosen), STOP, dtype=np.intp)
    unseen_to = np.full(len(chosen), STOP, dtype=np.intp)
    if len(split):
        last = starts + n_branches[split] - 1
        has_own = n_codes[last] == 0
        missing_branch = np.where(has_own, n_branches[split] - 1, STOP)
        missing_to[split], unseen_to[split] = routes(
            recipe.missing, recipe.unseen, size, starts, missing_branch
        )
    cut = np.where(chosen >= 0, cut, np.nan)
    return Splits(chosen, cut, n_branches, missing_to, unseen_to, n_codes, codes, size)
