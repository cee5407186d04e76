"""Files of every kind and condition -> tables, or a message that helps."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from branchwise import DataError, ParameterError, datasets, fit_tree
from branchwise.files.read_table import TableFile, read_table


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def write_parquet(tmp_path):
    def write(columns, name="data.parquet"):
        path = tmp_path / name
        parquet.write_table(pa.table(columns), path)
        return path

    return write


def cells(table):
    return {name: table[name].to_pylist() for name in table.column_names}


def error(path, **options):
    with pytest.raises(DataError) as caught:
        read_table(path, **options)
    return str(caught.value).replace(str(path), Path(path).name)


# Words and numbers


def test_words_stay_as_they_are_in_the_file(write):
    path = write("a,b,c,d\nTRUE,2020-01-02,12:30,2020-01-02 12:30\nfalse,?,,x y \n")
    assert cells(read_table(path)) == {
        "a": ["TRUE", "false"],
        "b": [date(2020, 1, 2), None],
        "c": ["12:30", None],
        "d": ["2020-01-02 12:30", "x y "],
    }


def test_numbers_are_numbers(write):
    table = read_table(write("a,b,c\n1,1.5,007\n?,-2e3,\n"))
    assert cells(table) == {"a": [1, None], "b": [1.5, -2000.0], "c": [7, None]}


def test_a_text_column_has_its_text_verbatim(write):
    path = write('zip,n\n007,1\n?,2\n"00,7",3\n')
    assert cells(read_table(path, text_columns=["zip"]))["zip"] == [
        "007",
        None,
        "00,7",
    ]


def test_all_columns_as_text_but_the_numbers(write):
    path = write("a,b\n01,02\n")
    table = read_table(path, text_columns="all", number_columns=["b"])
    assert cells(table) == {"a": ["01"], "b": [2]}


@pytest.mark.parametrize("text", ["NA", "-", ""])
def test_marks_of_missing_cells_are_for_text_and_numbers(write, text):
    path = write(f"a,b\n{text},1\nx,{text}\n")
    table = read_table(path, missing=[text])
    assert cells(table) == {"a": [None, "x"], "b": [1, None]}


def test_a_question_mark_is_text_if_it_is_not_a_mark(write):
    table = read_table(write("a\n?\nx\n"), missing=["NA"])
    assert cells(table) == {"a": ["?", "x"]}


def test_a_column_without_values(write):
    path = write("a,b\n?,1\n,2\n")
    assert cells(read_table(path))["a"] == [None, None]
    assert read_table(path, number_columns=["a"])["a"].type == pa.float64()
    text = read_table(path, text_columns=["a"])
    assert cells(text)["a"] == [None, None]
    model = fit_tree(text.select(["a"]), text["b"])
    assert model.predict(text).tolist() == [1, 1]


def test_ignored_columns_are_left_out(write):
    assert cells(read_table(write("a,b,c\n1,2,3\n"), ignore=["a", "c"])) == {"b": [2]}


def test_a_plus_sign_makes_no_text_of_a_wanted_number(write):
    path = write("a,b\n+1,x\n 5 ,z\n")
    assert cells(read_table(path, number_columns=["a"]))["a"] == [1, 5]


def test_text_values_are_sorted_whatever_the_order_of_the_rows(write):
    words = ["zebra", "Äpfel", "apple", "Zoo", "?"]
    rows = [f"{word},{n}" for n, word in enumerate(words)]
    learnt = []
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        table = read_table(write("\n".join(["a,b", *rows])))
        learnt.append(table["a"].chunk(0).dictionary.to_pylist())
    assert learnt == [["Zoo", "apple", "zebra", "Äpfel"]] * 5


def test_many_values_in_many_blocks(write):
    numbers = list(range(300_000))
    random.Random(0).shuffle(numbers)
    path = write("id,n\n" + "".join(f"key {n},{n}\n" for n in numbers))
    table = read_table(path)
    assert table["id"].num_chunks == 1
    values = table["id"].chunk(0).dictionary.to_pylist()
    assert values == sorted(f"key {n}" for n in numbers)
    assert table["id"].to_pylist() == [f"key {n}" for n in numbers]


def test_a_column_that_turns_out_to_be_text_late(write):
    path = write("a,b\n" + "1,2020-01-01\n" * 200_000 + "x,y\n")
    table = read_table(path)
    assert table["a"].chunk(0).dictionary.to_pylist() == ["1", "x"]
    assert table["b"].chunk(0).dictionary.to_pylist() == ["2020-01-01", "y"]


def test_a_cell_larger_than_a_block(write):
    table = read_table(write("a,b\n" + "x" * 3_000_000 + ",1\ny,2\n"))
    assert [len(cell) for cell in table["a"].to_pylist()] == [3_000_000, 1]


# Lines, quotes, delimiters


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_delimiters_and_line_ends(write, delimiter, end):
    lines = [delimiter.join(row) for row in (("a", "b"), ("1", "x"), ("2", "y"))]
    path = write(end.join(lines))
    assert cells(read_table(path)) == {"a": [1, 2], "b": ["x", "y"]}


def test_delimiters_within_quotes_do_not_count(write):
    path = write('"a,1,2,3";b\n1;2\n')
    assert cells(read_table(path)) == {"a,1,2,3": [1], "b": [2]}


def test_a_tsv_file_has_tabs_whatever_its_header_says(write):
    path = write("a,b,c\n1,2,3\n", "data.tsv")
    assert cells(read_table(path)) == {"a,b,c": ["1,2,3"]}


def test_quotes_and_line_breaks_in_cells(write):
    path = write('"a\nx","b ""q"""\n"1\n2",2\n\n"say ""no""",4\n')
    assert cells(read_table(path)) == {
        "a\nx": ["1\n2", 'say "no"'],
        'b "q"': [2, 4],
    }


def test_a_quotation_mark_within_a_cell_is_just_that(write):
    path = write('a,b\n5" pipe,x\n6" pipe,7"\n')
    assert cells(read_table(path))["b"] == ["x", '7"']


def test_a_byte_order_mark_is_no_part_of_a_name(write):
    assert cells(read_table(write(b"\xef\xbb\xbfa,b\n1,2\n"))) == {"a": [1], "b": [2]}


def test_a_header_without_rows(write):
    for content in ("a,b\n", "a,b", "a,b\n\n\n", "a,b\n\ufeff"):
        assert cells(read_table(write(content))) == {"a": [], "b": []}


def test_standard_input(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(b"a;b\n1;x\n"))
    monkeypatch.setattr(sys, "stdin", stream)
    assert cells(read_table("-")) == {"a": [1], "b": ["x"]}
    monkeypatch.setattr(sys, "stdin", None)
    assert error("-").startswith("Standard input is closed")


def test_a_pipe_is_read_like_a_file():
    code = "import sys; from branchwise.files.read_table import read_table;"
    code += "print(read_table('/dev/stdin')['a'].to_pylist())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=b"a,b\n1,2\n",
        stdout=subprocess.PIPE,
        check=True,
    )
    assert done.stdout.strip() == b"[1]"


# What cannot be read


def test_rows_of_other_lengths(write):
    assert error(write("a,b\n1,2\n\n3\n")) == (
        "data.csv has 1 cell in line 4, but 2 in its header. Look for a missing or a "
        "surplus comma; a cell that contains one must be in double quotes."
    )
    assert "3 cells in line 3" in error(write("a,b\n1,2\n3,4,5\n"))
    assert "in line 4, but 2" in error(write('a,b\n"x\ny",2\n3,4,5\n'))
    assert "surplus semicolon" in error(write("a;b\n1;2;3\n"))


def test_a_quote_that_is_never_closed(write):
    assert error(write('a,b\n1,2\n3,"4\n5,6\n7,8\n')) == (
        "data.csv has a quotation mark in line 3, column 3 that is never closed, so "
        "that the rest of the file would be one cell. Close it, or double it "
        "if it is part of the text."
    )
    assert error(write('a,b\n1,2\n"3,4\n5,6\n')).endswith(
        "A quoted cell there runs on for 2 lines; is its closing quotation mark "
        "missing?"
    )
    # Also when nobody wants the column.
    assert "never closed" in error(write('a,b\n1,2\n3,"4\n5,6\n'), ignore=["b"])
    assert cells(read_table(write('a,b\n1,"x"')))["b"] == ["x"]


def test_an_empty_file(write):
    for content in ("", "\n\n", b"\xef\xbb\xbf"):
        assert error(write(content)) == (
            "data.csv is empty. A table needs a header line with the names of its "
            "columns, and a line for each row."
        )


def test_no_file_and_a_directory(tmp_path):
    assert "There is no file" in error(tmp_path / "none.csv")
    assert "is a directory. Give the CSV, TSV, ARFF, Parquet or other" in error(
        tmp_path
    )
    assert "cannot be read: embedded null byte" in error("a\0b")


def test_a_file_that_may_not_be_read(write, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    path = write("a\n1\n")
    monkeypatch.setattr(Path, "open", refuse)
    assert error(path) == "'data.csv' cannot be read: Permission denied."


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"PK\x03\x04\x00", "is a zip archive or a damaged workbook, not"),
        (b"\x89PNG\r\n\x1a\n\0\0", "is a PNG picture, not a table. Give a CSV"),
        (b"\xff\xd8\xff\xe0", "is a JPEG picture"),
        (b"\x80\x04\x95\x00", "is a Python pickle"),
        (b"%PDF-1.5\n\xe2\xe3", "is a PDF document"),
        (b"a,b\n1,\x00\n", "has a NUL byte in line 2, column 3. If it is text in"),
    ],
)
def test_binary_files(write, content, what):
    assert what in error(write(content))


def test_text_that_begins_like_something_else(write):
    assert cells(read_table(write("MZ,GIF8\n1,2\n"))) == {"MZ": [1], "GIF8": [2]}
    assert cells(read_table(write("%PDF-,b\n1,2\n"))) == {"%PDF-": [1], "b": [2]}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("<!DOCTYPE html>\n<html><body>404</body></html>\n", "a web page"),
        ("\n<html>\n", "a web page"),
        ('<?xml version="1.0"?>\n<rows/>\n', "XML"),
        ('[{"a": 1}, {"a": 2}]\n', "JSON"),
        ('[\n  {\n    "a": 1\n  }\n]\n', "JSON"),
        ('{\n  "a": [1]\n}\n', "JSON"),
    ],
)
def test_text_that_is_no_table(write, content, what):
    assert error(write(content)) == (
        f"data.csv is {what}, not a table with rows and columns. Save the table as CSV "
        "or Parquet, and check where the file comes from."
    )


def test_names_in_brackets_are_names(write):
    for name in ("[a]", "{a}", "<a>", "[0", "{x"):
        assert read_table(write(f"{name},b\n1,2\n")).column_names == [name, "b"]


@pytest.mark.parametrize("wanted", [{}, {"text_columns": ["b"]}])
def test_another_encoding(write, wanted):
    path = write("a,b\n1,x\n2,café\n".encode("latin1"))
    assert error(path, **wanted) == (
        "data.csv is not UTF-8 text: see line 3, column 6 (byte 0xe9). Set encoding: "
        "cp1252 is usual for files from Windows, latin-1 for other older files."
    )
    header = write("a,café\n1,x\n".encode("latin1"))
    assert "see line 1, column 6 (byte 0xe9)" in error(header)
    late = write(b"a,b\r\n" + b"\xc3\xa4,1\r\n" * 1_000_000 + b"\xc3\xa4\xff,1\r\n")
    assert "see line 1,000,002, column 2 (byte 0xff)" in error(late)
    assert "line 2, column 3 (byte 0xc3)" in error(write(b"a,b\n1,\xc3"))


def test_names_that_occur_twice(write):
    path = write("a,b,a\n1,2,3\n")
    assert error(path) == (
        "data.csv has more than one column named 'a'. Every column needs a name of its "
        "own: rename them in the header, or ignore them. If the first line is a row "
        "like the others, read the file without a header."
    )
    assert cells(read_table(path, ignore=["a"])) == {"b": [2]}


def test_columns_without_a_name(write):
    path = write(",a\n0,1\n")
    assert cells(read_table(path)) == {"column_1": [0], "a": [1]}
    assert cells(read_table(path, ignore=[""])) == {"a": [1]}
    assert cells(read_table(path, ignore=["column_1"])) == {"a": [1]}
    several = read_table(write("column_3,, \n0,1,2\n"))
    assert several.column_names == ["column_3", "column_2", "column_3_"]
    named = write("a\n0\n")
    assert error(named, ignore=[""]).startswith("data.csv has no column ''.")


# test_number_columns.py has the warning.
@pytest.mark.filterwarnings("ignore:whole numbers beyond 2")
def test_whole_numbers_that_float64_cannot_hold(write):
    ids = ["9007199254740993", "9007199254740992", "12345678901234567890123"]
    path = write("id,x,y\n" + "".join(f"{number},1e20,1\n" for number in ids))
    assert cells(read_table(path)) == {"id": ids, "x": [1e20] * 3, "y": [1] * 3}
    assert cells(read_table(write("id\n9007199254740993\n?\n"))) == {
        "id": ["9007199254740993", None]
    }


def test_names_that_are_not_there(write):
    path = write("Age,height\n1,2\n")
    assert error(path, ignore=["agee"]) == (
        "data.csv has no column 'agee'. Did you mean 'Age'? The columns are 'Age', "
        "'height'."
    )
    assert "Did you mean" not in error(path, text_columns=["zzz"])


def test_names_with_blanks_around_them(write):
    path = write("a, b ,c\n1, 2,3\n")
    said = error(path, ignore=["b"])
    assert "Did you mean ' b '? The whitespace is part of the name; separator" in said
    assert "separator ', ' strips it around cells. The columns are" in said
    assert read_table(path, separator=", ", ignore=["b"]).column_names == ["a", "c"]
    semicolons = write("a; b\n1; 2\n")
    assert "separator '; ' strips it" in error(semicolons, ignore=["b"])
    # Where it would not help, it is not said.
    assert "separator" not in error(write("a,b\n1,2\n"), ignore=[" b"])
    assert "separator" not in error(write("a\t b\n1\t2\n"), ignore=["b"])
    assert "separator" not in error(path, ignore=["B"])


@pytest.mark.parametrize("source", [5, None, b"data.csv", {"a": [1]}])
def test_what_is_no_path_is_refused(source):
    with pytest.raises(ParameterError, match=r"^source must be the path of a file"):
        read_table(source)


def test_text_where_numbers_must_be(write):
    path = write('a,b\n1,"x\ny"\n,z\n"n/a",z\n2,z\n')
    assert error(path, number_columns=["a"]) == (
        "Column 'a' must hold numbers, but line 5 of data.csv has 'n/a'. Correct the "
        "cell, or add it to the values that count as missing (missing, or "
        "--missing on the command line)."
    )
    # Words that are no exception are no missing values.
    assert error(write("a\n1\nno\nyes\n"), number_columns=["a"]) == (
        "Column 'a' must hold numbers, but line 3 of data.csv has 'no', and many cells "
        "are like it. Check the name of the column, or correct the cells."
    )
    assert "--missing" not in error(write("a,b\n,1\n,2\nx,3\n"), number_columns=["a"])
    assert "has 'TRUE'" in error(write("a\nTRUE\n"), number_columns=["a"])
    assert "has '1_0'" in error(write("a\n1_0\n"), number_columns=["a"])


def test_text_and_numbers_at_once(write):
    with pytest.raises(ParameterError, match="either as text or as numbers"):
        read_table(write("a\n1\n"), text_columns=["a"], number_columns=["a"])


def test_booleans(write):
    path = write("a,b,c\nTRUE,1,?\nfalse,0,\n?,x,\n")
    file = TableFile(path)
    table = file.read(only=["a", "c"], boolean_columns=["a", "c"])
    assert cells(table) == {"a": [True, False, None], "c": [None] * 3}
    with pytest.raises(DataError, match="'b' must hold true or false, but line 2"):
        file.read(only=["b"], boolean_columns=["b"])


# Parquet


def test_parquet_types_are_kept(write_parquet):
    path = write_parquet(
        {
            "n": [1, None],
            "f": [0.5, 2.0],
            "t": ["b", "a"],
            "b": [True, False],
            "d": [date(2020, 1, 2), None],
        }
    )
    table = read_table(path)
    assert cells(table) == {
        "n": [1, None],
        "f": [0.5, 2.0],
        "t": ["b", "a"],
        "b": [True, False],
        "d": [date(2020, 1, 2), None],
    }
    as_text = read_table(path, text_columns=["d"])
    assert cells(as_text)["d"] == ["2020-01-02", None]
    assert table["t"].chunk(0).dictionary.to_pylist() == ["a", "b"]


def test_parquet_without_its_extension_and_from_standard_input(
    write_parquet, monkeypatch
):
    path = write_parquet({"a": ["x"]}, "data.bin")
    assert cells(read_table(path)) == {"a": ["x"]}
    stream = io.TextIOWrapper(io.BytesIO(path.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert cells(read_table("-")) == {"a": ["x"]}


def test_parquet_numbers_as_text_and_text_as_numbers(write_parquet):
    path = write_parquet({"n": [7, 10], "t": ["1", "?"], "b": [True, False]})
    table = read_table(path, text_columns=["n", "b"], number_columns=["t"])
    assert cells(table) == {"n": ["7", "10"], "t": [1, None], "b": ["true", "false"]}
    assert error(path, number_columns=["b"]) == (
        "Column 'b' of data.parquet must hold numbers. Got bool; convert the column to "
        "numbers."
    )
    words = write_parquet({"t": ["1", "x"]})
    assert "but row 2 of data.parquet has 'x'" in error(words, number_columns=["t"])


def test_parquet_categories_keep_their_order(write_parquet):
    ordered = pa.DictionaryArray.from_arrays(
        pa.array([1, 0, 2, None], pa.int8()), ["low", "?", "high"], ordered=True
    )
    table = read_table(write_parquet({"a": ordered}))
    assert cells(table) == {"a": [None, "low", "high", None]}
    assert table["a"].chunk(0).dictionary.to_pylist() == ["low", "high"]
    assert table["a"].type.ordered


def test_parquet_text_of_all_widths(write_parquet):
    for text in (pa.large_string(), pa.string_view()):
        try:
            path = write_parquet({"a": pa.array(["b", "?", "a"], text)})
        except pa.ArrowNotImplementedError:
            continue
        assert cells(read_table(path)) == {"a": ["b", None, "a"]}


def test_parquet_dots_in_names_and_row_labels_of_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "data.parquet"
    pandas.DataFrame({"a.b": [1], "a": [2]}, index=["r"]).to_parquet(path)
    assert cells(read_table(path)) == {"a.b": [1], "a": [2]}


def test_parquet_nested_columns_have_no_text(write_parquet):
    path = write_parquet({"a": [[1, 2]], "b": [1]})
    assert error(path, text_columns=["a"]).endswith(
        "which cannot be read as text. Leave it out (ignore)."
    )


def test_half_a_parquet_file(write_parquet, write):
    content = write_parquet({"a": [1, 2]}).read_bytes()
    assert "is not a whole Parquet file" in error(write(content[:60], "half.parquet"))
    broken = content[:10] + b"\xff" * 40 + content[50:]
    assert "is not a whole Parquet file" in error(write(broken, "bad.parquet"))


# The whole


@pytest.mark.parametrize("name", datasets.names())
def test_bundled_tables_read_as_the_library_loads_them(name):
    data = datasets.load(name)
    table = read_table(datasets.path(name))
    assert table.column_names == [*data.X, data.target]
    assert cells(table.select(list(data.X))) == data.X


def test_a_file_and_a_dict_of_columns_give_the_same_tree():
    data = datasets.load("weather")
    table = read_table(datasets.path("weather"))
    attributes = table.select(list(data.X))
    model = fit_tree(attributes, table["play"], target_name="play")
    assert model == fit_tree(data.X, data.y, target_name="play")


def test_csv_and_parquet_give_the_same_tree(tmp_path):
    table = read_table(datasets.path("labor"))
    path = tmp_path / "labor.parquet"
    plain = pa.table(
        {
            name: column.cast(pa.string())
            if pa.types.is_dictionary(column.type)
            else column
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )
    parquet.write_table(plain, path)
    models = [
        fit_tree(t.drop_columns("class"), t["class"]) for t in (table, read_table(path))
    ]
    assert models[0] == models[1]


def test_importing_branchwise_does_not_load_pyarrow():
    code = "import sys, branchwise, branchwise.files.read_table;"
    code += "sys.exit('pyarrow' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("rows", [1, 2000])
def test_hexadecimal_numbers_are_texts(write, monkeypatch, rows, is_long):
    if is_long:  # types are inferred from the first rows, which have none
        monkeypatch.setattr("branchwise.files.csv.csv_columns._LONG", 1)
        monkeypatch.setattr("branchwise.files.csv.csv_columns._SAMPLE", 100)
    text = "code,n,m\n" + "12,0x,-5\n" * rows + "0x1A,b,7\n"
    table = read_table(write(text.encode()))
    assert set(table["code"].to_pylist()) == {"12", "0x1A"}
    assert table["m"].to_pylist()[-2:] == [-5, 7]
    table = read_table(write(b"a\n12\n-0X1f\n"))
    assert table["a"].to_pylist() == ["12", "-0X1f"]
    with pytest.raises(DataError, match=r"must hold numbers.*0x1A"):
        read_table(write(b"a\n12\n0x1A\n"), number_columns=["a"])
