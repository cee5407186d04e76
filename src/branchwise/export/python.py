"""Export to Python: one file that needs nothing but Python's own library."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from typing import ClassVar

from branchwise.data.schema import Value, ValueType
from branchwise.export.base import Options, Prediction, Runner, Target, run_program
from branchwise.export.code_writer import (
    comment,
    filled,
    finite,
    predictor,
    reader,
    template,
    wrapped,
)
from branchwise.export.plan import Plan, Row
from branchwise.export.script_writer import ScriptSource
from branchwise.export.statements import OneOf, Table

_TYPES: dict[ValueType, str] = {"text": "str", "boolean": "bool", "number": "Real"}
#: Directions of letters that would turn the line around them when it is shown.
_RIGHT_TO_LEFT = ("R", "AL", "AN")


def literal(value: Value) -> str:
    """Write a value so that Python reads the same."""
    if isinstance(value, float):
        return repr(finite(value))
    written = repr(value)
    if written.isascii():
        return written
    return "".join(
        f"\\U{ord(c):08x}" if unicodedata.bidirectional(c) in _RIGHT_TO_LEFT else c
        for c in written
    )


def _tuple(items: Sequence[str]) -> str:
    """Write a tuple, in one line if it fits."""
    line = f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if len(line) < 60:
        return line
    return "\n".join(["(", *wrapped(items, "    "), ")"])


class PythonSource(ScriptSource):
    """Writes the pieces of a plan in Python."""

    begin = ("if {}:", "elif {}:", "else:")
    end = None
    either = " or "
    remark = "#"
    identity = "is"
    negation = "not "
    ascii_only = False
    types: ClassVar[dict[ValueType, str]] = _TYPES
    set_of = "frozenset({})"
    untyped = "object"
    missing = "None"
    other = "_OTHER"
    piece_name = "_part_{}"
    function_lines = ("def _part_{}(cells{}):", "    {} = cells[{}]", "")
    after_function = "\n\n\n"
    brackets = ("(", ")")
    declaration = ("_{} = ", "")
    sequence = staticmethod(_tuple)
    literal = staticmethod(literal)

    def row(self, items: Sequence[str]) -> str:
        """Write a row of the costs."""
        return _tuple(items)

    def prediction(self, label: str, probabilities: Sequence[str]) -> str:
        """Write the label and the probabilities of a node."""
        comma = "," if len(probabilities) == 1 else ""
        return f"({label}, ({', '.join(probabilities)}{comma}))"

    def one_of(self, name: str, test: OneOf) -> str:
        """Write that a field has one of some values."""
        field = self.plan.fields[test.field]
        values = [literal(field.values[code]) for code in test.codes]
        if len(values) == 1:
            same = "is" if field.kind == "boolean" else "=="
            return f"{name} {same} {values[0]}"
        line = ", ".join(values)
        if len(line) > 60:
            line = "\n".join(["", *wrapped(values, "        "), "    "])
        return f"{name} in {{{line}}}"

    def go(self, to: str, share: str | None) -> str:
        """Return where the case goes, or list it."""
        return f"return {to}" if share is None else f"todo.append(({to}, {share}))"

    def share(self, name: str, of: str, piece: float, when: str) -> str:
        """Write a share."""
        less = f"{of} * {literal(piece)}"
        return f"{name} = {less} if {when} else {of}" if when else f"{name} = {less}"

    def choice(self, name: str) -> str | None:  # noqa: ARG002
        """Say nothing: assigning will do."""
        return None

    def assign(self, name: str, value: int) -> str:
        """Assign."""
        return f"{name} = {value}"

    def lookup(self, table: Table) -> str:
        """Look a value up in a dict."""
        name = f"_TABLE_{table.node}"
        entries = self.entries(table, "{}: {}")
        self.tables += [f"{name} = {{", *wrapped(entries, "    "), "}"]
        return f"{name}[{self.names[table.field]}]"

    def everywhere(self, table: Table) -> list[str]:
        """List all positions that a fractional case goes to."""
        name = f"_EVERY_{table.node}"
        entries = [f"({to}, {literal(piece)})" for to, piece in table.every]
        self.tables += [f"{name} = (", *wrapped(entries, "    "), ")"]
        return [
            f"for to, part in {name}:",
            f"    todo.append((to, s{table.share} * part))",
        ]


def write(plan: Plan, options: Options) -> bytes:  # noqa: ARG001
    """Write a Python module."""
    source = PythonSource(plan)
    functions = list(source.functions())
    text = template("tree.py.txt")
    uses = text["numbers_use" if plan.is_regression else "classes_use"]
    lines = [
        filled(text["head"], about=comment(plan.about), uses=uses),
        f"CLASSES = {_tuple([literal(label) for label in plan.classes])}",
        f"COLUMNS = {_tuple([literal(field.name) for field in plan.fields])}",
        "_OTHER = object()  # stands for values that training did not have",
        *source.tables,
        *("", ""),
        *functions,
        *source.predictions(),
        *source.columns(),
        *("", ""),
        reader(plan, text)
        + source.piece_list()
        + predictor(plan, len(source.pieces), text),
    ]
    return "\n".join(lines).encode()


def _run(content: bytes, plan: Plan, rows: Sequence[Row]) -> Sequence[Prediction]:
    driver = template("tree.py.txt")["driver"].encode()
    files = {"exported_tree.py": content, "driver.py": driver}
    return run_program([sys.executable, "-I", "driver.py"], files, rows, plan)


_RUNNER = Runner.anywhere("a Python process", _run)

TARGET = Target("python", ".py", write, lambda _: [_RUNNER])
