"""Derived fields of PMML: what is taken of dates, step by step."""

from __future__ import annotations

from collections.abc import Callable

from branchwise.data.conventions.date_features import OF_TIMES
from branchwise.export.date_steps import Step, steps_of
from branchwise.export.plan import Plan
from branchwise.export.pmml_elements import apply, attribute, constant, field_ref
from branchwise.text.as_html import markup

_FIRST_YEAR = '<Constant dataType="integer">1970</Constant>'


def date_fields(plan: Plan, new_name: Callable[[str], str]) -> list[tuple[str, str]]:
    """Return names and expressions of the fields that are derived from dates.

    Fields of the same dates share their steps; ``new_name`` returns a name that nothing
    else has.
    """
    found: list[tuple[str, str]] = []
    names: dict[tuple[int, str], str] = {}

    def add(key: tuple[int, str], name: str, expression: str) -> None:
        names[key] = name
        found.append((attribute(name), markup(expression)))

    for field in plan.derived:
        at, of = field.source, plan.inputs[field.source].name
        if field.feature is None:
            raise AssertionError("derived fields have a feature")
        first = "time" if field.feature.feature in OF_TIMES else "day"
        if (at, first) not in names:
            add((at, first), new_name(f"{first} of {of}"), _beginning(first, of))
        steps = steps_of(field.feature)
        for step in steps:
            last = step is steps[-1]
            if (at, step.name) not in names or last:
                name = field.name if last else new_name(f"{step.name} of {of}")
                add((at, step.name), name, _expression(step, at, names))
    return found


def _beginning(first: str, of: str) -> str:
    """Return the day since 1970-01-01, or the minute of the day, if it is known."""
    if first == "day":
        return _if_known(of, apply("dateDaysSinceYear", field_ref(of), _FIRST_YEAR))
    seconds = apply("dateSecondsSinceMidnight", field_ref(of))
    return _if_known(of, apply("floor", apply("/", seconds, constant(60.0))))


def _if_known(name: str, expression: str) -> str:
    """Return an expression that is missing where a field is."""
    return apply("if", apply("isNotMissing", field_ref(name)), expression)


def _expression(step: Step, at: int, names: dict[tuple[int, str], str]) -> str:
    sides = [
        field_ref(names[at, side]) if isinstance(side, str) else constant(float(side))
        for side in (step.left, step.right)
    ]
    if step.sign != "//":
        return apply(step.sign, *sides)
    quotient = apply("floor", apply("/", *sides))
    return _if_known(names[at, str(step.left)], quotient)
