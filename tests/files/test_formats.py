"""Tables of every form: the same table, however it is stored."""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import io
import sqlite3
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet

from branchwise import DataError, ParameterError, datasets, fit_tree, read_table
from branchwise.files import raw_bytes as contents_module
from branchwise.files.options import Reading
from branchwise.files.read_table import TableFile

WEATHER = Path(datasets.path("weather"))


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def cells(table):
    return {name: table[name].to_pylist() for name in table.column_names}


def values(table, name):
    return table[name].chunk(0).dictionary.to_pylist()


def error(path, kind=DataError, **options):
    with pytest.raises(kind) as caught:
        read_table(path, **options)
    return str(caught.value).replace(f"{Path(path).parent}/", "")


# Separators and encodings


@pytest.mark.parametrize(
    ("separator", "given"),
    [("|", None), ("|", "pipe"), ("#", "#"), ("\t", "tab"), ("\t", "\\t"), (" ", " ")],
)
def test_separators(write, separator, given):
    path = write("a,b c\n1,x y\n".replace(" ", "_").replace(",", separator))
    table = read_table(path, separator=given)
    assert cells(table) == {"a": [1], "b_c": ["x_y"]}


def test_runs_of_blanks(write):
    text = "a  b c\n 1\t 2   3 \n\n4 5 6\n"
    wanted = {"a": [1, 4], "b": [2, 5], "c": [3, 6]}
    assert cells(read_table(write(text))) == wanted
    assert cells(read_table(write(text.replace("\n", "\r\n")))) == wanted
    quoted = write('a   b\n"x  y"  1\n  z 2  \n')
    assert cells(read_table(quoted, separator="whitespace")) == {
        "a": ["x  y", "z"],
        "b": [1, 2],
    }
    assert "3 cells in line 4, but 2" in error(write("a b\n1 2\n\n3 4 5\n"), **BLANKS)


BLANKS = {"separator": "whitespace"}


def test_blanks_around_cells(write):
    wanted = {"a b": ["x", "z"], "c": [1, 2]}
    plain = write("a b, c\nx,  1\n z , 2\n")
    assert cells(read_table(plain, separator=", ")) == wanted
    assert read_table(plain).column_names == ["a b", " c"]
    quoted = write('a b; c\n"x";  1\r\n\n z ; 2\n')
    assert cells(read_table(quoted, separator="; ")) == wanted
    inner = write('a, b\n" x, y ", 1\n')
    assert cells(read_table(inner, separator=", "))["a"] == ["x, y"]
    assert "in line 4, but 2" in error(
        write('a, b\n"u", 1\n\n1, 2, 3\n'), separator=", "
    )


def test_one_column_of_words_is_not_divided(write):
    assert cells(read_table(write("play golf\nyes\nno\n"))) == {
        "play golf": ["yes", "no"]
    }


def test_the_separator_divides_all_lines_alike(write):
    # The header alone has more commas than semicolons.
    text = "a,x,y;b\n1;2\n3;4\n"
    assert cells(read_table(write(text))) == {"a,x,y": [1, 3], "b": [2, 4]}
    # Nothing does: the error speaks of what the header has most.
    assert "surplus comma" in error(write("a,b,c;d\n1,2\n3;4;5\n"))


def test_a_long_sample_ends_with_a_whole_line(write):
    text = "a;b\n" + "1;2,x\n" * 20_000
    assert read_table(write(text)).column_names == ["a", "b"]


@pytest.mark.parametrize("given", ["", "::", '"', "\n", "é"])
def test_separators_that_cannot_be(write, given):
    said = error(write("a\n"), ParameterError, separator=given)
    assert said.startswith("separator must be one character")


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252", "latin-1"]
)
def test_encodings(write, encoding):
    text = "größe,é\nß,1\nü,2\n"
    path = write(text.encode(encoding))
    known = None if encoding.startswith("utf") else encoding
    wanted = {"größe": ["ß", "ü"], "é": [1, 2]}
    assert cells(read_table(path, encoding=known)) == wanted
    assert cells(read_table(path, encoding=encoding)) == wanted


def test_a_large_text_in_another_encoding(write, monkeypatch):
    monkeypatch.setattr("branchwise.files.raw_bytes._CHUNK", 1001)
    text = "ä,ö\n" + "".join(f"ü{n},{n}\n" for n in range(3000))
    for encoding in ("utf-16", "cp1252"):
        path = write(text.encode(encoding))
        table = read_table(path, encoding=encoding)
        assert table["ä"].to_pylist() == [f"ü{n}" for n in range(3000)]


@pytest.mark.parametrize("chunk", [7, 2**20])
def test_text_that_is_not_in_the_given_encoding(write, monkeypatch, chunk):
    monkeypatch.setattr("branchwise.files.raw_bytes._CHUNK", chunk)
    path = write(b"a,b\n1,2\n33\x81,4\n")
    message = error(path, encoding="cp1252")
    assert message.startswith(
        "data.csv is not text in cp1252: see line 3, column 3 (character maps to"
    )
    assert message.endswith("Give another encoding, or leave it out for UTF-8.")
    half = write("a,b\n1,2\n".encode("utf-16")[:-1])
    assert "is not text in utf-16: see line 2, column 4 (truncated" in error(half)


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-32", "utf-7", "hz", "cp932"]
)
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_wrong_encoding_of_every_format_of_text_is_told(tmp_path, encoding, end):
    """Also where a lack of a byte order mark comes after another error."""
    texts = {
        "t.csv": f"a,é,y\n1,2,x\n2,3,ÿ{end}",
        "t.tsv": f"a\té\ty\n1\t2\tx\n2\t3\tÿ{end}",
        "t.arff": f"@relation r\n@attribute é {{x,ÿ}}\n@data\nx\nÿ{end}",
        "t.data": f"1,x,p\n2,ÿ,q{end}",
    }
    (tmp_path / "t.names").write_text("p, q.\na: continuous.\né: x, ÿ.\n")
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        if encoding in ("utf-16-le", "cp932"):  # where nearly all bytes are some text
            with contextlib.suppress(DataError):
                read_table(tmp_path / name, encoding=encoding)
        else:
            assert f"is not text in {encoding}: see line" in error(
                tmp_path / name, encoding=encoding
            )


@pytest.mark.parametrize("given", ["none", "zlib", "rot13", "idna", "undefined", "a\0"])
def test_encodings_that_cannot_be(write, given):
    assert "encoding must be the name of a text encoding" in error(
        write("a\n"), ParameterError, encoding=given
    )


# Headers


def test_without_a_header(write):
    path = write("1,x\n2,y\n", "data.data")
    assert cells(read_table(path, header=False)) == {"x0": [1, 2], "x1": ["x", "y"]}
    assert cells(read_table(path, names=["n", "w"])) == {"n": [1, 2], "w": ["x", "y"]}
    listed = write("n\n\n w \n", "columns.txt")
    assert cells(read_table(path, names_file=listed))["w"] == ["x", "y"]
    file = TableFile(path, Reading(header=False))
    assert file.location(1) == "line 2"


def test_names_that_do_not_fit(write):
    path = write("1,x\n2,y\n")
    assert error(path, names=["n"]) == (
        "data.csv has 2 cells in its first line, but names has 1 names. Name every "
        "column, and check the separator."
    )
    assert "in line 3, but 2 in names" in error(
        write("1,x\n2,y\n3\n"), names=["n", "w"]
    )
    assert "but 2 in its first line" in error(write("1,x\n3\n"), header=False)
    for names in ([], ["a", "a"], ["a", " "]):
        assert "names must be the names of all" in error(
            path, ParameterError, names=names
        )
    both = {"names": ["a", "b"], "names_file": "x"}
    assert "Give only one" in error(path, ParameterError, **both)
    empty = write("\n", "none.txt")
    assert "must have the names of all columns, one per line" in error(
        path, names_file=empty
    )
    latin = write("é".encode("latin-1"), "latin.txt")
    assert "latin.txt is not UTF-8 text" in error(path, names_file=latin)


def test_a_header_in_the_middle(write):
    assert error(write("a,b\n1,2\n\na,b\n3,4\n")) == (
        "data.csv has its header once more in line 4. Take that line out; or, if the "
        "first line is a row like the others, read the file without a header."
    )
    assert "in line 3" in error(write(b"\xef\xbb\xbfa,b\r\n1,2\r\na,b\r\n"))
    assert "in line 2" in error(write("a,b\na,b"))
    # Names that are missing values or numbers where they are cells.
    assert "in line 3" in error(write("NA,b\nx,1\nNA,b\n"))
    assert "in line 3" in error(write("1,2\n3,4\n1,2\n"), header=True)
    # A row of another width is not what is wrong first.
    assert "in line 2" in error(write("a,b\na,b\n1,2,3\n"))
    # Not the same: within a cell, a part of a line, one column only.
    for text in ('a,b\n1,"\na,b\n"\n', "a,b\n1a,b\na,b1\n", "a\na\n"):
        read_table(write(text))


# Packed files and streams


def packed_with_zstd(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


PACKERS = {"gz": gzip.compress, "zst": packed_with_zstd}


@pytest.mark.parametrize("ending", PACKERS)
def test_packed_files(write, ending):
    pack = PACKERS[ending]
    content = WEATHER.read_bytes()
    plain = read_table(WEATHER)
    assert read_table(write(pack(content), f"w.csv.{ending}")).equals(plain)
    assert read_table(write(pack(content), "w")).equals(plain)
    twice = pack(content) + pack(content.partition(b"\n")[2])  # one after the other
    assert read_table(write(twice)).num_rows == 28
    tabs = write(pack(content.replace(b",", b"\t")), f"w.tsv.{ending}")
    assert read_table(tabs).equals(plain)


@pytest.mark.parametrize("ending", PACKERS)
def test_packed_files_that_are_not_whole(write, ending):
    packed = PACKERS[ending](WEATHER.read_bytes())
    assert error(write(packed[:-10])) == (
        "data.csv is truncated: the compressed data have no end. Copy or download it "
        "again."
    )
    assert "data.csv cannot be decompressed: " in error(write(packed + b"rest rest"))
    assert "is compressed twice" in error(write(PACKERS[ending](packed)))


def test_a_bomb_is_refused_before_it_takes_memory(write, monkeypatch):
    path = write(gzip.compress(b"a,b\n" + b"0,0\n" * 1_000_000))
    assert error(path, max_size="1.5 MB") == (
        "data.csv has more than 1.5 MB of data when it is read. If that is what it "
        "should have, allow more with max_size, such as 50GB."
    )
    assert read_table(path, max_size="5MB").num_rows == 1_000_000
    # What is large goes to a temporary file.
    monkeypatch.setattr(contents_module, "_IN_MEMORY", 1000)
    file = TableFile(path)
    assert file.read().num_rows == 1_000_000


def test_sizes():
    sizes = ["100", "2kB", "1.5 MB", "20GB", "1TiB", 7]
    found = [Reading(max_size=size).most_bytes for size in sizes]
    assert found == [100, 2000, 1_500_000, 20 * 10**9, 10**12, 7]
    for size in ("many", "-1", "1 PB", ""):
        with pytest.raises(ParameterError, match=r"^max_size must be a number of"):
            Reading(max_size=size)


def test_no_room_for_a_stream(monkeypatch):
    class Full(io.BytesIO):
        def write(self, _):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.SpooledTemporaryFile", lambda **_: Full())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n1\n")))
    assert "has no space for it: No space left on device. Set TMPDIR" in error("-")


# Arrow


def test_arrow_files_and_streams(tmp_path, monkeypatch):
    table = read_table(WEATHER)
    feather.write_feather(table, tmp_path / "w.feather")
    feather.write_feather(table, tmp_path / "p.arrow", compression="zstd")
    with ipc.new_stream(tmp_path / "w.arrows", table.schema) as stream:
        stream.write_table(table)
    for name in ("w.feather", "p.arrow", "w.arrows"):
        assert read_table(tmp_path / name).equals(table)
    content = (tmp_path / "w.feather").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert read_table("-").equals(table)


def test_arrow_files_that_are_not_whole(tmp_path, write):
    feather.write_feather(read_table(WEATHER), tmp_path / "w.feather")
    content = (tmp_path / "w.feather").read_bytes()
    assert "half.feather is not a whole Arrow file" in error(
        write(content[:-200], "half.feather")
    )
    with ipc.new_stream(tmp_path / "w.arrows", pa.schema({"a": pa.int64()})) as stream:
        stream.write_table(pa.table({"a": [1] * 1000}))
    stream = (tmp_path / "w.arrows").read_bytes()
    assert "is not a whole Arrow file" in error(write(stream[:400], "half.arrows"))
    assert "Feather file of version 1" in error(write(b"FEA1\0\0"))


# ARFF

ARFF = """% a comment
@RELATION 'my weather'

@attribute outlook {sunny, 'over cast', rainy}
@attribute "the temperature" real   % in Fahrenheit
@attribute note string
@attribute day date "yyyy-MM-dd"
@attribute play {yes, no}
@data
sunny,85,'it\\'s "hot", 50\\%',2020-01-02,no
% another comment

'over cast', ?, ?, "2020-01-03", yes % the end
rainy,7e1,plain,?,yes
{1 64, 2 '', 3 ?, 4 no}
{1 64, 2 "na\\u00efve\\n", 3 '?'}
"""


def test_arff(write):
    table = read_table(write(ARFF, "w.arff"))
    assert cells(table) == {
        "outlook": ["sunny", "over cast", "rainy", "sunny", "sunny"],
        "the temperature": [85, None, 70, 64, 64],
        "note": ['it\'s "hot", 50%', None, "plain", "", "naïve\n"],
        "day": ["2020-01-02", "2020-01-03", None, None, "?"],
        "play": ["no", "yes", "yes", "no", "yes"],
    }


def test_arff_domains_are_declared_categories(write):
    path = write(
        "@relation r\n@attribute a {z, y, never}\n@attribute c {no, yes}\n@data\n"
        "y,yes\nz,no\n",
        "w.arff",
    )
    table = read_table(path)
    assert values(table, "a") == ["z", "y", "never"]
    model = fit_tree(table.select(["a"]), table["c"])
    assert model.schema.columns[0].categories == ("z", "y", "never")
    assert TableFile(path).location(1) == "line 6"


def test_arff_is_known_by_its_content(write, monkeypatch):
    text = "\n% x\n  @Relation r\n@attribute a integer\n@DATA\n1\n2"
    assert cells(read_table(write(text))) == {"a": [1, 2]}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert cells(read_table("-")) == {"a": [1, 2]}
    packed = write(gzip.compress(text.encode()), "x.arff.gz")
    assert cells(read_table(packed)) == {"a": [1, 2]}
    wide = write(text.encode("utf-16"), "x.arff")
    assert cells(read_table(wide)) == {"a": [1, 2]}


HEAD = "@relation r\n@attribute n numeric\n@attribute c {x, y}\n@attribute s string\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no @data line, so it has no rows. Is it truncated?"),
        ("@relation r\n@data\n1\n", "has no @attribute before its @data: see line 2"),
        ("@attribute a real\n", "has '@attribute', where ARFF has @relation first"),
        ("@relation r\nrow\n", "has 'row', where ARFF has @relation first"),
        (HEAD + "@attribute n real\n", "declares 'n' a second time"),
        ("@relation r\n@attribute\n", "lacks the name of an attribute: see line 2"),
        ("@relation r\n@attribute a\n", "gives 'a' the type ''. Known are numeric"),
        ("@relation r\n@attribute a text\n", "gives 'a' the type 'text'"),
        ("@relation r\n@attribute a relational\n", "declares 'a' as relational"),
        ("@relation r\n@attribute a real {2}\n", "weights of attributes are not"),
        ("@relation r\n@attribute a {x y}\n", "lacks a comma or a } among the values"),
        ("@relation r\n@attribute a {x\n", "lacks a comma or a } among the values"),
        ("@relation r\n@attribute a {x,x}\n", "declares the value 'x' of 'a' twice"),
        ("@relation r\n@attribute a {x,,y}\n", "lacks a value of 'a': see line 2"),
        ("@relation r\n@attribute 'a real\n", "mark that is never closed: see line 2"),
        (HEAD + "@data\n1,x\n", "has 2 cells in line 6, but 3 in its attributes"),
        (HEAD + "@data\n1,x,'s','t'\n", "has 4 cells, but there are 3 attributes"),
        (HEAD + "@data\n1,x,'s\n", "opens a quotation mark that is never closed"),
        (HEAD + "@data\n1,x,a b\n", "a value with whitespace must be in quotes"),
        (HEAD + "@data\n1,z,a\n", "has 'z' in line 6, which is none of its declared"),
        (
            HEAD + "@data\n\n?,x,a\none,x,a\n",
            "declared numeric, but has 'one' in line 8",
        ),
        (
            HEAD + "@data\n1,x,a,{5}\n",
            "has '{5}' after a row. Weights of rows are taken",
        ),
        (HEAD + "@data\n{0 1, 2 s}, {5}\n", "Weights of rows are taken from a column"),
        (HEAD + "@data\n{0 1}\n", "leaves out 's', and text has no zero to put there"),
        (HEAD + "@data\n{3 1}\n", "has '3' as the number of a column, which must be"),
        (HEAD + "@data\n{2 a, 2 b}\n", "has column 2 twice"),
        (HEAD + "@data\n{" + "1" * 5000 + " a}\n", "as the number of a column"),
        (HEAD + "@data\n{2 a 0 1}\n", "lacks a comma or a } in its sparse row"),
        (HEAD + "@data\n1,x,'\\u12'\n", "has \\u without four hexadecimal digits"),
        (HEAD + "@data\n1,x,'\\ud800'\n", "has \\ud800, which is no character"),
        (
            HEAD.encode() + b"@data\n1,x,'\xe9'\n",
            "not UTF-8 text: see line 6, column 6",
        ),
        (HEAD.encode() + b"@data\n1,x,\xe9\n", "not UTF-8 text: see line 6, column 5"),
    ],
)
def test_arff_that_cannot_be_read(write, text, message):
    assert message in error(write(text, "bad.arff"))


def test_arff_with_marks_in_its_domain(write):
    path = write(
        "@relation r\n@attribute a {x, ?, none}\n@attribute b {'?', y}\n@data\n"
        "x,'?'\n?,y\nnone,?\n",
        "w.arff",
    )
    table = read_table(path, missing=["", "none"])
    assert cells(table) == {"a": ["x", None, None], "b": ["?", "y", None]}
    assert values(table, "a") == ["x"]
    assert values(table, "b") == ["?", "y"]
    text = TableFile(path).read_as_is()
    assert text["a"] == ["x", None, "none"]


def test_arff_without_rows(write):
    table = read_table(write(HEAD + "@data\n% none\n", "w.arff"))
    assert table.num_rows == 0
    assert values(table, "c") == ["x", "y"]


# C4.5

NAMES = """| What to do on a day
Play, Don't Play.        | the classes

outlook: sunny, over\\,cast,
         rain.           | goes on
temperature: continuous.
code: discrete 5.
day: label.
grade: [ordered] low, mid, high.
unused: ignore.
when: date.
"""
DATA = """sunny, 85, a, d1, low, x, 2020/01/02, Don't  Play.
over\\,cast, ?, b, d2, high, y, ?, Play | a comment

rain,70.5,"q",d3,mid,z,2020/01/04,Play
"""


@pytest.fixture
def golf(write):
    write(NAMES, "golf.names")
    write("sunny,1,c,d9,low,x,?,Play\n", "golf.test")
    return write(DATA, "golf.data")


@pytest.mark.parametrize("name", ["golf", "golf.names", "golf.data"])
def test_c45_files(golf, name):
    table = read_table(golf.with_name(name))
    assert cells(table) == {
        "outlook": ["sunny", "over,cast", "rain"],
        "temperature": [85, None, 70.5],
        "code": ["a", "b", '"q"'],
        "grade": ["low", "high", "mid"],
        "when": ["2020/01/02", None, "2020/01/04"],
        "class": ["Don't Play", "Play", "Play"],
    }
    assert values(table, "outlook") == ["sunny", "over,cast", "rain"]
    assert values(table, "class") == ["Play", "Don't Play"]
    assert table["grade"].type.ordered
    assert not table["outlook"].type.ordered
    file = TableFile(golf.with_name(name))
    assert file.label == str(golf)
    assert file.location(2) == "line 4"


def test_c45_test_files_and_streams(golf, monkeypatch):
    assert cells(read_table(golf.with_name("golf.test")))["code"] == ["c"]
    content = golf.read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    table = read_table("-", names_file=golf.with_name("golf.names"))
    assert table.equals(read_table(golf))


def test_c45_beside_csv(golf, write):
    test = golf.with_name("golf.test")
    assert read_table(test, file_format="csv", header=False).num_columns == 8
    alone = write("1,2\n3,4\n", "alone.data")
    assert cells(read_table(alone, header=False)) == {"x0": [1, 3], "x1": [2, 4]}
    assert "There is no file" in error(alone, file_format="c4.5")
    assert "alone.names', which must declare the columns" in error(
        alone, file_format="c4.5"
    )
    write(NAMES, "lone.names")
    assert "There is no file" in error(alone.with_name("lone"))


def test_c45_target_as_in_c50(write):
    write("play.\noutlook: sunny, rain.\nplay: yes, no.\n", "g.names")
    table = read_table(write("sunny,no\nrain,yes", "g.data"))
    assert cells(table) == {"outlook": ["sunny", "rain"], "play": ["no", "yes"]}
    write("a, b.\nclass: continuous.\n", "h.names")
    assert read_table(write("1,b\n", "h.data")).column_names == ["class", "class_"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("", "declares no classes: see line 1, column 1. A names file has the classes"),
        ("| only this", "declares no classes"),
        ("a, b.", "declares no column after the classes"),
        ("a, b.\nx continuous.\n", "has 'x continuous' where a column and a colon"),
        ("a, b.\n\n  x: .\n", "gives 'x' neither values nor a type"),
        ("a, b.\nx: 1, 2.\nx: 3.\n", "declares 'x' a second time: see line 3"),
        ("a, b.\nx: 1, 2, 1.\n", "gives 'x' the value '1' twice"),
        ("a, a.\nx: 1.\n", "gives 'class' the value 'a' twice"),
        ("a, b.\nx: 1,, 2.\n", "has a comma without a name beside it: see line 2"),
        ("a, b.\nx := y + 1.\n", "computes 'x' by a formula, which is not supported"),
        ("a, b.\nx: [ordered], 1.\n", "gives 'x' no values after [ordered]"),
        (
            "1. Title: Iris\n2. Sources:\n",
            "If this is a description in prose, read the",
        ),
        (b"a, \xe9.\nx: 1.\n", "is not UTF-8 text: see line 1, column 4"),
    ],
)
def test_names_files_that_cannot_be_read(write, names, message):
    write(names, "bad.names")
    assert message in error(write("1,a\n", "bad.data"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "bad.data is empty. It needs a line for each case"),
        ("| none\n", "is empty"),
        ("1,x,a\n1,x\n", "has 2 cells in line 2, but 3 in"),
        ("1,x,a\n1,z\\,,a\n", "has 'z,' in line 2, which is none of its declared"),
        ("one,x,a\n", "'n' of bad.data is declared numeric, but has 'one' in line 1"),
        ("1,x,c.\n", "Column 'class' of bad.data has 'c' in line 1"),
        (b"1,x,\xe9\\,\n", "is not UTF-8 text: see line 1"),
    ],
)
def test_c45_data_that_cannot_be_read(write, data, message):
    write("a, b.\nn: continuous.\nw: x, y.\n", "bad.names")
    assert message in error(write(data, "bad.data"))


# Workbooks


def xlsx(sheets):
    """Write a workbook by hand: numbers, texts, and ready XML for the rest."""
    book = io.BytesIO()
    with zipfile.ZipFile(book, "w", zipfile.ZIP_DEFLATED) as archive:
        kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
        parts = "".join(
            f'<Override PartName="/xl/worksheets/sheet{n}.xml" '
            f'ContentType="{kind}.worksheet+xml"/>'
            for n in range(1, len(sheets) + 1)
        )
        archive.writestr(
            "[Content_Types].xml",
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types'
            '"><Default Extension="rels" ContentType="application/vnd.openxmlformats-'
            'package.relationships+xml"/><Override PartName="/xl/workbook.xml" '
            f'ContentType="{kind}.sheet.main+xml"/>{parts}</Types>',
        )
        office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
        package = "http://schemas.openxmlformats.org/package/2006/relationships"
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}"><Relationship Id="rId1" '
            f'Type="{office}/officeDocument" Target="xl/workbook.xml"/>'
            "</Relationships>",
        )
        main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
        listed = "".join(
            f'<sheet name="{name}" sheetId="{n}" r:id="rId{n}"/>'
            for n, name in enumerate(sheets, 1)
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{listed}</sheets>'
            "</workbook>",
        )
        related = "".join(
            f'<Relationship Id="rId{n}" Type="{office}/worksheet" '
            f'Target="worksheets/sheet{n}.xml"/>'
            for n in range(1, len(sheets) + 1)
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}">{related}</Relationships>',
        )
        for n, rows in enumerate(sheets.values(), 1):
            body = rows if isinstance(rows, str) else sheet_body(rows)
            archive.writestr(
                f"xl/worksheets/sheet{n}.xml",
                f'<worksheet xmlns="{main}"><sheetData>{body}</sheetData></worksheet>',
            )
    return book.getvalue()


def sheet_body(rows, first=1):
    lines = []
    for number, row in enumerate(rows, first):
        made = []
        for letter, cell in zip("ABCDEFGH", row, strict=False):
            place = f'r="{letter}{number}"'
            if isinstance(cell, bool):
                made.append(f'<c {place} t="b"><v>{int(cell)}</v></c>')
            elif isinstance(cell, str):
                made.append(f'<c {place} t="inlineStr"><is><t>{cell}</t></is></c>')
            elif isinstance(cell, dt.date):
                made.append(f'<c {place} t="d"><v>{cell.isoformat()}</v></c>')
            elif cell is not None:
                made.append(f"<c {place}><v>{cell}</v></c>")
        lines.append(f'<row r="{number}">{"".join(made)}</row>')
    return "".join(lines)


SHEETS = {
    "first": [
        ["n", "name", "day", "ok", "mixed", 2020],
        [1, "x", dt.date(2020, 1, 2), True, "07", 1.5],
        [2, "?", dt.datetime(2020, 1, 3, 4, 5), False, 7, None],
    ],
    "the other": sheet_body([["a", "b"], [1, "u"], ["one", "v"]], first=3),
}


def test_workbooks(write, monkeypatch):
    pytest.importorskip("python_calamine")
    path = write(xlsx(SHEETS), "data.xlsx")
    assert cells(read_table(path)) == {
        "n": [1, 2],
        "name": ["x", None],
        "day": [dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 3, 4, 5)],
        "ok": [True, False],
        "mixed": ["07", "7"],
        "2020": [1.5, None],
    }
    other = {"a": ["1", "one"], "b": ["u", "v"]}
    for sheet in ("the other", "2", 2):
        assert cells(read_table(path, sheet=sheet)) == other
    whole = read_table(path, sheet=2, header=False)
    assert cells(whole) == {"x0": ["a", "1", "one"], "x1": ["b", "u", "v"]}
    assert read_table(path, sheet=2, names=["p", "q"]).column_names == ["p", "q"]
    texts = read_table(path, text_columns=["n", "2020", "ok", "day"])
    assert cells(texts)["day"] == ["2020-01-02", "2020-01-03 04:05:00"]
    assert cells(texts)["n"] == ["1", "2"]
    assert cells(texts)["2020"] == ["1.5", None]
    assert cells(texts)["ok"] == ["TRUE", "FALSE"]
    # Excel counts rows from 1, and the sheet begins in its third.
    assert "but row 5 of data.xlsx has 'one'" in error(
        path, sheet=2, number_columns=["a"]
    )
    stream = io.TextIOWrapper(io.BytesIO(path.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert cells(read_table("-", sheet=2)) == other


def test_workbooks_that_cannot_be_read(write, monkeypatch):
    calamine = pytest.importorskip("python_calamine")
    content = xlsx({**SHEETS, "empty": ""})
    path = write(content, "data.xlsx")
    assert error(path, sheet="the othr") == (
        "data.xlsx has no sheet 'the othr'. Did you mean 'the other'? The sheets are "
        "'first', 'the other', 'empty'."
    )
    assert "The sheets are" in error(path, sheet="4")
    assert "has no cells on that sheet" in error(path, sheet="empty")
    assert "has 6 columns, but names has 1 names" in error(path, names=["a"])
    assert "has more than 1 kB of data when it is read" in error(path, max_size=1000)
    assert "zip archive or a damaged workbook" in error(write(content[:-50]))
    broken = content.replace(b"PK\x01\x02", b"PK\x01\x02", 1)
    at = broken.index(b"xl/workbook.xml") + 20
    broken = broken[:at] + b"\xff" * 40 + broken[at + 40 :]
    assert "is not a whole workbook" in error(write(broken, "bad.xlsx"))
    bad_xml = xlsx({"first": "<row r='1'><c></row>"})
    assert "is not a whole workbook" in error(write(bad_xml, "bad.xlsx"))
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    assert "needs python-calamine: pip install 'branchwise[excel]'" in error(
        path, ParameterError
    )
    assert calamine is not None


def test_a_workbook_fetches_and_expands_nothing(write, tmp_path):
    pytest.importorskip("python_calamine")
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    entity = (
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file://'
        f'{secret}"><!ENTITY l "lol"><!ENTITY m "&l;&l;&l;">]>'
    )
    book = io.BytesIO()
    source = io.BytesIO(xlsx({"s": [["a"], ["&e;"], ["&m;"]]}))
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(book, "w") as new:
        for item in old.namelist():
            data = old.read(item)
            if "sheet1" in item:
                data = entity.encode() + data
            new.writestr(item, data)
    path = write(book.getvalue(), "data.xlsx")
    try:
        found = cells(read_table(path))
    except DataError:
        return
    assert "secret" not in str(found)
    assert "lollol" not in str(found)


# Databases


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "data ?#%.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute('create table "my ""table" (n, word text, day date)')
        connection.executemany(
            'insert into "my ""table" values (?, ?, ?)',
            [(1, "x", "2020-01-01"), (2.5, None, None), (None, "?", "z")],
        )
        connection.execute("create table other (b blob, n integer)")
        connection.execute("insert into other values (x'00ff', 7)")
        connection.execute("create view seen as select n + 1 as m from other")
    connection.close()
    return path


def test_sqlite(database):
    before = database.read_bytes()
    assert cells(read_table(database, table='my "table')) == {
        "n": [1, 2.5, None],
        "word": ["x", None, None],
        "day": ["2020-01-01", None, "z"],
    }
    assert cells(read_table(database, table="seen")) == {"m": [8]}
    query = 'select word, count(*) as "how many" from "my ""table" group by 1;'
    assert cells(read_table(database, query=query))["how many"] == [1, 1, 1]
    assert cells(read_table(database, table="other", ignore=["b"])) == {"n": [7]}
    texts = read_table(database, table='my "table', text_columns=["n"])
    assert cells(texts)["n"] == ["1", "2.5", None]
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_the_only_table_of_a_database(tmp_path):
    path = tmp_path / "one.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (a)")
    connection.close()
    table = read_table(path)
    assert (table.column_names, table.num_rows) == (["a"], 0)


@pytest.mark.parametrize(
    "query",
    [
        "delete from other",
        "drop table other",
        "attach 'new.db' as new",
        "pragma writable_schema = 1",
        "vacuum into 'copy.db'",
        "select 1; select 2",
        "select load_extension('x')",
        "select * from nowhere",
        "",
    ],
)
def test_queries_that_do_more_than_look(database, query):
    before = database.read_bytes()
    message = error(database, query=query)
    assert "Check the table or the query" in message or "one select" in message
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_a_database_that_cannot_be_read(database, write, monkeypatch):
    assert error(database, ParameterError) == (
        "data ?#%.sqlite is a database: say what to read with table or query. Its "
        "tables are 'my \"table', 'other', 'seen'."
    )
    assert error(database, table="othr").startswith(
        "data ?#%.sqlite has no table 'othr'. Did you mean 'other'? Its tables are"
    )
    assert "holds values of type bytes" in error(database, table="other")
    endless = "with recursive r(i) as (select 1 union all select i + 1 from r) "
    endless += "select i from r"
    assert "more than 100 kB of data" in error(
        database, query=endless, max_size="100kB"
    )
    both = {"table": "a", "query": "b"}
    assert "Give only one" in error(database, ParameterError, **both)
    packed = write(gzip.compress(database.read_bytes()), "d.gz")
    assert "cannot be compressed or come through a pipe" in error(packed, table="other")
    content = database.read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert "standard input is not a plain SQLite file" in error("-", table="other")
    half = write(content[:5000], "half.sqlite")
    assert "half.sqlite cannot be read: database disk image" in error(half, table="x")


def test_duckdb(tmp_path, monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "create table t as select i as n, 'v' || i % 2 as w, i % 2 = 0 as even, "
            "date '2020-01-01' + i::int as day, (i / 10)::decimal(5, 2) as part, "
            "case when i = 0 then 'low' else 'high' end::enum('low', 'high') as e "
            "from range(3) r(i)"
        )
    before = path.read_bytes()
    table = read_table(path)
    assert cells(table)["n"] == [0, 1, 2]
    assert cells(table)["day"] == [dt.date(2020, 1, day) for day in (1, 2, 3)]
    assert cells(table)["even"] == [True, False, True]
    assert values(table, "e") == ["low", "high"]
    fit_tree(table.select(["w", "part", "e"]), table["even"])
    found = read_table(path, query="select n, w from t where n > 1;")
    assert cells(found) == {"n": [2], "w": ["v0"]}
    assert cells(read_table(path, table="t", text_columns=["n"]))["n"][0] == "0"
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    for query in (
        f"select * from read_csv('{secret}')",
        f"select * from '{secret}'",
        f"copy t to '{secret}'",
        "install httpfs",
        "select 1; select 2",
        "set enable_external_access = true",
        "create table u as select 1",
        "selec",
        "select * from table",
    ):
        message = error(path, query=query)
        assert "Check the table or the query" in message or "one select" in message
    assert "Did you mean 't'?" in error(path, table="tt")
    assert secret.read_text() == "a\n1\n"
    assert path.read_bytes() == before
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert "needs duckdb: pip install 'branchwise[sql]'" in error(path, ParameterError)


# Options


def test_options_without_effect_are_refused(write, golf):
    path = write(parquet_bytes(), "data.parquet")
    assert error(path, ParameterError, separator=";") == (
        "separator has no effect on data.parquet, which is read as Parquet. It is for "
        "CSV, TSV; leave it out, or say what the file is with file_format."
    )
    for options in ({"header": False}, {"names": ["a"]}, {"sheet": 1}, {"table": "t"}):
        assert "has no effect on data.parquet" in error(path, ParameterError, **options)
    assert "header has no effect on golf.data, which is read as C4.5" in error(
        golf, ParameterError, header=False
    )
    said = error(path, ParameterError, file_format="pickle")
    assert said.startswith("file_format must be one of 'csv', 'tsv'")


def test_the_command_line_names_its_own_options(write):
    for options, flag in (
        ({"file_format": "pickle"}, "--from"),
        ({"separator": "::"}, "--separator"),
        ({"encoding": "none"}, "--encoding"),
        ({"names": []}, "--names"),
        ({"names": ["a"], "names_file": "x"}, "--names and --names-file"),
        ({"table": "a", "query": "b"}, "--table and --query"),
        ({"max_size": "many"}, "--max-size"),
    ):
        with pytest.raises(ParameterError, match=f"^{flag} "):
            Reading(**options, flags=True)
    reading = Reading(header=False, flags=True)
    assert reading.option("names_file") == "--names-file"
    with pytest.raises(ParameterError, match=r"^--no-header has .* with --from\.$"):
        TableFile(write(parquet_bytes(), "data.parquet"), reading)


def parquet_bytes():
    sink = io.BytesIO()
    parquet.write_table(pa.table({"a": [1]}), sink)
    return sink.getvalue()


def test_a_further_table_takes_the_options_that_fit(write):
    reading = Reading("csv", separator="#", encoding="cp1252")
    path = write(parquet_bytes(), "data.parquet")
    assert cells(TableFile(path, reading, further=True).read()) == {"a": [1]}
    text = write("a#b\n1#é\n".encode("cp1252"))
    assert cells(TableFile(text, reading, further=True).read())["b"] == ["é"]


def test_the_form_that_is_said(write):
    path = write("a,b\n1,2\n", "data.arff")
    assert cells(read_table(path, file_format="csv")) == {"a": [1], "b": [2]}
    tabs = write("a,b\tc\n1,x\t3\n")
    assert cells(read_table(tabs, file_format="tsv")) == {"a,b": ["1,x"], "c": [3]}
    assert "is not a whole Parquet file" in error(path, file_format="parquet")
    assert "is not a whole Arrow file" in error(path, file_format="arrow")
    assert "is not a plain SQLite file" in error(path, file_format="sqlite")
    assert "is not a plain DuckDB file" in error(path, file_format="duckdb")
    assert "has 'a'" in error(write("a,b\n"), file_format="arff")
    pytest.importorskip("python_calamine")
    assert "is not a whole workbook" in error(path, file_format="excel")
