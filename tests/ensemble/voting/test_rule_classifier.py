"""RuleClassifier: rules that vote, against a plain computation of what they mean."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from branchwise import (
    DataError,
    ModelFileError,
    ParameterError,
    RandomForestClassifier,
    RuleClassifier,
    datasets,
    load,
)
from branchwise.ensemble.forest import grow_trees
from branchwise.ensemble.reading.voting_rules import VotingRules
from branchwise.ensemble.voting import candidate_rules, fit_rules
from branchwise.ensemble.voting.vote_sums import NativeVoteSums, VoteSums
from branchwise.model_file.array_text import array_of_text, array_text
from branchwise.rules.generalise import bits_of

#: Bootstrap samples draw rows, so a row twice is not a row of weight 2.
DRAWN = {
    f"check_sample_weight_equivalence_on_{kind}_data": "samples are of rows"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [RuleClassifier(n_estimators=2)],
    expected_failed_checks=lambda _: DRAWN,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def table(n_rows: int = 200, seed: int = 0, missing: bool = False) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "colour": draw.choice(["blue", "green", "red"], n_rows),
            "size": draw.integers(0, 20, n_rows).astype(float),
            "weight": draw.normal(size=n_rows).round(2),
        }
    )
    if missing:
        for column in X:
            X.loc[draw.random(n_rows) < 0.15, column] = None
    return X


def classes(X: pd.DataFrame, n_classes: int) -> np.ndarray:
    big = (X["size"].fillna(0) > 9).to_numpy().astype(int)
    red = (X["colour"] == "red").to_numpy().astype(int)
    return np.array(["a", "b", "c"])[(big + red) % n_classes]


def noisy(y: np.ndarray) -> np.ndarray:
    draw = np.random.default_rng(len(y))
    return np.where(draw.random(len(y)) < 0.2, draw.permutation(y), y)


def holds(condition: Any, cell: Any) -> bool:
    """Evaluate a condition on a cell, in plain words."""
    missing = cell is None or cell != cell
    if missing:
        return condition.op == "is missing"
    match condition.op:
        case "=":
            return cell == condition.value
        case "in":
            return cell in condition.value
        case "not in":
            return cell in condition.of.categories and cell not in condition.value
        case "<=":
            return cell <= condition.value
        case ">":
            return cell > condition.value
        case "within":
            low, high = condition.value
            return low < cell <= high
    return condition.op == "is known"


def naive_probabilities(rules: VotingRules, row: dict[str, Any]) -> list[float]:
    """Add up the votes of the rules that hold, without any array."""
    scores = dict(rules.initial)
    for rule in rules:
        if all(holds(c, row[c.column]) for c in rule.conditions):
            scores[rule.label] += rule.vote
    powers = [math.exp(score) for score in scores.values()]
    return [power / sum(powers) for power in powers]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_printed_rules_and_predictions_agree(n_classes, missing):
    X = table(missing=missing)
    fitted = RuleClassifier(n_estimators=5).fit(X, classes(X, n_classes))
    rules = fitted.rules()
    assert len(rules) >= 2
    new = table(60, 1, missing)
    new.loc[0, "colour"] = "never seen"
    rows = new.astype(object).to_dict("records")
    wanted = [naive_probabilities(rules, row) for row in rows]
    found = fitted.predict_proba(new)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
    best = fitted.classes_[np.argmax(wanted, axis=1)]
    assert (fitted.predict(new) == best).all()
    own = [
        [all(holds(c, row[c.column]) for c in r.conditions) for r in rules]
        for row in rows
    ]
    assert (rules.holds(new) == own).all()
    assert fitted.score(X, classes(X, n_classes)) > 0.8


def test_cases_of_rules_are_those_of_the_training_rows():
    X = table(missing=True)
    y = classes(X, 3)
    rules = RuleClassifier(n_estimators=5).fit(X, y).rules()
    held = rules.holds(X)
    for at, rule in enumerate(rules):
        own = y[held[:, at]]
        assert rule.n == len(own) > 0
        assert rule.counts == {label: float((own == label).sum()) for label in "abc"}
        assert rule.total == len(y)
        assert rule.vote == rules.votes[at] > 0
    overlap = rules.overlap(X)
    assert (np.diag(overlap) == 1).all()
    both = held[:, 0] & held[:, 1]
    assert overlap[0, 1] == both.sum() / held[:, 0].sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_order_of_rows_and_threads_change_nothing(weighted):
    X = table(300, 2, missing=True)
    y = noisy(classes(X, 3))
    weights = np.random.default_rng(1).integers(0, 4, 300) / 3 if weighted else None
    model = RuleClassifier(n_estimators=4, n_jobs=1).fit(X, y, weights).model_
    order = np.random.default_rng(3).permutation(300)
    other = RuleClassifier(n_estimators=4, n_jobs=2).fit(
        X.iloc[order], y[order], None if weights is None else weights[order]
    )
    ours, theirs = (
        m.to_bytes().partition(b'"schema"')[2] for m in (model, other.model_)
    )
    assert ours == theirs
    another = RuleClassifier(n_estimators=4, random_state=7).fit(X, y, weights)
    assert another.model_.trees != model.trees


def test_native_and_reference_agree(monkeypatch):
    X = table(250, 4, missing=True)
    y = classes(X, 3)
    native = RuleClassifier(n_estimators=4).fit(X, y).model_
    monkeypatch.setenv("BRANCHWISE_KERNEL", "reference")
    reference = RuleClassifier(n_estimators=4).fit(X, y).model_
    assert native.trees == reference.trees
    assert (native.rule_cases == reference.rule_cases).all()


def both_sums(seed: int) -> tuple[NativeVoteSums, VoteSums]:
    draw = np.random.default_rng(seed)
    sets = [bits_of(draw.random(200) < 0.4) for _ in range(40)]
    labels, target = draw.integers(0, 3, 40), draw.integers(0, 3, 200)
    given = sets, labels, target, draw.integers(0, 4, 200) / 3, np.log([1.0, 2.0, 0.5])
    return NativeVoteSums(*given), VoteSums(*given)


@pytest.mark.parametrize("seed", range(5))
def test_votes_are_adjusted_as_by_the_reference(seed):
    native, reference = both_sums(seed)
    draw = np.random.default_rng(seed)
    rules = draw.permutation(40)[:12]
    votes = theirs = draw.random(12) * draw.integers(0, 4, 12)
    for rule, vote in zip(rules.tolist(), votes.tolist(), strict=True):
        native.vote(rule, vote)
        reference.vote(rule, vote)
    changes = []
    for _ in range(6):
        votes, largest = native.adjusted(rules, votes)
        theirs, change = reference.adjusted(rules, theirs)
        assert (votes.tolist(), largest) == (theirs.tolist(), change)
        changes.append(change)
    assert min(votes) >= 0
    assert changes[-1] < changes[0]


def test_rules_of_no_rows_have_sums_of_nothing():
    none = np.zeros(0)
    given = [np.zeros(1, np.uint64)] * 2, np.array([0, 1]), none.astype(int), none
    for kind in (NativeVoteSums, VoteSums):
        sums = kind(*given, np.zeros(2)).of_rules(np.arange(2))
        assert [found.tolist() for found in sums] == [[0, 0], [0, 0]]


def test_sums_of_many_rules_are_those_of_each():
    native, reference = both_sums(8)
    for rule, step in ((3, 0.7), (8, 1.9), (3, -0.2)):
        native.vote(rule, step)
        reference.vote(rule, step)
    every = np.arange(40)
    for many, theirs in zip(
        native.of_rules(every), reference.of_rules(every), strict=True
    ):
        assert many.tolist() == theirs.tolist()
    each = [native.of_rules(np.array([rule]))[0][0] for rule in every]
    assert each == native.of_rules(every)[0].tolist()


def test_large_tables_have_more_and_smaller_samples(monkeypatch):
    drawn = []

    def grow(samples, numbers, *others):
        drawn.append((samples.n_drawn, len(numbers)))
        return grow_trees(samples, numbers, *others)

    monkeypatch.setattr(candidate_rules, "grow_trees", grow)
    X = table(300, missing=True)
    y = noisy(classes(X, 3))
    for rows in (5_000, 200, 100):
        monkeypatch.setattr(candidate_rules, "_SAMPLE_ROWS", rows)
        model = RuleClassifier(n_estimators=4).fit(X, y).model_
    assert drawn == [(300, 4), (200, 4), (100, 8)]
    order = np.random.default_rng(3).permutation(300)
    other = RuleClassifier(n_estimators=4).fit(X.iloc[order], y[order]).model_
    assert other.trees == model.trees
    monkeypatch.setattr(candidate_rules, "_MOST_LEAVES", 1)
    RuleClassifier(n_estimators=9).fit(X, y)
    assert drawn[-1] == (100, 4)


def test_very_large_tables_are_judged_by_a_sample(monkeypatch):
    monkeypatch.setattr(fit_rules, "_MOST_ROWS", 150)
    X = table(400, missing=True)
    y = noisy(classes(X, 3))
    fitted = RuleClassifier(n_estimators=3).fit(X, y)
    held = fitted.rules().holds(X)
    assert len(fitted.rules()) > 2
    for rule, rows in zip(fitted.rules(), held.T, strict=True):
        assert rule.total == 400
        assert rule.n == rows.sum()
        assert rule.right == (y[rows] == rule.label).sum()
    order = np.random.default_rng(3).permutation(400)
    other = RuleClassifier(n_estimators=3).fit(X.iloc[order], y[order]).model_
    assert other.trees == fitted.model_.trees
    monkeypatch.setattr(fit_rules, "_MOST_ROWS", 399)
    assert RuleClassifier(n_estimators=3).fit(X, y).model_.trees != other.trees


def test_more_cost_gives_fewer_rules():
    car = datasets.load("car")
    sizes = [
        len(RuleClassifier(n_estimators=3, rule_cost=cost).fit(car.X, car.y).rules())
        for cost in (0.2, 1, 5)
    ]
    assert sizes[0] > sizes[1] > sizes[2] >= 1
    few = RuleClassifier(n_estimators=3, max_rules=3).fit(car.X, car.y)
    assert len(few.rules()) <= 3


def test_no_rule_where_nothing_tells():
    X = {"x": ["a"] * 10}
    fitted = RuleClassifier().fit(X, list("ab") * 5)
    assert len(fitted.rules()) == 0
    assert fitted.predict_proba(X).tolist() == [[0.5, 0.5]] * 10
    assert "None of 0 rules holds." in fitted.explain({"x": "a"}).to_text()
    again = load(fitted.to_bytes())
    assert again.predict(X).tolist() == fitted.predict(X).tolist()


def test_one_class():
    X = {"x": [1, 2, 3]}
    fitted = RuleClassifier().fit(X, ["a"] * 3)
    assert fitted.predict(X).tolist() == ["a"] * 3
    assert len(fitted.rules()) == 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_saved_and_loaded(n_classes, tmp_path):
    X = table(missing=True)
    fitted = RuleClassifier(n_estimators=4).fit(X, classes(X, n_classes))
    fitted.save(tmp_path / "rules.json")
    model = load(tmp_path / "rules.json")
    assert model == fitted.model_
    assert (model.predict_proba(X) == fitted.predict_proba(X)).all()
    assert model.voting_rules() == fitted.rules()
    assert model.to_text() == fitted.to_text()
    estimator = model.to_estimator()
    assert isinstance(estimator, RuleClassifier)
    assert estimator.n_estimators == 4
    assert (estimator.predict(X) == fitted.predict(X)).all()
    assert (pickle.loads(pickle.dumps(fitted)).predict(X) == fitted.predict(X)).all()


@pytest.mark.parametrize(
    "target",
    [
        *("python", "sql", "json"),
        *(pytest.param(t, marks=pytest.mark.slow) for t in ("c", "javascript", "pmml")),
        *(pytest.param(t, marks=pytest.mark.slow) for t in ("excel", "onnx")),
    ],
)
def test_exports_are_verified(target):
    X = table(120, missing=True)
    fitted = RuleClassifier(n_estimators=3, max_rules=4).fit(X, classes(X, 3))
    assert len(fitted.export(target)) > 1000


def test_views():
    X = table()
    fitted = RuleClassifier(n_estimators=4).fit(X, classes(X, 2))
    rules = fitted.rules()
    text = rules.to_text()
    assert text.startswith("1. If ")
    assert "; vote " in text
    assert "Before any vote, the scores are: a 0" in text
    columns = rules.to_columns()
    assert columns["vote"] == list(rules.votes)
    assert "node" not in columns
    assert rules.to_frame()["label"].tolist() == columns["label"]
    document = rules.to_dict()
    assert document["voting"] is True
    assert [rule["vote"] for rule in document["rules"]] == list(rules.votes)
    assert {one["class"] for one in document["initial"]} == {"a", "b"}
    assert repr(rules).startswith(f"<{len(rules)} voting rules of branchwise, ")
    assert "<ol>" in rules.to_html()
    assert rules.to_markdown().startswith("1. If ")


def test_page_and_summary():
    X = table(missing=True)
    fitted = RuleClassifier(n_estimators=4).fit(X, classes(X, 3))
    page = fitted.to_html()
    for words in ("The rules", "How much they cover", "Which rules overlap"):
        assert words in page
    assert fitted.rules()[0].sentence().split(",")[0] in page
    assert page.count('<select name="column-') == 1
    assert page.count('type="number"') == 2
    assert '<option value="2">red</option>' in page
    # A model file has no rows, which overlap needs.
    assert "Which rules overlap" not in load(fitted.to_bytes()).to_html(title="Mine")
    n_rules = len(fitted.rules())
    assert repr(fitted.model_).startswith(f"<branchwise voting rules: {n_rules} rules")
    summary = fitted.model_.summary().to_text()
    assert f"A set of {n_rules} rules predicts classes" in summary
    assert "A rule has " in summary
    importances = fitted.feature_importances_
    assert importances[0] > 0.2
    assert importances[1] > 0.2 > importances[2]


def test_explanation_adds_up():
    X = table(missing=True)
    fitted = RuleClassifier(n_estimators=4).fit(X, classes(X, 3))
    explanations = fitted.explain(X.head(20))
    probabilities = fitted.predict_proba(X.head(20))
    held = fitted.rules().holds(X.head(20))
    for row, one in enumerate(explanations):
        assert one.row == row
        assert [number - 1 for number, _ in one.rules] == np.flatnonzero(
            held[row]
        ).tolist()
        powers = np.exp(list(one.scores.values()))
        np.testing.assert_allclose(powers / powers.sum(), probabilities[row])
        assert one.prediction == fitted.predict(X.iloc[[row]])[0]
        written = one.to_dict()
        assert len(written["rules"]) == len(one.rules)
        assert f"Of {len(fitted.rules())} rules" in one.to_text() or not one.rules
        assert (" 1 holds:" in one.to_text()) == (len(one.rules) == 1)
    assert repr(explanations[0]).startswith("<explanation of row 0: ")


def test_shapley_values_add_up_to_the_margins():
    X = table(50)
    fitted = RuleClassifier(n_estimators=3).fit(X, classes(X, 2))
    values = fitted.shap(X.head(5))
    total = values.values.sum(axis=1)[:, 1] + values.base_values[1]
    np.testing.assert_allclose(total, fitted.decision_function(X.head(5)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_rules": 0}, "max_rules must be None or a whole number of at least 1"),
        ({"rule_cost": -1}, "rule_cost must be a finite number of at least 0"),
        ({"n_estimators": 0}, "n_estimators must be a whole number of at least 1"),
    ],
)
def test_wrong_parameters(given, message):
    with pytest.raises(ParameterError, match=message):
        RuleClassifier(**given).fit({"x": [1, 2]}, ["a", "b"])


def test_errors():
    X = table(60)
    y = classes(X, 2)
    with pytest.raises(DataError, match="y must hold classes"):
        RuleClassifier().fit(X, np.linspace(0, 1, 60))
    fitted = RuleClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(ParameterError, match="without Shapley values"):
        fitted.explain(X.head(1), shap=True)
    forest = RandomForestClassifier(n_estimators=2).fit(X, y).model_
    with pytest.raises(ParameterError, match="needs rules that vote, those of Rule"):
        forest.voting_rules()


def test_files_that_are_no_rules_are_refused():
    X = table(100)
    content = RuleClassifier(n_estimators=3).fit(X, classes(X, 3)).to_bytes()
    document = json.loads(content)

    def changed(**fields: Any) -> bytes:
        return json.dumps({**document, **fields}).encode()

    own = document["ensemble"]
    for name, value, message in (
        ("rule_cases", [1.0], "'rule_cases' of 'ensemble' must have"),
        ("rule_cases", [-1.0] * len(own["rule_cases"]), "must be at least 0"),
        ("loss", "poisson", "method='rules' is for classes"),
        ("method", "gradient", "has 'rule_cases'"),
    ):
        with pytest.raises(ModelFileError, match=message):
            load(changed(ensemble={**own, name: value}))
    with pytest.raises(ModelFileError, match="trees for each round"):
        load(
            changed(
                trees=document["trees"][1:],
                ensemble={**own, "rule_cases": own["rule_cases"][3:]},
            )
        )
    broken = json.loads(content)
    for tree in broken["trees"]:
        tree["mean"] = array_text(np.ones(len(array_of_text(tree["cases"], "", True))))
    with pytest.raises(ModelFileError, match="tree 0 is no rule: a rule has one split"):
        load(json.dumps(broken).encode())
