"""Grouping of the values of a category column into branches.

Two branches (CART). With two classes, or in regression, the best of all groupings
splits the values sorted by the share of a class, or by their means (Fisher 1958;
Breiman et al. 1984, section 4.2.2). With more classes all groupings are tried where a
node has few values; where it has many, the values are sorted by the share of each class
in turn and split in that order, and every value is tried against all others. Where the
side of missing values is learnt, they are tried on either side of every grouping, and
the search stays exact. Scores of many values
are corrected in ``many_values.py``.

Any number of groups (C4.5's -s). Every value begins as a group; the two groups whose
merging gives the best score are merged repeatedly, down to two groups, and the best of
all these groupings is taken. The gain of each is reduced by the bits that encode the
choice, as one of many groupings may look good at random. Of ordered values only
neighbours are merged.

Nodes with equally many values are treated together: an array has a row for each of them
and a column for each of its values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import (
    TIE,
    Floats,
    Ints,
    distinct,
    first_best,
    first_best_of_rows,
    larger_side,
    run_starts,
)
from branchwise.grow.counts import Counts
from branchwise.grow.criteria import (
    Candidates,
    Criterion,
    ImpuritySums64,
    log2,
    lowered,
    merger_scores,
)
from branchwise.grow.moments import have_one_order, order_of_values
from branchwise.grow.thresholds import Thresholds
from branchwise.stats import log_adjacent_groupings
from branchwise.tree.splits import STOP

#: With no more values than this at a node all groupings in two are tried.
ALL_GROUPINGS = 8
#: With more values than this only neighbours in the order of shares are merged.
ALL_MERGERS = 24


@dataclass(frozen=True)
class Judge:
    """Scores of groupings."""

    criterion: Criterion
    impurity_sums: ImpuritySums64
    #: Which branches are large enough, from their statistics and cases.
    enough: Callable[[Floats, Floats], NDArray[np.bool_]]
    cases_in_branch: float

    def scores(
        self, branches: Floats, cases: Floats, unknown: Floats, bits: float = 0.0
    ) -> tuple[Floats, Floats]:
        """Score candidates of nodes: shape (nodes, candidates, branches, classes).

        The gain of a candidate is reduced by ``bits`` divided by the weight.
        Candidates without enough cases in their branches score -inf. Returns the
        scores and, by node, the rounding error of scores.
        """
        n, s, b, c = branches.shape
        node = np.repeat(np.arange(n), s)
        candidates = Candidates(
            node,
            branches.reshape(-1, c),
            np.arange(n * s) * b,
            branches[:, 0].sum(axis=1),
            unknown,
        )
        scores = self.criterion.score(candidates, self.impurity_sums)
        large = np.count_nonzero(cases >= self.cases_in_branch, axis=2) >= 2
        enough = large & self.enough(branches, cases).all(axis=2)
        score = scores.score
        if bits:
            units = self.impurity_sums.of_bits(bits)
            total = (self.impurity_sums.weight(candidates.known) + unknown)[node]
            score = lowered(self.criterion, scores, units, total, self.impurity_sums)
        return np.where(enough, score.reshape(n, s), -np.inf), scores.resolution


@dataclass(frozen=True)
class _Batch:
    """Nodes with the same number of values: class weights and cases by value.

    With them the class weights and the number of their missing cases.
    """

    weights: Floats
    cases: Floats
    missing: Floats
    missing_cases: Floats
    unknown: Floats

    @property
    def shape(self) -> tuple[int, int]:
        nodes, values = self.cases.shape
        return nodes, values


Grouper = Callable[[_Batch, Judge], Ints]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Grouping:
    """The group of each (node, code) pair; a node's first value is in group 0.

    ``missing_to`` is by node the group that its missing cases are in, or STOP.
    """

    group: Ints
    missing_to: Ints


def grouped(
    known: Counts,
    unknown: Counts,
    n_nodes: int,
    judge: Judge,
    two_way: bool,
    learned: bool,
    ordered: bool = False,
) -> Grouping:
    """Group the values of every node: all in one group where no grouping is admissible.

    With ``learned`` the missing cases are in a group, too, otherwise in none. With
    ``ordered`` only neighbours share one of any number of groups.
    """
    group = np.zeros(len(known.node), dtype=np.intp)
    missing_to = np.full(n_nodes, STOP, dtype=np.intp)
    several = _adjacent_groups if ordered else _groups
    grouper: Grouper = _two_groups if two_way else several
    missing, missing_cases = unknown.totals(n_nodes)
    weight = judge.impurity_sums.weight(missing)
    starts = run_starts(known.node)
    width = np.diff(starts, append=len(known.node))
    joining = learned & (missing_cases[known.node[starts]] > 0)

    def batches(alike: Mask) -> Iterator[tuple[Ints, Ints, _Batch]]:
        """Yield the nodes with equally many values together."""
        for values in distinct(width[alike & (width > 1)]).tolist():
            at = starts[alike & (width == values)]
            node = known.node[at]
            pairs = at[:, np.newaxis] + np.arange(values)
            yield (
                node,
                pairs,
                _Batch(
                    known.weights[pairs],
                    known.cases[pairs],
                    missing[node],
                    missing_cases[node],
                    weight[node],
                ),
            )

    plain = ~joining
    if two_way and have_one_order(known.weights, judge.impurity_sums):
        ordinary = np.repeat(plain & (width > 1), width)
        group[ordinary] = _two_groups_in_order(known.select(ordinary), weight, judge)
        plain[:] = False
    for _, pairs, batch in batches(plain):
        group[pairs] = _in_order_of_values(grouper(batch, judge))
    for node, pairs, batch in batches(joining):
        group[pairs], missing_to[node] = _two_groups_with_missing(batch, judge)
    return Grouping(group, missing_to)


def by_group(known: Counts, grouping: Grouping) -> tuple[Ints, Ints]:
    """Sort pairs by node, group and code; return the order and where groups begin."""
    order = np.lexsort((known.code, grouping.group, known.node))
    return order, run_starts(known.node[order], grouping.group[order])


def joining_groups(node: Ints, unknown: Counts, missing_to: Ints) -> tuple[Ints, Ints]:
    """Return which missing cases share a branch with values, and those branches.

    ``node`` are the nodes of all branches, in order.
    """
    joining = np.flatnonzero(missing_to[unknown.node] != STOP)
    owner = unknown.node[joining]
    return joining, np.searchsorted(node, owner) + missing_to[owner]


def _in_order_of_values(group: Ints) -> Ints:
    """Renumber the groups of each node: that of its first value is the first."""
    result = np.full_like(group, -1)
    n_groups = np.zeros(len(group), dtype=np.intp)
    for value in range(group.shape[1]):
        new = result[:, value] < 0
        same = group == group[:, value : value + 1]
        result = np.where(new[:, np.newaxis] & same, n_groups[:, np.newaxis], result)
        n_groups += new
    return result


def _two_groups(batch: _Batch, judge: Judge) -> Ints:
    """Find the best grouping in two: 0 or 1 for each value of each node."""
    sides = list(_two_way_candidates(batch, judge.impurity_sums))
    branches, cases = _both_sides(batch, sides)
    score, resolution = judge.scores(branches, cases, batch.unknown)
    best = first_best_of_rows(score, resolution)
    possible = score[np.arange(len(score)), best] > -np.inf
    return np.where(possible[:, np.newaxis], _members(batch, sides, best), 0)


def _two_groups_in_order(known: Counts, unknown: Floats, judge: Judge) -> Ints:
    """Find the best grouping in two of every node, however many values each has.

    Nodes have two values at least; ``unknown`` is by node the weight of other cases.
    Returns the group of each pair.
    """
    if not len(known.node):
        return np.empty(0, dtype=np.intp)
    starts = run_starts(known.node)
    width = np.diff(starts, append=len(known.node))
    node = np.repeat(np.arange(len(starts)), width)
    order = np.lexsort((order_of_values(known.weights, judge.impurity_sums), node))
    ordered = Counts(node, known.code[order], known.weights[order], known.cases[order])
    sides = Thresholds.along(ordered, len(starts))
    branches = np.stack([sides.left, sides.right], axis=1)
    candidates = Candidates(
        sides.node,
        branches.reshape(-1, branches.shape[2]),
        2 * np.arange(len(sides.node)),
        np.add.reduceat(known.weights, starts, axis=0),
        unknown[known.node[starts]],
    )
    scores = judge.criterion.score(candidates, judge.impurity_sums)
    enough = sides.fewest_cases >= judge.cases_in_branch
    enough &= judge.enough(sides.left, sides.left_cases)
    enough &= judge.enough(sides.right, sides.right_cases)
    score = np.where(enough, scores.score, -np.inf)
    first = starts - np.arange(len(starts))
    best = first_best(score, first, scores.resolution)
    # The values up to the best one; all of them where none is possible.
    last = np.where(score[best] > -np.inf, best - first, width)
    group = np.empty(len(node), dtype=np.intp)
    group[order] = np.arange(len(node)) - starts[node] > last[node]
    # From here on the group of the first value is the first.
    return group ^ group[starts][node]


def _two_groups_with_missing(batch: _Batch, judge: Judge) -> tuple[Ints, Ints]:
    """Find the best grouping in two, and the group of the missing cases.

    Of equal candidates the one with them in the larger group wins, then the first.
    """
    sides = list(_two_way_candidates(batch, judge.impurity_sums))
    sides.append(_one_against_the_rest(batch))
    branches, cases = _both_sides(batch, sides)
    groupings = []
    for side in (0, 1):
        joined, joined_cases = branches.copy(), cases.copy()
        joined[:, :, side] += batch.missing[:, np.newaxis]
        joined_cases[:, :, side] += batch.missing_cases[:, np.newaxis]
        score, resolution = judge.scores(
            joined, joined_cases, np.zeros_like(batch.unknown)
        )
        groupings.append(score)
    scores = np.stack(groupings, axis=2)
    best = first_best_of_rows(scores.max(axis=2), resolution)
    every = np.arange(len(best))
    group = _members(batch, sides, best)
    # From here on the group of the first value is the first.
    swapped = group[:, :1]
    order = np.concatenate([swapped, 1 - swapped], axis=1)
    weight = np.take_along_axis(
        judge.impurity_sums.weight(branches[every, best]), order, axis=1
    )
    pair = np.take_along_axis(scores[every, best], order, axis=1)
    larger = larger_side(weight[:, 0], weight[:, 1])[:, np.newaxis]
    larger_first = np.concatenate([larger, 1 - larger], axis=1)
    second = first_best_of_rows(
        np.take_along_axis(pair, larger_first, axis=1), resolution
    )
    possible = pair.max(axis=1) > -np.inf
    return (
        np.where(possible[:, np.newaxis], group ^ swapped, 0),
        np.where(possible, larger[:, 0] ^ second, STOP),
    )


def _both_sides(batch: _Batch, sides: Sequence[_Sides]) -> tuple[Floats, Floats]:
    """Return the class weights and cases of both sides of every candidate."""
    left = np.concatenate([side.left for side in sides], axis=1)
    left_cases = np.concatenate([side.cases for side in sides], axis=1)
    whole = batch.weights.sum(axis=1)[:, np.newaxis]
    all_cases = batch.cases.sum(axis=1)[:, np.newaxis]
    return (
        np.stack([left, whole - left], axis=2),
        np.stack([left_cases, all_cases - left_cases], axis=2),
    )


def _members(batch: _Batch, sides: Sequence[_Sides], chosen: Ints) -> Ints:
    """Return the side of each value for the candidate chosen for each node."""
    group = np.zeros(batch.shape, dtype=np.intp)
    begin = 0
    for side in sides:
        n = side.left.shape[1]
        mine = np.flatnonzero((chosen >= begin) & (chosen < begin + n))
        group[mine] = side.members(mine, chosen[mine] - begin)
        begin += n
    return group


@dataclass(frozen=True)
class _Sides:
    """Candidates for one side: their weights, cases and values."""

    left: Floats
    cases: Floats
    members: Callable[[Ints, Ints], Ints]


def _two_way_candidates(
    batch: _Batch, impurity_sums: ImpuritySums64
) -> Iterator[_Sides]:
    values = batch.shape[1]
    if have_one_order(batch.weights, impurity_sums):
        yield _along(batch, order_of_values(batch.weights, impurity_sums))
    elif values <= ALL_GROUPINGS:
        yield _all_groupings(batch)
    else:
        share = batch.weights / batch.weights.sum(axis=2, keepdims=True)
        for label in range(share.shape[2]):
            yield _along(batch, share[..., label])
        yield _one_against_the_rest(batch)


def _along(batch: _Batch, key: Floats) -> _Sides:
    """Split the values in the order of a key."""
    order = np.argsort(key, axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    weights = np.take_along_axis(batch.weights, order[..., np.newaxis], axis=1)
    cases = np.take_along_axis(batch.cases, order, axis=1)

    def members(nodes: Ints, candidate: Ints) -> Ints:
        return (rank[nodes] > candidate[:, np.newaxis]).astype(np.intp)

    return _Sides(
        np.cumsum(weights, axis=1)[:, :-1], np.cumsum(cases, axis=1)[:, :-1], members
    )


def _one_against_the_rest(batch: _Batch) -> _Sides:
    values = np.arange(batch.shape[1])

    def members(_: Ints, candidate: Ints) -> Ints:
        side: Ints = (values[np.newaxis] != candidate[:, np.newaxis]).astype(np.intp)
        return side

    return _Sides(batch.weights, batch.cases, members)


def _all_groupings(batch: _Batch) -> _Sides:
    """Split the values in two in every way; the last value is on the right."""
    values = batch.shape[1]
    numbers = np.arange(1, 2 ** (values - 1))
    on_left = (numbers[:, np.newaxis] >> np.arange(values)) & 1

    def members(_: Ints, candidate: Ints) -> Ints:
        side: Ints = 1 - on_left[candidate]
        return side

    left = np.einsum("sv,nvc->nsc", on_left.astype(np.float64), batch.weights)
    return _Sides(left, batch.cases @ on_left.T.astype(np.float64), members)


def _groups(batch: _Batch, judge: Judge) -> Ints:
    """Merge values into groups, of many values only those with similar shares."""
    nodes, values = batch.shape
    if values > ALL_MERGERS:
        return _merged_values(batch, judge, _positions_by_share(batch), True, _log_ways)
    position = np.tile(np.arange(values), (nodes, 1))
    return _merged_values(batch, judge, position, False, _log_ways)


def _adjacent_groups(batch: _Batch, judge: Judge) -> Ints:
    """Merge values with their neighbours in the order that they have."""
    nodes, values = batch.shape
    position = np.tile(np.arange(values), (nodes, 1))
    return _merged_values(batch, judge, position, True, _log_adjacent_ways)


def _merged_values(
    batch: _Batch,
    judge: Judge,
    position: Ints,
    neighbours_only: bool,
    log_ways: Callable[[int, int], float],
) -> Ints:
    """Merge values, in the order of their positions, while there are more than two."""
    nodes, values = batch.shape
    order = np.argsort(position, axis=1)
    weights = np.take_along_axis(batch.weights, order[..., np.newaxis], axis=1)
    cases = np.take_along_axis(batch.cases, order, axis=1)
    group, best_group = position, np.zeros_like(position)
    best = np.full(nodes, -np.inf)
    while True:
        score, resolution = judge.scores(
            weights[:, np.newaxis],
            cases[:, np.newaxis],
            batch.unknown,
            log_ways(values, weights.shape[1]),
        )
        # A smaller grouping that is as good is better.
        with np.errstate(invalid="ignore"):
            bar = best - np.maximum(np.abs(best) * TIE, resolution)
        better = (score[:, 0] > -np.inf) & ((best == -np.inf) | (score[:, 0] >= bar))
        best = np.where(better, score[:, 0], best)
        best_group = np.where(better[:, np.newaxis], group, best_group)
        n_groups = weights.shape[1]
        if n_groups == 2:
            return best_group
        pairs = _pairs(n_groups, neighbours_only)
        table = merger_scores(
            judge.criterion, judge.impurity_sums, weights, pairs, batch.unknown
        )
        chosen = first_best_of_rows(table, resolution)
        first, second = pairs[chosen].T
        weights = _merged(weights, first, second)
        cases = _merged(cases, first, second)
        group = np.where(group == second[:, np.newaxis], first[:, np.newaxis], group)
        group = group - (group > second[:, np.newaxis])


def _log_adjacent_ways(values: int, groups: int) -> float:
    """Return the binary logarithm of the number of groupings of neighbours."""
    return log_adjacent_groupings(values, groups) / math.log(2.0)


@lru_cache(maxsize=4096)
def _log_ways(values: int, groups: int) -> float:
    """Bound the binary logarithm of the number of groupings.

    There are at most choose(values, groups) groups ** (values - groups) / 2 (Rennie
    and Dobson 1969), and one where every value is a group.
    """
    numbers = np.arange(1, values + 1, dtype=np.float64)
    log_factorial = np.concatenate([[0.0], np.cumsum(log2(numbers))])
    choices = (
        log_factorial[values] - log_factorial[groups] - log_factorial[values - groups]
    )
    apart = (values - groups) * log2(np.array([float(groups)]))[0]
    return max(float(choices - 1.0 + apart), 0.0)


def _positions_by_share(batch: _Batch) -> Ints:
    """Order the values of each node by their share of the node's largest class."""
    largest = batch.weights.sum(axis=1).argmax(axis=1)
    share = batch.weights / batch.weights.sum(axis=2, keepdims=True)
    key = np.take_along_axis(share, largest[:, np.newaxis, np.newaxis], axis=2)[..., 0]
    order = np.argsort(key, axis=1, kind="stable")
    return np.argsort(order, axis=1, kind="stable")


@lru_cache(maxsize=64)
def _pairs(n: int, neighbours_only: bool) -> Ints:
    if neighbours_only:
        return np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    return np.stack(np.triu_indices(n, 1), axis=1)


def _merged(weights: Floats, first: Ints, second: Ints) -> Floats:
    """Add the second group to the first, and remove the second."""
    nodes, n = weights.shape[:2]
    every = np.arange(nodes)
    result = weights.copy()
    result[every, first] += weights[every, second]
    kept = np.arange(n)[np.newaxis] != second[:, np.newaxis]
    joined: Floats = result[kept].reshape(nodes, n - 1, *weights.shape[2:])
    return joined
