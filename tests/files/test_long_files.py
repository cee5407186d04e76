"""Long files are read with less memory, and give the same as short ones."""

from __future__ import annotations

import random
import re

import pytest

from branchwise import DataError
from branchwise.files import (
    raw_bytes as contents,
)
from branchwise.files.csv import csv_columns as parsing
from branchwise.files.csv import csv_rows as records
from branchwise.files.csv.csv_rows import line_spans
from branchwise.files.delimited import DelimitedFile
from branchwise.files.options import Reading, telling
from branchwise.files.raw_bytes import StoredFile, as_stream, find, position
from branchwise.files.read_table import read_table


@pytest.fixture
def long(monkeypatch):
    """Let a few bytes be a long text, and fewer show what its columns are."""
    monkeypatch.setattr(parsing, "_LONG", 8)
    monkeypatch.setattr(parsing, "_SAMPLE", 16)


def outcome(path, **options):
    try:
        table = read_table(path, **options)
    except DataError as error:
        return str(error)
    return table


@pytest.mark.parametrize(
    "rows",
    [
        "1,a\n2,b\n3,c\n4,a\n5,d\n6,e\n",
        "1,a\n2,b\n3,c\n4.5,a\n5,d\n6,e\n",
        "1,a\n2,b\n3,c\nx,a\n5,d\n6,e\n",
        "1.5,7\n2.5,8\n3.5,9\n4,10\n5,x\n",
        ",?\n,?\n,?\n,?\n,?\n1,a\n2.5,b\n",
        "2020-01-02,12:30\n2020-01-03,\n?,12:31\n",
        "2020-01-02,12:30\nno date,\n?,12:31\n",
        'x,"a\nb"\n1,"a very long cell, longer than what shows the types"\n',
        "99999999999999999999,1\n1,2\n3,99999999999999999999\n",
        "1,2\n3,4\n5,6\n7,8\n9,10\n11",
        "1,2\n3,4\n5,6\n7,8\n9,10,11\n12,13\n",
        '1,2\n3,4\n5,6\n7,8\n9,"10',
        '1,2\n3,4\n5,6\n7,8\n"9',
        '1,2\n3,4\n5,6\n7,"8\n9,10\nfoo',
        '1,2\n3,4\n5,6\n7,"8\n9,10\nfoo"',
        "1,\xe9t\xe9\n2,b\n3,c\n4,d\n",
        "1\r2,3\r4,5\r6,7\r",
    ],
)
# test_number_columns.py has the warning.
@pytest.mark.filterwarnings("ignore:whole numbers beyond 2")
def test_the_same_table_or_the_same_refusal(tmp_path, rows):
    path = tmp_path / "data.csv"
    path.write_bytes(b"a,b\n" + rows.encode("latin-1"))
    for options in ({}, {"text_columns": ["a"]}, {"ignore": ["b"]}):
        short = outcome(path, **options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parsing, "_LONG", 8)
            patch.setattr(parsing, "_SAMPLE", 16)
            longer = outcome(path, **options)
        if isinstance(short, str):
            assert longer == short
        else:
            assert longer.equals(short)


def test_random_tables_are_the_same(tmp_path):
    draw = random.Random(0)
    path = tmp_path / "data.csv"
    words = ["1", "2", "3.5", "-4e3", "", "?", "x", '"q,r"', "2020-01-02", "TRUE"]
    for _ in range(150):
        early, late = (draw.sample(words, draw.randint(1, 4)) for _ in range(2))
        rows = [
            [draw.choice(early) for _ in range(3)] for _ in range(draw.randint(1, 9))
        ]
        rows += [
            [draw.choice(late) for _ in range(3)] for _ in range(draw.randint(0, 9))
        ]
        path.write_text("a,b,c\n" + "".join(",".join(row) + "\n" for row in rows))
        short = outcome(path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parsing, "_LONG", 8)
            patch.setattr(parsing, "_SAMPLE", 24)
            longer = outcome(path)
        assert longer == short if isinstance(short, str) else longer.equals(short)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("5,re", "is truncated: it ends in line 402, column 4, with 2 of the 3 cells"),
        ('5,"re', "is truncated: it ends in line 402, column 5, with 2 of the 3 cells"),
        ('5,red,"y', "has a quotation mark in line 402, column 7 that is never closed"),
        ('5,red,"1', "has a quotation mark in line 402, column 7 that is never closed"),
    ],
)
def test_rows_are_not_kept_where_the_last_is_cut_off(
    tmp_path, long, monkeypatch, end, message
):
    """The refusal comes before memory is taken for the rows."""
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\n" + '1,"red",yes\n' * 400 + end)

    def refuse(*_):
        raise AssertionError("rows were kept")

    monkeypatch.setattr(parsing.Parser, "columns", refuse)
    with pytest.raises(DataError, match=message):
        read_table(path)


def test_a_number_in_an_open_quote(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('a,b\n"1",2\n3,"4')
    with pytest.raises(DataError, match="in line 3, column 3 that is never closed"):
        read_table(path)
    path.write_text('a,b\n"1",2\n"3",4')
    assert read_table(path)["b"].to_pylist() == [2, 4]


def test_a_last_line_without_an_end_may_be_part_of_a_cell(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('a,b\n1,2\n3,"x\n1,2\n5,6\nfoo"')
    assert read_table(path)["b"].to_pylist() == ["2", "x\n1,2\n5,6\nfoo"]


def test_lines_are_those_of_the_file_where_a_block_is_cut_off(tmp_path):
    """Of rows that are read in blocks, the last block knows how many went before."""
    path = tmp_path / "data.csv"
    for end, message in (
        ("5", "it ends in line 202, column 1, with 1 of the 2 cells"),
        ('5,"y', "a quotation mark in line 202, column 3 that is never closed"),
    ):
        path.write_text("a,b\n" + "1,yes\n" * 200 + end)
        file = DelimitedFile(path.read_bytes(), "data.csv", Reading())
        *first, last = file.blocks(100)
        assert len(first) > 5
        assert [len(block.load([0, 1], [], [])[0]) for block in first]
        with pytest.raises(DataError, match=message):
            last.load([0, 1], [], [])


def test_how_much_has_been_read_is_told(tmp_path, long):
    path = tmp_path / "data.csv"
    path.write_text("a,b\n" + "1,2\n" * 1234)
    told = []
    with telling(told.append):
        read_table(path)
    assert told[-1] == "1,234 rows"
    told.clear()
    read_table(path)
    assert told == []


def test_a_file_is_gone_through_three_times(tmp_path, monkeypatch):
    monkeypatch.setattr(contents, "_IN_MEMORY", 1000)
    path = tmp_path / "t.csv"
    monkeypatch.setattr(records, "_NUMBERED", 2**20)
    path.write_text("name,kind\n" + "some words,b\n" * 400_000)
    read, read_bytes = StoredFile._read, []

    def counted(self, begin, size):
        found = read(self, begin, size)
        read_bytes.append(len(found))
        return found

    monkeypatch.setattr(StoredFile, "_read", counted)
    assert read_table(path).num_rows == 400_000
    # For a second header, for quotation marks, and for cells.
    assert sum(read_bytes) < 3.2 * path.stat().st_size


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_second_header_is_found_in_any_chunk(tmp_path, monkeypatch, end):
    monkeypatch.setattr(contents, "_IN_MEMORY", 10)
    rows = ["name,kind", *["a,b"] * 20]
    for chunk in range(40, 60):
        monkeypatch.setattr(contents, "_CHUNK", chunk)
        path = tmp_path / "t.csv"
        path.write_text(end.join([*rows, "name,kind", "a,b", ""]), newline="")
        with pytest.raises(DataError, match="its header once more in line 22"):
            read_table(path)
        path.write_text(end.join([*rows, "name,kinds", "x", ""]), newline="")
        with pytest.raises(DataError, match="1 cell in line 23"):
            read_table(path)


def test_bytes_are_found_in_files_as_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(contents, "_CHUNK", 1000)
    monkeypatch.setattr(records, "_BLOCK", 7)
    text = b"some words\r\n" * 2000 + b"needle\r\nmore\rand \xc3\xa9 more"
    path = tmp_path / "text"
    path.write_bytes(text)
    with path.open("rb") as file:
        stored = StoredFile(file.fileno(), "text")
        for content in (text, stored):
            assert find(content, b"needle", 5) == 24_000
            assert find(content, b"s\r\nneedle", 5) == 23_997
            assert find(content, b"thread", 5) == -1
            assert position(content, 24_000) == (2001, 1)
            assert position(content, len(content)) == (2003, 11)
            assert position(content, 13) == (2, 2)
            lines = [content[b:e] for b, e in line_spans(content, 0)]
            assert lines == re.findall(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text)
        assert stored[:] == bytes(stored) == text
        assert stored[-4:] == b"more"
        assert as_stream(stored).read() == text
    path.write_bytes(text[:5])
    assert stored[:5] == text[:5]
    with pytest.raises(DataError, match="text became shorter while it was read"):
        stored[:6]
