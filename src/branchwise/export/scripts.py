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

from branchwise.data.conventions.date_format import (
    ISO,
    MONTHS,
    UNITS,
    DateFormat,
    pattern_of,
)
from branchwise.data.conventions.number_format import ALIKE, NumberFormat
from branchwise.data.table_schema import Value, ValueType
from branchwise.errors import ParameterError
from branchwise.export.base import Options, Target, program_runner
from branchwise.export.code_writer import (
    BraceSource,
    Source,
    checked_name,
    comment,
    finite,
    whole_within_doubles,
    wrapped,
)
from branchwise.export.dates import day_of
from branchwise.export.plan import Field, Node, Plan
from branchwise.export.statements import Piece, Table, Test
from branchwise.text.as_html import page

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
    ``brackets`` are those of a sequence; ``types`` are those of values, ``untyped``
    where training had none.
    """

    function_lines: tuple[str, str, str]
    brackets: tuple[str, str]
    piece_name: str
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

    def page(self, template: str, **more: str) -> str:
        """Fill in a template."""
        plan = self.plan
        functions = list(self.functions())  # which collect tables
        types = [
            self.types[f.kind] if f.numeric or f.values else self.untyped
            for f in plan.inputs
        ]
        known = [
            self.missing if f.numeric else self.set_of.format(self.values(f.values))
            for f in plan.inputs
        ]
        costs = [self.cost_row([*map(self.literal, row)]) for row in plan.costs or ()]
        formats = [self._format(field.number_format) for field in plan.inputs]
        pieces = [self.piece_name.format(piece.number) for piece in self.pieces]
        return page(
            f"export/templates/{template}",
            about=comment(plan.about),
            classes=self.values(plan.classes),
            columns=self.values(field.name for field in plan.inputs),
            tables=self.tables,
            functions=functions,
            nodes=[self._prediction(node) for node in plan.nodes],
            costs=self.sequence(costs) if costs else "",
            types=self.sequence(types),
            known=known,
            formats=self.sequence(formats) if {*formats} != {self.missing} else "",
            na_values=self.sequence([*map(self.literal, plan.na_values)]),
            alike=self.sequence(
                [
                    self.row([self.literal(chr(code)), self.literal(plain)])
                    for code, plain in ALIKE.items()
                ]
            ),
            dates=self._dates(),
            features=[self._feature(field) for field in plan.derived],
            months=self._months(),
            pieces=self.sequence(pieces) if len(pieces) > 1 or plan.trees else "",
            n_trees=len(plan.trees),
            votes=plan.votes,
            weights=self.values(plan.weights) if plan.weights else "",
            divisor=self.literal(plan.divisor or 1.0),
            initial=self.values(plan.initial) if plan.initial else "",
            n_sums=plan.n_sums,
            link=plan.link,
            has_numbers=plan.has_numbers,
            is_regression=plan.is_regression,
            divides=plan.divides,
            rejects_missing=plan.rejects_missing,
            rejects_unseen=plan.rejects_unseen,
            **more,
        )

    def _format(self, how: NumberFormat | None) -> str:
        """Write how numbers are written: their pattern, and the power of ten."""
        if how is None:
            return self.missing
        return self.row([self.literal(how.pattern), "-2" if how.percent else "0"])

    def _dates(self) -> str:
        """Write how dates are read, by the names of their columns; "" if none are."""
        entries = []
        for field in self.plan.inputs:
            if field.date is not None:
                patterns = self.row(
                    [self.literal(p) for p in self.patterns(field.date)]
                )
                zoned = self.literal(field.date.zoned)
                how = self.row([str(field.date.step), zoned, patterns])
                entries.append((self.literal(field.name), how))
        return self.mapping(entries) if entries else ""

    def _feature(self, field: Field) -> str:
        """Write what is derived from a cell: its position, what, and of which units."""
        how, feature = self.plan.inputs[field.source].date, field.feature
        if how is None or feature is None:
            raise AssertionError("only dates have features")
        on = self.missing if feature.on is None else str(day_of(feature.on))
        per_day = str(UNITS["day"] // how.step)
        items = [str(field.source), self.literal(feature.feature), per_day, on]
        return f"{self.row(items)},{self.note(field.name)}"

    def _months(self) -> str:
        """Write the numbers of months by their names, if a date is written so."""
        dates = [field.date for field in self.plan.inputs if field.date is not None]
        if not any("Mon" in date.written for date in dates):
            return ""
        pairs = MONTHS.items()
        return self.mapping([(self.literal(n), str(month)) for n, month in pairs])

    def patterns(self, date: DateFormat) -> list[str]:
        """Return the regular expressions of dates: as in training, and those of ISO."""
        named = (pattern_of(written) for written in dict.fromkeys([date.written, ISO]))
        return [pattern.pattern for pattern in named if pattern is not None]

    @abstractmethod
    def mapping(self, pairs: Sequence[tuple[str, str]]) -> str:
        """Write what is looked up by a key."""

    def _prediction(self, node: Node) -> str:
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
    brackets = ("(", ")")
    goes = ("return {}", "todo.append(({}, {}))")
    shares = ("{name} = {less}", "{name} = {less} if {when} else {of}")
    assignment = "{} = {}"
    literal = staticmethod(_python_literal)
    cost_row = ScriptSource.sequence

    def mapping(self, pairs: Sequence[tuple[str, str]]) -> str:
        """Write a dict."""
        entries = [f"{key}: {value}" for key, value in pairs]
        return "\n".join(["{", *wrapped(entries, "    "), "}"])

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
    return PythonSource(plan).page("tree.py.txt").encode()


def _javascript_literal(value: Value) -> str:
    """Write a value so that JavaScript reads the same, and a page reads nothing."""
    if isinstance(value, float):
        return repr(finite(value))
    return json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e")


class JavaScriptSource(ScriptSource, BraceSource):
    """Writes the pieces of a plan in JavaScript."""

    equal = identity = "==="
    is_nan = "Number.isNaN({})"
    function_lines = ("function part_{}(cells{}) {{", "    const {} = cells[{}];", "}")
    missing = "null"
    other = "OTHER"
    goes = ("return {};", "todo.push([{}, {}]);")
    choice = "let {};"
    literal = staticmethod(_javascript_literal)
    cost_row = ScriptSource.row
    brackets = ("[", "]")
    piece_name = "part_{}"
    types: ClassVar[Mapping[ValueType, str]] = {
        "text": '"string"',
        "boolean": '"boolean"',
        "number": '"number"',
    }
    untyped = "null"
    set_of = "new Set({})"

    def mapping(self, pairs: Sequence[tuple[str, str]]) -> str:
        """Write the entries of a Map."""
        return self.sequence([self.row(pair) for pair in pairs])

    def patterns(self, date: DateFormat) -> list[str]:
        """Return the regular expressions of dates in the syntax of JavaScript."""
        return [pattern.replace("(?P<", "(?<") for pattern in super().patterns(date)]

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
    return JavaScriptSource(plan).page("tree.js", name=name).encode("ascii")


def _no_node() -> str | None:
    return None if shutil.which("node") else "there is no Node.js here (node)"


_PYTHON_RUNNER = program_runner(
    "a Python process",
    lambda _: [sys.executable, "-I", "driver.py"],
    "driver.py.txt",
    "exported_tree.py",
)
_NODE_RUNNER = program_runner(
    "Node.js",
    lambda _: [shutil.which("node") or "node", "driver.js"],
    "driver.js",
    "exported_tree.js",
    _no_node,
)

PYTHON = Target(
    "python",
    ".py",
    write_python,
    lambda _: [_PYTHON_RUNNER],
)
JAVASCRIPT = Target(
    "javascript",
    ".js",
    write_javascript,
    lambda _: [_NODE_RUNNER],
    {"name": ("tree",)},
)
