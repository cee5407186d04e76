"""Every method of the protocol, on a table of classes and on one of numbers."""

from __future__ import annotations

import base64
import json
import threading

import pytest

import branchwise
from branchwise.studio import protocol
from branchwise.studio.workspace import Workspace
from studio_tables import TABLES, Page

KINDS = {"code": "category", "weight": "ignore"}


@pytest.fixture(name="page")
def empty_page():
    workspace = Workspace()
    yield Page(workspace)
    workspace.close()


@pytest.fixture(name="started", params=["classes", "numbers"])
def page_with_session(page, request):
    page.load(request.param)
    page.target = TABLES[request.param][1]
    page.regression = request.param == "numbers"
    page.ask("start", target=page.target, kinds=KINDS)
    return page


def grown(page):
    """Split the root on its best column, and grow its first branch."""
    best = page.ask("candidates", node="/")[0]["column"]
    page.ask("apply", action={"do": "split", "node": "/", "column": best})
    return page.ask("apply", action={"do": "grow", "node": "/0"})


# -- Before there is a session


def test_there_is_nothing_at_first(page):
    state = page.ask("state")
    assert state["stage"] == "empty"
    assert state["table"] is None
    assert [one["name"] for one in state["recipes"]] == ["", "id3", "c4.5", "cart"]


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("start", {"target": "y"}),
        ("reread", {"reading": {}}),
        ("apply", {"action": {"do": "prune", "node": "/"}}),
        ("undo", {}),
        ("candidates", {"node": "/"}),
        ("score", {}),
        ("script", {}),
        ("save", {}),
        ("open", {"content": '{"actions": 1, "target": "y"}\n'}),
        ("reveal", {"node": "/"}),
    ],
)
def test_what_needs_more_says_so(page, method, args):
    message = page.error(method, **args)["message"]
    assert message.endswith(" first."), message


def test_a_table_is_summarised(page):
    summary = page.load("classes")
    assert summary["name"] == "classes.csv"
    assert summary["n_rows"] == 60
    columns = {column["name"]: column for column in summary["columns"]}
    assert columns["colour"]["kind"] == "category"
    assert columns["colour"]["n_values"] == 3
    assert columns["colour"]["n_missing"] > 0
    assert set(columns["colour"]["examples"]) == {"red", "green", "blue"}
    assert columns["size"]["kind"] == "number"
    assert columns["code"]["values"] == ["0", "1", "2", "3"]
    assert columns["day"]["examples"][0].startswith("2024-01-")
    assert any(
        "'code' has only 4 different whole numbers" in n for n in summary["notes"]
    )
    assert page.ask("state")["stage"] == "table"


def test_the_content_of_a_table_is_base64(page):
    assert (
        page.error("load", name="a.csv", content="no base64!")["parameter"] == "content"
    )
    page.error("load", name="a.csv", content=base64.b64encode(b"a,b\n").decode())


def test_parquet_and_excel_are_read_as_by_the_command_line(page, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"n": [1, 2, 3], "c": ["x", "y", "x"], "y": ["a", "b", "a"]}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    for name in ("t.parquet", "t.xlsx"):
        content = base64.b64encode((tmp_path / name).read_bytes()).decode()
        summary = page.ask("load", name=name, content=content)
        kinds = [column["kind"] for column in summary["columns"]]
        assert kinds == ["number", "category", "category"]


def test_a_table_is_read_again_with_other_options(page, tmp_path):
    pandas = pytest.importorskip("pandas")
    with pandas.ExcelWriter(tmp_path / "t.xlsx") as book:
        for sheet, column in (("first", "a"), ("second", "b")):
            frame = pandas.DataFrame({column: [1, 2], "y": ["u", "v"]})
            frame.to_excel(book, sheet_name=sheet, index=False)
    content = base64.b64encode((tmp_path / "t.xlsx").read_bytes()).decode()
    summary = page.ask("load", name="t.xlsx", content=content)
    assert summary["sheets"] == ["first", "second"]
    assert any("others are 'second'" in note for note in summary["notes"])
    summary = page.ask("reread", reading={"sheet": "second", "missing": ["v"]})
    assert [column["name"] for column in summary["columns"]] == ["b", "y"]
    assert summary["columns"][1]["n_missing"] == 1
    assert summary["reading"]["sheet"] == "second"
    assert summary["reading"]["missing"] == ["", "v"]
    page.ask("reread", reading={"missing": None})
    page.ask("start", target="y", recipe={"algorithm": "id3"})
    assert "sheet='second'" in page.ask("script")["text"]
    assert page.error("reread", reading={"separator": ";"})["parameter"] == "separator"
    assert page.ask("state")["stage"] == "session"


WRONG_READINGS = [
    {"names_file": "/etc/passwd"},
    {"query": "select 1"},
    {"separator": ["a"]},
    {"header": 1},
    {"skip": -1},
    {"skip": True},
    {"sheet": 1.5},
    {"encoding": "zlib"},
    {"date_format": {"a": 1}},
    {"date_format": "some day"},
    {"missing": "none"},
    {"missing": [1]},
    {"decimal": "x"},
]


def test_wrong_options_of_reading_are_errors(page):
    page.load("classes")
    for reading in WRONG_READINGS:
        page.error("reread", reading=reading)
    assert page.ask("state")["table"]["n_rows"] == 60


def test_errors_of_a_table_name_the_file_and_its_line(page):
    content = base64.b64encode(b"a,b,y\n1,2,no\n3,,yes\n4,5,\n").decode()
    page.ask("load", name="some.csv", content=content)
    message = page.error("start", target="y")["message"]
    assert "line 4 of some.csv" in message
    assert "first" not in page.error("start", target="z")["message"]


# -- Sessions


def test_a_session_starts_with_one_leaf(started):
    state = started.ask("state")
    assert state["stage"] == "session"
    assert state["target"] == started.target
    assert state["predicts"] == ("numbers" if started.regression else "classes")
    assert [column["name"] for column in state["columns"]] == [
        *("colour", "size", "code", "day")
    ]
    (leaf,) = state["tree"]
    assert leaf["path"] == "/"
    assert leaf["cases"] == 60
    assert leaf["origin"] == "leaf"
    if started.regression:
        assert leaf["mean"] == pytest.approx(float(leaf["prediction"]), rel=0.01)
        assert leaf["deviation"] > 0
    else:
        assert state["classes"] == ["no", "yes"]
        assert state["positive"] == "yes"
        assert sum(leaf["weights"]) == 60
        assert leaf["probability"] == max(leaf["weights"]) / 60
    assert state["algorithm"] == ("CART" if started.regression else "C4.5")


def test_an_action_answers_with_the_subtree_that_it_changed(started):
    answer = grown(started)
    assert answer["at"] == "/0"
    assert answer["nodes"][0]["path"] == "/0"
    assert all(node["path"].startswith("/0") for node in answer["nodes"])
    assert [entry["number"] for entry in answer["history"]] == [0, 1, 2]
    assert answer["undo"]
    assert not answer["redo"]
    whole = started.ask("state")["tree"]
    assert whole[0]["origin"] == "hand"
    told = {node["path"]: node for node in whole}
    assert [told[node["path"]] for node in answer["nodes"]] == answer["nodes"]
    for node in whole:
        for branch in range(node["n_children"]):
            stem = node["path"].rstrip("/")
            assert told[f"{stem}/{branch}"]["depth"] == node["depth"] + 1


def test_locks_and_notes_are_told_with_the_nodes(started):
    grown(started)
    answer = started.ask("apply", action={"do": "lock", "node": "/0"})
    assert answer["nodes"][0]["locked"]
    answer = started.ask("apply", action={"do": "note", "node": "/1", "text": "<b>?"})
    assert answer["nodes"][0]["note"] == "<b>?"
    assert (
        "locked"
        in started.error("apply", action={"do": "prune", "node": "/0"})["message"]
    )
    state = started.ask("state")
    assert state["locks"] == ["/0"]
    assert state["notes"] == {"/1": "<b>?"}


def test_undo_redo_and_goto_answer_with_the_smallest_subtree(started):
    before = started.ask("state")["tree"]
    grown(started)
    after = started.ask("state")["tree"]
    assert started.ask("undo")["at"] == "/0"
    answer = started.ask("undo")
    assert (answer["at"], answer["nodes"]) == ("/", before)
    assert started.ask("redo")["at"] == "/"
    assert started.ask("redo")["at"] == "/0"
    assert started.ask("state")["tree"] == after
    answer = started.ask("goto", number=0)
    assert (answer["at"], answer["number"]) == ("/", 0)
    assert started.error("undo")["message"].startswith("There is nothing to undo")
    assert started.error("goto", number=99)["parameter"] == "number"


def test_candidates_and_previews_are_alike(started):
    found = started.ask("candidates", node="/")
    assert {each["column"] for each in found} == {"colour", "size", "code", "day"}
    best = found[0]
    assert started.ask("preview", node="/", column=best["column"]) == best
    for child in best["children"]:
        told = child["prediction"]
        assert len(told) < 9 if started.regression else told in ("yes", "no")
    assert 50 < sum(child["cases"] for child in best["children"]) <= 60
    size = started.ask("preview", node="/", column="size", threshold=20)
    assert size["threshold"] == 20
    assert size["children"][0]["condition"] == "size <= 20"
    groups = [["red", "blue"], ["green"]]
    made = started.ask("preview", node="/", column="colour", groups=groups)
    assert [sorted(group) for group in made["groups"]] == [["blue", "red"], ["green"]]
    answer = started.ask(
        "apply",
        action={"do": "split", "node": "/", "column": "colour", "groups": groups},
    )
    assert answer["nodes"][0]["n_children"] >= 2


def test_distributions_have_the_cases_of_the_node(started):
    whole = started.ask("distribution", node="/", column="size")
    assert whole["min"] >= 1
    assert whole["max"] <= 59
    assert len(whole["edges"]) == len(whole["counts"]) + 1
    assert total(whole["counts"]) + whole["missing"] == pytest.approx(60)
    assert whole["thresholds"] == sorted(whole["thresholds"])
    colours = started.ask("distribution", node="/", column="colour")
    assert colours["values"] == ["blue", "green", "red"]
    assert total(colours["counts"]) + colours["missing"] == pytest.approx(60)
    started.ask(
        "apply", action={"do": "split", "node": "/", "column": "size", "threshold": 30}
    )
    below = started.ask("distribution", node="/0", column="size")
    assert below["max"] <= 30
    assert max(below["thresholds"]) < 30
    dates = started.ask("distribution", node="/", column="day")
    assert len(dates["shown"]) == len(dates["thresholds"])
    assert dates["shown"][0].startswith("2024-")
    # Every threshold that is offered can be split at.
    for threshold in whole["thresholds"][:: len(whole["thresholds"]) // 4]:
        assert (
            len(
                started.ask("preview", node="/", column="size", threshold=threshold)[
                    "children"
                ]
            )
            >= 2
        )


def total(counts):
    return sum(map(total, counts)) if isinstance(counts, list) else counts


def test_the_rows_of_a_node_its_path_and_its_computation(started):
    grown(started)
    answer = started.ask("node", node="/0", rows=5, worked=True)
    assert answer["columns"] == ["colour", "size", "code", "day", started.target]
    assert len(answer["rows"]) == 5
    assert len(answer["path"]) == 1
    assert "Node 1" in answer["computation"]
    assert "rows" in started.error("node", node="/0", rows=201)["message"]
    # Every row of the node goes down this branch when it is explained.
    for row in answer["rows"]:
        cells = dict(zip(answer["columns"], row, strict=True))
        assert "/0" in started.ask("explain", row=cells)["nodes"]


def test_a_row_is_explained_as_it_is_typed_in(started):
    grown(started)
    row = {"colour": "red", "size": "40", "code": "2", "day": "2024-05-01"}
    answer = started.ask("explain", row=row)
    assert answer["nodes"][0] == "/"
    assert answer["steps"]
    if started.regression:
        assert isinstance(answer["prediction"], float)
    else:
        assert answer["prediction"] in ("yes", "no")
        assert sum(share for _, share in answer["probabilities"]) == pytest.approx(1)
    assert started.error("explain", row={"size": "much"})["parameter"] == "size"
    assert "takes" in started.error("explain", row={"day": "some day"})["message"]
    assert "no such column" in started.error("explain", row={"height": 1})["message"]


def test_numbers_are_typed_in_as_the_table_has_them(page):
    table = "sum;rate;y\n1.234,56 €;4,5 %;a\n2.000,00 €;3,1 %;b\n900,00 €;2 %;a\n"
    content = base64.b64encode(table.encode()).decode()
    notes = page.ask("load", name="t.csv", content=content)["notes"]
    assert any("take those to keep as text for categories" in note for note in notes)
    page.ask("start", target="y")
    page.ask(
        "apply",
        action={"do": "split", "node": "/", "column": "sum", "threshold": 1_000},
    )
    for cell, path in (("1.234,56 €", "/1"), ("999", "/0"), (1_001, "/1")):
        assert page.ask("explain", row={"sum": cell})["nodes"] == ["/", path]


def test_exports_are_verified(started):
    grown(started)
    answer = started.ask("export", target="sql", options={"dialect": "sqlite"})
    assert answer["name"] == "tree.sql"
    assert answer["verified"] == 1_000
    assert answer["content"].startswith("--")
    assert answer["verification"].endswith("0 differences")
    message = started.error("export", target="cobol")["message"]
    assert "target must be one of" in message
    started.error("export", target="sql", options={"dialect": "latin"})


def test_a_binary_export_is_base64(started):
    pytest.importorskip("onnx")
    answer = started.ask("export", target="onnx")
    assert answer["encoding"] == "base64"
    base64.b64decode(answer["content"], validate=True)


def test_the_script_replays_to_the_same_bytes(started, tmp_path, monkeypatch):
    grown(started)
    text = started.ask("script")["text"]
    monkeypatch.chdir(tmp_path)
    name = "numbers" if started.regression else "classes"
    (tmp_path / f"{name}.csv").write_bytes(TABLES[name][0])
    known = {}
    exec(text, known)
    model = started.workspace.view.session.model
    assert known["model"].to_bytes() == model.to_bytes()


def test_a_session_is_saved_and_opened(started):
    grown(started)
    tree = started.ask("state")["tree"]
    saved = started.ask("save")
    assert saved["name"].endswith(".actions.json")
    started.ask("start", target=started.target)
    state = started.ask("open", content=saved["content"])
    assert state["tree"] == tree
    assert state["misfits"] == []
    assert state["kinds"] == KINDS
    header = json.loads(saved["content"].splitlines()[0])
    assert header["target"] == started.target


def test_a_session_of_another_table_says_what_does_not_fit(page):
    page.load("classes")
    page.ask("start", target="bought")
    grown(page)
    content = (
        page.ask("save")["content"]
        .replace('"colour"', '"hue"')
        .replace('"size"', '"girth"')
    )
    state = page.ask("open", content=content)
    assert state["misfits"]


def test_two_sessions_are_compared(started):
    first = started.ask("save")["content"]
    grown(started)
    answer = started.ask("diff", other=first)
    assert "1 leaf" in answer["words"]
    assert started.ask("state")["number"] == 2
    started.error("diff", other="no session")


def test_a_session_reads_no_file_that_it_names(page, tmp_path):
    """Labels may be a path in Python; one that a page sends is not opened."""
    page.load("classes")
    page.ask("start", target="bought")
    secret = tmp_path / "labels.json"
    secret.write_text('{"colour": "secret"}', encoding="utf-8")
    header, _, rest = page.ask("save")["content"].partition("\n")
    content = json.dumps({**json.loads(header), "labels": str(secret)}) + "\n" + rest
    for method, name in (("open", "content"), ("diff", "other")):
        answer = page.error(method, **{name: content})
        assert "labels in a file" in answer["message"]
        assert "secret" not in answer["message"].replace(str(secret), "")


@pytest.mark.parametrize("method", ["hold-out", "cross-validation"])
def test_scores_tell_which_state_they_are_of(started, method):
    started.ask("start", target=started.target, kinds=KINDS, validation_fraction=0.3)
    grown(started)
    answer = started.ask("score", method=method, folds=3, repeats=1)
    assert answer["number"] == 2
    for name in ("edited", "automatic"):
        assert {"value", "low", "high"} <= set(answer[name])
    assert {"value", "low", "high"} <= set(answer["difference"])
    assert "method" in started.error("score", method="dice")["message"]


def test_a_file_that_cannot_be_read_may_be_with_other_options(page):
    page.load("classes")
    content = base64.b64encode("größe,y\n1,ä\n2,b\n".encode("cp1252")).decode()
    message = page.error("load", name="alt.csv", content=content)["message"]
    assert "alt.csv" in message
    state = page.ask("state")
    assert state["table"]["name"] == "classes.csv"
    assert state["unread"]["name"] == "alt.csv"
    assert state["unread"]["format"] == "csv"
    page.error("reread", reading={"encoding": "ascii"})
    summary = page.ask("reread", reading={"encoding": "cp1252"})
    assert [column["name"] for column in summary["columns"]] == ["größe", "y"]
    assert page.ask("state")["unread"] is None
    page.error("load", name="alt.csv", content=content)
    page.load("classes")
    assert page.ask("state")["unread"] is None


def test_the_session_is_edited_while_it_is_exported(page, monkeypatch):
    page.load("classes")
    page.ask("start", target="bought", validation_fraction=0.3)
    begun, go_on = threading.Event(), threading.Event()

    def wait(*_, **__):
        begun.set()
        assert go_on.wait(20)
        return {}

    monkeypatch.setattr("branchwise.studio.workspace.exported", wait)
    message = {"method": "export", "args": {"target": "sql"}}
    found = {}
    asking = threading.Thread(
        target=lambda: found.update(protocol.respond(page.workspace, message))
    )
    asking.start()
    assert begun.wait(20)
    grown(page)
    go_on.set()
    asking.join(20)
    assert found["result"] == {}


def test_a_score_waits_for_other_calls_and_ends_where_these_change_the_tree(started):
    workspace = started.workspace
    session = workspace.view.session
    scoring, begun, done = session.scoring, threading.Event(), threading.Event()
    pauses = []

    def watched(pause, **how):
        def step():
            begun.set()
            assert done.wait(20)
            pauses.append(workspace.calls)
            pause()

        return scoring(**how, pause=step)

    session.scoring = watched
    message = {"method": "score", "args": {"method": "cross-validation"}}
    found = {}
    asking = threading.Thread(
        target=lambda: found.update(protocol.respond(workspace, message))
    )
    asking.start()
    assert begun.wait(20)
    with workspace.calls:
        done.set()
        started.ask("candidates", node="/")
        asking.join(0.2)
        assert asking.is_alive()
    grown(started)
    asking.join(20)
    told = found["error"]["message"]
    assert told == "The tree was changed while it was scored. Score it again."
    assert len(pauses) < 40
    session.scoring = scoring
    assert "number" in started.ask("score", method="cross-validation", folds=2)


# -- Teaching


def test_teaching_hides_figures_until_they_are_revealed(started):
    shown = started.ask("candidates", node="/")
    started.ask("teaching", on=True)
    hidden = started.ask("candidates", node="/")
    assert [each["column"] for each in hidden] == ["colour", "size", "code", "day"]
    figures = ("score", "gain", "gain_ratio", "p_value")
    assert all(each[name] is None for each in hidden for name in figures)
    assert started.ask("preview", node="/", column="size", threshold=9)["gain"] is None
    assert "revealed" in started.error("node", node="/", worked=True)["message"]
    assert "no guess" in started.error("reveal", node="/")["message"]
    assert started.error("guess", node="/", column="none")["parameter"] == "column"
    best = shown[0]["column"]
    assert started.ask("guess", node="/", column=best)["guesses"] == {"/": best}
    answer = started.ask("reveal", node="/")
    assert answer["best"] == answer["guess"] == best
    assert answer["points"] == {"class": 100, "machine": 100}
    assert started.ask("candidates", node="/") == shown
    assert "revealed" in started.error("guess", node="/", column="size")["message"]


def test_a_poorer_guess_has_fewer_points(started):
    worst = [c for c in started.ask("candidates", node="/") if c["score"] is not None][
        -1
    ]
    started.ask("teaching", on=True)
    started.ask("guess", node="/", column=worst["column"])
    points = started.ask("reveal", node="/")["points"]
    assert points["class"] < points["machine"] == 100
    assert not started.ask("teaching", on=False)["on"]
    assert started.error("guess", node="/", column="size")


# -- Starting


WRONG_STARTS = [
    ({"target": "none"}, None),
    ({"target": "bought", "kinds": {"none": "number"}}, None),
    ({"target": "bought", "kinds": {"size": "colourful"}}, "kinds"),
    ({"target": "bought", "kinds": {"bought": "ignore"}}, None),
    ({"target": "bought", "positive": "perhaps"}, "positive"),
    ({"target": "bought", "recipe": {"algorithm": "c5.0"}}, "algorithm"),
    ({"target": "bought", "recipe": {"max_depth": -1}}, "max_depth"),
    ({"target": "bought", "recipe": {"depth": 1}}, "recipe"),
    ({"target": "bought", "recipe": {"regression": "yes"}}, "regression"),
    ({"target": "bought", "recipe": {"regression": True}}, None),
    ({"target": "bought", "validation_fraction": 1.5}, "validation_fraction"),
    ({"target": "bought", "kinds": {"colour": "number"}}, None),
    ({}, "target"),
    ({"target": 3}, "target"),
]


def test_a_wrong_start_leaves_the_session_as_it_is(page):
    page.load("classes")
    page.ask("start", target="bought")
    grown(page)
    before = page.ask("state")
    for args, parameter in WRONG_STARTS:
        found = page.error("start", **args)["parameter"]
        assert found == parameter or parameter is None, args
    assert page.ask("state") == before


def test_numbers_may_be_classes(page):
    page.load("classes")
    state = page.ask("start", target="code", positive="2")
    assert state["classes"] == ["0", "1", "2", "3"]
    assert state["positive"] == 2
    answer = page.ask("apply", action={"do": "relabel", "node": "/", "prediction": "3"})
    assert answer["nodes"][0]["prediction"] == "3"
    state = page.ask("start", target="code", kinds={"code": "number"})
    assert state["predicts"] == "numbers"


def test_recipes_have_the_parameters_that_the_page_offers(page):
    page.load("classes")
    parameters = page.ask("state")["parameters"]
    assert {one["name"] for one in parameters["c4.5"]} > {"max_depth", "confidence"}
    recipe = {"algorithm": "c4.5", "group_values": True, "max_depth": 3, "prune": False}
    state = page.ask("start", target="bought", recipe=recipe)
    assert state["recipe"]["branching"] == "groups"
    answer = page.ask(
        "apply", action={"do": "grow", "node": "/", "recipe": {"algorithm": "id3"}}
    )
    assert len(answer["nodes"]) > 3


# -- Messages that are none


@pytest.mark.parametrize(
    ("message", "parameter"),
    [
        (None, None),
        ([], None),
        ("state", None),
        ({}, "method"),
        ({"method": None}, "method"),
        ({"method": ["state"]}, "method"),
        ({"method": "__init__"}, "method"),
        ({"method": "close"}, "method"),
        ({"method": "open_file", "args": {"path": "/etc/passwd"}}, "method"),
        ({"method": "reopen", "args": {"path": "/etc/passwd", "kinds": {}}}, "method"),
        ({"method": "state", "args": []}, "args"),
        ({"method": "state", "args": {"x": 1}}, None),
        ({"method": "candidates"}, "node"),
        ({"method": "candidates", "args": {"node": 0}}, "node"),
        ({"method": "goto", "args": {"number": -1}}, "number"),
        ({"method": "goto", "args": {"number": True}}, "number"),
        ({"method": "goto", "args": {"number": 10**30}}, "number"),
        ({"method": "teaching", "args": {"on": 1}}, "on"),
        ({"method": "score", "args": {"repeats": 101}}, "repeats"),
        ({"method": "score", "args": {"folds": 0}}, "folds"),
        ({"method": "explain", "args": {"row": {"a": []}}}, "row"),
        ({"method": "explain", "args": {"row": {"a": float("nan")}}}, "row"),
        (
            {"method": "preview", "args": {"node": "/", "column": "a", "groups": [1]}},
            "groups",
        ),
    ],
)
def test_messages_that_are_none_are_errors(page, message, parameter):
    answer = protocol.respond(page.workspace, message)
    assert set(answer) == {"error"}
    assert answer["error"]["parameter"] == parameter
    assert page.workspace.last_failure is None


def test_the_public_names_are_the_same_session(page):
    page.load("classes")
    page.ask("start", target="bought")
    assert isinstance(page.workspace.view.session.model, branchwise.Model)
