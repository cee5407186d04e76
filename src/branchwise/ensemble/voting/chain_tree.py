"""A rule as a tree: one split for each condition, and the vote at the end.

All other nodes have the number 0, so that the sum over such trees is the sum of the
votes of the rules that hold. A missing value, and one that training did not have, stops
at its split, with 0: it fulfils no condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.data.table_schema import Column, Schema, Value
from branchwise.rules.generalise import Coverage, Mask
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
        #: The tree of no rule, a single node.
        self.constant = self.of_rule((), 0.0)

    def of_rule(self, conditions: Sequence[Condition], vote: float) -> Tree:
        """Return the tree of a rule whose vote is added where all conditions hold."""
        n_nodes = 2 * len(conditions) + 1
        column = np.full(n_nodes, -1, dtype=np.int64)
        threshold = np.full(n_nodes, np.nan)
        n_children = np.zeros(n_nodes, dtype=np.int64)
        codes: list[list[int]] = [[]]
        amounts = np.zeros((n_nodes, 2))
        missing_to = np.full(n_nodes, STOP, dtype=np.int64)
        holds = self._weights > 0
        node, amounts[0] = 0, self._amounts(holds)
        path = [0]
        for at, condition in enumerate(conditions):
            index = self._index[condition.column]
            own = self._columns[index]
            column[node], n_children[node] = index, 2
            if own.is_numeric:
                threshold[node] = condition.value
            side, branches = _branches(condition, own)
            codes += branches
            fulfilled = holds & self._coverage.holds(condition)
            rest = holds & ~fulfilled
            if branches[1]:
                known = Condition(own.name, "is known", of=own)
                rest &= self._coverage.holds(known)
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
        return Tree(
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

    def _amounts(self, rows: Mask) -> tuple[float, float]:
        """Return the weight and the number of rows."""
        n_rows = float(np.count_nonzero(rows))
        if self._all_one:
            return n_rows, n_rows
        # Sorted, so that the sum does not depend on the order of rows.
        return float(np.sort(self._weights[rows]).sum()), n_rows


def _branches(condition: Condition, column: Column) -> tuple[int, list[list[int]]]:
    """Return which of two branches a condition leads to, and the codes of both."""
    if column.is_numeric:
        return (0 if condition.op == "<=" else 1), [[0], [1]]
    value: Any = condition.value
    values: tuple[Value, ...] = value if isinstance(value, tuple) else (value,)
    own = {column.code_of[each] for each in values}
    others = [at for at in range(len(column.categories)) if at not in own]
    return 0, [sorted(own), others]
