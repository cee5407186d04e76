"""Conversion of ARFF and C4.5 rows to delimited text with declared columns.

ARFF and C4.5 have rows of cells with commas between them, but quotes, escapes and
comments of their own. Rows that use none of these are valid CSV already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from branchwise.data.arrow import as_dictionary, dictionary_codes
from branchwise.errors import DataError, quoted
from branchwise.files.csv_rows import Records
from branchwise.files.raw_bytes import Buffer

MARK = "?"

#: Characters that have another meaning in CSV.
_SPECIAL = frozenset(',"\r\n')


@dataclass(frozen=True)
class Declared:
    """A column as a file declares it; of nominal ones the possible values."""

    name: str
    kind: Literal["number", "nominal", "text", "left out"]
    values: tuple[str, ...] = ()
    ordered: bool = False


@dataclass(frozen=True)
class DeclaredRows:
    """Rows of declared columns, rewritten as delimited text.

    Parameters
    ----------
    records : Records
        The rows as delimited text, with all columns.
    columns : tuple of Declared
        Their declarations.
    lines : sequence of int
        The line of each row in the file.
    """

    records: Records
    columns: tuple[Declared, ...]
    lines: Sequence[int] = field(repr=False)
    #: The columns that the file does not declare as ignored, and their names.
    _used: tuple[int, ...] = field(init=False, repr=False)
    names: tuple[str, ...] = field(init=False, repr=False)
    #: The names of the columns whose values are declared.
    declared: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Stored, as it is used once for each of possibly many columns.
        used = tuple(at for at, c in enumerate(self.columns) if c.kind != "left out")
        nominal = frozenset(c.name for c in self.columns if c.kind == "nominal")
        object.__setattr__(self, "_used", used)
        object.__setattr__(self, "names", tuple(self.columns[at].name for at in used))
        object.__setattr__(self, "declared", nominal)

    @property
    def label(self) -> str:
        """The name of the file in messages."""
        return self.records.label

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as they are declared, those in ``text`` as text."""
        used = self._used
        wanted = [used[index] for index in indices]
        as_text = {used[index] for index in text}
        as_text.update(at for at in wanted if self.columns[at].kind != "number")
        na_values = [*missing, *(() if MARK in missing else (MARK,))]
        columns = self.records.load(wanted, as_text, na_values)
        for location, at in enumerate(wanted):
            column = self.columns[at]
            if column.kind == "nominal":
                columns[location] = self._nominal(column, columns[location], na_values)
            elif column.kind == "number" and at not in as_text:
                self._check_words(column, columns[location])
        return columns

    def location(self, row: int) -> str:
        """Return the line of the file in which a row is."""
        known = row < len(self.lines)
        return f"line {self.lines[row]:,}" if known else f"row {row + 1:,}"

    def _nominal(self, column: Declared, cells: Any, na_values: Collection[str]) -> Any:
        """Return text as a dictionary of the declared values, in their order."""
        import pyarrow as pa  # noqa: PLC0415  (loaded only when a file is read)

        if not len(cells):
            array = pa.array([], pa.dictionary(pa.int32(), pa.string()))
        else:
            array = as_dictionary(cells)
        found = array.dictionary.to_pylist()
        declared = [v for v in column.values if v not in na_values or v in found]
        position = {value: code for code, value in enumerate(declared)}
        recode = np.array([position.get(v, -1) for v in found], dtype=np.int32)
        codes = pa.array(recode).take(array.indices)
        wrong = [code for code, at in enumerate(recode) if at < 0]
        if wrong:
            rows = dictionary_codes(array.indices)
            row = int(np.argmax(np.isin(rows, wrong)))
            raise DataError(
                f"Column {column.name!r} of {self.label} has {found[rows[row]]!r} in "
                f"{self.location(row)}, which is none of its declared values: "
                f"{quoted(declared, 20)}. Correct the cell or add the value to the "
                "declaration."
            )
        values = pa.array(declared, pa.string())
        made = pa.DictionaryArray.from_arrays(codes, values, ordered=column.ordered)
        return pa.chunked_array([made])

    def _check_words(self, column: Declared, cells: Any) -> None:
        import pyarrow as pa  # noqa: PLC0415

        if not pa.types.is_dictionary(cells.type):
            return
        for row, cell in enumerate(cells.to_pylist()):
            if cell is not None and not _is_number(cell):
                raise DataError(
                    f"Column {column.name!r} of {self.label} is declared numeric, but "
                    f"has {cell!r} in {self.location(row)}. Correct the cell, or write "
                    "? for a missing value."
                )


def rewritten(
    content: Buffer,
    start: int,
    first_line: int,
    special: Collection[int],
    rewrite: Callable[[str, int], Sequence[str | None] | None],
    end_mark: bytes = b"",
    inner_spaces: bool = False,
) -> tuple[bytes, list[int]]:
    """Rewrite rows as CSV, and return the line of each.

    Parameters
    ----------
    content : bytes or StoredFile
        The text, which is in UTF-8 without an error.
    start : int
        Where the rows begin.
    first_line : int
        The number of the line there.
    special : collection of int
        The bytes that make a row more than cells with commas between them.
    rewrite : callable
        Such a row and its line -> its cells (None: missing), or None for no row.
    end_mark : bytes
        What may end a plain row.
    inner_spaces : bool
        Whether a cell that is not in quotes may contain spaces.
    """
    rows: list[bytes] = []
    lines: list[int] = []
    special_bytes = bytes(special)
    text = content[start:].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for number, line in enumerate(text.split(b"\n"), first_line):
        line = line.strip()
        if not line:
            continue
        row: bytes | None = None
        if len(line.translate(None, special_bytes)) == len(line):
            row = _plain_row(line.removesuffix(end_mark), inner_spaces)
        if row is None:
            row = _special_row(rewrite(line.decode("utf-8"), number))
        if row is None:
            continue
        rows.append(row or b'""')
        lines.append(number)
    return b"\n".join(rows), lines


def _plain_row(row: bytes, inner_spaces: bool) -> bytes | None:
    """Strip whitespace around cells; None if there is more within."""
    if b" " not in row and b"\t" not in row:
        return row
    cells = [b" ".join(cell.split()) for cell in row.split(b",")]
    if not inner_spaces and any(b" " in cell for cell in cells):
        return None
    return b",".join(cells)


def _special_row(cells: Sequence[str | None] | None) -> bytes | None:
    if cells is None:
        return None
    return ",".join(_as_csv(cell) for cell in cells).encode()


def _as_csv(cell: str | None) -> str:
    if cell is None:
        return MARK
    # A quoted NA value is plain text; an empty cell needs no quotes.
    if not _SPECIAL.isdisjoint(cell) or cell in (MARK, ""):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell
