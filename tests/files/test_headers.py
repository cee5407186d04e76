"""What is above the table: titles, blank names, other sheets."""

from __future__ import annotations

import pandas as pd
import pytest

from branchwise import DataError, ParameterError, read_table
from branchwise.files.dataset import StreamedTable
from branchwise.files.options import Reading
from command_line import output, run

TITLED = "Report of January\n\n\na;b;y\n1;x;u\n2;z;v\n"


@pytest.fixture
def write(tmp_path):
    def write(text, name="data.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_above_the_header_are_skipped(write, end):
    path = write("")
    path.write_bytes(TITLED.replace("\n", end).encode())
    wanted = {"a": [1, 2], "b": ["x", "z"], "y": ["u", "v"]}
    assert read_table(path, skip=3).to_pydict() == wanted
    assert read_table(path, skip=1).to_pydict() == wanted  # blank lines are no rows
    rows = read_table(path, skip=4, header=False).to_pydict()
    assert rows == {"x0": [1, 2], "x1": ["x", "z"], "x2": ["u", "v"]}
    with pytest.raises(DataError, match="is empty"):
        read_table(path, skip=99)


def test_lines_are_counted_from_the_first(write):
    path = write(TITLED + "3;x\n")
    with pytest.raises(DataError, match="has 2 cells in line 7, but 3 in its header"):
        read_table(path, skip=3)
    path = write(TITLED + "k;x;u\n")
    with pytest.raises(DataError, match="but line 7 of"):
        read_table(path, skip=3, number_columns=["a"])


def test_chunks_skip_them_too(write):
    path = write(TITLED)
    table = StreamedTable((str(path),), Reading(skip=3), chunk_rows=1)
    assert table.names == ("a", "b", "y")
    assert sum(chunk.frame.n_rows for chunk in table.chunks()) == 2


def test_a_title_is_noticed(write):
    path = write(TITLED)
    _, out, err = run("schema", path)
    assert "Report of January" in out
    assert (
        f"note: the first line of {path} looks like a title: --skip 3 leaves out what "
        "is above the header." in err
    )
    assert "looks like a title" not in run("schema", path, "--skip", "3")[2]
    commas = write(TITLED.replace(";", ","))
    with pytest.raises(DataError, match=r"look like a title: .* with skip=3\.$"):
        read_table(commas)
    assert "leave them out with --skip 3." in run("schema", commas)[2]
    # One column without a delimiter anywhere is a table.
    assert "title" not in run("schema", write("a\n1\n2\n"))[2]


def test_columns_without_a_name_are_noted(write, tmp_path):
    path = write("id,,y\n1,2,u\n2,3,v\n")
    err = run("schema", path)[2]
    assert "has no name for 'column_2'; --ignore '' leaves out those without" in err
    assert "column_2" not in output("schema", path, "--ignore", "")
    streamed = StreamedTable((str(path),), ignore=[""])
    assert [c.frame.names for c in streamed.chunks()] == [("id", "y")]
    padded = write("Report,,\nid,x,y\n1,2,u\n")
    assert "--skip 1 if the first line is a title" in run("schema", padded)[2]
    assert "1 to 1" in output("schema", padded, "--skip", "1")


def test_the_sheet_that_is_read_is_named(tmp_path):
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as book:
        title = pd.DataFrame([["Report", None], ["a", "y"], [1, "u"], [2, "v"]])
        title.to_excel(book, sheet_name="Loans", index=False, header=False)
        pd.DataFrame({"k": [1]}).to_excel(book, sheet_name="Other", index=False)
    err = run("schema", path, "--skip", "1")[2]
    assert f"the sheet 'Loans' of {path} is read; others are 'Other' (--sheet)." in err
    assert read_table(path, skip=1).to_pydict() == {"a": [1, 2], "y": ["u", "v"]}
    assert "is read; others" not in run("schema", path, "--sheet", "Other")[2]


@pytest.mark.parametrize("skip", [-1, 1.5, "1"])
def test_what_is_no_number_of_lines(write, skip):
    with pytest.raises(ParameterError, match="skip must be a whole number of lines"):
        read_table(write("a\n1\n"), skip=skip)


SEPARATOR_LINES = ["sep=;\n", '"sep=;"\r\n', "SEP=;\n", "\ufeffsep=;\n"]


@pytest.mark.parametrize("first", SEPARATOR_LINES)
def test_a_line_that_names_the_separator_is_obeyed(write, first):
    path = write(first + "a;b\n1.5;x\n2.5;y\n")
    assert read_table(path).to_pydict() == {"a": [1.5, 2.5], "b": ["x", "y"]}
    assert [c.frame.names for c in StreamedTable((str(path),)).chunks()] == [("a", "b")]
    # What is asked for comes first.
    assert read_table(path, separator="|").column_names == ["a;b"]
    with pytest.raises(DataError, match="has 1 cell in line 4, but 2 in its header"):
        read_table(write(first + "a;b\n1;x\n2\n"))


def test_a_line_that_names_the_separator_below_a_title(write):
    path = write("Report\nsep=|\na|b\n1|x\n2|y\n")
    assert read_table(path, skip=1).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    assert read_table(path, skip=2).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    # A column of such a name is none.
    path = write("sep=size,b\n1,x\n2,y\n")
    assert read_table(path).column_names == ["sep=size", "b"]
    assert read_table(write("sep=a\n1\n2\n")).column_names == ["sep=a"]
    with pytest.raises(DataError, match="is empty"):
        read_table(write("sep=;\n"))
