"""Ensembles as ONNX operators: sums over trees, and predictions of them.

Trees are added up one after the other, in their order: ``TreeEnsemble`` could add them
up itself, but in an order of its own, which changes the last bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from branchwise.export.onnx_graph import Graph, most_likely
from branchwise.export.plan import Plan


def combined(
    plan: Plan, graph: Graph, trees: Sequence[tuple[str, str]]
) -> tuple[str, str]:
    """Return the predictions of all trees, [rows, classes], and the class codes.

    ``trees`` has the predictions and the class codes of each.
    """
    added = [_votes(plan, graph, at, code) for at, (_, code) in enumerate(trees)]
    if not plan.votes:
        added = [predictions for predictions, _ in trees]
    # A round of gradient boosting has a tree for each sum.
    n_turns = plan.n_sums if plan.initial else 1
    sums = [_added_up(graph, added[turn::n_turns]) for turn in range(n_turns)]
    total = graph.op("Concat", *sums, axis=1)
    if plan.initial:
        predictions = graph.op("Add", total, graph.real([plan.initial]))
        predictions = _linked(plan, graph, predictions)
    else:
        predictions = graph.op("Div", total, graph.real(plan.divisor))
    if plan.is_regression:
        return predictions, ""
    costs = None if plan.votes else plan.costs
    return predictions, most_likely(graph, predictions, costs)


def _votes(plan: Plan, graph: Graph, tree: int, code: str) -> str:
    """Return the weight of a tree for its class, and 0 for others: [rows, classes]."""
    weight = plan.weights[tree] if plan.weights else 1.0
    table = graph.real(np.eye(max(1, len(plan.classes))) * weight)
    return graph.op("Squeeze", graph.op("Gather", table, code), graph.whole([1]))


def _added_up(graph: Graph, added: Sequence[str]) -> str:
    total = added[0]
    for one in added[1:]:
        total = graph.op("Add", total, one)
    return total


def _linked(plan: Plan, graph: Graph, sums: str) -> str:
    """Return predictions from the sums of gradient boosting."""
    if plan.link is None:
        return sums
    if plan.link == "exp":
        return graph.op("Exp", sums)
    if plan.link == "logistic":
        # The log odds of both classes: 0, and that of the second.
        first = graph.op("Mul", sums, graph.real(0.0))
        sums = graph.op("Concat", first, sums, axis=1)
    top = graph.op("ReduceMax", sums, axes=[1], keepdims=1)
    powers = graph.op("Exp", graph.op("Sub", sums, top))
    total = graph.op("ReduceSum", powers, graph.whole([1]), keepdims=1)
    return graph.op("Div", powers, total)
