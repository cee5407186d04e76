"""Export to JavaScript: one file for Node.js and for pages, without dependencies."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from typing import ClassVar

from branchwise.data.schema import Value, ValueType
from branchwise.errors import ParameterError
from branchwise.export.base import Options, Prediction, Runner, Target, run_program
from branchwise.export.code_writer import (
    BraceSource,
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
from branchwise.export.plan import Plan, Row
from branchwise.export.script_writer import ScriptSource
from branchwise.export.statements import OneOf, Table

#: Names that a page or Node.js gives a meaning to.
_TAKEN = re.compile(
    "module|exports|require|process|global|globalThis|window|document|location|name|"
    "top|parent|frames|status|event|history|navigator|origin|length|closed"
)


def literal(value: Value) -> str:
    """Write a value so that JavaScript reads the same, and a page reads nothing."""
    if isinstance(value, float):
        return repr(finite(value))
    return json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e")


def _array(items: Sequence[str]) -> str:
    """Write an array, in one line if it fits."""
    line = f"[{', '.join(items)}]"
    return line if len(line) < 60 else "\n".join(["[", *wrapped(items, "    "), "]"])


class JavaScriptSource(ScriptSource, BraceSource):
    """Writes the pieces of a plan in JavaScript."""

    equal = identity = "==="
    is_nan = "Number.isNaN({})"
    constant = "const"
    function_lines = ("function part_{}(cells{}) {{", "    const {} = cells[{}];", "}")
    missing = "null"
    other = "OTHER"
    literal = staticmethod(literal)
    sequence = staticmethod(_array)
    declaration = ("const {} = ", ";")
    brackets = ("[", "]")
    piece_name = "part_{}"
    after_function = "\n\n"
    types: ClassVar[dict[ValueType, str]] = {
        "text": '"string"',
        "boolean": '"boolean"',
        "number": '"number"',
    }
    untyped = "null"
    set_of = "new Set({})"

    def row(self, items: Sequence[str]) -> str:
        """Write a row of the costs."""
        return f"[{', '.join(items)}]"

    def prediction(self, label: str, probabilities: Sequence[str]) -> str:
        """Write the label and the probabilities of a node."""
        return f"[{label}, {self.row(probabilities)}]"

    def value(self, field: int, code: int) -> str:
        """Write a value that fields are compared with."""
        return literal(self.plan.fields[field].values[code])

    def in_set(self, name: str, test: OneOf) -> str:
        """Look for a value in a Set."""
        values = [self.value(test.field, code) for code in test.codes]
        table = f"SET_{len(self.tables)}"
        self.tables.append(f"const {table} = new Set({_array(values)});")
        return f"{table}.has({name})"

    def go(self, to: str, share: str | None) -> str:
        """Return where the case goes, or list it."""
        return f"return {to};" if share is None else f"todo.push([{to}, {share}]);"

    def choice(self, name: str) -> str | None:
        """Declare a variable."""
        return f"let {name};"

    def lookup(self, table: Table) -> str:
        """Look a value up in a Map."""
        entries = self.entries(table, "[{}, {}]")
        name = f"TABLE_{table.node}"
        self.tables.append(f"const {name} = new Map({_array(entries)});")
        return f"{name}.get({self.names[table.field]})"

    def everywhere(self, table: Table) -> list[str]:
        """List all positions that a fractional case goes to."""
        name = f"EVERY_{table.node}"
        entries = [f"[{to}, {literal(piece)}]" for to, piece in table.every]
        self.tables.append(f"const {name} = {_array(entries)};")
        return [
            f"for (const [to, part] of {name}) {{",
            f"    todo.push([to, s{table.share} * part]);",
            "}",
        ]


def write(plan: Plan, options: Options) -> bytes:
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
    columns = [literal(field.name) for field in plan.fields]
    lines = [
        filled(text["head"], about=about, uses=filled(uses, name=name), name=name),
        f"const CLASSES = Object.freeze({_array([*map(literal, plan.classes)])});",
        f"const COLUMNS = Object.freeze({_array(columns)});",
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


def _absent() -> str | None:
    if shutil.which("node") is None:
        return "there is no Node.js here (node)"
    return None


def _run(content: bytes, plan: Plan, rows: Sequence[Row]) -> Sequence[Prediction]:
    node = shutil.which("node") or "node"
    driver = template("tree.js")["driver"].encode()
    files = {"exported_tree.js": content, "driver.js": driver}
    return run_program([node, "driver.js"], files, rows, plan)


_RUNNER = Runner("Node.js", _absent, _run)

TARGET = Target("javascript", ".js", write, lambda _: [_RUNNER], {"name": ("tree",)})
