"""Exports answer as the model does: the plan, the rows to try, the verification."""

from __future__ import annotations

import numpy as np
import pytest

from branchwise import ParameterError, datasets, export, fit_tree
from branchwise.export import verification
from branchwise.export.base import (
    Runner,
    Target,
    model_predictions,
    same,
    sample_of_rows,
)
from branchwise.export.verification import probe_rows
from export_plans import follow, plan_of
from mixed_trees import ESTIMATORS, random_models
from selection import first_fast

#: Targets that take single trees.
OF_TREES = sorted(set(export.TARGETS) - {"dmn"})
#: Options with which a target carries what it would refuse.
ALL_CARRIED = {"pmml": {"divided": "unanswered"}}
#: Models to try where a run takes seconds to begin.
SLOW_TO_START = {"pmml": 1, "excel": 1, "sql": 7, "c": 7, "javascript": 7}
#: Trees and rows of the long test where they would take hours.
LESS = {"excel": (50, 500)}


@pytest.fixture
def weather():
    table = datasets.load("weather")
    return fit_tree(table.X, table.y)


def test_the_rules_of_a_plan_are_those_of_the_model():
    divided = 0
    for model in random_models(52, seed=7):
        plan = plan_of(model)
        rows = probe_rows(plan, 200)
        sample = sample_of_rows(rows, model.schema, plan)
        wanted = model_predictions(model.schema, model.tree, model.recipe, sample)
        for row, answer in zip(rows, wanted, strict=True):
            assert same(follow(plan, row), answer, plan), row
        divided += plan.divides
    assert divided > 5


def test_probes_visit_the_nodes(weather):
    plan = plan_of(weather)
    rows = probe_rows(plan, 100)
    sample = sample_of_rows(rows, weather.schema, plan)
    reached = weather.walker.walk(sample.data).node
    assert set(np.flatnonzero(weather.tree.is_leaf)) <= set(reached.tolist())
    assert rows == probe_rows(plan, 100)
    assert rows != probe_rows(plan, 100, seed=1)


@pytest.mark.parametrize(
    "target",
    first_fast(sorted(OF_TREES, key=("pmml", "excel").__contains__), len(OF_TREES) - 2),
)
def test_a_table_of_the_user(weather, target):
    done = export.verify(weather, target, datasets.load("weather").X)
    assert done.n_rows == 14
    assert not done.differences, str(done)
    assert done.ran or done.absent


# Java starts slowly: the quick tests have its ensembles of trees, in test_pmml.py.
@pytest.mark.parametrize(
    "target",
    first_fast(sorted(OF_TREES, key="pmml".__eq__), n_fast=len(OF_TREES) - 1),
)
def test_random_trees_are_exported_without_a_difference(target, monkeypatch):
    monkeypatch.setattr(verification, "_N_PROBES", 120)  # more below, where it is slow
    tried = 0
    n_models = SLOW_TO_START.get(target, len(ESTIMATORS))
    for model in random_models(n_models, seed=100):
        try:
            export.write(model, target, **ALL_CARRIED.get(target, {}))
        except export.ExportError:
            continue  # what a target cannot carry is told by its own tests
        done = export.verify(model, target, **ALL_CARRIED.get(target, {}))
        assert not done.differences, str(done)
        tried += done.ok
        if done.absent and not done.ran:
            pytest.skip(done.absent[0])
    assert tried > n_models / 3


@pytest.mark.slow
@pytest.mark.parametrize("target", OF_TREES)
def test_many_trees_and_rows_without_a_difference(target, monkeypatch):
    n_models, n_rows = LESS.get(target, (200, 10_000))
    monkeypatch.setattr(verification, "_N_PROBES", n_rows)
    for model in random_models(n_models, seed=1000):
        try:
            export.write(model, target, **ALL_CARRIED.get(target, {}))
        except export.ExportError:
            continue
        done = export.verify(model, target, **ALL_CARRIED.get(target, {}))
        assert not done.differences, str(done)


def test_a_difference_is_found_and_told(weather, monkeypatch):
    def answers_wrongly(content, plan, rows):
        answer = (plan.classes[0], plan.nodes[0].probabilities)
        return [answer] * len(rows)

    wrong = Runner("a wrong runner", lambda: None, answers_wrongly)
    gone = Runner("gone", lambda: "there is no such program here", answers_wrongly)
    target = Target("wrong", ".txt", lambda plan, options: b"", lambda _: [wrong, gone])
    monkeypatch.setitem(verification.TARGETS, "wrong", target)
    done = export.verify(weather, "wrong", {c: [None] for c in weather.schema.names})
    assert not done.ok
    assert str(done).splitlines() == [
        "wrong: 1 row in a wrong runner: 1 difference",
        "wrong: not run: there is no such program here",
        f"  {done.differences[0]}",
    ]
    assert "row 0" in str(done.differences[0])


def test_what_is_wrong_or_not_verified_is_not_written(weather, monkeypatch, tmp_path):
    def answers_wrongly(content, plan, rows):
        return [None] * len(rows)

    wrong = Runner("a wrong runner", lambda: None, answers_wrongly)
    gone = Runner("gone", lambda: "there is no such program here", answers_wrongly)
    for name, runner in (("wrong", wrong), ("gone", gone)):
        target = Target(name, "", lambda plan, _: b"text", lambda _, r=runner: [r])
        monkeypatch.setitem(verification.TARGETS, name, target)
    path = tmp_path / "out"
    with pytest.raises(export.ExportError, match=r"(?s)differs from .* 1,000 diff"):
        weather.export("wrong", path)
    with pytest.raises(export.ExportError, match="cannot be verified here: there is"):
        weather.export("gone", path)
    assert not path.exists()
    assert weather.export("gone", path, verify=False) == "text"
    assert path.read_text() == "text"


def test_true_is_not_one(weather):
    plan = plan_of(weather)
    assert not same((True, (0.5,)), (1, (0.5,)), plan)
    assert not same(("a", (0.5,)), ("a", (np.nextafter(0.5, 1),)), plan)
    assert not same(None, ("a", (0.5,)), plan)
    assert same(None, None, plan)


def test_an_unknown_target(weather):
    with pytest.raises(ParameterError, match=r"target must be one of .* Got 'cobol'"):
        export.write(weather, "cobol")


def test_an_unknown_option(weather):
    with pytest.raises(ParameterError, match="'json' has no option 'indentation'"):
        export.write(weather, "json", indentation="2")
    with pytest.raises(ParameterError, match=r"indent of .* must be one of .* '7'"):
        export.write(weather, "json", indent="7")
