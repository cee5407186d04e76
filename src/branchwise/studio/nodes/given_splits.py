"""Splits as a user gives them: a threshold, groups of values, or a branch per value."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from branchwise.data.conventions.date_format import read_text
from branchwise.data.table_schema import Column, Schema, Value
from branchwise.errors import ParameterError, quoted
from branchwise.studio.actions import Split
from branchwise.studio.nodes.node_search import Given, NodeSearch
from branchwise.text.bounds import shown
from branchwise.text.words import word
from branchwise.tree.splits import ABOVE, AT_MOST


def column_index(schema: Schema, name: str) -> int:
    """Return the position of a column; raise if there is none of this name."""
    for index, column in enumerate(schema.columns):
        if column.name == name:
            return index
    names = [column.name for column in schema.columns]
    raise ParameterError(f"column must be one of {quoted(names, 20)}. Got {name!r}.")


def given_split(
    schema: Schema, search: NodeSearch, action: Split
) -> tuple[int, Given | None]:
    """Return the column of an action and its split; None for the best one."""
    index = column_index(schema, action.column)
    column = schema.columns[index]
    chosen = {
        "threshold": action.threshold is not None,
        "groups": action.groups is not None,
        "values": action.values,
    }
    if sum(chosen.values()) > 1:
        both = [name for name, is_given in chosen.items() if is_given]
        raise ParameterError(
            f"A split has one of threshold, groups and values. Got {quoted(both)}."
        )
    if not any(chosen.values()):
        return index, None
    if action.threshold is not None:
        if column.is_numeric:
            return index, _at_threshold(column, index, search, action)
        return index, _by_order(column, index, search, action)
    if column.is_numeric:
        raise ParameterError(
            f"column {column.name!r} has numbers, which are split at a threshold. Got "
            f"{'groups' if chosen['groups'] else 'values'}; give a threshold, or make "
            "it a column of categories (categorical_features)."
        )
    known = _present(index, search)
    if action.values:
        codes: list[Sequence[int]] = [[code] for code in known]
        return index, _grouped(column, index, known, codes, action)
    groups = [_codes(column, group) for group in action.groups or ()]
    return index, _grouped(column, index, known, groups, action)


def _present(index: int, search: NodeSearch) -> list[int]:
    """Return the codes of a column that have cases at the node."""
    codes: list[int] = search.exact.apart(index)[0].code.tolist()
    return codes


def _at_threshold(
    column: Column, index: int, search: NodeSearch, action: Split
) -> Given:
    threshold = _number(column, action.threshold)
    values = search.exact.source.values(index)[_present(index, search)]
    low, high = (values.min(), values.max()) if len(values) else (math.nan, math.nan)
    if not low <= threshold < high:
        there = "it has no known number"
        if len(values):
            bounds = (word(shown(column, float(bound))) for bound in (low, high))
            there = "its numbers are from {} to {}".format(*bounds)
        raise ParameterError(
            f"threshold must have rows on both sides: at node {action.node!r} "
            f"{there} in column {column.name!r}. Got {action.threshold!r}, which "
            "splits nothing."
        )
    return Given(index, threshold, ((AT_MOST,), (ABOVE,)))


def _number(column: Column, threshold: Value | None) -> float:
    number: float | None = None
    if isinstance(threshold, str) and column.date is not None:
        number = read_text(threshold, column.date)
    elif isinstance(threshold, (int, float)) and not isinstance(threshold, bool):
        number = float(threshold)
    if number is None or not math.isfinite(number):
        what = "a date" if column.date is not None else "a number"
        raise ParameterError(
            f"threshold must be {what} for column {column.name!r}. Got {threshold!r}."
        )
    return number


def _by_order(column: Column, index: int, search: NodeSearch, action: Split) -> Given:
    """Return the split of ordered values up to one, and those above it."""
    if column.kind != "ordinal":
        raise ParameterError(
            f"column {column.name!r} has categories without an order, which are split "
            f"by groups. Got threshold={action.threshold!r}; give groups, or declare "
            "the order of its values (order)."
        )
    last = _codes(column, [action.threshold])[0]
    every = range(len(column.categories))
    sides = [list(every[: last + 1]), list(every[last + 1 :])]
    known = _present(index, search)
    if not sides[1] or not all(set(side) & set(known) for side in sides):
        raise ParameterError(
            f"threshold must have rows on both sides: at node {action.node!r} the "
            f"values of column {column.name!r} are "
            f"{quoted(column.categories[code] for code in known)}. Got "
            f"{action.threshold!r}, which splits nothing."
        )
    return _grouped(column, index, known, sides, action)


def _codes(column: Column, values: Sequence[object]) -> list[int]:
    found = [column.code_of.get(value) for value in values]  # type: ignore[call-overload]
    unknown = [v for v, code in zip(values, found, strict=True) if code is None]
    if unknown:
        raise ParameterError(
            f"groups must have values of column {column.name!r}: "
            f"{quoted(column.categories, 20)}. Got {unknown[0]!r}."
        )
    return [code for code in found if code is not None]


def _grouped(
    column: Column,
    index: int,
    known: Sequence[int],
    groups: Sequence[Sequence[int]],
    action: Split,
) -> Given:
    """Return the split by groups, in the order of their first values."""
    where = f"at node {action.node!r} in column {column.name!r}"
    every = [code for group in groups for code in group]
    twice = (
        sorted({code for code in every if every.count(code) > 1})
        if len(set(every)) < len(every)
        else []
    )
    if twice:
        raise ParameterError(
            f"groups must have each value once. Got {_named(column, twice)} in two "
            "places."
        )
    left_out = sorted(set(known) - set(every))
    if left_out:
        raise ParameterError(
            f"groups must have all values with rows {where}. Got none with "
            f"{_named(column, left_out)}; add it to one."
        )
    if len(groups) < 2:
        raise ParameterError(
            f"groups must be two at least: {where} this splits nothing. Got "
            f"{len(groups)}."
        )
    for group in groups:
        if not set(group) & set(known):
            told = _named(column, group) if group else "an empty one"
            raise ParameterError(
                f"groups must each have rows {where}. Got {told}, without any; leave "
                "it out, or join it with another."
            )
    ordered = sorted(tuple(sorted(group)) for group in groups)
    return Given(index, float(np.nan), tuple(ordered))


def _named(column: Column, codes: Sequence[int]) -> str:
    return quoted(column.categories[code] for code in codes)
