"""Small workbooks of the formats that have no writer here, made byte by byte."""

from __future__ import annotations

import io
import struct
import zipfile

_DOCUMENT = (
    '<office:document-content xmlns:office="o" xmlns:table="t" xmlns:text="x">'
    '<office:body><office:spreadsheet><table:table table:name="a">{}</table:table>'
    "</office:spreadsheet></office:body></office:document-content>"
)
VALUE = '<table:table-cell office:value-type="float" office:value="1" {}/>'
TEXT = (
    '<table:table-cell office:value-type="string">'
    "<text:p>{}</text:p></table:table-cell>"
)
ROW = "<table:table-row {}>{}</table:table-row>"


def open_document(rows: str, damage: tuple[str, str] = ("", "")) -> bytes:
    """Return an .ods file with one sheet of these rows; ``damage`` replaces a text."""
    return _archive(
        {
            "mimetype": b"application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": b"<manifest:manifest/>",
            "content.xml": _DOCUMENT.format(rows).replace(*damage).encode(),
        }
    )


def _archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


# ---- .xls ---------------------------------------------------------------------------


def record(kind: int, *numbers: float, form: str = "", content: bytes = b"") -> bytes:
    """Return a record of an .xls stream."""
    content = struct.pack(f"<{form}", *numbers) + content
    return struct.pack("<HH", kind, len(content)) + content


def number_at(row: int, column: int, value: float = 1.5) -> bytes:
    """Return the record of a number."""
    return record(0x203, row, column, 0, value, form="HHHd")


def text_at(row: int, column: int, text: str) -> bytes:
    """Return the record of a text."""
    content = struct.pack("<HB", len(text), 1) + text.encode("utf-16-le")
    return record(0x204, row, column, 0, form="HHH", content=content)


def old_workbook(cells: bytes) -> bytes:
    """Return an .xls file with one sheet of these records, in sectors out of order."""
    begin = record(0x809, 0x600, 5, 0, 0, 0, 0, form="HHHHII")
    name = record(0x85, 0, 0, 0, 1, 0, form="IBBBB", content=b"s")
    globals_ = begin + name + record(0x0A)
    name = record(0x85, len(globals_), 0, 0, 1, 0, form="IBBBB", content=b"s")
    sheet = record(0x809, 0x600, 0x10, 0, 0, 0, 0, form="HHHHII") + cells
    stream = (begin + name + record(0x0A) + sheet + record(0x0A)).ljust(4096, b"\0")
    stream += bytes(-len(stream) % 512)
    number = len(stream) // 512
    end, free, special = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
    # The stream lies backwards, behind the table of sectors and the directory.
    table = [special, end, end, *range(2, number + 1)]
    table += [free] * (128 - len(table))
    head = bytes.fromhex("d0cf11e0a1b11ae1").ljust(24, b"\0")
    head += struct.pack("<5H6x", 0x3E, 3, 0xFFFE, 9, 6)
    head += struct.pack("<10I", 0, 1, 1, 0, 4096, end, 0, end, 0, 0)
    head += struct.pack("<108I", *[free] * 108)

    def entry(title: str, kind: int, start: int, size: int, child: int) -> bytes:
        text = title.encode("utf-16-le") + b"\0\0"
        numbers = struct.pack("<HBBIII", len(text), kind, 1, free, free, child)
        place = struct.pack("<IQ", start, size)
        return text.ljust(64, b"\0") + numbers + bytes(36) + place

    folder = entry("Root Entry", 5, end, 0, 1)
    folder += entry("Workbook", 2, number + 1, len(stream), free)
    sectors = [stream[at : at + 512] for at in range(0, len(stream), 512)]
    return (
        head
        + struct.pack("<128I", *table)
        + folder.ljust(512, b"\0")
        + b"".join(reversed(sectors))
    )


# ---- .xlsb --------------------------------------------------------------------------


def _variable(number: int) -> bytes:
    """Return a number in groups of seven bits, as records of .xlsb have it."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def binary_record(kind: int, content: bytes = b"") -> bytes:
    """Return a record of an .xlsb part."""
    first = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
    return first + _variable(len(content)) + content


def _wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def binary_row(row: int) -> bytes:
    """Return the header of a row, which its cells follow."""
    return binary_record(0, struct.pack("<IIHB", row, 0, 300, 0) + bytes(6))


def binary_number(column: int, value: float) -> bytes:
    """Return a cell with a number."""
    return binary_record(5, struct.pack("<IId", column, 0, value))


def binary_text(column: int, text: str) -> bytes:
    """Return a cell with a text."""
    return binary_record(6, struct.pack("<II", column, 0) + _wide(text))


def binary_workbook(cells: bytes, rows: int = 2, columns: int = 2) -> bytes:
    """Return an .xlsb file with one sheet of these records."""
    sheet = binary_record(156, struct.pack("<II", 0, 1) + _wide("rId1") + _wide("s"))
    book = binary_record(131) + binary_record(143) + sheet
    book += binary_record(144) + binary_record(132)
    size = struct.pack("<IIII", 0, rows - 1, 0, columns - 1)
    part = binary_record(129) + binary_record(148, size) + binary_record(145)
    part += cells + binary_record(146) + binary_record(130)
    relations = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
        'relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org'
        '/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.bin"/>'
        "</Relationships>"
    )
    return _archive(
        {
            "[Content_Types].xml": b"<Types/>",
            "xl/workbook.bin": book,
            "xl/_rels/workbook.bin.rels": relations.encode(),
            "xl/worksheets/sheet1.bin": part,
        }
    )
