"""Surrogate splits in words: what a node asks where its own column is missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from branchwise.splits import AT_MOST
from branchwise.table.schema import Schema
from branchwise.tree import Tree
from branchwise.words import Condition


@dataclass(frozen=True)
class Surrogate:
    """One surrogate of a node: what sends a case down each of the two branches."""

    first: Condition
    second: Condition

    @property
    def conditions(self) -> tuple[Condition, Condition]:
        """Both conditions, in the order of the branches."""
        return self.first, self.second

    def __str__(self) -> str:
        return f"{self.first}, {self.second}"


def surrogates_of(schema: Schema, tree: Tree, node: int) -> list[Surrogate]:
    """Return the surrogates of a node in the order in which they are tried.

    Where a case meets neither condition of one, because the value is missing or had
    no case at the node, the next one is tried. Where there is none left, the case
    goes down the branch that ``tree.missing_to`` names.
    """
    if tree.surrogates is None:
        return []
    mine = tree.surrogates.take(np.array([node]))
    codes = np.split(mine.splits.codes, np.cumsum(mine.splits.n_codes)[:-1])
    return [
        Surrogate(
            *(
                _condition(
                    schema,
                    int(mine.splits.column[index]),
                    float(mine.splits.cut[index]),
                    codes[2 * index + branch].tolist(),
                )
                for branch in (0, 1)
            )
        )
        for index in range(len(mine.splits.column))
    ]


def _condition(schema: Schema, index: int, cut: float, codes: list[int]) -> Condition:
    column = schema.columns[index]
    if column.is_numeric:
        return Condition(column.name, "<=" if codes[0] == AT_MOST else ">", cut)
    values = tuple(column.categories[code] for code in codes)
    if len(values) == 1:
        return Condition(column.name, "=", values[0])
    return Condition(column.name, "in", values)
