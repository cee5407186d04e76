"""Predictions in CSV that a spreadsheet would compute are escaped on request."""

from __future__ import annotations

import csv
import io

import pytest

from branchwise import ParameterError, fit_tree
from branchwise.predict import predict_rows
from command_line import output, run

FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-x", "@SUM(A1)", "\tq", "\rq"]
HARMLESS = ["a=b", "-5", "+3.5", "-1e-7", "'x"]


@pytest.fixture
def files(tmp_path):
    words = [*FORMULAS, *HARMLESS]
    model = fit_tree({"=x": list(range(len(words)))}, words)
    model.save(tmp_path / "m.json")
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["=x"], *([n] for n in range(len(words)))])
    return tmp_path


def predictions(text):
    return [row[-1] for row in csv.reader(io.StringIO(text, newline=""))][1:]


@pytest.mark.parametrize("engine", ["memory", "chunked"])
def test_formulas_are_escaped_on_request(files, engine):
    given = ("predict", files / "m.json", files / "t.csv", "--engine", engine)
    plain = ("-o", files / "plain.csv")
    output(*given, *plain)
    with (files / "plain.csv").open(newline="") as file:
        assert predictions(file.read()) == [*FORMULAS, *HARMLESS]
    output(*given, "--keep", "--escape-formulas", "-o", files / "safe.csv")
    with (files / "safe.csv").open(newline="") as file:
        text = file.read()
    assert text.startswith("'=x,prediction\n0,")
    assert predictions(text) == [f"'{cell}" for cell in FORMULAS] + HARMLESS


def test_escaping_is_for_delimited_text(files):
    given = ("predict", files / "m.json", files / "t.csv", "--escape-formulas")
    code, _, complaint = run(*given, "--format", "json")
    assert code == 2
    assert (
        "escape_formulas applies only to CSV and TSV. Got the format 'json'"
        in complaint
    )
    model = fit_tree({"=x": [1, 2]}, ["=a", "b"])
    written = predict_rows(
        model, files / "t.csv", output=files / "o.csv", escape_formulas=True
    )
    assert written == 11
    assert "'=a" in (files / "o.csv").read_text()
    with pytest.raises(ParameterError, match="no effect without an output"):
        predict_rows(model, files / "t.csv", escape_formulas=True)
