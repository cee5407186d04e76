"""Runner of Excel workbooks: fills in rows and calculates with LibreOffice."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from branchwise.data.schema import Value
from branchwise.errors import ExportError
from branchwise.export.base import Options, Prediction, Runner
from branchwise.export.excel_workbook import PLAIN, TEXT, cell_xml, zipped
from branchwise.export.plan import Plan, Row

Result = float | str | bool | None

_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
#: Sector numbers from here on end a chain.
_SPECIAL = 0xFFFFFFFA
_SHEET, _FORMULA, _STRING, _CONTINUE, _END = 0x85, 0x06, 0x207, 0x3C, 0x0A


def formula_results(content: bytes) -> dict[tuple[int, int], Result]:
    """Return the results by (row, column), both from 0; None for an error."""
    stream = _workbook_stream(content)
    start = next(
        struct.unpack_from("<I", body)[0]
        for kind, body in _records(stream, 0)
        if kind == _SHEET
    )
    results: dict[tuple[int, int], Result] = {}
    position: tuple[int, int] | None = None  # of a formula whose text is to come
    pieces: list[bytes] = []
    for kind, body in _records(stream, start):
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
        elif kind == _END:
            break
    return results


def _records(stream: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        yield kind, stream[at + 4 : at + 4 + size]
        at += 4 + size


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


def _workbook_stream(content: bytes) -> bytes:
    """Take the stream with the workbook out of a compound file."""
    if not content.startswith(_SIGNATURE):
        raise ExportError("LibreOffice wrote a file that is no compound file.")
    size = 1 << struct.unpack_from("<H", content, 30)[0]
    table = _allocation(content, size)
    directory = _chain(content, size, table, struct.unpack_from("<I", content, 48)[0])
    for at in range(0, len(directory), 128):
        length = struct.unpack_from("<H", directory, at + 64)[0]
        name = directory[at : at + max(0, length - 2)].decode("utf-16-le")
        if name == "Workbook":
            first, n_bytes = struct.unpack_from("<II", directory, at + 116)
            return _chain(content, size, table, first)[:n_bytes]
    raise ExportError("LibreOffice wrote a file without a workbook.")


def _allocation(content: bytes, size: int) -> list[int]:
    """Return for every sector the one that follows it."""
    sectors = list(struct.unpack_from("<109I", content, 76))
    more = struct.unpack_from("<I", content, 68)[0]
    while more < _SPECIAL:
        block = struct.unpack_from(f"<{size // 4}I", content, (more + 1) * size)
        sectors += block[:-1]
        more = block[-1]
    table: list[int] = []
    for sector in sectors:
        if sector < _SPECIAL:
            table += struct.unpack_from(f"<{size // 4}I", content, (sector + 1) * size)
    return table


def _chain(content: bytes, size: int, table: list[int], sector: int) -> bytes:
    pieces = []
    while sector < _SPECIAL:
        pieces.append(content[(sector + 1) * size : (sector + 2) * size])
        sector = table[sector]
    return b"".join(pieces)


_ROWS_SHEET = "xl/worksheets/sheet1.xml"
#: What LibreOffice may take to calculate all workbooks, in seconds.
_PATIENCE = 1200
#: The columns of the format that results are read from.
_MOST_COLUMNS = 256


def normal(text: str) -> str:
    """Return what programs for spreadsheets make of a text."""
    return re.sub("\r\n?", "\n", text).replace("\t", "\x01")


def _program() -> str | None:
    return shutil.which("soffice") or shutil.which("libreoffice")


def _absent() -> str | None:
    if _program() is None:
        return "LibreOffice is not installed (its program soffice calculates workbooks)"
    return None


def _run(content: bytes, plan: Plan, rows: Sequence[Row]) -> list[Prediction]:
    """Put the rows into copies of the workbook, and read the results of formulas."""
    if len(plan.fields) + 1 + len(plan.classes) > _MOST_COLUMNS:
        raise ExportError(
            "The workbook has more than 256 columns to fill in and to read, and "
            "LibreOffice's results can only be read of so many. Write it without "
            "verification (verify=False)."
        )
    with ZipFile(BytesIO(content)) as archive:
        pieces = {name: archive.read(name) for name in archive.namelist()}
    size = pieces[_ROWS_SHEET].count(b"<row ") - 1
    batches = [rows[start : start + size] for start in range(0, len(rows), size)]
    with TemporaryDirectory(prefix="branchwise-") as folder:
        names = []
        for number, batch in enumerate(batches):
            names.append(f"{number}.xlsx")
            filled = _filled(pieces[_ROWS_SHEET], plan, batch)
            (Path(folder) / names[-1]).write_bytes(
                zipped({**pieces, _ROWS_SHEET: filled})
            )
        _calculate(names, Path(folder))
        predictions: list[Prediction] = []
        for number, batch in enumerate(batches):
            results = formula_results((Path(folder) / f"{number}.xls").read_bytes())
            predictions += [
                _prediction(results, row, plan) for row in range(1, len(batch) + 1)
            ]
    return predictions


def _filled(sheet: bytes, plan: Plan, rows: Sequence[Row]) -> bytes:
    """Put rows in front of the formulas, from the second line on."""
    head, *lines = sheet.decode().split("<row ")
    for number, row in enumerate(rows, start=1):
        cells = "".join(
            cell_xml(cell, column, number + 1, TEXT if field.kind == "text" else PLAIN)
            for column, (field, cell) in enumerate(zip(plan.fields, row, strict=True))
        )
        lines[number] = lines[number].replace(">", ">" + cells, 1)
    return "<row ".join([head, *lines]).encode()


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


def _prediction(
    results: dict[tuple[int, int], Result], row: int, plan: Plan
) -> Prediction:
    """Return what a row is told: nothing at all where it is refused."""
    first = len(plan.fields)
    told = [results[row, first + i] for i in range(1 + len(plan.classes))]
    if told[-1] == "":
        return None
    probabilities = tuple(c if isinstance(c, float) else float("nan") for c in told[1:])
    return _label(told[0], plan), probabilities


def _label(told: Result, plan: Plan) -> Value:
    """Return the label that a cell shows; what is none becomes a text that says so."""
    known: dict[Value, Value] = {}
    for label in plan.classes:
        known[normal(label) if isinstance(label, str) else label] = label
    if told is None:
        return "(error)"
    return known.get(told, told)


def runners(options: Options) -> list[Runner]:  # noqa: ARG001
    """Return the one program that calculates workbooks without a window."""
    return [Runner("LibreOffice", _absent, _run)]
