"""What is special about PMML: what is refused, and what is only checked."""

from __future__ import annotations

import runpy
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from branchwise import ExportError, ID3Classifier, datasets, export, fit_tree
from branchwise import model_file as persist
from branchwise.export import pmml
from branchwise.model import Model

DRIVER = Path(pmml.__file__).parent / "templates/pmml_driver.py.txt"
SPACE = "{http://www.dmg.org/PMML-4_4}"


@pytest.fixture
def weather():
    table = datasets.load("weather")
    return fit_tree(table.X, table.y)


def test_names_and_values_are_what_they_were():
    hostile = ["a\nb", "c\rd", "\te ", "<f> & \"g\" 'h'", "\u202ei", "]]>"]
    names = ["x\n", *hostile[3:]]
    X = {name: [*hostile, "plain"] * 2 for name in names}
    model = fit_tree(X, [f"class {i}" for i in range(7)] * 2)
    root = ET.fromstring(export.write(model, "pmml"))
    fields = list(root.iter(f"{SPACE}DataField"))
    assert fields[0].get("name") == "x\n"
    values = [value.get("value") for value in fields[0]]
    assert sorted(values) == sorted([*hostile, "plain"])


def test_divided_cases_are_refused_or_left_unanswered():
    table = datasets.load("weather")
    model = ID3Classifier(missing="split").fit(table.X, table.y).model_
    with pytest.raises(ExportError, match="divided='unanswered'"):
        export.write(model, "pmml")
    content = export.write(model, "pmml", divided="unanswered").decode()
    assert (
        '<Node id="divided 0"><SimplePredicate field="outlook" operator="isMissing"/>'
        in content
    )


def test_what_xml_cannot_hold_is_refused():
    model = fit_tree({"a": ["x\0", "b"] * 2}, ["no", "yes"] * 2)
    with pytest.raises(ExportError, match=r"cannot hold the character '\\x00'"):
        export.write(model, "pmml")
    named = fit_tree({"a": ["x", "b"] * 2}, ["no", "yes"] * 2).to_bytes()
    unnamed = Model(*persist.from_bytes(named.replace(b'"name": "a"', b'"name": ""')))
    with pytest.raises(ExportError, match="needs a name"):
        export.write(unnamed, "pmml")


def test_deep_trees_are_refused(weather, monkeypatch):
    monkeypatch.setattr(pmml, "_DEEPEST", 1)
    with pytest.raises(ExportError, match="2 levels deep"):
        export.write(weather, "pmml")


def test_without_an_evaluator_nothing_is_written(weather, monkeypatch, tmp_path):
    monkeypatch.setattr(pmml.shutil, "which", lambda name: None)
    monkeypatch.setattr(pmml.importlib.util, "find_spec", lambda name: True)
    done = export.verify(weather, "pmml")
    assert not done.ok
    assert str(done) == "pmml: not run: there is no Java here (java)"
    path = tmp_path / "tree.pmml"
    with pytest.raises(ExportError, match="'pmml' cannot be verified here: there is"):
        weather.export("pmml", path)
    assert not path.exists()
    assert weather.export("pmml", path, verify=False) == path.read_text()
    monkeypatch.setattr(pmml.importlib.util, "find_spec", lambda name: None)
    assert "jpmml_evaluator" in str(pmml._absent())


def test_whole_numbers_beside_gaps_are_labels():
    # pandas turns a column of whole numbers with a gap into one of floats.
    driver = runpy.run_path(str(DRIVER), run_name="driver")
    prediction = driver["prediction"]
    assert prediction({"y": 1.0, "p": 0.5}, "y", ["0", "1"], ["p"]) == [1, 0.5]
    assert prediction({"y": True, "p": 1.0}, "y", ["true"], ["p"]) == [0, 1.0]
    assert prediction({"y": float("nan")}, "y", ["0", "1"], ["p"]) is None


def test_a_tree_that_asks_nothing():
    done = export.verify(fit_tree({"a": [1, 1]}, ["no", "no"]), "pmml")
    assert not done.differences, str(done)
