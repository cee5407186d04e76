"""Export to PMML 4.4: a TreeModel, for an ensemble a MiningModel, or a RuleSetModel.

The trees of an ensemble are a chain of segments, each of which adds what its tree
predicts to the sums of the one before. A last segment makes predictions of the sums.
The methods that PMML has for several models (average, majorityVote) leave it to the
evaluator how numbers are rounded and which of two equal classes is the first.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from branchwise.data.arrays import TIE
from branchwise.errors import ExportError
from branchwise.export.base import (
    UNANSWERED,
    Options,
    Prediction,
    Target,
    program_runner,
)
from branchwise.export.plan import Field, Plan, Row
from branchwise.export.pmml_dates import date_fields
from branchwise.export.pmml_elements import (
    all_of,
    apply,
    attribute,
    constant,
    field_ref,
    is_known,
    iso_date,
    looked_up,
    nodes,
    plain,
)
from branchwise.export.rule_sets.pmml_rules import write_rules
from branchwise.export.rule_sets.voted_rules import check_rules
from branchwise.text.as_html import markup, page

_TYPES = {"text": "string", "boolean": "boolean", "number": "double"}
#: Readers of XML nest as deep as their stack allows.
_DEEPEST = 200
#: What XML cannot hold, however it is written.
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Names:
    """What target, node and probabilities are called: no two alike, nor any column."""

    def __init__(self, plan: Plan) -> None:
        self._taken = {field.name for field in plan.fields}
        self.target = self.new(plan.target)
        self.node = self.new("node")
        self.probabilities = [
            self.new(f"probability({plain(label)})") for label in plan.classes
        ]

    def new(self, name: str) -> str:
        """Return a name that nothing else has."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name


def write(plan: Plan, options: Options) -> bytes:
    """Write the model."""
    if options["form"] == "rules":
        check_rules(plan, "form='rules' of the export to 'pmml'")
    _reject(plan, options)
    names = Names(plan)
    values: dict[str, Any] = {
        "about": attribute(plan.about),
        "columns": list(_columns(plan, names.target)),
        "of_dates": date_fields(plan, names.new),
        "unseen": "returnInvalid" if plan.rejects_unseen else "asIs",
        "missing": "returnInvalid" if plan.rejects_missing else "asIs",
    }
    if options["form"] == "rules":
        return write_rules(plan, values)
    if plan.trees:
        values |= _chain(plan, names)
        return page("export/templates/ensemble.pmml", **values).encode()
    written = page(
        "export/templates/tree.pmml",
        node=attribute(names.node),
        outputs=[
            (attribute(name), [repr(n.probabilities[code]) for n in plan.nodes])
            for code, name in enumerate(names.probabilities)
        ],
        nodes=map(markup, nodes(plan)),
        **values,
    )
    return written.encode()


def _reject(plan: Plan, options: Options) -> None:
    """Reject trees that PMML cannot represent."""
    if plan.divides and options["divided"] != UNANSWERED:
        raise ExportError(
            "PMML has no way to share a case out among branches that gives the very "
            "same probabilities in every evaluator. Fit with another missing and "
            "unseen policy than 'split', or leave such cases without a prediction "
            "with the option divided='unanswered'."
        )
    depth = max(plan.depths)
    if depth > _DEEPEST:
        raise ExportError(
            f"This tree is {depth:,} levels deep, and programs that read PMML may "
            f"not nest more than {_DEEPEST}. Prune it, or export to another target."
        )
    for field in plan.fields:
        if field.date is not None and field.date.zoned:
            raise ExportError(
                f"Column {field.name!r} holds times with a time zone, and PMML has "
                "none. Convert them to UTC without a time zone and fit again."
            )
    values = [value for field in plan.fields for value in field.values]
    for text in [plan.target, *(f.name for f in plan.fields), *values, *plan.classes]:
        if isinstance(text, str) and NOT_XML.search(text):
            raise ExportError(
                f"XML, and so PMML, cannot hold the character "
                f"{NOT_XML.findall(text)[0]!a} of {text!a}. Rename it before fitting."
            )
    if "" in (plan.target, *(field.name for field in plan.fields)):
        raise ExportError("A column of a PMML file needs a name. Got ''; rename it.")


def _columns(plan: Plan, target: str) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield name, kind, type and values of the columns, then of the target."""
    for field in plan.inputs:
        kind = "continuous" if field.numeric else "categorical"
        values = [*map(attribute, field.values)]
        yield attribute(field.name), kind, _type(field), values
    if plan.is_regression:
        yield attribute(target), "continuous", "double", []
    else:
        classes = [*map(attribute, plan.classes)]
        yield attribute(target), "categorical", _class_type(plan), classes


def _type(field: Field) -> str:
    if field.date is None:
        return _TYPES[field.kind]
    return "date" if field.date.unit == "day" else "dateTime"


def fitting(plan: Plan, row: Row) -> Row:
    """Return a row whose dates have no time of day."""
    return tuple(
        iso_date(field, str(cell)) if _type(field) == "date" and cell else cell
        for field, cell in zip(plan.inputs, row, strict=True)
    )


def with_iso_dates(plan: Plan, rows: Sequence[Row]) -> list[Row]:
    """Return rows with dates and times as XML has them."""
    return [
        tuple(
            cell if field.date is None or cell is None else iso_date(field, str(cell))
            for field, cell in zip(plan.inputs, row, strict=True)
        )
        for row in rows
    ]


def _run(content: bytes, plan: Plan, rows: Sequence[Row]) -> Sequence[Prediction]:
    """Run an export with dates and times as PMML has them."""
    return _EVALUATOR.run(content, plan, with_iso_dates(plan, rows))


def _class_type(plan: Plan) -> str:
    first = plan.classes[0]
    if isinstance(first, bool):
        return "boolean"
    if isinstance(first, str):
        return "string"
    whole = all(isinstance(label, int) for label in plan.classes)
    return "integer" if whole else "double"


class _Derived:
    """The fields that the last segment of an ensemble computes."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.fields: list[tuple[str, str]] = []

    def add(self, name: str, expression: str) -> str:
        """Add a field, and return the expression that refers to it."""
        free = self._names.new(name)
        self.fields.append((attribute(free), markup(expression)))
        return field_ref(free)


def _chain(plan: Plan, names: Names) -> dict[str, Any]:
    """Return the segments of an ensemble: its trees, and the last one."""
    sums: dict[int, str] = {}
    trees = []
    for number, tree in enumerate(plan.trees):
        result = names.new(f"tree {number + 1}")
        added = _added(plan, number, result)
        taken = [sums[at] for at in added if at in sums]
        for at, one in added.items():
            if at in sums:
                added[at] = apply("+", field_ref(sums[at]), one)
            sums[at] = names.new(f"sum {at + 1} of {number + 1}")
        trees.append(
            {
                "result": attribute(result),
                "taken": [*map(attribute, taken)],
                "sums": [(attribute(sums[at]), markup(added[at])) for at in added],
                "nodes": map(markup, nodes(tree, with_distributions=False)),
            }
        )
    last = _last(plan, names, [sums[at] for at in range(plan.n_sums)])
    return {"trees": trees, "numbers": plan.has_numbers, "last": last}


def _added(plan: Plan, tree: int, result: str) -> dict[int, str]:
    """Return what a tree adds to sums, by their positions.

    Its result is its number, or the node by which a probability or vote is looked up.
    """
    if plan.has_numbers:
        return {tree % plan.n_sums: field_ref(result)}
    rows = [plan.added(tree, node) for node in plan.trees[tree].nodes]
    return {
        at: looked_up(result, numbers)
        for at, numbers in enumerate(zip(*rows, strict=True))
    }


def _last(plan: Plan, names: Names, sums: list[str]) -> dict[str, Any]:
    """Return the segment that makes predictions of sums."""
    derived = _Derived(names)
    totals = [apply("/", field_ref(s), constant(plan.divisor or 1.0)) for s in sums]
    if plan.initial:
        pairs = zip(sums, plan.initial, strict=True)
        totals = [apply("+", field_ref(s), constant(start)) for s, start in pairs]
    totals = [derived.add(f"total {at}", total) for at, total in enumerate(totals, 1)]
    found = _linked(plan, totals, derived)
    segment = {"taken": [*map(attribute, sums)], "derived": derived.fields}
    if plan.is_regression:
        return segment | {"number": derived.fields[-1][0], "labels": []}
    outputs = zip(names.probabilities, found, strict=True)
    return segment | {
        "known": markup(all_of([*map(is_known, sums)])),
        "probabilities": [(attribute(name), markup(one)) for name, one in outputs],
        "labels": _labels(plan, found, derived),
    }


def _linked(plan: Plan, totals: list[str], derived: _Derived) -> list[str]:
    """Return predictions from the averages or margins of trees."""
    if plan.link is None:
        return totals
    if plan.link == "exp":
        return [derived.add("number", apply("exp", totals[0]))]
    if plan.link == "logistic":
        # The log odds of both classes: 0, and that of the second.
        totals = [constant(0.0), *totals]
    top = derived.add("top", apply("max", *totals))
    powers = [
        derived.add(f"power {at}", apply("exp", apply("-", total, top)))
        for at, total in enumerate(totals, 1)
    ]
    whole = derived.add("sum of powers", apply("sum", *powers))
    return [apply("/", power, whole) for power in powers]


def _labels(plan: Plan, found: list[str], derived: _Derived) -> list[tuple[str, str]]:
    """Return the classes, each with the predicate that is true if it is as good as any.

    The first of them is the prediction.
    """
    scores = found
    if plan.costs is not None and not plan.votes:
        scores = [
            derived.add(
                f"score {code + 1}", _score([r[code] for r in plan.costs], found)
            )
            for code in range(len(found))
        ]
    best = derived.add("best", apply("max", *scores))
    slack = apply("*", apply("abs", best), constant(TIE))
    least = derived.add("least", apply("-", best, slack))
    labels: list[tuple[str, str]] = []
    for at, (label, score) in enumerate(zip(plan.classes, scores, strict=True), 1):
        is_good = apply("greaterOrEqual", score, least)
        derived.add(f"good {at}", apply("if", is_good, constant(1.0), constant(0.0)))
        good = derived.fields[-1][0]
        condition = f'<SimplePredicate field={good} operator="equal" value="1"/>'
        labels.append((attribute(label), markup(condition)))
    return labels


def _score(costs: Sequence[float], probabilities: Sequence[str]) -> str:
    """Return minus the expected cost of a class."""
    cost = constant(0.0)
    for probability, of_class in zip(probabilities, costs, strict=True):
        cost = apply("+", cost, apply("*", probability, constant(of_class)))
    return apply("*", constant(-1.0), cost)


def _absent() -> str | None:
    if importlib.util.find_spec("jpmml_evaluator") is None:
        return "there is no jpmml_evaluator here (pip install jpmml_evaluator[jpype])"
    if shutil.which("java") is None:
        return "there is no Java here (java)"
    return None


_EVALUATOR = program_runner(
    "JPMML-Evaluator",
    lambda plan: [sys.executable, "pmml_driver.py", "tree.pmml", Names(plan).target],
    "pmml_driver.py.txt",
    "tree.pmml",
    _absent,
)
TARGET = Target(
    "pmml",
    ".pmml",
    write,
    lambda _: [replace(_EVALUATOR, run=_run)],
    {"divided": ("refused", UNANSWERED), "form": ("trees", "rules")},
    fitting=fitting,
    domain="a date of PMML has no time of day",
    has_probabilities=lambda options: options["form"] != "rules",
)
