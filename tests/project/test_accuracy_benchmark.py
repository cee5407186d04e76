"""The accuracy benchmark: its halves and sets do not move, and runs go on."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def accuracy(monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import accuracy

    yield accuracy
    for name in [name for name in sys.modules if name.startswith(("accuracy", "c50"))]:
        del sys.modules[name]


def test_halves_follow_from_names_alone(accuracy):
    from accuracy_sets import half

    assert half("car") == "confirming"
    assert half("mushroom") == "choosing"
    assert half("3 of 5, 300 rows") == "choosing"


def test_concepts_are_the_same_in_every_run(accuracy):
    from accuracy_concepts import CONCEPTS, generated

    assert len(CONCEPTS) >= 30
    X, y = generated("3 of 5, 300 rows")
    again, _ = generated("3 of 5, 300 rows")
    assert X.equals(again)
    first = (X.iloc[:, :5] == "v0").sum(axis=1) >= 3
    assert ((y == "class 1") == first).all()


def test_shared_sets_that_are_absent_are_skipped_with_a_message(
    accuracy, tmp_path, capsys
):
    from accuracy_sets import sets

    kinds = {data.kind for data in sets(tmp_path, 1, 2, 100)}
    assert kinds == {"carried", "generated"}
    assert "skipped: the shared sets" in capsys.readouterr().out


def test_what_was_measured_is_not_measured_again(accuracy, tmp_path, monkeypatch):
    from accuracy_sets import sets

    data = next(s for s in sets(tmp_path, 1, 2, 0) if s.name == "3 of 5, 300 rows")
    store = accuracy.Store(tmp_path, "1x2")
    _, _, found = accuracy.measured((store, data, "C4.5"))
    assert found.n == sum(found.rows) == 300
    assert 80 < found.accuracy <= 100
    assert found.mean("log_loss") > 0
    assert json.loads(store.path(data, "C4.5").read_text())["set"] == data.name
    monkeypatch.setattr(accuracy, "measure", None)
    monkeypatch.setattr(accuracy, "program", lambda: None)
    again = accuracy.run(store, [data], ["C4.5"], again=False, processes=1)
    assert again[data.name, "C4.5"] == found
    assert accuracy.known_figures(store, [data], ["C4.5", "CART"]) == again
    report = accuracy.Report([data], again, ["C4.5"], "C4.5")
    assert any(
        line.startswith("| 3 of 5, 300 rows | choosing") for line in report.lines()
    )


#: Stands for C5.0: it has a leaf, and is wrong where the class is the second one.
PROGRAM = """#!/bin/sh
echo "Evaluation on test data (cases):"
echo "     Size      Errors"
echo "        1  $(grep -c 'class1$' $2.test)(50.0%)   <<"
"""


def test_a_program_has_its_errors_where_they_were_not_recorded(
    accuracy, tmp_path, monkeypatch
):
    import pandas as pd

    import c50_program
    from accuracy_sets import DataSet, Table

    path = tmp_path / "c5.0"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    for module in (accuracy, c50_program):
        monkeypatch.setattr(module, "program", lambda: path)
    X = pd.DataFrame({
        "a, b": ["x|y", None, "z.", "x|y"], "n": [1.5, np.nan, 2.0, 3.0], "one": "same",
    })  # fmt: skip
    tests = [np.array([0, 1]), np.array([2, 3])]
    table = Table(X, np.array(["no", "yes", "yes", "yes"]), ["no", "yes"], tests)
    names, rows = c50_program._as_text(table)
    assert names == "class0, class1.\n\nc0: v0, v1.\nc1: continuous.\n"
    assert list(rows) == [
        "v0,1.5,class0", "?,?,class1", "v1,2.0,class1", "v0,3.0,class1",
    ]  # fmt: skip
    data = DataSet("four rows", "generated", lambda: table)
    found = accuracy.measure_program(table, "C5.0")
    assert (found.errors, found.leaves, found.mean("leaves")) == ([1, 2], [1, 1], 1)
    monkeypatch.setattr(accuracy, "ProcessPoolExecutor", ThreadPoolExecutor)
    store = accuracy.Store(tmp_path, "1x2")
    ran = accuracy.run(store, [data], [], again=False, processes=1)
    assert {name: figures.accuracy for (_, name), figures in ran.items()} == {
        "C5.0": 25, "C5.0 rules": 25,
    }  # fmt: skip


@pytest.mark.parametrize("printed", ["", "Evaluation on test data:\n  no table"])
def test_a_program_that_prints_no_errors_is_an_error(
    accuracy, tmp_path, monkeypatch, printed
):
    import c50_program

    path = tmp_path / "c5.0"
    path.write_text(f"#!/bin/sh\necho '{printed}'\n")
    path.chmod(0o755)
    monkeypatch.setattr(c50_program, "program", lambda: path)
    (tmp_path / "table").mkdir()
    cells = np.array(["1,class0", "2,class1"], dtype=object)
    with pytest.raises(RuntimeError, match="no errors of the test rows"):
        c50_program._run(tmp_path / "table", cells, np.array([0]), "C5.0")


def test_intervals_of_folds_are_widened_for_common_training_rows(accuracy):
    figures = [
        accuracy.Figures(100, [20] * 5, errors, [], [], [], 0.0)
        for errors in ([1, 2, 3, 2, 1], [2, 4, 3, 3, 2])
    ]
    plain = accuracy.interval(
        (figures[0].fold_accuracies - figures[1].fold_accuracies).tolist()
    )
    mean, width = accuracy.fold_interval(*figures)
    assert mean == plain[0] == pytest.approx(5.0)
    assert width == pytest.approx(plain[1] * np.sqrt(1 + 5 * 20 / 80))
