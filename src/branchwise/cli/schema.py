"""``branchwise schema``: what each column is taken for, and how to correct it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

import numpy as np

from branchwise.cli.options import (
    Categorical,
    Form,
    Format,
    Ignore,
    MissingMarks,
    Numeric,
    Quiet,
    TablePath,
    categorical_names,
    column_names,
    missing_marks,
)
from branchwise.cli.streams import Reporter, aligned, counted, print_json, print_lines
from branchwise.cli.training import is_identifier
from branchwise.errors import DataError
from branchwise.table.frames import open_table
from branchwise.table.raw import Coded, Numbers, RawColumn
from branchwise.table.read import TableFile
from branchwise.table.schema import Value
from branchwise.words import listed, number, word

#: Whole numbers with no more values than this may well be names.
_FEW = 5
#: So many values that are no numbers may be marks of missing ones.
_FEW_WORDS = 2
#: What people write, in upper or lower case, for a missing value.
_USUAL_MARKS = frozenset(("", "?", "na", "n/a", "nan", "null", "-", "--", "."))


def schema(
    table_path: TablePath,
    categorical: Categorical = None,
    numeric: Numeric = None,
    ignore: Ignore = None,
    missing: MissingMarks = None,
    form: Format = Form.TEXT,
    quiet: Quiet = False,
) -> None:
    """Tell what columns are taken for, and how to correct it.

    Takes the options that fit takes for reading a table, to try them out.

    \b
    Examples:
      branchwise schema data.csv
      branchwise schema data.csv --categorical zip --ignore id --missing NA
      branchwise schema data.csv --format json
    """
    reporter = Reporter(quiet)
    file = TableFile(table_path)
    numbers = column_names(file, numeric)
    marks = missing_marks(missing)
    with reporter.working(f"Reading {file.label}"):
        table = file.read(
            missing=marks,
            text_columns=categorical_names(file, categorical, numbers),
            number_columns=numbers,
            ignore=column_names(file, ignore),
        )
        columns = _describe_all(table, file, marks)
    if form is Form.JSON:
        document = {
            "file": file.label,
            "rows": table.num_rows,
            "columns": [column.as_dict() for column in columns],
        }
        print_json(document)
    else:
        print_lines(_lines(columns))
        reporter.note(
            f"{counted(table.num_rows, 'row')}, {counted(len(columns), 'column')}. "
            "--categorical COLUMN takes numbers as names, --numeric COLUMN insists on "
            "numbers, --ignore COLUMN leaves a column out, --missing TEXT marks cells "
            "as missing."
        )


@dataclass(frozen=True)
class _Description:
    """What is known of a column."""

    name: str
    kind: str
    missing: int = 0
    values: tuple[Value, ...] = ()
    low: float | None = None
    high: float | None = None
    hint: str = ""

    def as_dict(self) -> dict[str, Any]:
        described: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if self.kind == "numeric":
            described["minimum"] = self.low
            described["maximum"] = self.high
        else:
            described["values"] = list(self.values)
        described["missing"] = self.missing
        described["hint"] = self.hint or None
        return described

    def content(self) -> str:
        if self.kind == "numeric" and self.low is not None and self.high is not None:
            return f"{number(self.low)} to {number(self.high)}"
        if not self.values:
            return ""
        return f"{len(self.values):,}: {listed(self.values, 5)}"


def _lines(columns: list[_Description]) -> list[str]:
    head = ["column", "kind", "values", "missing", "hint"]
    rows = [
        [word(c.name), c.kind, c.content(), f"{c.missing:,}", c.hint] for c in columns
    ]
    return aligned([head, *rows], [False, False, False, True, False])


def _describe_all(
    table: Any, file: TableFile, marks: tuple[str, ...]
) -> list[_Description]:
    frame = open_table(table)
    zeros = _with_leading_zeros(table, file, marks)
    columns = []
    for index, name in enumerate(frame.names):
        try:
            raw = frame.column(index)
        except DataError:
            missing = int(table.column(index).null_count)
            columns.append(_unusable(name, missing, str(table.column(index).type)))
        else:
            columns.append(_describe(name, raw, zeros.get(name)))
    return columns


def _with_leading_zeros(
    table: Any, file: TableFile, marks: tuple[str, ...]
) -> dict[str, str]:
    """Find the number columns that lose zeros, with an example of each."""
    suspects = [
        field.name for field in table.schema if str(field.type).startswith("int")
    ]
    if not suspects or not file.is_text:
        return {}
    text = file.read(missing=marks, only=suspects, text_columns=suspects)
    found = {}
    for name in suspects:
        values = text[name].chunk(0).dictionary.to_pylist()
        padded = [v for v in values if len(v) > 1 and v[0] == "0" and v.isdigit()]
        if padded:
            found[name] = padded[0]
    return found


def _unusable(name: str, missing: int, arrow_type: str) -> _Description:
    hint = f"{arrow_type} cannot be used: {_option('--ignore', name)}"
    return _Description(name, "unusable", missing, hint=hint)


def _describe(name: str, raw: RawColumn, padded: str | None) -> _Description:
    if isinstance(raw, Numbers):
        return _describe_numbers(name, raw, padded)
    missing = int((raw.codes < 0).sum())
    occurring = np.unique(raw.codes[raw.codes >= 0]).tolist()
    values = raw.values if raw.declared else tuple(raw.values[c] for c in occurring)
    kind = "ordinal" if raw.ordered else "categorical"
    return _Description(name, kind, missing, values, hint=_text_hint(name, raw, values))


def _describe_numbers(name: str, raw: Numbers, padded: str | None) -> _Description:
    known = raw.values[~np.isnan(raw.values)]
    missing = len(raw.values) - len(known)
    if not len(known):
        return _Description(name, "numeric", missing, hint=_no_value(name))
    hint = ""
    distinct = np.unique(known)
    if padded is not None:
        hint = f"{_option('--categorical', name)} keeps zeros in front, as in {padded}"
    elif len(distinct) <= _FEW and (distinct == np.rint(distinct)).all():
        hint = f"{_option('--categorical', name)} if these numbers are names"
    low, high = float(distinct[0]), float(distinct[-1])
    return _Description(name, "numeric", missing, (), low, high, hint)


def _text_hint(name: str, raw: Coded, values: tuple[Value, ...]) -> str:
    if not values:
        return _no_value(name)
    if is_identifier(raw):
        return f"another value in every row: {_option('--ignore', name)}?"
    words = [str(value) for value in values if not _is_number(value)]
    if len(values) > len(words) > 0 and len(words) <= _FEW_WORDS:
        return f"numeric with {_as_missing(words)}"
    marks = [text for text in words if text.strip().lower() in _USUAL_MARKS]
    if marks:
        return f"{_as_missing(marks)} if that is no value"
    if any(text != text.strip() for text in words):
        return "blanks around some values are part of them"
    return "one value only" if len(values) == 1 else ""


def _as_missing(words: list[str]) -> str:
    return " ".join(f"--missing {shlex.quote(text)}" for text in words)


def _is_number(value: Value) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _no_value(name: str) -> str:
    return f"no value at all: {_option('--ignore', name)}"


def _option(option: str, name: str) -> str:
    return f"{option} {shlex.quote(name)}"
