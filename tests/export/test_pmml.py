"""What is special about PMML: what is refused, and what is only checked."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from branchwise import (
    BaggedTrees,
    CARTRegressor,
    ExportError,
    ID3Classifier,
    RandomForestClassifier,
    RuleClassifier,
    datasets,
    export,
    fit_tree,
)
from branchwise import model_file as persist
from branchwise.export import pmml
from branchwise.export.base import _prediction as read_prediction
from branchwise.export.base import (
    ensemble_predictions,
    plan_of,
    run_in_folder,
    same,
    sample_of_rows,
)
from branchwise.export.verification import probe_rows
from branchwise.model import Model
from forest_tables import mixed
from mixed_ensembles import boosted_ensembles, random_boosting, random_ensemble

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


#: Runs the driver for several files in one process: Java starts slowly.
SEVERAL = """
import contextlib, runpy, sys
driver = runpy.run_path("driver.py", run_name="driver")
for number, target in enumerate(sys.argv[1:]):
    sys.argv = ["driver.py", f"{number}.pmml", target]
    with open(f"{number}.rows") as sys.stdin:
        driver["main"]()
"""


def check_several(ensembles, n_rows=200, n_rule_sets=0):
    """Compare what files of ensembles predict with the ensembles.

    The last ``n_rule_sets`` of them are rule sets, which predict classes alone.
    """
    if pmml._absent() is not None:
        pytest.skip(str(pmml._absent()))
    files = {"driver.py": DRIVER.read_bytes(), "several.py": SEVERAL.encode()}
    wanted, targets = [], []
    for number, ensemble in enumerate(ensembles):
        plan = plan_of(ensemble)
        rows = probe_rows(plan, n_rows)
        sample = sample_of_rows(rows, ensemble.schema, plan)
        predictions = ensemble_predictions(ensemble, plan, sample, True)
        form = "rules" if number >= len(ensembles) - n_rule_sets else "trees"
        if form == "rules":
            predictions = [(label, ()) for label, _ in predictions]
        wanted += [(plan, prediction) for prediction in predictions]
        targets.append(pmml.Names(plan).target)
        content = export.write(ensemble, "pmml", divided="unanswered", form=form)
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        files |= {f"{number}.pmml": content, f"{number}.rows": lines.encode()}
    told = run_in_folder([[sys.executable, "several.py", *targets]], files).splitlines()
    assert len(told) == len(wanted)
    for line, (plan, prediction) in zip(told, wanted, strict=True):
        got = read_prediction(json.loads(line), plan)
        assert same(prediction, got, plan), (plan.about, prediction, got)


def test_ensembles_that_were_fitted():
    X, y = mixed(100)
    estimators = (
        RandomForestClassifier(n_estimators=3, max_depth=3),
        RandomForestClassifier(n_estimators=4, max_depth=2, voting="hard"),
        RandomForestClassifier(n_estimators=3, max_depth=3, costs=[[0, 3], [1, 0]]),
        RandomForestClassifier(n_estimators=1, max_depth=0),
        BaggedTrees(estimator=CARTRegressor(max_depth=3), n_estimators=3),
    )
    fitted = [one.fit(X, y).model_ for one in estimators[:-1]]
    fitted.append(estimators[-1].fit(X.drop(columns="noise"), X["noise"]).model_)
    links = [random_boosting(12, seed) for seed in range(12, 16)]
    votes = np.array(["no", "yes", "maybe"])[(X["noise"] * 9).astype(int) % 3]
    rules = [
        RuleClassifier(n_estimators=3, rule_cost=0.1).fit(X, labels).model_
        for labels in (y, votes)
    ]
    assert all(len(one.voting_rules()) > 1 for one in rules)
    check_several([*fitted, *boosted_ensembles(), *links, *rules], 80, n_rule_sets=2)


@pytest.mark.slow
@pytest.mark.parametrize("make", [random_ensemble, random_boosting])
def test_ensembles_of_every_kind_of_tree(make):
    check_several([make(seed, seed) for seed in range(28)], 100)


def test_ensembles_are_refused_by_name():
    divides = random_ensemble(3, 3)
    with pytest.raises(ExportError, match="divided='unanswered'"):
        export.write(divides, "pmml")


@pytest.mark.slow
def test_a_tree_that_asks_nothing():
    done = export.verify(fit_tree({"a": [1, 1]}, ["no", "no"]), "pmml")
    assert not done.differences, str(done)
