"""The rules of all trees of a forest: which are the same, and how many trees have each.

The paths to the nodes near the roots are rules. Two are the same if they have the same
columns and branches; thresholds count as the same if they fall between the same two
tenths of the column.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from branchwise.data.arrays import Floats
from branchwise.data.table_schema import Column, Columns
from branchwise.ensemble.fitted_trees import FittedTrees
from branchwise.text.column_conditions import path_to, simplified
from branchwise.text.conditions import Condition
from branchwise.tree.tree import Tree

#: Thresholds between the same two of so many quantiles are the same.
_QUANTILES = 10
#: The least share of a tree's cases at a node that makes a rule.
_LEAST_SHARE = 0.01

#: Column, operator, and the values or the quantile of the threshold.
Key = tuple[tuple[int, str, Any], ...]


@dataclass
class Found:
    """A rule that some trees have: trees, thresholds, and weights in their samples."""

    trees: list[int] = field(default_factory=list)
    thresholds: list[list[float]] = field(default_factory=list)
    weights: Floats | float = 0.0


def key_of(key: Key) -> str:
    """Return a text to sort rules by: values of several types have no order."""
    return repr(key)


def pooled(
    ensemble: FittedTrees, data: Columns, max_conditions: int
) -> dict[Key, Found]:
    """Return the rules of all trees."""
    columns = ensemble.schema.columns
    edges = [
        _edges(cells) if column.is_numeric else np.empty(0)
        for column, cells in zip(columns, data.data, strict=True)
    ]
    index = {column.name: at for at, column in enumerate(columns)}
    found: dict[Key, Found] = defaultdict(Found)
    for number, tree in enumerate(ensemble.trees):
        for node in _nodes(tree, max_conditions):
            conditions = sorted(
                path_to(ensemble.schema, tree, node),
                key=lambda condition: (index[condition.column], condition.op == "<="),
            )
            if len(conditions) > max_conditions:
                continue
            key = tuple(
                (at := index[c.column], c.op, _value(c, edges[at])) for c in conditions
            )
            rule = found[key]
            if not rule.trees or rule.trees[-1] != number:
                rule.trees.append(number)
            rule.thresholds.append([_threshold(c) for c in conditions])
            rule.weights = rule.weights + tree.weights[node]
    return found


def _nodes(tree: Tree, max_depth: int) -> Iterator[int]:
    """Yield the nodes below the root, down to a depth, that have enough cases."""
    least = max(2.0, _LEAST_SHARE * float(tree.cases[0]))
    for start, stop in list(tree.levels())[1 : max_depth + 1]:
        yield from (start + np.flatnonzero(tree.cases[start:stop] >= least)).tolist()


def _edges(cells: Floats) -> Floats:
    """Return the tenths of a column of numbers."""
    known = np.sort(cells[~np.isnan(cells)])
    at = np.arange(1, _QUANTILES) * len(known) // _QUANTILES
    edges: Floats = known[at] if len(known) else known
    return edges


def _value(condition: Condition, edges: Floats) -> Any:
    if condition.op in ("<=", ">"):
        return int(np.searchsorted(edges, _threshold(condition)))
    return condition.value


def _threshold(condition: Condition) -> float:
    return float(condition.value) if condition.op in ("<=", ">") else 0.0  # type: ignore[arg-type]


def conditions_of(
    columns: Sequence[Column], key: Key, thresholds: Sequence[Sequence[float]]
) -> tuple[Condition, ...]:
    """Return the conditions of a rule, with the middle thresholds of the trees."""
    middle = [
        sorted(each)[(len(each) - 1) // 2] for each in zip(*thresholds, strict=True)
    ]
    plain = [
        (
            at,
            Condition(
                columns[at].name,
                op,
                number if op in ("<=", ">") else value,
                columns[at],
            ),
        )
        for (at, op, value), number in zip(key, middle, strict=True)
    ]
    return tuple(
        condition
        for at, group in groupby(plain, key=lambda pair: pair[0])
        for condition in simplified(tuple(c for _, c in group), columns[at])
    )
