"""Titles, units and words for values in every view, and labels that cannot be."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from branchwise import (
    BranchwiseError,
    DataError,
    Model,
    ModelFileError,
    ParameterError,
    RandomForestClassifier,
    fit_tree,
)
from branchwise.recipe import C45, CART
from branchwise.text.labels import read_labels

LABELS = {
    "inc": {"title": "Net <income>", "unit": "k€"},
    "own": {"title": "Housing", "words": {"r": "rents", "o": "owns", "x": "unused"}},
    "n": {"words": {"1": "once", "2": "twice"}},
    "risk": {"title": "Default", "words": {"g": "no default", "b": "default & loss"}},
}


def rows(n=60):
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "inc": rng.integers(1, 90, n) + 0.5,
            "own": rng.choice(["r", "o"], n),
            "n": rng.integers(1, 4, n),
        }
    )
    bad = (table["inc"] < 30) & (table["own"] == "r") | (table["n"] == 3)
    return table, pd.Series(np.where(bad, "b", "g"), name="risk")


@pytest.fixture(scope="module", name="plain")
def fitted():
    return fit_tree(*rows(), CART, categorical_features=["n"])


@pytest.fixture(scope="module", name="model")
def labelled(plain):
    return plain.with_labels(LABELS)


def test_the_tree_as_text(model, plain):
    text = model.to_text()
    for expected in (
        "n in {once, twice}:",
        "Housing = owns: no default",
        "Net <income> <= 30 k€:",
        "n = 3: default & loss",
    ):
        assert expected in text
    assert "own = o" in plain.to_text()  # it has not changed
    assert str(model).startswith(text.splitlines()[0])
    assert "Housing = owns" in model.to_text(style="markdown")


def test_labels_are_given_while_fitting(model, tmp_path):
    options = {"categorical_features": ["n"]}
    assert fit_tree(*rows(), CART, labels=LABELS, **options).schema == model.schema
    path = tmp_path / "labels.json"
    ordered = {"own": {"title": "Housing", "order": ["r", "o"]}}
    path.write_text(json.dumps(ordered))
    own = fit_tree(*rows(), CART, labels=path).schema.columns[1]
    assert (own.kind, own.categories, own.label.title) == (
        "ordinal",
        ("r", "o"),
        "Housing",
    )
    given = fit_tree(*rows(), CART, labels=path, order={"own": ["o", "r"]})
    assert given.schema.columns[1].categories == ("o", "r")
    with pytest.raises(ParameterError, match=r"labels must be a dictionary"):
        fit_tree(*rows(), CART, labels=["inc"])


def test_pictures_and_pages_are_escaped(model):
    page, picture = model.to_html(), model.to_svg()
    for view in (page, picture):
        assert "Net <income>" not in view
    assert "Net &lt;income&gt;" in picture
    assert "k€" in picture
    assert "default &amp; loss" in picture
    view = model.view()
    assert [column["name"] for column in view["columns"]] == [
        *("Net <income>", "Housing", "n"),
    ]
    assert view["columns"][0]["unit"] == "k€"
    assert view["columns"][2]["values"] == ["once", "twice", "3"]
    assert (view["target"], view["classes"]) == (
        "Default",
        ["default & loss", "no default"],
    )
    assert "Net <income>" in model.to_dot().replace("\\", "")
    assert "Housing" in model.to_mermaid()


def test_rules_and_explanations(model):
    rules = "\n".join(rule.sentence() for rule in model.rules())
    assert "Default is no default" in rules
    assert "Housing is rents" in rules
    assert "Net <income> is above 30 k€" in rules
    assert {rule.label for rule in model.rules()} == {"g", "b"}  # as it is
    row = {"inc": 10.5, "own": "r", "n": 1}
    explanation = model.explain(row)
    assert explanation.prediction == "b"
    text = str(explanation)
    assert text.startswith("Default: default & loss (")
    assert "Net <income> <= 30 k€ (it is 10.5 k€)" in text
    assert "Housing = rents" in text
    changes = str(model.what_if(row, "g", immutable=["own", "n"]))
    assert changes.startswith("Now: default & loss (default & loss 100 %)")
    assert "no default (no default 100 %) if this changes:" in changes
    assert "Net <income> from 10.5 k€ to more than 30 k€" in changes
    changes = str(model.what_if(row, "g", immutable=["inc", "n"]))
    assert "Housing from rents to owns" in changes


def test_worked_solutions_and_generalised_rules(model):
    table, labels = rows()
    steps = model.steps(table, labels).to_text()
    for expected in ("Column Housing", "Net <income>", "once", "no default", "Default"):
        assert expected in steps
    c45 = fit_tree(*rows(), C45, categorical_features=["n"]).with_labels(LABELS)
    found = c45.generalised_rules(table, labels)
    assert "if n = 3 then default & loss" in str(found)
    assert "Otherwise, Default is default" in found.to_markdown()
    assert "candidates" in model.to_html(X=table, y=labels)


def test_programs_compare_values_and_say_the_words(model):
    for target, options in (("python", {}), ("sql", {"dialect": "sqlite"}), ("c", {})):
        program = str(model.export(target, **options))
        assert "Housing (" in program
        assert "rents" in program
    assert "'r'" in model.export("python")
    assert json.loads(model.export("json"))["about"].startswith("CART decision tree")


def test_excel_has_the_words_in_rules_and_headings(model, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    model.export("excel", tmp_path / "tree.xlsx", verify=False)
    book = openpyxl.load_workbook(tmp_path / "tree.xlsx")
    cells = " ".join(str(c.value) for c in book["Rules"]["A"])
    assert "Housing = " in cells
    assert "k€" in cells
    assert {c.value for c in book["Rules"]["B"][1:]} == {
        "no default (g)",
        "default & loss (b)",
    }
    headings = [cell.value for cell in book["Rows"][1]]
    for expected in (
        "Net <income>, k€ (inc)",
        "Housing (own)",
        "n",
        "probability of default & loss (b)",
    ):
        assert expected in headings
    # What formulas look up is as it was.
    assert [cell.value for cell in book["Values"]["A"]][:3] == ["classes", "b", "g"]
    formula = model.with_labels({"own": "=1+1"})
    formula.export("excel", tmp_path / "tree.xlsx", verify=False)
    first = openpyxl.load_workbook(tmp_path / "tree.xlsx")["Rows"][1]
    assert ("=1+1 (own)", "s") in [(cell.value, cell.data_type) for cell in first]


def test_labels_change_no_prediction_and_are_kept(model, plain, tmp_path):
    table, _ = rows()
    assert np.array_equal(model.predict(table), plain.predict(table))
    model.save(tmp_path / "model.json")
    loaded = Model.from_bytes((tmp_path / "model.json").read_bytes())
    assert loaded == model
    assert loaded.to_text() == model.to_text()
    for other in (model.drop_unused(), model.prune("cost-complexity", ccp_alpha=0.0)):
        assert "Housing = " in other.to_text()
    # Further labels are added, and take the place of earlier ones.
    again = model.with_labels({"own": "Home", "n": {}})
    assert again.schema.columns[1].label.words == ()
    assert again.schema.columns[2].label is None
    assert again.schema.columns[0].label.unit == "k€"
    assert again.check_table(table).n_rows == len(table)


def test_trees_of_an_ensemble_have_the_labels():
    table, labels = rows()
    forest = RandomForestClassifier(n_estimators=2, categorical_features=["n"])
    ensemble = forest.fit(table, labels).model_.with_labels(LABELS)
    assert "Housing" in ensemble[0].to_text() or "Net <income>" in ensemble[0].to_text()
    assert type(ensemble).from_bytes(ensemble.to_bytes()) == ensemble


def test_shapley_values_have_the_labels(model, plain):
    table, _ = rows()
    values = model.shap(table.head(20))
    text = values.to_text()
    for expected in ("Net <income>", "Housing", "no default", "default & loss"):
        assert expected in text
    picture = values.to_svg()
    assert "Net &lt;income&gt;" in picture
    assert "default &amp; loss" in picture
    one = values[0]
    text, picture = one.to_text(), one.to_svg()
    word = {"r": "rents", "o": "owns"}[table["own"][0]]
    for expected in ("probability of Default = ", f"{table['inc'][0]} k€", word):
        assert expected in text
        assert expected in picture
    assert "Net <income>" not in one.to_html()
    assert values.to_dict() == plain.shap(table.head(20)).to_dict()
    assert "Housing" in model.explain(table.head(1), shap=True).to_text()


def test_numbers_are_predicted_in_their_unit():
    table, _ = rows()
    tree = fit_tree(
        table[["own", "n"]],
        table["inc"],
        replace(CART, criterion="squared_error"),
        labels={"inc": {"title": "Income", "unit": "k€"}},
    )
    row = table[["own", "n"]].head(1)
    explained = tree.explain(row, shap=True).to_text()
    assert explained.startswith("Income: ")
    assert explained.splitlines()[0].count(" k€") == 1
    leaf = re.compile(r"\d k€ \(\d+, ± ")
    for view in (
        tree.to_text(),
        tree.to_dot(),
        " ".join(tree.view()["nodes"]["summary"]),
    ):
        assert leaf.search(view)
    assert re.search(r"then Income is [\d.]+ k€ on average", tree.rules().to_text())
    values = tree.shap(row).to_text()
    # The base value, the prediction and what two columns contribute.
    assert values.count(" k€") == 4


def test_differences_of_models_have_the_labels(model):
    table, risk = rows()
    wanted = {"categorical_features": ["n"], "labels": LABELS}
    other = fit_tree(table, risk, replace(CART, max_depth=1), **wanted)
    found = model.diff(other, table)
    text = found.to_text()
    for expected in (
        "Only the old tree splits on",
        "Housing",
        "splits on Net <income> <= 30 k€",
        "no default",
    ):
        assert expected in text
    assert "own" not in text.replace("owns", "")
    assert "inc" not in text.replace("<income>", "")
    for typeset in (found.to_html(), found.to_markdown()):
        assert "≤ 30 k€" in typeset
        assert "<=" not in typeset
        assert "&lt;=" not in typeset
    told = found.to_dict()
    assert set(told["only_old"]) == {"inc", "own"}
    assert {one["old"] for one in told["predictions"]["crosstab"]} == {"b", "g"}
    for one in [*told["differences"], *told["predictions"]["changed"]]:
        assert "typeset" not in one


def test_ensembles_have_the_labels_in_their_views(forest):
    table, _ = rows()
    for text in (forest.summary().to_text(), forest.to_html()):
        for expected in ("Housing", "Default"):
            assert expected in text
    assert "'no default'" in forest.summary().to_text()
    importances = forest.importances()
    assert "Net <income>" in importances.to_text()
    assert set(importances.columns) == {"inc", "own", "n"}
    page = forest.to_html()
    assert "Net &lt;income&gt;" in page
    assert "Net <income>" not in page
    assert "default &amp; loss" in page
    prototypes = forest.prototypes().to_text()
    for expected in ("Net <income>", " k€", "no default", "owns"):
        assert expected in prototypes
    assert "own is Housing" in forest.export("python", verify=False)
    explained = forest.explain(table.head(1), shap=True).to_text()
    assert explained.startswith("Default: ")
    assert "default" in explained.splitlines()[1]
    assert " k€" in explained


@pytest.fixture(scope="module", name="forest")
def labelled_forest():
    forest = RandomForestClassifier(n_estimators=5, categorical_features=["n"])
    return forest.fit(*rows()).model_.with_labels(LABELS)


def test_files_of_labels(tmp_path):
    expected = {
        "inc": {"title": "Income, net", "unit": "EUR"},
        "own": {"words": {"r": "rents", "o": "owns"}},
    }
    (tmp_path / "labels.json").write_text(json.dumps(expected), encoding="utf-8")
    (tmp_path / "labels.toml").write_text(
        '[inc]\ntitle = "Income, net"\nunit = "EUR"\n[own.words]\nr = "rents"\n'
        'o = "owns"\n',
        encoding="utf-8",
    )
    (tmp_path / "labels.csv").write_text(
        'column,title,unit,value,word\ninc,"Income, net",EUR,,\nown,,,r,rents\n'
        "own,,,o,owns\n",
        encoding="utf-8",
    )
    for ending in ("json", "toml", "csv"):
        assert read_labels(tmp_path / f"labels.{ending}") == expected


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (5, "labels must be a dictionary by column, or the path"),
        ("labels.txt", r"ends with .json, .toml or .csv"),
        ("absent.json", "labels cannot be read from absent.json"),
        ({"income": "x"}, r"has no column 'income'. Did you mean 'inc'"),
        ({"inc": 3}, "label of column 'inc' must be a title, or a dictionary"),
        (
            {"inc": {"name": "x"}},
            "may have 'title', 'unit', 'words', 'order'. Got 'name'",
        ),
        ({"own": {"words": ["a"]}}, "must be a dictionary from values to words"),
        ({"own": {"order": "ab"}}, "order of column 'own' must be a list"),
        ({"inc": {"title": ""}}, "column 'inc', a title must be a text of 1 to 1,000"),
        ({"inc": {"unit": 3}}, "column 'inc', a unit must be a text"),
        ({"own": {"words": {"r": 5}}}, "column 'own', a word must be a text"),
        ({"inc": "own"}, "two columns of labels would be called 'own'"),
        (
            {"own": {"words": {"r": "o"}}},
            "two values of column 'own' would be called 'o'",
        ),
        ({"risk": {"words": {"b": "g"}}}, "two classes of the target would be called"),
    ],
)
def test_labels_that_cannot_be(plain, labels, message):
    with pytest.raises((ParameterError, DataError), match=message):
        plain.with_labels(labels)


def test_a_codebook_may_have_further_columns(plain):
    labels = {"region": "Region of residence", **LABELS}
    assert plain.with_labels(labels) == plain.with_labels(LABELS)
    with pytest.raises(DataError, match="has no column 'region'"):
        plain.with_labels({"region": "Region of residence"})
    with pytest.raises(DataError, match=r"no column 'inkc'. Did you mean 'inc'"):
        plain.with_labels({"inkc": "Income", "own": "Housing"})


def test_broken_files_are_named(tmp_path):
    for name, content in (("a.json", "{"), ("a.toml", "x"), ("a.csv", "a,b\n")):
        (tmp_path / name).write_text(content, encoding="utf-8")
        with pytest.raises(DataError, match=f"{name} is not valid"):
            read_labels(tmp_path / name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(label=3), "'label' of column 0 must be an object"),
        (lambda c: c["label"].update(colour="x"), 'has the unknown field "colour"'),
        (
            lambda c: c["label"].update(title=3),
            "'title' of 'label' of column 0 must be",
        ),
        (lambda c: c["label"].update(unit=""), "a unit must be a text of 1 to"),
        (lambda c: c["label"].update(words=["a"]), "one for each of 0 values, not 1"),
        (lambda c: c["label"].update(title="Housing"), "two columns of labels"),
    ],
)
def test_labels_of_files_are_checked(model, change, message):
    document = json.loads(model.to_bytes())
    change(document["schema"]["columns"][0])
    with pytest.raises(ModelFileError, match=message):
        Model.from_bytes(json.dumps(document).encode())
    assert issubclass(ModelFileError, BranchwiseError)
