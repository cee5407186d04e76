"""JSON lines, and files of SPSS, SAS and Stata."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

from branchwise.data.arrow import pa
from branchwise.errors import DataError, ParameterError
from branchwise.files.csv.csv_rows import Lines
from branchwise.files.options import FORMATS, Reading
from branchwise.files.raw_bytes import Buffer, as_utf8, raise_size, text_start
from branchwise.files.typed_columns import column_of_cells

#: First bytes of files of SPSS, SAS and Stata.
SPSS = (b"$FL2", b"$FL3")
SAS = bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
STATA = b"<stata_dta>"
#: Functions of pyreadstat by format.
_READERS = {"spss": "read_sav", "sas": "read_sas7bdat", "stata": "read_dta"}
#: A cell in memory.
_CELL_BYTES = 64


def looks_like_json_lines(content: Buffer) -> bool:
    """Whether the first line is an object of JSON."""
    head = content[: 2**16].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not head.startswith(b"{"):
        return False
    line, end, _ = head.partition(b"\n")
    try:
        found = json.loads(line) if end or len(content) <= 2**16 else None
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict)


class JsonLines:
    """A table of JSON objects, one a line; absent keys are missing values."""

    declared: frozenset[str] = frozenset()

    def __init__(self, content: Buffer, label: str, reading: Reading) -> None:
        self.label = label
        content = as_utf8(content, label, reading.encoding, reading.most_bytes)
        columns: dict[str, list[Any]] = {}
        self._lines: list[int] = []
        for number, line in enumerate(Lines(content, text_start(content), label), 1):
            if not line.strip():
                continue
            n_rows = len(self._lines)
            for name, cell in self._object(line, number).items():
                cells = columns.setdefault(name, [])
                cells.extend([None] * (n_rows - len(cells)))
                cells.append(cell)
            self._lines.append(number)
        if not columns:
            raise DataError(
                f"{label} is empty. A table needs a JSON object for each row, one a "
                "line."
            )
        for cells in columns.values():
            cells.extend([None] * (len(self._lines) - len(cells)))
        self._columns = columns
        self.names = tuple(columns)

    def _object(self, line: str, number: int) -> Mapping[str, Any]:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = str(error) or type(error).__name__
            raise DataError(
                f"{self.label} has no JSON object in line {number:,}: {reason}. Each "
                "line must be one."
            ) from None
        if not isinstance(found, dict):
            raise DataError(
                f"{self.label} has {type(found).__name__} in line {number:,}, not a "
                "JSON object with named values. Each line must be one."
            )
        return found

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as numbers, booleans or text."""
        loaded = []
        for index in indices:
            name = self.names[index]
            cells = self._columns[name]
            for row, cell in enumerate(cells):
                if isinstance(cell, (list, dict)):
                    self._raise_nested(name, row)
            as_text = index in text or _are_long_integers(cells)
            loaded.append(column_of_cells(cells, name, self.label, as_text, missing))
        return loaded

    def location(self, row: int) -> str:
        """Return the line of the file in which a row is."""
        return f"line {self._lines[row]:,}"

    def _raise_nested(self, name: str, row: int) -> NoReturn:
        raise DataError(
            f"Column {name!r} of {self.label} has several values in "
            f"{self.location(row)}, and a cell must be one text, number or boolean. "
            "Split it into several columns, or leave it out (ignore)."
        )


class StatsFile:
    """A file of SPSS, SAS or Stata; codes with labels are read as their labels."""

    def __init__(
        self, content: Buffer, label: str, file_format: str, reading: Reading
    ) -> None:
        self.label = label
        self._format = FORMATS[file_format]
        try:
            import pyreadstat  # noqa: PLC0415
        except ImportError:
            raise ParameterError(
                f"{label} is a file of {self._format}, which needs pyreadstat: pip "
                "install 'branchwise[stats]'. Or save the table as CSV."
            ) from None
        self._read = getattr(pyreadstat, _READERS[file_format])
        self._content = bytes(content)
        _, metadata = self._opened(metadataonly=True)
        self.names = tuple(metadata.column_names)
        self._labels: dict[str, dict[Any, str]] = dict(metadata.variable_value_labels)
        titles = getattr(metadata, "column_names_to_labels", None) or {}
        #: The titles of columns.
        self.column_labels = {
            name: {"title": title} for name, title in titles.items() if title
        }
        n_rows = metadata.number_rows or 0
        if n_rows * len(self.names) * _CELL_BYTES > reading.most_bytes:
            raise_size(label, reading.most_bytes)
        self.declared = frozenset(self._labels)

    def load(
        self, indices: Sequence[int], text: Collection[int], missing: Sequence[str]
    ) -> list[Any]:
        """Read columns as numbers, text or dates, those with labels as these."""
        names = [self.names[index] for index in indices]
        columns, _ = self._opened(usecols=names) if names else ({}, None)
        loaded = []
        for index, name in zip(indices, names, strict=True):
            cells = [None if _is_missing(c) else _plain(c) for c in columns[name]]
            labels = self._labels.get(name, {})
            if labels and {c for c in cells if c is not None} <= {*labels}:
                loaded.append(_labelled(cells, labels, missing))
            else:
                as_text = index in text
                cells_read = column_of_cells(cells, name, self.label, as_text, missing)
                loaded.append(cells_read)
        # A number with a few labels, such as 99 for refused, declares no values.
        self.declared = frozenset(
            name
            for name, column in zip(names, loaded, strict=True)
            if name in self._labels and pa.types.is_dictionary(column.type)
        )
        return loaded

    def location(self, row: int) -> str:
        """Tell which row it is, counted from 1."""
        return f"row {row + 1:,}"

    def _opened(self, **options: Any) -> Any:
        try:
            return self._read(
                io.BytesIO(self._content), output_format="dict", **options
            )
        except Exception as error:  # a damaged file may raise any
            reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            raise DataError(
                f"{self.label} is not a whole file of {self._format}: {reason}. Write "
                "or copy it again."
            ) from None


def _labelled(
    cells: Sequence[Any], labels: Mapping[Any, str], missing: Sequence[str]
) -> Any:
    """Return codes as their labels, which are declared in the order of the codes."""
    kept = [code for code in sorted(labels) if str(labels[code]) not in missing]
    values = list(dict.fromkeys(str(labels[code]) for code in kept))
    position = {code: values.index(str(labels[code])) for code in kept}
    codes = pa.array([position.get(cell) for cell in cells], pa.int32())
    array = pa.DictionaryArray.from_arrays(codes, pa.array(values, pa.string()))
    return pa.chunked_array([array])


def _are_long_integers(cells: Sequence[Any]) -> bool:
    """Whether cells are integers, some beyond 64 bits: they are identifiers."""
    known = [cell for cell in cells if cell is not None]
    return all(type(c) is int for c in known) and any(abs(c) >= 2**63 for c in known)


def _is_missing(cell: Any) -> bool:
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))


def _plain(cell: Any) -> Any:
    return cell.item() if hasattr(cell, "item") else cell
