"""Export to Python: one file that needs nothing but Python's own library."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from branchwise.data.schema import Value, ValueType
from branchwise.export.base import (
    Options,
    Prediction,
    Runner,
    Target,
    always,
    run_program,
)
from branchwise.export.code_writer import Source, comment, finite, wrapped
from branchwise.export.plan import Field, Plan, Row
from branchwise.export.statements import (
    Above,
    Known,
    Missing,
    OneOf,
    Other,
    Piece,
    Table,
    Test,
    UpTo,
    Went,
)

_TYPES: dict[ValueType, str] = {"text": "str", "boolean": "bool", "number": "Real"}
#: Directions of letters that would turn the line around them when it is shown.
_RIGHT_TO_LEFT = ("R", "AL", "AN")

_HEAD = """\
# {about}, written by branchwise.
#
# {uses}.
# A row is a dict by column name; None, NaN and absent keys are missing values.
# ValueError tells which column has a value that the tree cannot take.

from math import isfinite, isnan
from numbers import Real

"""
_CLASSES_USE = (
    "predict(row) returns a class, predict_proba(row) the chance of each of CLASSES"
)
_NUMBERS_USE = "predict(row) returns a number"

_READ = '''\
def _read(row):
    """Return the values that the tree looks at: a number, a known value, or else."""
    cells = []
    for name, kind, values in zip(COLUMNS, _TYPES, _VALUES):
        value = row.get(name)
        if value is None or (isinstance(value, Real) and value != value):
{missing}
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is Real):
            wanted = {{str: "text", bool: "True or False", Real: "a number"}}[kind]
            raise ValueError(f"Column {{name!r}} must be {{wanted}}. Got {{value!r}}.")
        if kind is Real:
            value = _number(name, value)
        if values is not None and value not in values:
{unseen}
        cells.append(value)
    return cells


def _number(name, value):
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not isfinite(number):
        raise ValueError(f"Column {{name!r}} must be a finite number. Got {{value!r}}.")
    return number


'''
_REJECT_MISSING = """\
            raise ValueError(f"Column {name!r} is missing, which the tree refuses.")"""
_ALLOW_MISSING = """\
            cells.append(float("nan") if values is None else None)
            continue"""
_REJECT_UNSEEN = """\
            raise ValueError(
                f"Column {name!r} has the value {value!r}, which training did not have."
            )"""
_ALLOW_UNSEEN = "            value = _OTHER"

_ARRIVE = '''\
def _arrive(cells):
    """Return the node where a case ends."""
    to = _part_0(cells)
{on}    return to


'''
_GO_ON = """\
    while to < 0:
        to = _PARTS[-to](cells)
"""
_PREDICT_CLASS = '''\
def predict(row):
    """Return the class of a row."""
    return _ANSWERS[_arrive(_read(row))][0]


def predict_proba(row):
    """Return the chance of each of CLASSES."""
    return list(_ANSWERS[_arrive(_read(row))][1])
'''
_PREDICT_NUMBER = '''\
def predict(row):
    """Return the number that is expected for a row."""
    return _ANSWERS[_arrive(_read(row))]
'''

_ARRIVE_FRACTIONAL = '''\
def _arrive(cells):
    """Return the nodes where the parts of a case end, in order, with their shares."""
    ends, todo = [], []
    _part_0(cells, 1.0, todo)
    while todo:
        to, share = todo.pop()
        if to >= 0:
            ends.append((to, share))
        else:
            _PARTS[-to](cells, share, todo)
    return sorted(ends)


'''
_PREDICT_CLASS_FRACTIONAL = '''\
def _chances(ends):
    chances = [0.0] * len(CLASSES)
    for node, share in ends:
        for code, chance in enumerate(_ANSWERS[node][1]):
            chances[code] += chance * share
    return chances


def _best(chances):
    """Return the first class that is as good as the best, up to rounding."""
    scores = chances
{costs}    best = max(scores)
    least = best - abs(best) * 1e-9
    return next(code for code, score in enumerate(scores) if score >= least)


def predict(row):
    """Return the class of a row."""
    ends = _arrive(_read(row))
    if len(ends) == 1:
        return _ANSWERS[ends[0][0]][0]
    return CLASSES[_best(_chances(ends))]


def predict_proba(row):
    """Return the chance of each of CLASSES."""
    ends = _arrive(_read(row))
    if len(ends) == 1:
        return list(_ANSWERS[ends[0][0]][1])
    return _chances(ends)
'''
_EXPECTED_COSTS = """\
    scores = []
    for answer in range(len(CLASSES)):
        price = 0.0
        for chance, costs in zip(chances, _COSTS):
            price += chance * costs[answer]
        scores.append(-price)
"""
_PREDICT_NUMBER_FRACTIONAL = '''\
def predict(row):
    """Return the number that is expected for a row."""
    ends = _arrive(_read(row))
    if len(ends) == 1:
        return _ANSWERS[ends[0][0]]
    number = 0.0
    for node, share in ends:
        number += _ANSWERS[node] * share
    return number
'''


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


class PythonSource(Source):
    """Writes the pieces of a plan in Python."""

    begin = ("if {}:", "elif {}:", "else:")
    end = None
    either = " or "
    remark = "#"
    ascii_only = False

    def function(self, piece: Piece, body: Iterable[str]) -> Iterator[str]:
        """Yield the lines of a function, which take what they need from the cells."""
        more = ", s0, todo" if self.plan.divides else ""
        yield f"def _part_{piece.number}(cells{more}):"
        for field in piece.fields:
            yield f"    {self.names[field]} = cells[{field}]"
        yield from body
        yield from ("", "")

    def test(self, test: Test) -> str:
        """Write a test."""
        if isinstance(test, Went):
            return f"b{test.level} == {test.branch}"
        name = self.names[test.field]
        if isinstance(test, OneOf):
            return self._one_of(name, self.plan.fields[test.field], test.codes)
        if isinstance(test, UpTo):
            return f"{name} <= {literal(test.threshold)}"
        if isinstance(test, Above):
            return f"{name} > {literal(test.threshold)}"
        if isinstance(test, Known):
            return f"not isnan({name})"
        if isinstance(test, Other):
            return f"{name} is _OTHER"
        return f"isnan({name})" if self._numeric(test) else f"{name} is None"

    def _numeric(self, test: Missing) -> bool:
        return self.plan.fields[test.field].numeric

    def _one_of(self, name: str, field: Field, codes: Sequence[int]) -> str:
        if len(codes) > 1:
            values = [literal(field.values[code]) for code in codes]
            line = ", ".join(values)
            if len(line) > 60:
                line = "\n".join(["", *wrapped(values, "        "), "    "])
            return f"{name} in {{{line}}}"
        same = "is" if field.kind == "boolean" else "=="
        return f"{name} {same} {literal(field.values[codes[0]])}"

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
        values = self.plan.fields[table.field].values
        entries = [
            *zip(map(literal, values), table.of_codes, strict=True),
            ("None", table.of_missing),
            ("_OTHER", table.of_other),
        ]
        written = [f"{key}: {to}" for key, to in entries if to is not None]
        name = f"_TABLE_{table.node}"
        self.tables += [f"{name} = {{", *wrapped(written, "    "), "}"]
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
    uses = _NUMBERS_USE if plan.is_regression else _CLASSES_USE
    lines = [
        _HEAD.format(about=comment(plan.about), uses=uses),
        f"CLASSES = {_tuple([literal(label) for label in plan.classes])}",
        f"COLUMNS = {_tuple([literal(field.name) for field in plan.fields])}",
        "_OTHER = object()  # stands for values that training did not have",
        *source.tables,
        *("", ""),
        *functions,
        *_predictions(plan),
        *_columns(plan),
        *("", ""),
        _read(plan) + _pieces(source) + _predict(plan, source),
    ]
    return "\n".join(lines).encode()


def _predictions(plan: Plan) -> Iterator[str]:
    yield "# What every node answers."
    yield "_ANSWERS = ("
    for position, node in enumerate(plan.nodes):
        if node.number is not None:
            prediction = literal(node.number)
        else:
            probabilities = ", ".join(map(literal, node.probabilities))
            comma = "," if len(node.probabilities) == 1 else ""
            prediction = (
                f"({literal(plan.classes[node.label])}, ({probabilities}{comma}))"
            )
        yield f"    {prediction},  # {position}"
    yield ")"
    if plan.divides and plan.costs is not None:
        yield "# What it costs to answer (column) where something is true (row)."
        yield f"_COSTS = {_tuple([_tuple([*map(literal, c)]) for c in plan.costs])}"


def _columns(plan: Plan) -> Iterator[str]:
    yield "# The types of the columns, and the values that training had."
    types = [_TYPES[f.kind] if f.numeric or f.values else "object" for f in plan.fields]
    yield f"_TYPES = {_tuple(types)}"
    yield "_VALUES = ("
    for field in plan.fields:
        values = _tuple([literal(value) for value in field.values])
        yield "    None," if field.numeric else f"    frozenset({values}),"
    yield ")"


def _read(plan: Plan) -> str:
    missing = _REJECT_MISSING if plan.rejects_missing else _ALLOW_MISSING
    unseen = _REJECT_UNSEEN if plan.rejects_unseen else _ALLOW_UNSEEN
    return _READ.format(missing=missing, unseen=unseen)


def _pieces(source: PythonSource) -> str:
    """Write the list of the functions, if there is more than one."""
    if len(source.pieces) == 1:
        return ""
    names = [f"_part_{piece.number}" for piece in source.pieces]
    return f"_PARTS = {_tuple(names)}\n\n\n"


def _predict(plan: Plan, source: PythonSource) -> str:
    if not plan.divides:
        on = _GO_ON if len(source.pieces) > 1 else ""
        prediction = _PREDICT_NUMBER if plan.is_regression else _PREDICT_CLASS
        return _ARRIVE.format(on=on) + prediction
    if plan.is_regression:
        return _ARRIVE_FRACTIONAL + _PREDICT_NUMBER_FRACTIONAL
    costs = "" if plan.costs is None else _EXPECTED_COSTS
    return _ARRIVE_FRACTIONAL + _PREDICT_CLASS_FRACTIONAL.format(costs=costs)


# The module may import what it needs, which is there already, and nothing else: no
# file, no network, no other program.
_DRIVER = b"""\
import json, math, numbers, sys

with open("exported_tree.py", "rb") as file:
    code = compile(file.read(), "exported_tree.py", "exec")
def refuse(event, _):
    if event != "exec":
        raise PermissionError(f"an export must not use {event}")
sys.addaudithook(refuse)
exec(code, tree := {})
for line in sys.stdin.buffer:
    row = dict(zip(tree["COLUMNS"], json.loads(line)))
    try:
        result = [tree["predict"](row)]
        if tree["CLASSES"]:
            result = [tree["CLASSES"].index(result[0]), *tree["predict_proba"](row)]
    except ValueError:
        result = None
    print(json.dumps(result))
"""


def _run(content: bytes, plan: Plan, rows: Sequence[Row]) -> Sequence[Prediction]:
    files = {"exported_tree.py": content, "driver.py": _DRIVER}
    return run_program([sys.executable, "-I", "driver.py"], files, rows, plan)


_RUNNER = Runner("a Python process", always, _run)

TARGET = Target("python", ".py", write, lambda _: [_RUNNER])
