"""Exports to Python and JavaScript: one file each, without dependencies."""

from __future__ import annotations

import json
import re
import shutil
import sys
import unicodedata
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from branchwise.data.schema import Value, ValueType
from branchwise.errors import ParameterError
from branchwise.export.base import Options, Prediction, Runner, Target, run_program
from branchwise.export.code_writer import (
    BraceSource,
    Source,
    checked_name,
    comment,
    filled,
    finite,
    predictor,
    reader,
    template,
    whole_within_doubles,
    wrapped,
)
from branchwise.export.plan import Node, Plan, Row
from branchwise.export.statements import Piece, Table, Test

#: Directions of letters that would turn the line around them when it is shown.
_RIGHT_TO_LEFT = ("R", "AL", "AN")
#: Names that a page or Node.js gives a meaning to.
_TAKEN = re.compile(
    "module|exports|require|process|global|globalThis|window|document|location|name|"
    "top|parent|frames|status|event|history|navigator|origin|length|closed"
)


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

    @abstractmethod
    def cost_row(self, items: Sequence[str]) -> str:
        """Write a row of the costs."""

    @staticmethod
    @abstractmethod
    def literal(value: Value) -> str:
        """Write a value so that the language reads the same."""

    def sequence(self, items: Sequence[str]) -> str:
        """Write a sequence, in one line if it fits."""
        line, (begin, end) = self.row(items), self.brackets
        fits = len(line) < 60
        return line if fits else "\n".join([begin, *wrapped(items, "    "), end])

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
            rows = ([*map(self.literal, row)] for row in self.plan.costs)
            yield self.declared("COSTS", [self.cost_row(row) for row in rows])

    def _of_node(self, node: Node) -> str:
        if node.number is not None:
            return self.literal(node.number)
        label = self.literal(self.plan.classes[node.label])
        return self.row([label, self.row([*map(self.literal, node.probabilities)])])

    def row(self, items: Sequence[str]) -> str:
        """Write a sequence in one line."""
        begin, end = self.brackets
        # A comma makes a tuple of what stands alone between parentheses.
        comma = "," if begin == "(" and len(items) == 1 else ""
        return f"{begin}{', '.join(items)}{comma}{end}"

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
            self.missing if f.numeric else self.set_of.format(self.values(f.values))
            for f in fields
        )
        yield from self._listed("VALUES", (f"    {values}," for values in sets))

    def piece_list(self) -> str:
        """Write the list of the functions, if there is more than one."""
        if len(self.pieces) == 1:
            return ""
        names = [self.piece_name.format(piece.number) for piece in self.pieces]
        return self.declared("PARTS", names) + self.after_function

    def values(self, values: Iterable[Value]) -> str:
        """Write values as a sequence."""
        return self.sequence([*map(self.literal, values)])


def _python_literal(value: Value) -> str:
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


class PythonSource(ScriptSource):
    """Writes the pieces of a plan in Python."""

    begin = ("if {}:", "elif {}:", "else:")
    end = None
    either = " or "
    remark = "#"
    identity = "is"
    negation = "not "
    ascii_only = False
    types: ClassVar[Mapping[ValueType, str]] = {
        "text": "str",
        "boolean": "bool",
        "number": "Real",
    }
    set_of = "frozenset({})"
    untyped = "object"
    missing = "None"
    other = "_OTHER"
    piece_name = "_part_{}"
    function_lines = ("def _part_{}(cells{}):", "    {} = cells[{}]", "")
    after_function = "\n\n\n"
    brackets = ("(", ")")
    declaration = ("_{} = ", "")
    goes = ("return {}", "todo.append(({}, {}))")
    shares = ("{name} = {less}", "{name} = {less} if {when} else {of}")
    assignment = "{} = {}"
    literal = staticmethod(_python_literal)
    cost_row = ScriptSource.sequence

    def one_of(self, name: str, test: Test) -> str:
        """Write that a field has one of some values."""
        field = self.plan.fields[test.field]
        values = [self.literal(field.values[code]) for code in test.codes]
        if len(values) == 1:
            same = "is" if field.kind == "boolean" else "=="
            return f"{name} {same} {values[0]}"
        line = ", ".join(values)
        if len(line) > 60:
            line = "\n".join(["", *wrapped(values, "        "), "    "])
        return f"{name} in {{{line}}}"

    def lookup(self, table: Table) -> str:
        """Look a value up in a dict."""
        name = f"_TABLE_{table.node}"
        entries = self.entries(table, "{}: {}")
        self.tables += [f"{name} = {{", *wrapped(entries, "    "), "}"]
        return f"{name}[{self.names[table.field]}]"

    def everywhere(self, table: Table) -> list[str]:
        """List all positions that a fractional case goes to."""
        name = f"_EVERY_{table.node}"
        entries = [f"({to}, {self.literal(piece)})" for to, piece in table.every]
        self.tables += [f"{name} = (", *wrapped(entries, "    "), ")"]
        return [
            f"for to, part in {name}:",
            f"    todo.append((to, s{table.share} * part))",
        ]


def write_python(plan: Plan, options: Options) -> bytes:  # noqa: ARG001
    """Write a Python module."""
    source = PythonSource(plan)
    functions = list(source.functions())
    text = template("tree.py.txt")
    uses = text["numbers_use" if plan.is_regression else "classes_use"]
    lines = [
        filled(text["head"], about=comment(plan.about), uses=uses),
        f"CLASSES = {source.values(plan.classes)}",
        f"COLUMNS = {source.values(field.name for field in plan.fields)}",
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


def _javascript_literal(value: Value) -> str:
    """Write a value so that JavaScript reads the same, and a page reads nothing."""
    if isinstance(value, float):
        return repr(finite(value))
    return json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e")


class JavaScriptSource(ScriptSource, BraceSource):
    """Writes the pieces of a plan in JavaScript."""

    equal = identity = "==="
    is_nan = "Number.isNaN({})"
    constant = "const"
    function_lines = ("function part_{}(cells{}) {{", "    const {} = cells[{}];", "}")
    missing = "null"
    other = "OTHER"
    goes = ("return {};", "todo.push([{}, {}]);")
    choice = "let {};"
    literal = staticmethod(_javascript_literal)
    cost_row = ScriptSource.row
    declaration = ("const {} = ", ";")
    brackets = ("[", "]")
    piece_name = "part_{}"
    after_function = "\n\n"
    types: ClassVar[Mapping[ValueType, str]] = {
        "text": '"string"',
        "boolean": '"boolean"',
        "number": '"number"',
    }
    untyped = "null"
    set_of = "new Set({})"

    def value(self, field: int, code: int) -> str:
        """Write a value that fields are compared with."""
        return self.literal(self.plan.fields[field].values[code])

    def in_set(self, name: str, test: Test) -> str:
        """Look for a value in a Set."""
        values = [self.value(test.field, code) for code in test.codes]
        table = f"SET_{len(self.tables)}"
        self.tables.append(f"const {table} = new Set({self.sequence(values)});")
        return f"{table}.has({name})"

    def lookup(self, table: Table) -> str:
        """Look a value up in a Map."""
        entries = self.entries(table, "[{}, {}]")
        name = f"TABLE_{table.node}"
        self.tables.append(f"const {name} = new Map({self.sequence(entries)});")
        return f"{name}.get({self.names[table.field]})"

    def everywhere(self, table: Table) -> list[str]:
        """List all positions that a fractional case goes to."""
        name = f"EVERY_{table.node}"
        entries = [f"[{to}, {self.literal(piece)}]" for to, piece in table.every]
        self.tables.append(f"const {name} = {self.sequence(entries)};")
        return [
            f"for (const [to, part] of {name}) {{",
            f"    todo.push([to, s{table.share} * part]);",
            "}",
        ]


def write_javascript(plan: Plan, options: Options) -> bytes:
    """Write a script."""
    name = checked_name(options["name"], "javascript")
    if _TAKEN.fullmatch(name):
        raise ParameterError(
            "name of the export to 'javascript' must be no name that browsers or "
            f"Node.js give a meaning to. Got {name!r}."
        )
    whole_within_doubles(plan.classes, "JavaScript")
    for field in plan.fields:
        whole_within_doubles(field.values, "JavaScript")
    source = JavaScriptSource(plan)
    functions = list(source.functions())
    text = template("tree.js")
    uses = text["numbers_use" if plan.is_regression else "classes_use"]
    about = comment(plan.about)
    names = ["CLASSES", "COLUMNS", "predict"]
    if not plan.is_regression:
        names.append("predictProba")
    classes = source.values(plan.classes)
    columns = source.values(field.name for field in plan.fields)
    lines = [
        filled(text["head"], about=about, uses=filled(uses, name=name), name=name),
        f"const CLASSES = Object.freeze({classes});",
        f"const COLUMNS = Object.freeze({columns});",
        "const OTHER = {};  // stands for values that training did not have",
        *source.tables,
        "",
        *functions,
        *source.predictions(),
        *source.columns(),
        "",
        reader(plan, text)
        + source.piece_list()
        + predictor(plan, len(source.pieces), text)
        + filled(text["tail"], names=", ".join(names), name=name),
    ]
    return "\n".join(lines).encode("ascii")


def _no_node() -> str | None:
    return None if shutil.which("node") else "there is no Node.js here (node)"


def _run_python(
    content: bytes, plan: Plan, rows: Sequence[Row]
) -> Sequence[Prediction]:
    driver = template("tree.py.txt")["driver"].encode()
    files = {"exported_tree.py": content, "driver.py": driver}
    return run_program([sys.executable, "-I", "driver.py"], files, rows, plan)


def _run_javascript(
    content: bytes, plan: Plan, rows: Sequence[Row]
) -> Sequence[Prediction]:
    driver = template("tree.js")["driver"].encode()
    files = {"exported_tree.js": content, "driver.js": driver}
    return run_program([shutil.which("node") or "node", "driver.js"], files, rows, plan)


_PYTHON_RUNNER = Runner.anywhere("a Python process", _run_python)
_NODE_RUNNER = Runner("Node.js", _no_node, _run_javascript)

PYTHON = Target("python", ".py", write_python, lambda _: [_PYTHON_RUNNER])
JAVASCRIPT = Target(
    "javascript", ".js", write_javascript, lambda _: [_NODE_RUNNER], {"name": ("tree",)}
)
