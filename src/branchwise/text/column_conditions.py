"""The conditions of a path, those on a column merged and in as few words as will do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from branchwise.data.table_schema import Column, Schema, Value
from branchwise.text.conditions import Condition, by_the_rest, condition_of, one_of
from branchwise.threads import cached_property
from branchwise.tree.tree import Tree


# Not frozen, which makes four times as long of a path: large trees have many branches.
@dataclass(eq=False)
class ColumnConditions:
    """The conditions of a path on one column; the paths below it share this."""

    column: Column
    above: float = -math.inf
    at_most: float = math.inf
    values: tuple[Value, ...] | None = None
    known: bool = False
    missing: bool = False

    def restricted(self, condition: Condition) -> ColumnConditions:
        """Return the conditions with one more condition."""
        value: Any = condition.value
        above, at_most, values = self.above, self.at_most, self.values
        known, missing = self.known, self.missing
        match condition.op:
            case ">":
                above = max(above, float(value))
            case "<=":
                at_most = min(at_most, float(value))
            case "is known":
                known = True
            case "is missing":
                missing = True
            case _:
                values = self._common(value if isinstance(value, tuple) else (value,))
        # replace() takes five times as long.
        return ColumnConditions(self.column, above, at_most, values, known, missing)

    def _common(self, given: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return the values that are left of those so far.

        The shorter of the lists is gone through: a node may have as many branches
        as its list has values.
        """
        if self.values is None:
            return given
        if len(given) < len(self.values):
            return tuple(value for value in given if value in self._allowed)
        allowed = set(given)
        return tuple(value for value in self.values if value in allowed)

    @cached_property
    def _allowed(self) -> frozenset[Value]:
        return frozenset(self.values or ())

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions, each bound one of its own."""
        name = self.column.name
        found = []
        if self.above > -math.inf:
            found.append(Condition(name, ">", self.above, self.column))
        if self.at_most < math.inf:
            found.append(Condition(name, "<=", self.at_most, self.column))
        if self.values is not None:
            found.append(one_of(name, self.values, self.column))
        if self.known and not found:  # a number within bounds is known
            found.append(Condition(name, "is known", of=self.column))
        if self.missing:
            found.append(Condition(name, "is missing", of=self.column))
        return tuple(found)

    @cached_property
    def simple(self) -> tuple[Condition, ...]:
        """The conditions, in as few words as will do."""
        return simplified(self.conditions, self.column)


ColumnPath = dict[str, ColumnConditions]


def restricted_path(
    way: ColumnPath, column: Column, condition: Condition
) -> ColumnPath:
    """Return a path with one more condition."""
    column_conditions = way.get(column.name) or ColumnConditions(column)
    return {**way, column.name: column_conditions.restricted(condition)}


def path_conditions(way: ColumnPath) -> tuple[Condition, ...]:
    """Return the conditions of a path, those on a column merged."""
    return tuple(
        c for column_conditions in way.values() for c in column_conditions.conditions
    )


def path_to(schema: Schema, tree: Tree, node: int) -> tuple[Condition, ...]:
    """Return the conditions of the path from the root to a node."""
    below = []
    while node > 0:
        below.append(node)
        node = int(tree.parent[node])
    way: ColumnPath = {}
    for child in reversed(below):
        column = schema.columns[int(tree.column[tree.parent[child]])]
        column_conditions = way.get(column.name) or ColumnConditions(column)
        way[column.name] = column_conditions.restricted(
            condition_of(schema, tree, child)
        )
    return path_conditions(way)


def simplified(
    conditions: tuple[Condition, ...], column: Column
) -> tuple[Condition, ...]:
    """Return equivalent conditions on one column in as few words as possible."""
    if [c.op for c in conditions] == [">", "<="]:
        pair = (conditions[0].value, conditions[1].value)
        return (Condition(column.name, "within", pair, column),)  # type: ignore[arg-type]
    return tuple(s for c in conditions for s in _shortened(c, column))


def _shortened(condition: Condition, column: Column) -> tuple[Condition, ...]:
    """Return a list of values as it is, turned round, or not at all."""
    if condition.op != "in":
        return (condition,)
    if len(condition.value) == len(column.categories):  # type: ignore[arg-type]
        # All values: but a missing one is none of them.
        known = Condition(column.name, "is known", of=column)
        return (known,) if column.has_missing else ()
    if column.kind == "ordinal":
        return (condition,)
    return (by_the_rest(condition, column),)
