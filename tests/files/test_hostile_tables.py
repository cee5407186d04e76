"""Tables made to crash, hang or exhaust memory are refused with an error that helps."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import struct
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from fuzz import tables
from pyarrow import feather, ipc, parquet

from branchwise import BranchwiseError, DataError, fit_tree, read_table
from branchwise.files import database
from branchwise.files import raw_bytes as contents
from branchwise.files.arff import open_arff
from branchwise.files.dataset import StreamedTable
from branchwise.files.options import Reading
from branchwise.files.read_table import TableFile
from command_line import run
from workbooks import (
    ROW,
    VALUE,
    binary_number,
    binary_row,
    binary_text,
    binary_workbook,
    number_at,
    old_workbook,
    open_document,
    record,
)


def error(path, **options):
    with pytest.raises(DataError) as caught:
        read_table(path, **options)
    return str(caught.value)


# ---- files that change while they are read ------------------------------------------


def write_csv(path):
    path.write_text("a,b\n" + "1,x\n" * 5000)


def write_parquet(path):
    parquet.write_table(pa.table({"a": np.arange(5000.0)}), path, compression="none")


def write_feather(path):
    table = pa.table({"a": np.arange(5000.0)})
    feather.write_feather(table, path, compression="uncompressed")


@pytest.mark.parametrize("write", [write_csv, write_parquet, write_feather])
def test_a_file_that_is_truncated_while_it_is_read(tmp_path, monkeypatch, write):
    monkeypatch.setattr(contents, "_IN_MEMORY", 1000)
    path = tmp_path / "data"
    write(path)
    file = TableFile(path)
    os.truncate(path, 4096)
    with pytest.raises(DataError, match="data became shorter while it was read"):
        file.read()


# ---- sizes --------------------------------------------------------------------------


def test_max_size_is_the_same_for_every_format(tmp_path):
    table = pa.table({"a": np.zeros(100_000), "b": ["word"] * 100_000})
    parquet.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.feather", compression="zstd")
    with ipc.new_stream(tmp_path / "t.arrows", table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)
    (tmp_path / "t.csv").write_text("a,b\n" + "0.0,word\n" * 100_000)
    for name in ("t.parquet", "t.feather", "t.arrows", "t.csv"):
        path = tmp_path / name
        assert error(path, max_size="500kB") == (
            f"{path} has more than 500 kB of data when it is read. If that is what it "
            "should have, allow more with max_size, such as 50GB."
        )
        assert read_table(path, max_size="5MB").num_rows == 100_000


def test_a_small_parquet_file_with_many_rows(tmp_path):
    path = tmp_path / "bomb.parquet"
    schema = pa.schema({"n": pa.int64(), "word": pa.string()})
    words = pa.repeat("", 10**6)
    zeros = pa.table([np.zeros(10**6, int), words], schema)
    with parquet.ParquetWriter(path, schema) as writer:
        for _ in range(3):
            writer.write_table(zeros, row_group_size=10**6)
    assert path.stat().st_size < 30_000
    for columns in (["n"], ["word"]):
        ignored = {"n", "word"}.difference(columns)
        assert "more than 10 MB of data" in error(path, max_size="10MB", ignore=ignored)
    assert read_table(path, max_size="50MB", ignore=["word"]).num_rows == 3 * 10**6


# ---- databases ----------------------------------------------------------------------

ENDLESS = {
    "rows": "with recursive r(n) as (select 1 union all select n + 1 from r) "
    "select n, 'some text' as t from r",
    "no rows": "with recursive r(n) as (select 1 union all select n % 9 from r) "
    "select n, 'some text' as t from r where n < 0",
}


def connect(form, path):
    module = pytest.importorskip({"sqlite": "sqlite3"}.get(form, form))
    return contextlib.closing(module.connect(str(path)))


@pytest.mark.parametrize("form", ["sqlite", "duckdb"])
@pytest.mark.parametrize("kind", ENDLESS)
def test_an_endless_view_is_refused(tmp_path, monkeypatch, form, kind):
    monkeypatch.setattr(database, "_MOST_SECONDS", 0.5)
    path = tmp_path / f"data.{form}"
    with connect(form, path) as connection:
        connection.execute(f"create view endless as {ENDLESS[kind]}")
        connection.execute("create table t as select 1 as a")
        connection.commit()
    message = error(path, table="endless", max_size="1MB")
    assert "gave no row for 0.5 seconds" in message or (
        kind == "rows" and "more than 1 MB of data" in message
    )
    code, _, complaint = run("schema", path, "--table", "endless", "--max-size", "1MB")
    assert code == 1
    assert complaint.startswith("error: ")
    assert read_table(path, table="t").to_pydict() == {"a": [1]}
    assert read_table(path, query="select a from t where a > 1").num_rows == 0


def test_slow_queries_that_give_rows_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "_MOST_SECONDS", 5.0)
    path = tmp_path / "data.sqlite"
    with connect("sqlite", path) as connection:
        connection.execute("create table t as select 1 as a")
    found = read_table(path, query=ENDLESS["rows"] + " limit 100000")
    assert found.num_rows == 100_000


# ---- workbooks ----------------------------------------------------------------------


def sheet(rows: str, path, **members: str) -> None:
    """Write an .xlsx file with these rows as XML."""
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    files = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": f'<Relationships xmlns="{package}"/>',
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{office}"><sheets><sheet '
        'name="a" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}"><Relationship '
        f'Id="rId1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/>'
        "</Relationships>",
        "xl/worksheets/sheet1.xml": f"<worksheet {main}><sheetData>{rows}</sheetData>"
        "</worksheet>",
        **members,
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)


FIRST = '<row r="1"><c r="A1"><v>1</v></c></row>'
FAR = {
    "corner": '<row r="1048576"><c r="XFD1048576"><v>2</v></c></row>',
    "single quotes": "<row r='1048576'><c r = 'XFD1048576'><v>2</v></c></row>",
    "row alone": '<row r="1048576"><c><v>2</v></c></row>' + "<c/>" * 1000,
    "cell alone": '<row><c r="XFD1048576"><v>2</v></c></row>',
    "prefix": '<x:row r="1048576"><x:c r="XFD1048576"><v>2</v></x:c></x:row>',
}


@pytest.mark.parametrize("far", FAR.values(), ids=FAR)
def test_cells_far_apart_are_refused_before_memory_is_taken(tmp_path, far):
    pytest.importorskip("python_calamine")
    path = tmp_path / "far.xlsx"
    sheet(FIRST + far, path)
    assert path.stat().st_size < 2000
    assert "far.xlsx has cells so far apart that a sheet" in error(path)
    code, _, complaint = run("schema", path)
    assert code == 1
    assert "cells so far apart" in complaint


@pytest.mark.parametrize("position", ["BDISCRETE2", "AAAAA1", "A" + "9" * 10])
def test_positions_that_no_sheet_has(position, tmp_path):
    """Readers keep some bits of them, which may be a cell very far away."""
    pytest.importorskip("python_calamine")
    path = tmp_path / "t.xlsx"
    sheet(FIRST + f'<row r="2"><c r="{position}"><v>2</v></c></row>', path)
    assert "no sheet has a cell at" in error(path)


def test_cells_within_bounds_are_read(tmp_path):
    pytest.importorskip("python_calamine")
    path = tmp_path / "near.xlsx"
    book = pytest.importorskip("openpyxl").Workbook()
    book.active["A1"] = 1
    book.active["CZ3000"] = 2
    book.save(path)
    assert read_table(path, header=False).num_rows == 3000
    assert "cells so far apart that a sheet (xl/worksheets/sheet1.xml)" in error(
        path, max_size="1MB"
    )


def test_a_bomb_of_shared_strings_is_refused(tmp_path):
    pytest.importorskip("python_calamine")
    path = tmp_path / "bomb.xlsx"
    text = "<sst>" + "<si><t>" + " " * 3_000_000 + "</t></si></sst>"
    sheet(FIRST, path, **{"xl/sharedStrings.xml": text})
    assert path.stat().st_size < 10_000
    assert "has more than 1 MB of data" in error(path, max_size="1MB")


def test_repeated_cells_of_open_document(tmp_path):
    pytest.importorskip("python_calamine")
    path = tmp_path / "data.ods"
    many = 'table:number-columns-repeated="9999999999"'
    often = 'table:number-rows-repeated="9999999999"'
    path.write_bytes(open_document(ROW.format("", VALUE.format(many))))
    assert "cells so far apart" in error(path)
    value = VALUE.format("")
    path.write_bytes(
        open_document(
            ROW.format(often, "<table:table-cell/>") + ROW.format("", value * 2)
        )
    )
    assert "cells so far apart" in error(path)
    # What follows the last value is empty, and not read.
    empty = "<table:table-cell {}/>"
    end = ROW.format('table:number-rows-repeated="1048570"', empty.format(many))
    path.write_bytes(
        open_document(ROW.format("", value * 2 + empty.format(many)) + end)
    )
    assert read_table(path, header=False).to_pydict() == {"x0": [1], "x1": [1]}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("</table:table>", ""),
        ("</table:table>", "</table:tab\tle>"),
        ("<office:document", "<!DOCTYPE a [<!ENTITY b 'c'>]><office:document"),
        ('repeated="2"', 'repeated="two"'),
        ('repeated="2"', 'repeated=""'),
    ],
)
def test_open_document_that_is_no_xml(tmp_path, old, new):
    """The reader of cells searched for the end of a sheet forever."""
    path = tmp_path / "t.ods"
    value = VALUE.format('table:number-columns-repeated="2"')
    path.write_bytes(open_document(ROW.format("", value), (old, new)))
    assert "is not a whole workbook" in error(path)


# ---- many columns -------------------------------------------------------------------


def test_too_many_columns_are_refused(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"a{at}" for at in range(100_001)) + "\n")
    expected = (
        f"{path} has 100,001 columns, more than the 100,000 that a table may have. Is "
        "the separator wrong, or are rows and columns exchanged?"
    )
    assert error(path) == expected
    with pytest.raises(DataError) as caught:
        fit_tree(StreamedTable((str(path),)), "y")
    assert str(caught.value) == expected


def test_messages_list_few_columns(tmp_path):
    path = tmp_path / "wide.csv"
    names = [f"a{at}" for at in range(2000)]
    path.write_text(",".join(names) + "\n" + ",".join(["1"] * 2000) + "\n")
    assert len(error(path, ignore=["b"])) < 500
    path.write_text("a," * 2000 + "a\n")
    assert len(error(path)) < 500
    path.write_text("a" * 10**6 + ",b\n1,2\n")
    assert len(error(path, ignore=["c"])) < 500


def test_declared_columns_are_looked_up_once(tmp_path):
    path = tmp_path / "data.arff"
    path.write_text("@relation r\n@attribute a {x}\n@attribute b real\n@data\nx,1\n")
    rows = open_arff(path.read_bytes(), "data.arff", Reading())
    assert rows.names is rows.names
    assert rows.names == ("a", "b")
    assert rows.declared == {"a"}


# ---- damaged files ------------------------------------------------------------------


def not_utf8(form=None):
    """Return a column of two texts, the first of which is one wrong byte."""
    offsets = pa.py_buffer(np.array([0, 1, 2], np.int32))
    cells = pa.py_buffer(b"\xffa")
    column = pa.Array.from_buffers(pa.string(), 2, [None, offsets, cells])
    return column.dictionary_encode() if form == "dictionary" else column


@pytest.mark.parametrize("form", ["text", "dictionary"])
def test_text_that_is_not_utf8(tmp_path, form):
    table = pa.table({"x": not_utf8(form), "y": ["a", "b"]})
    with pytest.raises(DataError, match="Column 'x' has text that is not UTF-8"):
        fit_tree(table, "y")
    feather.write_feather(table, tmp_path / "t.feather")
    parquet.write_table(table, tmp_path / "t.parquet")
    for name in ("t.feather", "t.parquet"):
        assert "is not a whole " in error(tmp_path / name)
        with pytest.raises(DataError):
            fit_tree(StreamedTable((str(tmp_path / name),)), "y")


@pytest.mark.parametrize("name", ["t.feather", "t.parquet"])
def test_column_names_that_are_not_utf8(tmp_path, name):
    path = tmp_path / name
    table = pa.table({"strange": [1, 2], "y": ["a", "b"]})
    write = feather.write_feather if name == "t.feather" else parquet.write_table
    write(table, path, **({"store_schema": False} if name == "t.parquet" else {}))
    path.write_bytes(path.read_bytes().replace(b"strange", b"str\xffnge"))
    with pytest.raises(DataError):
        read_table(path)
    with pytest.raises(DataError):
        fit_tree(StreamedTable((str(path),)), "y")


def workbook_bytes():
    book = pytest.importorskip("openpyxl").Workbook()
    for row in (["a", "b"], [1, "x"], [2, "y"]):
        book.active.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def arrow_bytes(write):
    stream = io.BytesIO()
    write(pa.table({"a": [1, 2] * 20, "b": ["x", None] * 20}), stream)
    return stream.getvalue()


DAMAGED = {
    "t.xlsx": workbook_bytes,
    "t.parquet": lambda: arrow_bytes(parquet.write_table),
    "t.feather": lambda: arrow_bytes(feather.write_feather),
    "utf-16.csv": lambda: "a,b\nü,1\n".encode("utf-16"),
    "utf-32.csv": lambda: "a,b\nü,1\n".encode("utf-32"),
    "t.csv.gz": lambda: gzip.compress(b"a,b\n" + b"1,2\n" * 20),
    "t.csv.zst": lambda: pa.compress(b"a,b\n" + b"1,2\n" * 20, "zstd", asbytes=True),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_files_that_are_cut_off(tmp_path, name):
    whole = DAMAGED[name]()
    path = tmp_path / name
    step = max(1, len(whole) // 40)
    for size in {*range(8, len(whole), step), len(whole) - 1, len(whole) - 2}:
        path.write_bytes(whole[:size])
        with contextlib.suppress(BranchwiseError):
            table = read_table(path)
            assert name.startswith("utf"), size  # which may end after any cell
            assert table.num_columns in (1, 2)


def test_metadata_of_parquet_that_are_damaged(tmp_path):
    """The first of them ended the process when its columns were asked for sizes."""
    for number in (15280, 13034, 159):
        assert tables.try_one(number, tmp_path, 16) == "refused"


# ---- old workbooks ------------------------------------------------------------------


def test_old_workbooks_are_read(tmp_path):
    path = tmp_path / "t.xls"
    cells = [
        number_at(0, 0, 7.0),
        number_at(0, 1, 8.0),
        number_at(1, 0),
        number_at(1, 1),
    ]
    # As much as the format has is what some programs always say.
    size = record(0x200, 0, 65536, 0, 256, 0, form="IIHHH")
    path.write_bytes(old_workbook(size + b"".join(cells)))
    assert read_table(path).to_pydict() == {"7": [1.5], "8": [1.5]}


@pytest.mark.parametrize(
    "cells",
    [
        number_at(0, 0) + number_at(65535, 65535),
        number_at(0, 0) + record(0xBD, 65535, 0, form="HH", content=b"\xff" * 8),
        record(0x200, 0, 2**32 - 1, 0, 2**16 - 1, 0, form="IIHHH") + number_at(0, 0),
    ],
)
def test_old_workbooks_of_far_cells_are_refused(tmp_path, cells):
    path = tmp_path / "t.xls"
    path.write_bytes(old_workbook(cells))
    assert "cells so far apart" in error(path)


def test_old_workbooks_with_circles_are_refused(tmp_path):
    path = tmp_path / "t.xls"
    content = bytearray(old_workbook(number_at(0, 0)))
    struct.pack_into("<I", content, 512 + 4, 1)  # the directory follows itself
    path.write_bytes(content)
    assert "form a cycle" in error(path)
    path.write_bytes(content[:600])
    assert "is not a whole workbook" in error(path)


@pytest.mark.parametrize("field", [40, 44, 64, 72])
def test_old_workbooks_that_count_too_many_sectors_are_refused(tmp_path, field):
    path = tmp_path / "t.xls"
    content = bytearray(old_workbook(number_at(0, 0)))
    struct.pack_into("<I", content, field, 2**25)
    path.write_bytes(content)
    assert "counts 33,554,432 sectors, more than the file has" in error(path)


def test_binary_workbooks_are_read(tmp_path):
    path = tmp_path / "t.xlsb"
    cells = binary_row(0) + binary_text(0, "a") + binary_text(1, "b")
    cells += binary_row(1) + binary_number(0, 1.5) + binary_text(1, "x")
    path.write_bytes(binary_workbook(cells))
    assert read_table(path).to_pydict() == {"a": [1.5], "b": ["x"]}


@pytest.mark.parametrize(
    "cells",
    [
        binary_row(2**20 - 1) + binary_number(2**14 - 1, 1.0),
        binary_row(2**31) + binary_number(2**31, 1.0),
    ],
)
def test_binary_workbooks_of_far_cells_are_refused(tmp_path, cells):
    path = tmp_path / "t.xlsb"
    path.write_bytes(binary_workbook(binary_row(0) + binary_number(0, 1.0) + cells))
    assert "cells so far apart" in error(path)
