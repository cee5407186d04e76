"""The walk of an ONNX export: columns to codes, codes to the states rows end in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from branchwise.export.machine import DIVIDED, make_machine
from branchwise.export.onnx_graph import ROWS, Graph
from branchwise.export.plan import Field, Plan


@dataclass(frozen=True)
class Names:
    """What inputs and outputs are called: no two alike.

    A column is called by its name. ``masks`` say where text and booleans are missing.
    """

    columns: tuple[str, ...]
    masks: tuple[str, ...]
    outputs: tuple[str, ...]
    inner: str

    @classmethod
    def of(cls, plan: Plan) -> Names:
        """Find names for a plan."""
        taken = {field.name for field in plan.fields}

        def free(name: str) -> str:
            while name in taken:
                name += "_"
            taken.add(name)
            return name

        columns = [f.name or free(f"column {f.column}") for f in plan.fields]
        masks = [free(f"{name} is missing") for name in columns]
        outputs = ["number"] if plan.predicts_numbers else ["label", "probabilities"]
        if plan.refuses_missing or plan.refuses_unseen:
            outputs.append("answered")
        inner = "branchwise."
        while any(name.startswith(inner) for name in taken):
            inner += "."
        return cls(tuple(columns), tuple(masks), tuple(free(o) for o in outputs), inner)


class Walk:
    """The parts of the graph that all answers share."""

    def __init__(self, plan: Plan, graph: Graph, names: Names) -> None:
        self.plan, self.graph = plan, graph
        self.machine = make_machine(plan)
        self.end = len(self.machine)  # the state of divided cases
        self.codes, self.numbers, self.refused = _read_columns(plan, graph, names)
        machine, end = self.machine, self.end
        self._field = graph.whole([*machine.field, 0])
        self._asks = graph.constant([*machine.asks, False], np.bool_)
        cuts = [np.nan if cut is None else cut for cut in machine.cut]
        self._cut = graph.real([*cuts, np.nan])
        self._first = graph.whole([*machine.first, len(machine.to)])
        to = [end if state == DIVIDED else state for state in machine.to]
        self._to = graph.whole([*to, end])
        numeric = [field.numeric for field in plan.fields] or [False]
        self._numeric = graph.constant(numeric, np.bool_)

    def step(self, graph: Graph, states: str) -> str:
        """Return where each row goes from states: [rows, any number of them]."""
        from onnx import TensorProto  # noqa: PLC0415

        field = graph.op("Gather", self._field, states)
        code = graph.op("GatherElements", self.codes, field, axis=1)
        number = graph.op("GatherElements", self.numbers, field, axis=1)
        above = graph.op("Greater", number, graph.op("Gather", self._cut, states))
        side = graph.op(
            "Where",
            graph.op("IsNaN", number),
            graph.whole(2),
            graph.cast(above, TensorProto.INT64),
        )
        numeric = graph.op("Gather", self._numeric, field)
        reply = graph.op("Where", numeric, side, code)
        asks = graph.op("Gather", self._asks, states)
        reply = graph.op("Where", asks, reply, graph.whole(0))
        place = graph.op("Add", graph.op("Gather", self._first, states), reply)
        return graph.op("Gather", self._to, place)

    def arrive(self) -> str:
        """Return the state that each row ends in: [rows, 1]."""
        start = self.graph.op("Mul", self._a_column(), self.graph.whole(0))
        return self.graph.repeat(start, lambda g, _, state: self.step(g, state), None)

    def _a_column(self) -> str:
        return self.graph.op("Gather", self.codes, self.graph.whole([0]), axis=1)

    def taken(self, nodes: Sequence[int]) -> str:
        """Return where each row goes from some nodes: [rows, nodes]."""
        graph = self.graph
        start = graph.op("Mul", self._a_column(), graph.whole([[0] * len(nodes)]))
        states = graph.op("Add", start, graph.whole([list(nodes)]))
        went = self.step(graph, states)
        first, end = graph.whole(len(self.plan.nodes)), graph.whole(self.end)

        def ask(inner: Graph, _: str, state: str) -> str:
            surrogate = inner.op(
                "And",
                inner.op("GreaterOrEqual", state, first),
                inner.op("Less", state, end),
            )
            return inner.op("Where", surrogate, self.step(inner, state), state)

        if self.end == len(self.plan.nodes):
            return went
        return graph.repeat(went, ask, None)


def _read_columns(plan: Plan, graph: Graph, names: Names) -> tuple[str, str, str]:
    """Return codes and numbers, [rows, fields] each, and which rows are refused."""
    from onnx import TensorProto  # noqa: PLC0415

    if not plan.fields:
        graph.add_input("row", TensorProto.INT64)
        row = graph.op("Unsqueeze", "row", graph.whole([1]))
        nothing = graph.op("Mul", row, graph.whole(0))
        refused = graph.op("Less", nothing, graph.whole(0))
        return nothing, graph.cast(nothing, TensorProto.DOUBLE), refused
    codes, numbers, unfit = [], [], []
    for field, *called in zip(plan.fields, names.columns, names.masks, strict=True):
        code, number = _read_column(graph, field, *called)
        gone = graph.op("IsNaN", number)
        if not field.numeric:
            gone = graph.op("Equal", code, graph.whole(len(field.values)))
        if plan.refuses_missing:
            unfit.append(gone)
        if plan.refuses_unseen and not field.numeric:
            unseen = graph.whole(len(field.values) + 1)
            unfit.append(graph.op("Equal", code, unseen))
        codes.append(code)
        numbers.append(number)
    refused = graph.op("Less", codes[0], graph.whole(0))
    for some in unfit:
        refused = graph.op("Or", refused, some)
    return (
        graph.op("Concat", *codes, axis=1),
        graph.op("Concat", *numbers, axis=1),
        refused,
    )


def _read_column(graph: Graph, field: Field, name: str, mask: str) -> tuple[str, str]:
    """Return the codes and the numbers of a column, one of which means nothing."""
    from onnx import TensorProto  # noqa: PLC0415

    missing = len(field.values)
    if field.kind == "number":
        graph.add_input(name, TensorProto.DOUBLE)
        number = graph.op("Unsqueeze", name, graph.whole([1]))
        if field.numeric:
            zero = graph.op("Less", number, number)
            return graph.cast(zero, TensorProto.INT64), number
        return _code_of_number(graph, field, number), number
    kind = TensorProto.STRING if field.kind == "text" else TensorProto.BOOL
    graph.add_input(name, kind)
    cells = graph.op("Unsqueeze", name, graph.whole([1]))
    code = _code_of_text(graph, field, cells)
    if field.kind == "boolean":
        found = [_position(field, value) for value in (True, False)]
        code = graph.op("Where", cells, graph.whole(found[0]), graph.whole(found[1]))
    code = graph.op("Where", _add_mask(graph, mask), graph.whole(missing), code)
    return code, graph.cast(code, TensorProto.DOUBLE)


def _position(field: Field, value: bool) -> int:
    known = value in field.values
    return field.values.index(value) if known else len(field.values) + 1


def _code_of_text(graph: Graph, field: Field, cells: str) -> str:
    if field.kind != "text":
        return cells
    return graph.op(
        "LabelEncoder",
        cells,
        domain="ai.onnx.ml",
        keys_strings=[str(value) for value in field.values],
        values_int64s=list(range(len(field.values))),
        default_int64=len(field.values) + 1,
    )


def _code_of_number(graph: Graph, field: Field, number: str) -> str:
    from onnx import TensorProto  # noqa: PLC0415

    equal = graph.op("Equal", number, graph.real([list(field.values)]))
    hits = graph.cast(equal, TensorProto.INT64)
    code = graph.op("ArgMax", hits, axis=1, keepdims=1)
    known = graph.op("ReduceMax", hits, axes=[1], keepdims=1)
    unseen, missing = graph.whole(len(field.values) + 1), graph.whole(len(field.values))
    code = graph.op("Where", graph.cast(known, TensorProto.BOOL), code, unseen)
    return graph.op("Where", graph.op("IsNaN", number), missing, code)


def _add_mask(graph: Graph, name: str) -> str:
    """Add an input that is false unless it is given."""
    from onnx import TensorProto, numpy_helper  # noqa: PLC0415

    graph.add_input(name, TensorProto.BOOL, f"{ROWS} or 1: {name}")
    graph.constants.append(numpy_helper.from_array(np.array([False]), name))
    return graph.op("Unsqueeze", name, graph.whole([1]))
