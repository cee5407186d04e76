"""Columns of one node that are scored together.

The search of whole levels scores one column at many nodes at once. Here every column
stands where a node would: the level has the node once for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from branchwise.data.arrays import Floats, Ints, selected
from branchwise.data.table_schema import Column
from branchwise.grow.categories import Grouping
from branchwise.grow.counts import Counts
from branchwise.grow.protocol import Level
from branchwise.grow.scored import Branches, Scored
from branchwise.grow.search import Search
from branchwise.grow.thresholds import Thresholds
from branchwise.threads import cached_property

#: Pairs of columns and values that are scored together, at most: tables of many more
#: would need much memory. A column that has more is scored by itself.
_MOST_PAIRS = 1 << 16


@dataclass(frozen=True)
class ColumnCounts:
    """Counts of one column at the node, and the numbers that its codes stand for.

    Numbers may be counted in segments: then ``known`` has what is judged, under the
    first code of each, ``last`` are their last codes, and so many thresholds are
    admissible.
    """

    index: int
    column: Column
    known: Counts
    unknown: Counts
    values: Floats
    last: Ints | None = None
    n_thresholds: int = 0

    @property
    def kind(self) -> tuple[bool, bool, bool]:
        """What columns have in common that are scored together."""
        ordered = self.column.kind == "ordinal"
        return self.column.is_numeric, ordered, self.last is not None


#: Counts both sides of thresholds of some columns, by their positions.
SideCounter = Callable[[Sequence[ColumnCounts], Floats], list[Counts]]


@dataclass(frozen=True)
class ColumnBatch(Search):
    """The search for splits of columns of one kind, each being a node of the level."""

    members: tuple[ColumnCounts, ...] = ()
    side_counter: SideCounter | None = None

    @classmethod
    def of(
        cls,
        search: Search,
        members: Sequence[ColumnCounts],
        side_counter: SideCounter | None,
    ) -> ColumnBatch:
        """Return the search for splits of columns at the only node of a search."""
        again = np.zeros(len(members), dtype=np.intp)
        level = search.level
        return cls(
            search.source,
            [members[0].column],
            Level(level.weights[again], level.cases[again]),
            search.recipe,
            search.impurity_sums.at(again),
            search.n_training_cases,
            search.training_weight,
            members=tuple(members),
            side_counter=side_counter if members[0].last is not None else None,
        )

    @cached_property
    def scored(self) -> Scored:
        """The best split of each column."""
        return self.score(0, self.columns[0])

    @cached_property
    def best_branches(self) -> list[Branches]:
        """The branches of the best split of each column."""
        scored = self.scored
        known = self._known
        if self.side_counter is not None:
            known = _joined(self.side_counter(self.members, scored.threshold))
        given = scored.threshold, scored.missing_to
        return _by_node(self._made(0, known, self._unknown, *given), len(self.members))

    @cached_property
    def _known(self) -> Counts:
        return _joined([member.known for member in self.members])

    @cached_property
    def _unknown(self) -> Counts:
        return _joined([member.unknown for member in self.members])

    def _judged(self, index: int) -> tuple[Counts, Counts]:  # noqa: ARG002
        return self._statistics

    @cached_property
    def _statistics(self) -> tuple[Counts, Counts]:
        in_segments = self.members[0].last is not None
        judge = self.in_cases if in_segments else self.in_terms
        return judge(self._known), self.in_terms(self._unknown)

    @cached_property
    def _groupings(self) -> list[Grouping]:
        return []

    def _grouping(self, index: int, known: Counts, unknown: Counts) -> Grouping:
        """Group the values; the scores and the branches need the same groups."""
        if not self._groupings:
            self._groupings.append(super()._grouping(index, known, unknown))
        return self._groupings[0]

    def _numbers(self, index: int, known: Counts) -> Floats:  # noqa: ARG002
        return self._numbers_of(known.node, known.code)

    def _numbers_of(self, node: Ints, code: Ints) -> Floats:
        ends = np.searchsorted(node, np.arange(len(self.members) + 1))
        pieces = zip(self.members, ends[:-1].tolist(), ends[1:].tolist(), strict=True)
        return np.concatenate([member.values[code[a:b]] for member, a, b in pieces])

    def _possible_thresholds(
        self,
        index: int,  # noqa: ARG002
        known: Counts,
        unknown: Counts,
    ) -> tuple[Thresholds, Floats]:
        first = last = self._numbers_of(known.node, known.code)
        if self.members[0].last is not None:
            last_codes = [
                member.last for member in self.members if member.last is not None
            ]
            last = self._numbers_of(known.node, np.concatenate(last_codes))
        after = np.flatnonzero(known.node[:-1] == known.node[1:])
        thresholds = Thresholds.along(known, len(self.level))
        thresholds = replace(thresholds, low=last[after], high=first[after + 1])
        return self._with_missing(thresholds, unknown)

    def _worth_scoring(
        self, index: int, known: Counts, unknown: Counts
    ) -> tuple[Thresholds, Floats, Ints]:
        """Return thresholds that may be the best, and how many are admissible."""
        thresholds, outside, number = super()._worth_scoring(index, known, unknown)
        if self.members[0].last is not None:
            number = np.array([member.n_thresholds for member in self.members])
        return thresholds, outside, number

    def _positioned(self, index: int, thresholds: Thresholds) -> Floats:  # noqa: ARG002
        found = np.empty(len(thresholds.node))
        alike: dict[tuple[str, int], list[int]] = {}
        for at, node in enumerate(thresholds.node.tolist()):
            position = self.members[node].column.position(self.recipe.threshold)
            # Only numbers of the table differ by column.
            owner = node if position == "value" else 0
            alike.setdefault((position, owner), []).append(at)
        for (position, owner), several in alike.items():
            some = selected(thresholds, np.array(several))
            found[several] = some.positioned(self.members[owner].values, position)
        return found


def batches(
    search: Search,
    members: Sequence[ColumnCounts],
    side_counter: SideCounter | None,
) -> Iterator[ColumnBatch]:
    """Yield columns of one kind together, as many as fit in a batch."""
    alike: dict[tuple[bool, bool, bool], list[ColumnCounts]] = {}
    for member in members:
        alike.setdefault(member.kind, []).append(member)
    for group in alike.values():
        batch: list[ColumnCounts] = []
        n_pairs = 0
        for member in group:
            n_pairs += len(member.known.code)
            if batch and n_pairs > _MOST_PAIRS:
                yield ColumnBatch.of(search, batch, side_counter)
                batch, n_pairs = [], len(member.known.code)
            batch.append(member)
        yield ColumnBatch.of(search, batch, side_counter)


def _joined(counts: Sequence[Counts]) -> Counts:
    """Join counts of columns, whose positions take the place of nodes."""
    sizes = [len(each.code) for each in counts]
    return Counts(
        np.repeat(np.arange(len(counts)), sizes),
        np.concatenate([each.code for each in counts]),
        np.concatenate([each.weights for each in counts]),
        np.concatenate([each.cases for each in counts]),
    )


def _by_node(made: Branches, n_nodes: int) -> list[Branches]:
    """Return the branches of every node, of which it is the only one."""
    # Stable: that of missing values stays the last.
    order = np.argsort(made.node, kind="stable")
    ends = np.searchsorted(made.node[order], np.arange(n_nodes + 1))
    begins = np.cumsum(made.n_codes) - made.n_codes
    found = []
    for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        own = order[a:b]
        begin = int(begins[own[0]]) if len(own) else 0
        n_codes = made.n_codes[own]
        found.append(
            Branches(
                np.zeros(len(own), dtype=np.intp),
                made.size[own],
                n_codes,
                made.codes[begin : begin + int(n_codes.sum())],
                made.weights[own],
                made.cases[own],
            )
        )
    return found
