"""Cells of a new table that are missing, unseen or out of range, by column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from branchwise import DataError, RandomForestClassifier, fit_tree
from branchwise.recipe import CART

TRAINING = pd.DataFrame(
    {
        "age": [20, 30, 40, 50, 60, 70],
        "job": ["a", "b", "a", "b", "a", None],
        "noise": [1, 1, 1, 1, 1, 1],
        "y": ["p", "q", "p", "q", "q", "q"],
    }
)
NEW = pd.DataFrame({"age": [19, 71, 72, None, 20], "job": ["c", "a", "b", None, "c"]})


@pytest.fixture(name="model")
def fitted():
    model = fit_tree(TRAINING, "y", CART)
    assert [model.schema.names[at] for at in model.used_columns] == ["age", "job"]
    return model


def test_counts_by_column(model, tmp_path):
    NEW.to_csv(tmp_path / "new.csv", index=False)
    for table in (NEW, tmp_path / "new.csv", model.encoded(NEW)):
        check = model.check_table(table)
        assert check.n_rows == 5
        assert vars(check["age"]) == {"missing": 1, "unseen": 0, "below": 1, "above": 2}
        assert vars(check["job"]) == {"missing": 1, "unseen": 2, "below": 0, "above": 0}
    assert check.notes() == [
        (
            "column 'age': 3 of 5 values outside of 20 to 70, the range in training; "
            "1 of 5 values missing (none in training)."
        ),
        (
            "column 'job': 2 of 5 values not seen in training; 1 of 5 values missing "
            "(17 % in training)."
        ),
    ]
    assert repr(check) == (
        "<TableCheck: 5 rows, 2 columns, 2 with cells that are missing, unseen or out "
        "of range>"
    )
    frame = check.to_frame("pandas").set_index("column")
    assert frame.loc["age", ["below", "above", "training_low"]].tolist() == [1, 2, 20]
    assert "20 to 70" in str(check)
    assert "<table" in check._repr_html_()
    assert check.to_dict()["columns"]["job"]["unseen"] == 2


def test_a_table_as_in_training_has_nothing_to_note(model):
    check = model.check_table(TRAINING.dropna())
    assert check.notes() == []
    assert "0 with cells" in repr(check)


def test_ensembles_check_tables_too():
    table = TRAINING.drop(columns="y")
    forest = RandomForestClassifier(n_estimators=4).fit(table, TRAINING["y"])
    assert forest.model_.check_table(NEW)["age"].above == 2


def test_many_columns_are_noted_in_a_line():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"c{at}": rng.normal(size=40) for at in range(14)})
    forest = RandomForestClassifier(n_estimators=40)
    model = forest.fit(table, rng.choice(["p", "q"], 40)).model_
    notes = model.check_table(table + 100).notes()
    assert len(notes) == 11
    assert notes[-1] == "4 further columns with values of the kind above."


def test_a_table_that_cannot_be_checked(model):
    with pytest.raises(DataError, match="lacks the column 'job'"):
        model.check_table(NEW[["age"]])
