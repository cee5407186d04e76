"""Writing of Excel workbooks: one sheet of the rows of a table, with a header."""

from __future__ import annotations

import datetime as dt
import io
import math
import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, BinaryIO

from branchwise.data.arrow import as_cells
from branchwise.errors import DataError, ParameterError

#: The most rows of a sheet, its header included, columns, and characters of a cell.
_MOST_ROWS = 2**20
_MOST_COLUMNS = 2**14
_MOST_CHARACTERS = 2**15 - 1
#: Whole numbers beyond this are not exact in a cell.
_MOST_EXACT = 2**53
#: The first day that workbooks can hold without an error of theirs (1900 is no leap
#: year).
_FIRST_DAY = dt.date(1900, 3, 1)
#: The same for every workbook, so that the same table gives the same bytes.
_CREATED = dt.datetime(2000, 1, 1)
_WIDEST = 60


class WorkbookWriter:
    """Writes rows in chunks; the file is written when it is closed."""

    def __init__(self, file: BinaryIO) -> None:
        if find_spec("xlsxwriter") is None:
            raise ParameterError(
                "Excel files need the package XlsxWriter. Install it with: pip install "
                "'branchwise[excel]', or write CSV."
            )
        import xlsxwriter  # noqa: PLC0415  (an extra)

        self._file = file
        self._content = io.BytesIO()
        # A row is written to a temporary file as soon as the next one begins.
        self._book = xlsxwriter.Workbook(self._content, {"constant_memory": True})
        self._book.set_properties({"created": _CREATED})
        self._sheet = self._book.add_worksheet("Predictions")
        self._sheet.freeze_panes(1, 0)
        self._days = self._book.add_format({"num_format": "yyyy-mm-dd"})
        self._times = self._book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        self._n_rows = 0

    def write(self, columns: Mapping[str, Any]) -> None:
        """Write further rows."""
        if not self._n_rows:
            self._begin(columns)
        for row in zip(*map(as_cells, columns.values()), strict=True):
            if self._n_rows == _MOST_ROWS:
                raise DataError(
                    f"A sheet of Excel has at most {_MOST_ROWS - 1:,} rows besides its "
                    "header, and the table has more. Write CSV or Parquet."
                )
            for at, cell in enumerate(row):
                if cell is not None:
                    self._write_cell(at, cell)
            self._n_rows += 1

    def close(self, whole: bool) -> None:
        """Write the file, unless it is incomplete."""
        self._book.close()
        if whole:
            self._file.write(self._content.getbuffer())

    def _begin(self, columns: Mapping[str, Any]) -> None:
        if len(columns) > _MOST_COLUMNS:
            raise DataError(
                f"A sheet of Excel has at most {_MOST_COLUMNS:,} columns, and the "
                f"table has {len(columns):,}. Write CSV or Parquet."
            )
        bold = self._book.add_format({"bold": True, "bottom": 1})
        for at, name in enumerate(columns):
            self._sheet.set_column(at, at, min(max(len(name) + 2, 10), _WIDEST))
            self._write_text(at, name, bold)
        self._n_rows = 1

    def _write_cell(self, at: int, cell: Any) -> None:
        row = self._n_rows
        if isinstance(cell, bool):
            self._sheet.write_boolean(row, at, cell)
        elif isinstance(cell, (int, float)) and _is_exact(cell):
            self._sheet.write_number(row, at, cell)
        elif isinstance(cell, dt.date) and _has_cell(cell):
            is_time = isinstance(cell, dt.datetime)
            style = self._times if is_time else self._days
            self._sheet.write_datetime(row, at, cell, style)
        else:
            self._write_text(at, str(cell))

    def _write_text(self, at: int, text: str, style: Any = None) -> None:
        """Write a text, which is never taken for a formula or an address."""
        if len(text) > _MOST_CHARACTERS or re.search("[\ud800-\udfff]", text):
            raise DataError(
                f"A cell of Excel cannot hold the text {text[:40]!r}: it must be valid "
                f"Unicode of at most {_MOST_CHARACTERS:,} characters. Write CSV or "
                "Parquet."
            )
        self._sheet.write_string(self._n_rows, at, text, style)


def _is_exact(number: float) -> bool:
    """Whether a cell holds a number as it is."""
    if isinstance(number, int):
        return abs(number) <= _MOST_EXACT
    return math.isfinite(number)


def _has_cell(day: dt.date) -> bool:
    """Whether a cell can hold a date, or a date with its time, as it is."""
    if isinstance(day, dt.datetime):
        whole = day.tzinfo is None and day.microsecond == 0
        return whole and day.date() >= _FIRST_DAY
    return day >= _FIRST_DAY
