"""A case to type in on the page of rules that vote: which of them hold for it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from branchwise.data.table_schema import Column, Schema
from branchwise.ensemble.reading.voting_rules import VotingRules
from branchwise.text.conditions import Condition
from branchwise.text.labels import class_called, titles_of
from branchwise.text.words import number, word


@dataclass(frozen=True)
class CaseColumn:
    """A column that rules use: its title, its values, and what its cells look like."""

    title: str
    kind: str
    values: list[str] | None
    hint: str = ""


@dataclass(frozen=True)
class CaseInputs:
    """The columns to type in, and the rules in JSON, for the script of the page."""

    columns: list[CaseColumn]
    model: str


def case_inputs(rules: VotingRules) -> CaseInputs:
    """Return the columns that rules use, in the order of the table."""
    schema = rules.schema
    named = {condition.column for rule in rules for condition in rule.conditions}
    used = [column for column in schema.columns if column.name in named]
    position = {column.name: at for at, column in enumerate(used)}
    columns = list(_columns(schema, used))
    model = {
        "columns": [{"kind": column.kind} for column in columns],
        "classes": [word(class_called(schema, label)) for label in schema.classes],
        "initial": list(rules.initial.values()),
        "rules": [
            {
                "label": schema.classes.index(rule.label),
                "vote": rule.vote,
                "conditions": [
                    {"column": position[c.column]} | _test(c, used[position[c.column]])
                    for c in rule.conditions
                ],
            }
            for rule in rules.voting
        ],
    }
    return CaseInputs(columns, json.dumps(model))


def _columns(schema: Schema, used: list[Column]) -> Iterator[CaseColumn]:
    titles = titles_of(schema, [column.name for column in used])
    for column, title in zip(used, titles, strict=True):
        if not column.is_numeric:
            yield CaseColumn(title, "values", [word(v) for v in column.categories])
            continue
        seen = column.statistics
        if column.date is not None:
            hint = (
                "" if seen is None or seen.low is None else column.date.show(seen.low)
            )
            yield CaseColumn(title, "date", None, hint)
            continue
        hint = ""
        if seen is not None and seen.low is not None and seen.high is not None:
            hint = f"{number(seen.low)} to {number(seen.high)}"
        yield CaseColumn(title, "number", None, hint)


def _test(condition: Condition, column: Column) -> dict[str, Any]:
    """Return a condition as the script has it: values, or bounds.

    Dates are compared as texts, with the first above a bound.
    """
    value: Any = condition.value
    if not column.is_numeric:
        codes = list(range(len(column.categories)))
        if condition.op != "is known":
            values = value if isinstance(value, tuple) else (value,)
            named = {column.code_of[one] for one in values}
            inside = condition.op != "not in"
            codes = [code for code in codes if (code in named) == inside]
        return {"values": codes}
    bounds = {"<=": (None, value), ">": (value, None), "within": value}
    low, high = bounds.get(condition.op, (None, None))
    found: dict[str, Any] = {}
    for name, bound in (("above", low), ("most", high)):
        if bound is None:
            continue
        if column.date is None:
            found[name] = bound
        else:
            first = column.date.show(math.floor(bound) + 1).replace(" ", "T")
            found["from" if name == "above" else "before"] = first
    return found
