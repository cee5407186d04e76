"""Export plans of models, and how a row goes through one."""

from __future__ import annotations

from branchwise.data.arrays import TIE
from branchwise.export.plan import make_plan
from branchwise.tree.splits import EVERY_BRANCH, STOP


def plan_of(model):
    return make_plan(model.schema, model.tree, model.recipe)


def follow(plan, row):
    """Follow the rules in the head of plan.py, word by word."""
    if refused(plan, row):
        return None
    ends = arrivals(plan, row)
    if len(ends) == 1:
        (node, _), *_ = ends
        if plan.is_regression:
            return node.number, ()
        return plan.classes[node.label], node.probabilities
    if plan.is_regression:
        return sum((node.number * share for node, share in ends), start=0.0), ()
    chances = [0.0] * len(plan.classes)
    for node, share in ends:
        for code, chance in enumerate(node.probabilities):
            chances[code] += chance * share
    return plan.classes[label_of(chances, plan)], tuple(chances)


def refused(plan, row):
    if plan.rejects_missing and None in row:
        return True
    return plan.rejects_unseen and any(
        not field.numeric and cell is not None and cell not in field.values
        for field, cell in zip(plan.fields, row, strict=True)
    )


def arrivals(plan, row):
    ends = {}
    open_ = [(0, 1.0)]
    while open_:
        position, share = open_.pop()
        node = plan.nodes[position]
        branch = STOP if node.split is None else reply(plan, node.split, row)
        if branch == STOP:
            ends[position] = share
        elif branch == EVERY_BRANCH:
            for b, part in enumerate(node.split.shares):
                open_.append((node.child(b), share * part))
        else:
            open_.append((node.child(branch), share))
    return [(plan.nodes[position], ends[position]) for position in sorted(ends)]


def reply(plan, question, row):
    field, cell = plan.fields[question.field], row[question.field]
    if cell is None:
        for surrogate in question.surrogates:
            branch = reply(plan, surrogate, row)
            if branch != STOP:
                return branch
        return question.missing_to
    if field.numeric:
        above = question.threshold is not None and cell > question.threshold
        return question.branch_of.get(int(above), STOP)
    if cell not in field.values:
        return question.unseen_to
    return question.branch_of.get(field.values.index(cell), STOP)


def label_of(probabilities, plan):
    """Return the class of a fractional case: the most probable or the cheapest.

    Probabilities (or costs) that differ by less than a relative 1e-9 from the best are
    equal to it, and the first of them wins.
    """
    scores = probabilities if plan.costs is None else _costs(probabilities, plan.costs)
    best = max(scores)
    least = best - abs(best) * TIE
    return next(code for code, score in enumerate(scores) if score >= least)


def _costs(probabilities, costs):
    """Return minus the expected cost of every class, added class by class from 0."""
    expected_costs = []
    for prediction in range(len(costs[0])):
        cost = 0.0
        for probability, row in zip(probabilities, costs, strict=True):
            cost += probability * row[prediction]
        expected_costs.append(-cost)
    return expected_costs
