"""``branchwise schema``: what each column is taken for, and how to correct it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from branchwise.cli import options
from branchwise.cli.options import Page, categorical_names, column_names, takes
from branchwise.cli.support.hints import (
    hint,
    number_hint,
    present_values,
    remark_header,
    unusable_hint,
    with_option,
    without_mistaken,
)
from branchwise.cli.support.rows import Inputs, input_options, print_result
from branchwise.data.checks import Finding, find_problems
from branchwise.data.columns import Coded, RawColumn
from branchwise.data.frames import open_table
from branchwise.data.table_schema import Value
from branchwise.errors import DataError, counted, plain
from branchwise.files.read_table import TableFile
from branchwise.text.document import aligned
from branchwise.text.words import listed, word

#: How many values of a column are shown, and how much of a long one.
_SHOWN = 5
_LONGEST = 40


@takes(inputs=input_options)
def schema(
    table_path: str = options.TABLE,
    target: str | None = Page("schema").option("--target"),
    categorical: list[str] | None = options.CATEGORICAL,
    numeric: list[str] | None = options.NUMERIC,
    ignore: list[str] | None = options.IGNORE,
    output_format: str = options.FORMAT,
    *,
    inputs: Inputs,
) -> None:
    """Tell what columns are taken for, how to correct it, and what may be wrong."""
    with inputs.opened(table_path) as (file, _):
        if target is not None:
            file.check_names([target])
        numbers = column_names(file, numeric)
        table = file.read(
            text_columns=categorical_names(file, categorical, numbers),
            number_columns=numbers,
            ignore=column_names(file, ignore),
            classes=target,
            allow_ambiguous=True,
        )
        columns = _describe_all(table, file)
        warnings = _warnings(table, target)
    remark_header(file, inputs.reading, inputs.reporter)
    document = {
        "file": file.label,
        "rows": table.num_rows,
        "columns": columns,
        "warnings": [asdict(finding) for finding in warnings],
    }
    lines = _lines(columns)
    if warnings:
        lines += ["", *(f"warning: {plain(with_option(one))}" for one in warnings)]
    print_result(document, lines, output_format)
    if output_format == "text":
        inputs.reporter.note(
            f"{counted(table.num_rows, 'row')}, {counted(len(columns), 'column')}. "
            "--categorical COLUMN takes numbers as names, --numeric COLUMN insists on "
            "numbers, --ignore COLUMN leaves a column out, --missing TEXT marks cells "
            "as missing."
        )


#: What is known of a column, as JSON has it.
_Description = dict[str, Any]


def _content(column: _Description) -> str:
    if column["kind"] in ("numeric", "date"):
        low, high = column["minimum"], column["maximum"]
        return "" if low is None else f"{word(low)} to {word(high)}"
    values = column["values"]
    if not values:
        return ""
    shown = [_shortened(value) for value in values[:_SHOWN]]
    return f"{len(values):,}: {listed([*shown, *values[_SHOWN:]], _SHOWN)}"


def _shortened(value: Value) -> Value:
    if not isinstance(value, str) or len(value) <= _LONGEST:
        return value
    return f"{value[: _LONGEST - 3].rstrip()}..."


def _lines(columns: list[_Description]) -> list[str]:
    head = ["column", "kind", "values", "missing", "hint"]
    rows = [
        [word(c["name"]), c["kind"], _content(c), f"{c['missing']:,}", c["hint"] or ""]
        for c in columns
    ]
    return aligned([head, *rows], [False, False, False, True, False])


def _warnings(table: Any, target: str | None) -> list[Finding]:
    if target is None or target not in table.column_names:
        found = find_problems(table)
    else:
        attributes = table.drop_columns([target])
        found = find_problems(attributes, table[target], target)
    return without_mistaken(found, open_table(table))


def _describe_all(table: Any, file: TableFile) -> list[_Description]:
    frame, numbers = open_table(table), file.numbers
    zeros = _with_leading_zeros(table, file)
    columns = []
    for index, name in enumerate(frame.names):
        try:
            raw = frame.column(index)
        except DataError:
            column = table.column(index)
            content: _Description = {"values": []}
            kind, missing = "unusable", int(column.null_count)
            advice = unusable_hint(name, column)
        else:
            kind, content, missing = _described(raw)
            advice = number_hint(name, numbers) or hint(name, raw, zeros.get(name))
            if name in numbers.formats:
                content["written"] = str(numbers.formats[name])
        told = {"missing": missing, "hint": advice or None}
        columns.append({"name": name, "kind": kind, **content, **told})
    return columns


def _with_leading_zeros(table: Any, file: TableFile) -> dict[str, str]:
    """Find the number columns that lose zeros, with an example of each."""
    suspects = [
        field.name for field in table.schema if str(field.type).startswith("int")
    ]
    if not suspects or not file.is_text:
        return {}
    text = file.read(only=suspects, text_columns=suspects)
    found = {}
    for name in suspects:
        values = text[name].chunk(0).dictionary.to_pylist()
        padded = [v for v in values if len(v) > 1 and v[0] == "0" and v.isdigit()]
        if padded:
            found[name] = padded[0]
    return found


def _described(raw: RawColumn) -> tuple[str, _Description, int]:
    """Return the kind of a column, what it holds, and how many cells are missing."""
    if isinstance(raw, Coded):
        values = raw.values if raw.declared else present_values(raw)
        kind = "ordinal" if raw.ordered else "categorical"
        return kind, {"values": list(values)}, int((raw.codes < 0).sum())
    known = raw.values[~np.isnan(raw.values)]
    ends = (float(known.min()), float(known.max())) if len(known) else (None, None)
    content: _Description = dict(zip(("minimum", "maximum"), ends, strict=True))
    kind = "numeric"
    if raw.date is not None:
        how = replace(raw.date, unit=raw.date.coarsest(known))
        shown = [how.show(each) for each in raw.date.scaled(known, how).tolist()]
        kind = "date"
        content = {"minimum": min(shown, default=None)}
        content["maximum"] = max(shown, default=None)
    return kind, content, len(raw.values) - len(known)
