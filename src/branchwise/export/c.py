"""Export to C: one file of C99, which allocates nothing and is C++ as well."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from branchwise.data.table_schema import ValueType
from branchwise.errors import ExportError
from branchwise.export.base import Options, Prediction, Runner, Target, run_in_folder
from branchwise.export.code_writer import (
    BraceSource,
    checked_name,
    comment,
    finite,
    identifiers,
    label_word,
    whole_within_doubles,
    wrapped,
)
from branchwise.export.date_steps import steps_from_number
from branchwise.export.dates import number_of, units_note
from branchwise.export.plan import Cell, Field, Plan, Row
from branchwise.export.statements import Piece, Table, Test
from branchwise.text.as_html import page
from branchwise.text.words import word

#: A string of C99 may have so many characters.
_LONGEST = 4000
#: Decimals up to here are read exactly by every compiler, if twice them is whole.
_LARGEST_DECIMAL = 2**31


def number(value: float) -> str:
    """Write a number exactly: only hexadecimal digits are sure to be, in C."""
    if abs(finite(value)) < _LARGEST_DECIMAL and (value * 2).is_integer():
        return repr(float(value))
    return float(value).hex()


def text_bytes(value: str) -> bytes:
    """Return a text as C has it, or say why it cannot."""
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        raise ExportError(
            f"C cannot have the text {value!r}, which is no valid Unicode. Rename it."
        ) from None
    if b"\0" in encoded:
        raise ExportError(
            f"C cannot have the text {value!r}: its texts end at the first NUL. Rename "
            "it, or export the model to another target."
        )
    return encoded


def string(encoded: bytes) -> str:
    """Write a string, in ASCII and without trigraphs."""
    return '"' + "".join(map(_character, encoded)) + '"'


def _character(byte: int) -> str:
    char = chr(byte)
    if char in '"\\?':
        return f"\\{char}"
    return char if 32 <= byte < 127 else f"\\{byte:03o}"


def array(declared: str, items: Sequence[str]) -> list[str]:
    """Write an array."""
    return [f"{declared}[{len(items)}] = {{", *wrapped(items, "    "), "};"]


class Strings:
    """Texts, as strings or, if they are too long for these, arrays of their own."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.long: list[str] = []
        self._count = 0

    def __call__(self, value: str) -> str:
        """Return how a text is written where it is used."""
        encoded = text_bytes(value)
        if len(encoded) <= _LONGEST:
            return string(encoded)
        name = f"{self._prefix}_text_{self._count}"
        self._count += 1
        bytes_ = [f"'\\{byte:03o}'" for byte in (*encoded, 0)]
        self.long += array(f"static const char {name}", bytes_)
        return name


_FLAGS = ("-std=c99", "-ffp-contract=off")
#: Bytes of an export from which compiling takes longer than what -O1 saves.
_LARGE = 300_000

_MEMBERS: dict[ValueType, str] = {
    "text": "const char *{};",
    "boolean": "int {};",
    "number": "double {};",
}


def compiler() -> str | None:
    """Return where a C compiler is."""
    found = (shutil.which(name) for name in ("cc", "gcc", "clang"))
    return next((path for path in found if path), None)


def _absent() -> str | None:
    return None if compiler() else "there is no C compiler here (cc, gcc, clang)"


def runner(options: Options) -> Sequence[Runner]:
    """Return the way to run what was written with some options."""

    def run(content: bytes, plan: Plan, rows: Sequence[Row]) -> Sequence[Prediction]:
        flags = (*_FLAGS, "-O1" if len(content) < _LARGE else "-O0")
        return compile_and_run(content, plan, rows, options["name"], flags)

    return [Runner("a compiled C program", _absent, run)]


def compile_and_run(
    content: bytes, plan: Plan, rows: Sequence[Row], prefix: str, flags: Sequence[str]
) -> list[Prediction]:
    """Compile an export with its driver, run it, and return the predictions."""
    driver = _driver(plan, prefix).encode()
    files = {"exported_tree.c": content, "driver.c": driver}
    files["rows"] = _serialised(plan, rows)
    compiled = [compiler() or "cc", *flags, "driver.c", "-o", "driver", "-lm"]
    # The folder is where programs start, and "." is not where they are looked for.
    results = run_in_folder([compiled, ["./driver"]], files, result="results")
    return list(_run_predictions(results, plan))


def _driver(plan: Plan, prefix: str) -> str:
    take, free = [], []
    names = identifiers(field.name for field in plan.fields)
    for field, name in zip(plan.inputs, names, strict=False):
        if field.kind == "text":
            take.append(f"row.{name} = take_text(rows);")
            free.append(f"free((void *)row.{name});")
        else:
            take.append(f"if (!take(&row.{name}, sizeof row.{name}, rows)) return 3;")
    numbers = max(1, len(plan.classes))
    path = "export/templates/driver.c"
    return page(path, p=prefix, numbers=numbers, take=take, free=free)


def _serialised(plan: Plan, rows: Sequence[Row]) -> bytes:
    cells = (_cell(f, c) for row in rows for f, c in zip(plan.inputs, row, strict=True))
    return struct.pack("=i", len(rows)) + b"".join(cells)


def _cell(field: Field, cell: Cell) -> bytes:
    if field.date is not None:
        return struct.pack("=d", number_of(field.date, cell))
    if field.kind == "number":
        return struct.pack("=d", float("nan") if cell is None else float(cell))
    if field.kind == "boolean":
        return struct.pack("=i", -1 if cell is None else int(cell))
    if cell is None:
        return struct.pack("=i", -1)
    try:
        text = str(cell).encode()
    except UnicodeEncodeError:
        text = b"\0"
    if b"\0" in text:
        raise ExportError(
            f"Column {field.name!r} has the value {cell!r} in a row, and no text of C "
            "can be that: it has a NUL, or is no valid Unicode. Leave such rows out."
        )
    return struct.pack("=i", len(text)) + text


def _run_predictions(content: bytes, plan: Plan) -> Iterator[Prediction]:
    layout = struct.Struct(f"=i{max(1, len(plan.classes))}d")
    for label, *numbers in layout.iter_unpack(content):
        if label < 0:
            yield None
        elif plan.is_regression:
            yield numbers[0], ()
        else:
            yield plan.classes[label], tuple(numbers)


class CSource(BraceSource):
    """Writes the pieces of a plan in C.

    Text, booleans and numbers that are values become codes first, by their order.
    """

    shares = (
        "const double {name} = {less};",
        "const double {name} = {when} ? {less} : {of};",
    )
    choice = "int {};"

    def __init__(self, plan: Plan, prefix: str) -> None:
        super().__init__(plan)
        self.prefix = prefix
        # Columns become names in lower case: these can be none of them.
        self.upper = prefix.upper()
        self.missing = f"{self.upper}_MISSING"
        self.other = f"{self.upper}_OTHER"
        self.goes = ("return {};", f"{self.upper}_go(todo, {{}}, {{}});")
        self.order = [_order(field) for field in plan.fields]
        self.rank = [
            {code: rank for rank, code in enumerate(of_field)}
            for of_field in self.order
        ]
        self.offset = _positions(plan)

    def function(self, piece: Piece, body: Iterable[str]) -> Iterator[str]:
        """Yield the lines of a function, which take what they need from the cells."""
        p = self.prefix
        takes = f"(const struct {p}_cells *cells)"
        result = "int"
        if self.plan.divides:
            takes = f"{takes[:-1]}, double s0, struct {p}_places *todo)"
            result = "void"
        yield f"static {result} {p}_part_{piece.number}{takes}"
        yield "{"
        if not piece.fields:
            yield "    (void)cells;"
        for field in piece.fields:
            kind, name = self.offset[field][0], self.names[field]
            yield f"    const {kind} {name} = {self.cell(field)};"
        yield from body
        yield from ("}", "")

    def cell(self, field: int) -> str:
        """Write where the value of a field is kept."""
        kind, offset = self.offset[field]
        return f"cells->{'number' if kind == 'double' else 'code'}[{offset}]"

    def number(self, value: float) -> str:
        """Write a number in a condition, with what it is in decimals."""
        written = number(value)
        return f"{written} /* {value!r} */" if "x" in written else written

    def value(self, field: int, code: int) -> str:
        """Write the code of a value, with the value."""
        shown = label_word(self.plan.fields[field].values[code])
        return f"{self.rank[field][code]} /* {comment(shown)} */"

    def in_set(self, name: str, test: Test) -> str:
        """Look for a code in an array of marks."""
        marks = ["0"] * (len(self.order[test.field]) + 2)
        for code in test.codes:
            marks[self.rank[test.field][code] + 2] = "1"
        table = f"{self.upper}_SET_{len(self.tables)}"
        self._array(f"unsigned char {table}", marks)
        return f"{table}[{name} + 2]"

    def lookup(self, table: Table) -> str:
        """Look a code up in an array."""
        entries = [table.of_other or 0, table.of_missing or 0]
        entries += [table.of_codes[code] for code in self.order[table.field]]
        name = f"{self.upper}_TABLE_{table.node}"
        self._array(f"int {name}", [str(to) for to in entries])
        return f"{name}[{self.names[table.field]} + 2]"

    def everywhere(self, table: Table) -> list[str]:
        """List all positions that a fractional case goes to."""
        name = f"{self.upper}_EVERY_{table.node}"
        shares = f"{self.upper}_SHARES_{table.node}"
        self._array(f"int {name}", [str(to) for to, _ in table.every])
        self._array(f"double {shares}", [number(share) for _, share in table.every])
        return [
            "int k_;",
            f"for (k_ = 0; k_ < {len(table.every)}; k_++) {{",
            f"    {self.go(f'{name}[k_]', f's{table.share} * {shares}[k_]')}",
            "}",
        ]

    def _array(self, declared: str, items: Sequence[str]) -> None:
        self.tables += array(f"static const {declared}", items)


def _order(field: Field) -> list[int]:
    """Return the codes of a field in the order in which C looks for their values."""
    codes = range(len(field.values))
    if field.kind == "text":
        return sorted(codes, key=lambda code: text_bytes(str(field.values[code])))
    return sorted(codes, key=lambda code: field.values[code])


def _positions(plan: Plan) -> list[tuple[str, int]]:
    """Return the type of every field's cell, and its position among those."""
    counts = {"double": 0, "int": 0}
    positions = []
    for field in plan.fields:
        kind = "double" if field.numeric else "int"
        positions.append((kind, counts[kind]))
        counts[kind] += 1
    return positions


def write(plan: Plan, options: Options) -> bytes:
    """Write a C file."""
    prefix = checked_name(options["name"], "c")
    whole_within_doubles([v for field in plan.fields for v in field.values], "C")
    source, strings = CSource(plan, prefix), Strings(prefix)
    functions = list(source.functions())
    fields = [_field(source, strings, at) for at in range(len(plan.inputs))]
    arrays = _arrays(source, strings)
    nothing = {"text": "NULL", "boolean": "-1", "number": "NAN"}
    n_leaves = max(
        sum(node.split is None for node in tree.nodes) for tree in plan.trees or (plan,)
    )
    n_codes = sum(kind == "int" for kind, _ in source.offset)
    predictions = [node.probabilities or (node.number or 0.0,) for node in plan.nodes]
    text = page(
        "export/templates/tree.c",
        p=prefix,
        P=source.upper,
        about=comment(plan.about),
        classes=len(plan.classes),
        columns=max(1, len(plan.inputs)),
        fields=fields,
        derived=[_derived(source, at) for at in range(len(fields), len(plan.fields))],
        divides=plan.divides,
        rejects_missing=plan.rejects_missing,
        rejects_unseen=plan.rejects_unseen,
        n_codes=n_codes,
        n_numbers=len(source.offset) - n_codes,
        long_texts=strings.long,
        arrays={name: "\n".join(lines) for name, lines in arrays.items()},
        missing_row=", ".join(nothing[field.kind] for field in plan.inputs) or "0",
        leaves=n_leaves,
        stack=max(1, round(n_leaves * 24 / 1000)),
        costs=[", ".join(map(number, row)) for row in plan.costs or ()],
        tables=source.tables,
        functions=functions,
        nodes=[", ".join(map(number, row)) for row in predictions],
        coded={field.kind for field in plan.fields if field.values},
        n_trees=len(plan.trees),
        votes=plan.votes,
        divisor=number(plan.divisor or 1.0),
        n_sums=plan.n_sums,
        link=plan.link,
        has_numbers=plan.has_numbers,
        **_of_trees(plan, prefix),
    )
    return text.encode("ascii")


def _of_trees(plan: Plan, prefix: str) -> dict[str, str]:
    """Return the weights of trees and the sums before them, each as an array."""
    given = {"weights": plan.weights, "initial": plan.initial}
    arrays = {
        name: array(f"static const double {prefix}_{name}", [*map(number, numbers)])
        for name, numbers in given.items()
        if numbers
    }
    return {name: "\n".join(arrays.get(name, ())) for name in given}


def _arrays(source: CSource, strings: Strings) -> dict[str, list[str]]:
    """Return the arrays of the file, as lines: empty where there is none."""
    plan, p = source.plan, source.prefix
    columns = [strings(field.name) for field in plan.inputs] or ["NULL"]
    arrays = {"columns": array(f"const char *const {p}_columns", columns), "pieces": []}
    if plan.classes:
        names = [c if isinstance(c, str) else word(c) for c in plan.classes]
        classes = [strings(name) for name in names]
        labels = [str(node.label) for node in plan.nodes]
        arrays["classes"] = array(f"const char *const {p}_classes", classes)
        arrays["labels"] = array(f"static const int {p}_labels", labels)
    if len(source.pieces) > 1 or plan.divides or plan.trees:
        pieces = [f"{p}_part_{piece.number}" for piece in source.pieces]
        arrays["pieces"] = array(f"static const {p}_part {p}_parts", pieces)
    return arrays


def _field(source: CSource, strings: Strings, position: int) -> dict[str, Any]:
    """Return what the template says of a column."""
    field, name = source.plan.fields[position], source.names[position]
    values = [field.values[code] for code in source.order[position]]
    declared = f"{source.prefix}_values_{position}"
    lines: list[str] = []
    if values and field.kind == "text":
        texts = [strings(str(value)) for value in values]
        lines = array(f"static const char *const {declared}", texts)
    elif values and field.kind == "number":
        numbers = [number(float(value)) for value in values]
        lines = array(f"static const double {declared}", numbers)
    codes = (
        str(values.index(value)) if value in values else source.other
        for value in (False, True)
    )
    return {
        "name": name,
        "member": _MEMBERS[field.kind].format(name),
        "note": comment(label_word(field.name)) + units_note(field),
        "is_date": field.date is not None,
        "kind": field.kind,
        "numeric": field.numeric,
        "cell": source.cell(position),
        "n_values": len(values),
        "array": "\n".join(lines),
        "booleans": ", ".join(codes),
    }


def _derived(source: CSource, position: int) -> dict[str, Any]:
    """Return what the template says of a number that is derived from a date."""
    field = source.plan.fields[position]
    date = source.plan.inputs[field.source].date
    if date is None or field.feature is None:
        raise AssertionError("only dates have features")
    divide = f"{source.prefix}_floor_div"
    lines = []
    for step in steps_from_number(field.feature, date):
        whole = f"{step.left} {step.sign} {step.right}"
        if step.sign == "//":
            whole = f"{divide}({step.left}, {step.right})"
        lines.append(f"const double {step.name} = {whole};")
    return {
        "lines": lines,
        "result": step.name,
        "cell": source.cell(position),
        "source": source.cell(field.source),
        "note": comment(label_word(field.name)),
    }


TARGET = Target("c", ".c", write, runner, {"name": ("tree",)})
