"""Export to ONNX: a graph of standard operators, in float64 throughout.

The tree operators of ONNX have no categories, no cases that stop above a leaf and no
fractional cases, so the graph follows the state tables of
:mod:`branchwise.export.plan` itself. Only if all splits compare a number with a
threshold, the tree operator is used. ``docs/export_onnx.md`` has inputs and outputs.

Trees of an ensemble are added up one after the other, in their order: the tree operator
could add them up itself, but in an order of its own, which changes the last bits.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from branchwise.errors import ExportError
from branchwise.export.base import Options, Prediction, Runner, Target
from branchwise.export.date_steps import steps_from_number
from branchwise.export.dates import number_of, units_note
from branchwise.export.onnx_graph import (
    ML_OPSET,
    ROWS,
    Cells,
    Graph,
    Names,
    Walk,
    arrive,
    fractional_predictions,
    most_likely,
    read_columns,
    takes,
    value_info,
)
from branchwise.export.plan import Field, Plan, Row

_OPSET = 17
_ML_OPSET = 3
_IR_VERSION = 8
#: Fractional cases need memory for every node and row: larger trees are rejected.
_MOST_FRACTIONAL_NODES = 20_000
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
    n_nodes = max(len(tree.nodes) for tree in plan.trees or (plan,))
    if plan.divides and n_nodes > _MOST_FRACTIONAL_NODES:
        raise ExportError(
            "ONNX takes room for every node of every row where cases go down several "
            f"branches, and this tree has {n_nodes:,} nodes; at most "
            f"{_MOST_FRACTIONAL_NODES:,} are allowed. Prune it, or fit with another "
            "missing and unseen policy than 'split'."
        )
    _check_broken_text(plan)
    names = Names.of(plan)
    graph = Graph(names.inner)
    cells = read_columns(plan, graph, names, partial(_derived_number, graph, plan))
    fast = takes(plan)
    if plan.trees:
        trees = [_of_tree(tree, graph, cells, fast) for tree in plan.trees]
        predictions, labels = _combined(plan, graph, trees)
    else:
        predictions, labels = _of_tree(plan, graph, cells, fast)
    return _model(plan, graph, names, cells, predictions, labels, fast)


def _of_tree(plan: Plan, graph: Graph, cells: Cells, fast: bool) -> tuple[str, str]:
    """Return the predictions of a tree, [rows, classes], and its class codes."""
    walk = Walk(plan, graph, cells)
    fast = fast and plan.nodes[0].split is not None
    state = arrive(plan, graph, cells.numbers) if fast else walk.arrive()
    values = _values(plan)
    predictions = _by_state(graph, state, values)
    by_node = graph.whole([node.label for node in plan.nodes])
    labels = graph.op("Gather", by_node, _at(graph, state, plan))
    if plan.divides:
        fractional = graph.op("Equal", state, graph.whole(walk.end))
        summed = fractional_predictions(walk, values)
        predictions = graph.op("Where", fractional, summed, predictions)
        if not plan.is_regression:
            likely = most_likely(graph, summed, plan.costs)
            labels = graph.op("Where", fractional, likely, labels)
    return predictions, labels


def _combined(
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


#: Operators of arithmetic.
_OPERATORS = {"+": "Add", "-": "Sub", "*": "Mul"}


def _derived_number(graph: Graph, plan: Plan, field: Field, date: str) -> str:
    """Add the operators from the number of a date to what is derived from it."""
    how = plan.inputs[field.source].date
    if how is None or field.feature is None:
        raise AssertionError("only dates have features")
    found = {"number": date}

    def operand(side: str | int) -> str:
        return found[side] if isinstance(side, str) else graph.real(float(side))

    for step in steps_from_number(field.feature, how):
        left, right = operand(step.left), operand(step.right)
        if step.sign == "//":
            found[step.name] = _floor_div(graph, left, right)
        else:
            found[step.name] = graph.op(_OPERATORS[step.sign], left, right)
    return found[step.name]


def _floor_div(graph: Graph, number: str, by: str) -> str:
    """Return the quotient rounded down; a quotient of float64 might be rounded up."""
    rest = graph.op("Mod", number, by, fmod=1)
    negative = graph.op("Less", rest, graph.real(0.0))
    rest = graph.op("Where", negative, graph.op("Add", rest, by), rest)
    return graph.op("Div", graph.op("Sub", number, rest), by)


def _check_broken_text(plan: Plan) -> None:
    texts = [f.name for f in plan.fields] + [v for f in plan.fields for v in f.values]
    for text in [*texts, *plan.classes]:
        if isinstance(text, str) and any("\ud800" <= c <= "\udfff" for c in text):
            raise ExportError(
                f"ONNX text is UTF-8, which cannot hold {text!a}: it has half of a "
                "surrogate pair. Rename it before fitting."
            )


def _at(graph: Graph, state: str, plan: Plan) -> str:
    """Return the node of each state, the root for fractional cases."""
    nodes = graph.whole(len(plan.nodes))
    return graph.op("Where", graph.op("Less", state, nodes), state, graph.whole(0))


def _values(plan: Plan) -> NDArray[np.float64]:
    """Return the predictions of nodes: [nodes, classes], or [nodes, 1] for numbers."""
    if plan.is_regression:
        return np.array([[node.number] for node in plan.nodes], dtype=np.float64)
    return np.array([node.probabilities for node in plan.nodes], dtype=np.float64)


def _by_state(graph: Graph, state: str, values: NDArray[np.float64]) -> str:
    """Return the predictions of the nodes that rows end in: [rows, classes]."""
    table = graph.real(np.vstack([values, values[:1]]))
    last = graph.whole(len(values))
    node = graph.op("Min", state, last)
    return graph.op("Squeeze", graph.op("Gather", table, node), graph.whole([1]))


def _model(
    plan: Plan,
    graph: Graph,
    names: Names,
    cells: Cells,
    predictions: str,
    labels: str,
    fast: bool,
) -> bytes:
    from onnx import checker, helper  # noqa: PLC0415

    outputs: list[Any] = []

    def put(value: str, dtype: Any, width: int | None = None) -> None:
        name, squeezed = names.outputs[len(outputs)], value
        if width is None:
            squeezed = graph.op("Squeeze", value, graph.whole([1]))
        graph.nodes.append(helper.make_node("Identity", [squeezed], [name]))
        shape: list[Any] = [ROWS] if width is None else [ROWS, width]
        outputs.append(value_info(name, dtype, shape))

    if plan.is_regression:
        put(predictions, np.float64)
    else:
        dtype = _class_dtype(plan)
        classes = graph.constant(np.array(plan.classes, dtype=dtype), dtype)
        put(graph.op("Gather", classes, labels), dtype)
        put(predictions, np.float64, len(plan.classes))
    if plan.rejects_missing or plan.rejects_unseen:
        put(graph.op("Not", cells.rejected), np.bool_)
    graph.drop_unused(names.outputs)
    whole = helper.make_graph(
        graph.nodes, "tree", graph.inputs, outputs, graph.constants, _about(plan)
    )
    ml_opset = ML_OPSET if fast else _ML_OPSET
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


def _about(plan: Plan) -> str:
    """Say what the model is, and which numbers the dates of its inputs are."""
    dates = [f.name + units_note(f) for f in plan.fields if f.date is not None]
    return ". ".join([plan.about, *dates])


def _class_dtype(plan: Plan) -> Any:
    first = plan.classes[0]
    if isinstance(first, (str, bool)):
        return object if isinstance(first, str) else np.bool_
    whole = all(isinstance(label, int) for label in plan.classes)
    return np.int64 if whole else np.float64


def _run(content: bytes, plan: Plan, rows: Sequence[Row]) -> list[Prediction]:
    import onnxruntime  # noqa: PLC0415

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        content, settings, providers=["CPUExecutionProvider"]
    )
    n_nodes = max(len(tree.nodes) for tree in plan.trees or (plan,))
    size = max(1, _BATCH // n_nodes) if plan.divides else _BATCH
    predictions: list[Prediction] = []
    for start in range(0, len(rows), size):
        predictions += _predictions(session, plan, rows[start : start + size])
    return predictions


def _predictions(session: Any, plan: Plan, rows: Sequence[Row]) -> list[Prediction]:
    found = [values.tolist() for values in session.run(None, _feed(plan, rows))]
    outcomes: list[Prediction]
    if plan.is_regression:
        outcomes = [(number, ()) for number in found[0]]
    else:
        probabilities = [tuple(row) for row in found[1]]
        outcomes = list(zip(found[0], probabilities, strict=True))
    if not (plan.rejects_missing or plan.rejects_unseen):
        return outcomes
    return [
        outcome if predicted_rows else None
        for outcome, predicted_rows in zip(outcomes, found[-1], strict=True)
    ]


def _feed(plan: Plan, rows: Sequence[Row]) -> dict[str, NDArray[Any]]:
    """Return the inputs of rows."""
    if not plan.fields:
        return {"row": np.zeros(len(rows), dtype=np.int64)}
    names = Names.of(plan)
    feed: dict[str, NDArray[Any]] = {}
    for position, field in enumerate(plan.inputs):
        cells = [row[position] for row in rows]
        if field.date is not None:
            cells = [number_of(field.date, cell) for cell in cells]
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

TARGET = Target(
    "onnx",
    ".onnx",
    write,
    lambda _: [_RUNNER],
    binary=True,
)
