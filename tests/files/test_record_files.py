"""JSON lines, and files of SPSS, SAS and Stata."""

from __future__ import annotations

import datetime as dt
import gzip
import sys
from types import SimpleNamespace

import pandas as pd
import pytest

from branchwise import DataError, ParameterError, fit_tree, read_table
from branchwise.files.read_table import TableFile
from command_line import output

LINES = (
    '{"age": 31, "city": "Bonn", "y": true}\n'
    '{"city": "Köln", "age": 40.5, "y": false}\n'
    "\n"
    '{"age": null, "y": true, "late": "x"}\n'
)


@pytest.fixture
def write(tmp_path):
    def write(text, name="data.jsonl"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


# test_number_columns.py has the warning.
@pytest.mark.filterwarnings("ignore:whole numbers beyond 2")
def test_a_json_object_a_line(write, tmp_path):
    wanted = {
        "age": [31, 40.5, None],
        "city": ["Bonn", "Köln", None],
        "y": [True, False, True],
        "late": [None, None, "x"],
    }
    for name in ("data.jsonl", "data.ndjson", "data.txt"):
        assert read_table(write(LINES, name)).to_pydict() == wanted
    path = tmp_path / "data.jsonl.gz"
    path.write_bytes(gzip.compress(LINES.encode()))
    assert read_table(path).to_pydict() == wanted
    assert read_table(write("﻿" + LINES), text_columns=["age"])["age"].to_pylist() == [
        "31",
        "40.5",
        None,
    ]
    assert "age" in output("schema", write(LINES), "--from", "jsonl")
    for number in (2**53 + 1, -(10**30)):
        long = write(f'{{"id": {number}}}\n{{"id": 5}}\n')
        assert read_table(long).to_pydict() == {"id": [str(number), "5"]}
    with pytest.raises(DataError, match="has the integer 1000000000000000000000000 am"):
        read_table(write('{"a": 1000000000000000000000000}\n{"a": 1.5}\n'))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1}\n{"a": \n', "has no JSON object in line 2: Expecting value"),
        ('{"a": 1}\n[1]\n', "has list in line 2, not a JSON object"),
        ('{"a": 1}\n\n{"a": [1, 2]}\n', "'a' of .* has several values in line 3"),
        ("\n", "is empty"),
    ],
)
def test_what_is_no_table(write, text, said):
    with pytest.raises(DataError, match=said):
        read_table(write(text))


def test_other_json_is_refused(write):
    with pytest.raises(DataError, match="is JSON, not a table"):
        read_table(write('{\n "a": 1\n}\n', "data.json"))


@pytest.fixture
def stats():
    return pytest.importorskip("pyreadstat")


FRAME = pd.DataFrame(
    {
        "sex": [1.0, 2.0, None, 1.0],
        "age": [31.0, 40.5, 99.0, 20.0],
        "text": ["a", "", "b", "a"],
        "day": [dt.date(2024, 1, n) for n in (1, 2, 3, 4)],
    }
)
LABELS = {"sex": {1: "men", 2: "women", 3: "others"}, "age": {99: "refused"}}


@pytest.mark.parametrize(
    ("name", "writer"), [("t.sav", "write_sav"), ("t.dta", "write_dta")]
)
def test_codes_are_read_as_their_labels(stats, tmp_path, name, writer):
    path = tmp_path / name
    getattr(stats, writer)(FRAME, path, variable_value_labels=LABELS)
    table = read_table(path)
    assert table["sex"].to_pylist() == ["men", "women", None, "men"]
    assert table["sex"].chunk(0).dictionary.to_pylist() == ["men", "women", "others"]
    assert table["age"].to_pylist() == [31, 40.5, 99, 20]
    assert table["text"].to_pylist() == ["a", None, "b", "a"]
    attributes = read_table(path, ignore=["day", "text"])
    model = fit_tree(attributes, ["u", "v", "v", "u"])
    assert model.schema.columns[0].categories == ("men", "women", "others")
    assert read_table(path, missing=["women"])["sex"].to_pylist()[1] is None
    with pytest.raises(DataError, match="of data when it is read"):
        read_table(path, max_size=100)


def test_damaged_and_unknown_files(stats, tmp_path):
    for name, content in {
        "t.sav": b"$FL2" + bytes(300),
        "t.dta": b"<stata_dta>" + bytes(300),
        "t.sas7bdat": bytes(12)
        + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011")
        + bytes(300),
    }.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataError, match="is not a whole file of S"):
            read_table(path)


def test_the_reader_is_an_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    path = tmp_path / "t.sav"
    path.write_bytes(b"$FL2" + bytes(300))
    with pytest.raises(ParameterError, match=r"pip install 'branchwise\[stats\]'"):
        read_table(path)


def test_titles_of_columns_are_kept(monkeypatch, write):
    """With a stub of pyreadstat, which need not be installed."""
    described = SimpleNamespace(
        column_names=["inc", "own", "y"],
        variable_value_labels={},
        column_names_to_labels={"inc": "Net income", "own": None, "y": ""},
        number_rows=4,
    )
    cells = {"inc": [1.0, 2.0, 3.0, 4.0], "own": ["a", "b"] * 2, "y": list("pqpq")}

    def read_sav(_, metadataonly=False, **options):
        return (None if metadataonly else cells), described

    stub = SimpleNamespace(read_sav=read_sav)
    monkeypatch.setitem(sys.modules, "pyreadstat", stub)
    path = write("$FL2" + " " * 300, "survey.sav")
    file = TableFile(path)
    assert file.column_labels == {"inc": {"title": "Net income"}}
    assert file.read()["own"].to_pylist() == ["a", "b", "a", "b"]
