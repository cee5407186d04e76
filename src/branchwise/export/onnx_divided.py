"""Divided cases of an ONNX export: shares of all nodes, summed in their order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from branchwise.export.onnx_graph import Graph
from branchwise.export.onnx_walk import Walk
from branchwise.export.plan import Plan
from branchwise.ties import TIE


def divided_answers(walk: Walk, values: NDArray[np.float64]) -> str:
    """Return the answers of divided cases: [rows, classes]."""
    from onnx import TensorProto  # noqa: PLC0415

    plan, graph = walk.plan, walk.graph
    asking = [i for i, node in enumerate(plan.nodes) if node.question is not None]
    went = walk.taken(asking)
    factor = _factors(walk, went, asking)
    parents = graph.whole([max(parent, 0) for parent in plan.parents])
    root = np.zeros((1, len(plan.nodes)))
    root[0, 0] = 1.0
    zero = graph.op("Mul", factor, graph.real(0.0))
    share = graph.repeat(
        graph.op("Add", zero, graph.real(root)),
        lambda g, _, s: g.op("Mul", g.op("Gather", s, parents, axis=1), factor),
        max(_depth(plan), 1),
    )
    # A case stops at a node that asks if it goes nowhere from there.
    stops = graph.op("Equal", went, graph.whole([asking]))
    column = {node: place for place, node in enumerate(asking)}
    of_node = graph.whole([column.get(i, 0) for i in range(len(plan.nodes))])
    leaf = [i not in column for i in range(len(plan.nodes))]
    ends = graph.op("Gather", stops, of_node, axis=1)
    ends = graph.op("Or", ends, graph.constant([leaf], np.bool_))
    part = graph.op("Mul", share, graph.cast(ends, TensorProto.DOUBLE))
    table = graph.real(values)
    nothing = graph.op("Gather", part, graph.whole([0]), axis=1)
    nothing = graph.op("Mul", nothing, graph.real(np.zeros((1, values.shape[1]))))

    def add(inner: Graph, turn: str, total: str) -> str:
        place = inner.op("Unsqueeze", turn, inner.whole([0]))
        mine = inner.op("Gather", part, place, axis=1)
        row = inner.op("Gather", table, place, axis=0)
        return inner.op("Add", total, inner.op("Mul", row, mine))

    return graph.repeat(nothing, add, len(plan.nodes))


def _depth(plan: Plan) -> int:
    depth = [0] * len(plan.nodes)
    for node, parent in enumerate(plan.parents):
        if parent >= 0:
            depth[node] = depth[parent] + 1
    return max(depth)


def _factors(walk: Walk, went: str, asking: Sequence[int]) -> str:
    """Return the share of its parent's cases that each node gets: [rows, nodes]."""
    plan, graph = walk.plan, walk.graph
    column = {node: place for place, node in enumerate(asking)}
    places, shares = [0], [1.0]
    for node, parent in enumerate(plan.parents):
        if parent < 0:
            continue
        above = plan.nodes[parent]
        places.append(column[parent])
        assert above.question is not None  # noqa: S101
        shares.append(above.question.shares[node - above.first_child])
    to = graph.op("Gather", went, graph.whole(places), axis=1)
    here = graph.op("Equal", to, graph.whole([list(range(len(plan.nodes)))]))
    everywhere = graph.op("Equal", to, graph.whole(walk.end))
    part = graph.op("Where", everywhere, graph.real([shares]), graph.real(0.0))
    factor = graph.op("Where", here, graph.real(1.0), part)
    is_root = [[node == 0 for node in range(len(plan.nodes))]]
    return graph.op("Where", graph.constant(is_root, np.bool_), graph.real(1.0), factor)


def most_likely(plan: Plan, graph: Graph, chances: str) -> str:
    """Return the class codes of divided cases: [rows, 1]."""
    from onnx import TensorProto  # noqa: PLC0415

    scores = chances
    if plan.costs is not None:
        price = graph.op("Mul", chances, graph.real(0.0))
        for code, row in enumerate(plan.costs):
            chance = graph.op("Gather", chances, graph.whole([code]), axis=1)
            price = graph.op("Add", price, graph.op("Mul", chance, graph.real([row])))
        scores = graph.op("Neg", price)
    best = graph.op("ReduceMax", scores, axes=[1], keepdims=1)
    slack = graph.op("Mul", graph.op("Abs", best), graph.real(TIE))
    good = graph.op("GreaterOrEqual", scores, graph.op("Sub", best, slack))
    hits = graph.cast(good, TensorProto.INT64)
    return graph.op("ArgMax", hits, axis=1, keepdims=1)
