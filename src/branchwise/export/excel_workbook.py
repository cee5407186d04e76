"""An Excel workbook of plain cells and formulas, written with the standard library.

Texts are cells of their own and never part of a formula, so that nothing a user wrote
can be taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from xml.sax.saxutils import escape, quoteattr
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from branchwise.errors import ExportError

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
#: What XML cannot hold or would change, and what looks like the escape of it.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
#: Characters of a cell.
MOST_CHARACTERS = 32_767
#: Styles, by their position in styles.xml.
PLAIN, HEADER, TEXT = range(3)


@dataclass(frozen=True)
class Formula:
    """A formula, without the equals sign."""

    text: str


Content = str | bool | int | float | Formula | None


@dataclass
class Sheet:
    """A sheet: rows of cells, the width of its columns, those that hold texts."""

    name: str
    rows: list[list[Content]]
    widths: Sequence[int] = ()
    text_columns: frozenset[int] = field(default_factory=frozenset)
    hidden: bool = False


def column_name(index: int) -> str:
    """Return the letters of a column, the first being 0."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def cell_xml(content: Content, column: int, row: int, style: int = PLAIN) -> str:
    """Write a cell; rows count from 1, columns from 0."""
    if content is None:
        return ""
    at = f'<c r="{column_name(column)}{row}"' + (f' s="{style}"' if style else "")
    if isinstance(content, Formula):
        return f"{at}><f>{escape(content.text)}</f></c>"
    if isinstance(content, bool):
        return f'{at} t="b"><v>{int(content)}</v></c>'
    if isinstance(content, (int, float)):
        return f"{at}><v>{content!r}</v></c>"
    text = f'<t xml:space="preserve">{escape(escaped(content))}</t>'
    return f'{at} t="inlineStr"><is>{text}</is></c>'


def escaped(text: str) -> str:
    """Write a text as workbooks do: what XML cannot hold by its number."""
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
    return _UNFIT.sub(lambda found: f"_x{ord(found.group()):04X}_", text)


def workbook(sheets: Sequence[Sheet]) -> bytes:
    """Return a workbook; the same sheets give the same bytes."""
    pieces = {
        "[Content_Types].xml": _content_types(len(sheets)),
        "_rels/.rels": _relations([("officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": _book(sheets),
        "xl/_rels/workbook.xml.rels": _relations(
            [
                *(("worksheet", _path(i)) for i in range(len(sheets))),
                ("styles", "styles.xml"),
            ]
        ),
        "xl/styles.xml": _styles(),
        **{f"xl/{_path(i)}": _sheet(s) for i, s in enumerate(sheets)},
    }
    return zipped({name: piece.encode() for name, piece in pieces.items()})


def zipped(pieces: dict[str, bytes]) -> bytes:
    """Zip the files of a workbook, all with the same timestamp."""
    target = BytesIO()
    with ZipFile(target, "w") as archive:
        for name, content in pieces.items():
            entry = ZipInfo(name)
            entry.compress_type = ZIP_DEFLATED
            archive.writestr(entry, content)
    return target.getvalue()


def _path(index: int) -> str:
    return f"worksheets/sheet{index + 1}.xml"


def _content_types(n_sheets: int) -> str:
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml."
    pieces = [
        ("/xl/workbook.xml", "sheet.main+xml"),
        ("/xl/styles.xml", "styles+xml"),
        *((f"/xl/{_path(i)}", "worksheet+xml") for i in range(n_sheets)),
    ]
    overrides = "".join(
        f'<Override PartName="{name}" ContentType="{kind}{end}"/>'
        for name, end in pieces
    )
    relations = "application/vnd.openxmlformats-package.relationships+xml"
    return (
        f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
        f'<Default Extension="rels" ContentType="{relations}"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f"{overrides}</Types>"
    )


def _relations(pieces: Sequence[tuple[str, str]]) -> str:
    inner = "".join(
        f'<Relationship Id="r{i}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for i, (kind, target) in enumerate(pieces)
    )
    return (
        f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{inner}'
        "</Relationships>"
    )


def _book(sheets: Sequence[Sheet]) -> str:
    inner = "".join(
        f"<sheet name={quoteattr(sheet.name)} "
        f'sheetId="{i + 1}" '
        + ('state="hidden" ' if sheet.hidden else "")
        + f'r:id="r{i}"/>'
        for i, sheet in enumerate(sheets)
    )
    return (
        f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{inner}</sheets>'
        '<calcPr calcId="0" fullCalcOnLoad="1"/></workbook>'
    )


def _styles() -> str:
    """Return three styles: plain, a bold header that is text, and text."""
    font = '<font><sz val="11"/><name val="Calibri"/></font>'
    bold = '<font><b/><sz val="11"/><name val="Calibri"/></font>'
    cell_format = '<xf numFmtId="{}" fontId="{}" fillId="0" borderId="0"{}/>'
    same = ' xfId="0" applyNumberFormat="1" applyFont="1"'
    formats = "".join(cell_format.format(*f, same) for f in ((0, 0), (49, 1), (49, 0)))
    return (
        f'{_HEAD}<styleSheet xmlns="{_MAIN}">'
        f'<fonts count="2">{font}{bold}</fonts>'
        '<fills count="2"><fill><patternFill patternType="none"/></fill>'
        '<fill><patternFill patternType="gray125"/></fill></fills>'
        '<borders count="1"><border/></borders>'
        f'<cellStyleXfs count="1">{cell_format.format(0, 0, "")}</cellStyleXfs>'
        f'<cellXfs count="3">{formats}</cellXfs>'
        '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/>'
        "</cellStyles></styleSheet>"
    )


def _sheet(sheet: Sheet) -> str:
    columns = "".join(
        f'<col min="{i + 1}" max="{i + 1}" width="{width}" customWidth="1"'
        + (f' style="{TEXT}"' if i in sheet.text_columns else "")
        + "/>"
        for i, width in enumerate(sheet.widths)
    )
    rows = "".join(
        f'<row r="{number}">'
        + "".join(
            cell_xml(content, column, number, HEADER if number == 1 else PLAIN)
            for column, content in enumerate(cells)
        )
        + "</row>"
        for number, cells in enumerate(sheet.rows, start=1)
    )
    pane = (
        '<sheetViews><sheetView workbookViewId="0">'
        '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
        "</sheetView></sheetViews>"
    )
    return (
        f'{_HEAD}<worksheet xmlns="{_MAIN}">{pane}'
        + (f"<cols>{columns}</cols>" if columns else "")
        + f"<sheetData>{rows}</sheetData></worksheet>"
    )
