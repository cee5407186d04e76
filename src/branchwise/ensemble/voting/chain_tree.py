"""A rule as a tree: one split for each condition, and the vote at the end.

All other nodes have the number 0, so that the sum over such trees is the sum of the
votes of the rules that hold. A missing value, and one that training did not have, stops
at its split, with 0: it fulfils no condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats, Ints
from branchwise.data.table_schema import Column, Schema, Value
from branchwise.rules.generalise import (
    MOST_BYTES,
    Bits,
    Coverage,
    bits_of,
    count_bits,
    rows_of,
)
from branchwise.text.conditions import Condition
from branchwise.tree.splits import STOP
from branchwise.tree.tree import Tree

#: Every node of a tree has cases: a branch without any has this share of its node's.
_TRACE = 1e-9


class ChainTrees:
    """Makes trees of rules, with the training cases of each node."""

    def __init__(self, schema: Schema, coverage: Coverage, weights: Floats) -> None:
        self._columns = schema.columns
        self._index = {column.name: at for at, column in enumerate(schema.columns)}
        self._coverage = coverage
        self._weights = weights
        self._all_one = bool((weights == 1.0).all())
        self._every = bits_of(weights > 0)

    def of_rules(
        self, rules: Sequence[tuple[Sequence[Condition], float]]
    ) -> Iterator[tuple[Tree, Ints]]:
        """Yield the tree of each rule and the rows that it covers.

        Rules have conditions and votes. A vote is added where all conditions hold; a
        rule without any is one node.
        """
        start = 0
        for stop in self._batches(rules):
            wanted = {c: None for own, _ in rules[start:stop] for c in own}
            wanted |= {
                Condition(c.column, "is known", of=self._column(c)): None
                for c in wanted
            }
            sets = dict(zip(wanted, self._coverage.sets(list(wanted)), strict=True))
            for conditions, vote in rules[start:stop]:
                yield self._of_rule(conditions, vote, sets)
            start = stop

    def _batches(
        self, rules: Sequence[tuple[Sequence[Condition], float]]
    ) -> Iterator[int]:
        """Yield where rules end whose conditions take limited memory as bit sets."""
        most, n_conditions = max(1, MOST_BYTES // self._every.nbytes), 0
        for at, (conditions, _) in enumerate(rules):
            if n_conditions and n_conditions + 2 * len(conditions) > most:
                yield at
                n_conditions = 0
            n_conditions += 2 * len(conditions)
        yield len(rules)

    def _column(self, condition: Condition) -> Column:
        return self._columns[self._index[condition.column]]

    def _of_rule(
        self, conditions: Sequence[Condition], vote: float, sets: dict[Condition, Bits]
    ) -> tuple[Tree, Ints]:
        n_nodes = 2 * len(conditions) + 1
        column = np.full(n_nodes, -1, dtype=np.int64)
        threshold = np.full(n_nodes, np.nan)
        n_children = np.zeros(n_nodes, dtype=np.int64)
        codes: list[list[int]] = [[]]
        amounts = np.zeros((n_nodes, 2))
        missing_to = np.full(n_nodes, STOP, dtype=np.int64)
        holds = self._every
        node, amounts[0] = 0, self._amounts(holds)
        path = [0]
        for at, condition in enumerate(conditions):
            own = self._column(condition)
            column[node], n_children[node] = self._index[condition.column], 2
            if own.is_numeric:
                threshold[node] = condition.value
            side, branches = _branches(condition, own)
            codes += branches
            fulfilled = holds & sets[condition]
            rest = holds & ~fulfilled
            if branches[1]:
                rest &= sets[Condition(own.name, "is known", of=own)]
            else:  # a branch without values is that of missing ones
                missing_to[node] = 1
            first = 2 * at + 1
            amounts[first + side] = self._amounts(fulfilled)
            amounts[first + 1 - side] = self._amounts(rest)
            least = _TRACE * amounts[node]
            amounts[first : first + 2] = np.maximum(amounts[first : first + 2], least)
            holds, node = fulfilled, first + side
            path.append(node)
        mean = np.zeros(n_nodes)
        mean[node] = vote + 0.0
        # That of the votes over the rows of a node: of the end all have the same.
        share = amounts[node, 0] / amounts[path, 0]
        deviation = np.zeros(n_nodes)
        deviation[path] = abs(vote) * np.sqrt(share * (1.0 - share))
        tree = Tree(
            column=column,
            threshold=threshold,
            n_children=n_children,
            missing_to=missing_to,
            unseen_to=np.full(n_nodes, STOP, dtype=np.int64),
            n_codes=np.array([len(own) for own in codes], dtype=np.int64),
            codes=np.array([code for own in codes for code in own], dtype=np.int64),
            weights=amounts[:, :1].copy(),
            cases=amounts[:, 1].copy(),
            mean=mean,
            deviation=deviation,
        )
        return tree, rows_of(holds)

    def _amounts(self, rows: Bits) -> tuple[float, float]:
        """Return the weight and the number of rows."""
        if self._all_one:
            n_rows = float(count_bits(rows))
            return n_rows, n_rows
        # Sorted, so that the sum does not depend on the order of rows.
        weights = np.sort(self._weights[rows_of(rows)])
        return float(weights.sum()), float(len(weights))


def _branches(condition: Condition, column: Column) -> tuple[int, list[list[int]]]:
    """Return which of two branches a condition leads to, and the codes of both."""
    if column.is_numeric:
        return (0 if condition.op == "<=" else 1), [[0], [1]]
    value: Any = condition.value
    values: tuple[Value, ...] = value if isinstance(value, tuple) else (value,)
    own = {column.code_of[each] for each in values}
    others = [at for at in range(len(column.categories)) if at not in own]
    return 0, [sorted(own), others]
