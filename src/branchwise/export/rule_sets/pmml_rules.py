"""PMML's RuleSetModel: a SimpleRule for each rule that votes, added up by class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from branchwise.export.plan import Plan
from branchwise.export.pmml_elements import all_of, attribute, met
from branchwise.export.rule_sets.voted_rules import first_scores, voted_rules
from branchwise.text.as_html import markup, page


def write_rules(plan: Plan, values: dict[str, Any]) -> bytes:
    """Write a RuleSetModel; ``values`` are those that every PMML file has."""
    rules = list(_rules(plan))
    return page("export/templates/rules.pmml", rules=rules, **values).encode()


def _rules(plan: Plan) -> Iterator[tuple[str, str, str, str]]:
    """Yield id, class, weight and predicate of each rule.

    The scores before any vote are rules that always hold.
    """
    for at, (label, score) in enumerate(
        zip(plan.classes, first_scores(plan), strict=True)
    ):
        yield f"before {at + 1}", attribute(label), repr(score), markup("<True/>")
    for at, rule in enumerate(voted_rules(plan), 1):
        terms = [
            met(plan.fields[split.field], split, branch) for split, branch in rule.path
        ]
        label = attribute(plan.classes[rule.label])
        yield str(at), label, repr(rule.vote), markup(all_of(terms))
