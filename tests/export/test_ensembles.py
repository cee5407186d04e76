"""Exports of ensembles: run, and compared with the ensemble to the last bit."""

from __future__ import annotations

import json

import pytest

from branchwise import (
    BaggedTrees,
    C45Classifier,
    ExportError,
    RandomForestClassifier,
    RandomForestRegressor,
)
from branchwise import export as exports
from branchwise.export.base import plan_of, same
from branchwise.export.verification import probe_rows
from forest_tables import mixed
from mixed_ensembles import boosted_ensembles, random_boosting, random_ensemble
from selection import first_fast

#: What starts quickly; tests of their own start the others once for several files.
QUICK = [name for name in exports.TARGETS if name not in ("dmn", "excel", "pmml")]


def check(ensemble, target: str) -> None:
    runners = exports.TARGETS[target].runners(exports.TARGETS[target].options({}))
    if all(runner.absent() for runner in runners):
        pytest.skip(str(runners[0].absent()))
    done = exports.verify(ensemble, target)
    assert done.ok, str(done)


@pytest.mark.parametrize("target", QUICK)
@pytest.mark.parametrize("seeds", first_fast([(6, 9), range(28)]))
def test_ensembles_of_every_kind_of_tree(target, seeds):
    for seed in seeds:
        check(random_ensemble(seed, seed), target)


@pytest.mark.parametrize("target", QUICK)
@pytest.mark.parametrize("seeds", first_fast([(6,), range(28)]))
def test_boosting_of_every_kind_of_tree(target, seeds):
    for seed in seeds:
        check(random_boosting(seed, seed), target)


@pytest.mark.parametrize("target", QUICK)
@pytest.mark.parametrize(
    "drawn", first_fast([(12, (14, 15)), (12, (12, 13)), (13, range(12, 16))])
)
def test_links_of_gradient_boosting(target, drawn):
    """None, exp, logistic, softmax: the label exactly, probabilities nearly."""
    kind, seeds = drawn
    for seed in seeds:
        check(random_boosting(kind, seed), target)


@pytest.mark.parametrize("target", QUICK)
@pytest.mark.parametrize(
    "forest",
    [
        RandomForestClassifier(n_estimators=7, max_depth=4),
        pytest.param(
            RandomForestClassifier(
                n_estimators=4, base="c4.5", voting="hard", max_depth=4
            ),
            marks=pytest.mark.slow,
        ),
        RandomForestClassifier(
            n_estimators=4,
            base="c4.5",
            voting="hard",
            missing="split",
            costs=[[0, 3], [1, 0]],
            max_depth=3,
        ),
        pytest.param(
            RandomForestClassifier(n_estimators=3, costs=[[0, 3], [1, 0]], max_depth=3),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            RandomForestClassifier(n_estimators=1, max_depth=0), marks=pytest.mark.slow
        ),
        RandomForestRegressor(n_estimators=5, max_depth=4),
    ],
    ids=["soft", "hard", "hard, costs", "soft, costs", "a leaf", "numbers"],
)
def test_forests(target, forest, tmp_path):
    X, y = mixed(150)
    target_of = X["noise"] if isinstance(forest, RandomForestRegressor) else y
    ensemble = forest.fit(X.drop(columns="noise"), target_of).model_
    check(ensemble, target)
    written = ensemble.export(target, tmp_path / "forest", verify=False)
    content = written if isinstance(written, bytes) else written.encode()
    assert (tmp_path / "forest").read_bytes() == content


def test_rows_of_a_table_verify_an_ensemble():
    X, y = mixed(60)
    ensemble = RandomForestClassifier(n_estimators=3).fit(X, y).model_
    assert exports.verify(ensemble, "python", X).n_rows == 60
    assert ensemble.export("python", verify=X)


def test_a_difference_is_found(monkeypatch):
    X, y = mixed(60)
    ensemble = RandomForestClassifier(n_estimators=3).fit(X, y).model_
    wrong = RandomForestClassifier(n_estimators=4).fit(X, y).model_
    monkeypatch.setattr(ensemble, "average", wrong.average)
    monkeypatch.setattr(ensemble, "class_codes", wrong.class_codes)
    with pytest.raises(ExportError, match="differs from the model, and is not written"):
        ensemble.export("python")


def test_the_plan_of_an_ensemble_has_all_trees():
    ensemble = random_ensemble(8, 8)
    plan = plan_of(ensemble)
    assert len(plan.trees) == 3
    sizes = [len(tree) for tree in ensemble.trees]
    assert plan.roots == (0, sizes[0], sizes[0] + sizes[1])
    assert len(plan.nodes) == sum(sizes)
    assert [plan.depths[root] for root in plan.roots] == [0, 0, 0]
    assert all(tree.fields == plan.fields for tree in plan.trees)
    assert len(probe_rows(plan, 100)) == 100


def test_the_rules_of_an_ensemble():
    ensemble = random_ensemble(0, 1)
    document = json.loads(exports.write(ensemble, "json"))
    assert document["version"] == 3
    assert document["voting"] == ensemble.recipe.voting
    assert len(document["trees"]) == 3
    assert set(document["trees"][0]) == {"rules"}


@pytest.mark.parametrize("number", range(4))
def test_boosted_trees_that_were_fitted(number):
    for target in ("json", "python"):
        check(boosted_ensembles()[number], target)


def test_rules_of_boosting_say_how_trees_are_added_up():
    weighted, two, several, numbers = (
        json.loads(exports.write(ensemble, "json")) for ensemble in boosted_ensembles()
    )
    assert weighted["version"] == two["version"] == 4
    ensemble = boosted_ensembles()[0]
    assert weighted["weights"] == ensemble.tree_weights.tolist()
    assert weighted["divisor"] == ensemble.tree_weights.sum()
    assert [len(d["initial"]) for d in (two, several, numbers)] == [1, 3, 1]
    links = [d["link"] for d in (two, several, numbers)]
    assert links == ["logistic", "softmax", None]


def test_links_have_a_tolerance():
    plan = plan_of(boosted_ensembles()[1])
    given = ("yes", (0.25, 0.75))
    assert same(given, ("yes", (0.25, 0.75 + 1e-15)), plan)
    assert not same(given, ("yes", (0.25, 0.75 + 1e-11)), plan)
    assert not same(given, ("no", (0.25, 0.75)), plan)
    assert not same(given, ("yes", (0.25,)), plan)
    exact = plan_of(boosted_ensembles()[0])
    assert not same(given, ("yes", (0.25, 0.75 + 1e-15)), exact)


def test_sql_joins_many_trees_in_steps():
    X, y = mixed(60)
    forest = RandomForestClassifier(n_estimators=70, max_depth=1).fit(X, y).model_
    check(forest, "sql")


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
@pytest.mark.parametrize("kind", [6, 13])
def test_sql_adds_up_trees_that_divide_cases(dialect, kind):
    if dialect == "duckdb":
        pytest.importorskip("duckdb")
    for ensemble in (random_ensemble(kind, 6), random_boosting(kind, 15)):
        assert plan_of(ensemble).divides
        done = exports.verify(ensemble, "sql", dialect=dialect)
        assert done.ok, str(done)


def test_a_forest_of_one_class():
    X, y = mixed(30)
    forest = RandomForestClassifier(n_estimators=2).fit(X, ["no"] * len(y)).model_
    for target in ("json", "sql"):
        check(forest, target)


def test_sql_says_what_it_cannot_hold():
    X, y = mixed(60)
    forest = RandomForestClassifier(n_estimators=201, max_depth=1).fit(X, y).model_
    with pytest.raises(ExportError) as caught:
        exports.write(forest, "sql")
    assert str(caught.value) == (
        "SQL cannot carry this ensemble of 201 trees: a query joins at most 200 of "
        "them. Fit fewer trees, or export it to another target."
    )
    bagged = BaggedTrees(estimator=C45Classifier(max_depth=1), n_estimators=51)
    with pytest.raises(ExportError) as caught:
        exports.write(bagged.fit(X, y).model_, "sql")
    assert str(caught.value) == (
        "SQL cannot carry this ensemble of 51 trees: they divide cases with missing or "
        "unseen values among branches, which takes several steps for each tree, and a "
        "query holds at most 50 of them. Fit it with missing='largest' and "
        "unseen='largest', fit fewer trees, or export it to another target."
    )
    with pytest.raises(ExportError, match="cannot carry an ensemble: no single CASE"):
        exports.write(forest, "sql", form="expression")
