"""Source text of JavaScript and Python, whose values are literals and maps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from branchwise.data.schema import Value, ValueType
from branchwise.export.code_writer import Source
from branchwise.export.plan import Node
from branchwise.export.statements import Piece, Table


class ScriptSource(Source):
    """Writes the pieces of a plan, its predictions and its columns.

    ``function_lines`` are those that open a function, take a cell and close it;
    ``declaration`` is what stands around the value of a constant, ``brackets`` around a
    sequence; ``types`` are those of values, ``untyped`` where training had none.
    """

    function_lines: tuple[str, str, str]
    declaration: tuple[str, str]
    brackets: tuple[str, str]
    piece_name: str
    after_function: str
    types: ClassVar[Mapping[ValueType, str]]
    untyped: str
    set_of: str

    @staticmethod
    @abstractmethod
    def literal(value: Value) -> str:
        """Write a value so that the language reads the same."""

    @staticmethod
    @abstractmethod
    def sequence(items: Sequence[str]) -> str:
        """Write a sequence, in one line if it fits."""

    @abstractmethod
    def prediction(self, label: str, probabilities: Sequence[str]) -> str:
        """Write the label and the probabilities of a node."""

    def number(self, value: float) -> str:
        """Write a number in a condition."""
        return self.literal(value)

    def function(self, piece: Piece, body: Iterable[str]) -> Iterator[str]:
        """Yield the lines of a function, which take what they need from the cells."""
        begin, take, end = self.function_lines
        yield begin.format(piece.number, ", s0, todo" if self.plan.divides else "")
        for field in piece.fields:
            yield take.format(self.names[field], field)
        yield from body
        yield from (end, "")

    def entries(self, table: Table, written: str) -> list[str]:
        """Write where each value leads, if it is missing or other, too."""
        values = self.plan.fields[table.field].values
        pairs = [
            *zip(map(self.literal, values), table.of_codes, strict=True),
            (self.missing, table.of_missing),
            (self.other, table.of_other),
        ]
        return [written.format(key, to) for key, to in pairs if to is not None]

    def declared(self, name: str, items: Sequence[str]) -> str:
        """Write a constant that is a sequence."""
        before, after = self.declaration
        return before.format(name) + self.sequence(items) + after

    def _listed(self, name: str, lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines of a constant with a line for each entry."""
        (before, after), (begin, end) = self.declaration, self.brackets
        yield before.format(name) + begin
        yield from lines
        yield end + after

    def predictions(self) -> Iterator[str]:
        """Yield the predictions of all nodes, and the costs if they are needed."""
        yield f"{self.remark} What every node answers."
        nodes = enumerate(self.plan.nodes)
        yield from self._listed(
            "ANSWERS",
            (f"    {self._of_node(node)},  {self.remark} {at}" for at, node in nodes),
        )
        if self.plan.divides and self.plan.costs is not None:
            said = "What it costs to answer (column) where something is true (row)."
            yield f"{self.remark} {said}"
            costs = [self.row([*map(self.literal, row)]) for row in self.plan.costs]
            yield self.declared("COSTS", costs)

    def _of_node(self, node: Node) -> str:
        if node.number is not None:
            return self.literal(node.number)
        label = self.literal(self.plan.classes[node.label])
        return self.prediction(label, [*map(self.literal, node.probabilities)])

    @abstractmethod
    def row(self, items: Sequence[str]) -> str:
        """Write a row of the costs."""

    def columns(self) -> Iterator[str]:
        """Yield the types and the values of the columns."""
        fields = self.plan.fields
        said = "The types of the columns, and the values that training had."
        yield f"{self.remark} {said}"
        types = [
            self.types[f.kind] if f.numeric or f.values else self.untyped
            for f in fields
        ]
        yield self.declared("TYPES", types)
        sets = (
            self.missing
            if f.numeric
            else self.set_of.format(self.sequence([*map(self.literal, f.values)]))
            for f in fields
        )
        yield from self._listed("VALUES", (f"    {values}," for values in sets))

    def piece_list(self) -> str:
        """Write the list of the functions, if there is more than one."""
        if len(self.pieces) == 1:
            return ""
        names = [self.piece_name.format(piece.number) for piece in self.pieces]
        return self.declared("PARTS", names) + self.after_function
