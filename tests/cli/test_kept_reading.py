"""What a model keeps of how its table was read, and advice on how to read one."""

import datetime as dt
import json
from typing import Any

import pytest

from branchwise import C45Classifier, load, predict_rows, read_table
from branchwise.data.frames import open_table
from branchwise.errors import DataError, ModelFileError
from branchwise.files import write_workbook
from branchwise.files.write_table import write_columns
from command_line import output, refusal

ROWS = "3.422,87 €;ja\nk.A.;nein\n1.026,88 €;nein\n4.100,00 €;ja\n900,10 €;nein\n"


@pytest.fixture
def loans(tmp_path):
    path = tmp_path / "loans.csv"
    path.write_text("income;paid\n" + ROWS * 4)
    return path


@pytest.fixture
def fitted(loans, tmp_path):
    path = tmp_path / "tree.json"
    output("fit", loans, "-t", "paid", "-a", "cart", "-o", path, "--missing", "k.A.")
    return path


def test_models_keep_which_cells_are_missing(fitted, tmp_path):
    assert json.loads(fitted.read_text())["schema"]["na_values"] == ["", "k.A."]
    model = load(fitted)
    assert model.to_bytes() == fitted.read_bytes()
    new = tmp_path / "new.csv"
    new.write_text("income;paid\nk.A.;nein\n5.000,00 €;ja\n" + "4.400,00 €;ja\n" * 9)
    expected = ["nein", *["ja"] * 10]
    for engine in ("memory", "chunked"):
        out = output("predict", fitted, new, "--engine", engine)
        assert out.split() == ["prediction", *expected]
    (batch,) = predict_rows(model, str(new))
    assert batch["prediction"].tolist() == expected
    assert "accuracy 1.0000" in output("evaluate", fitted, new)
    assert output("explain", fitted, "--set", "income=k.A.") == output(
        "explain", fitted, "--set", "income="
    )
    # Those that are given take precedence.
    said = refusal("predict", fitted, new, "--missing", "none")
    assert "has 'k.A.'. Correct the cell, or add it to the values that count" in said
    assert "--missing on the command line" in said


@pytest.mark.filterwarnings("ignore:1 text column is read as numbers")
def test_chunked_fits_keep_which_cells_are_missing(loans, tmp_path):
    path = tmp_path / "tree.json"
    command = "fit", loans, "-t", "paid", "-a", "cart", "-o", path
    output(*command, "--missing", "k.A.", "--engine", "chunked")
    assert load(path).schema.na_values == ("", "k.A.")
    output(*command, "--engine", "chunked", "--categorical", "income")
    assert load(path).schema.na_values is None


def test_tables_tell_which_cells_were_missing(loans, tmp_path):
    table = read_table(loans, missing=["k.A."], text_columns=["income"])
    model = C45Classifier().fit(table.select(["income"]), table["paid"]).model_
    assert model.schema.na_values == ("k.A.",)
    other = read_table(loans, text_columns=["income"])
    model = C45Classifier().fit(other.select(["income"]), other["paid"]).model_
    assert model.schema.na_values is None
    # Metadata of others is not trusted.
    for said in (b"{", b"3", b'["a", 1]'):
        strange = other.replace_schema_metadata({b"branchwise missing cells": said})
        assert open_table(strange).na_values is None


def test_exports_know_which_texts_are_missing_numbers(fitted, tmp_path):
    path = tmp_path / "tree.py"
    output("export", fitted, "--to", "python", "-o", path)
    module: dict[str, Any] = {}
    exec(path.read_text(encoding="utf-8"), module)
    predict = module["predict_proba"]
    assert predict({"income": "k.A."}) == predict({}) == predict({"income": ""})
    assert predict({"income": "4.000,00 €"}) == [1, 0]
    with pytest.raises(ValueError, match=r"written as in training\. Got 'none'"):
        predict({"income": "none"})
    path = tmp_path / "tree.js"
    output("export", fitted, "--to", "javascript", "-o", path)
    assert 'const MISSING = ["", "k.A."];' in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("k.A.", "'na_values' of 'schema' must be a list"),
        (["", 1], "'na_values' of 'schema' must be texts"),
        (["", "-", "-"], "'na_values' of 'schema' has a text twice"),
    ],
)
def test_model_files_are_checked_for_missing_cells(fitted, wrong, said):
    document = json.loads(fitted.read_text())
    document["schema"]["na_values"] = wrong
    with pytest.raises(ModelFileError, match=said):
        load(json.dumps(document).encode())


def test_titles_are_advised_where_columns_are_lacking(loans, fitted, tmp_path):
    path = tmp_path / "titled.csv"
    path.write_text("Loans of May\nBranch 7\n\n" + loans.read_text())
    advice = "Its first lines look like a title: leave them out with --skip 3."
    said = refusal("fit", path, "-t", "paid", "-o", tmp_path / "t.json")
    assert "has no column 'paid'" in said
    assert said.endswith(advice)
    assert refusal("predict", fitted, path).endswith(advice)
    with pytest.raises(DataError, match="leave them out with skip=3"):
        read_table(path, number_columns=["income"])


def test_options_in_sentences_can_be_copied(tmp_path):
    path = tmp_path / "data.csv"
    rows = "".join(f"KD-{at},{'xy'[at % 2]}\n" for at in range(60))
    path.write_text("Nr.,y\n" + rows)
    assert "leave it out with --ignore 'Nr.'." in output("schema", path, "-t", "y")


def test_workbooks_of_predictions(fitted, loans, tmp_path):
    path = tmp_path / "scored.xlsx"
    command = "predict", fitted, loans, "-o", path, "--keep", "--proba"
    output(*command)
    first = path.read_bytes()
    output(*command, "--engine", "chunked")
    assert path.read_bytes() == first
    table = read_table(path, text_columns=["income"])
    assert table.column_names == [
        *("income", "paid", "prediction"),
        *("probability of ja", "probability of nein"),
    ]
    assert table["prediction"].to_pylist() == table["paid"].to_pylist()
    assert table["probability of ja"].to_pylist()[:2] == [1, 0]


def test_cells_of_workbooks(tmp_path):
    path = tmp_path / "cells.xlsx"
    cells = {
        "=1+1": ["=1+1", "http://x", None],
        "whole": [2**53, 2**60, 7],
        "number": [0.1, float("inf"), None],
        "truth": [True, False, None],
        "day": [dt.date(2024, 2, 29), dt.date(1800, 1, 1), None],
    }
    with path.open("wb") as file:
        write_columns(file, cells, "excel")
    found = read_table(path, text_columns=["whole", "number", "truth", "day"])
    assert found["=1+1"].to_pylist() == ["=1+1", "http://x", None]
    assert found["whole"].to_pylist()[1:] == [str(2**60), "7"]
    assert found["number"].to_pylist() == ["0.1", "inf", None]
    assert found["day"].to_pylist()[1:] == ["1800-01-01", None]


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("_MOST_ROWS", "at most 1 rows besides its header"),
        ("_MOST_COLUMNS", "at most 2 columns, and the table has 3"),
        ("_MOST_CHARACTERS", "cannot hold the text 'abc'"),
    ],
)
def test_limits_of_workbooks(tmp_path, monkeypatch, limit, said):
    monkeypatch.setattr(write_workbook, limit, 2)
    path = tmp_path / "x.xlsx"
    columns = {"a": ["abc", "b", "c"], "b": [1, 2, 3], "c": [1, 2, 3]}
    with path.open("wb") as file, pytest.raises(DataError, match=said):
        write_columns(file, columns, "excel")
    assert not path.read_bytes()  # what is incomplete must not look whole


def test_scores_of_a_model_are_those_of_scikit_learn(fitted, loans):
    document = json.loads(output("evaluate", fitted, loans, "--format", "json"))
    assert document["scores"]["auc"]["mean"] == 1
    assert document["scores"]["accuracy"]["low"] < 1
    assert document["baseline_accuracy"] == 0.6
    assert sum(one["rows"] for one in document["calibration"]) == 20
