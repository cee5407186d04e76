"""The fast way of an ONNX export: one operator finds the node of a row.

``TreeEnsemble`` of ai.onnx.ml 5 compares in float64. It takes trees whose questions all
are whether a number is at most a cut, with a branch for missing ones; the weight of a
leaf is the number of its node, which the rest of the graph looks the answer up by.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from branchwise.export.onnx_graph import Graph
from branchwise.export.plan import ABOVE, AT_MOST, Node, Plan, Question

#: The operator set that has TreeEnsemble.
ML_OPSET = 5
_SIDES = ((AT_MOST,), (ABOVE,))


def takes(plan: Plan) -> bool:
    """Whether the operator can find the nodes of a plan."""
    asked = [node.question for node in plan.nodes if node.question is not None]
    return bool(asked) and all(_is_plain(plan, question) for question in asked)


def _is_plain(plan: Plan, question: Question) -> bool:
    return (
        plan.fields[question.field].numeric
        and question.cut is not None
        and question.branches in (_SIDES, _SIDES[::-1])
        and (question.missing_to in (0, 1) or plan.refuses_missing)
        and not question.surrogates
    )


def arrive(plan: Plan, graph: Graph, numbers: str) -> str:
    """Return the node that each row ends in: [rows, 1], from [rows, fields]."""
    from onnx import TensorProto  # noqa: PLC0415

    found = graph.op("TreeEnsemble", numbers, domain="ai.onnx.ml", **_attributes(plan))
    return graph.cast(found, TensorProto.INT64)


def _attributes(plan: Plan) -> dict[str, Any]:
    """Return the tree as the operator has it: nodes that ask apart from leaves."""
    asking = [i for i, node in enumerate(plan.nodes) if node.question is not None]
    leaves = [i for i, node in enumerate(plan.nodes) if node.question is None]
    place = {node: at for kind in (asking, leaves) for at, node in enumerate(kind)}
    children = [_children(plan.nodes[i]) for i in asking]
    is_leaf = [[int(plan.nodes[c].question is None) for c in two] for two in children]
    questions = [q for i in asking if (q := plan.nodes[i].question) is not None]
    return {
        "n_targets": 1,
        "aggregate_function": 1,  # sum, of a single tree
        "post_transform": 0,
        "tree_roots": [0],
        "nodes_featureids": [question.field for question in questions],
        "nodes_splits": _tensor([q.cut for q in questions], np.float64),
        "nodes_modes": _tensor([0] * len(asking), np.uint8),  # at most
        "nodes_truenodeids": [place[two[0]] for two in children],
        "nodes_falsenodeids": [place[two[1]] for two in children],
        "nodes_trueleafs": [two[0] for two in is_leaf],
        "nodes_falseleafs": [two[1] for two in is_leaf],
        "nodes_missing_value_tracks_true": [
            int(question.branch_of[AT_MOST] == question.missing_to)
            for question in questions
        ],
        "leaf_targetids": [0] * len(leaves),
        "leaf_weights": _tensor(leaves, np.float64),
    }


def _children(node: Node) -> list[int]:
    """Return where numbers up to the cut go, and those above it."""
    way = {} if node.question is None else node.question.branch_of
    return [node.child(way[side]) for side in (AT_MOST, ABOVE)]


def _tensor(values: Any, dtype: Any) -> Any:
    from onnx import numpy_helper  # noqa: PLC0415

    return numpy_helper.from_array(np.array(values, dtype=dtype))
