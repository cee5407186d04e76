"""Excel workbooks: what their cells can hold, writing them and calculating them.

XlsxWriter writes workbooks; LibreOffice calculates copies that are filled with rows.
Texts are cells of their own and never part of a formula, so that nothing a user wrote
can be taken for one.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile

from branchwise.data.table_schema import Value
from branchwise.errors import ExportError
from branchwise.export.base import Options, Prediction, Runner
from branchwise.export.excel.serial_dates import (
    FIRST,
    LAST,
    fitting_date,
    serial_cells,
)
from branchwise.export.plan import Cell, Field, Plan, Row
from branchwise.files.workbook import OLD_EXCEL, CompoundFile, xls_records

#: Characters of a cell.
MOST_CHARACTERS = 32_767
#: Digits that every program for spreadsheets tells apart.
DIGITS = 14
#: Numbers beyond these are not held by every one of them.
_LARGEST, _SMALLEST = 1e300, 1e-300
DOMAIN = (
    "the sheet takes rows with something in them, numbers of up to 14 digits between "
    "1e-300 and 1e300, dates from 1900-03-01 on, and no empty text"
)
#: What XML cannot hold or would change, and what looks like the escape of it.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
#: Between two such escapes that share an underscore: XlsxWriter sees only the first.
_BETWEEN = re.compile("(?<=_x[0-9A-Fa-f]{4})(?=_x[0-9A-Fa-f]{4}_)")
#: The same model gives the same bytes, whenever it is written.
_CREATED = datetime(2000, 1, 1)


@dataclass(frozen=True)
class Formula:
    """A formula, without the equals sign."""

    text: str


Content = str | bool | int | float | Formula | None


@dataclass(frozen=True)
class Input:
    """A column to fill in: numbers, or one of the values in cells that have a name.

    ``known`` is that name, None for numbers; ``strict`` refuses any other value. A
    column of dates has a ``date_format``, one of numbers may have a ``number_format``.
    """

    known: str | None = None
    exact: bool = True
    strict: bool = False
    date_format: str | None = None
    number_format: str | None = None


@dataclass
class Sheet:
    """A sheet: rows of cells, the width of its columns, and the kinds of their cells.

    ``inputs`` are the columns to fill in, from the first one on; ``number_formats`` is
    how the numbers of other columns are shown.
    """

    name: str
    rows: list[list[Content]]
    widths: Sequence[int] = ()
    text_columns: frozenset[int] = field(default_factory=frozenset)
    number_formats: Mapping[int, str] = field(default_factory=dict)
    wrapped_columns: frozenset[int] = field(default_factory=frozenset)
    inputs: Sequence[Input] = ()
    technical: bool = False


class _Exact(float):
    """A number that is written with all its digits; XlsxWriter would keep 16."""

    def __format__(self, _: str) -> str:
        return repr(float(self))


def column_name(index: int) -> str:
    """Return the letters of a column, the first being 0."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def held(number: float) -> Cell:
    """Return the nearest number that a sheet holds and tells from others, or None."""
    near = float(f"{number:.{DIGITS}g}")
    return near if near == 0 or _SMALLEST <= abs(near) <= _LARGEST else None


def normal(text: str) -> str:
    """Return what programs for spreadsheets make of a text."""
    return re.sub("\r\n?", "\n", text).replace("\t", "\x01")


def fitting(plan: Plan, row: Row) -> Row | None:
    """Return the row nearest to one that the sheet can hold; None if it has none."""
    cells = tuple(map(_fitting_cell, plan.inputs, row))
    return None if plan.inputs and not any(c is not None for c in cells) else cells


def _fitting_cell(field: Field, cell: Cell) -> Cell:
    if field.date is not None:
        return fitting_date(field.date, cell)
    if isinstance(cell, str):
        known = {normal(value) for value in field.values if isinstance(value, str)}
        same = cell in field.values or normal(cell) not in known
        return cell if 0 < len(cell) <= MOST_CHARACTERS and same else None
    if cell is None or isinstance(cell, bool):
        return cell
    return held(cell)


def _checked(text: str) -> str:
    """Return a text, or say why a cell cannot hold it."""
    if len(text) > MOST_CHARACTERS:
        raise ExportError(
            f"A cell of a workbook holds at most {MOST_CHARACTERS:,} characters, and "
            f"the text that begins {text[:40]!r} has {len(text):,}. Shorten it and fit "
            "again, or export to another target."
        )
    if re.search("[\ud800-\udfff]", text):
        raise ExportError(
            f"The text {text[:40]!r} is no valid Unicode and cannot be written in a "
            "workbook. Replace it and fit again."
        )
    return text


def workbook(sheets: Sequence[Sheet], names: dict[str, str] | None = None) -> bytes:
    """Return a workbook; the same sheets give the same bytes.

    ``names`` are names of cells, and which cells they are.
    """
    if find_spec("xlsxwriter") is None:
        raise ExportError(
            "The export to 'excel' needs the package XlsxWriter. Install it with: pip "
            "install 'branchwise[excel]'"
        )
    import xlsxwriter  # noqa: PLC0415

    target = BytesIO()
    with xlsxwriter.Workbook(target, {"in_memory": True}) as book:
        book.set_properties({"created": _CREATED})
        text = book.add_format({"num_format": "@"})
        header = book.add_format({"num_format": "@", "bold": True, "bottom": 1})
        wrapped = book.add_format({"text_wrap": True, "valign": "top"})
        for sheet in sheets:
            page = book.add_worksheet(sheet.name)
            page.freeze_panes(1, 0)
            if sheet.technical:
                page.set_tab_color("#999999")
            else:
                page.set_landscape()
                page.fit_to_pages(1, 0)
            kinds = dict.fromkeys(sheet.text_columns, text)
            for column, of_column in enumerate(sheet.inputs):
                shown = of_column.date_format or of_column.number_format
                if shown is not None:
                    kinds[column] = book.add_format({"num_format": shown})
            for column, width in enumerate(sheet.widths):
                page.set_column(column, column, width, kinds.get(column))
            styles = {
                column: book.add_format({"num_format": shown})
                for column, shown in sheet.number_formats.items()
            }
            styles |= dict.fromkeys(sheet.wrapped_columns, wrapped)
            for number, cells in enumerate(sheet.rows):
                for column, content in enumerate(cells):
                    style = styles.get(column) if number else header
                    _write_cell(page, number, column, content, style, text)
            _guide_inputs(book, page, sheet)
        for name, cells_of in (names or {}).items():
            book.define_name(name, f"={cells_of}")
    return target.getvalue()


#: The ground of cells to fill in, and of those whose content is not understood.
_TO_FILL, _WRONG = "#FFF9DB", "#FFC7CE"


def _guide_inputs(book: Any, page: Any, sheet: Sheet) -> None:
    """Colour the columns to fill in, list their values, and mark what is unknown."""
    last = len(sheet.rows) - 1
    if not sheet.inputs or not last:
        return
    wrong = book.add_format({"bg_color": _WRONG})
    for column, of_column in enumerate(sheet.inputs):
        page.data_validation(1, column, last, column, _validation(of_column))
        criteria = f"={_not_understood(of_column, f'{column_name(column)}2')}"
        rule = {"type": "formula", "criteria": criteria, "format": wrong}
        page.conditional_format(1, column, last, column, {**rule, "stop_if_true": True})
    ground = {"type": "formula", "criteria": "=TRUE"}
    to_fill = book.add_format({"bg_color": _TO_FILL})
    end = len(sheet.inputs) - 1
    page.conditional_format(1, 0, last, end, {**ground, "format": to_fill})


def _validation(of_column: Input) -> dict[str, Any]:
    """Return what a program checks while a cell is typed; pasting is not checked."""
    if of_column.date_format is not None:
        return {
            "validate": "date",
            "criteria": "between",
            "minimum": FIRST,
            "maximum": LAST,
            "error_title": "Not a date",
            "error_message": "This column takes dates from 1900-03-01 on. Leave the "
            "cell empty if the value is missing.",
        }
    if of_column.known is None:
        return {
            "validate": "decimal",
            "criteria": "between",
            "minimum": "-1E+300",
            "maximum": "1E+300",
            "error_title": "Not a number",
            "error_message": "This column takes numbers. Leave the cell empty if the "
            "value is missing.",
        }
    return {
        "validate": "list",
        "source": f"={of_column.known}",
        "error_type": "stop" if of_column.strict else "warning",
        "error_title": "Not in the training rows",
        "error_message": "The training rows do not have this value. The list has those "
        "that they have; leave the cell empty if the value is missing.",
    }


def _not_understood(of_column: Input, cell: str) -> str:
    """Return whether a cell has text for a number, or a value that is not known."""
    if of_column.known is None:
        return f"AND(LEN({cell})>0,NOT(ISNUMBER({cell})))"
    known = of_column.known
    same = f"EXACT({known},{cell})" if of_column.exact else f"({known}={cell})"
    return f"AND(LEN({cell})>0,SUMPRODUCT(--{same})=0)"


def _write_cell(
    page: Any, row: int, column: int, content: Content, style: Any, text: Any
) -> None:
    if isinstance(content, Formula):
        # Without a result every program calculates it when the file is opened.
        page.write_formula(row, column, content.text, style, "")
    elif isinstance(content, bool):
        page.write_boolean(row, column, content, style)
    elif isinstance(content, str):
        first, *others = _BETWEEN.split(_checked(content))
        if others:
            runs = [run for other in others for run in (text, other)]
            page.write_rich_string(row, column, first, *runs, style or text)
        else:
            page.write_string(row, column, content, style)
    elif content is not None:
        small = isinstance(content, int) and abs(content) < 2**50
        page.write_number(row, column, content if small else _Exact(content), style)


_ROWS_SHEET = "xl/worksheets/sheet1.xml"
#: What LibreOffice may take to calculate all workbooks, in seconds.
_PATIENCE = 1200
#: The columns of the format that results are read from.
_MOST_COLUMNS = 256


def _program() -> str | None:
    return shutil.which("soffice") or shutil.which("libreoffice")


def _absent() -> str | None:
    if _program() is None:
        return "LibreOffice is not installed (its program soffice calculates workbooks)"
    return None


def _run(content: bytes, plan: Plan, rows: Sequence[Row]) -> list[Prediction]:
    """Put the rows into copies of the workbook, and read the results of formulas."""
    if len(plan.inputs) + 2 + len(plan.classes) > _MOST_COLUMNS:
        raise ExportError(
            "The workbook has more than 256 columns to fill in and to read, and "
            "LibreOffice's results can only be read of so many. Write it without "
            "verification (verify=False)."
        )
    with ZipFile(BytesIO(content)) as archive:
        pieces = {name: archive.read(name) for name in archive.namelist()}
    size = pieces[_ROWS_SHEET].count(b"<row ") - 1
    batches = [rows[start : start + size] for start in range(0, len(rows), size)]
    predictions: list[Prediction] = []
    with TemporaryDirectory(prefix="branchwise-") as folder:
        names = [f"{number}.xlsx" for number in range(len(batches))]
        for name, batch in zip(names, batches, strict=True):
            cells = [serial_cells(plan, row) for row in batch]
            filled = {**pieces, _ROWS_SHEET: _filled(pieces[_ROWS_SHEET], cells)}
            with ZipFile(Path(folder) / name, "w", ZIP_DEFLATED) as copy:
                for member, piece in filled.items():
                    copy.writestr(member, piece)
        _calculate(names, Path(folder))
        for name, batch in zip(names, batches, strict=True):
            calculated = (Path(folder) / name).with_suffix(".xls").read_bytes()
            results = formula_results(calculated)
            predictions += [
                _prediction(results, row, plan) for row in range(1, len(batch) + 1)
            ]
    return predictions


def _filled(sheet: bytes, rows: Sequence[Row]) -> bytes:
    """Put rows in front of the formulas, from the second line on."""
    head, *lines = sheet.decode().split("<row ")
    for number, row in enumerate(rows, start=1):
        cells = "".join(
            _cell_xml(cell, f"{column_name(column)}{number + 1}")
            for column, cell in enumerate(row)
        )
        lines[number] = lines[number].replace(">", ">" + cells, 1)
    return "<row ".join([head, *lines]).encode()


def _cell_xml(cell: Cell, position: str) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return f'<c r="{position}" t="b"><v>{int(cell)}</v></c>'
    if not isinstance(cell, str):
        return f'<c r="{position}"><v>{cell!r}</v></c>'
    inner = f'<is><t xml:space="preserve">{escape(escaped(cell))}</t></is>'
    return f'<c r="{position}" t="inlineStr">{inner}</c>'


def escaped(text: str) -> str:
    """Write a text as workbooks do: what XML cannot hold by its number."""
    return _UNFIT.sub(lambda found: f"_x{ord(found.group()):04X}_", _checked(text))


def _calculate(names: Sequence[str], folder: Path) -> None:
    """Calculate workbooks with LibreOffice, saved in its binary format."""
    command = [
        _program() or "soffice",
        "--headless",
        f"-env:UserInstallation={(folder / 'profile').as_uri()}",
        *("--convert-to", "xls", "--outdir", str(folder)),
        *names,
    ]
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, capture_output=True, timeout=_PATIENCE, check=False
    )
    lacking = [n for n in names if not (folder / n).with_suffix(".xls").exists()]
    if lacking:
        told = done.stderr.decode(errors="replace").strip()[-2000:]
        raise ExportError(f"LibreOffice did not calculate the workbook: {told}")


Result = float | str | bool | None
_SHEET, _FORMULA, _STRING, _CONTINUE = 0x85, 0x06, 0x207, 0x3C


def formula_results(content: bytes) -> dict[tuple[int, int], Result]:
    """Return the results by (row, column), both from 0; None for an error.

    The binary format has numbers bit by bit; a library that reads it for people takes
    an error for an empty cell, and the beginning of a long text for all of it.
    """
    if not content.startswith(OLD_EXCEL):
        raise ExportError("LibreOffice wrote a file that is no compound file.")
    stream = next(CompoundFile(content).streams(("Workbook",)), b"")
    sheets = (body for kind, body in xls_records(stream, 0, set()) if kind == _SHEET)
    (start,) = struct.unpack_from("<I", next(sheets, b"\xff" * 4))
    results: dict[tuple[int, int], Result] = {}
    position: tuple[int, int] | None = None  # of a formula whose text is to come
    pieces: list[bytes] = []
    for kind, body in xls_records(stream, start, set()):
        if kind == _STRING or (kind == _CONTINUE and pieces):
            pieces.append(body)
            continue
        if position is not None and pieces:
            results[position] = _text(pieces)
            position, pieces = None, []
        if kind == _FORMULA:
            row, column = struct.unpack_from("<HH", body)
            results[row, column] = _number(body[6:14])
            position = (row, column) if body[12:14] == b"\xff\xff" else None
    return results


def _number(result: bytes) -> Result:
    """Read 8 bytes: a number, or a mark for something else; texts come later."""
    if result[6:] != b"\xff\xff":
        number: float = struct.unpack("<d", result)[0]
        return number
    kind, value = result[0], result[2]
    if kind == 1:
        return bool(value)
    return None if kind == 2 else ""


def _text(pieces: list[bytes]) -> str:
    """Join a text from a record and those that continue it, each with its width."""
    text = _characters(pieces[0][2], pieces[0][3:])
    for piece in pieces[1:]:
        text += _characters(piece[0], piece[1:])
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _characters(wide: int, content: bytes) -> str:
    code = "utf-16-le" if wide & 1 else "latin-1"
    return content.decode(code, "surrogatepass" if wide & 1 else "strict")


def _prediction(
    results: dict[tuple[int, int], Result], row: int, plan: Plan
) -> Prediction:
    """Return what a row is told: nothing at all where it is rejected."""
    first = len(plan.inputs)
    told = [results[row, first + i] for i in range(1 + len(plan.classes))]
    # LibreOffice saves an empty text in a cell of per cents as 0.
    if told[0] == "" and not any(told[1:]):
        return None
    probabilities = tuple(c if isinstance(c, float) else float("nan") for c in told[1:])
    label = told[0]
    known: dict[Value, Value] = {
        normal(c) if isinstance(c, str) else c: c for c in plan.classes
    }
    return "(error)" if label is None else known.get(label, label), probabilities


def runners(options: Options) -> list[Runner]:  # noqa: ARG001
    """Return the one program that calculates workbooks without a window."""
    return [Runner("LibreOffice", _absent, _run)]
