"""The report: findings that others find, too, and a page that shows them safely."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    RepeatedKFold,
    RepeatedStratifiedKFold,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    train_test_split,
)

from branchwise import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    DataError,
    ID3Classifier,
    ParameterError,
    datasets,
)
from branchwise import report as making
from branchwise.render.picture import CLASS_COLOURS
from branchwise.report import inputs, make_report
from branchwise.report import testing as curves
from branchwise.text.conditions import phrase

IRIS = datasets.load("iris")
FRAME = pd.DataFrame(dict(IRIS.X))
LABELS = pd.Series(IRIS.y, name="species")
HOSTILE = {
    "</script><script>alert(1)</script>": [
        "<img src=x onerror=alert(1)>",
        "--></style>",
    ],
    "{summary}\0\n'\"": ["a", "b"],
    "\u202ertl": [1, 2],
}


@pytest.fixture(scope="module")
def iris():
    return make_report(FRAME, LABELS, C45Classifier(), cv=5)


@pytest.fixture(scope="module")
def numbers():
    X = {name: IRIS.X[name] for name in ("sepallength", "sepalwidth", "petallength")}
    tree = CARTRegressor(max_depth=3)
    return make_report(X, IRIS.X["petalwidth"], tree, cv=3, target_name="petalwidth")


class Elements(HTMLParser):
    """All start tags of a page with their attributes."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def folds(n=5):
    return RepeatedStratifiedKFold(n_splits=n, n_repeats=1, random_state=0)


def test_findings_are_plain_values(iris, numbers):
    for report in (iris, numbers):
        assert json.loads(report.to_json()) == json.loads(
            json.dumps(report.to_dict(), allow_nan=False)
        )
        assert list(report.sections)[:3] == ["title", "data", "warnings"]


def test_data(iris):
    data = iris.sections["data"]
    assert (data["rows"], data["missing"], data["weighted"]) == (150, 0, False)
    assert data["target"]["name"] == "species"
    assert [one["rows"] for one in data["target"]["classes"]] == [50, 50, 50]
    petal = data["columns"][2]
    assert petal["name"] == "petallength"
    assert (petal["minimum"], petal["maximum"]) == (1.0, 6.9)
    assert petal["distinct"] == len(set(IRIS.X["petallength"]))


def test_missing_cells_and_values_are_counted():
    labor = datasets.load("labor")
    report = make_report(labor.X, labor.y, cv=2)
    frame = pd.DataFrame(dict(labor.X))
    found = {c["name"]: c for c in report.sections["data"]["columns"]}
    for name in frame:
        assert found[name]["missing"] == frame[name].isna().sum()
        assert found[name]["distinct"] == frame[name].nunique()
    pension = frame["pension"].value_counts()
    assert found["pension"]["most"][0] == {
        "value": pension.index[0],
        "rows": pension.iloc[0],
    }
    assert report.sections["data"]["missing"] == frame.isna().sum().sum()


def test_scores_are_those_of_scikit_learn(iris):
    found = iris.sections["evaluation"]
    scores = cross_val_score(C45Classifier(), FRAME, LABELS, cv=folds())
    assert found["scores"]["accuracy"]["mean"] == pytest.approx(scores.mean())
    assert found["scores"]["accuracy"]["folds"] == pytest.approx(scores)
    answers = cross_val_predict(
        C45Classifier(), FRAME, LABELS, cv=list(folds().split(FRAME, LABELS))
    )
    expected = pd.crosstab(LABELS, answers).to_numpy()
    assert np.array_equal(found["confusion_matrix"], expected)
    assert found["baseline"]["accuracy"]["mean"] == pytest.approx(1 / 3)
    own = C45Classifier().fit(FRAME, LABELS).score(FRAME, LABELS)
    assert found["on_training_rows"]["accuracy"] == own
    rows = sum(row["rows"] for row in found["calibration"])
    assert rows == 150


def test_importances_are_those_of_scikit_learn():
    tree = CARTClassifier(max_depth=3)
    report = make_report(FRAME, LABELS, tree, hold_out=0.4)
    training, testing_ = train_test_split(
        np.arange(150), test_size=0.4, random_state=0, stratify=LABELS
    )
    training, testing_ = np.sort(training), np.sort(testing_)
    fitted = CARTClassifier(max_depth=3).fit(FRAME.iloc[training], LABELS[training])
    used = [FRAME.columns[at] for at in fitted.tree_.used_columns]
    # Columns that are not asked lose nothing; of the others every shuffle is the same.
    expected = permutation_importance(
        fitted, FRAME.iloc[testing_], LABELS[testing_], n_repeats=10, random_state=0
    )
    by_name = dict(zip(FRAME.columns, expected.importances_mean, strict=True))
    found = report.sections["importances"]
    assert found["shuffles"] == 10
    for one in found["columns"]:
        assert one["permutation"] == pytest.approx(by_name[one["column"]])
        assert (one["permutation"] == 0) or one["column"] in used
    whole = CARTClassifier(max_depth=3).fit(FRAME, LABELS)
    shares = [one["impurity"] for one in found["columns"]]
    assert shares == pytest.approx(whole.feature_importances_)


def test_the_learning_curve_is_that_of_scikit_learn(iris):
    found = iris.sections["learning"]
    sizes = [size["rows"] for size in found["sizes"]]
    assert sizes == [12, 24, 48, 72, 96, 120]
    expected = learning_curve(
        C45Classifier(),
        FRAME,
        LABELS,
        train_sizes=sizes,
        cv=list(folds().split(FRAME, LABELS)),
        shuffle=True,
        random_state=0,
    )
    for size, training, tested in zip(found["sizes"], *expected[1:3], strict=True):
        assert size["training"] == pytest.approx(training.mean())
        assert size["testing"]["mean"] == pytest.approx(tested.mean())


def test_the_pruning_curve_goes_from_the_tree_to_its_root(iris):
    found = iris.sections["pruning"]
    trees = found["trees"]
    assert trees[0]["leaves"] == iris.model.tree.n_leaves
    assert trees[-1]["leaves"] == 1
    own = iris.sections["evaluation"]["on_training_rows"]["accuracy"]
    assert trees[0]["training"] == pytest.approx(1 - own)
    assert trees[-1]["testing"]["mean"] == pytest.approx(2 / 3)
    means = [tree["testing"]["mean"] for tree in trees]
    best = [t["leaves"] for t in trees if t["testing"]["mean"] == min(means)]
    assert found["best"]["leaves"] == min(best)


def test_test_rows_are_scored_by_the_tree_itself():
    training, other = train_test_split(np.arange(150), test_size=50, random_state=1)
    report = make_report(
        FRAME.iloc[training],
        LABELS[training],
        test=(FRAME.iloc[other], LABELS[other]),
        test_name="later.csv",
    )
    fitted = C45Classifier().fit(FRAME.iloc[training], LABELS[training])
    found = report.sections["evaluation"]
    accuracy = fitted.score(FRAME.iloc[other], LABELS[other])
    assert found["scores"]["accuracy"]["mean"] == accuracy
    assert found["rows"] == 50
    assert "50 rows of later.csv" in report.to_html()
    last = other[LABELS[other] == "Iris-virginica"]
    few = make_report(
        FRAME.iloc[training], LABELS[training], test=(FRAME.iloc[last], LABELS[last])
    )
    found = few.sections["evaluation"]
    accuracy = fitted.score(FRAME.iloc[last], LABELS[last])
    assert found["scores"]["accuracy"]["mean"] == pytest.approx(accuracy)
    path = fitted.model_.pruning_path(FRAME.iloc[other], LABELS[other])
    assert report.sections["pruning"]["trees"][0]["testing"]["mean"] == pytest.approx(
        path.validation_error[0]
    )


def test_numbers_have_residuals_in_place_of_classes(numbers):
    found = numbers.sections["evaluation"]
    assert "confusion_matrix" not in found
    assert found["scores"]["r2"]["mean"] > 0.8
    assert found["baseline"]["r2"]["mean"] <= 0
    assert len(found["residuals"]["predicted"]) == 150
    residual = np.array(found["residuals"]["residual"])
    assert found["error_quantiles"][2]["error"] == pytest.approx(np.median(residual))
    groups = found["errors_by_range"]
    assert sum(group["rows"] for group in groups) == 150
    total = sum(group["rows"] * group["mean_error"] for group in groups)
    assert total == pytest.approx(residual.sum(), abs=1e-9)
    X = pd.DataFrame({name: IRIS.X[name] for name in list(IRIS.X)[:3]})
    y = np.array(IRIS.X["petalwidth"])
    deal = list(RepeatedKFold(n_splits=3, n_repeats=1, random_state=0).split(X))
    answers = cross_val_predict(CARTRegressor(max_depth=3), X, y, cv=deal)
    order = np.concatenate([rows for _, rows in deal])
    assert residual == pytest.approx((y - answers)[order])
    score = "neg_root_mean_squared_error"
    usual = cross_val_score(DummyRegressor(), X, y, cv=deal, scoring=score)
    assert found["baseline"]["rmse"]["mean"] == pytest.approx(-usual.mean())
    page = numbers.to_html()
    assert "Residuals" in page
    assert "Confusion" not in page


def test_the_same_rows_give_the_same_page(iris):
    again = make_report(FRAME, LABELS, C45Classifier(), cv=5)
    assert again.to_html() == iris.to_html()
    other = make_report(FRAME, LABELS, C45Classifier(), cv=5, seed=1)
    assert other.sections["evaluation"] != iris.sections["evaluation"]
    assert other.model == iris.model


def test_the_model_is_that_of_the_estimator(iris):
    expected = C45Classifier().fit(FRAME, LABELS).model_
    assert iris.model == expected
    mark = iris.sections["reproduce"]["model_file"]
    content = expected.to_bytes()
    assert mark["sha256"] == hashlib.sha256(content).hexdigest()
    assert mark["bytes"] == len(content)
    python = iris.sections["reproduce"]["python"]
    names = {"X": FRAME, "y": LABELS}
    exec("\n".join(python), names)
    assert names["tree"].model_ == expected


def test_warnings_are_told():
    X = dict(IRIS.X) | {"id": [f"r{n}" for n in range(150)], "one": ["x"] * 150}
    report = make_report(X, IRIS.y, ID3Classifier(), hold_out=0.3)
    kinds = {one["kind"]: one["columns"] for one in report.sections["warnings"]}
    assert kinds["identifier"] == ["id"]
    assert kinds["constant"] == ["one"]
    assert "Names rows." in report.to_html()


def test_rules_are_those_that_cover_most(iris):
    found = iris.sections["rules"]
    rules = iris.model.rules(simplify=True).sort_by("coverage")
    assert [one["sentence"] for one in found["rules"]] == [r.sentence() for r in rules]
    assert found["covered"] == pytest.approx(1.0)
    first = found["rules"][0]
    assert first["conditions"] == [phrase(c, typeset=True) for c in rules[0].conditions]
    assert (first["low"], first["high"]) == rules[0].interval
    # A table of leaves, whose bars have the colours of the classes in the tree.
    page = iris.to_html()
    table = page[page.index('<table class="leaves">') :].partition("</table>")[0]
    assert table.count("<tr>") == len(rules) + 1
    assert "≤" in first["conditions"][0]
    assert f'<span class="condition">{first["conditions"][0]}</span>' in table
    assert {"k0", "k1", "k2"} == set(re.findall('<g class="(k[0-9])">', table))
    assert f".k0{{--own:{CLASS_COLOURS[0]}}}" in page
    balance = page[page.index("Class balance") :].partition("</svg>")[0]
    assert set(re.findall('<g class="(k[0-9])">', balance)) == {"k0", "k1", "k2"}
    assert "Distribution of species." in page


def test_rules_of_numbers_and_of_weighted_rows(numbers):
    table = numbers.to_html().partition('<table class="leaves">')[2]
    table = table.partition("</table>")[0]
    assert "deviation" in table
    assert "95 % interval" not in table
    X = {"x": IRIS.X["petallength"]}
    tree = C45Classifier(class_weight={IRIS.y[0]: 3}, max_depth=1)
    weighted = make_report(X, IRIS.y, tree, hold_out=0.3).to_html()
    assert '<ol class="rules" start="1">' in weighted
    assert '<table class="leaves">' not in weighted


def test_the_first_split_is_worked_out(iris):
    root = iris.sections["root_split"]
    assert root["column"] == root["candidates"][0]["column"]
    names = [iris.model.schema.names[at] for at in (iris.model.tree.column[0],)]
    assert [root["column"]] == names
    assert "branchwise-steps" in iris.to_html()


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (C45Classifier(), "The tree is a single leaf"),
        (
            ID3Classifier(pruning="reduced-error", validation_fraction=0.3),
            "held out for pruning",
        ),
    ],
)
def test_why_the_first_split_is_left_out(tree, said):
    X = {"a": list("xy") * 20} if isinstance(tree, C45Classifier) else IRIS.X
    y = ["p", "p", "q", "q"] * 10 if isinstance(tree, C45Classifier) else IRIS.y
    report = make_report(X, y, tree, cv=2)
    assert report.steps is None
    assert said in report.sections["root_split"]["left_out"]
    assert said in report.to_html()


def test_a_tree_that_is_no_better_than_chance_is_called_so():
    rng = np.random.default_rng(0)
    X = {"a": rng.normal(size=200), "b": rng.integers(0, 3, 200)}
    y = np.where(rng.random(200) < 0.5, "up", "down")
    page = make_report(X, y, CARTClassifier(max_depth=3), cv=5).to_html()
    assert "not shown to do any better" in page or "does worse than that" in page


def test_large_tables_are_sampled_and_it_is_said(monkeypatch):
    monkeypatch.setattr(curves, "MOST_LEARNT_ROWS", 100)
    monkeypatch.setattr(curves, "_MOST_SHUFFLED_ROWS", 20)
    monkeypatch.setattr(inputs, "MOST_ROWS_IN_FOLDS", 100)
    monkeypatch.setattr(making, "_WORKED_ROWS", 100)
    report = make_report(FRAME, LABELS)
    sections = report.sections
    assert "a hold-out replaces" in sections["evaluation"]["note"]
    assert sections["evaluation"]["rows"] == 45
    assert sections["learning"]["note"] == "Drawn from 100 of the 150 rows."
    assert sections["importances"]["note"] == (
        "Columns were shuffled in 20 rows of each test set."
    )
    assert "branchwise steps" in sections["root_split"]["left_out"]
    page = report.to_html()
    for note in ("Drawn from 100", "in 20 rows", "a hold-out replaces"):
        assert note in page


def test_progress_is_told():
    said = []
    make_report(FRAME, LABELS, cv=2, progress=said.append)
    assert said[0] == "Growing the tree"
    assert "Testing: tree 2 of 2" in said
    assert any(text.startswith("Learning curve") for text in said)


LABOR = datasets.load("labor")


@pytest.mark.parametrize(
    "tree",
    [
        CARTClassifier(missing="learned"),
        C45Classifier(costs=[[0, 5], [1, 0]], group_values=True),
        ID3Classifier(class_weight="balanced", max_depth=0),
    ],
    ids=str,
)
def test_every_kind_of_tree(tree):
    X = {name: LABOR.X[name][:40] for name in list(LABOR.X)[:8]}
    report = make_report(X, LABOR.y[:40], tree, hold_out=0.3)
    if tree.class_weight is not None:
        assert report.model.tree.weights[0] == pytest.approx([20, 20])
    shown = report.to_html()
    assert ("Cost of each predicted class" in shown) == (tree.costs is not None)
    assert shown.endswith("</html>\n")


def test_few_rows_and_a_class_with_one():
    X = {"a": list("abab") * 3, "b": list(range(12))}
    report = make_report(X, ["x"] * 7 + ["y"] * 4 + ["rare"])
    assert report.sections["evaluation"]["parts"] == 7
    assert "too few rows for 10 folds" in report.sections["evaluation"]["note"]
    assert "rare_class" in [one["kind"] for one in report.sections["warnings"]]
    report.to_html()


def test_the_page_needs_nothing_else(iris):
    page = iris.to_html()
    for tag, attributes in Elements(page).found:
        assert tag not in ("link", "object", "embed", "base", "form")
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name != "style"
            if name in ("src", "href"):
                assert value.startswith(("data:image/svg+xml;base64,", "#"))
    (policy,) = [
        a["content"]
        for t, a in Elements(page).found
        if t == "meta" and a.get("http-equiv")
    ]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        (content,) = re.findall(f"<{kind}>(.*?)</{kind}>", page, re.S)
        digest = hashlib.sha256(content.encode("utf-8")).digest()
        assert base64.b64encode(digest).decode("ascii") in policy
    (frame,) = [a for t, a in Elements(page).found if t == "iframe"]
    assert frame["sandbox"] == "allow-scripts"


def test_hostile_names_stay_names():
    X = {name: values * 20 for name, values in HOSTILE.items()}
    report = make_report(
        X,
        ["<i>no</i>", "<b>yes</b>"] * 20,
        title="</title><script>alert(1)</script>",
        target_name="</h1><script>alert(2)</script>",
        commands=["</code><script>alert(3)</script>\u202e"],
        cv=2,
    )
    page = report.to_html()
    assert "alert(1)</script>" not in page
    assert "\0" not in page
    assert "\u202e" not in page
    tags = Elements(page).found
    assert len([t for t, _ in tags if t == "script"]) == 1
    assert not [t for t, _ in tags if t == "i"]
    assert len([a for t, a in tags if t == "img"]) == 1


def test_saved_whole(iris, tmp_path):
    iris.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8") == iris.to_html()
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]
    assert repr(iris).startswith("<branchwise report on 150 rows: <branchwise C4.5")


def test_a_page_that_cannot_be_written_is_named(iris, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        iris.save(tmp_path / "none" / "x.html")
    assert str(caught.value) == (
        f"There is no directory {str(tmp_path / 'none')!r} to write 'x.html' to. Make "
        "it first, or choose another path."
    )


def test_one_is_singular():
    page = make_report({"a": [1.0] * 9}, [0, 1, 0] * 3, C45Classifier(), cv=3).to_html()
    assert "leaf, depth 0" in page
    assert "rows, 1 column<" in page


def test_a_criterion_of_ones_own():
    report = make_report(IRIS.X, IRIS.y, ID3Classifier(criterion=purity), cv=2)
    found = report.sections
    assert found["model"]["parameters"]["criterion"] == "purity"
    assert found["model"]["chosen"] == {"criterion": "purity"}
    assert found["reproduce"]["python"][1] == "tree = ID3Classifier(criterion=purity)"
    assert found["reproduce"]["model_file"] is None
    assert " at 0x" not in report.to_html()


def purity(_, branches):
    return (branches.max(axis=2).sum(axis=1) / branches.sum(axis=(1, 2))).astype(float)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (
            {"estimator": "c4.5"},
            ParameterError,
            "estimator must be one of branchwise's",
        ),
        ({"test": IRIS.X}, ParameterError, "test must be a pair of a table"),
        ({"seed": -1}, ParameterError, "seed must be a whole number from 0"),
        ({"seed": True}, ParameterError, "seed must be a whole number from 0"),
        ({"cv": 1}, ParameterError, "cv must be a whole number of at least 2"),
        ({"cv": 3, "hold_out": 0.3}, ParameterError, "Give one of them"),
        ({"hold_out": 1.5}, ParameterError, "hold_out must be None or a share"),
        ({"test": (IRIS.X, ["new"] * 150)}, DataError, "do not have: 'new'"),
        ({"y": ["same"] * 150}, DataError, "All rows have the same target value"),
        ({"y": None}, DataError, "y must have a class"),
        ({"X": {"a": [1]}, "y": ["a"]}, DataError, "at least two rows"),
        ({"cv": 100}, DataError, "Choose fewer folds"),
        (
            {"X": {"a": list("abcdefgh")}, "y": list("xy") * 4, "cv": 4}
            | {"estimator": ID3Classifier(unseen="error")},
            DataError,
            "unseen='error' allows none",
        ),
    ],
)
def test_errors_tell_what_to_do(given, error, said):
    with pytest.raises(error, match=re.escape(said)):
        make_report(**{"X": IRIS.X, "y": IRIS.y} | given)


def test_class_weights_are_told():
    table = datasets.load("labor")
    said = "Rows have weights, used in growing"
    page = make_report(table.X, table.y, C45Classifier(class_weight={"bad": 3}), cv=2)
    assert said in page.to_html()
    assert said not in make_report(table.X, table.y, cv=2).to_html()
