"""Running an Excel workbook: rows are put into it, and LibreOffice calculates."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from branchwise.errors import ExportError
from branchwise.export.answers import Answer
from branchwise.export.biff import Result, formula_results
from branchwise.export.plan import Plan, Row
from branchwise.export.target import Options, Runner
from branchwise.export.workbook import PLAIN, TEXT, cell_xml, packed
from branchwise.table.schema import Value

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


def _run(content: bytes, plan: Plan, rows: Sequence[Row]) -> list[Answer]:
    """Put the rows into copies of the workbook, and read what the formulas say."""
    if len(plan.fields) + 1 + len(plan.classes) > _MOST_COLUMNS:
        raise ExportError(
            "The workbook has more than 256 columns to fill in and to read, and "
            "LibreOffice's results can only be read of so many. Write it without "
            "verification (verify=False, --no-verify)."
        )
    with ZipFile(BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    size = parts[_ROWS_SHEET].count(b"<row ") - 1
    batches = [rows[start : start + size] for start in range(0, len(rows), size)]
    with TemporaryDirectory(prefix="branchwise-") as folder:
        names = []
        for number, batch in enumerate(batches):
            names.append(f"{number}.xlsx")
            filled = _filled(parts[_ROWS_SHEET], plan, batch)
            (Path(folder) / names[-1]).write_bytes(
                packed({**parts, _ROWS_SHEET: filled})
            )
        _calculate(names, Path(folder))
        answers: list[Answer] = []
        for number, batch in enumerate(batches):
            results = formula_results((Path(folder) / f"{number}.xls").read_bytes())
            answers += [_answer(results, row, plan) for row in range(1, len(batch) + 1)]
    return answers


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
    """Let LibreOffice open workbooks and write what they say in its binary format."""
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


def _answer(results: dict[tuple[int, int], Result], row: int, plan: Plan) -> Answer:
    """Return what a row is told: nothing at all where it is refused."""
    first = len(plan.fields)
    told = [results[row, first + i] for i in range(1 + len(plan.classes))]
    if told[-1] == "":
        return None
    chances = tuple(c if isinstance(c, float) else float("nan") for c in told[1:])
    return _label(told[0], plan), chances


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
