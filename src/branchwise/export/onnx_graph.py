"""A graph of ONNX operators, put together piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

#: The one free dimension of inputs and outputs.
ROWS = "rows"


class Graph:
    """Operators, each put after those whose results it takes."""

    def __init__(self, prefix: str) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self._prefix = prefix
        self._count = 0

    def new_name(self) -> str:
        """Return a name that nothing else has."""
        self._count += 1
        return f"{self._prefix}{self._count}"

    def constant(self, values: Any, dtype: Any) -> str:
        """Add an array."""
        from onnx import numpy_helper  # noqa: PLC0415

        name = self.new_name()
        array = np.asarray(values, dtype=dtype)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def whole(self, values: Any) -> str:
        """Add an array of whole numbers."""
        return self.constant(values, np.int64)

    def real(self, values: Any) -> str:
        """Add an array of numbers."""
        return self.constant(values, np.float64)

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator, and return the name of its result."""
        from onnx import helper  # noqa: PLC0415

        name = self.new_name()
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def drop_unused(self, outputs: Sequence[str]) -> None:
        """Drop operators and constants whose results nothing takes.

        Runtimes warn of them whenever the file is opened.
        """
        used = set(outputs)
        kept = []
        for node in reversed(self.nodes):
            if used.isdisjoint(node.output):
                continue
            kept.append(node)
            used.update(_taken(node))
        self.nodes = kept[::-1]
        inputs = {entry.name for entry in self.inputs}
        self.constants = [c for c in self.constants if c.name in used | inputs]

    def add_input(self, name: str, kind: int, rows: str = ROWS) -> None:
        """Add an input with one entry a row."""
        from onnx import helper  # noqa: PLC0415

        self.inputs.append(helper.make_tensor_value_info(name, kind, [rows]))

    def cast(self, value: str, kind: int) -> str:
        """Turn a result into another type."""
        return self.op("Cast", value, to=kind)

    def repeat(
        self, start: str, body: Callable[[Graph, str, str], str], times: int | None
    ) -> str:
        """Add a loop; ``body`` takes (graph, turn, state) and returns the next state.

        Without ``times`` it goes on until the state, of whole numbers, stays the same.
        """
        from onnx import TensorProto, helper  # noqa: PLC0415

        inner = Graph(f"{self.new_name()}.")
        turn, go_on, state = inner.new_name(), inner.new_name(), inner.new_name()
        after = body(inner, turn, state)
        if times is None:
            moved = inner.op("Not", inner.op("Equal", after, state))
            n = inner.op("ReduceSum", inner.cast(moved, TensorProto.INT64), keepdims=0)
            more = inner.op("Greater", n, inner.whole(0))
        else:
            more = inner.op("Identity", go_on)
        kind = TensorProto.INT64 if times is None else TensorProto.DOUBLE
        graph = helper.make_graph(
            inner.nodes,
            "step",
            [
                helper.make_tensor_value_info(turn, TensorProto.INT64, []),
                helper.make_tensor_value_info(go_on, TensorProto.BOOL, []),
                helper.make_tensor_value_info(state, kind, None),
            ],
            [
                helper.make_tensor_value_info(more, TensorProto.BOOL, []),
                helper.make_tensor_value_info(after, kind, None),
            ],
            inner.constants,
        )
        trips = "" if times is None else self.whole(times)
        return self.op("Loop", trips, self.constant(True, np.bool_), start, body=graph)


def _taken(node: Any) -> set[str]:
    """Return the names that an operator takes, those of its body included."""
    names = set(node.input)
    for attribute in node.attribute:
        for inner in attribute.g.node:
            names |= _taken(inner)
        # A body may also give back what it has from outside.
        names.update(entry.name for entry in attribute.g.output)
    return names
