"""Files of actions, replay on other rows, refits and scores."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from dataclasses import replace

import pytest

import branchwise
from branchwise import DataError, ParameterError, fit_tree, grow_by_hand
from branchwise.fit import not_wanted
from branchwise.recipe import C45, CART, ID3
from hand_grown import ORDER, RECIPES, table


def small_session(rows, **given):
    session = grow_by_hand(rows, "y", CART, order=ORDER, **given)
    session.split("/", "a", threshold=0.25)
    session.split("/0", "c", values=True)
    session.split("/0/1", "e")
    return session


def test_other_rows_get_the_same_decisions(tmp_path):
    path = tmp_path / "x.actions.json"
    small_session(table(300, 1)).save(path)
    opened = branchwise.open_session(path, table(200, 2))
    assert opened.misfits == []
    assert opened.model.tree.threshold[0] == 0.25
    assert opened.model.tree.case_counts[0] == 200


def test_a_best_split_is_recorded_with_what_it_was(tmp_path):
    path = tmp_path / "x.actions.json"
    rows = table(300, 1)
    session = grow_by_hand(rows, "y", CART)
    session.split("/", "a")
    session.split("/0", "c")
    first, second = (entry.action for entry in session.history.way)
    assert first.threshold == session.model.tree.threshold[0]
    assert sorted(value for group in second.groups for value in group) == sorted(
        rows.c.dropna().unique()
    )
    session.save(path)
    fewer = rows[rows.c != "u"].head(150)
    opened = branchwise.open_session(path, fewer)
    assert opened.misfits == ["column 'c': no row has 'u', which groups name."]
    assert opened.model.tree.threshold[0] == session.model.tree.threshold[0]
    assert [entry.action for entry in opened.history.way] == [first, second]
    space = {"table": fewer}
    exec(opened.script(), space)
    assert space["model"] == opened.model
    # A branch for each value is a decision without them.
    session = grow_by_hand(rows, "y", C45)
    session.split("/", "c")
    assert session.history.way[-1].action.groups is None


def test_a_script_names_the_algorithm_and_what_differs():
    rows = table(60, 1)
    session = grow_by_hand(rows, "y", replace(ID3, max_depth=4))
    session.grow("/", C45)
    lines = session.script().splitlines()
    assert lines[:4] == [
        "from dataclasses import replace",
        "",
        "import branchwise",
        "from branchwise.recipe import C45, ID3",
    ]
    assert "    replace(ID3, max_depth=4)," in lines
    assert "session.grow('/', recipe=C45)" in lines


def test_what_no_longer_fits_is_said(tmp_path):
    path = tmp_path / "x.actions.json"
    rows = table(300, 1)
    session = small_session(rows)
    session.split("/1", "d", threshold="mid")
    session.note("/1/0", "here")
    session.save(path)
    # A value is gone: what followed it would be one branch to the left.
    fewer = rows[rows.c != "u"]
    opened = branchwise.open_session(path, fewer)
    assert opened.misfits == [
        (
            "3. split /0/1 on e: node '/0/1' is another one here. It was reached by "
            "a <= and c = v, and now by a <= and c = w."
        )
    ]
    assert opened.notes == {"/1/0": "here"}
    # A column is gone.
    opened = branchwise.open_session(path, rows.drop(columns="c"))
    assert len(opened.misfits) == 2
    assert "column must be one of 'a', 'b', 'd', 'e'. Got 'c'" in opened.misfits[0]
    assert "'/0' is a leaf" in opened.misfits[1]
    # The threshold is outside of the numbers.
    opened = branchwise.open_session(path, rows[rows.a > 1])
    assert "which splits nothing" in opened.misfits[0]
    assert len(opened.misfits) == 5
    assert len(opened.model.tree) == 1


def test_a_goto_to_a_misfit_is_no_error(tmp_path):
    path = tmp_path / "x.actions.json"
    rows = table(300, 1)
    session = small_session(rows)
    session.goto(1)
    session.save(path)
    opened = branchwise.open_session(path, rows.drop(columns="c"))
    assert opened.misfits == []
    opened.goto(3)
    assert len(opened.misfits) == 2


def test_a_history_branches():
    session = small_session(table(200, 3))
    first = session.model.to_bytes()
    session.undo()
    session.undo()
    session.split("/1", "b")
    assert [entry.parent for entry in session.history] == [None, 0, 1, 2, 1]
    other = session.model.to_bytes()
    session.goto(3)
    assert session.model.to_bytes() == first
    assert [entry.number for entry in session.history.way] == [1, 2, 3]
    session.goto(1)
    session.redo()
    assert session.history.current == 2
    session.goto(4)
    assert session.model.to_bytes() == other
    assert "left" in session.history.to_text()


def killed(path, rows):
    session = small_session(rows, journal=path)
    session.undo()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_session_loses_nothing(tmp_path):
    path = tmp_path / "x.actions.json"
    rows = table(200, 4)
    process = multiprocessing.get_context("spawn").Process(
        target=killed, args=(path, rows)
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    check_continued(path, rows)


def test_a_journal_has_what_was_done(tmp_path):
    path = tmp_path / "x.actions.json"
    rows = table(200, 4)
    session = small_session(rows, journal=path)
    session.undo()
    check_continued(path, rows)
    # The file was replaced by another session; this one ends.
    session.close()
    session.redo()
    path.unlink()
    other = small_session(rows, journal=path)
    path.unlink()
    before = other.model.to_bytes()
    with pytest.raises(DataError, match="cannot be written: No such file"):
        other.prune("/")
    assert other.model.to_bytes() == before
    assert len(other.history) == 4


def check_continued(path, rows):
    with path.open("ab") as file:
        file.write(b'{"do": "prune", "no')  # a line that was being written
    opened = branchwise.open_session(path, rows, journal=path)
    session = small_session(rows)
    session.undo()
    assert opened.model.to_bytes() == session.model.to_bytes()
    assert opened.history.to_dict() == session.history.to_dict()
    opened.redo()
    again = branchwise.open_session(path, rows)
    assert again.history.to_dict() == opened.history.to_dict()


def test_a_journal_replaces_no_file(tmp_path):
    path = tmp_path / "x.actions.json"
    path.write_text("something else")
    rows = table(50, 4)
    with pytest.raises(ParameterError, match="journal must be a file that does not"):
        grow_by_hand(rows, "y", journal=path)
    small_session(rows).save(tmp_path / "y.actions.json")
    with pytest.raises(ParameterError, match="journal must be a file that does not"):
        branchwise.open_session(tmp_path / "y.actions.json", rows, journal=path)
    assert path.read_text() == "something else"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hm", "line 2, is not JSON"),
        ("NaN", "line 2, is not JSON"),
        ("[" * 100_000, "line 2, is not JSON"),
        ("3", "line 2: An action must be an object"),
        ('{"do": "run"}', "line 2: 'do' of an action must be one of 'split'"),
        ('{"do": ["split"]}', "line 2: 'do' of an action must be one of"),
        ('{"do": "prune"}', "line 2: The action 'prune' lacks 'node'"),
        ('{"do": "prune", "node": "x"}', "line 2: node must be '/' or a path"),
        (
            '{"do": "prune", "node": "/", "a": 1}',
            "line 2: The action 'prune' has 'node'",
        ),
        (
            '{"do": "split", "node": "/", "column": 3}',
            "column must be a text of at most",
        ),
        (
            '{"do": "split", "node": "/", "column": "a", "threshold": [1]}',
            "threshold must be a text, a finite number or a boolean",
        ),
        (
            '{"do": "split", "node": "/", "column": "c", "groups": "ab"}',
            "groups must be a list with a list of values",
        ),
        (
            '{"do": "split", "node": "/", "column": "c", "values": 3}',
            "values must be True",
        ),
        ('{"do": "grow", "node": "/", "levels": 0}', "levels must be None or a whole"),
        ('{"do": "grow", "node": "/", "recipe": 3}', "recipe must be an object"),
        (
            '{"do": "grow", "node": "/", "recipe": {"x": 3}}',
            "recipe has the unknown parameter 'x'",
        ),
        (
            '{"do": "grow", "node": "/", "recipe": {"max_depth": -1}}',
            "max_depth must be",
        ),
        ('{"do": "set_missing", "node": "/", "to": -1}', "missing must be 'largest'"),
        ('{"do": "undo"}', "line 2: There is nothing to undo"),
        ('{"do": "undo", "number": 3}', "line 2: undo and redo have nothing"),
        ('{"do": "goto"}', "line 2: undo and redo have nothing"),
        ('{"do": "goto", "number": 9}', "line 2: number must be that of an entry"),
        ('{"do": "lock", "node": "/", "way": 3}', "'way' of an action must be a list"),
    ],
)
def test_lines_of_a_file_are_checked(line, message, tmp_path):
    rows, path = table(50, 5), tmp_path / "x.actions.json"
    text = grow_by_hand(rows, "y", CART).to_text()
    path.write_text(f"{text}{line}\n", "utf-8")
    with pytest.raises(DataError, match=r"x\.actions\.json, ") as caught:
        branchwise.open_session(path, rows)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"actions": 2}, "line 1, must describe a session, with 'actions': 1"),
        ({"recipe": None}, "line 1: It has no 'recipe'"),
        ({"recipe": {"criterion": "best"}}, "line 1: criterion must be"),
        ({"target": 3}, "line 1: 'target' must be null or a text"),
        ({"target": None}, "line 1: The target was given as values"),
        ({"options": 3}, "line 1: 'options' must be an object"),
        ({"options": {"order": {"x": 1}}}, "line 1: An option must be a value"),
        ({"options": {"order": {"pairs": [1]}}}, "line 1: 'pairs' of an option must"),
        (
            {"options": {"order": {"pairs": [[[1], 2]]}}},
            "line 1: The first of each of the 'pairs'",
        ),
        ({"options": {"cost": 1}}, "line 1: grow_by_hand has no parameter 'cost'"),
        (
            {"options": {"sample_weight": {"rows": True}}},
            "line 1: sample_weight was given as values",
        ),
    ],
)
def test_the_first_line_of_a_file_is_checked(change, message, tmp_path):
    rows, path = table(50, 5), tmp_path / "x.actions.json"
    header = json.loads(grow_by_hand(rows, "y", CART).to_text())
    path.write_text(json.dumps({**header, **change}) + "\n", "utf-8")
    with pytest.raises(DataError, match=r"x\.actions\.json, line 1") as caught:
        branchwise.open_session(path, rows)
    assert message in str(caught.value)


def test_a_file_without_a_whole_line(tmp_path):
    path = tmp_path / "x.actions.json"
    path.write_text('{"actions": 1', "utf-8")
    with pytest.raises(DataError, match="it has no whole line"):
        branchwise.open_session(path, table(50, 5))


def test_a_refit_keeps_what_is_locked():
    old, new = table(300, 6, missing=True), table(300, 7, missing=True)
    session = grow_by_hand(old, "y", RECIPES["id3"], order=ORDER)
    session.split("/", "a", threshold=0.5)
    session.split("/1", "e", groups=[["p"], ["q"]])
    session.relabel("/1/0", "A")
    session.note("/1", "kept")
    session.lock("/1")
    session.grow("/")
    refitted = session.refit(new)
    assert refitted.misfits == []
    assert refitted.locks == ["/1"]
    assert refitted.notes == {"/1": "kept"}
    assert refitted.model.tree.threshold[0] == 0.5
    assert (
        refitted.model.schema.classes[
            refitted.model.tree.label[refitted.number("/1/0")]
        ]
        == "A"
    )
    counts = refitted._editor.counts(refitted.recipe)
    again = counts.counted(refitted.state.tree, counts.engine.root)
    assert refitted.state.tree == again
    free = session.refit(new, keep="none")
    grown = fit_tree(new, "y", ID3, order=ORDER, on_finding=not_wanted)
    assert free.model.to_bytes() == grown.to_bytes()
    assert session.refit(old, keep="all").model.to_bytes() == session.model.to_bytes()
    with pytest.raises(ParameterError, match="keep must be 'locked', 'all' or 'none'"):
        session.refit(new, keep="some")


def test_values_of_other_rows_must_be_passed():
    rows, new = table(60, 8), table(50, 9)
    weights = [1.0] * 60
    session = grow_by_hand(rows.drop(columns="y"), rows.y, CART, sample_weight=weights)
    with pytest.raises(
        ParameterError, match="target was given as values of other rows"
    ):
        session.refit(new.drop(columns="y"))
    with pytest.raises(ParameterError, match="sample_weight was given as values"):
        session.refit(new.drop(columns="y"), target=new.y)
    other = session.refit(new.drop(columns="y"), target=new.y, sample_weight=[2.0] * 50)
    assert other.model.tree.weights[0].sum() == 100
    session.split("/", "a")
    space = {"table": rows.drop(columns="y"), "target": rows.y}
    exec(session.script(), {**space, "sample_weight": weights}, space)
    assert space["model"].to_bytes() == session.model.to_bytes()


@pytest.mark.parametrize("name", ["c4.5", "regression"])
def test_scores_of_both_trees(name):
    numbers = name == "regression"
    recipe = C45 if name == "c4.5" else RECIPES["cart"]
    rows = table(400, 10, missing=True, numbers=numbers)
    if numbers:
        from dataclasses import replace

        recipe = replace(CART, criterion="variance", max_depth=4)
    session = grow_by_hand(rows, "y", recipe, validation_fraction=0.25, order=ORDER)
    assert session.model.tree.case_counts[0] == 300
    session.grow("/")
    score = session.score()
    assert score.method == "hold-out"
    # The same tree twice.
    assert score.edited == score.automatic
    assert score.difference.mean == score.difference.low == 0
    session.prune("/")
    score = session.score()
    mean = score.edited.mean
    if numbers:
        held = session._held_out.target
        assert mean == pytest.approx(abs(held - session.model.tree.mean[0]).mean())
        assert score.difference.mean > 0
    else:
        assert score.edited.low < mean < score.automatic.mean
        assert score.difference.mean == pytest.approx(mean - score.automatic.mean)
    folds = session.score("cross-validation", folds=3, repeats=2)
    assert len(folds.edited.folds) == 6
    assert folds.difference.mean == pytest.approx(
        folds.edited.mean - folds.automatic.mean
    )
    assert "cross-validation" in folds.to_text()
    assert session.scoring("hold-out")().to_dict() == score.to_dict()


def test_folds_say_what_cannot_be_replayed():
    rows = table(60, 11)
    rows.loc[0, "c"] = "rare"
    session = grow_by_hand(rows, "y", CART)
    groups = [["rare"], list("xyzuvw")]
    session.split("/", "c", groups=groups)
    score = session.score(folds=3, repeats=1)
    (misfit,) = score.misfits
    assert misfit.startswith("split / on c into {rare}, {x, y, z, ... (3 more)}: ")
    assert misfit.endswith(
        "Got 'rare', without any; leave it out, or join it with another. (1 fold)"
    )
    assert misfit in score.to_text()


def test_a_hold_out_must_be_there():
    session = grow_by_hand(table(60, 11), "y", CART)
    with pytest.raises(ParameterError, match="needs rows that were set aside"):
        session.score("hold-out")
    with pytest.raises(ParameterError, match="method must be 'hold-out' or"):
        session.score("bootstrap")


def test_the_rows_set_aside_depend_on_the_seed_and_the_classes():
    rows = table(200, 12)
    one, same, other = (
        grow_by_hand(rows, "y", CART, validation_fraction=0.5, random_state=seed)
        for seed in (0, 0, 1)
    )
    assert one.model.to_bytes() == same.model.to_bytes()
    assert (one.model.tree.weights == other.model.tree.weights).all()
    counted = rows.y.value_counts().sort_index().to_numpy()
    assert abs(one.model.tree.weights[0] - counted / 2).max() <= 1
    one.split("/", "a", threshold=0)
    other.split("/", "a", threshold=0)
    assert one.model.to_bytes() != other.model.to_bytes()
