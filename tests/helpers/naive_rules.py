"""Rules as docs/rules.md has them: the oracle that the library is held against.

Plain Python over lists of cases, one at a time; written from the page, not from the
code.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from branchwise import Model
from branchwise.rules.rule import Rule
from branchwise.text.conditions import Condition, condition_of
from naive_c45 import feared

Row = dict[str, Any]


def holds(condition: Condition, row: Row) -> bool:
    """Tell whether a row fulfils a condition; a missing value is None."""
    cell, value = row[condition.column], condition.value
    if condition.op == "is missing":
        return cell is None
    if cell is None:
        return False
    match condition.op:
        case "is known":
            return True
        case "=":
            return bool(cell == value)
        case "in":
            return cell in value
        case "not in":
            return cell not in value
        case "<=":
            return bool(cell <= value)
        case ">":
            return bool(cell > value)
        case "within":
            return bool(value[0] < cell <= value[1])
    raise AssertionError(condition.op)


def fulfils(conditions: Sequence[Condition], row: Row) -> bool:
    return all(holds(condition, row) for condition in conditions)


def path(model: Model, node: int) -> list[Condition]:
    """Every condition on the path to a node."""
    steps = []
    while node:
        steps.append(condition_of(model.schema, model.tree, node))
        node = int(model.tree.parent[node])
    return steps[::-1]


class Cases:
    def __init__(self, rows: list[Row], labels: list[Any], weights: list[float]):
        self.rows, self.labels, self.weights = rows, labels, weights

    def of(self, conditions: Sequence[Condition]) -> list[int]:
        return [at for at, row in enumerate(self.rows) if fulfils(conditions, row)]

    def weight(self, places: Sequence[int]) -> float:
        return math.fsum(self.weights[at] for at in places)

    def rate(self, conditions: Sequence[Condition], label: Any, confidence: float):
        """The pessimistic error rate of a rule."""
        covered = self.of(conditions)
        n = self.weight(covered)
        if n == 0:
            return 1.0
        errors = self.weight([at for at in covered if self.labels[at] != label])
        return (errors + feared(n, errors, confidence)) / n


def generalised(rule: Rule, cases: Cases, confidence: float) -> list[Condition]:
    kept = list(rule.conditions)
    rate = cases.rate(kept, rule.label, confidence)
    while kept:
        tried = [
            (cases.rate(kept[:at] + kept[at + 1 :], rule.label, confidence), -at)
            for at in range(len(kept))
        ]
        best, place = min(tried)
        if best > rate:
            break
        rate = best
        del kept[-place]
    return kept


def log2_ways(whole: float, part: float) -> float:
    return (
        math.lgamma(whole + 1) - math.lgamma(part + 1) - math.lgamma(whole - part + 1)
    ) / math.log(2)


def description_length(
    rules: Sequence[Sequence[Condition]],
    bits: Sequence[float],
    label: Any,
    cases: Cases,
) -> float:
    """The bits of a subset of a class's rules, and of its exceptions."""
    theory = sum(bits) - math.lgamma(len(rules) + 1) / math.log(2)
    covered = {at for conditions in rules for at in cases.of(conditions)}
    rest = set(range(len(cases.rows))) - covered
    wrong = cases.weight([at for at in covered if cases.labels[at] != label])
    missed = cases.weight([at for at in rest if cases.labels[at] == label])
    return (
        0.5 * max(theory, 0.0)
        + log2_ways(cases.weight(sorted(covered)), wrong)
        + log2_ways(cases.weight(sorted(rest)), missed)
    )


def best_subset(rules, bits, label, cases) -> set[int]:
    """Try all subsets; of nearly equal ones the first of those of fewest rules."""
    tried = []
    for size in range(len(rules) + 1):
        for chosen in itertools.combinations(range(len(rules)), size):
            some = [rules[at] for at in chosen]
            cost = description_length(some, [bits[at] for at in chosen], label, cases)
            tried.append((cost, size, sum(1 << at for at in chosen), set(chosen)))
    least = min(cost for cost, *_ in tried)
    slack = 1e-9 * max(1.0, abs(least))
    return min(entry[1:] for entry in tried if entry[0] <= least + slack)[-1]


def decided(rules: Sequence[tuple[Sequence[Condition], Any]], default: Any, row: Row):
    """The position of the rule that decides, and its class."""
    for at, (conditions, label) in enumerate(rules):
        if fulfils(conditions, row):
            return at, label
    return len(rules), default


Listed = tuple[Sequence[Condition], Any]


def errors_of(rules: Sequence[Listed], default: Any, cases: Cases) -> float:
    pairs = zip(cases.rows, cases.labels, strict=True)
    wrong = [
        at
        for at, (row, label) in enumerate(pairs)
        if decided(rules, default, row)[1] != label
    ]
    return cases.weight(wrong)


def in_order(kept: dict[Any, list[Listed]], cases: Cases) -> list[Listed]:
    """Classes whose rules claim least of what is left wrongly come first."""
    left = set(range(len(cases.rows)))
    ordered: list[Listed] = []
    waiting = dict(sorted(kept.items()))
    while waiting:
        claims = {
            label: {at for conditions, _ in rules for at in cases.of(conditions)} & left
            for label, rules in waiting.items()
        }
        wrong = {
            label: cases.weight([at for at in claim if cases.labels[at] != label])
            for label, claim in claims.items()
        }
        label = min(wrong, key=lambda label: (wrong[label], label))
        left -= claims[label]
        ordered += waiting.pop(label)
    return ordered


def default_of(rules: Sequence[Listed], cases: Cases) -> Any:
    """The most frequent class of what is left; of equals the more frequent of all."""
    left = [at for at, row in enumerate(cases.rows) if decided(rules, "", row)[1] == ""]

    def weight(label: Any, places: Sequence[int]) -> float:
        return cases.weight([at for at in places if cases.labels[at] == label])

    every = range(len(cases.rows))
    return min(
        sorted(set(cases.labels)),
        key=lambda label: (-weight(label, left), -weight(label, every), label),
    )


def without_harm(rules: Sequence[Listed], default: Any, cases: Cases) -> list[Listed]:
    """Leave out the rule without which the list errs least, as long as that helps."""
    left = list(rules)
    while left:
        now = errors_of(left, default, cases)
        without = [
            errors_of(left[:at] + left[at + 1 :], default, cases)
            for at in range(len(left))
        ]
        if min(without) >= now:
            break
        del left[without.index(min(without))]
    used = {decided(left, default, row)[0] for row in cases.rows}
    return [rule for at, rule in enumerate(left) if at in used]
