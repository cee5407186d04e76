"""The tree as ONNX operators: columns to codes, codes to leaves, leaves to values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from branchwise.data.arrays import TIE
from branchwise.export.plan import Field, Node, Plan, PlanSplit
from branchwise.export.state_table import FRACTIONAL, make_machine
from branchwise.tree.splits import ABOVE, AT_MOST

Costs = tuple[tuple[float, ...], ...]
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

    def add_input(self, name: str, dtype: Any, rows: str = ROWS) -> None:
        """Add an input with one entry a row."""
        self.inputs.append(value_info(name, dtype, [rows]))

    def cast(self, value: str, dtype: Any) -> str:
        """Turn a result into another type."""
        return self.op("Cast", value, to=_tensor_type(dtype))

    def repeat(
        self, start: str, body: Callable[[Graph, str, str], str], times: int | None
    ) -> str:
        """Add a loop; ``body`` takes (graph, turn, state) and returns the next state.

        Without ``times`` it goes on until the state, of whole numbers, stays the same.
        """
        from onnx import helper  # noqa: PLC0415

        inner = Graph(f"{self.new_name()}.")
        turn, go_on, state = inner.new_name(), inner.new_name(), inner.new_name()
        after = body(inner, turn, state)
        if times is None:
            moved = inner.op("Not", inner.op("Equal", after, state))
            n = inner.op("ReduceSum", inner.cast(moved, np.int64), keepdims=0)
            more = inner.op("Greater", n, inner.whole(0))
        else:
            more = inner.op("Identity", go_on)
        kind = np.int64 if times is None else np.float64
        graph = helper.make_graph(
            inner.nodes,
            "step",
            [
                value_info(turn, np.int64, []),
                value_info(go_on, np.bool_, []),
                value_info(state, kind, None),
            ],
            [
                value_info(more, np.bool_, []),
                value_info(after, kind, None),
            ],
            inner.constants,
        )
        trips = "" if times is None else self.whole(times)
        return self.op("Loop", trips, self.constant(True, np.bool_), start, body=graph)


def value_info(name: str, dtype: Any, shape: Sequence[Any] | None) -> Any:
    """Describe an input or an output; texts are objects."""
    from onnx import helper  # noqa: PLC0415

    return helper.make_tensor_value_info(name, _tensor_type(dtype), shape)


def _tensor_type(dtype: Any) -> int:
    from onnx import helper  # noqa: PLC0415

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _taken(node: Any) -> set[str]:
    """Return the names that an operator takes, those of its body included."""
    names = set(node.input)
    for attribute in node.attribute:
        for inner in attribute.g.node:
            names |= _taken(inner)
        # A body may also give back what it has from outside.
        names.update(entry.name for entry in attribute.g.output)
    return names


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

        columns = [f.name or free(f"column {f.column}") for f in plan.inputs]
        masks = [free(f"{name} is missing") for name in columns]
        outputs = ["number"] if plan.is_regression else ["label", "probabilities"]
        if plan.rejects_missing or plan.rejects_unseen:
            outputs.append("answered")
        inner = "branchwise."
        while any(name.startswith(inner) for name in taken):
            inner += "."
        return cls(tuple(columns), tuple(masks), tuple(free(o) for o in outputs), inner)


class Cells(NamedTuple):
    """Codes and numbers, [rows, fields] each, and which rows are rejected."""

    codes: str
    numbers: str
    rejected: str


class Walk:
    """The nodes of the graph that all outputs of a tree share."""

    def __init__(self, plan: Plan, graph: Graph, cells: Cells) -> None:
        self.plan, self.graph = plan, graph
        self.machine = make_machine(plan)
        self.end = len(self.machine)  # the state of fractional cases
        self.codes, self.numbers, _ = cells
        machine, end = self.machine, self.end
        self._field = graph.whole([*machine.field, 0])
        self._splits_on = graph.constant([*machine.splits_on, False], np.bool_)
        thresholds = [
            np.nan if threshold is None else threshold
            for threshold in machine.threshold
        ]
        self._threshold = graph.real([*thresholds, np.nan])
        self._first = graph.whole([*machine.first, len(machine.to)])
        to = [end if state == FRACTIONAL else state for state in machine.to]
        self._to = graph.whole([*to, end])
        numeric = [field.numeric for field in plan.fields] or [False]
        self._numeric = graph.constant(numeric, np.bool_)

    def step(self, graph: Graph, states: str) -> str:
        """Return where each row goes from states: [rows, any number of them]."""
        field = graph.op("Gather", self._field, states)
        code = graph.op("GatherElements", self.codes, field, axis=1)
        number = graph.op("GatherElements", self.numbers, field, axis=1)
        above = graph.op("Greater", number, graph.op("Gather", self._threshold, states))
        side = graph.op(
            "Where",
            graph.op("IsNaN", number),
            graph.whole(2),
            graph.cast(above, np.int64),
        )
        numeric = graph.op("Gather", self._numeric, field)
        outcome = graph.op("Where", numeric, side, code)
        splits_on = graph.op("Gather", self._splits_on, states)
        outcome = graph.op("Where", splits_on, outcome, graph.whole(0))
        slot = graph.op("Add", graph.op("Gather", self._first, states), outcome)
        return graph.op("Gather", self._to, slot)

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

        def test(inner: Graph, _: str, state: str) -> str:
            surrogate = inner.op(
                "And",
                inner.op("GreaterOrEqual", state, first),
                inner.op("Less", state, end),
            )
            return inner.op("Where", surrogate, self.step(inner, state), state)

        if self.end == len(self.plan.nodes):
            return went
        return graph.repeat(went, test, None)


def read_columns(
    plan: Plan, graph: Graph, names: Names, derive: Callable[[Field, str], str]
) -> Cells:
    """Add the inputs; return them, and what ``derive`` makes of numbers of dates."""
    if not plan.fields:
        graph.add_input("row", np.int64)
        row = graph.op("Unsqueeze", "row", graph.whole([1]))
        nothing = graph.op("Mul", row, graph.whole(0))
        rejected = graph.op("Less", nothing, graph.whole(0))
        return Cells(nothing, graph.cast(nothing, np.float64), rejected)
    codes, numbers, unfit = [], [], []
    for field, *called in zip(plan.inputs, names.columns, names.masks, strict=True):
        code, number = _read_column(graph, field, *called)
        gone = graph.op("IsNaN", number)
        if not field.numeric:
            gone = graph.op("Equal", code, graph.whole(len(field.values)))
        if plan.rejects_missing:
            unfit.append(gone)
        if plan.rejects_unseen and not field.numeric:
            unseen = graph.whole(len(field.values) + 1)
            unfit.append(graph.op("Equal", code, unseen))
        codes.append(code)
        numbers.append(number)
    numbers += [derive(field, numbers[field.source]) for field in plan.derived]
    codes += [codes[field.source] for field in plan.derived]
    rejected = graph.op("Less", codes[0], graph.whole(0))
    for some in unfit:
        rejected = graph.op("Or", rejected, some)
    return Cells(
        graph.op("Concat", *codes, axis=1),
        graph.op("Concat", *numbers, axis=1),
        rejected,
    )


def _read_column(graph: Graph, field: Field, name: str, mask: str) -> tuple[str, str]:
    """Return the codes and the numbers of a column, one of which means nothing."""
    missing = len(field.values)
    if field.kind == "number":
        graph.add_input(name, np.float64)
        number = graph.op("Unsqueeze", name, graph.whole([1]))
        if field.date is not None:  # a time within a unit counts as the unit
            number = graph.op("Floor", number)
        if field.numeric:
            zero = graph.op("Less", number, number)
            return graph.cast(zero, np.int64), number
        return _code_of_number(graph, field, number), number
    kind = object if field.kind == "text" else np.bool_
    graph.add_input(name, kind)
    cells = graph.op("Unsqueeze", name, graph.whole([1]))
    code = _code_of_text(graph, field, cells)
    if field.kind == "boolean":
        found = [_position(field, value) for value in (True, False)]
        code = graph.op("Where", cells, graph.whole(found[0]), graph.whole(found[1]))
    code = graph.op("Where", _add_mask(graph, mask), graph.whole(missing), code)
    return code, graph.cast(code, np.float64)


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
    equal = graph.op("Equal", number, graph.real([list(field.values)]))
    hits = graph.cast(equal, np.int64)
    code = graph.op("ArgMax", hits, axis=1, keepdims=1)
    known = graph.op("ReduceMax", hits, axes=[1], keepdims=1)
    unseen, missing = graph.whole(len(field.values) + 1), graph.whole(len(field.values))
    code = graph.op("Where", graph.cast(known, np.bool_), code, unseen)
    return graph.op("Where", graph.op("IsNaN", number), missing, code)


def _add_mask(graph: Graph, name: str) -> str:
    """Add an input that is false unless it is given."""
    from onnx import numpy_helper  # noqa: PLC0415

    graph.add_input(name, np.bool_, f"{ROWS} or 1: {name}")
    graph.constants.append(numpy_helper.from_array(np.array([False]), name))
    return graph.op("Unsqueeze", name, graph.whole([1]))


def fractional_predictions(walk: Walk, values: NDArray[np.float64]) -> str:
    """Return the predictions of fractional cases: [rows, classes]."""
    plan, graph = walk.plan, walk.graph
    splitting = [i for i, node in enumerate(plan.nodes) if node.split is not None]
    went = walk.taken(splitting)
    factor = _factors(walk, went, splitting)
    parents = graph.whole([max(parent, 0) for parent in plan.parents])
    root = np.zeros((1, len(plan.nodes)))
    root[0, 0] = 1.0
    zero = graph.op("Mul", factor, graph.real(0.0))
    share = graph.repeat(
        graph.op("Add", zero, graph.real(root)),
        lambda g, _, s: g.op("Mul", g.op("Gather", s, parents, axis=1), factor),
        max(*plan.depths, 1),
    )
    # A case stops at an inner node if it takes none of its branches.
    stops = graph.op("Equal", went, graph.whole([splitting]))
    column = {node: slot for slot, node in enumerate(splitting)}
    of_node = graph.whole([column.get(i, 0) for i in range(len(plan.nodes))])
    leaf = [i not in column for i in range(len(plan.nodes))]
    ends = graph.op("Gather", stops, of_node, axis=1)
    ends = graph.op("Or", ends, graph.constant([leaf], np.bool_))
    piece = graph.op("Mul", share, graph.cast(ends, np.float64))
    table = graph.real(values)
    nothing = graph.op("Gather", piece, graph.whole([0]), axis=1)
    nothing = graph.op("Mul", nothing, graph.real(np.zeros((1, values.shape[1]))))

    def add(inner: Graph, turn: str, total: str) -> str:
        slot = inner.op("Unsqueeze", turn, inner.whole([0]))
        mine = inner.op("Gather", piece, slot, axis=1)
        row = inner.op("Gather", table, slot, axis=0)
        return inner.op("Add", total, inner.op("Mul", row, mine))

    return graph.repeat(nothing, add, len(plan.nodes))


def _factors(walk: Walk, went: str, splitting: Sequence[int]) -> str:
    """Return the share of its parent's cases that each node gets: [rows, nodes]."""
    plan, graph = walk.plan, walk.graph
    column = {node: slot for slot, node in enumerate(splitting)}
    positions, shares = [0], [1.0]
    for node, parent in enumerate(plan.parents):
        if parent < 0:
            continue
        positions.append(column[parent])
        branch = node - plan.nodes[parent].first_child
        shares.append(plan.split_of(parent).shares[branch])
    to = graph.op("Gather", went, graph.whole(positions), axis=1)
    here = graph.op("Equal", to, graph.whole([list(range(len(plan.nodes)))]))
    everywhere = graph.op("Equal", to, graph.whole(walk.end))
    piece = graph.op("Where", everywhere, graph.real([shares]), graph.real(0.0))
    factor = graph.op("Where", here, graph.real(1.0), piece)
    is_root = [[node == 0 for node in range(len(plan.nodes))]]
    return graph.op("Where", graph.constant(is_root, np.bool_), graph.real(1.0), factor)


def most_likely(graph: Graph, probabilities: str, costs: Costs | None) -> str:
    """Return the class codes of fractional cases or ensembles: [rows, 1]."""
    scores = probabilities
    if costs is not None:
        cost = graph.op("Mul", probabilities, graph.real(0.0))
        for code, row in enumerate(costs):
            probability = graph.op("Gather", probabilities, graph.whole([code]), axis=1)
            cost = graph.op(
                "Add", cost, graph.op("Mul", probability, graph.real([row]))
            )
        scores = graph.op("Neg", cost)
    best = graph.op("ReduceMax", scores, axes=[1], keepdims=1)
    slack = graph.op("Mul", graph.op("Abs", best), graph.real(TIE))
    good = graph.op("GreaterOrEqual", scores, graph.op("Sub", best, slack))
    hits = graph.cast(good, np.int64)
    return graph.op("ArgMax", hits, axis=1, keepdims=1)


#: The operator set that has TreeEnsemble.
ML_OPSET = 5


_SIDES = ((AT_MOST,), (ABOVE,))


def takes(plan: Plan) -> bool:
    """Whether the operator can find the nodes of a plan."""
    splits = [node.split for node in plan.nodes if node.split is not None]
    return bool(splits) and all(_is_plain(plan, split) for split in splits)


def _is_plain(plan: Plan, split: PlanSplit) -> bool:
    return (
        plan.fields[split.field].numeric
        and split.threshold is not None
        and split.branches in (_SIDES, _SIDES[::-1])
        and (split.missing_to in (0, 1) or plan.rejects_missing)
        and not split.surrogates
    )


def arrive(plan: Plan, graph: Graph, numbers: str) -> str:
    """Return the node that each row ends in: [rows, 1], from [rows, fields]."""
    found = graph.op("TreeEnsemble", numbers, domain="ai.onnx.ml", **_attributes(plan))
    return graph.cast(found, np.int64)


def _attributes(plan: Plan) -> dict[str, Any]:
    """Return the attributes of the tree operator: inner nodes and leaves."""
    splitting = [i for i, node in enumerate(plan.nodes) if node.split is not None]
    leaves = [i for i, node in enumerate(plan.nodes) if node.split is None]
    slot = {node: at for kind in (splitting, leaves) for at, node in enumerate(kind)}
    children = [_children(plan.nodes[i]) for i in splitting]
    is_leaf = [[int(plan.nodes[c].split is None) for c in two] for two in children]
    splits = [q for i in splitting if (q := plan.nodes[i].split) is not None]
    return {
        "n_targets": 1,
        "aggregate_function": 1,  # sum, of a single tree
        "post_transform": 0,
        "tree_roots": [0],
        "nodes_featureids": [split.field for split in splits],
        "nodes_splits": _tensor([q.threshold for q in splits], np.float64),
        "nodes_modes": _tensor([0] * len(splitting), np.uint8),  # at most
        "nodes_truenodeids": [slot[two[0]] for two in children],
        "nodes_falsenodeids": [slot[two[1]] for two in children],
        "nodes_trueleafs": [two[0] for two in is_leaf],
        "nodes_falseleafs": [two[1] for two in is_leaf],
        "nodes_missing_value_tracks_true": [
            int(split.branch_of[AT_MOST] == split.missing_to) for split in splits
        ],
        "leaf_targetids": [0] * len(leaves),
        "leaf_weights": _tensor(leaves, np.float64),
    }


def _children(node: Node) -> list[int]:
    """Return the children for numbers up to the threshold and above it."""
    way = {} if node.split is None else node.split.branch_of
    return [node.child(way[side]) for side in (AT_MOST, ABOVE)]


def _tensor(values: Any, dtype: Any) -> Any:
    from onnx import numpy_helper  # noqa: PLC0415

    return numpy_helper.from_array(np.array(values, dtype=dtype))
