"""What a fit says of its tree: warnings of the library, notes of the command line."""

import re
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score

from branchwise import (
    BranchwiseWarning,
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    FitWarning,
    ID3Classifier,
    RandomForestClassifier,
    Recipe,
    datasets,
    fit_tree,
)
from branchwise.engines.chunked import ChunkedTable
from branchwise.engines.sql import SqlTable
from branchwise.evaluation import compare, cross_validated, search
from branchwise.files.dataset import StreamedTable
from branchwise.recipe import C45, CART
from command_line import run
from sql_sources import in_duckdb

N = 400
RANDOM = np.random.default_rng(5)
NOISE = RANDOM.normal(size=N)
LABELS = np.where(RANDOM.random(N) < 0.2, "yes", "no")
NAMES = np.array([f"c{i:03}" for i in range(N)])
#: Known only where the answer is yes.
DEFAULTED = np.where(LABELS == "yes", RANDOM.normal(size=N), np.nan)


def texts(fit, *args):
    """Return what a fit warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(*args)
    assert all(warning.category is FitWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def test_the_class_is_public_and_one_of_ours():
    assert issubclass(FitWarning, BranchwiseWarning)
    assert issubclass(FitWarning, UserWarning)


def test_one_leaf_says_why_and_what_to_try():
    with pytest.warns(FitWarning) as caught:
        C45Classifier().fit({"x": NOISE, "day": NAMES[np.arange(N) % 40]}, LABELS)
    assert caught[0].filename == __file__
    (text,) = [str(warning.message) for warning in caught]
    assert text.startswith(
        "The tree is one leaf: pruned to the root, as no split lowers the estimated "
        f"error; {np.mean(LABELS == 'no'):.0%}".replace("%", " %")
    )
    assert "of the rows are 'no'." in text
    assert "class_weight='balanced', a confidence above 0.25 or leaving" in text
    assert text.endswith("columns of very many values: 'day' (40).")


@pytest.mark.parametrize(
    ("recipe", "why"),
    [
        ({"max_p_value": 1e-9}, "no split has a p-value of at most 1e-09; "),
        ({"min_samples_leaf": 300}, "no split is within min_samples_leaf=300; "),
        ({"min_gain": 0.9}, "no split is within min_gain=0.9; "),
        ({"pruning": "cost-complexity", "ccp_alpha": 9.0}, "by what its leaves cost; "),
    ],
)
def test_one_leaf_for_other_reasons(recipe, why):
    (text,) = texts(lambda: fit_tree({"x": NOISE}, LABELS, Recipe(**recipe)))
    assert why in text


def test_one_leaf_of_numbers_and_of_one_class():
    (text,) = texts(lambda: CARTRegressor(ccp_alpha=9.0).fit({"x": NOISE}, NOISE))
    assert "; it predicts the mean, " in text
    assert "class_weight" not in text
    (text,) = texts(lambda: ID3Classifier().fit({"x": NOISE}, ["no"] * N))
    assert "the target is 'no' in every row" in text
    (text,) = texts(lambda: ID3Classifier().fit({"x": ["a"] * N}, LABELS))
    assert "no column can split the rows" in text
    assert "No column of the table tells the rows apart." in text


@pytest.mark.parametrize("limit", [{"max_depth": 0}, {"max_leaf_nodes": 1}])
def test_one_leaf_on_request_is_nothing_to_say(limit):
    assert texts(lambda: CARTClassifier(**limit).fit({"x": NOISE}, LABELS)) == []


def test_learnt_by_heart():
    (text,) = texts(lambda: ID3Classifier().fit({"x": NOISE}, LABELS))
    assert f"leaves for {N} rows: it may have learnt the table by heart" in text
    assert "C4.5, which prunes, pruning='error-based' or min_samples_leaf=5" in text
    (text,) = texts(lambda: CARTRegressor().fit({"x": NOISE}, NOISE**2))
    assert "try ccp_alpha='1-se' or " in text


def test_small_tables_and_small_trees_are_nothing_to_say_of():
    tennis = datasets.load("tennis")
    for estimator in (ID3Classifier(), CARTClassifier()):
        assert texts(estimator.fit, tennis.X, tennis.y) == []
        assert texts(estimator.fit, {"x": NOISE[:99]}, LABELS[:99]) == []
    small = CARTClassifier(max_depth=2)
    assert texts(lambda: small.fit({"x": NOISE}, LABELS)) == []


@pytest.mark.parametrize("estimator", [ID3Classifier(), CARTClassifier(max_depth=2)])
def test_a_column_that_names_rows_took_over(estimator):
    (text,) = texts(lambda: estimator.fit({"name": NAMES}, LABELS))
    assert text.startswith("Column 'name' splits 100 % of the rows and has 400 values")
    assert text.endswith("leave it out.")


def test_a_column_that_splits_few_rows_did_not():
    x = np.where(np.arange(N) < 300, 0.0, 1.0)
    names = np.where(x == 0, "other", NAMES)
    labels = np.where(x == 0, "other", LABELS)
    tree = ID3Classifier(criterion="gain_ratio")
    found = texts(lambda: tree.fit({"x": x, "name": names}, labels))
    assert set(tree.model_.used_columns) == {0, 1}
    assert not any("splits" in text for text in found)


@pytest.mark.parametrize("missing", ["branch", "learned"])
@pytest.mark.parametrize("kind", ["number", "text"])
def test_known_or_missing_decides(missing, kind):
    column = DEFAULTED
    if kind == "text":
        column = [None if np.isnan(x) else f"day {x:.0f}" for x in DEFAULTED]
    estimator = CARTClassifier(missing=missing, max_depth=2)
    (text,) = texts(lambda: estimator.fit({"x": NOISE, "date": column}, LABELS))
    assert text.startswith(
        "The first split is by whether 'date' is known: 100 % are 'no' where 'date' is "
        "missing, 0 % where it is known."
    )


def test_numbers_that_known_or_missing_decides():
    numbers = np.where(LABELS == "yes", 10.0, 0.0) + NOISE
    estimator = CARTRegressor(missing="branch", max_depth=2)
    (text,) = texts(lambda: estimator.fit({"date": DEFAULTED}, numbers))
    assert "is known: the mean is " in text


@pytest.mark.parametrize(
    ("recipe", "attempt"),
    [(C45, "Try missing='branch',"), (CART, "Try missing='learned' or ")],
)
def test_missing_values_that_tell_but_are_not_used(recipe, attempt):
    values = {"x": NOISE, "income": np.where(LABELS == "yes", np.nan, NOISE)}
    recipe = Recipe(**vars(recipe) | {"missing": "split", "max_depth": 3})
    text = texts(lambda: fit_tree(values, LABELS, recipe))[-1]
    assert "is not used: 0 % are 'no' where 'income' is missing, 100 % " in text
    assert attempt in text


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_missing_values_are_counted_by_class(n_classes):
    labels = np.arange(N) % n_classes
    missing = (labels == n_classes - 1) | (np.arange(N) % 5 == 0)
    values = {"x": np.where(missing, None, "known").tolist()}
    recipe = replace(C45, missing="split")
    text = texts(lambda: fit_tree(values, labels.astype(str), recipe))[-1]
    (named,) = re.findall(r"are '(\d)' where", text)
    share = np.mean(labels[missing] == int(named))
    assert f" {share:.0%} are".replace("%", " %") in text


def test_engines_say_of_missing_values_what_the_memory_says(tmp_path):
    numbers = np.where(LABELS == "yes", 10.0, 0.0) + NOISE
    income = np.where(LABELS == "yes", np.nan, NOISE)
    weight = np.where(np.arange(N) % 2, 2.5, 1.0)
    given = {"date": DEFAULTED, "income": income, "y": LABELS, "n": numbers}
    table = pa.Table.from_pandas(pd.DataFrame({**given, "w": weight}))
    path = tmp_path / "t.parquet"
    parquet.write_table(table, path)
    database = SqlTable(in_duckdb(table, tmp_path / "t.duckdb"), "t")
    for missing in ("learned", "split"):
        for target, other, criterion in (("y", "n", "gini"), ("n", "y", "variance")):
            recipe = replace(CART, missing=missing, criterion=criterion, max_depth=2)
            fit = partial(fit_tree, target=target, recipe=recipe, sample_weight="w")
            fit = partial(fit, ignore=[other])
            expected = texts(fit, table)
            assert "missing" in expected[-1]
            for source in (ChunkedTable(StreamedTable((str(path),))), database):
                assert texts(fit, source) == expected


def test_missing_values_that_tell_nothing_are_not_mentioned():
    rows = np.arange(N) % 3 == 0
    values = {"x": np.where(rows, np.nan, np.where(LABELS == "yes", 1.0, 0.0))}
    for estimator in (C45Classifier(), CARTClassifier(missing="learned")):
        assert texts(estimator.fit, values, LABELS) == []


def test_weights_count():
    weight = np.where(LABELS == "yes", 100.0, 1.0)
    recipe = Recipe(min_gain=0.9)
    (text,) = texts(
        lambda: fit_tree({"x": NOISE}, LABELS, recipe, sample_weight=weight)
    )
    assert "of the rows are 'yes'" in text


def test_many_fits_say_nothing():
    table = NOISE.reshape(-1, 1)
    tree, numbers = ID3Classifier(), (LABELS == "yes").astype(int)
    silent = [
        lambda: clone(tree).fit(table, LABELS),
        lambda: cross_val_score(tree, table, LABELS, cv=2),
        lambda: GridSearchCV(tree, {"max_depth": [3, None]}, cv=2).fit(table, LABELS),
        lambda: BaggingClassifier(tree, 2).fit(table, numbers),
        lambda: RandomForestClassifier(n_estimators=2).fit(table, LABELS),
        lambda: cross_validated(tree, table, LABELS, cv=2),
        lambda: compare({"a": tree, "b": C45Classifier()}, table, LABELS, cv=2),
        lambda: search(tree, table, LABELS, {"max_depth": [3, None]}, cv=2),
        lambda: tree.cost_complexity_pruning_path(table, LABELS),
    ]
    for fit in silent:
        assert texts(fit) == []


def test_choosing_a_tree_by_cross_validation_says_it_once():
    table = {"x": NOISE}, LABELS
    assert len(texts(CARTClassifier(ccp_alpha="1-se").fit, *table)) == 1


def test_a_callable_is_told_instead():
    found = []
    assert not texts(lambda: fit_tree({"name": NAMES}, LABELS, on_finding=found.append))
    (finding,) = found
    assert (finding.kind, finding.columns) == ("took_over", ("name",))


def test_notes_of_the_command_line(tmp_path):
    rows = zip(NOISE, NAMES, LABELS, strict=True)
    lines = ["x,name,class", *(f"{x},{name},{label}" for x, name, label in rows)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines))
    fit = "fit", path, "-t", "class", "-o", tmp_path / "tree.json"
    notes = run(*fit, "-a", "id3", "--ignore", "name")[2]
    assert "note: the tree has " in notes
    assert (
        "try C4.5, which prunes, --pruning error-based or --min-samples-leaf" in notes
    )
    assert notes.count("by heart") == 1
    notes = run(*fit, "-a", "id3")[2]
    assert "describes them, leave it out with --ignore name." in notes
    notes = run(*fit, "-a", "c4.5", "--ignore", "name")[2]
    assert "note: the tree is one leaf: pruned to the root" in notes
    assert "try --class-weight balanced or a confidence above 0.25." in notes
    assert "one leaf" not in run(*fit, "-a", "c4.5", "--ignore", "name", "-q")[2]
