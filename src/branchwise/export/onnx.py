"""Export to ONNX: a graph of standard operators, in float64 throughout.

The tree operators of ONNX know nothing of values, of stopped or of divided cases, so
the graph walks the tables of :mod:`branchwise.export.machine` itself, unless all
questions are whether a number is at most a cut (:mod:`onnx_ensemble`). Every
column is an input of its own, with one entry a row: text is a string, a number a double
(NaN is missing), a boolean a bool. For text and booleans there is a further input
``"... is missing"``, false unless given. The outputs are ``label``, ``probabilities``
and, where missing or unseen values are refused, ``answered``.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import ExportError
from branchwise.export import onnx_ensemble
from branchwise.export.answers import Answer
from branchwise.export.onnx_divided import divided_answers, most_likely
from branchwise.export.onnx_graph import ROWS, Graph
from branchwise.export.onnx_walk import Names, Walk
from branchwise.export.plan import Plan, Row
from branchwise.export.target import Options, Runner, Target

_OPSET = 17
_ML_OPSET = 3
_IR_VERSION = 8
#: Divided cases take room for every node and row: larger trees are refused.
_MOST_DIVIDED_NODES = 20_000
#: Cells (rows times nodes) that a verification takes at a time.
_BATCH = 4_000_000


def _absent() -> str | None:
    for package in ("onnx", "onnxruntime"):
        if importlib.util.find_spec(package) is None:
            return f"there is no {package} here (pip install 'branchwise[onnx]')"
    return None


def write(plan: Plan, options: Options) -> bytes:  # noqa: ARG001
    """Write the model as a binary ONNX file."""
    if importlib.util.find_spec("onnx") is None:
        raise ExportError(
            "The export to 'onnx' needs the package onnx. Install it with: pip install "
            "'branchwise[onnx]'"
        )
    if plan.divides and len(plan.nodes) > _MOST_DIVIDED_NODES:
        raise ExportError(
            "ONNX takes room for every node of every row where cases go down several "
            f"branches, and this tree has {len(plan.nodes):,} nodes; at most "
            f"{_MOST_DIVIDED_NODES:,} are allowed. Prune it, or fit with another "
            "missing and unseen policy than 'split'."
        )
    _refuse_broken_text(plan)
    names = Names.of(plan)
    graph = Graph(names.inner)
    walk = Walk(plan, graph, names)
    fast = onnx_ensemble.takes(plan)
    state = onnx_ensemble.arrive(plan, graph, walk.numbers) if fast else walk.arrive()
    values = _values(plan)
    answers = _by_state(graph, state, values)
    by_node = graph.whole([node.label for node in plan.nodes])
    labels = graph.op("Gather", by_node, _at(graph, state, plan))
    if plan.divides:
        divided = graph.op("Equal", state, graph.whole(walk.end))
        summed = divided_answers(walk, values)
        answers = graph.op("Where", divided, summed, answers)
        if not plan.predicts_numbers:
            likely = most_likely(plan, graph, summed)
            labels = graph.op("Where", divided, likely, labels)
    return _model(plan, walk, names, answers, labels, fast)


def _refuse_broken_text(plan: Plan) -> None:
    texts = [f.name for f in plan.fields] + [v for f in plan.fields for v in f.values]
    for text in [*texts, *plan.classes]:
        if isinstance(text, str) and any("\ud800" <= c <= "\udfff" for c in text):
            raise ExportError(
                f"ONNX text is UTF-8, which cannot hold {text!a}: it has half of a "
                "surrogate pair. Rename it before fitting."
            )


def _at(graph: Graph, state: str, plan: Plan) -> str:
    """Return the node of each state, the root for divided cases."""
    nodes = graph.whole(len(plan.nodes))
    return graph.op("Where", graph.op("Less", state, nodes), state, graph.whole(0))


def _values(plan: Plan) -> NDArray[np.float64]:
    """Return what nodes answer: [nodes, classes], or [nodes, 1] for numbers."""
    if plan.predicts_numbers:
        return np.array([[node.number] for node in plan.nodes], dtype=np.float64)
    return np.array([node.chances for node in plan.nodes], dtype=np.float64)


def _by_state(graph: Graph, state: str, values: NDArray[np.float64]) -> str:
    """Return what the nodes answer that rows end in: [rows, classes]."""
    table = graph.real(np.vstack([values, values[:1]]))
    last = graph.whole(len(values))
    node = graph.op("Min", state, last)
    return graph.op("Squeeze", graph.op("Gather", table, node), graph.whole([1]))


def _model(
    plan: Plan, walk: Walk, names: Names, answers: str, labels: str, fast: bool
) -> bytes:
    from onnx import TensorProto, checker, helper  # noqa: PLC0415

    graph = walk.graph
    outputs: list[Any] = []

    def put(value: str, kind: int, width: int | None = None) -> None:
        name, squeezed = names.outputs[len(outputs)], value
        if width is None:
            squeezed = graph.op("Squeeze", value, graph.whole([1]))
        graph.nodes.append(helper.make_node("Identity", [squeezed], [name]))
        shape: list[Any] = [ROWS] if width is None else [ROWS, width]
        outputs.append(helper.make_tensor_value_info(name, kind, shape))

    if plan.predicts_numbers:
        put(answers, TensorProto.DOUBLE)
    else:
        kind, classes = _class_table(plan, graph)
        put(graph.op("Gather", classes, labels), kind)
        put(answers, TensorProto.DOUBLE, len(plan.classes))
    if plan.refuses_missing or plan.refuses_unseen:
        put(graph.op("Not", walk.refused), TensorProto.BOOL)
    graph.drop_unused(names.outputs)
    whole = helper.make_graph(
        graph.nodes, "tree", graph.inputs, outputs, graph.constants, plan.about
    )
    ml_opset = onnx_ensemble.ML_OPSET if fast else _ML_OPSET
    model = helper.make_model(
        whole,
        producer_name="branchwise",
        ir_version=_IR_VERSION,
        opset_imports=[
            helper.make_opsetid("", _OPSET),
            helper.make_opsetid("ai.onnx.ml", ml_opset),
        ],
    )
    checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def _class_table(plan: Plan, graph: Graph) -> tuple[int, str]:
    from onnx import TensorProto  # noqa: PLC0415

    first = plan.classes[0]
    if isinstance(first, str):
        texts = np.array([str(c) for c in plan.classes], dtype=object)
        return TensorProto.STRING, graph.constant(texts, object)
    if isinstance(first, bool):
        return TensorProto.BOOL, graph.constant(plan.classes, np.bool_)
    if all(isinstance(label, int) for label in plan.classes):
        return TensorProto.INT64, graph.whole(plan.classes)
    return TensorProto.DOUBLE, graph.real(plan.classes)


def _run(content: bytes, plan: Plan, rows: Sequence[Row]) -> list[Answer]:
    import onnxruntime  # noqa: PLC0415

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        content, settings, providers=["CPUExecutionProvider"]
    )
    size = max(1, _BATCH // len(plan.nodes)) if plan.divides else _BATCH
    answers: list[Answer] = []
    for start in range(0, len(rows), size):
        answers += _answers(session, plan, rows[start : start + size])
    return answers


def _answers(session: Any, plan: Plan, rows: Sequence[Row]) -> list[Answer]:
    found = [values.tolist() for values in session.run(None, _feed(plan, rows))]
    replies: list[Answer]
    if plan.predicts_numbers:
        replies = [(number, ()) for number in found[0]]
    else:
        chances = [tuple(row) for row in found[1]]
        replies = list(zip(found[0], chances, strict=True))
    if not (plan.refuses_missing or plan.refuses_unseen):
        return replies
    return [
        reply if answered else None
        for reply, answered in zip(replies, found[-1], strict=True)
    ]


def _feed(plan: Plan, rows: Sequence[Row]) -> dict[str, NDArray[Any]]:
    """Return the inputs that stand for rows."""
    if not plan.fields:
        return {"row": np.zeros(len(rows), dtype=np.int64)}
    names = Names.of(plan)
    feed: dict[str, NDArray[Any]] = {}
    for position, field in enumerate(plan.fields):
        cells = [row[position] for row in rows]
        if field.kind == "number":
            known = [np.nan if cell is None else cell for cell in cells]
            feed[names.columns[position]] = np.array(known, dtype=np.float64)
            continue
        feed[names.masks[position]] = np.array([cell is None for cell in cells])
        if field.kind == "text":
            texts = ["" if cell is None else cell for cell in cells]
            feed[names.columns[position]] = np.array(texts, dtype=object)
        else:
            feed[names.columns[position]] = np.array([bool(cell) for cell in cells])
    return feed


_RUNNER = Runner("onnxruntime", _absent, _run)

TARGET = Target("onnx", ".onnx", write, lambda _: [_RUNNER], binary=True)
