"""Export of rules that vote to DMN 1.3: a decision table for each class.

The table of a class has its rules; the votes of those that hold are added up (hit
policy COLLECT, SUM), beginning with a rule that always holds, for the score before any
vote. The decision that needs them is the class with the highest score. Cells are unary
tests of FEEL, in which a comparison with a missing value (null) is not true. Names of
variables are plain identifiers, because FEEL reads ``a-b`` as a difference; the labels
of the input clauses have the names of the columns.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count

from branchwise.data.table_schema import Value
from branchwise.errors import ExportError
from branchwise.export.base import Options, Prediction, Target, program_runner
from branchwise.export.code_writer import identifiers
from branchwise.export.dates import first_above
from branchwise.export.plan import Field, Plan, PlanSplit, Row
from branchwise.export.pmml import NOT_XML, fitting, with_iso_dates
from branchwise.export.pmml_elements import attribute, iso_date
from branchwise.export.rule_sets.voted_rules import (
    VotedRule,
    check_rules,
    first_scores,
    voted_rules,
)
from branchwise.text.as_html import page
from branchwise.tree.splits import AT_MOST

_TYPES = {"text": "string", "boolean": "boolean", "number": "number"}


@dataclass(frozen=True)
class _Line:
    """A rule of a decision table: what it says, its cells, and its vote."""

    said: str
    cells: tuple[str, ...]
    vote: str


@dataclass(frozen=True)
class _Table:
    """The decision table of a class: its inputs, by position, and its rules."""

    variable: str
    label: str
    inputs: tuple[int, ...]
    lines: tuple[_Line, ...]


def write(plan: Plan, options: Options) -> bytes:
    """Write the decisions."""
    del options
    check_rules(plan, "The export to 'dmn'")
    _reject(plan)
    scores = [f"score_{at}" for at in range(1, len(plan.classes) + 1)]
    names = identifiers([*scores, plan.target, *(field.name for field in plan.fields)])[
        len(scores) :
    ]
    number = count(1)
    written = page(
        "export/templates/rules.dmn",
        about=plan.about,
        target=names[0],
        label=attribute(plan.target),
        type=_type_of(plan.classes[0]),
        inputs=[
            (name, attribute(field.name), _type(field))
            for name, field in zip(names[1:], plan.fields, strict=True)
        ],
        tables=list(_tables(plan, scores)),
        choice=_choice(plan.classes, scores),
        new_id=lambda: f"_{next(number)}",
    )
    return written.encode()


def _reject(plan: Plan) -> None:
    for field in plan.fields:
        if field.feature is not None:
            raise ExportError(
                f"Column {field.name!r} is derived from dates, which the export to "
                "'dmn' does not do. Fit without --date-features, or derive the column "
                "before fitting."
            )
        if field.date is not None and field.date.zoned:
            raise ExportError(
                f"Column {field.name!r} holds times with a time zone. Convert them to "
                "UTC without a time zone and fit again."
            )
    values = [value for field in plan.fields for value in field.values]
    for text in [plan.target, *(f.name for f in plan.fields), *values, *plan.classes]:
        if isinstance(text, str) and NOT_XML.search(text):
            raise ExportError(
                "XML, and so DMN, cannot hold the character "
                f"{NOT_XML.findall(text)[0]!a} of {text!a}. Rename it before fitting."
            )


def _tables(plan: Plan, scores: Sequence[str]) -> Iterator[_Table]:
    rules = voted_rules(plan)
    for code, first in enumerate(first_scores(plan)):
        own = [rule for rule in rules if rule.label == code]
        used = sorted({split.field for rule in own for split, _ in rule.path})
        lines = [_Line("before any vote", ("-",) * len(used), feel_number(first))]
        lines += [
            _Line(f"rule {at}", _cells(plan, rule, used), feel_number(rule.vote))
            for at, rule in enumerate(own, 1)
        ]
        label = attribute(f"score of {plan.classes[code]}")
        yield _Table(scores[code], label, tuple(used), tuple(lines))


def _cells(plan: Plan, rule: VotedRule, used: Sequence[int]) -> tuple[str, ...]:
    """Return the unary test of each input; ``-`` where a rule has none."""
    return tuple(
        _cell(plan.fields[at], [step for step in rule.path if step[0].field == at])
        for at in used
    )


def _cell(field: Field, steps: Sequence[tuple[PlanSplit, int]]) -> str:
    if not steps:
        return "-"
    if not field.numeric:
        codes = set.intersection(*(set(s.branches[b]) for s, b in steps))
        return ", ".join(feel(field.values[code]) for code in sorted(codes))
    low, high = -math.inf, math.inf
    for split, branch in steps:
        if split.threshold is not None and len(split.branches[branch]) == 1:
            if split.branches[branch] == (AT_MOST,):
                high = min(high, split.threshold)
            else:
                low = max(low, split.threshold)
    return _range(field, low, high)


def _range(field: Field, low: float, high: float) -> str:
    """Return the test of a number, or of a date, above one and up to another."""
    if low == -math.inf and high == math.inf:
        return "not(null)"
    dated = field.date is not None
    show = feel_number if not dated else lambda bound: _date(field, bound)
    # Dates are compared with the first that is above a bound.
    above, up_to = (">=", "<") if dated else (">", "<=")
    if high == math.inf:
        return f"{above} {show(low)}"
    if low == -math.inf:
        return f"{up_to} {show(high)}"
    ends = "[)" if dated else "(]"
    return f"{ends[0]}{show(low)}..{show(high)}{ends[1]}"


def _date(field: Field, threshold: float) -> str:
    """Return the first date, or time, above a threshold."""
    assert field.date is not None  # noqa: S101
    text = iso_date(field, first_above(field.date, threshold))
    function = "date" if field.date.unit == "day" else "date and time"
    return f'{function}("{text}")'


def _choice(classes: Sequence[Value], scores: Sequence[str]) -> str:
    """Return the expression of the class with the highest score."""
    best = f"max({', '.join(scores)})"
    written = ""
    for label, score in zip(classes[:-1], scores, strict=False):
        written += f"if {score} >= {best} then {feel(label)} else "
    return written + feel(classes[-1])


def feel(value: Value) -> str:
    """Write a value in FEEL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return feel_number(value)
    return '"' + "".join(map(_escaped, value)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:06X}"


def feel_number(number: float) -> str:
    """Write a number in FEEL, whose numbers have no exponents."""
    return f"{Decimal(repr(number)):f}"


def _type(field: Field) -> str:
    if field.date is None:
        return _TYPES[field.kind]
    return "date" if field.date.unit == "day" else "dateTime"


def _type_of(label: Value) -> str:
    if isinstance(label, bool):
        return "boolean"
    return "string" if isinstance(label, str) else "number"


def _run(content: bytes, plan: Plan, rows: Sequence[Row]) -> Sequence[Prediction]:
    return _READER.run(content, plan, with_iso_dates(plan, rows))


_READER = program_runner(
    "dmn_reader.py in a Python process",
    lambda _: [sys.executable, "-I", "dmn_reader.py", "rules.dmn"],
    "dmn_reader.py.txt",
    "rules.dmn",
)
TARGET = Target(
    "dmn",
    ".dmn",
    write,
    lambda _: [replace(_READER, run=_run)],
    fitting=fitting,
    domain="a date of DMN has no time of day",
    has_probabilities=lambda _: False,
)
